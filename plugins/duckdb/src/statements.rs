//! A statement's text: that it is one query, and how DuckDB is asked it with its values.
//!
//! The first lock of three. It knows no grammar: DuckDB's own parser says afterwards what the text is (`parsed`), and the transaction in
//! which it runs writes nothing. Where values stand is not believed either: the parser is asked of the text with a name for each, and has to see these.

use std::cell::Cell;
use std::rc::Rc;

use souk_sdk::statements::{Dialect, DollarQuotes, Kind, Letters, Places, Quote, Statement, Token};
use souk_sdk::texts::Proof;
use souk_sdk::{Error, Value};

use crate::parameters::{self, is_blank_beyond_ascii};

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

/// What values are called, with their places behind it, where DuckDB's parser is asked of a statement.
const NAME: &str = "souks_value_";

/// The one function that changes its connection.
const SEEDS: &[u8] = b"setseed";

/// What a text is, whatever its values are, and what its session has heard of it.
pub struct Read {
    places: Places,
    /// What DuckDB's parser is asked of: a named parameter for each value, without the semicolon that ends it.
    pub named: String,
    /// It may leave something on its connection.
    pub leaves: bool,
    /// DuckDB's parser has found it to be one query, and whether it is one that does the same whatever its values are, and the time of day. What it is
    /// to the parser does not depend on what the database has.
    is_plain: Cell<Option<bool>>,
    /// A transaction that only reads has let it pass, which depends on views and macros.
    passed: Proof,
}

/// A statement with its values.
pub struct Prepared {
    pub read: Rc<Read>,
    /// As it is run.
    pub filled: String,
}

pub fn read(text: &str) -> Result<Read, Error> {
    if text.contains('\0') {
        return Err(Error::source_failed(
            "syntax_error",
            "the statement has the character NUL in it, at which DuckDB ends",
        ));
    }
    let query = Statement::one_query(text, &DIALECT, &QUERIES)?;
    is_read_alike(&query)?;
    has_no_escapes(&query)?;
    let leaves = leaves(query.text);
    let places = query.places();
    Ok(Read {
        named: with(&places, text, |place, out| {
            out.push('$');
            out.push_str(&name(place));
        }),
        places,
        leaves,
        is_plain: Cell::new(None),
        passed: Proof::for_a_minute(),
    })
}

/// A text that was read, with its values.
pub fn prepare(text: &str, read: Rc<Read>, values: &[Value]) -> Result<Prepared, Error> {
    read.places.takes(values.len())?;
    let mut written = Ok(());
    let filled = with(&read.places, text, |place, out| {
        if written.is_ok() {
            written = parameters::write(place, &values[place], out);
        }
    });
    written?;
    Ok(Prepared { read, filled })
}

impl Read {
    pub fn placeholders(&self) -> usize {
        self.places.count()
    }

    /// Whether DuckDB's parser has found it to be a query.
    pub fn is_known(&self) -> bool {
        self.is_plain.get().is_some()
    }

    /// The parser has.
    pub fn known(&self, is_plain: bool) {
        self.is_plain.set(Some(is_plain));
    }

    /// Whether it needs no transaction at this time.
    pub fn is_passed(&self, now: u64) -> bool {
        self.passed.holds(now)
    }

    /// A transaction that only reads, and began then, has let it pass.
    pub fn passed(&self, at: u64) {
        if self.is_plain.get() == Some(true) {
            self.passed.give(at);
        }
    }

    /// It has failed, by whatever: it has its transaction the next time.
    pub fn failed(&self) {
        self.passed.withdraw();
    }
}

/// Whether a statement may change what later ones on its connection say: of what a query may call that is `setseed` alone.
fn leaves(text: &str) -> bool {
    let mut parts = text.as_bytes().windows(SEEDS.len());
    parts.any(|part| part.eq_ignore_ascii_case(SEEDS))
}

/// What the value of a place is called.
pub fn name(place: usize) -> String {
    format!("{NAME}{place}")
}

/// The text with something for each value. Blanks stand around it: what is a word on its own may grow together with its neighbours.
fn with(places: &Places, text: &str, mut write: impl FnMut(usize, &mut String)) -> String {
    places.filled(text, |place, out| {
        out.push(' ');
        write(place, out);
        out.push(' ');
    })
}

