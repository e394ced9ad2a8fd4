//! Whose fault an error of the server's is, by its code. The server's text goes into `detail` only.

use souk_sdk::{Error, HttpResponse};

/// What stands before a text of the server's: `Code: 62. DB::Exception: …`.
const BEGIN: &str = "Code: ";
const MARK: &str = "DB::Exception:";
/// An exception behind the rows of an answer lies within so many bytes of its end.
const TAIL_BYTES: usize = 32 << 10;
const FENCE: &str = "__exception__";
/// What stands before the statement, and before the function that failed, in an error's text.
const IN_STATEMENT: &str = ": In scope ";
const IN_FUNCTION: &str = ": while executing ";
/// What stands before a value in an error's text, which is then quoted.
const QUOTING: [&str; 2] = ["string '", "element '"];

/// An error that the server told.
pub struct ServerError {
    pub code: u32,
    text: String,
}

impl ServerError {
    /// From a response that is no success; `None` where it was not ClickHouse that answered.
    pub fn of(response: &HttpResponse) -> Option<ServerError> {
        let text = String::from_utf8_lossy(&response.body);
        let told = response
            .header("x-clickhouse-exception-code")
            .and_then(|code| code.trim().parse().ok());
        let code = told.or_else(|| code_of(&text))?;
        Some(ServerError {
            code,
            text: text.trim().to_owned(),
        })
    }

    /// An error that stands behind the rows of an answer that began well. `tag` is the header that newer servers announce the end's fence with.
    pub fn behind(body: &[u8], tag: Option<&str>) -> Option<ServerError> {
        let tail = &body[body.len().saturating_sub(TAIL_BYTES)..];
        // As bytes: what stands there is values, mostly, and making a text of them would take longer than reading them.
        let begins = match tag {
            // The fence ends it as well, and hardly an answer ends so: no other is looked through.
            Some(tag) if tail.trim_ascii_end().ends_with(FENCE.as_bytes()) => {
                let fence = format!("{FENCE}\r\n{tag}\r\n");
                last(tail, fence.as_bytes())? + fence.len()
            }
            // Older servers end with the bare text, and a line's end that no value has behind it.
            None if tail.ends_with(b")\n") => {
                let at = last(tail, MARK.as_bytes())?;
                last(&tail[..at], BEGIN.as_bytes())?
            }
            _ => return None,
        };
        let text = String::from_utf8_lossy(&tail[begins..]);
        if tag.is_none() && code_of(&text).is_none() {
            return None;
        }
        let text = text.split(FENCE).next().unwrap_or_default().trim();
        Some(ServerError {
            // 1000 is what it calls an error of no kind.
            code: code_of(text).unwrap_or(1000),
            text: text.to_owned(),
        })
    }

