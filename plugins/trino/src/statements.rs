//! A statement's text: that it is one query, and how Trino is asked it with its values.
//!
//! The second lock only: what a transaction that only reads refuses is refused by the coordinator. It refuses there what writes to a catalog
//! and what calls a procedure, and does not refuse `CREATE CATALOG`, `DROP CATALOG` and what changes a session: nothing is sent but a query,
//! and none that brings properties of a session along (`WITH SESSION`).

use std::borrow::Cow;

use souk_sdk::{Error, Value};

use crate::parameters;

/// What a query begins with.
const QUERIES: [&str; 4] = ["select", "with", "values", "table"];
const WITH: &str = "with";
/// What may follow it in place of a name: functions of the query's own, and properties of the session that it runs in, which stand behind
/// the functions where there are some.
const FUNCTION: &str = "function";
const SESSION: &str = "session";
/// The last line of a page that the host asks for, and the same in Trino's order.
const WINDOW: &str = "\nLIMIT ? OFFSET ?";
const TRINOS_WINDOW: &str = "\nOFFSET ? LIMIT ?";

/// The text as it is sent.
pub fn prepare<'a>(text: &'a str, values: &[Value]) -> Result<Cow<'a, str>, Error> {
    let (query, places) = one_query(text)?;
    if places != values.len() {
        let given = values.len();
        return Err(Error::invalid_request(
            "parameter_count",
            format!("the statement takes {places} parameters, {given} were given"),
        ));
    }
    if values.is_empty() {
        return Ok(Cow::Borrowed(query));
    }
    let mut literals = parameters::literals(values)?;
    // As the last line it stands in no text and in no comment.
    let query = match query.strip_suffix(WINDOW) {
        Some(before) => {
            let last = literals.len() - 1;
            literals.swap(last - 1, last);
            Cow::Owned(format!("{before}{TRINOS_WINDOW}"))
        }
        None => Cow::Borrowed(query),
    };
    Ok(Cow::Owned(format!(
        "EXECUTE IMMEDIATE {} USING {}",
        parameters::quoted(&query),
        literals.join(", ")
    )))
}

/// Whether some of the values are the caller's: those of the window are the host's own.
pub fn is_bound(text: &str, values: &[Value]) -> bool {
    let own = match text.ends_with(WINDOW) {
        true => 2,
        false => 0,
    };
    values.len() > own
}

/// The one query of a text, without what ends it, and how many values it takes.
fn one_query(text: &str) -> Result<(&str, usize), Error> {
    let (mut at, mut places) = (0, 0);
    let (mut first_word, mut end) = (None, None);
    let (mut last, mut has_functions) = ("", false);
    while at < text.len() {
        let next = token_end(text, at)?;
        let token = &text[at..next];
        let is_blank = is_blank(token);
        match token {
            // A coordinator takes no semicolon.
            ";" if end.is_none() => end = Some(at),
            _ if end.is_some() && !is_blank => return Err(not_one_query()),
            "?" => places += 1,
            _ => {}
        }
        if first_word.is_none() && !is_blank && token != "(" {
            first_word = Some(token);
        }
        let is_after_with = last.eq_ignore_ascii_case(WITH);
        has_functions |= is_after_with && token.eq_ignore_ascii_case(FUNCTION);
        if (is_after_with || has_functions) && token.eq_ignore_ascii_case(SESSION) {
            return Err(changes_the_session());
        }
        if !is_blank {
            last = token;
        }
        at = next;
    }
    let is_query =
        first_word.is_some_and(|word| QUERIES.iter().any(|known| word.eq_ignore_ascii_case(known)));
    match is_query {
        true => Ok((&text[..end.unwrap_or(text.len())], places)),
        false => Err(not_one_query()),
    }
}

fn not_one_query() -> Error {
    Error::permission(
        "read_only",
        "connections are read-only: the statement must be one query, which begins with SELECT, WITH, VALUES or TABLE",
    )
}

fn changes_the_session() -> Error {
    Error::permission(
        "read_only",
        "the statement may not set properties of its session (WITH SESSION): if session is a name in it, quote it (\"session\")",
    )
}

fn is_blank(token: &str) -> bool {
    token.starts_with(char::is_whitespace) || token.starts_with("--") || token.starts_with("/*")
}

/// Where the token ends that begins at `at`: a comment, what is quoted, a word, or a sign.
fn token_end(text: &str, at: usize) -> Result<usize, Error> {
    let rest = &text[at..];
    let bytes = rest.as_bytes();
    let quoted = |opens: usize, closes: &str| match rest[opens..].find(closes) {
        Some(end) => Ok(at + opens + end + closes.len()),
        None => Err(endless()),
    };
    match bytes {
        // A carriage return alone ends a line, too.
        [b'-', b'-', ..] => Ok(rest.find(['\r', '\n']).map_or(text.len(), |end| at + end)),
        [b'/', b'*', ..] => quoted(2, "*/"),
        // The text of a function in another language.
        [b'$', b'$', ..] => quoted(2, "$$"),
        // A doubled quote begins the next token, which is quoted as well.
        [b'\'', ..] => quoted(1, "'"),
        [b'"', ..] => quoted(1, "\""),
        [b'`', ..] => quoted(1, "`"),
        [first, ..] if is_word(*first) => {
            let end = bytes.iter().position(|byte| !is_word(*byte));
            Ok(at + end.unwrap_or(bytes.len()))
        }
        _ => Ok(at + rest.chars().next().map_or(1, char::len_utf8)),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn endless() -> Error {
    Error::source_failed(
        "syntax_error",
        "a text, a quoted name or a comment of the statement has no end",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(text: &str, values: &[Value]) -> String {
        prepare(text, values).unwrap().into_owned()
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