/// What DuckDB takes for a blank is a letter to the lexer, which may take what is quoted for a part of a word; and whoever writes a name of a value
/// could have the parser see one that is hidden in a quote.
fn is_read_alike(query: &Statement<'_>) -> Result<(), Error> {
    if query.text.contains(NAME) {
        return Err(Error::source_failed(
            "name_taken",
            format!(
                "the statement has {NAME} in it, which values are called by: write something else"
            ),
        ));
    }
    let is_looked_at = |token: &Token<'_>| match token.kind {
        Kind::Quoted => false,
        // A comment.
        Kind::Blank => !token.text.starts_with(['-', '/']),
        Kind::Word | Kind::Sign => true,
    };
    let mut looked_at = query.tokens().filter(is_looked_at);
    match looked_at.any(|token| token.text.contains(is_blank_beyond_ascii)) {
        true => Err(Error::source_failed(
            "blank_unclear",
            "the statement has a blank or an invisible character that is none of ASCII's, such as a no-break space: write a plain blank, or quote it",
        )),
        false => Ok(()),
    }
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

    fn prepare(text: &str, values: &[Value]) -> Result<Prepared, Error> {
        super::prepare(text, Rc::new(read(text)?), values)
    }

    fn filled(text: &str, values: &[Value]) -> String {
        prepare(text, values).unwrap().filled
    }

    #[test]
    fn values_are_written_where_the_placeholders_stand() {
        let values = [Value::Int64(7), Value::Text("a'?b".into())];
        assert_eq!(
            filled("SELECT ?, 'it''s ?', $$?$$, \"?\", ? -- ?\n;", &values),
            "SELECT  CAST('7' AS BIGINT) , 'it''s ?', $$?$$, \"?\",  CAST('a''?b' AS VARCHAR)  -- ?\n"
        );
        let page = "SELECT a FROM t\nLIMIT ? OFFSET ?";
        assert_eq!(
            filled(page, &[Value::Int64(1), Value::Int64(2)]),
            "SELECT a FROM t\nLIMIT  CAST('1' AS BIGINT)  OFFSET  CAST('2' AS BIGINT) "
        );
        assert_eq!(
            filled("SELECT ?AS x", &[Value::Null(None)]),
            "SELECT  NULL AS x"
        );
        let prepared = prepare("SELECT ?, '?', ?", &values).unwrap();
        assert_eq!(
            prepared.read.named,
            "SELECT  $souks_value_0 , '?',  $souks_value_1 "
        );
        for wrong in ["SELECT ?", "SELECT '?', ?", "SELECT ?, ?, ?"] {
            let error = prepare(wrong, &values).err().unwrap();
            assert_eq!(error.code, "parameter_count");
        }
    }

    /// Only what is known to do the same whatever its values are needs no transaction, and not when it has failed.
    #[test]
    fn what_has_passed_needs_no_transaction() {
        let calls = read("SELECT nextval(?)").unwrap();
        assert!(!calls.is_known());
        calls.known(false);
        calls.passed(100);
        assert!(calls.is_known() && !calls.is_passed(100));
        let plain = read("SELECT 1").unwrap();
        plain.passed(100);
        assert!(!plain.is_passed(100), "the parser has said nothing of it");
        plain.known(true);
        assert!(!plain.is_passed(100));
        plain.passed(100);
        assert!(plain.is_passed(100) && plain.is_passed(159));
        assert!(!plain.is_passed(160) && !plain.is_passed(99));
        assert!(plain.is_known(), "it is a query still");
        plain.passed(170);
        assert!(plain.is_passed(180));
        plain.failed();
        assert!(!plain.is_passed(180) && plain.is_known());
    }

    #[test]
    fn what_seeds_is_known() {
        let leaves = |text: &str| read(text).unwrap().leaves;
        assert!(leaves("SELECT \"SetSeed\"(0.5)") && leaves("SELECT setseed(0.5)"));
        assert!(!leaves("SELECT set, seed FROM t") && !leaves("FROM t"));
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
            "SELECT '\u{a0}', \"\u{200b}\", $$\u{feff}$$, é -- \u{3000}\n/* \u{2060} */",
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
            "SELECT 1, \u{200b}$$",
            "SELECT\u{a0}1",
            "SELECT 1 AS a\u{feff}",
            "SELECT 1,\u{202f} 2",
            "SELECT $\"souks_value_0\"",
        ] {
            assert!(prepare(text, &[]).is_err(), "{text}");
        }
    }
}
