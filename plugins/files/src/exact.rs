//! What DataFusion computes with fewer digits than there are, computed with all of them, or refused.
//!
//! Whole numbers that outgrow their type begin anew at its other end; of a decimal that is written as a text whatever is more than its type
//! says is cut off, whichever function casts it; a date that is moved by hours loses them; a float of seconds beyond the years of
//! nanoseconds is the last moment of these; and of a moment that nanoseconds do not reach it finds no day and no month, and of one before 1970
//! that is the same in all rows the next second rather than its own. A half of a float, which PostgreSQL rounds to the even number, it rounds
//! away from zero. And a cast it takes off a column and puts on what that is compared with, by which `CAST(1.7 AS bigint) = 1` does not hold; by what
//! a cast makes of the bounds of a file it passes over pages, whatever order that has; and `ORDER BY CAST(at AS time)` it takes for one by `at`.
//! All are replaced in a plan whose types are aligned, by what `computed` has, and floats are made as `floats` has them. What is added up is in
//! `sums`; what can fail is kept from rows for which nobody asks in `guards`.
//!
//! Start reading at [`Exact`].

use crate::computed::lengths::of_whole_days;
use crate::computed::truncated::Granule;
use crate::computed::{Task, call, plain, task};
use crate::errors;
use crate::floats;
use crate::formats;
use crate::guards;
use crate::plans;
use crate::reaches;
use crate::types;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr::{ScalarFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, TryCast,
    WindowFrameBound, WindowFrameUnits,
};
use datafusion::optimizer::AnalyzerRule;

/// The rule by which a plan is made exact. Types have to be aligned by then: casts are among what it replaces.
#[derive(Debug)]
pub struct Exact;

impl AnalyzerRule for Exact {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Planned<LogicalPlan> {
        let plan = floats::as_read(plan, |column| call(Task::Level, vec![column]))?;
        let plan = plans::rewrite(plan, rewritten)?;
        plans::rewrite(plan, guards::given)
    }

    fn name(&self) -> &str {
        "exact"
    }
}

/// An expression by itself, made exact.
pub fn exact(expression: Expr, schema: &DFSchema) -> Planned<Expr> {
    expression
        .transform_up(|part| rewritten(part, schema))
        .data()
}

fn rewritten(part: Expr, schema: &DFSchema) -> Planned<Transformed<Expr>> {
    Ok(match part {
        Expr::BinaryExpr(step) if is_step(&step, schema) => Transformed::yes(appended(step)),
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_date_moved(&left, op, &right, schema) =>
        {
            Transformed::yes(call(Task::Move(op), vec![*left, *right]))
        }
        Expr::BinaryExpr(step) if is_float_step(&step, schema) => {
            Transformed::yes(leveled(Expr::BinaryExpr(BinaryExpr {
                left: unleveled(*step.left),
                op: step.op,
                right: unleveled(*step.right),
            })))
        }
        Expr::ScalarFunction(function) => called(function, schema)?,
        Expr::Negative(number) if is_whole(&number, schema) => {
            Transformed::yes(call(Task::Negate, vec![*number]))
        }
        Expr::Cast(Cast { expr, field })
            if is_text_of_decimal(&expr, field.data_type(), schema) =>
        {
            Transformed::yes(call(Task::Write(field.data_type().clone()), vec![*expr]))
        }
        Expr::TryCast(TryCast { expr, field })
            if is_text_of_decimal(&expr, field.data_type(), schema) =>
        {
            Transformed::yes(call(Task::Write(field.data_type().clone()), vec![*expr]))
        }
        Expr::Negative(number) if is_float(&number, schema) => {
            Transformed::yes(leveled(Expr::Negative(number)))
        }
        Expr::Cast(Cast { expr, field }) if may_have_sign(&expr, field.data_type(), schema) => {
            Transformed::yes(leveled(Expr::Cast(Cast { expr, field })))
        }
        Expr::TryCast(TryCast { expr, field })
            if may_have_sign(&expr, field.data_type(), schema) =>
        {
            Transformed::yes(leveled(Expr::TryCast(TryCast { expr, field })))
        }
        Expr::Cast(Cast { expr, field }) if is_lossy(&expr, field.data_type(), schema) => {
            Transformed::yes(opaque(Expr::Cast(Cast { expr, field })))
        }
        Expr::TryCast(TryCast { expr, field })
            if is_lossy(&expr, field.data_type(), schema)
                || may_be_null(&expr, field.data_type(), schema) =>
        {
            Transformed::yes(opaque(Expr::TryCast(TryCast { expr, field })))
        }
        Expr::Literal(value, notes) => match floats::leveled_value(&value) {
            Some(level) => Transformed::yes(Expr::Literal(level, notes)),
            None => Transformed::no(Expr::Literal(value, notes)),
        },
        Expr::WindowFunction(window) => {
            has_whole_days(&window.params, schema)?;
            Transformed::no(Expr::WindowFunction(window))
        }
        _ => Transformed::no(part),
    })
}

