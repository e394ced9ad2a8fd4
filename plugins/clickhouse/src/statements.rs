//! A statement's text: where its placeholders are, and that it is one that reads.
//!
//! The second lock only: the server holds read-only itself. That a text ends with its first statement matters for who pays, too: what
//! follows could answer in its place.

use std::fmt::Write;

use souk_sdk::parameters::refused;
use souk_sdk::statements::{Dialect, DollarQuotes, Letters, Places, Quote, Statement};
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

/// What a text is, whatever its values are.
pub fn read(text: &str) -> Result<Places, Error> {
    Statement::one_query(text, &DIALECT, &QUERIES).map(Statement::places)
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
    // A blank keeps it apart from a word before it. A String takes everything.
    let _ = write!(out, " {{p{}:{kind}}}", place + 1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(text: &str, values: &[Value]) -> Result<String, Error> {
        super::prepare(text, &read(text)?, values)
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
