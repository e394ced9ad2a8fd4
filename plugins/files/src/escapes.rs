//! `LIKE … ESCAPE '!'`: DataFusion's patterns are escaped by a backslash only, so that one with another sign is written with that.

use datafusion::sql::sqlparser::ast::{
    Expr, Statement, Value, ValueWithSpan, visit_expressions_mut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use souk_sdk::Error;
use std::ops::ControlFlow;

/// What stands for an escaped sign while the others become backslashes; patterns do not have it.
const HELD: char = '\u{1}';
/// What stands for the pattern until it is put there: written and read again it might be another one.
const PATTERN: &str = "pattern";

pub fn rewrite(statement: &mut Statement) -> Result<(), Error> {
    let rewritten = visit_expressions_mut(statement, |expression| {
        if let Expr::Like {
            pattern,
            escape_char,
            ..
        }
        | Expr::ILike {
            pattern,
            escape_char,
            ..
        } = expression
            && let Some(escape) = escape_char.as_ref().and_then(sign)
        {
            match translated(pattern, escape) {
                Ok(translated) => (**pattern, *escape_char) = (translated, None),
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    });
    match rewritten {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// A sign that is not a backslash.
fn sign(escape: &ValueWithSpan) -> Option<char> {
    let Value::SingleQuotedString(text) = &escape.value else {
        return None;
    };
    let mut signs = text.chars();
    let first = signs.next().filter(|first| *first != '\\')?;
    signs.next().is_none().then_some(first)
}

/// The pattern with its backslashes escaped, and backslashes in place of the sign.
fn translated(pattern: &Expr, sign: char) -> Result<Expr, Error> {
    let sign = if sign == '\'' {
        "''".to_owned()
    } else {
        sign.to_string()
    };
    let text = format!(
        r"replace(replace(replace(replace({PATTERN}, '\', '\\'), '{sign}{sign}', '{HELD}'), '{sign}', '\'), '{HELD}', '{sign}')"
    );
    let mut translated = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(&text)
        .and_then(|mut parser| parser.parse_expr())
        .map_err(|error| {
            Error::source_failed("syntax_error", "the pattern of a LIKE cannot be read")
                .detail(error.to_string())
        })?;
    // Whatever is put there is not looked at again.
    let _: ControlFlow<()> = visit_expressions_mut(&mut translated, |expression| {
        if matches!(expression, Expr::Identifier(name) if name.value == PATTERN) {
            expression.clone_from(pattern);
        }
        ControlFlow::Continue(())
    });
    Ok(translated)
}