fn leveled(float: Expr) -> Expr {
    call(Task::Level, vec![float])
}

/// What is computed on with needs no leveling in between: `a + b - c` does not nest, however long it is.
fn unleveled(side: Expr) -> Box<Expr> {
    Box::new(match side {
        Expr::ScalarFunction(mut call) if is_leveled_step(&call) => {
            call.args.pop().unwrap_or_default()
        }
        side => side,
    })
}

fn is_leveled_step(call: &ScalarFunction) -> bool {
    let is_leveled = task(call).is_some_and(|task| *task == Task::Level);
    is_leveled && matches!(call.args.as_slice(), [Expr::BinaryExpr(_)])
}

fn is_float(number: &Expr, schema: &DFSchema) -> bool {
    match number {
        // The types of a long one need not be looked at again.
        Expr::ScalarFunction(call) if is_leveled_step(call) => true,
        _ => number.get_type(schema).is_ok_and(|kind| kind.is_floating()),
    }
}

fn is_float_step(step: &BinaryExpr, schema: &DFSchema) -> bool {
    let is_step = matches!(
        step.op,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
    );
    is_step && is_float(&step.right, schema) && is_float(&step.left, schema)
}

/// Whether a cast may make a float that is not level: of a text, and of a longer one that it makes nothing of. Lists of floats it may make of
/// lists of texts.
fn may_have_sign(value: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    floats::has_floats(to)
        && value.get_type(schema).is_ok_and(|kind| {
            let is_longer = kind.is_floating() && *to != DataType::Float64;
            is_longer || !kind.is_numeric()
        })
}

/// A cast of which nobody else knows that it is one.
fn opaque(cast: Expr) -> Expr {
    call(Task::Opaque, vec![cast])
}

/// Whether a cast makes one value of several, puts them into another order or moves them: what clocks show into a zone other than UTC, which
/// DataFusion takes off as if it did not. Of decimals of hundreds (`Decimal128(5, -2)`) it takes each, and divides by zero.
fn is_lossy(value: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    let Ok(kind) = value.get_type(schema) else {
        return false;
    };
    let is_lossy = match (plain(&kind), plain(to)) {
        (DataType::Timestamp(..), DataType::Time32(_) | DataType::Time64(_)) => true,
        (DataType::Timestamp(_, None), DataType::Timestamp(_, zone)) => {
            !reaches::is_utc(zone.as_ref())
        }
        (from, DataType::Boolean) => from.is_numeric(),
        (from, DataType::Binary | DataType::LargeBinary) => from.is_integer(),
        (from, to) => {
            let places = (places(from), places(to));
            matches!(places, (Some(from), Some(to)) if to < from || from < 0)
        }
    };
    is_lossy && !plans::is_of_no_row(value)
}

/// How many digits exact numbers have behind their point, and moments, which are numbers of their units.
fn places(kind: &DataType) -> Option<i8> {
    match kind {
        DataType::Decimal32(_, places)
        | DataType::Decimal64(_, places)
        | DataType::Decimal128(_, places)
        | DataType::Decimal256(_, places) => Some(*places),
        DataType::Timestamp(..) => Some(0),
        kind => kind.is_integer().then_some(0),
    }
}

/// Whether `TRY_CAST` may make NULL of a number or a moment. What it makes of texts is compared as what it is.
fn may_be_null(value: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    let kind = value.get_type(schema);
    let may_be = kind.is_ok_and(|kind| {
        let from = plain(&kind);
        (from.is_numeric() || from.is_temporal()) && !guards::holds(to, from)
    });
    may_be && !plans::is_of_no_row(value)
}

