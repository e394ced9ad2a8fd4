//! A statement's text: that it is one query by its words.
//!
//! T-SQL has no transaction that only reads, and begins a statement wherever the one before can end: behind a number (`SELECT $1DELETE FROM t`), a quote,
//! a bracket. So a word that writes is refused wherever it stands outside of quotes, brackets and comments, and a word is looked for in
//! everything that could be one: where the server's own reader could see another text than this one does, the text is refused.

use souk_sdk::Error;

/// What a query begins with.
const QUERIES: [&str; 2] = ["SELECT", "WITH"];

/// What no query needs: words that write, that begin another statement, that run a text elsewhere, and locks that others wait for.
const REFUSED: [&str; 75] = [
    "ADD",
    "ALTER",
    "BACKUP",
    "BEGIN",
    "BREAK",
    "BULK",
    "CALL",
    "CHECKPOINT",
    "CLOSE",
    "COMMIT",
    "CONTINUE",
    "CONVERSATION",
    "COPY",
    "CREATE",
    "DBCC",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DENY",
    "DISABLE",
    "DROP",
    "DUMP",
    "ENABLE",
    "EXEC",
    "EXECUTE",
    "GO",
    "GOTO",
    "GRANT",
    "HOLDLOCK",
    "IF",
    "INSERT",
    "INTO",
    "KILL",
    "LINENO",
    "LOAD",
    "MERGE",
    "MOVE",
    "OPEN",
    "OPENDATASOURCE",
    "OPENQUERY",
    "OPENROWSET",
    "PRINT",
    "RAISERROR",
    "READTEXT",
    "RECEIVE",
    "RECONFIGURE",
    "RENAME",
    "REPEATABLEREAD",
    "RESTORE",
    "RETURN",
    "REVERT",
    "REVOKE",
    "ROLLBACK",
    "SAVE",
    "SEND",
    "SERIALIZABLE",
    "SET",
    "SETUSER",
    "SHUTDOWN",
    "TABLOCK",
    "TABLOCKX",
    "THROW",
    "TRANSACTION",
    "TRIGGER",
    "TRUNCATE",
    "TRY",
    "UPDATE",
    "UPDATETEXT",
    "UPDLOCK",
    "USE",
    "WAITFOR",
    "WHILE",
    "WRITETEXT",
    "XLOCK",
    "CURSOR",
];
/// `NEXT VALUE FOR` takes a number from a sequence, which no transaction gives back. `FETCH NEXT 10 ROWS` is of a page.
const NEXT: &str = "NEXT";
const VALUE: &str = "VALUE";

/// It becomes `SS`, which no refused word has.
const SHARP_S: char = 'ß';

/// Refuses what is not one query. What ends it may stand behind it.
pub fn one_query(text: &str) -> Result<(), Error> {
    if text.contains('\0') {
        return Err(unclear("a character that is NUL"));
    }
    let (mut at, mut first) = (0, None);
    let (mut is_behind_next, mut has_ended) = (false, false);
    let mut before = Before::Other;
    while at < text.len() {
        let (token, next) = token(text, at)?;
        match &token {
            Token::Blank => {}
            _ if has_ended => return Err(not_one_query()),
            Token::End => has_ended = true,
            Token::Word(word) => {
                let word = word.to_ascii_uppercase();
                let goes_on = before.may_be_a_number() || begins_as_a_number(&word);
                refuse(&word, goes_on)?;
                if is_behind_next && word == VALUE {
                    return Err(refused("NEXT VALUE FOR"));
                }
                is_behind_next = is_it(&word, NEXT, goes_on);
                first.get_or_insert(word);
            }
            Token::Sign(_) | Token::Name | Token::Text => {
                if first.is_none() && !matches!(token, Token::Sign('(')) {
                    return Err(not_one_query());
                }
                is_behind_next = false;
            }
        }
        before = before.then(&token);
        at = next;
    }
    match first {
        Some(word) if QUERIES.contains(&word.as_str()) => Ok(()),
        _ => Err(not_one_query()),
    }
}

