//! A statement's text: that it is one query, and how DuckDB is asked it with its values.
//!
//! The first lock of three. It knows no grammar: DuckDB's own parser says afterwards what the text is (`parsed`), and the transaction in
//! which it runs writes nothing.

use souk_sdk::statements::{Dialect, DollarQuotes, Kind, Letters, Quote, Statement};
use souk_sdk::{Error, Value};

use crate::parameters;

/// What a query begins with.
const QUERIES: [&str; 5] = ["select", "with", "from", "values", "table"];

/// How DuckDB reads a text: as PostgreSQL does.
const DIALECT: Dialect = Dialect {
    line_comments: &["--"],
    line_ends: &['\r', '\n'],
    nested_comments: true,
    quotes: &[Quote::plain('\''), Quote::plain('"')],
    dollar_quotes: DollarQuotes::Tagged,
    letters: Letters::All,
    word_signs: "$",
};

/// A statement with its values.
pub struct Prepared {
    /// As it was given, without the semicolon that ends it: what DuckDB's parser is asked of.
    pub text: String,
    /// How many placeholders it has.
    pub placeholders: usize,
    /// As it is run.
    pub filled: String,
}

pub fn prepare(text: &str, values: &[Value]) -> Result<Prepared, Error> {
    if text.contains('\0') {
        return Err(Error::source_failed(
            "syntax_error",
            "the statement has the character NUL in it, at which DuckDB ends",
        ));
    }
    let query = Statement::one_query(text, &DIALECT, &QUERIES)?;
    has_no_escapes(&query)?;
    query.takes(values.len())?;
    let literals = parameters::literals(values)?;
    let filled = query.filled(|place, out| out.push_str(&literals[place]));
    Ok(Prepared {
        text: query.text.to_owned(),
        placeholders: values.len(),
        filled,
    })
}

/// In `E'…'` a backslash takes its meaning from a quote, so that a placeholder would stand in a text that seems to have ended.
fn has_no_escapes(query: &Statement<'_>) -> Result<(), Error> {
    let mut is_after_e = false;
    for token in query.tokens() {
        if is_after_e && token.kind == Kind::Quoted && token.text.starts_with('\'') {
            return Err(Error::source_failed(
                "escapes_unsupported",
                "the statement has a text with escapes (E'…'), which are not read here: write the characters themselves, or chr(…)",
            ));
        }
        is_after_e = token.is_word("e");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, values: &[Value]) -> String {
        prepare(text, values).unwrap().filled
    }

    #[test]
    fn values_are_written_where_the_placeholders_stand() {
        let values = [Value::Int64(7), Value::Text("a'?b".into())];
        assert_eq!(
            filled("SELECT ?, 'it''s ?', $$?$$, \"?\", ? -- ?\n;", &values),
            "SELECT CAST('7' AS BIGINT), 'it''s ?', $$?$$, \"?\", CAST('a''?b' AS VARCHAR) -- ?\n"
        );
        let page = "SELECT a FROM t\nLIMIT ? OFFSET ?";
        assert_eq!(
            filled(page, &[Value::Int64(1), Value::Int64(2)]),
            "SELECT a FROM t\nLIMIT CAST('1' AS BIGINT) OFFSET CAST('2' AS BIGINT)"
        );
        for wrong in ["SELECT ?", "SELECT '?', ?", "SELECT ?, ?, ?"] {
            let error = prepare(wrong, &values).err().unwrap();
            assert_eq!(error.code, "parameter_count");
        }
    }

    #[test]
    fn only_one_query_passes() {
        for text in [
            "SELECT 1",
            " (\n(select 1))",
            "FROM t SELECT a",
            "WITH a AS (SELECT 1) SELECT * FROM a;",
            "VALUES (1), (2)",
            "TABLE t",
            "/* ; /* ; */ */ SELECT ';', \";\", $a$ ; $a$ ; /* end */ -- of it",
            "SELECT a$b, e, 'x' FROM t",
        ] {
            prepare(text, &[]).unwrap();
        }
        for text in [
            "",
            ";",
            "INSERT INTO t SELECT 1",
            "COPY t TO 'x'",
            "ATTACH 'x'",
            "SET threads = 1",
            "EXPLAIN ANALYZE DELETE FROM t",
            "SELECT 1; DROP TABLE t",
            "SELECT 1;;SELECT 2",
            "/* SELECT */ DROP TABLE t",
            "/* /* */ SELECT 1",
            "SELECT 'open",
            "-- x\rDROP TABLE t --\nSELECT 1",
            "SELECT E'\\'', ?",
            "SELECT e'a'",
            "SELECT 1\0; DROP TABLE t",
        ] {
            assert!(prepare(text, &[]).is_err(), "{text}");
        }
    }
}
