//! What DataFusion reads and passes over, so that it would answer something else than it was asked: `varchar(3)` cuts nothing there, a sample
//! of a table is all of it, and rows are not numbered. The first is computed here, the others are refused.

use datafusion::sql::sqlparser::ast::{
    CharacterLength, DataType, Expr, Statement, TableFactor, Visit, Visitor, visit_expressions,
    visit_expressions_mut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use souk_sdk::Error;
use std::ops::ControlFlow;

/// What stands for the value until it is put there.
const VALUE: &str = "value";

/// Whether something is cut. What that is written as has another name.
pub fn cuts(statement: &Statement) -> bool {
    let found = visit_expressions(statement, |expression| match expression {
        Expr::Cast { data_type, .. } if length(data_type).is_some() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

pub fn rewrite(statement: &mut Statement) -> Result<(), Error> {
    if let ControlFlow::Break(error) = statement.visit(&mut Tables) {
        return Err(error);
    }
    let rewritten = visit_expressions_mut(statement, |expression| {
        if let Expr::Cast {
            expr, data_type, ..
        } = expression
            && let Some(length) = length(data_type)
        {
            match cut(expr, length) {
                Ok(cut) => *expression = cut,
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

struct Tables;

impl Visitor for Tables {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Error> {
        let what = match table {
            TableFactor::Table {
                sample: Some(_), ..
            }
            | TableFactor::Derived {
                sample: Some(_), ..
            } => "TABLESAMPLE",
            TableFactor::Table {
                with_ordinality: true,
                ..
            }
            | TableFactor::Function {
                with_ordinality: true,
                ..
            } => "WITH ORDINALITY",
            TableFactor::Table {
                version: Some(_), ..
            } => "a version of a table",
            _ => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(Error::source_failed(
            "not_implemented",
            format!("the statement asks for what DataFusion does not do: {what}"),
        ))
    }
}

/// How many characters a text is cut to.
fn length(kind: &DataType) -> Option<u64> {
    match kind {
        DataType::Varchar(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Char(Some(CharacterLength::IntegerLength { length, .. })) => Some(*length),
        _ => None,
    }
}

/// The first characters of a value as a text.
fn cut(value: &Expr, length: u64) -> Result<Expr, Error> {
    let text = format!("left(CAST({VALUE} AS text), {length})");
    let mut cut = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(&text)
        .and_then(|mut parser| parser.parse_expr())
        .map_err(|error| {
            Error::source_failed("syntax_error", "the length of a varchar cannot be read")
                .detail(error.to_string())
        })?;
    // Whatever is put there is not looked at again.
    let _: ControlFlow<()> = visit_expressions_mut(&mut cut, |expression| {
        if matches!(expression, Expr::Identifier(name) if name.value == VALUE) {
            expression.clone_from(value);
        }
        ControlFlow::Continue(())
    });
    Ok(cut)
}
