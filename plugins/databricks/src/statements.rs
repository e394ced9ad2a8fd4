//! A statement's text: that it is one query, what it may not call, and where Databricks' markers take the place of the host's.
//!
//! The second lock only: what is no query is refused by Databricks' parser (`DESCRIBE QUERY`). What a query calls while it reads is not
//! that parser's matter: functions are refused here that hand a text to another system or to Java, and names that are made of values.
//!
//! Databricks reads some texts in a way that nobody expects. Where such a text could hide something from this lexer, it is refused.

use souk_sdk::parameters::refused;
use souk_sdk::statements::{
    Dialect, DollarQuotes, Kind, Letters, Places, Quote, Statement, Token, callers_values,
};
use souk_sdk::{Error, Value};

use crate::described::Plain;
use crate::parameters::{self, Bound};

/// What a query begins with.
const QUERIES: [&str; 4] = ["select", "with", "values", "table"];
/// Functions that do more than to read: a request to a web server, a query of another database's own, a method of Java's, a text in Python.
const REFUSED: [&str; 6] = [
    "http_request",
    "remote_query",
    "reflect",
    "try_reflect",
    "java_method",
    "python_exec",
];
/// `IDENTIFIER(…)` makes a name, of a table or a function, of any text: of a caller's value, too. In backticks it is a name itself.
const NAME_MAKER: &str = "identifier";

/// How Databricks reads a text.
const DIALECT: Dialect = Dialect {
    line_comments: &["--"],
    // A carriage return alone ends a line, too.
    line_ends: &['\r', '\n'],
    nested_comments: true,
    quotes: &[text_in('\''), text_in('"'), Quote::plain('`')],
    dollar_quotes: DollarQuotes::None,
    letters: Letters::Ascii,
    word_signs: "",
};

const fn text_in(mark: char) -> Quote {
    Quote {
        mark,
        has_escapes: true,
        raw_after: &["r"],
    }
}

/// A statement as it is sent.
#[derive(Debug)]
pub struct Prepared {
    pub text: String,
    pub values: Vec<Bound>,
    /// How many values are the caller's: those of a page come last, and are the host's.
    pub callers: usize,
}

/// What a text is, whatever its values are.
#[derive(Debug)]
pub struct Read {
    places: Places,
    /// For which values it is asked without being described before.
    pub plain: Plain,
}

pub fn read(text: &str) -> Result<Read, Error> {
    let query = Statement::one_query(text, &DIALECT, &QUERIES)?;
    is_clear(&query)?;
    only_reads(&query)?;
    Ok(Read {
        places: query.places(),
        plain: Plain::default(),
    })
}

/// A text that was read, and its values, as Databricks takes them.
pub fn prepare(text: &str, read: &Read, values: &[Value]) -> Result<Prepared, Error> {
    let places = &read.places;
    places.takes(values.len())?;
    // As the last line it stands in no text and in no comment.
    let callers = callers_values(places.statement(text), values.len());
    let mut bound = Vec::with_capacity(values.len());
    for (place, value) in values.iter().enumerate() {
        let taken = match place < callers {
            true => parameters::bound(place, value),
            false => parameters::of_page(place, value),
        };
        bound.push(taken.map_err(|wanted| refused(place, wanted))?);
    }
    let text = places.filled(text, |place, out| out.push_str(&bound[place].marker));
    Ok(Prepared {
        text,
        values: bound,
        callers,
    })
}

/// Refuses what Databricks may read in another way than it is read here.
fn is_clear(query: &Statement<'_>) -> Result<(), Error> {
    let mut before: Option<Token<'_>> = None;
    for token in query.tokens() {
        let is_comment = ["--", "/*"].iter().any(|mark| token.text.starts_with(mark));
        match token.kind {
            // Behind a backslash the next line belongs to the comment.
            Kind::Blank if token.text.starts_with("--") && token.text.ends_with('\\') => {
                return Err(unclear("a comment that ends with a backslash"));
            }
            // Of a hint the words are read, and the quotes.
            Kind::Blank if token.text.contains("/*+") && !is_plain_hint(token.text) => {
                return Err(unclear("a hint (/*+) of more than names and numbers"));
            }
            Kind::Blank if is_comment => {}
            Kind::Blank | Kind::Sign if !token.text.is_ascii() => {
                return Err(unclear("a character beyond ASCII outside of quotes"));
            }
            Kind::Sign if token.text == "$" => {
                return Err(unclear("a dollar outside of quotes"));
            }
            // Behind a number (`1e-5r''`) the letter may be one that makes a raw text.
            Kind::Quoted if before.is_some_and(|before| ends_raw(&before)) => {
                return Err(unclear("a word right before a quote"));
            }
            _ => {}
        }
        before = Some(token);
    }
    Ok(())
}

