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
    for (index, token) in tokens.iter().enumerate() {
        let rest = &tokens[index + 1..];
        match token.kind {
            Kind::Assignment => {
                return Err(SqlError::refused(":= writes a session variable"));
            }
            Kind::Word => refuse_word(dialect, sql, token.text(sql), rest)?,
            _ => {}
        }
    }
    Ok(())
}

fn refuse_word(dialect: Dialect, sql: &str, word: &str, rest: &[Token]) -> Result<(), SqlError> {
    let next = rest.first();
    let is = |word: &str, known: &str| word.eq_ignore_ascii_case(known);
    let among = |words: &[&'static str]| words.iter().copied().find(|known| is(word, known));
    let next_is =
        |known: &str| next.is_some_and(|next| next.kind == Kind::Word && is(next.text(sql), known));
    let called = next.is_some_and(|next| next.kind == Kind::Open);
    let batches = matches!(dialect, Dialect::MsSql | Dialect::Generic);
    let written = among(&WRITING)
        .filter(|word| !(called && FUNCTIONS.contains(word)))
        .or_else(|| among(&BATCH).filter(|_| batches));
    if let Some(word) = written {
        return Err(SqlError::refused(format!(
            "{word} writes (a column of this name must be quoted)"
        )));
    }
    let locks = ["SHARE", "KEY", "NO"];
    if (is(word, "FOR") && locks.iter().any(|lock| next_is(lock)))
        || (is(word, "LOCK") && next_is("IN"))
    {
        return Err(SqlError::refused("FOR UPDATE and FOR SHARE lock rows"));
    }
    if dialect == Dialect::ClickHouse {
        let assigns = rest.get(1).is_some_and(|sign| sign.text(sql) == "=");
        let settings = is(word, "SETTINGS") && assigns;
        let last = rest.len() == 1
            || rest
                .get(1)
                .is_some_and(|word| is(word.text(sql), "SETTINGS"));
        let format = is(word, "FORMAT") && last && next.is_some_and(|next| next.kind == Kind::Word);
        if settings || format {
            return Err(SqlError::refused(
                "SETTINGS and FORMAT belong to the service",
            ));
        }
    }
    Ok(())
}
