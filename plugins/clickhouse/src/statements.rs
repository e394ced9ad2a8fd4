//! A statement's text: where its placeholders are, and that it is one that reads.
//!
//! The second lock only: the server holds read-only itself. That a text ends with its first statement matters for who pays, too: what
//! follows could answer in its place.

use std::fmt::Write;

use souk_sdk::parameters::refused;
use souk_sdk::statements::{Dialect, DollarQuotes, Kind, Letters, Places, Quote, Statement, Token};
use souk_sdk::{Error, Value};

use crate::parameters;

/// What a query begins with.
const QUERIES: [&str; 2] = ["select", "with"];
/// How ClickHouse reads a text.
const DIALECT: Dialect = Dialect {
    line_comments: &["--", "//", "# ", "#!"],
    line_ends: &['\n'],
    nested_comments: false,
    quotes: &[
        Quote::escaped('\''),
        Quote::escaped('"'),
        Quote::escaped('`'),
    ],
    dollar_quotes: DollarQuotes::Tagged,
    letters: Letters::All,
    word_signs: "$",
};

/// The function that opens a file of SQLite's at the server. ClickHouse makes an empty one where there is none, and only then says that it is read-only.
const MAKES_FILES: &str = "sqlite";

/// What a text is, whatever its values are.
pub fn read(text: &str) -> Result<Places, Error> {
    let query = Statement::one_query(text, &DIALECT, &QUERIES)?;
    makes_no_file(&query)?;
    Ok(query.places())
}

/// No name in front of a parenthesis is that function's. ClickHouse knows it in lower case only; a quoted name with an escape may be any.
fn makes_no_file(query: &Statement<'_>) -> Result<(), Error> {
    let is_it = |token: &Token<'_>| match token.kind {
        // Quotes and blanks beyond ASCII are letters to the lexer, and not to ClickHouse.
        Kind::Word => {
            let mut parts = token.text.rsplit(|char: char| !char.is_ascii());
            parts.find(|part| !part.is_empty()) == Some(MAKES_FILES)
        }
        Kind::Quoted => match token.text.strip_prefix(['`', '"']) {
            Some(name) => name.contains('\\') || name.strip_suffix(['`', '"']) == Some(MAKES_FILES),
            None => false,
        },
        Kind::Blank | Kind::Sign => false,
    };
    let mut was_it = false;
    for token in query.tokens().filter(|token| !token.is_blank()) {
        if was_it && token.text == "(" {
            return Err(Error::permission(
                "read_only",
                "the statement calls sqlite(…), for which ClickHouse makes a file where there is none (or by a name with an escape whatever it names): make a table of it at the server, and name that",
            ));
        }
        was_it = is_it(&token);
    }
    Ok(())
}

/// A text that was read, with a typed parameter, `{p1:Int64}`, for each `?` of the host's.
pub fn prepare(text: &str, places: &Places, values: &[Value]) -> Result<String, Error> {
    places.takes(values.len())?;
    let mut bound = Ok(());
    let filled = places.filled(text, |place, out| {
        if bound.is_ok() {
            bound = bind(place, &values[place], out);
        }
    });
    bound.map(|()| filled)
}

