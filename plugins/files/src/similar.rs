//! `SIMILAR TO '(a|b)%'`: DataFusion takes its pattern for a regular expression, which is found anywhere in a text and knows no `%`. It is
//! written as the one that says the same of the whole text.

use datafusion::sql::sqlparser::ast::{Expr, Statement, Value, visit_expressions_mut};
use souk_sdk::Error;
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::str::Chars;

/// What escapes unless the statement says otherwise.
const ESCAPE: char = '\\';
/// What says more than itself in a regular expression.
const SAY_MORE: &str = r"\.+*?()|[]{}^$#&-~";

pub fn rewrite(statement: &mut Statement) -> Result<(), Error> {
    let rewritten = visit_expressions_mut(statement, |expression| {
        let Expr::SimilarTo {
            pattern,
            escape_char,
            ..
        } = expression
        else {
            return ControlFlow::Continue(());
        };
        let escape = match escape_char.take().map(|escape| escape.value) {
            None => Some(ESCAPE),
            Some(Value::SingleQuotedString(text)) => text.chars().next(),
            Some(_) => return ControlFlow::Break(not_written()),
        };
        if let Expr::Value(value) = pattern.as_mut()
            && let Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) =
                &mut value.value
        {
            *text = regular(text, escape);
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(not_written())
    });
    match rewritten {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn not_written() -> Error {
    Error::source_failed(
        "pattern_not_written",
        "the pattern of SIMILAR TO has to stand in the statement as a text; LIKE and ~ take any",
    )
}

/// The regular expression of a pattern.
fn regular(pattern: &str, escape: Option<char>) -> String {
    let mut regular = "(?s)^(?:".to_owned();
    let mut signs = pattern.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            sign if Some(sign) == escape => literal(signs.next().unwrap_or(sign), &mut regular),
            '%' => regular.push_str(".*"),
            '_' => regular.push('.'),
            '[' => class(&mut signs, escape, &mut regular),
            '|' | '*' | '+' | '?' | '{' | '}' | '(' | ')' => regular.push(sign),
            sign => literal(sign, &mut regular),
        }
    }
    regular.push_str(")$");
    regular
}

/// The signs of `[a-z]`, of which some say more in a regular expression.
fn class(signs: &mut Peekable<Chars<'_>>, escape: Option<char>, regular: &mut String) {
    regular.push('[');
    if signs.next_if_eq(&'^').is_some() {
        regular.push('^');
    }
    while let Some(sign) = signs.next() {
        match sign {
            ']' => {
                regular.push(']');
                return;
            }
            // `[:alpha:]` is the same in both.
            '[' if signs.next_if_eq(&':').is_some() => {
                regular.push_str("[:");
                for sign in signs.by_ref() {
                    regular.push(sign);
                    if sign == ']' {
                        break;
                    }
                }
            }
            sign if Some(sign) == escape => {
                if let Some(sign) = signs.next() {
                    literal(sign, regular);
                }
            }
            '-' => regular.push('-'),
            sign => literal(sign, regular),
        }
    }
}

/// A sign that stands for itself.
fn literal(sign: char, regular: &mut String) {
    if SAY_MORE.contains(sign) {
        regular.push('\\');
    }
    regular.push(sign);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_regular_expressions() {
        for (pattern, escape, expected) in [
            ("a%", Some('\\'), "(?s)^(?:a.*)$"),
            ("(a|b)_", Some('\\'), "(?s)^(?:(a|b).)$"),
            ("a.b^$", Some('\\'), r"(?s)^(?:a\.b\^\$)$"),
            (r"\%", Some('\\'), "(?s)^(?:%)$"),
            ("!%%", Some('!'), "(?s)^(?:%.*)$"),
            (r"\", None, r"(?s)^(?:\\)$"),
            ("[^a-z&&0]{2,3}", Some('\\'), r"(?s)^(?:[^a-z\&\&0]{2,3})$"),
            ("[[:digit:]x]+", Some('\\'), "(?s)^(?:[[:digit:]x]+)$"),
        ] {
            assert_eq!(regular(pattern, escape), expected, "{pattern}");
        }
    }
}
