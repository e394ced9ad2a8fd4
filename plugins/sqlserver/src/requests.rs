//! What a request is to the server: one call of `sp_executesql`, whose text is the connector's own. The seller's statement is a value of it, and can be no
//! other part of it.

use souk_sdk::{Error, Value};
use tds_protocol::rpc::{ProcId, RpcRequest};

use crate::parameters::{self, text};

const STATEMENT: &str = "@souk_statement";
const TYPES: &str = "@souk_types";
const LARGE: &str = "nvarchar(max)";

/// The body of the call. `XACT_ABORT` has the server undo the transaction when the statement fails or is stopped; a statement that has ended is
/// followed by what undoes it.
pub fn call(statement: &str, values: &[Value], lock_timeout_ms: u32) -> Result<Vec<u8>, Error> {
    let bound = parameters::bind(values)?;
    let names = |of: &dyn Fn(usize) -> String| (1..=bound.len()).map(of).collect::<String>();
    let (types, given) = match bound.is_empty() {
        true => (String::new(), String::new()),
        false => (
            format!(", {TYPES}"),
            names(&|number| format!(", @P{number}")),
        ),
    };
    let outer = format!(
        "SET XACT_ABORT ON;\n\
         SET LOCK_TIMEOUT {};\n\
         BEGIN TRANSACTION;\n\
         EXEC sys.sp_executesql {STATEMENT}{types}{given};\n\
         IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;",
        rounded(lock_timeout_ms)
    );
    let declared: Vec<&str> = bound
        .iter()
        .map(|bound| bound.declaration.as_str())
        .collect();
    let declared = declared.join(", ");
    let mut own = format!("{STATEMENT} {LARGE}");
    let mut request = RpcRequest::by_id(ProcId::ExecuteSql).param(text("", &outer));
    if !bound.is_empty() {
        own.push_str(&format!(", {TYPES} {LARGE}, {declared}"));
    }
    request = request
        .param(text("", &own))
        .param(text(STATEMENT, statement));
    if !bound.is_empty() {
        request = request.param(text(TYPES, &declared));
    }
    for bound in bound {
        request = request.param(bound.value);
    }
    Ok(request.encode().to_vec())
}

/// A little more than is left, so that the server, which knows a text by its every sign, mostly knows this one.
fn rounded(left_ms: u32) -> u32 {
    let step = match left_ms {
        0..1_000 => 100,
        1_000..5_000 => 500,
        5_000..60_000 => 5_000,
        _ => 30_000,
    };
    // The server takes it with a sign.
    left_ms
        .max(1)
        .div_ceil(step)
        .saturating_mul(step)
        .min(i32::MAX as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(body: &[u8]) -> String {
        let units: Vec<u16> = body
            .chunks(2)
            .map(|unit| u16::from_le_bytes([unit[0], *unit.get(1).unwrap_or(&0)]))
            .collect();
        String::from_utf16_lossy(&units)
    }

    /// A statement is never part of the text that undoes it.
    #[test]
    fn a_statement_is_a_value() {
        let plain = call("SELECT 'a", &[], 7_000).unwrap();
        let values = [Value::Int64(7), Value::Boolean(true)];
        let bound = call("SELECT @P1, @P2", &values, 300).unwrap();
        // What stands before the text: headers, the procedure, flags, a name, a flag, a type and a length.
        let at = 22 + 4 + 2 + 2 + 8 + 2;
        let (plain, bound) = (spoken(&plain[at..]), spoken(&bound[at..]));
        assert!(plain.starts_with("SET XACT_ABORT ON;\nSET LOCK_TIMEOUT 10000;\nBEGIN TRANSACTION;\nEXEC sys.sp_executesql @souk_statement;\nIF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;"), "{plain}");
        assert!(bound.starts_with("SET XACT_ABORT ON;\nSET LOCK_TIMEOUT 300;\nBEGIN TRANSACTION;\nEXEC sys.sp_executesql @souk_statement, @souk_types, @P1, @P2;\n"), "{bound}");
    }

    #[test]
    fn time_is_rounded_up() {
        for (left, told) in [
            (0, 100),
            (100, 100),
            (101, 200),
            (1_001, 1_500),
            (29_990, 30_000),
            (u32::MAX, i32::MAX as u32),
        ] {
            assert_eq!(rounded(left), told, "{left}");
        }
    }
}
