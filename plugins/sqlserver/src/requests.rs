//! What a request is to the server: one call of `sp_executesql`, whose text is the connector's own. The seller's statement is a value of it, and can be no
//! other part of it.

use souk_sdk::{Error, Value};
use tds_protocol::rpc::{ProcId, RpcRequest};

use crate::parameters::{self, Declared, text};

const STATEMENT: &str = "@souk_statement";
const TYPES: &str = "@souk_types";
const LARGE: &str = "nvarchar(max)";
/// What is kept of each text that a session remembers: of a short statement some thousand bytes, two for each letter.
const KEPT_BYTES_MAX: usize = 8 << 10;
/// What is set aside for values before they are written, at most.
const ROOM_MAX: usize = 4 << 10;

/// What the requests of a text begin with: all but their values. It is made anew where a value is declared as something else, or another time is left.
pub struct Opening {
    declared: Vec<Declared>,
    lock_timeout_ms: u32,
    bytes: Vec<u8>,
    /// How many bytes the last request had.
    room: usize,
}

impl Opening {
    /// That of a request: the one that is known of its statement's text, or a new one.
    pub fn of(
        known: Option<Opening>,
        statement: &str,
        values: &[Value],
        lock_timeout_ms: u32,
    ) -> Result<Opening, Error> {
        let lock_timeout_ms = rounded(lock_timeout_ms);
        match known.filter(|known| known.is_of(values, lock_timeout_ms)) {
            Some(known) => Ok(known),
            None => Opening::new(statement, values, lock_timeout_ms),
        }
    }

    fn is_of(&self, values: &[Value], lock_timeout_ms: u32) -> bool {
        let is_it = |(declared, value): (&Declared, &Value)| {
            Declared::of(value).is_ok_and(|now| now == *declared)
        };
        self.lock_timeout_ms == lock_timeout_ms
            && self.declared.len() == values.len()
            && self.declared.iter().zip(values).all(is_it)
    }

    /// `XACT_ABORT` has the server undo the transaction when the statement fails or is stopped; a statement that has ended is followed by what
    /// undoes it.
    fn new(statement: &str, values: &[Value], lock_timeout_ms: u32) -> Result<Opening, Error> {
        let declared = parameters::declared(values)?;
        let names = |of: &dyn Fn(usize) -> String| (1..=declared.len()).map(of).collect::<String>();
        let (types, given) = match declared.is_empty() {
            true => (String::new(), String::new()),
            false => (
                format!(", {TYPES}"),
                names(&|number| format!(", @P{number}")),
            ),
        };
        let outer = format!(
            "SET XACT_ABORT ON;\n\
             SET LOCK_TIMEOUT {lock_timeout_ms};\n\
             BEGIN TRANSACTION;\n\
             EXEC sys.sp_executesql {STATEMENT}{types}{given};\n\
             IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;"
        );
        let bound = declared.iter().enumerate();
        let bound = bound.map(|(at, declared)| format!("@P{} {}", at + 1, declared.name()));
        let bound = bound.collect::<Vec<_>>().join(", ");
        let mut own = format!("{STATEMENT} {LARGE}");
        let mut request = RpcRequest::by_id(ProcId::ExecuteSql).param(text("", &outer));
        if !declared.is_empty() {
            own.push_str(&format!(", {TYPES} {LARGE}, {bound}"));
        }
        request = request
            .param(text("", &own))
            .param(text(STATEMENT, statement));
        if !declared.is_empty() {
            request = request.param(text(TYPES, &bound));
        }
        Ok(Opening {
            declared,
            lock_timeout_ms,
            bytes: request.encode().to_vec(),
            room: 0,
        })
    }

    /// How many bytes a request will have, as far as is known.
    pub fn room(&self) -> usize {
        self.room
            .clamp(self.bytes.len(), self.bytes.len() + ROOM_MAX)
    }

