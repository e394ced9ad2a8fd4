//! `generate_series` and `range` in `FROM`.
//!
//! What they are given DataFusion computes while it plans, when nothing of it can be replaced: it is computed here as all else is, and refused
//! where that is. And of moments a series is refused that DataFusion would end before its end.
//!
//! Start reading at [`check`] and [`Series`].

use crate::errors;
use crate::exact;
use crate::types;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{IntervalMonthDayNano, Schema};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Expr;
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{
    self, ExprWithAlias, FunctionArg, FunctionArgExpr, Statement, TableFactor, Visit, Visitor,
};
use souk_sdk::Error;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The functions that make a series.
pub const NAMES: [&str; 2] = ["generate_series", "range"];

/// Refuses a statement of which a table is given a number that its type cannot hold.
pub fn check(state: &SessionState, statement: &Statement) -> Result<(), Error> {
    let mut given = Given::default();
    let _: ControlFlow<()> = statement.visit(&mut given);
    for argument in given.0 {
        // What cannot be planned by itself is refused where the statement is planned.
        let Ok(expression) = planned(state, argument) else {
            continue;
        };
        if let Err(error) = evaluated(expression.as_ref()) {
            let error = errors::of_statement(&error);
            // Not what only a plan can compute, like the time.
            if errors::is_of_exactness(&error) {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// What tables are given, but for what is written down.
#[derive(Default)]
struct Given(Vec<ast::Expr>);

impl Visitor for Given {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        let arguments = match table {
            TableFactor::Table {
                args: Some(args), ..
            } => &args.args,
            TableFactor::Function { args, .. } => args,
            _ => return ControlFlow::Continue(()),
        };
        for argument in arguments {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))
            | FunctionArg::Named {
                arg: FunctionArgExpr::Expr(argument),
                ..
            } = argument
                && !matches!(argument, ast::Expr::Value(_))
            {
                self.0.push(argument.clone());
            }
        }
        ControlFlow::Continue(())
    }
}

fn planned(state: &SessionState, argument: ast::Expr) -> Planned<Arc<dyn PhysicalExpr>> {
    let schema = DFSchema::empty();
    let argument = ExprWithAlias {
        expr: argument,
        alias: None,
    };
    let expression = state.create_logical_expr_from_sql_expr(argument, &schema)?;
    let context = SimplifyContext::builder()
        .with_config_options(state.config_options().clone())
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let expression = exact::exact(simplifier.coerce(expression, &schema)?, &schema)?;
    // `now()` is written down before anything is computed.
    let expression = simplifier.simplify(expression)?;
    state.create_physical_expr(expression, &schema)
}

fn evaluated(expression: &dyn PhysicalExpr) -> Planned<()> {
    let one_row = RecordBatchOptions::new().with_row_count(Some(1));
    let schema = Arc::new(Schema::empty());
    let batch = RecordBatch::try_new_with_options(schema, Vec::new(), &one_row)?;
    expression.evaluate(&batch).map(|_| ())
}

/// DataFusion's function, but for series that it would end too early.
#[derive(Debug)]
pub struct Series(pub Arc<dyn TableFunctionImpl>);

impl TableFunctionImpl for Series {
    fn call_with_args(&self, args: TableFunctionArgs) -> Planned<Arc<dyn TableProvider>> {
        if let [
            Expr::Literal(start, _),
            _,
            Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(step)), _),
        ] = args.exprs()
        {
            arrives(start, *step).map_err(errors::through)?;
        }
        self.0.call_with_args(args)
    }
}

/// Whether such steps arrive at the end: DataFusion takes a step of which any part goes back for one that does, and a day that a zone's clocks
/// do not have, or have twice, for the last one.
fn arrives(start: &ScalarValue, step: IntervalMonthDayNano) -> Result<(), Error> {
    let parts = [
        i64::from(step.months),
        i64::from(step.days),
        step.nanoseconds,
    ];
    let goes_back = parts.iter().any(|part| *part < 0);
    if goes_back && parts.iter().any(|part| *part > 0) {
        return Err(errors::step_both_ways());
    }
    let has_days = step.months != 0 || step.days != 0;
    match start {
        ScalarValue::TimestampNanosecond(_, Some(zone)) if has_days && !types::is_fixed(zone) => {
            Err(errors::series_in_a_zone())
        }
        _ => Ok(()),
    }
}
