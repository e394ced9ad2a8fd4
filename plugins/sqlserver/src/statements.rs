//! A statement's text: that it is one query by its words.
//!
//! T-SQL has no transaction that only reads, and begins a statement wherever the one before can end: behind a number (`SELECT $1DELETE FROM t`), a quote,
//! a bracket. So a word that writes is refused wherever it stands outside of quotes, brackets and comments, and a word is looked for in
//! everything that could be one: where the server's own reader could see another text than this one does, the text is refused.
//!
//! Start reading at [`one_query`]. [`tokens`] says where words begin and end, and refuses what is not clear.

mod tokens;

use souk_sdk::Error;

use tokens::{Token, token, unclear};

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

#[cfg(test)]
mod tests;
