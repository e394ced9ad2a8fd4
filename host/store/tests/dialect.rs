//! Every statement in the store's sources is accepted by both backends.
//!
//! The sources are read, not run: string literals that are SQL, `concat!`s of them, and `format!`s whose holes are constants. Statements
//! that are put together otherwise are counted, so that a new kind of them is noticed. Multi-row statements ([`Bulk`]) need their
//! parameters' types to be prepared; the tests of money run all of those on both backends.

mod support;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};
use std::collections::HashMap;
use std::path::Path;
use support::{roll_back, stores};
use syn::Lit;

/// One token of Rust, as far as this test cares.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Text(String),
    Word(String),
    Sign(char),
}

/// Words, signs and string literals; other literals are dropped.
fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    flatten(source.parse().expect("Rust"), &mut tokens);
    tokens
}

fn flatten(stream: TokenStream, into: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Ident(word) => into.push(Token::Word(word.to_string())),
            TokenTree::Punct(sign) => into.push(Token::Sign(sign.as_char())),
            TokenTree::Literal(literal) => {
                if let Lit::Str(text) = Lit::new(literal) {
                    into.push(Token::Text(text.value()));
                }
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ('(', ')'),
                    Delimiter::Brace => ('{', '}'),
                    Delimiter::Bracket => ('[', ']'),
                    Delimiter::None => (' ', ' '),
                };
                into.push(Token::Sign(open));
                flatten(group.stream(), into);
                into.push(Token::Sign(close));
            }
        }
    }
}

fn is_word(token: Option<&Token>, word: &str) -> bool {
    matches!(token, Some(Token::Word(found)) if found == word)
}

fn is_sign(token: Option<&Token>, sign: char) -> bool {
    token == Some(&Token::Sign(sign))
}

/// What a file names: constants and macros without parameters that are text, and the two words that sorted lists fill in.
fn names(tokens: &[Token]) -> HashMap<String, String> {
    let mut names = HashMap::from([
        ("by".to_owned(), "1".to_owned()),
        ("way".to_owned(), "ASC".to_owned()),
    ]);
    for at in 0..tokens.len() {
        names.extend(named(tokens, at, &names));
    }
    names
}

/// The name and text of the constant or macro whose definition begins at `at`.
fn named(tokens: &[Token], at: usize, names: &HashMap<String, String>) -> Option<(String, String)> {
    let head = || tokens[at..].iter().take(12);
    let begin = match tokens.get(at)? {
        Token::Word(word) if word == "const" => {
            head().position(|token| *token == Token::Sign('='))?
        }
        // `name { () => { "text" } }`
        Token::Word(word) if word == "macro_rules" => {
            head().position(|token| *token == Token::Sign('>'))? + 1
        }
        _ => return None,
    };
    let name = head().skip(1).find_map(|token| match token {
        Token::Word(name) => Some(name.clone()),
        _ => None,
    })?;
    let (text, _) = value(tokens, at + begin + 1, names)?;
    Some((name, text))
}

/// The text of a literal or a `concat!` that begins at `at`, and where it ends.
fn value(tokens: &[Token], at: usize, names: &HashMap<String, String>) -> Option<(String, usize)> {
    match tokens.get(at)? {
        Token::Text(text) => Some((text.clone(), at + 1)),
        Token::Word(word) if word == "concat" && is_sign(tokens.get(at + 1), '!') => {
            let mut text = String::new();
            let mut at = at + 3;
            while !is_sign(tokens.get(at), ')') {
                let (part, end) = value(tokens, at, names)?;
                text.push_str(&part);
                at = end + usize::from(is_sign(tokens.get(end), ','));
            }
            Some((text, at + 1))
        }
        Token::Word(name)
            if is_sign(tokens.get(at + 1), '!') && is_sign(tokens.get(at + 3), ')') =>
        {
            Some((names.get(name)?.clone(), at + 4))
        }
        _ => None,
    }
}

/// Fills the holes of a `format!` with constants. `None`: a hole is a variable.
fn filled(text: &str, names: &HashMap<String, String>) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = open + rest[open..].find('}')?;
        out.push_str(&rest[..open]);
        out.push_str(names.get(&rest[open + 1..close])?);
        rest = &rest[close + 1..];
    }
    Some(out + rest)
}

fn is_statement(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or("");
    ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(&first)
        && text.split_whitespace().count() > 3
}