    /// Whether it is kept for the next request of the text.
    pub fn is_short(&self) -> bool {
        self.bytes.len() <= KEPT_BYTES_MAX
    }

    /// Appends the body of the call, with these values, of which it is the opening.
    pub fn call(&mut self, out: &mut Vec<u8>, values: &[Value]) -> Result<(), Error> {
        let begin = out.len();
        out.extend_from_slice(&self.bytes);
        for (at, value) in values.iter().enumerate() {
            parameters::write(out, at + 1, value).map_err(|error| error.parameter(at))?;
        }
        self.room = out.len() - begin;
        Ok(())
    }
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
    use tds_protocol::rpc::{RpcParam, TypeInfo};

    use super::*;

    fn spoken(body: &[u8]) -> String {
        let units: Vec<u16> = body
            .chunks(2)
            .map(|unit| u16::from_le_bytes([unit[0], *unit.get(1).unwrap_or(&0)]))
            .collect();
        String::from_utf16_lossy(&units)
    }

    fn call(statement: &str, values: &[Value], lock_timeout_ms: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let opening = Opening::of(None, statement, values, lock_timeout_ms);
        opening.unwrap().call(&mut out, values).unwrap();
        out
    }

    /// The second request of a text has the same bytes as one that is the first, whatever has changed.
    #[test]
    fn what_is_kept_changes_no_request() {
        let text = "SELECT @P1, @P2 -- ä";
        let first = [Value::Int64(7), Value::Text("a".into())];
        let long = Value::Text("x".repeat(4_001));
        for (values, left_ms) in [
            (&first[..], 7_000),
            (&[Value::Int64(-1), Value::Text("another".into())], 6_000),
            (&first, 70),
            (&[Value::Int64(1), long], 7_000),
            (&[Value::Decimal("1.5".into()), Value::Null(None)], 7_000),
            (&[Value::Text("7".into()), Value::Text("a".into())], 7_000),
            (&first[..1], 7_000),
        ] {
            let mut kept = Opening::of(None, text, &first, 7_000).unwrap();
            kept.call(&mut Vec::new(), &first).unwrap();
            let mut opening = Opening::of(Some(kept), text, values, left_ms).unwrap();
            let mut out = b"before".to_vec();
            opening.call(&mut out, values).unwrap();
            assert!(out[6..] == call(text, values, left_ms), "{values:?}");
            assert_eq!(opening.room, out.len() - 6);
        }
        let kept = Opening::of(None, text, &first, 7_000).unwrap();
        let wrong = [Value::Int64(7), Value::Time(-1)];
        let refused = Opening::of(Some(kept), text, &wrong, 7_000).err().unwrap();
        assert_eq!(refused.parameter, Some(1));
    }

    /// A request is what the protocol's own crate writes.
    #[test]
    fn values_stand_behind_the_opening() {
        let values = [Value::Int64(7), Value::Text("ä".into()), Value::Null(None)];
        let long = TypeInfo::nvarchar(4_000);
        let opening = Opening::of(None, "SELECT 1", &values, 7_000).unwrap();
        let request = RpcRequest::by_id(ProcId::ExecuteSql)
            .param(RpcParam::bigint("@P1", 7))
            .param(RpcParam::new("@P2", long.clone(), vec![0xe4_u8, 0].into()))
            .param(RpcParam::null("@P3", long));
        let [empty, whole] = [RpcRequest::by_id(ProcId::ExecuteSql), request].map(|it| it.encode());
        let wanted = [&opening.bytes[..], &whole[empty.len()..]].concat();
        assert_eq!(call("SELECT 1", &values, 7_000), wanted);
    }

    /// A statement is never part of the text that undoes it.
    #[test]
    fn a_statement_is_a_value() {
        let plain = call("SELECT 'a", &[], 7_000);
        let values = [Value::Int64(7), Value::Boolean(true)];
        let bound = call("SELECT @P1, @P2", &values, 300);
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
