//! A statement's text as tokens: its words, and what stands in quotes, brackets and comments. Does not know which words a query may have.
//!
//! Where SQL Server's own reader could see another text than this one does, there is no token but a refusal. Start reading at [`token`].

use souk_sdk::Error;

/// It becomes `SS`, which no refused word has.
const SHARP_S: char = 'ß';

pub(super) enum Token<'a> {
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
pub(super) fn token(text: &str, at: usize) -> Result<(Token<'_>, usize), Error> {
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

pub(super) fn unclear(what: &str) -> Error {
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
