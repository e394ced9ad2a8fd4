//! The tokens of a statement: where strings, comments and names begin and end, as each engine reads them.
//!
//! One pass over the bytes, none of them looked at more than a few times whatever the input is, and
//! nothing that nests: a statement of the largest size takes a millisecond. It refuses to know what a
//! statement means. Where an engine that cannot hold read-only itself leaves it open (to a setting, say)
//! whether something is text or code, the statement is refused instead of guessed at.

use super::{Dialect, SqlError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// White space and comments.
    Space,
    /// A comment that nothing closes, which only SQLite takes.
    OpenComment,
    /// A text, or a quoted name: nothing inside is looked at.
    Quoted,
    Word,
    /// Digits. What follows them without a blank (`e5`, `x1F`) is a word.
    Number,
    /// `:name`.
    Parameter,
    /// Some engine's own kind of placeholder: `$1`, `?`, `@name`.
    Foreign,
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    /// A colon on its own.
    Colon,
    /// `:=`.
    Assignment,
    Semicolon,
    /// Any other sign.
    Sign,
}

/// A token and where it stands, in bytes. A statement is short enough for 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    start: u32,
    end: u32,
}

impl Token {
    pub fn start(self) -> usize {
        self.start as usize
    }

    pub fn end(self) -> usize {
        self.end as usize
    }

    pub fn text(self, sql: &str) -> &str {
        &sql[self.start()..self.end()]
    }
}

/// Tokens cover the whole statement, in order and without gaps.
pub fn tokens(dialect: Dialect, sql: &str) -> Result<Vec<Token>, SqlError> {
    let lexer = Lexer {
        dialect,
        sql,
        bytes: sql.as_bytes(),
    };
    // Engines stop reading there, whatever it stands in.
    if sql.contains('\0') {
        return Err(SqlError::Syntax("it has a NUL character".to_owned()));
    }
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while at < sql.len() {
        let (kind, end) = lexer.token(at)?;
        debug_assert!(end > at && sql.is_char_boundary(end));
        match tokens.last_mut() {
            // Blanks are most of a statement's tokens: they are kept together.
            Some(last) if kind == Kind::Space && last.kind == Kind::Space => last.end = end as u32,
            _ => tokens.push(Token {
                kind,
                start: at as u32,
                end: end as u32,
            }),
        }
        at = end;
    }
    Ok(tokens)
}

/// Quotes of word processors.
const TYPOGRAPHIC_QUOTES: [char; 4] = ['\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}'];

struct Lexer<'a> {
    dialect: Dialect,
    sql: &'a str,
    bytes: &'a [u8],
}