    /// It may not be done: by the mode, or for want of a privilege.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.code, 164 | 497)
    }

    /// As [`ServerError::blame`], of a statement, whose session was opened with the connection's own database.
    pub fn of_statement(self, callers: Option<&[String]>) -> Error {
        let is_unknown_database = self.code == 81;
        let error = self.blame(callers);
        match is_unknown_database {
            true => Error {
                detail: error.detail,
                source_code: error.source_code,
                ..Error::not_found(
                    "unknown_database",
                    "the statement names a database that does not exist",
                )
            },
            false => error,
        }
    }

    /// The error of the contract. `callers`: the caller's values, of a statement that has any.
    pub fn blame(self, callers: Option<&[String]>) -> Error {
        let is_callers = callers.is_some_and(|values| self.is_of(values));
        let error = match self.code {
            _ if is_callers => {
                Error::invalid_request("invalid_value", "the database refused a value")
            }
            192 | 193 | 194 | 516 => Error::authentication(
                "password_rejected",
                "the database refused the user name, the password or the token, or does not know the user from this service's address (HOST)",
            ),
            195 => Error::authentication(
                "login_refused",
                "the database does not let this user in from this service's address: add it to the user's HOST",
            ),
            81 => Error::configuration(
                "unknown_database",
                "the database does not exist at the server: the connection's `database` must name one that does",
            ),
            452 => Error::configuration(
                "setting_refused",
                "the user's profile does not let souk bound its statements (max_execution_time, max_result_rows, …): loosen its constraints for this user, or give it a profile with readonly = 1",
            ),
            115 => Error::configuration(
                "unknown_setting",
                "the server does not know a setting that souk sends: it is too old",
            ),
            164 => Error::permission(
                "read_only",
                "the statement tries to change the database or its settings; connections are read-only",
            ),
            291 | 497 => Error::permission(
                "permission_denied",
                "the database user may not read what the statement names: GRANT SELECT on it",
            ),
            60 => Error::not_found(
                "unknown_table",
                "the statement names a table that does not exist",
            ),
            46 => Error::not_found(
                "unknown_function",
                "the statement names a function that does not exist",
            ),
            8 | 16 | 47 => Error::source_failed(
                "unknown_column",
                "the statement names a column that does not exist",
            ),
            62 => Error::source_failed("syntax_error", "the database cannot read the statement"),
            159 | 160 => Error::timeout(
                "statement_timeout",
                "the statement runs longer than the database allows",
            ),
            394 | 735 => Error::timeout("cancelled", "the statement was cancelled at the database"),
            158 | 307 => Error::limit_exceeded(
                "scan_limit",
                "the statement reads more rows or bytes than the database allows",
            ),
            396 => Error::limit_exceeded("rows_limit", "the result is larger than is allowed"),
            241 | 173 | 777 | 778 => Error::unavailable(
                "out_of_memory",
                "the statement needs more memory than the database has or allows",
            ),
            // Of the user, of the server's processors, of its connections.
            202 | 700 | 745 | 762 => Error::unavailable(
                "too_many_queries",
                "the database runs as many statements as it takes",
            ),
            201 => Error::unavailable(
                "quota_exhausted",
                "the database user has used up what the database allows it",
            ),
            203 | 209 | 210 | 279 => Error::unavailable(
                "connection_lost",
                "the database lost a connection of its own",
            ),
            236 => Error::unavailable("shutting_down", "the database stopped the statement"),
            242 => Error::unavailable("table_unavailable", "a table cannot be read at the moment"),
            6 | 25 | 27 | 38 | 41 | 69 | 70 | 72 | 117 | 131 | 153 | 376 | 407 | 427 | 440
            | 467 | 675 | 676 | 691 => Error::source_failed(
                "invalid_value",
                "the statement computes a value that the database refuses",
            ),
            _ => Error::source_failed("sql_error", "the database could not run the statement"),
        };
        error.detail(self.text).source_code(self.code.to_string())
    }

    /// Whether it is one of the caller's values that the server did not take. Where the server tells no value it is: what a statement computes
    /// without them its seller has seen fail.
    fn is_of(&self, values: &[String]) -> bool {
        match self.code {
            // A parameter that is none of its type, a text that is no time, a number beyond a bound.
            27 | 38 | 41 | 69 | 70 | 72 | 131 | 407 | 440 | 457 => true,
            6 | 53 | 691 => self.quoted().is_none_or(|quoted| {
                let mut values = values.iter();
                values.any(|value| value.contains(&quoted))
            }),
            // A pattern, a document, a key, an address, a zone, a unit: the value stands in the text as it is.
            25 | 36 | 117 | 376 | 427 | 467 | 675 | 676 => {
                values.iter().any(|value| names(self.reason(), value))
            }
            153 => values.iter().any(|value| is_zero(value)),
            _ => false,
        }
    }

    /// The text without the statement, in which all values stand.
    fn reason(&self) -> &str {
        let reason = self.text.split(IN_STATEMENT).next().unwrap_or_default();
        reason.split(IN_FUNCTION).next().unwrap_or_default()
    }

    /// The value that could not be read: `Cannot parse string 'x' as Int32`, `Unknown element 'x' for enum`.
    fn quoted(&self) -> Option<String> {
        let mut begins = QUOTING.iter();
        let (_, rest) = begins.find_map(|begin| self.reason().split_once(*begin))?;
        let (mut quoted, mut chars) = (String::new(), rest.chars());
        loop {
            match chars.next()? {
                '\'' => return Some(quoted),
                '\\' => quoted.push(match chars.next()? {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    '0' => '\0',
                    other => other,
                }),
                other => quoted.push(other),
            }
        }
    }
}

