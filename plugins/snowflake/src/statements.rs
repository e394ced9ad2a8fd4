//! A statement's text: that it is one query, and that nothing in it does more than read.
//!
//! Snowflake has no mode that only reads, and what a role may write it writes. So what is known to do more in a query is refused: another
//! statement behind it (`->>`), an anonymous procedure before it (`WITH … AS PROCEDURE … CALL`), functions that change what others run
//! (`SYSTEM$…`), and ways to name one of these by a text. Where it is in doubt how Snowflake reads a text, that is refused, too.

use souk_sdk::Error;
use souk_sdk::statements::{Dialect, DollarQuotes, Kind, Letters, Places, Quote, Statement, Token};

/// What a query begins with.
const QUERIES: [&str; 2] = ["select", "with"];
/// How Snowflake reads a text.
const DIALECT: Dialect = Dialect {
    line_comments: &["--", "//"],
    line_ends: &['\n'],
    nested_comments: false,
    quotes: &[Quote::escaped('\''), Quote::plain('"')],
    dollar_quotes: DollarQuotes::Bare,
    letters: Letters::Ascii,
    word_signs: "$",
};
/// What may end a line or not.
const LINE_ENDS: [char; 6] = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
/// Words of statements that write. Snowflake reserves them, or needs none of them in a query: a name is quoted (`"call"`). `update` is that of
/// `FOR UPDATE` as well, which locks rows.
const WRITING: [&str; 14] = [
    "alter",
    "call",
    "create",
    "delete",
    "drop",
    "execute",
    "grant",
    "insert",
    "merge",
    "procedure",
    "revoke",
    "truncate",
    "undrop",
    "update",
];
/// The ones that are functions as well.
const FUNCTIONS: [&str; 2] = ["insert", "truncate"];
/// What takes a statement or a function's name as a text.
const BY_TEXT: [&str; 2] = ["identifier", "to_query"];
/// What shows the result, the values or the text of another statement of the same user: another caller's. What begins so is meant, too
/// (`QUERY_HISTORY_BY_USER`).
const OF_OTHERS: [&str; 4] = [
    "bind_values",
    "get_query_operator_stats",
    "query_history",
    "result_scan",
];
/// They take a number from a sequence, which is gone then.
const NEXT: [&str; 2] = ["getnextval", "nextval"];
/// Functions of the system, most of which do something.
const SYSTEM: &str = "system$";
/// The one that only looks.
const LOOKS: &str = "system$typeof";

/// Blanks, as which every lexer knows them.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];
/// Signs behind which `$$` begins a text, whatever a name may have in it.
const BEFORE_DOLLARS: [char; 4] = ['(', ',', '=', '|'];
/// Signs of a stage's name and a path in it that end no token. Of these, some begin a comment with the one before.
const IN_PATHS: [char; 11] = ['@', '_', '.', '/', '~', '%', '=', '-', '"', ')', ','];

/// What a text is, whatever its values are.
pub fn read(text: &str) -> Result<Places, Error> {
    let query = Statement::one_query(text, &DIALECT, &QUERIES)?;
    let tokens: Vec<Token<'_>> = query.tokens().collect();
    tokens
        .iter()
        .try_for_each(|token| clear(token, query.text))?;
    let words: Vec<&Token<'_>> = tokens.iter().filter(|token| !token.is_blank()).collect();
    for (place, token) in words.iter().enumerate() {
        let is_called = words.get(place + 1).is_some_and(|next| next.text == "(");
        only_reads(token, is_called)?;
        let signs = words[place..].iter().map(|token| token.text);
        if signs.take(3).eq(["-", ">", ">"]) {
            return Err(refused("->>", "is followed by another statement"));
        }
    }
    Ok(query.places())
}

/// A text that was read, as it is sent, with so many values beside it.
pub fn prepare(text: String, places: &Places, values: usize) -> Result<String, Error> {
    places.takes(values)?;
    Ok(places.cut(text))
}

/// Refuses a token of this text that might begin or end elsewhere.
fn clear(token: &Token<'_>, text: &str) -> Result<(), Error> {
    let inside = |from: usize| token.text.get(from..).unwrap_or_default();
    let is_unclear = match token.kind {
        Kind::Blank if token.text.starts_with("/*") => {
            inside(2).starts_with('/') || inside(2).contains("/*")
        }
        Kind::Blank => inside(2).trim_end_matches('\r').contains(LINE_ENDS),
        Kind::Word => token.text.contains("$$"),
        Kind::Quoted => token.text.starts_with('$') && !stands_alone(token, text),
        Kind::Sign if token.text == "@" => return path(&text[token.at..]),
        // What a comment begins with in other dialects.
        Kind::Sign => token.text == "#",
    };
    match is_unclear {
        false => Ok(()),
        true => Err(Error::permission(
            "read_only",
            "where a comment, a text or a name of the statement ends is not clear: leave out comments within comments, odd ends of lines, #, and $$ that is not between blanks",
        )),
    }
}