/// The two statements of a list whose columns, source, order and number of parameters begin at `at`.
fn list(tokens: &[Token], mut at: usize, names: &HashMap<String, String>) -> Option<[String; 2]> {
    let mut parts = Vec::new();
    for _ in 0..3 {
        let (part, end) = match tokens.get(at)? {
            Token::Word(name) if is_sign(tokens.get(at + 1), ',') => {
                (names.get(name)?.clone(), at + 1)
            }
            _ => value(tokens, at, names)?,
        };
        parts.push(part);
        at = end + 1;
    }
    let (columns, matching, order) = (&parts[0], &parts[1], &parts[2]);
    let Some(Token::Word(parameters)) = tokens.get(at) else {
        return None;
    };
    let parameters: usize = parameters.parse().ok()?;
    let (limit, offset) = (parameters + 1, parameters + 2);
    Some([
        format!("SELECT COUNT(*) AS total {matching}"),
        format!("SELECT {columns} {matching} ORDER BY {order} LIMIT ${limit} OFFSET ${offset}"),
    ])
}

/// Statements of one file, and how many could not be put together.
fn statements(source: &str) -> (Vec<String>, Vec<String>) {
    let tokens = tokens(source);
    let mut names = names(&tokens);
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        if is_word(tokens.get(at), "Bulk") && is_word(tokens.get(at + 3), "new") {
            while !is_sign(tokens.get(at), ';') {
                at += 1;
            }
            continue;
        }
        if is_word(tokens.get(at), "List") && is_word(tokens.get(at + 3), "new") {
            match list(&tokens, at + 5, &names) {
                Some(both) => found.extend(both),
                None => unknown.push(format!("list at token {at}")),
            }
            at += 5;
            continue;
        }
        // A function's own constant replaces an earlier one of the same name.
        names.extend(named(&tokens, at, &names));
        let is_call = is_word(tokens.get(at), "concat") && is_sign(tokens.get(at + 1), '!');
        match value(&tokens, at, &names) {
            Some((text, end)) if is_statement(&text) => {
                match filled(&text, &names) {
                    Some(statement) => found.push(statement),
                    None => unknown.push(text),
                }
                at = end;
            }
            Some((_, end)) => at = end,
            None => {
                if is_call {
                    unknown.push(format!("concat at token {at}"));
                }
                at += 1;
            }
        }
    }
    (found, unknown)
}

/// Statements for PostgreSQL alone, which only code behind `is_shared` reaches.
fn is_for_postgres(statement: &str) -> bool {
    [
        "pg_",
        "FOR UPDATE",
        "FOR SHARE",
        "clock_timestamp",
        "current_setting",
    ]
    .iter()
    .any(|word| statement.contains(word))
}

/// Statements for SQLite alone: of its own catalogue.
fn is_for_sqlite(statement: &str) -> bool {
    statement.contains("sqlite_")
}

/// A seller's table can be anything; the store's own statements are accepted by both backends.
#[tokio::test]
async fn every_statement_is_accepted_by_both_backends() {
    let mut all = Vec::new();
    let mut unknown = Vec::new();
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            // Puts multi-row statements together and has none of its own.
            } else if !path.ends_with("bulk.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]").next().unwrap_or_default();
                let (found, not) = statements(text);
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                all.extend(found.into_iter().map(|statement| (name.clone(), statement)));
                unknown.extend(not.into_iter().map(|text| (name.clone(), text)));
            }
        }
    }
    assert!(all.len() > 60, "only {} statements were found", all.len());
    let mut refused = Vec::new();
    for store in stores().await {
        for (file, statement) in &all {
            let is_anothers = match store.name {
                "sqlite" => is_for_postgres(statement),
                _ => is_for_sqlite(statement),
            };
            if is_anothers {
                continue;
            }
            let prepared = roll_back(&store.db, async |write| {
                let sql = AssertSqlSafe(statement.clone()).into_sql_str();
                (&mut **write).prepare(sql).await.map(drop)
            });
            if let Err(error) = prepared.await {
                refused.push(format!("{} {file}: {error}\n{statement}", store.name));
            }
        }
    }
    println!(
        "{} statements, {} put together at run time: {unknown:#?}",
        all.len(),
        unknown.len()
    );
    assert!(refused.is_empty(), "{}", refused.join("\n\n"));
}