/// Whether a text has this value in it, as a word or words of its own. A number says nothing: arguments and columns have numbers, too.
fn names(text: &str, value: &str) -> bool {
    let is_part = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    let is_joined = |char: Option<char>, beside: Option<char>| is_part(char) && is_part(beside);
    let mut places = text.match_indices(value);
    let is_telling = !value.is_empty() && value.parse::<f64>().is_err();
    is_telling
        && places.any(|(at, found)| {
            let (before, behind) = (&text[..at], &text[at + found.len()..]);
            let (first, last) = (found.chars().next(), found.chars().next_back());
            !is_joined(before.chars().next_back(), first) && !is_joined(behind.chars().next(), last)
        })
}

/// Whether a value is `0`, however it is written.
fn is_zero(value: &str) -> bool {
    !value.is_empty() && value.trim_matches(['-', '0', '.']).is_empty()
}

/// The last place where `wanted`, which is not empty, stands in an answer. Of bytes that are none of it most are not looked at (Horspool's search,
/// from the end).
fn last(answer: &[u8], wanted: &[u8]) -> Option<usize> {
    // How much further ahead it may stand at the earliest, by the byte that is where it would begin.
    let mut steps = [wanted.len(); 256];
    for (place, byte) in wanted.iter().enumerate().skip(1).rev() {
        steps[usize::from(*byte)] = place;
    }
    let mut begin = answer.len().checked_sub(wanted.len())?;
    loop {
        let found = &answer[begin..begin + wanted.len()];
        if found == wanted {
            return Some(begin);
        }
        begin = begin.checked_sub(steps[usize::from(found[0])])?;
    }
}