/// Whether nothing is right before or behind dollars that could be of one token with them.
fn stands_alone(token: &Token<'_>, text: &str) -> bool {
    let before = text[..token.at].chars().next_back();
    let behind = text[token.at + token.text.len()..].chars().next();
    before.is_none_or(|sign| BLANKS.contains(&sign) || BEFORE_DOLLARS.contains(&sign))
        && behind.is_none_or(|sign| sign.is_ascii() && !is_of_names(sign))
}

fn is_of_names(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '_' | '$')
}

/// Refuses a stage's path with anything in it that is a comment or a quote elsewhere: in a path it may be part of a file's name, which goes
/// on to the next blank.
fn path(from: &str) -> Result<(), Error> {
    let path = from.split([' ', '\t', '\n']).next().unwrap_or_default();
    let path = path.strip_suffix('\r').unwrap_or(path);
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || IN_PATHS.contains(&sign);
    let is_clear = path.chars().all(is_plain)
        && !path.contains("--")
        && !path.contains("//")
        && path.matches('"').count().is_multiple_of(2);
    match is_clear {
        true => Ok(()),
        false => Err(Error::permission(
            "read_only",
            "where a stage's path ends is not clear: write it as a text ('@stage/path'), or a blank behind it",
        )),
    }
}

fn only_reads(token: &Token<'_>, is_called: bool) -> Result<(), Error> {
    match token.kind {
        Kind::Word => word(&token.text.to_ascii_lowercase(), is_called),
        // A function's name may be quoted, too.
        Kind::Quoted if token.text.starts_with('"') => {
            function(&token.text.trim_matches('"').to_ascii_lowercase())
        }
        Kind::Quoted | Kind::Blank | Kind::Sign => Ok(()),
    }
}

fn word(name: &str, is_called: bool) -> Result<(), Error> {
    match name {
        LOOKS => Ok(()),
        _ if is_called && FUNCTIONS.contains(&name) => Ok(()),
        _ if WRITING.contains(&name) => Err(refused(
            name,
            "is a word of statements that write: if it is a name, quote it",
        )),
        _ => function(name),
    }
}

fn function(name: &str) -> Result<(), Error> {
    if name.starts_with(SYSTEM) || BY_TEXT.contains(&name) {
        return Err(refused(name, "is a function that may do more"));
    }
    if NEXT.contains(&name) {
        return Err(refused(name, "takes a number from a sequence"));
    }
    match OF_OTHERS.iter().any(|begin| name.starts_with(begin)) {
        true => Err(refused(name, "shows what others ask")),
        false => Ok(()),
    }
}

