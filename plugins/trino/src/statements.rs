//! A statement's text: that it is one query, and how Trino is asked it with its values.
//!
//! The second lock only: what a transaction that only reads refuses is refused by the coordinator. It refuses there what writes to a catalog
//! and what calls a procedure, and does not refuse `CREATE CATALOG`, `DROP CATALOG` and what changes a session: nothing is sent but a query,
//! and none that brings properties of a session along (`WITH SESSION`).

use souk_sdk::statements::{Dialect, DollarQuotes, Letters, PAGE, Places, Quote, Statement};
use souk_sdk::texts::Proof;
use souk_sdk::{Error, Value};

use crate::parameters;

/// What a query begins with.
const QUERIES: [&str; 4] = ["select", "with", "values", "table"];
const WITH: &str = "with";
/// What may follow it in place of a name: functions of the query's own, and properties of the session that it runs in, which stand behind
/// the functions where there are some.
const FUNCTION: &str = "function";
const SESSION: &str = "session";
/// The last line of a page that the host asks for, in Trino's order.
const TRINOS_PAGE: &str = "\nOFFSET ? LIMIT ?";
/// What is written around a statement, and for each value: most are written without being moved.
const MORE_BYTES: usize = 64;
const VALUE_BYTES: usize = 32;

/// How Trino reads a text.
const DIALECT: Dialect = Dialect {
    line_comments: &["--"],
    // A carriage return alone ends a line, too.
    line_ends: &['\r', '\n'],
    nested_comments: false,
    quotes: &[Quote::plain('\''), Quote::plain('"'), Quote::plain('`')],
    // The text of a function in another language.
    dollar_quotes: DollarQuotes::Bare,
    letters: Letters::Ascii,
    word_signs: "",
};

/// What a text is, whatever its values are: they stand behind it.
pub struct Read {
    places: Places,
    /// A transaction that only reads has let it pass. The coordinator itself refuses by the text alone, but it tells the connectors of the catalogs that
    /// the text reaches to only read, and which these are is up to views and functions.
    pub passed: Proof,
}

pub fn read(text: &str) -> Result<Read, Error> {
    let query = Statement::one_query(text, &DIALECT, &QUERIES)?;
    keeps_its_session(&query)?;
    Ok(Read {
        places: query.places(),
        passed: Proof::for_a_minute(),
    })
}

/// A text that was read, as it is sent: without values it is the text itself.
pub fn prepare(text: String, read: &Read, values: &[Value]) -> Result<String, Error> {
    read.places.takes(values.len())?;
    // A coordinator takes no semicolon.
    if values.is_empty() {
        return Ok(read.places.cut(text));
    }
    let query = read.places.statement(&text);
    // As the last line it stands in no text and in no comment.
    let (query, is_page) = match query.strip_suffix(PAGE) {
        Some(before) => (before, true),
        None => (query, false),
    };
    let mut asked = String::with_capacity(query.len() + MORE_BYTES + VALUE_BYTES * values.len());
    asked.push_str("EXECUTE IMMEDIATE '");
    parameters::write_doubled(query, &mut asked);
    if is_page {
        asked.push_str(TRINOS_PAGE);
    }
    asked.push_str("' USING ");
    parameters::write(values, is_page, &mut asked)?;
    Ok(asked)
}

/// Refuses a query that brings properties of its session along.
fn keeps_its_session(query: &Statement<'_>) -> Result<(), Error> {
    let (mut is_after_with, mut has_functions) = (false, false);
    for token in query.tokens().filter(|token| !token.is_blank()) {
        has_functions |= is_after_with && token.is_word(FUNCTION);
        if (is_after_with || has_functions) && token.is_word(SESSION) {
            return Err(changes_the_session());
        }
        is_after_with = token.is_word(WITH);
    }
    Ok(())
}