impl Lexer<'_> {
    /// The token that begins at `at`, and where it ends.
    fn token(&self, at: usize) -> Result<(Kind, usize), SqlError> {
        use Dialect::*;
        let dialect = self.dialect;
        let next = self.byte(at + 1);
        let one = |kind| Ok((kind, at + 1));
        match self.bytes[at] {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => one(Kind::Space),
            b'-' if next == b'-' && self.dashes_comment(at) => self.line_comment(at),
            b'#' if self.hash_comments(next) => self.line_comment(at),
            b'/' if next == b'*' => self.block_comment(at),
            b'/' if next == b'/' && dialect == ClickHouse => self.line_comment(at),
            b'\'' => self.text(at),
            b'"' => self.quoted(at, b'"', matches!(dialect, MySql | ClickHouse | BigQuery)),
            b'`' if !matches!(dialect, Postgres | MsSql) => {
                self.quoted(at, b'`', matches!(dialect, ClickHouse | BigQuery))
            }
            b'[' if matches!(dialect, Sqlite | MsSql) => self.bracketed(at),
            b'$' => self.dollar(at),
            b'?' if dialect != Postgres => Ok((Kind::Foreign, self.digits(at + 1))),
            b'@' if dialect != Postgres => self.at_sign(at),
            b':' => self.colon(at),
            b'(' => one(Kind::Open),
            b')' => one(Kind::Close),
            b'[' => one(Kind::OpenBracket),
            b']' => one(Kind::CloseBracket),
            b';' => one(Kind::Semicolon),
            b'\\' if self.joins_lines() => Err(self.unclear("a backslash outside of quotes")),
            b'0'..=b'9' => Ok((Kind::Number, self.digits(at))),
            byte if begins_word(byte) => self.word(at),
            _ => one(Kind::Sign),
        }
    }

    /// 0 past the end: a byte that no statement has.
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn position(&self, from: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
        let found = self
            .bytes
            .get(from..)?
            .iter()
            .position(|byte| wanted(*byte));
        found.map(|found| from + found)
    }

    fn digits(&self, at: usize) -> usize {
        self.position(at, |byte| !byte.is_ascii_digit())
            .unwrap_or(self.bytes.len())
    }

    fn endless(&self, what: &str, at: usize) -> SqlError {
        let line = 1 + self.bytes[..at]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        SqlError::Syntax(format!("the {what} that begins in line {line} has no end"))
    }

    fn unclear(&self, what: &str) -> SqlError {
        SqlError::Syntax(format!(
            "{what} means different things to different engines"
        ))
    }

    /// MySQL takes `1--1` for a subtraction.
    fn dashes_comment(&self, at: usize) -> bool {
        self.dialect != Dialect::MySql || self.byte(at + 2) <= b' '
    }

    fn hash_comments(&self, next: u8) -> bool {
        match self.dialect {
            Dialect::MySql | Dialect::BigQuery => true,
            Dialect::ClickHouse => matches!(next, b' ' | b'!'),
            _ => false,
        }
    }

    fn line_comment(&self, at: usize) -> Result<(Kind, usize), SqlError> {
        let ends = |byte| byte == b'\n' || (byte == b'\r' && self.dialect == Dialect::Postgres);
        let end = self.position(at, ends).unwrap_or(self.bytes.len());
        // Whether the comment ends there is not the same everywhere.
        let lone = |at: &usize| self.bytes[*at] == b'\r' && self.byte(at + 1) != b'\n';
        if !self.dialect.holds_read_only() && (at..end).any(|at| lone(&at)) {
            return Err(self.unclear("a carriage return in a comment"));
        }
        let comment = &self.sql[at..end];
        if self.joins_lines() && comment.trim_end_matches('\r').ends_with('\\') {
            return Err(self.unclear("a backslash at the end of a line"));
        }
        Ok((Kind::Space, end))
    }

    fn block_comment(&self, start: usize) -> Result<(Kind, usize), SqlError> {
        let runs = matches!(self.byte(start + 2), b'!') || self.sql[start..].starts_with("/*M!");
        if runs && matches!(self.dialect, Dialect::MySql | Dialect::Generic) {
            return Err(SqlError::refused(
                "an executable comment (/*!) is not accepted",
            ));
        }
        let mut depth = 1usize;
        let mut at = start + 2;
        while at < self.bytes.len() {
            match (self.bytes[at], self.byte(at + 1)) {
                (b'*', b'/') => {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        self.joins_none(start, at)?;
                        return Ok((Kind::Space, at));
                    }
                }
                (b'/', b'*') if self.dialect == Dialect::Postgres => {
                    depth += 1;
                    at += 2;
                }
                (b'/', b'*') if self.dialect != Dialect::Sqlite => {
                    return Err(self.unclear("a comment inside a comment"));
                }
                _ => at += 1,
            }
        }
        match self.dialect {
            Dialect::Sqlite => Ok((Kind::OpenComment, at)),
            _ => Err(self.endless("comment", start)),
        }
    }

    /// SQL Server takes a backslash and the end of a line for nothing, at least in constants: `0x1\` goes on in the next line.
    fn joins_lines(&self) -> bool {
        matches!(self.dialect, Dialect::MsSql | Dialect::Generic)
    }

    fn joins_none(&self, start: usize, end: usize) -> Result<(), SqlError> {
        let joins = |pair: &[u8]| matches!(pair, [b'\\', b'\n' | b'\r']);
        match self.joins_lines() && self.bytes[start..end].windows(2).any(joins) {
            true => Err(self.unclear("a backslash at the end of a line")),
            false => Ok(()),
        }
    }

    /// A text in single quotes.
    fn text(&self, at: usize) -> Result<(Kind, usize), SqlError> {
        let escapes = matches!(
            self.dialect,
            Dialect::MySql | Dialect::ClickHouse | Dialect::BigQuery
        );
        self.quoted(at, b'\'', escapes)
    }

    fn quoted(&self, at: usize, quote: u8, escapes: bool) -> Result<(Kind, usize), SqlError> {
        let three = [quote; 3];
        if self.dialect == Dialect::BigQuery
            && quote != b'`'
            && self.bytes[at..].starts_with(&three)
        {
            return self.triple_quoted(at, quote);
        }
        Ok((Kind::Quoted, self.quoted_end(at, quote, escapes)?))
    }

    /// The end of what is quoted from `start` on. A doubled quote begins the next token, which is as opaque
    /// as this one; so there is no need to know where it stands for a quote.
    fn quoted_end(&self, start: usize, quote: u8, escapes: bool) -> Result<usize, SqlError> {
        let mut at = start + 1;
        while let Some(found) = self.position(at, |byte| byte == quote || byte == b'\\') {
            if self.bytes[found] == quote {
                return Ok(found + 1);
            }
            let run_end = self
                .position(found, |byte| byte != b'\\')
                .unwrap_or(self.bytes.len());
            let escaping = (run_end - found) % 2 == 1;
            if escaping && self.byte(run_end) == quote && self.dialect == Dialect::Generic {
                return Err(self.unclear("a backslash before a quote"));
            }
            at = run_end + usize::from(escapes && escaping);
        }
        let what = if quote == b'\'' {
            "text"
        } else {
            "quoted name"
        };
        Err(self.endless(what, start))
    }

    fn triple_quoted(&self, start: usize, quote: u8) -> Result<(Kind, usize), SqlError> {
        let three = [quote; 3];
        let mut at = start + 3;
        while at < self.bytes.len() {
            match self.bytes[at] {
                b'\\' => at += 2,
                byte if byte == quote && self.bytes[at..].starts_with(&three) => {
                    return Ok((Kind::Quoted, at + 3));
                }
                _ => at += 1,
            }
        }
        Err(self.endless("text", start))
    }

    /// `[name]`.
    fn bracketed(&self, start: usize) -> Result<(Kind, usize), SqlError> {
        // SQL Server's `]]` begins no new token: what follows it is still the name.
        let mut at = start + 1;
        while let Some(found) = self.position(at, |byte| byte == b']') {
            if self.dialect == Dialect::MsSql && self.byte(found + 1) == b']' {
                at = found + 2;
                continue;
            }
            return Ok((Kind::Quoted, found + 1));
        }
        Err(self.endless("quoted name", start))
    }

    /// `$tag$ … $tag$`, a placeholder, or what the engine makes of it.
    fn dollar(&self, start: usize) -> Result<(Kind, usize), SqlError> {
        match self.dialect {
            Dialect::Postgres | Dialect::ClickHouse => {
                if let Some(end) = self.delimiter_end(start) {
                    let delimiter = &self.sql[start..end];
                    let found = self.sql[end..].find(delimiter);
                    let found = found.ok_or_else(|| self.endless("text", start))?;
                    return Ok((Kind::Quoted, end + found + delimiter.len()));
                }
                Ok((Kind::Foreign, self.word_end(start + 1)))
            }
            Dialect::Sqlite | Dialect::Generic | Dialect::Opaque => {
                Ok((Kind::Foreign, self.word_end(start + 1)))
            }
            Dialect::MySql => Ok((Kind::Word, self.word_end(start + 1))),
            Dialect::BigQuery | Dialect::MsSql => Ok((Kind::Sign, start + 1)),
        }
    }

    /// The end of `$tag$`. A tag begins as a word does and has no `$`.
    fn delimiter_end(&self, start: usize) -> Option<usize> {
        let first = self.byte(start + 1);
        if first != b'$' && !begins_word(first) {
            return None;
        }
        let ends = |byte: u8| !(begins_word(byte) || byte.is_ascii_digit());
        let end = self.position(start + 1, ends)?;
        (self.bytes[end] == b'$').then_some(end + 1)
    }

    /// `@name` is a variable or a placeholder; `@@name` asks the server about itself.
    fn at_sign(&self, start: usize) -> Result<(Kind, usize), SqlError> {
        let names = |byte: u8| begins_word(byte) || byte.is_ascii_digit();
        match self.byte(start + 1) {
            b'@' if self.dialect != Dialect::Sqlite => {
                let end = self.word_end(start + 2);
                self.quotes_nothing(start, end)?;
                Ok((Kind::Sign, end))
            }
            next if names(next) && self.dialect != Dialect::ClickHouse => {
                Ok((Kind::Foreign, self.word_end(start + 1)))
            }
            // MySQL takes quoted names here.
            b'\'' | b'"' | b'`' if self.dialect == Dialect::MySql => Ok((Kind::Foreign, start + 1)),
            _ => Ok((Kind::Sign, start + 1)),
        }
    }

    fn colon(&self, at: usize) -> Result<(Kind, usize), SqlError> {
        Ok(match self.byte(at + 1) {
            b':' => (Kind::Sign, at + 2),
            b'=' => (Kind::Assignment, at + 2),
            next if begins_word(next) && !self.is_blank(at + 1) => {
                (Kind::Parameter, self.word_end(at + 1))
            }
            _ => (Kind::Colon, at + 1),
        })
    }

    fn word(&self, start: usize) -> Result<(Kind, usize), SqlError> {
        // SQLite takes a byte order mark for a blank, at the beginning of a word.
        let mark = self.dialect == Dialect::Sqlite && self.sql[start..].starts_with('\u{feff}');
        if mark || self.is_blank(start) {
            return Ok((Kind::Space, start + self.char_len(start)));
        }
        let end = self.word_end(start);
        self.quotes_nothing(start, end)?;
        let escapes = self.dialect == Dialect::Postgres
            && matches!(&self.bytes[start..end], b"e" | b"E")
            && self.byte(end) == b'\'';
        match escapes {
            true => Ok((Kind::Quoted, self.escaped_text_end(end)?)),
            false => Ok((Kind::Word, end)),
        }
    }

    /// ClickHouse takes quotes of word processors for quotes, and a plain one between two of them for a letter.
    fn quotes_nothing(&self, start: usize, end: usize) -> Result<(), SqlError> {
        let is_clickhouse = self.dialect == Dialect::ClickHouse;
        match is_clickhouse && self.sql[start..end].contains(TYPOGRAPHIC_QUOTES) {
            true => Err(self.unclear("a typographic quote outside of quotes")),
            false => Ok(()),
        }
    }

    /// Where the characters of a word end, none included.
    fn word_end(&self, start: usize) -> usize {
        let mut at = start;
        while at < self.bytes.len() {
            let byte = self.bytes[at];
            if byte >= 0x80 {
                if self.is_blank(at) {
                    break;
                }
                at += self.char_len(at);
            } else if begins_word(byte) || byte.is_ascii_digit() || self.continues_word(byte) {
                at += 1;
            } else {
                break;
            }
        }
        at
    }

    fn continues_word(&self, byte: u8) -> bool {
        match self.dialect {
            Dialect::BigQuery => false,
            Dialect::MsSql => matches!(byte, b'$' | b'#' | b'@'),
            _ => byte == b'$',
        }
    }

    /// A blank beyond ASCII. PostgreSQL and SQLite take it for a letter; elsewhere it must not hide a keyword.
    fn is_blank(&self, at: usize) -> bool {
        self.bytes[at] >= 0x80
            && !self.dialect.holds_read_only()
            && self.sql[at..]
                .chars()
                .next()
                .is_some_and(|char| char.is_whitespace() || is_invisible(char))
    }

    fn char_len(&self, at: usize) -> usize {
        self.sql[at..].chars().next().map_or(1, char::len_utf8)
    }

    /// The end of PostgreSQL's `E'…'`, whose first quote stands at `start`. It goes on after blanks with a line
    /// end among them, and there a backslash escapes too.
    fn escaped_text_end(&self, start: usize) -> Result<usize, SqlError> {
        let mut start = start;
        loop {
            let mut end = self.quoted_end(start, b'\'', true)?;
            while self.byte(end) == b'\'' {
                end = self.quoted_end(end, b'\'', true)?;
            }
            match self.continuation(end) {
                Some(quote) => start = quote,
                None => return Ok(end),
            }
        }
    }

    /// The quote with which a text goes on in a later line.
    fn continuation(&self, end: usize) -> Option<usize> {
        let mut at = end;
        let mut line_ended = false;
        loop {
            match self.byte(at) {
                b'\n' | b'\r' => line_ended = true,
                b' ' | b'\t' | 0x0b | 0x0c => {}
                b'-' if self.byte(at + 1) == b'-' => {
                    at = self.position(at, |byte| matches!(byte, b'\n' | b'\r'))?;
                    continue;
                }
                b'\'' if line_ended => return Some(at),
                _ => return None,
            }
            at += 1;
        }
    }
}

/// No blank to Unicode, but to some engines: DuckDB takes a zero-width space and a byte order mark for one.
fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}