fn refused(what: &str, why: &str) -> Error {
    Error::permission(
        "read_only",
        format!("connections are read-only, and {what} {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(text: &str, values: usize) -> Result<String, Error> {
        super::prepare(text.to_owned(), &read(text)?, values)
    }

    #[test]
    fn queries_pass() {
        for text in [
            "SELECT 1",
            " (\n(select 1));",
            "-- x\r\nWITH a AS (SELECT 1) SELECT * FROM a; // end",
            "SELECT ';' AS \"->>\", $$ ; DROP TABLE t $$, 'CALL', \"call\", col:a.b[0]::int",
            "SELECT 'it\\'s; DROP TABLE t', 'a''b', \"\\\"",
            "SELECT insert('abc', 1, 2, 'z'), truncate (1.5), system$typeof(1), updated, call_id FROM t",
            "SELECT FILTER(a, x -> x > 1), $1, t.$2 FROM @stage t",
            "SELECT MAX(n) OVER (ORDER BY d ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t AT (OFFSET => -60)",
            "SELECT 'SYSTEM$CANCEL_QUERY', 1 - 2 >> 1",
            "SELECT ($$a$$),$$b$$, c=$$d$$||$$e$$ FROM t",
            "SELECT $1 FROM @~/a-b/c_1.csv, @db.s.%t, (SELECT $1 FROM @\"My\".s/day=1)",
            "SELECT $1 FROM '@s/a--b//*.csv' -- 'x'",
        ] {
            prepare(text, 0).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        }
        assert_eq!(
            prepare("SELECT ?\nLIMIT ? OFFSET ?;", 3).unwrap(),
            "SELECT ?\nLIMIT ? OFFSET ?"
        );
        assert_eq!(
            prepare("SELECT '?'", 1).unwrap_err().code,
            "parameter_count"
        );
    }

    #[test]
    fn what_may_write_is_refused() {
        for text in [
            "",
            ";",
            "INSERT INTO t SELECT 1",
            "CALL p()",
            "EXECUTE IMMEDIATE 'DROP TABLE t'",
            "EXECUTE IMMEDIATE $$ BEGIN DROP TABLE t; END $$",
            "BEGIN DELETE FROM t; END",
            "DECLARE x INT; BEGIN RETURN 1; END",
            "$$ SELECT 1 $$",
            "SHOW TABLES",
            "EXPLAIN SELECT 1",
            "VALUES (1)",
            "SELECT 1; DROP TABLE t",
            "SELECT 1 ->> DROP TABLE t",
            // Words that no lock knows.
            "SELECT 1 ->> COPY INTO @stage FROM t",
            "SELECT 1 ->> USE ROLE admin",
            "(SELECT 1)\n->>SHOW TABLES",
            "SELECT 1 ->>/**/DROP TABLE t",
            "SELECT 1 -- x\n->> TRUNCATE TABLE t",
            "WITH p AS PROCEDURE () RETURNS STRING LANGUAGE SQL AS $$ BEGIN DROP TABLE t; END $$ CALL p()",
            "WITH a AS (SELECT 1) DELETE FROM t",
            "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
            "WITH a AS (SELECT 1) MERGE INTO t USING a ON 1 = 1 WHEN MATCHED THEN DELETE",
            "SELECT * FROM t FOR UPDATE",
            "SELECT SYSTEM$CANCEL_QUERY('x')",
            "select system$abort_session (1)",
            "SELECT \"SYSTEM$CANCEL_ALL_QUERIES\"(1)",
            "SELECT IDENTIFIER('SYSTEM$ABORT_SESSION')(1)",
            "SELECT * FROM TABLE(TO_QUERY('SELECT SYSTEM$CANCEL_QUERY(1)'))",
            "SELECT * FROM TABLE(RESULT_SCAN('01b2'))",
            "SELECT s.NEXTVAL",
            "SELECT s.\"NEXTVAL\"",
            "SELECT n FROM t, TABLE(GETNEXTVAL(s))",
            "SELECT n FROM t, TABLE(\"GETNEXTVAL\"(s))",
            // What others ask.
            "SELECT * FROM TABLE(INFORMATION_SCHEMA.BIND_VALUES('01b2'))",
            "SELECT * FROM TABLE(information_schema.query_history_by_user())",
            "SELECT * FROM snowflake.account_usage.\"QUERY_HISTORY\"",
            "SELECT * FROM TABLE(\"RESULT_SCAN\"('01b2'))",
            "SELECT * FROM TABLE(GET_QUERY_OPERATOR_STATS('01b2'))",
            // Dollars may be of a name or a number.
            "SELECT 1a$$ ->> DROP TABLE t --$$",
            "SELECT 1 é$$ ->> DROP TABLE t --$$",
            "SELECT 1 \"a\"$$ ->> DROP TABLE t --$$",
            "SELECT 1\u{a0}$$ ->> DROP TABLE t --$$",
            "SELECT $$a$$$ ->> DROP TABLE t --$",
            "SELECT $$a$$b",
            // A path may have in it what is a comment or a quote elsewhere.
            "SELECT $1 FROM @s/a--b ->> DROP TABLE t",
            "SELECT $1 FROM @s//b ->> DROP TABLE t",
            "SELECT $1 FROM @s/*.csv ->> DROP TABLE t --*/",
            "SELECT $1 FROM @s/a'b ->> DROP TABLE t --'",
            "SELECT $1 FROM @s/a,'b ->> DROP TABLE t --'",
            "SELECT $1 FROM @s/a\"b ->> DROP TABLE t --\"",
            "SELECT $1 FROM @s/a\\ b",
            "SELECT $1 FROM @s/a\r'b ->> DROP TABLE t --'",
            "SELECT $1 FROM @s/(/*) ->> DROP TABLE t --*/",
            "SELECT 1 # ' \n ->> DROP TABLE t --'",
            "SELECT 1 /*/ ' */ ->> DROP TABLE t --'",
            // Whether a carriage return ends a line, a comment is nested, or dollars end a name, is not clear.
            "SELECT 1 --\r'\n->> DROP TABLE t --'",
            "SELECT 1 /* /* */ ' */ ->> DROP TABLE t --'",
            "SELECT 1 //\u{2028}'\n->> DROP TABLE t --'",
            "SELECT a$$'$$ ->> DROP TABLE t --'",
            "SELECT 1 /* open",
            "SELECT 'open",
            "SELECT $$ open",
        ] {
            assert!(prepare(text, 0).is_err(), "{text}");
        }
        let error = prepare("SELECT merge FROM t", 0).unwrap_err();
        assert!(error.message.contains("quote it"), "{}", error.message);
    }
}
