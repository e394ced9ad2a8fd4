//! Words that write, for engines that may run what they are given.
//!
//! A statement that begins as a query does can write by what comes after it: `SELECT … INTO`,
//! `WITH … DELETE`, and with SQL Server's kin by a whole second statement, because no semicolon need stand
//! between two. So the words are refused wherever they stand; who has a column of such a name quotes it.

use super::lexer::{Kind, Token};
use super::{Dialect, SqlError};

/// Everywhere.
const WRITING: [&str; 15] = [
    "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "INTO", "CREATE", "ALTER", "DROP",
    "TRUNCATE", "GRANT", "REVOKE", "EXEC", "EXECUTE", "CALL",
];

/// Functions of these names are common, and no statement has a parenthesis after the word.
const FUNCTIONS: [&str; 4] = ["INSERT", "MERGE", "REPLACE", "TRUNCATE"];

/// What else begins a statement where no semicolon need come before it.
const BATCH: [&str; 25] = [
    "SET",
    "USE",
    "DECLARE",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVE",
    "DENY",
    "BACKUP",
    "RESTORE",
    "BULK",
    "DBCC",
    "DISABLE",
    "ENABLE",
    "KILL",
    "SHUTDOWN",
    "RECONFIGURE",
    "WAITFOR",
    "WHILE",
    "WRITETEXT",
    "UPDATETEXT",
    "OPENQUERY",
    "OPENROWSET",
    "OPENDATASOURCE",
    "SETUSER",
];

pub fn refuse_writes(dialect: Dialect, sql: &str, statement: &[Token]) -> Result<(), SqlError> {
    let tokens: Vec<Token> = statement
        .iter()
        .filter(|token| token.kind != Kind::Space)
        .copied()
        .collect();
    let mut number = Number::default();
    for (index, token) in tokens.iter().enumerate() {
        let rest = &tokens[index + 1..];
        let goes_on = number.goes_on_in(sql, token);
        match token.kind {
            Kind::Assignment => {
                return Err(SqlError::refused(":= writes a session variable"));
            }
            Kind::Word => refuse_word(dialect, sql, token.text(sql), goes_on, rest)?,
            _ => {}
        }
    }
    Ok(())
}

/// Where a number may go on in a word: `1e5`, `1.e5`, `0x1F`.
#[derive(Default)]
struct Number {
    ends_at: usize,
    is_open: bool,
    is_behind_name: bool,
}

impl Number {
    /// Takes the next token. Whether it is a word that may go on a number, and so have another word behind that.
    fn goes_on_in(&mut self, sql: &str, token: &Token) -> bool {
        let is_beside = token.start() == self.ends_at;
        let is_word = token.kind == Kind::Word;
        let goes_on = is_word && is_beside && self.is_open;
        // A point behind a name is the name's. Behind anything else it may be a number's.
        let is_point = token.kind == Kind::Sign && token.text(sql) == ".";
        let is_names = is_beside && self.is_behind_name;
        self.is_open = token.kind == Kind::Number || goes_on || (is_point && !is_names);
        self.is_behind_name = match token.kind {
            Kind::Word => !goes_on,
            Kind::Quoted | Kind::Close | Kind::CloseBracket => true,
            _ => is_point && is_names,
        };
        self.ends_at = token.end();
        goes_on
    }
}

/// `goes_on`: it may be the end of a number and a word behind that (`1e5DELETE`), with nothing between them.
fn refuse_word(
    dialect: Dialect,
    sql: &str,
    word: &str,
    goes_on: bool,
    rest: &[Token],
) -> Result<(), SqlError> {
    let next = rest.first();
    let is = |word: &str, known: &str| word.eq_ignore_ascii_case(known);
    let batches = matches!(dialect, Dialect::MsSql | Dialect::Generic);
    // Elsewhere a word with letters before it that are no number's is a name.
    let ends_a_number = |end: &str| {
        batches
            || end
                .bytes()
                .all(|b| matches!(b, b'x' | b'X') || b.is_ascii_hexdigit())
    };
    let is_end = |known: &str| {
        let split = word.len().checked_sub(known.len());
        let split = split.and_then(|at| word.split_at_checked(at));
        split.is_some_and(|(end, last)| ends_a_number(end) && is(last, known))
    };
    let found = |known: &str| is(word, known) || (goes_on && is_end(known));
    let among = |words: &[&'static str]| words.iter().copied().find(|known| found(known));
    let next_is =
        |known: &str| next.is_some_and(|next| next.kind == Kind::Word && is(next.text(sql), known));
    let called = next.is_some_and(|next| next.kind == Kind::Open);
    let written = among(&WRITING)
        .filter(|word| !(called && FUNCTIONS.contains(word)))
        .or_else(|| among(&BATCH).filter(|_| batches));
    if let Some(word) = written {
        return Err(SqlError::refused(format!(
            "{word} writes (a column of this name must be quoted)"
        )));
    }
    let locks = ["SHARE", "KEY", "NO"];
    if (found("FOR") && locks.iter().any(|lock| next_is(lock))) || (found("LOCK") && next_is("IN"))
    {
        return Err(SqlError::refused("FOR UPDATE and FOR SHARE lock rows"));
    }
    if dialect == Dialect::ClickHouse {
        let assigns = rest.get(1).is_some_and(|sign| sign.text(sql) == "=");
        let settings = found("SETTINGS") && assigns;
        let last = rest.len() == 1
            || rest
                .get(1)
                .is_some_and(|word| is(word.text(sql), "SETTINGS"));
        let format = found("FORMAT") && last && next.is_some_and(|next| next.kind == Kind::Word);
        if settings || format {
            return Err(SqlError::refused(
                "SETTINGS and FORMAT belong to the service",
            ));
        }
    }
    Ok(())
}
