//! A statement's text: where its placeholders are, and that it is one that reads.
//!
//! The second lock only: the server holds read-only itself. That a text ends with its first statement matters for who pays, too: what
//! follows could answer in its place.

use souk_sdk::{Error, Value};

use crate::parameters;

/// The text with a typed parameter, `{p1:Int64}`, for each `?` of the host's.
pub fn prepare(text: &str, values: &[Value]) -> Result<String, Error> {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + 24 * values.len());
    let (mut at, mut copied, mut bound) = (0, 0, 0);
    let (mut first_word, mut ended) = (None, false);
    while at < bytes.len() {
        let end = token_end(text, at)?;
        let token = &text[at..end];
        let is_blank = is_blank(token);
        if ended && !is_blank {
            return Err(not_one_query());
        }
        match token {
            ";" => {
                out.push_str(&text[copied..at]);
                copied = end;
                ended = true;
            }
            "?" => {
                out.push_str(&text[copied..at]);
                copied = end;
                if let Some(value) = values.get(bound) {
                    let name = parameters::type_of(value)
                        .map_err(|wanted| parameters::refused(bound, wanted))?;
                    // A blank keeps it apart from a word before it.
                    out.push_str(&format!(" {{p{}:{name}}}", bound + 1));
                }
                bound += 1;
            }
            _ => {}
        }
        if first_word.is_none() && !is_blank && token != "(" {
            first_word = Some(token);
        }
        at = end;
    }
    if !ended {
        out.push_str(&text[copied..]);
    }
    let reads = first_word.is_some_and(|word| {
        ["select", "with"]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known))
    });
    if !reads {
        return Err(not_one_query());
    }
    if bound != values.len() {
        let given = values.len();
        return Err(Error::invalid_request(
            "parameter_count",
            format!("the statement takes {bound} parameters, {given} were given"),
        ));
    }
    Ok(out)
}

fn not_one_query() -> Error {
    Error::permission(
        "read_only",
        "connections are read-only: the statement must be one query, which begins with SELECT or WITH",
    )
}

fn is_blank(token: &str) -> bool {
    token.starts_with(|first: char| first.is_ascii_whitespace() || first == '\u{b}')
        || token.starts_with("--")
        || token.starts_with("/*")
        || token.starts_with('#')
}

/// Where the token ends that begins at `at`: a comment, what is quoted, a word, or a sign.
fn token_end(text: &str, at: usize) -> Result<usize, Error> {
    let bytes = text.as_bytes();
    let next = bytes.get(at + 1).copied().unwrap_or_default();
    let line = || text[at..].find('\n').map_or(text.len(), |end| at + end);
    Ok(match bytes[at] {
        b'-' if next == b'-' => line(),
        b'#' if matches!(next, b' ' | b'!') => line(),
        b'/' if next == b'*' => match text[at + 2..].find("*/") {
            Some(end) => at + 2 + end + 2,
            None => return Err(endless()),
        },
        quote @ (b'\'' | b'"' | b'`') => quoted_end(bytes, at, quote)?,
        b'$' => match heredoc_end(text, at) {
            Some(end) => end,
            None => at + 1,
        },
        byte if is_word(byte) => {
            let rest = &bytes[at..];
            let end = rest
                .iter()
                .position(|byte| !is_word(*byte) && *byte != b'$');
            at + end.unwrap_or(rest.len())
        }
        _ => at + 1,
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// A doubled quote begins the next token, which is quoted as well.
fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> Result<usize, Error> {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if *byte == quote => return Ok(at + 1),
            _ => at += 1,
        }
    }
    Err(endless())
}

/// `$tag$ … $tag$`.
fn heredoc_end(text: &str, start: usize) -> Option<usize> {
    let rest = &text[start + 1..];
    let tag = rest.find('$')?;
    if !rest[..tag].bytes().all(is_word) {
        return None;
    }
    let delimiter = &text[start..start + tag + 2];
    let body = start + delimiter.len();
    let end = text[body..].find(delimiter)?;
    Some(body + end + delimiter.len())
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
            ("with 1 as grüße$? select ?;", "with 1 as grüße$? select ?;"),
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