/// Refuses a frame over dates that is counted in hours, which it would lose.
fn has_whole_days(window: &WindowFunctionParams, schema: &DFSchema) -> Planned<()> {
    let frame = &window.window_frame;
    let order = window.order_by.first();
    let order = order.and_then(|order| order.expr.get_type(schema).ok());
    if frame.units != WindowFrameUnits::Range || order != Some(DataType::Date32) {
        return Ok(());
    }
    for bound in [&frame.start_bound, &frame.end_bound] {
        if let WindowFrameBound::Preceding(span) | WindowFrameBound::Following(span) = bound {
            of_whole_days(&ColumnarValue::Scalar(span.clone()))?;
        }
    }
    Ok(())
}

/// Whether it is one of those that go wrong, or stands behind one.
fn is_step(step: &BinaryExpr, schema: &DFSchema) -> bool {
    let goes_on = match step.op {
        Operator::Plus | Operator::Minus | Operator::Multiply => true,
        Operator::Divide | Operator::Modulo => steps(&step.left).is_some(),
        _ => false,
    };
    // What stands left may be long.
    goes_on && is_whole(&step.right, schema) && is_whole(&step.left, schema)
}

fn is_whole(number: &Expr, schema: &DFSchema) -> bool {
    // The types of a long one need not be looked at again.
    steps(number).is_some() || number.get_type(schema).is_ok_and(|kind| kind.is_integer())
}

fn is_text_of_decimal(value: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    let is_text = matches!(
        plain(to),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    is_text
        && value
            .get_type(schema)
            .is_ok_and(|kind| plain(&kind).is_decimal())
}

/// Whether a date is moved by an interval. DataFusion has a date of it again, and PostgreSQL a timestamp.
fn is_date_moved(left: &Expr, step: Operator, right: &Expr, schema: &DFSchema) -> bool {
    if !matches!(step, Operator::Plus | Operator::Minus) {
        return false;
    }
    let is_date = |side: &Expr| {
        side.get_type(schema)
            .is_ok_and(|kind| kind == DataType::Date32)
    };
    // What stands left may be long.
    match right.get_type(schema) {
        Ok(DataType::Interval(_)) => is_date(left),
        Ok(DataType::Date32) if step == Operator::Plus => {
            let left = left.get_type(schema);
            left.is_ok_and(|kind| matches!(kind, DataType::Interval(_)))
        }
        _ => false,
    }
}

/// A function that goes wrong: what stands for it, or the reason why nothing can.
fn called(function: ScalarFunction, schema: &DFSchema) -> Planned<Transformed<Expr>> {
    let kind = |value: &Expr| value.get_type(schema).ok();
    match (function.name(), function.args.first()) {
        ("arrow_cast" | "arrow_try_cast" | "cast_to_type" | "try_cast_to_type", Some(_)) => {
            Ok(cast_by_name(function, schema))
        }
        ("generate_series" | "range", Some(first)) => match kind(first) {
            Some(DataType::Timestamp(_, Some(zone))) if !types::is_fixed(&zone) => {
                Err(errors::through(errors::series_in_a_zone()))
            }
            Some(DataType::Date32) if function.args.len() == 3 => {
                let ScalarFunction { func, mut args } = function;
                let step = args.pop().map(|step| call(Task::Days, vec![step]));
                args.extend(step);
                let function = ScalarFunction::new_udf(func, args);
                Ok(Transformed::yes(Expr::ScalarFunction(function)))
            }
            _ => Ok(Transformed::no(Expr::ScalarFunction(function))),
        },
        ("round", Some(first)) if function.args.len() == 1 && is_float(first, schema) => {
            Ok(Transformed::yes(leveled(call(Task::Even, function.args))))
        }
        ("date_trunc", Some(_)) => Ok(truncated(function, schema)),
        ("to_char", Some(first)) if is_other_format(&function, kind(first)) => {
            Err(errors::through(errors::format_of_postgres()))
        }
        (_, Some(_)) if formats::loses_time(&function) => {
            Err(errors::through(errors::format_without_time()))
        }
        ("to_timestamp", Some(first)) if kind(first).is_some_and(|kind| kind.is_floating()) => {
            let ScalarFunction { func, mut args } = function;
            let seconds = args.remove(0);
            args.insert(0, call(Task::Seconds, vec![seconds]));
            let function = ScalarFunction::new_udf(func, args);
            Ok(Transformed::yes(Expr::ScalarFunction(function)))
        }
        _ => Ok(answered(function, schema)),
    }
}

/// A function as it is, its floats leveled.
fn answered(function: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let is_own = task(&function).is_some();
    let function = Expr::ScalarFunction(function);
    match !is_own && is_float(&function, schema) {
        true => Transformed::yes(leveled(function)),
        false => Transformed::no(function),
    }
}

/// Whether a moment is written in a format without a `%`, which DataFusion tells as it is: `YYYY-MM-DD` is PostgreSQL's.
fn is_other_format(function: &ScalarFunction, kind: Option<DataType>) -> bool {
    let Some(Expr::Literal(format, _)) = function.args.get(1) else {
        return false;
    };
    let is_moment = kind.is_none_or(|kind| !matches!(kind, DataType::Duration(_)));
    let format = format.try_as_str().flatten();
    is_moment && format.is_some_and(|format| !format.contains('%'))
}

/// The beginning of the day, the month or the like of a moment. In a zone that the statement itself has cast it to DataFusion finds it, in another
/// way where the moment is no column's.
fn truncated(function: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let ScalarFunction { func, mut args } = function;
    let kind = args.get(1).and_then(|moment| moment.get_type(schema).ok());
    let Some(DataType::Timestamp(_, zone)) = kind else {
        return Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args }));
    };
    let granule = match args.first() {
        Some(Expr::Literal(name, _)) => name.try_as_str().flatten().and_then(Granule::of),
        _ => None,
    };
    let granule = granule.filter(|_| zone.is_none_or(|zone| zone.eq_ignore_ascii_case("UTC")));
    let is_one = args.get(1).is_some_and(plans::is_of_no_row);
    match granule {
        Some(granule) => {
            let moment = args.split_off(1);
            Transformed::yes(call(Task::Truncate(granule), moment))
        }
        None if is_one => Transformed::yes(call(Task::Rows(func), args)),
        None => Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })),
    }
}