fn bind(place: usize, value: &Value, out: &mut String) -> Result<(), Error> {
    let kind = parameters::type_of(value).map_err(|wanted| refused(place, wanted))?;
    let number = place + 1;
    // A blank keeps it apart from a word before it. A String takes everything.
    let _ = match value {
        // Servers before 26.7 read the digits of a float to the last bit or two; its bits they read as they are.
        Value::Float64(_) => write!(out, " reinterpretAsFloat64({{p{number}:{kind}}})"),
        _ => write!(out, " {{p{number}:{kind}}}"),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(text: &str, values: &[Value]) -> Result<String, Error> {
        super::prepare(text, &read(text)?, values)
    }

    /// A float is bound by its bits.
    #[test]
    fn floats_are_bits() {
        let floats = [
            Value::Float64(0.1),
            Value::Null(Some(souk_sdk::ColumnType::Float64)),
        ];
        assert_eq!(
            prepare("SELECT ? + ?", &floats).unwrap(),
            "SELECT  reinterpretAsFloat64({p1:UInt64}) +  {p2:Nullable(Float64)}"
        );
    }

    /// Only the host's own placeholders are replaced.
    #[test]
    fn placeholders_are_found() {
        let one = [Value::Int64(1)];
        for (text, wanted) in [
            ("SELECT ?", "SELECT  {p1:Int64}"),
            (
                "SELECT '?', \"?\", `?`, ? -- ?",
                "SELECT '?', \"?\", `?`,  {p1:Int64} -- ?",
            ),
            (
                "SELECT 'a\\'?', 'b''?', ?",
                "SELECT 'a\\'?', 'b''?',  {p1:Int64}",
            ),
            (
                "SELECT /* ? */ $x$ ? $x$, $$?$$, ? # ?",
                "SELECT /* ? */ $x$ ? $x$, $$?$$,  {p1:Int64} # ?",
            ),
            (
                "SELECT 4 / 2 // it's ?\n/ ?",
                "SELECT 4 / 2 // it's ?\n/  {p1:Int64}",
            ),
            ("with 1 as grüße$? select ?;", "with 1 as grüße$? select ?;"),
            ("(SELECT 1 LIMIT?) ; -- end", "(SELECT 1 LIMIT {p1:Int64}) "),
        ] {
            match prepare(text, &one) {
                Ok(found) => assert_eq!(found, wanted, "{text}"),
                // The one with two.
                Err(error) => assert_eq!(error.code, "parameter_count", "{text}"),
            }
        }
        let values = [Value::Text("a".into()), Value::Null(None)];
        let text = prepare("SELECT ?, ?", &values).unwrap();
        assert_eq!(text, "SELECT  {p1:String},  {p2:Nullable(String)}");
        assert_eq!(
            prepare("SELECT 1", &one).unwrap_err().code,
            "parameter_count"
        );
    }

    /// ClickHouse makes a file for the function `sqlite` before it refuses to run it. Whatever else has that name is none.
    #[test]
    fn what_makes_a_file_is_not_asked() {
        for text in [
            "SELECT count() FROM sqlite('/tmp/a.db', 't')",
            "SELECT 1 FROM cluster('default', sqlite /* ? */ ('a', 't'))",
            "SELECT (SELECT 1 FROM `sqlite`('a', 't'))",
            "SELECT 1 FROM \"sqlit\\x65\"('a', 't')",
            "SELECT 1 FROM\u{a0}sqlite\u{a0}('a', 't')",
            "SELECT 1 FROM “sqlite”('a', 't')",
        ] {
            let error = prepare(text, &[]).unwrap_err();
            assert_eq!(error.code, "read_only", "{text}");
        }
        for text in [
            "SELECT sqlite FROM t WHERE sqlite IN (1)",
            "SELECT 'sqlite'('a'), \"SQLite\"('a'), a AS \"sqlit\\x65\"",
            "SELECT 1 -- sqlite('a')",
        ] {
            prepare(text, &[]).unwrap();
        }
    }

    #[test]
    fn only_one_query_passes() {
        for text in [
            "SELECT 1",
            " (\n(select 1))",
            "-- x\nWITH 1 AS a SELECT a;",
            "#! x\nSELECT ';'",
        ] {
            prepare(text, &[]).unwrap();
        }
        for text in [
            "",
            ";",
            "INSERT INTO t SELECT 1",
            "SET readonly = 0",
            "SELECT 1; DELETE FROM t WHERE 1",
            "SELECT 1;;SELECT 2",
            "/* SELECT */ DROP TABLE t",
            "/* open SELECT 1",
            "SELECT 'open",
            "selectx",
            "EXPLAIN SELECT 1",
        ] {
            assert!(prepare(text, &[]).is_err(), "{text}");
        }
    }
}