fn changes_the_session() -> Error {
    Error::permission(
        "read_only",
        "the statement may not set properties of its session (WITH SESSION): if session is a name in it, quote it (\"session\")",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(text: &str, values: &[Value]) -> Result<String, Error> {
        super::prepare(text.to_owned(), &read(text)?, values)
    }

    fn prepared(text: &str, values: &[Value]) -> String {
        prepare(text, values).unwrap()
    }

    /// It is asked thousands of times.
    #[test]
    fn a_statement_without_values_is_not_copied() {
        let text = "SELECT 1 ; -- end".to_owned();
        let (read, stands_at) = (read(&text).unwrap(), text.as_ptr());
        let asked = super::prepare(text, &read, &[]).unwrap();
        assert_eq!((asked.as_str(), asked.as_ptr()), ("SELECT 1 ", stands_at));
    }

    /// Values are never part of the statement, and quotes of it end nothing.
    #[test]
    fn values_stand_behind_the_statement() {
        let values = [Value::Int64(7), Value::Text("a'b".into())];
        assert_eq!(
            prepared("SELECT ?, 'it''s ?', ? -- ?\n;", &values),
            "EXECUTE IMMEDIATE 'SELECT ?, ''it''''s ?'', ? -- ?\n' USING BIGINT '7', 'a''b'"
        );
        assert_eq!(prepared("SELECT 1 ; -- end", &[]), "SELECT 1 ");
        let wrong = prepare("SELECT ?", &values).unwrap_err();
        assert_eq!(wrong.code, "parameter_count");
        assert_eq!(
            prepare("SELECT '?'", &values[..1]).unwrap_err().code,
            "parameter_count"
        );
    }

    /// What the host writes last, Trino wants the other way around.
    #[test]
    fn pages_are_asked_for_in_trinos_order() {
        let values = [Value::Text("x".into()), Value::Int64(41), Value::Int64(80)];
        assert_eq!(
            prepared("SELECT a FROM t WHERE b = ?\nLIMIT ? OFFSET ?", &values),
            "EXECUTE IMMEDIATE 'SELECT a FROM t WHERE b = ?\nOFFSET ? LIMIT ?' USING 'x', BIGINT '80', BIGINT '41'"
        );
        // It stands in a text here, whose end comes after it.
        let text = "SELECT '\nLIMIT ? OFFSET ?'";
        assert_eq!(prepared(text, &[]), text);
    }

    #[test]
    fn only_one_query_passes() {
        for text in [
            "SELECT 1",
            " (\n(select 1))",
            "-- x\nWITH a AS (SELECT 1) SELECT * FROM a;",
            "VALUES 1, 2",
            "TABLE t",
            "/* ; */ SELECT ';', \";\" ; /* end */ -- of it",
            "WITH FUNCTION f() RETURNS bigint LANGUAGE PYTHON AS $$ ';' $$ SELECT f()",
            "SELECT 'grüße', \"日本\"\u{a0}",
            "SELECT session FROM t -- WITH SESSION",
            "WITH \"session\" AS (SELECT 1) SELECT * FROM \"session\"",
            "WITH a AS (SELECT 1), session AS (SELECT 2) SELECT 'WITH SESSION' FROM session",
            "-- x\rSELECT 1",
        ] {
            prepare(text, &[]).unwrap();
        }
        for text in [
            "",
            ";",
            "INSERT INTO t SELECT 1",
            "SET SESSION query_max_run_time = '1d'",
            "CALL system.runtime.kill_query('a')",
            "EXECUTE IMMEDIATE 'DELETE FROM t'",
            "EXPLAIN ANALYZE DELETE FROM t",
            "COMMIT",
            "SELECT 1; DELETE FROM t",
            "SELECT 1;;SELECT 2",
            "SELECT 1; 'a'",
            "/* SELECT */ DROP TABLE t",
            "/* open SELECT 1",
            "SELECT 'open",
            "SELECT $$ open",
            "selectx",
            "sélect 1",
            "SHOW TABLES",
            // To Trino these begin behind the carriage return.
            "-- x\rDROP CATALOG pg /*\nSELECT 1 -- */",
            "--\rSET SESSION a = 1 --\nSELECT 1",
        ] {
            assert!(prepare(text, &[]).is_err(), "{text}");
        }
    }

    /// A query may bring properties of its session along, behind functions of its own as well.
    #[test]
    fn no_query_changes_its_session() {
        for text in [
            "WITH SESSION query_max_run_time = '100d' SELECT 1",
            "with/**/session -- x\n a.b = 1 SELECT 1",
            "-- x\r( WITH\tSession a = 1 SELECT 1)",
            "WITH FUNCTION f() RETURNS bigint RETURN 1 SESSION a = 1 SELECT f()",
            "WITH FUNCTION f() RETURNS bigint LANGUAGE PYTHON AS $$ x $$, FUNCTION g() RETURNS bigint RETURN 1 session a = 1 SELECT f()",
            "WITH session AS (SELECT 1) SELECT * FROM session",
        ] {
            let error = prepare(text, &[]).unwrap_err();
            assert_eq!(error.code, "read_only", "{text}");
            assert!(error.message.contains("quote it"), "{text}");
        }
    }
}
