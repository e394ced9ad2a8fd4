//! `a IS DISTINCT FROM b AND c`: the parser takes all that follows for the other side, as if it were written `a IS DISTINCT FROM (b AND c)`. Here the
//! other side ends before an `AND` and an `OR`, as it does in PostgreSQL.
//!
//! Start reading at [`rewrite`].

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Statement, UnaryOperator, Value, visit_expressions_mut,
};
use std::ops::ControlFlow;

/// Each expression comes after those in it: of what stands last in one and has ended early only the first condition belongs to that one, too.
pub fn rewrite(statement: &mut Statement) {
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        let whole = std::mem::replace(expression, Expr::value(Value::Null));
        *expression = ended(whole);
        ControlFlow::Continue(())
    });
}

/// Conditions that stand last in an expression, of which only the first one belongs to it.
fn ended(expression: Expr) -> Expr {
    match expression {
        Expr::IsDistinctFrom(side, rest) => {
            with_first(*rest, joins, |other| Expr::IsDistinctFrom(side, other))
        }
        Expr::IsNotDistinctFrom(side, rest) => {
            with_first(*rest, joins, |other| Expr::IsNotDistinctFrom(side, other))
        }
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => with_first(*expr, joins, |condition| Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: condition,
        }),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => with_first(*right, joins, |right| Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        }),
        // What `AND` joins is one of those that `OR` does.
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Or,
            right,
        } => with_first(
            *right,
            |op| *op == BinaryOperator::Or,
            |right| Expr::BinaryOp {
                left,
                op: BinaryOperator::Or,
                right,
            },
        ),
        expression => expression,
    }
}

fn joins(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::And | BinaryOperator::Or)
}

/// The same with what is made of the first of the conditions between which such operators stand. There may be hundreds.
fn with_first(
    mut conditions: Expr,
    is_between: fn(&BinaryOperator) -> bool,
    made: impl FnOnce(Box<Expr>) -> Expr,
) -> Expr {
    let mut count = 0;
    let mut before = &conditions;
    while let Expr::BinaryOp { left, op, .. } = before
        && is_between(op)
    {
        before = left;
        count += 1;
    }
    let mut first = &mut conditions;
    for _ in 0..count {
        if let Expr::BinaryOp { left, .. } = first {
            first = left;
        }
    }
    let condition = std::mem::replace(first, Expr::value(Value::Null));
    *first = made(Box::new(condition));
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::ast::{Visit, Visitor};
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    fn parsed(condition: &str) -> Statement {
        let text = format!("SELECT 1 WHERE {condition}");
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, &text).unwrap();
        statements.remove(0)
    }

    /// What is computed, and of what.
    #[derive(Default)]
    struct Parts(Vec<String>);

    impl Visitor for Parts {
        type Break = ();

        fn pre_visit_expr(&mut self, part: &Expr) -> ControlFlow<()> {
            let part = part.to_string().replace(['(', ')'], "");
            // Of parentheses, too, what is in them follows.
            if self.0.last() != Some(&part) {
                self.0.push(part);
            }
            ControlFlow::Continue(())
        }
    }

    fn parts(statement: &Statement) -> Vec<String> {
        let mut parts = Parts::default();
        let _: ControlFlow<()> = statement.visit(&mut parts);
        parts.0
    }

    #[test]
    fn the_other_side_ends_before_and_and_or() {
        for (condition, wanted) in [
            ("a IS DISTINCT FROM b", "a IS DISTINCT FROM b"),
            ("a IS DISTINCT FROM b AND c", "(a IS DISTINCT FROM b) AND c"),
            (
                "a IS NOT DISTINCT FROM b + 1 OR c AND d OR e",
                "((a IS NOT DISTINCT FROM b + 1) OR (c AND d)) OR e",
            ),
            (
                "x AND a IS DISTINCT FROM b OR c AND d",
                "(x AND (a IS DISTINCT FROM b)) OR (c AND d)",
            ),
            (
                "x OR a IS DISTINCT FROM b AND c OR d",
                "(x OR ((a IS DISTINCT FROM b) AND c)) OR d",
            ),
            (
                "NOT a IS DISTINCT FROM b OR c",
                "(NOT (a IS DISTINCT FROM b)) OR c",
            ),
            (
                "a IS DISTINCT FROM b AND c IS NOT DISTINCT FROM d AND e",
                "((a IS DISTINCT FROM b) AND (c IS NOT DISTINCT FROM d)) AND e",
            ),
            (
                "a IS DISTINCT FROM (b AND c)",
                "a IS DISTINCT FROM (b AND c)",
            ),
            ("a OR b AND NOT c OR d", "(a OR (b AND (NOT c))) OR d"),
        ] {
            let mut statement = parsed(condition);
            rewrite(&mut statement);
            assert_eq!(parts(&statement), parts(&parsed(wanted)), "{condition}");
        }
    }
}