/// The number behind `Code: `.
fn code_of(text: &str) -> Option<u32> {
    let digits = text.trim_start().strip_prefix(BEGIN)?;
    let end = digits.find(|char: char| !char.is_ascii_digit())?;
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::ErrorClass;

    /// A value that was refused is blamed on who gave it: by what the engine tells of it, which here is as it was told.
    #[test]
    fn values_are_blamed_on_who_gave_them() {
        let class = |code, text: &str, callers: Option<&[&str]>| {
            let error = ServerError {
                code,
                text: format!("Code: {code}. DB::Exception: {text}"),
            };
            let callers: Option<Vec<String>> =
                callers.map(|values| values.iter().map(|value| (*value).to_owned()).collect());
            error.blame(callers.as_deref()).class
        };
        for (code, text, values) in [
            (
                6,
                "Cannot parse string 'many' as Int32: syntax error at begin of string",
                ["many"],
            ),
            (
                6,
                "Cannot parse string 'it\\'s\\n' as Int32: syntax error",
                ["it's\n"],
            ),
            (
                6,
                "Cannot parse string 'x' as Int32: syntax error",
                ["1,x,3"],
            ),
            (
                53,
                "Cannot convert string 'x' to type Int32: while executing function equals",
                ["x"],
            ),
            (
                691,
                "Unknown element 'nowhere' for enum: In scope SELECT 1",
                ["nowhere"],
            ),
            (
                376,
                "Cannot parse uuid nonsense: Cannot parse UUID from String",
                ["nonsense"],
            ),
            (
                427,
                "OptimizedRegularExpression: cannot compile re2: (, error: missing ): (.",
                ["("],
            ),
            (
                25,
                "Invalid escape sequence at the end of LIKE pattern 'a\\': In scope SELECT 1",
                ["a\\"],
            ),
            (
                36,
                "Cannot load time zone Nowhere/Land: In scope SELECT 1",
                ["Nowhere/Land"],
            ),
            (
                41,
                "Cannot read DateTime: unexpected word: In scope SELECT 1",
                ["nonsense"],
            ),
            (
                153,
                "Division by zero: In scope SELECT 10 % _CAST(0, 'Int64')",
                ["0"],
            ),
            (
                457,
                "Value x cannot be parsed as Int64 for query parameter 'p1'",
                ["x"],
            ),
        ] {
            let blamed = class(code, text, Some(&values));
            assert_eq!(blamed, ErrorClass::InvalidRequest, "{text}");
            assert_ne!(
                class(code, text, None),
                ErrorClass::InvalidRequest,
                "{text}"
            );
        }
        for (code, text, values) in [
            (
                6,
                "Cannot parse string 'Ann' as Int32: In scope SELECT toInt32(name), 'Bob'",
                ["Bob"],
            ),
            (
                36,
                "Dictionary (`nothing`) not found: In scope SELECT dictGet('nothing', 'a', 'b')",
                ["b"],
            ),
            (36, "Argument 2 of a function is none", ["2"]),
            (
                427,
                "OptimizedRegularExpression: cannot compile re2: (, error: missing ): (.",
                ["it"],
            ),
            (
                153,
                "Division by zero: while executing 'FUNCTION intDiv(1, pay), 0'",
                ["50"],
            ),
            (395, "closed: x", ["x"]),
            (
                43,
                "Illegal types Int32 and String of arguments of function plus",
                ["x"],
            ),
        ] {
            let blamed = class(code, text, Some(&values));
            assert_eq!(blamed, ErrorClass::Source, "{text}");
        }
    }

    /// What passes by itself is told as that.
    #[test]
    fn what_passes_is_nobodys_mistake() {
        for (code, class, name) in [
            (202, ErrorClass::Unavailable, "too_many_queries"),
            (700, ErrorClass::Unavailable, "too_many_queries"),
            (745, ErrorClass::Unavailable, "too_many_queries"),
            (762, ErrorClass::Unavailable, "too_many_queries"),
            (778, ErrorClass::Unavailable, "out_of_memory"),
            (203, ErrorClass::Unavailable, "connection_lost"),
            (735, ErrorClass::Timeout, "cancelled"),
        ] {
            let error = ServerError {
                code,
                text: format!("Code: {code}. DB::Exception: told"),
            };
            let error = error.blame(Some(&["told".to_owned()]));
            assert_eq!((error.class, error.code.as_str()), (class, name), "{code}");
        }
    }

    /// Who sets a user up learns what it lacks.
    #[test]
    fn what_a_user_lacks_is_named() {
        for (code, class, helps) in [
            (516, ErrorClass::Authentication, "HOST"),
            (195, ErrorClass::Authentication, "HOST"),
            (81, ErrorClass::Configuration, "`database`"),
            (497, ErrorClass::Permission, "GRANT SELECT"),
        ] {
            let error = ServerError {
                code,
                text: format!("Code: {code}. DB::Exception: told"),
            };
            let error = error.blame(None);
            assert_eq!(error.class, class, "{code}");
            assert!(error.message.contains(helps), "{code}: {}", error.message);
        }
    }

    #[test]
    fn an_error_behind_rows_is_found() {
        let fenced = b"\x01\x02rows__exception__\r\nabcdefghijklmnop\r\nCode: 395. DB::Exception: x. (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO) (version 26.9)\n76 abcdefghijklmnop\r\n__exception__\r\n";
        let error = ServerError::behind(fenced, Some("abcdefghijklmnop")).unwrap();
        assert_eq!(error.code, 395);
        assert!(!error.text.contains("__"), "{}", error.text);
        // Another answer's fence is a value.
        assert!(ServerError::behind(fenced, Some("zzzzzzzzzzzzzzzz")).is_none());
        // A value may end like one, too.
        let value = b"\x01\x02rows__exception__\r\n";
        assert!(ServerError::behind(value, Some("abcdefghijklmnop")).is_none());
        let bare = b"\x01\x02Code: 159. DB::Exception: Timeout exceeded (version 20.8.1 (official build))\n";
        assert_eq!(ServerError::behind(bare, None).unwrap().code, 159);
        assert!(ServerError::behind(b"Code: 159. DB::Exception: a value", None).is_none());
        assert!(ServerError::behind(b"DB::Exception: (a value)\n", None).is_none());
        assert!(ServerError::behind(b"Code: x DB::Exception: (a value)\n", None).is_none());
        assert!(ServerError::behind(b"", None).is_none());
        assert!(ServerError::behind(b"", Some("abcdefghijklmnop")).is_none());
    }

    /// Wherever it stands, and however much it looks like what stands beside it.
    #[test]
    fn the_last_place_is_found() {
        for wanted in ["a", "ab", "aab", "aba", "abcab", "__e__"] {
            for before in ["", "a", "b", "ab", "_", "abcabcaab", "__e_"] {
                for between in ["", "a", "ab", "__e", "\u{e9}"] {
                    for after in ["", "a", "b", "ca", "_", "bcabcab"] {
                        let answer = format!("{before}{wanted}{between}{wanted}{after}");
                        let found = last(answer.as_bytes(), wanted.as_bytes());
                        assert_eq!(found, answer.rfind(wanted), "{answer} {wanted}");
                    }
                    let without = format!("{before}{between}");
                    let found = last(without.as_bytes(), wanted.as_bytes());
                    assert_eq!(found, without.rfind(wanted), "{without} {wanted}");
                }
            }
        }
    }
}