/// How many values the statement takes: the highest number of its placeholders, `@P1` and so on. To a server that tells cases apart `@p1` is another
/// name, which is not declared.
pub fn places(text: &str) -> Result<usize, Error> {
    let (mut at, mut highest) = (0, 0);
    while at < text.len() {
        let (token, next) = token(text, at)?;
        if let Token::Word(word) = token
            && let Some(number) = word
                .strip_prefix("@P")
                .and_then(|digits| digits.parse().ok())
        {
            highest = highest.max(number);
        }
        at = next;
    }
    Ok(highest)
}

/// How many of the values are the caller's, from the first on: those of a page's window, which the host writes last, are its own.
pub fn callers(text: &str, values: usize) -> usize {
    let last = text.rsplit('\n').next().unwrap_or_default();
    let own = match last.starts_with("OFFSET @P") && last.ends_with(" ROWS ONLY") {
        true => 2,
        false => 0,
    };
    values.saturating_sub(own)
}

/// Whether this word, or what of it the server may take for one, is none that a query has.
fn refuse(word: &str, goes_on: bool) -> Result<(), Error> {
    match REFUSED.iter().find(|refused| is_it(word, refused, goes_on)) {
        Some(word) => Err(refused(word)),
        None => Ok(()),
    }
}

/// Whether the server may read this word here, which may go on a number: that ends where it cannot go on, and a word begins there
/// (`1e5DELETE`, `$1DELETE`, `0x1DELETE`, `1.e5DELETE`).
fn is_it(word: &str, looked_for: &str, goes_on: bool) -> bool {
    match goes_on {
        true => word.ends_with(looked_for),
        false => word == looked_for,
    }
}

fn begins_as_a_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit() || first == '$')
}

/// What stands before a token, as far as it tells whether a number goes on in it: a number may have nothing behind its point (`1.`, `1.e5`).
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// A name, behind which a point is its own.
    Name,
    NamePoint,
    /// A point that is no name's.
    Point,
    /// White space as well: nothing goes on there.
    Other,
}

impl Before {
    fn may_be_a_number(self) -> bool {
        self == Before::Point
    }

    fn then(self, token: &Token) -> Before {
        match token {
            Token::Word(word) if self.may_be_a_number() || begins_as_a_number(word) => {
                Before::Other
            }
            Token::Word(_) | Token::Name => Before::Name,
            Token::Sign('.') if matches!(self, Before::Name | Before::NamePoint) => {
                Before::NamePoint
            }
            Token::Sign('.') => Before::Point,
            Token::Sign(letter) if !letter.is_ascii() => Before::Name,
            Token::Sign(_) | Token::Text | Token::End | Token::Blank => Before::Other,
        }
    }
}

enum Token<'a> {
    /// White space or a comment.
    Blank,
    /// Letters, digits, `_`, `@`, `#` and `$`: a name, a number, or both.
    Word(&'a str),
    Text,
    /// A name in quotes or brackets.
    Name,
    /// `;`
    End,
    Sign(char),
}

/// The token that begins at `at`, and where the next one does.
fn token(text: &str, at: usize) -> Result<(Token<'_>, usize), Error> {
    let rest = &text[at..];
    let name = |closes: char| Ok((Token::Name, at + quoted(rest, closes)?));
    let first = rest.chars().next().unwrap_or(' ');
    match first {
        '-' if rest.starts_with("--") => Ok((Token::Blank, at + line(rest)?)),
        '/' if rest.starts_with("/*") => Ok((Token::Blank, at + block(rest)?)),
        '\'' => Ok((Token::Text, at + quoted(rest, '\'')?)),
        '"' => name('"'),
        '[' => name(']'),
        ';' => Ok((Token::End, at + 1)),
        // With the end of a line it is nothing to the server, and what stands before it goes on in the next one: `0x1\`.
        '\\' => Err(unclear("a backslash")),
        ' ' | '\t' | '\n' | '\r' => Ok((Token::Blank, at + 1)),
        _ if is_word(first) => {
            let end = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
            Ok((Token::Word(&rest[..end]), at + end))
        }
        _ if first.is_ascii_graphic() => Ok((Token::Sign(first), at + 1)),
        // A letter of a name. The word beside it is looked at as if it stood alone.
        _ if is_plain_letter(first) => Ok((Token::Sign(first), at + first.len_utf8())),
        _ => Err(unclear("a character that is no letter of a name")),
    }
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '@' | '#' | '$')
}

