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
    nested_comments: true,
    quotes: &[
        Quote::escaped('\''),
        Quote::escaped('"'),
        Quote::escaped('`'),
    ],
    dollar_quotes: DollarQuotes::Tagged,
    letters: Letters::All,
    word_signs: "$",
};

/// Quotes of word processors. ClickHouse takes them for its own; to the lexer they are letters.
const TYPOGRAPHIC_QUOTES: [char; 4] = ['\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}'];
/// What writes where a query has begun: `WITH a AS (…) INSERT INTO FUNCTION …`, which the server lets a user with `readonly` 2 do.
const INSERT: &str = "insert";
const INTO: &str = "into";
/// The function that opens a file of SQLite's at the server. ClickHouse makes an empty one where there is none, and only then says that it is read-only.
const MAKES_FILES: &str = "sqlite";

/// What a text is, whatever its values are.
pub fn read(text: &str) -> Result<Places, Error> {
    let query = Statement::one_query(text, &DIALECT, &QUERIES)?;
    is_read_alike(&query)?;
    writes_nothing(&query)?;
    makes_no_file(&query)?;
    Ok(query.places())
}

/// Refuses what begins a text or a name to ClickHouse alone: a plain quote within it would hide from the lexer what stands behind it.
fn is_read_alike(query: &Statement<'_>) -> Result<(), Error> {
    let is_unclear = |token: &Token<'_>| match token.kind {
        // Behind a blank beyond ASCII a dollar begins a text, and goes on a word here.
        Kind::Word => {
            token.text.contains(TYPOGRAPHIC_QUOTES)
                || (token.text.contains('$') && !token.text.is_ascii())
        }
        // All that stands between two of them is a tag to ClickHouse.
        Kind::Sign => token.text == "$",
        Kind::Quoted | Kind::Blank => false,
    };
    match query.tokens().any(|token| is_unclear(&token)) {
        true => Err(Error::source_failed(
            "quote_unclear",
            "the statement has a typographic quote, or a dollar that begins nothing, outside of quotes: write plain quotes",
        )),
        false => Ok(()),
    }
}

/// No word of what writes stands in it, but for the function `insert(…)`.
fn writes_nothing(query: &Statement<'_>) -> Result<(), Error> {
    let mut tokens = query.tokens().filter(|token| !token.is_blank()).peekable();
    while let Some(token) = tokens.next() {
        let mut is_called = tokens.peek().is_some_and(|next| next.text == "(");
        let writes = |word: &str| {
            let is_function = std::mem::take(&mut is_called);
            word.eq_ignore_ascii_case(INTO) || (word.eq_ignore_ascii_case(INSERT) && !is_function)
        };
        if token.kind == Kind::Word && words(token.text).rev().any(writes) {
            return Err(Error::permission(
                "read_only",
                "connections are read-only: the statement has INSERT or INTO in it (a column of such a name is quoted)",
            ));
        }
    }
    Ok(())
}

/// The words of what is one to the lexer: blanks beyond ASCII are letters to it, and not to ClickHouse.
fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let words = text.split(|char: char| !char.is_ascii());
    words.filter(|word| !word.is_empty())
}

/// No name in front of a parenthesis is that function's. ClickHouse knows it in lower case only; a quoted name with an escape may be any.
fn makes_no_file(query: &Statement<'_>) -> Result<(), Error> {
    let is_it = |token: &Token<'_>| match token.kind {
        Kind::Word => words(token.text).next_back() == Some(MAKES_FILES),
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
            ("with 1 as a$b$? select ?;", "with 1 as a$b$? select ?;"),
            (
                "SELECT /* ? /* ? */ ? */ ?",
                "SELECT /* ? /* ? */ ? */  {p1:Int64}",
            ),
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

    /// What ClickHouse alone takes for a quote would turn what is quoted here inside out.
    #[test]
    fn what_only_clickhouse_takes_for_a_quote_is_not_asked() {
        for text in [
            "SELECT ‘'’, a FROM sqlite('a', 't') --'",
            "SELECT 1 FROM “sqlite”('a', 't')",
            "SELECT 1 AS “'”, sqlite('a') --'",
            "SELECT $ $'$ $, sqlite('a') --'",
            "SELECT $a b$'$a b$, sqlite('a') --'",
            "SELECT 1,\u{a0}$a$'$a$, sqlite('a') --'",
        ] {
            let error = prepare(text, &[]).unwrap_err();
            assert_eq!(error.code, "quote_unclear", "{text}");
        }
        for text in [
            "SELECT '‘’', \"“\", $$ ’ $$ -- ‘\n/* “ */",
            "SELECT a$b, 1,\u{a0}2",
        ] {
            prepare(text, &[]).unwrap();
        }
    }

    /// A query may go on as a statement that writes, and a comment within a comment hides what one begins with.
    #[test]
    fn what_writes_behind_its_beginning_is_not_asked() {
        for text in [
            "WITH a AS (SELECT 1 AS x) INSERT INTO FUNCTION file('a') SELECT x FROM a",
            "WITH 1 AS x\u{a0}insert\u{a0}FUNCTION\u{a0}file('a') SELECT x",
            "SELECT 1 PARALLEL WITH INSERT TABLE FUNCTION file('a') SELECT 1",
            "SELECT 1 Into OUTFILE 'a'",
            "/* /* */ SELECT 1 /* */ */ INSERT INTO FUNCTION file('a') SELECT 1",
        ] {
            let error = prepare(text, &[]).unwrap_err();
            assert_eq!(error.code, "read_only", "{text}");
        }
        for text in [
            "SELECT insert('a', 1, 1, 'b'), `into`, \"insert\", 'INSERT INTO' -- into",
            "SELECT inserted, a.into_b FROM t",
        ] {
            prepare(text, &[]).unwrap();
        }
        // To ClickHouse this comment has no end.
        let error = prepare("SELECT 1 /* /* */", &[]).unwrap_err();
        assert_eq!(error.code, "syntax_error");
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