/// Arrow's own casts become casts only later, when none is replaced any more.
fn cast_by_name(function: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let to = match (function.name(), function.args.get(1)) {
        ("arrow_cast" | "arrow_try_cast", Some(Expr::Literal(name, _))) => {
            let name = name.try_as_str().flatten();
            name.and_then(|name| name.parse::<DataType>().ok())
        }
        ("cast_to_type" | "try_cast_to_type", Some(like)) => like.get_type(schema).ok(),
        _ => None,
    };
    let is_tried = matches!(function.name(), "arrow_try_cast" | "try_cast_to_type");
    let loses = match (&to, function.args.first()) {
        (Some(to), Some(value)) if !floats::has_floats(to) => {
            is_lossy(value, to, schema) || is_tried && may_be_null(value, to, schema)
        }
        _ => false,
    };
    if loses {
        return Transformed::yes(opaque(Expr::ScalarFunction(function)));
    }
    let mut values = function.args.iter();
    match (&to, values.next()) {
        (Some(to), Some(value)) if is_text_of_decimal(value, to, schema) => {
            Transformed::yes(call(Task::Write(to.clone()), vec![value.clone()]))
        }
        (Some(to), _) if floats::has_floats(to) => {
            Transformed::yes(leveled(Expr::ScalarFunction(function)))
        }
        _ => answered(function, schema),
    }
}

/// The steps of what was replaced already.
fn steps(number: &Expr) -> Option<&[Operator]> {
    let Expr::ScalarFunction(call) = number else {
        return None;
    };
    match task(call)? {
        Task::Compute(steps) => Some(steps),
        _ => None,
    }
}

/// One step more of what stands left of it: `a + b - c` does not nest, however long it is.
fn appended(step: BinaryExpr) -> Expr {
    let before = steps(&step.left).map(<[Operator]>::to_vec);
    let (mut steps, mut numbers) = match (before, *step.left) {
        (Some(steps), Expr::ScalarFunction(call)) => (steps, call.args),
        (_, first) => (Vec::new(), vec![first]),
    };
    steps.push(step.op);
    numbers.push(*step.right);
    call(Task::Compute(steps), numbers)
}