/// A letter beyond ASCII that is of no word of the language's: not one that becomes a letter of ASCII when case or width are left out of account
/// (`ı`, `ſ`, the sign of Kelvin, letters of full width).
fn is_plain_letter(char: char) -> bool {
    let is_known = matches!(char,
        '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{5ff}' | '\u{600}'..='\u{6ff}' | '\u{900}'..='\u{e7f}' | '\u{1e00}'..='\u{1fff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}');
    let mut cases = char.to_lowercase().chain(char.to_uppercase());
    // Of a letter that becomes several (`İ`, `ŉ`), any.
    let becomes_ascii = cases.any(|case| case.is_ascii()) && char != SHARP_S;
    is_known && char.is_alphanumeric() && !becomes_ascii
}

/// How long a quoted text is that `rest` begins with. What closes it, twice, does not.
fn quoted(rest: &str, closes: char) -> Result<usize, Error> {
    let mut from = 1;
    loop {
        let Some(end) = rest[from..].find(closes) else {
            return Err(endless());
        };
        from += end + 1;
        if !rest[from..].starts_with(closes) {
            return Ok(from);
        }
        from += 1;
    }
}

/// How long a comment is that ends with its line. Where else a line may end is not left to chance.
fn line(rest: &str) -> Result<usize, Error> {
    let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
    let comment = rest[..end].trim_end_matches(['\r', '\n']);
    if comment.ends_with('\\') {
        return Err(unclear("a backslash at the end of a comment's line"));
    }
    match comment.contains([
        '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}',
    ]) {
        true => Err(unclear("a comment with another end of a line in it")),
        false => Ok(end),
    }
}

/// How long a comment in signs is. One in another one ends it here, and not at SQL Server.
fn block(rest: &str) -> Result<usize, Error> {
    let end = rest[2..].find("*/").ok_or_else(endless)? + 2;
    if ["\\\n", "\\\r"]
        .iter()
        .any(|joined| rest[..end].contains(joined))
    {
        return Err(unclear("a backslash at the end of a comment's line"));
    }
    // Its end may share a sign with its beginning, or with that of another one.
    match rest[2..end + 1].contains("/*") || rest[2..].starts_with('/') {
        true => Err(unclear("a comment in a comment")),
        false => Ok(end + 2),
    }
}

fn not_one_query() -> Error {
    Error::permission(
        "read_only",
        "connections are read-only: the statement must be one query, which begins with SELECT or WITH",
    )
}

fn refused(word: &str) -> Error {
    Error::permission(
        "read_only",
        format!(
            "connections are read-only: no query has {word}; if it is a name, quote it ([{word}])"
        ),
    )
}