fn is_plain_hint(comment: &str) -> bool {
    let inside = comment.strip_prefix("/*+");
    let inside = inside.and_then(|inside| inside.strip_suffix("*/"));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" \t\r\n_.,()".contains(&byte);
    inside.is_some_and(|inside| inside.bytes().all(is_plain))
}

/// A word that is more than the `r` of a raw text, and ends as that.
fn ends_raw(token: &Token<'_>) -> bool {
    token.kind == Kind::Word && token.text.len() > 1 && token.text.ends_with(['r', 'R'])
}

fn unclear(what: &str) -> Error {
    Error::source_failed(
        "unclear_statement",
        format!("{what} is not accepted: it may mean something else to Databricks"),
    )
}

/// Refuses what does more than to read.
fn only_reads(query: &Statement<'_>) -> Result<(), Error> {
    let mut before: Option<Token<'_>> = None;
    for token in query.tokens().filter(|token| !token.is_blank()) {
        if before.is_some_and(|before| before.is_word("using")) && is_script(&token) {
            return Err(Error::permission(
                "read_only",
                "USING '…' is not accepted: connections are read-only, and a script can do more than to read",
            ));
        }
        if token.kind == Kind::Sign
            && token.text == "("
            && let Some(called) = before
        {
            may_be_called(&called)?;
        }
        before = Some(token);
    }
    Ok(())
}

/// What stands behind the `USING` of `SELECT TRANSFORM(…)` and `MAP …`, and behind no join's: a text, a raw one or a value too.
fn is_script(token: &Token<'_>) -> bool {
    match token.kind {
        Kind::Quoted => !token.text.starts_with('`'),
        Kind::Sign => [":", "?"].contains(&token.text),
        _ => token.is_word("r"),
    }
}