fn unclear(what: &str) -> Error {
    Error::permission(
        "read_only",
        format!(
            "connections are read-only, and it is not clear where this statement's words are: it has {what} outside of quotes; leave it out, or quote the name"
        ),
    )
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

    #[test]
    fn queries_pass() {
        for text in [
            "SELECT 1",
            "select top (5) a from t with (nolock) order by a offset 0 rows fetch next 5 rows only;",
            "WITH c AS (SELECT 1 AS a) SELECT * FROM c -- done; DELETE",
            "(SELECT 1) UNION ALL (SELECT 2)",
            "/* DELETE */ SELECT 'DELETE FROM t; --', N'DROP', [DELETE], \"UPDATE\" FROM t /* ; */ ;  -- x\n",
            "SELECT 'it''s', [a]]b], \"a\"\"b\" FROM [dbo].[order details]",
            "SELECT REPLACE(a, 'x', 'y'), LEFT(b, 2) FROM t WHERE updated_at > @P1 AND is_deleted = 0",
            "SELECT IIF(a = 1, 2, 3), DATEADD(day, -1, x) FROM t CROSS APPLY OPENJSON(j) FOR JSON PATH",
            "SELECT Straße, größe, Ärger FROM Kunden WHERE 名前 = N'日本'",
            "SELECT 0x1F, 1e5, $12.50, -1.5E+3, a.b, t.* FROM t",
            "SELECT CASE WHEN a = 1 THEN 2 END, value, next FROM t AS value",
            "SELECT a$DELETE, #DELETE, @xDELETE FROM #t",
            "SELECT 1 --\r\n",
            r"SELECT 'C:\', [a\], 'a\b' /* \ */ -- \ x",
            "SELECT /* a */ 1 / 2 * 3",
            "SELECT 1., 1.e5, 1.E5, .5e, 1. dataset FROM t AS is_set",
            "SELECT t.reset, [t].reset, \"t\".reset, t . reset, Größe.reset FROM d..asset AS reset",
        ] {
            assert_eq!(
                one_query(text).err().map(|error| error.message),
                None,
                "{text}"
            );
        }
    }

    /// A statement needs no sign before it, and no white space.
    #[test]
    fn what_writes_is_refused_wherever_it_stands() {
        for text in [
            "",
            ";",
            "DELETE FROM t",
            "SELECT $1DELETE FROM t",
            "SELECT $DELETE FROM t",
            "SELECT 1e5DELETE FROM t",
            "SELECT 1e+5DELETE FROM t",
            "SELECT 1.DELETE FROM t",
            "SELECT .5DELETE FROM t",
            "SELECT 0x1DELETE FROM t",
            "SELECT 0xDELETE FROM t",
            "SELECT 1.eDELETE FROM t",
            "SELECT 1.e5DELETE FROM t",
            "SELECT 1.E5EXEC p",
            "SELECT 1.e5EXEC(N'COMMIT; DELETE FROM t; BEGIN TRAN')",
            "SELECT 1.e+5EXEC p",
            "SELECT 1.e-DELETE FROM t",
            "SELECT 1.5e5DELETE FROM t",
            "SELECT .5eDELETE FROM t",
            "SELECT $1.eDELETE FROM t",
            "SELECT 0x1.eDELETE FROM t",
            "SELECT 1..e5DELETE FROM t",
            "SELECT a=.e5DELETE FROM t",
            "SELECT .e5DELETE FROM t",
            "SELECT TOP 1NEXT VALUE FOR s",
            "SELECT 'a'DELETE FROM t",
            "SELECT N'a'DELETE FROM t",
            "SELECT [a]DELETE FROM t",
            "SELECT \"a\"DELETE FROM t",
            "SELECT (1)DELETE FROM t",
            "SELECT 1/**/DELETE FROM t",
            "SELECT 1 delete from t",
            "SELECT 1\nDeLeTe t",
            "SELECT 1;DELETE FROM t",
            "SELECT éDELETE FROM t",
            "SELECT a INTO b FROM t",
            "SELECT 1 EXEC p",
            "SELECT 1 EXECUTE('DELETE FROM t')",
            "SELECT * FROM OPENROWSET('x', 'y', 'DELETE FROM t')",
            "SELECT * FROM OPENQUERY(l, 'DELETE FROM t')",
            "SELECT * FROM OPENDATASOURCE('x', 'y').a.b.c",
            "WITH c AS (SELECT 1 AS a) DELETE FROM c",
            "WITH c AS (SELECT 1 AS a) MERGE t USING c ON 1 = 1 WHEN MATCHED THEN UPDATE SET a = 1",
            "WITH c AS (SELECT a FROM t) UPDATE c SET a = 1",
            "SELECT NEXT VALUE FOR s",
            "SELECT NEXT/**/VALUE FOR s",
            "SELECT 1 UPDATETEXT t.c @p 0 0 'x'",
            "SELECT 1 WRITETEXT t.c @p 'x'",
            "SELECT 1 WAITFOR DELAY '1:00'",
            "SELECT 1 SET NOCOUNT ON",
            "SELECT 1 USE master",
            "SELECT 1 DECLARE @x int",
            "SELECT 1\nGO\nDELETE FROM t",
            "SELECT 1 COMMIT",
            "SELECT 1 IF 1 = 1 SELECT 2",
            "SELECT 1 WHILE 1 = 1 SELECT 2",
            "SELECT a FROM t WITH (XLOCK)",
            "SELECT a FROM t WITH (HOLDLOCK)",
            "SELECT a FROM t WITH (SERIALIZABLE)",
            "SELECT a FROM t WITH (REPEATABLEREAD)",
            "SELECT a FROM t WITH (TABLOCK)",
            "SELECT 1 END CONVERSATION @h",
            "SELECT 1 GET CONVERSATION GROUP @g FROM q",
            "{call p}",
            "p",
            "EXEC p",
            "SELECT 1; SELECT 2",
            "SELECT 1;;SELECT 2",
            "SELECT 1; 'a'",
            "'a' SELECT 1",
            "VALUES (1)",
        ] {
            let error = one_query(text).unwrap_err();
            assert_eq!(error.code, "read_only", "{text}");
        }
    }

    /// Where the server could see another text, nobody guesses.
    #[test]
    fn what_is_not_clear_is_refused() {
        for text in [
            "SELECT 1 /* /* */ DELETE FROM t -- */",
            "SELECT /* /* */ 1 */ 1",
            "SELECT 1 /*/* */ */",
            "SELECT 1 /*/*/ DELETE FROM t --*/",
            "SELECT 1 /*/ DELETE FROM t --*/",
            "SELECT 1 -- x\rDELETE FROM t",
            "SELECT 1 --\r' \nDELETE FROM t --'",
            "SELECT 1 -- x\u{2028}DELETE FROM t",
            "SELECT 1 -- x\u{85}DELETE FROM t",
            "SELECT 1\u{a0}DELETE FROM t",
            "SELECT 1 \u{ff2b}ILL 52",
            "SELECT 1 \u{212a}ILL 52",
            "SELECT 1 \u{131}nsert t values (1)",
            "SELECT 1 \u{130}NSERT t VALUES (1)",
            "SELECT 1 ope\u{149}",
            "SELECT 1 \u{1f0}oin",
            "SELECT \u{20ac}1DELETE FROM t",
            "SELECT 1\u{b}FROM t",
            "SELECT 0x1\\\nAINSERT t SELECT 1",
            "SELECT 0x1\\\r\nAINSERT t SELECT 1",
            "SELECT 0xabc\\\ndef",
            "SELECT a \\ b",
            "SELECT 1 -- \\\nDELETE FROM t",
            "SELECT 1 -- \\\r\nFROM t",
            "SELECT 1 -- \\",
            "SELECT 1 /* *\\\n/ DELETE FROM t -- */",
            "SELECT 1 /* \\\r\n */",
            "SELECT 1\0DELETE FROM t",
            "SELECT '\0'",
        ] {
            let error = one_query(text).unwrap_err();
            assert_eq!(error.code, "read_only", "{text:?}");
        }
        for text in [
            "SELECT 'a",
            "SELECT [a",
            "SELECT \"a",
            "SELECT 1 /* a",
            "SELECT 'a''",
            "/*/ SELECT 1",
        ] {
            assert_eq!(one_query(text).unwrap_err().code, "syntax_error", "{text}");
        }
    }

    /// Each refused word is, behind anything that may stand before it.
    #[test]
    fn each_word_is_refused_behind_anything() {
        for word in REFUSED {
            for before in [
                "SELECT 1 ",
                "SELECT $1",
                "SELECT 2e1",
                "SELECT 'a'",
                "SELECT [a]",
                "SELECT 1.",
                "SELECT 1.e",
                "SELECT 1.e5",
                "SELECT 1.E5",
                "SELECT(1)",
                "SELECT 0x0",
            ] {
                let text = format!("{before}{} x", word.to_ascii_lowercase());
                let error = one_query(&text).unwrap_err();
                assert_eq!(error.code, "read_only", "{text}");
                // Quoted it is a name.
                one_query(&format!("{before} AS [{word}]")).unwrap();
            }
        }
        let mut sorted = REFUSED.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), REFUSED.len());
        assert!(!REFUSED.iter().any(|word| word.contains("SS")));
    }

    /// Pieces in any order: what stands in quotes and comments says nothing, and a word that stands outside of them is found.
    #[test]
    fn words_are_found_among_anything() {
        let hidden = [
            "'DELETE'",
            "N'it''s; DROP'",
            "[a]]UPDATE]",
            "\"x\"\"EXEC\"",
            "/* INTO; -- */",
            "-- MERGE\n",
            "'--'",
            "'/*'",
            "[--]",
            "\"/*\"",
            "'['",
            "['']",
        ];
        let plain = [
            " ", "\n", "a", "1", "$1", "1e5", "0x1F", "@P1", "(", ")", ",", "+", "t.x", "1.",
            "1.e", "1.E5", "é", "*", "updated", "_into", "#set",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % bound as u64) as usize
        };
        for round in 0..20_000 {
            let count = 1 + below(8);
            let mut pieces: Vec<&str> = Vec::new();
            for _ in 0..count {
                pieces.push(match below(2) {
                    0 => hidden[below(hidden.len())],
                    _ => plain[below(plain.len())],
                });
            }
            // Two that meet may be one other: '' in a text, `--`, a longer name. A blank keeps them apart.
            let text = format!("SELECT {}", pieces.join(" "));
            assert_eq!(
                one_query(&text).err().map(|error| error.message),
                None,
                "{round}: {text}"
            );
            let word = REFUSED[below(REFUSED.len())];
            // Right behind anything that is no name: it begins there.
            let at = below(pieces.len());
            let ends_a_name = |piece: &str| {
                piece.ends_with(|last: char| last.is_ascii_alphanumeric())
                    && piece.starts_with(|first: char| {
                        first.is_ascii_alphabetic() || "@#_".contains(first)
                    })
            };
            let apart = if ends_a_name(pieces[at]) { " " } else { "" };
            let (before, after) = pieces.split_at(at + 1);
            let text = format!(
                "SELECT {}{apart}{word} {}",
                before.join(" "),
                after.join(" ")
            );
            assert!(one_query(&text).is_err(), "{round}: {text}");
        }
    }

    /// A page's two values are the host's own, and so is no value of a first page.
    #[test]
    fn a_pages_values_are_nobodys() {
        let page =
            "SELECT s.[a]\nFROM [t] AS s\nORDER BY s.[a]\nOFFSET @P2 ROWS FETCH NEXT @P1 ROWS ONLY";
        assert_eq!((callers(page, 2), callers(page, 3)), (0, 1));
        let first = "SELECT 1\nOFFSET 0 ROWS FETCH NEXT 51 ROWS ONLY";
        assert_eq!((callers(first, 0), callers(first, 1)), (0, 1));
        assert_eq!(callers("SELECT @P1", 1), 1);
    }

    #[test]
    fn places_are_counted_where_they_are_places() {
        for (text, wanted) in [
            ("SELECT 1", 0),
            ("SELECT @P1, @p3, @P2", 2),
            ("SELECT '@P3', [@P4] -- @P5\n, @P1", 1),
            ("SELECT @P10", 10),
            ("SELECT @Px, @@ROWCOUNT, @P", 0),
        ] {
            assert_eq!(places(text).unwrap(), wanted, "{text}");
        }
    }
}