fn may_be_called(called: &Token<'_>) -> Result<(), Error> {
    if called.is_word(NAME_MAKER) {
        return Err(Error::permission(
            "read_only",
            "IDENTIFIER(…) is not accepted: the statement must say itself which tables and functions it names",
        ));
    }
    let name = match called.kind {
        Kind::Word => called.text,
        Kind::Quoted => called.text.trim_matches('`'),
        _ => return Ok(()),
    };
    match REFUSED
        .iter()
        .find(|refused| name.eq_ignore_ascii_case(refused))
    {
        Some(refused) => Err(Error::permission(
            "read_only",
            format!(
                "the function {refused} is not accepted: connections are read-only, and it can do more than to read"
            ),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(text: &str, values: &[Value]) -> Result<Prepared, Error> {
        super::prepare(text, &read(text)?, values)
    }

    fn code(text: &str) -> String {
        match prepare(text, &[]) {
            Ok(_) => String::new(),
            Err(error) => error.code,
        }
    }

    /// Values are never part of the statement, and what is quoted is left as it is.
    #[test]
    fn values_have_names() {
        let values = [Value::Int64(7), Value::Text("a'b".into())];
        let prepared = prepare("SELECT ?::int, 'it\\'s ?', \"?\", `?`, ? -- ?\n;", &values);
        let prepared = prepared.unwrap();
        assert_eq!(
            prepared.text,
            "SELECT :souk_1::int, 'it\\'s ?', \"?\", `?`, :souk_2 -- ?\n"
        );
        let kinds: Vec<_> = prepared
            .values
            .iter()
            .map(|value| value.kind.to_string())
            .collect();
        assert_eq!(kinds, ["BIGINT", "STRING"]);
        assert_eq!(prepare("SELECT 1 ; -- end", &[]).unwrap().text, "SELECT 1 ");
        let wrong = prepare("SELECT ?", &values).unwrap_err();
        assert_eq!(wrong.code, "parameter_count");
        assert_eq!(
            prepare("SELECT r'\\', '?'", &values[..1]).unwrap_err().code,
            "parameter_count"
        );
        let wrong = prepare("SELECT ?, ?", &[values[0].clone(), Value::Date(i32::MAX)]);
        assert_eq!(wrong.unwrap_err().parameter, Some(1));
    }

    /// Databricks takes no BIGINT for a number of rows.
    #[test]
    fn pages_are_counted_in_small_numbers() {
        let values = [Value::Int64(5), Value::Int64(41), Value::Int64(80)];
        let prepared = prepare("SELECT a FROM t WHERE b = ?\nLIMIT ? OFFSET ?", &values);
        let prepared = prepared.unwrap();
        assert!(prepared.text.ends_with("\nLIMIT :souk_2 OFFSET :souk_3"));
        let kinds: Vec<_> = prepared
            .values
            .iter()
            .map(|value| value.kind.to_string())
            .collect();
        assert_eq!(kinds, ["BIGINT", "INT", "INT"]);
        let far = [Value::Int64(41), Value::Int64(1 << 31)];
        let far = prepare("SELECT a FROM t\nLIMIT ? OFFSET ?", &far);
        assert_eq!(far.unwrap_err().parameter, Some(1));
    }

    #[test]
    fn only_one_query_passes() {
        for text in [
            "SELECT 1",
            " (\n(select 1))",
            "-- x\nWITH a AS (SELECT 1) SELECT * FROM a;",
            "VALUES 1, 2",
            "TABLE t",
            "/* ; /* nested */ ; */ SELECT ';', \";\", `;` ; /* end */ -- of it",
            "SELECT /*+ BROADCAST(t), REPARTITION(3) */ * FROM t",
            "SELECT 'grüße', `日本`, \"😀\" -- ünd\n, 1",
            "SELECT 'a\\'b', \"a\\\"b\", r'\\', R\"\\\", `a\\`",
            "SELECT X'FF', DATE'2024-02-29', 'r' 'x'",
            "SELECT identifier, reflect FROM http_request",
            "SELECT * FROM a JOIN b USING (c)",
            "SELECT using, `using` 'x', 'using' 'x' FROM t",
            "SELECT `identifier`(1)",
            "-- x\rSELECT 1",
        ] {
            assert_eq!(code(text), "", "{text}");
        }
        for text in [
            "",
            ";",
            "INSERT INTO t SELECT 1",
            "FROM t INSERT INTO u SELECT *",
            "BEGIN DELETE FROM t; END",
            "SET x = 1",
            "CALL p()",
            "EXECUTE IMMEDIATE 'DELETE FROM t'",
            "SELECT 1; DELETE FROM t",
            "SELECT 1;;SELECT 2",
            "/* SELECT */ DROP TABLE t",
            "/* a /* SELECT */ DROP TABLE t */ DROP TABLE t",
            // The `*` of an opening sign ends nothing.
            "/* /*/ SELECT ' */ */ DROP TABLE t -- '",
            "selectx",
            "sélect 1",
            "-- x\rDROP TABLE t /*\nSELECT 1 -- */",
        ] {
            assert_eq!(code(text), "read_only", "{text}");
        }
        for text in [
            "/* open SELECT 1",
            "SELECT 'open",
            "SELECT 'open\\'",
            "SELECT `a",
        ] {
            assert_eq!(code(text), "syntax_error", "{text}");
        }
    }

    /// Each of these Databricks' parser (Spark's) reads in another way than it looks.
    #[test]
    fn what_may_be_read_in_two_ways_is_refused() {
        for text in [
            "SELECT 1 -- a \\\n, 2",
            "SELECT 1 -- \\",
            "SELECT /*+ X(' */ 1, ') */ 2 -- '",
            "SELECT /* a /*+ b */ 1 */",
            "SELECT /*+ A /* b */ */ 1",
            "SELECT 1e-5r'\\', '",
            "SELECT xr'a'",
            "SELECT $$ '' $$",
            "SELECT 1\u{a0}",
            "SELECT é",
        ] {
            assert_eq!(code(text), "unclear_statement", "{text}");
        }
    }

    /// However it is written: with blanks and comments, in backticks, with the schema that it lies in.
    #[test]
    fn functions_that_do_more_than_read_are_refused() {
        for text in [
            "SELECT http_request(conn => 'c', method => 'POST', path => '/')",
            "SELECT HTTP_Request /* x */ -- y\n (conn => 'c')",
            "SELECT /* /*/ ' */ */ http_request(conn => 'c') -- '",
            "SELECT `reflect`('java.lang.System', 'exit', 0)",
            "SELECT system.builtin.java_method('java.lang.System', 'exit', 0)",
            "SELECT system.builtin.`Try_Reflect` ('java.lang.System', 'exit', 0)",
            "SELECT * FROM remote_query('pg', query => 'DELETE FROM t RETURNING *')",
            "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'exit', 0)",
            "SELECT * FROM identifier (?)",
            "SELECT python_exec('x')",
            "SELECT TRANSFORM(a) USING 'sh -c x' AS (b) FROM t",
            "SELECT TRANSFORM(a) Using /* x */ -- y\n \"sh\" FROM t",
            "SELECT TRANSFORM(a) USING r'sh' FROM t",
            "SELECT TRANSFORM(a) USING ? FROM t",
            "SELECT * FROM (MAP a USING 'sh' FROM t)",
        ] {
            assert_eq!(code(text), "read_only", "{text}");
        }
    }
}
