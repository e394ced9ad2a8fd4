//! What DataFusion computes with fewer digits than there are, computed with all of them, or refused.
//!
//! Whole numbers that outgrow their type begin anew at its other end; of a decimal that is written as a text whatever is more than its type
//! says is cut off, whichever function casts it; a date that is moved by hours loses them; and a float of seconds beyond the years of
//! nanoseconds is the last moment of these. All are replaced in a plan whose types are aligned. What is added up is in `sums`.
//!
//! Start reading at [`Exact`].

use crate::errors;
use crate::plans;
use crate::types;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Datum};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, neg, rem, sub};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Float64Type, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;
use souk_sdk::Error;
use std::fmt::Write as _;
use std::sync::Arc;

/// The rule by which a plan is made exact. Types have to be aligned by then: casts are among what it replaces.
#[derive(Debug)]
pub struct Exact;

impl AnalyzerRule for Exact {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Planned<LogicalPlan> {
        plans::rewrite(plan, rewritten)
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
        _ => Transformed::no(part),
    })
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

/// What a dictionary is of.
fn plain(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, of) => plain(of),
        _ => kind,
    }
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
            _ => Ok(Transformed::no(Expr::ScalarFunction(function))),
        },
        ("to_timestamp", Some(first)) if kind(first).is_some_and(|kind| kind.is_floating()) => {
            let ScalarFunction { func, mut args } = function;
            let seconds = args.remove(0);
            args.insert(0, call(Task::Seconds, vec![seconds]));
            let function = ScalarFunction::new_udf(func, args);
            Ok(Transformed::yes(Expr::ScalarFunction(function)))
        }
        _ => Ok(Transformed::no(Expr::ScalarFunction(function))),
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
    let mut values = function.args.iter();
    match (to, values.next()) {
        (Some(to), Some(value)) if is_text_of_decimal(value, &to, schema) => {
            Transformed::yes(call(Task::Write(to), vec![value.clone()]))
        }
        _ => Transformed::no(Expr::ScalarFunction(function)),
    }
}

/// The steps of what was replaced already.
fn steps(number: &Expr) -> Option<&[Operator]> {
    let Expr::ScalarFunction(call) = number else {
        return None;
    };
    match &call.func.inner().downcast_ref::<Function>()?.task {
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

fn call(task: Task, values: Vec<Expr>) -> Expr {
    let signature = Signature::variadic_any(Volatility::Immutable);
    let function = Arc::new(ScalarUDF::from(Function { task, signature }));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, values))
}

/// What is done instead.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Task {
    /// Whole numbers of one type, from left to right.
    Compute(Vec<Operator>),
    Negate,
    /// A decimal as a text of this type.
    Write(DataType),
    /// A date that is moved by whole days, to and fro.
    Move(Operator),
    /// A float as it is, within the seconds that nanoseconds reach.
    Seconds,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    task: Task,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        match self.task {
            Task::Compute(_) => "compute",
            Task::Negate => "negate",
            Task::Write(_) => "write",
            Task::Move(_) => "move",
            Task::Seconds => "seconds",
        }
    }

    /// As that is called which it stands for.
    fn schema_name(&self, values: &[Expr]) -> Planned<String> {
        let mut names = values.iter().map(|value| value.schema_name().to_string());
        let first = names.next().unwrap_or_default();
        Ok(match &self.task {
            Task::Compute(steps) => {
                let mut name = first;
                for (step, number) in steps.iter().zip(names) {
                    write!(name, " {step} {number}")?;
                }
                name
            }
            Task::Negate => format!("(- {first})"),
            Task::Write(_) | Task::Seconds => first,
            Task::Move(step) => format!("{first} {step} {}", names.next().unwrap_or_default()),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Planned<DataType> {
        Ok(match (&self.task, kinds.first()) {
            (Task::Write(kind), _) => kind.clone(),
            (Task::Move(_), _) => DataType::Date32,
            (_, Some(kind)) => kind.clone(),
            (_, None) => DataType::Null,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Planned<FieldRef> {
        let kinds = args.arg_fields.iter().map(|field| field.data_type());
        let kinds: Vec<DataType> = kinds.cloned().collect();
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        let field = Field::new(self.name(), self.return_type(&kinds)?, is_nullable);
        Ok(Arc::new(field))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Planned<ColumnarValue> {
        let mut values = args.args.into_iter();
        let Some(first) = values.next() else {
            return Err(errors::through(nothing()));
        };
        match &self.task {
            Task::Compute(steps) => {
                let mut steps = steps.iter().zip(values);
                steps.try_fold(first, |so_far, (step, number)| {
                    computed(*step, &so_far, &number)
                })
            }
            Task::Negate => each(&first, |numbers| Ok(neg(numbers)?)),
            Task::Write(kind) => each(&first, |decimals| {
                let decimals = cast(decimals, plain(decimals.data_type()))?;
                let texts = types::texts(&decimals).ok_or_else(|| errors::through(nothing()))?;
                Ok(cast(&texts, kind)?)
            }),
            Task::Move(step) => {
                let second = values.next();
                let second = second.ok_or_else(|| errors::through(nothing()))?;
                of_whole_days(&first)?;
                of_whole_days(&second)?;
                computed(*step, &first, &second)
            }
            Task::Seconds => each(&first, |seconds| {
                let floats = cast(seconds, &DataType::Float64)?;
                let mut floats = floats.as_primitive::<Float64Type>().iter().flatten();
                match floats.all(|float| float.abs() < SECONDS_END) {
                    true => Ok(seconds.clone()),
                    false => Err(errors::through(errors::moment_out_of_range())),
                }
            }),
        }
    }

    fn evaluate_bounds(&self, values: &[&Interval]) -> Planned<Interval> {
        let kinds: Vec<DataType> = values.iter().map(|value| value.data_type()).collect();
        Interval::make_unbounded(&self.return_type(&kinds)?)
    }
}

/// Seconds from 1970 to the end of what 64 bits of nanoseconds hold.
const SECONDS_END: f64 = 9_223_372_036.0;
const NANOS_A_DAY: i64 = 86_400_000_000_000;
const MILLIS_A_DAY: i32 = 86_400_000;

/// Refuses intervals of which a date would lose something.
fn of_whole_days(value: &ColumnarValue) -> Planned<()> {
    let array = match value {
        ColumnarValue::Array(array) => array.clone(),
        ColumnarValue::Scalar(value) => value.to_array()?,
    };
    let is_whole = match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
            let mut intervals = intervals.iter().flatten();
            intervals.all(|interval| interval.nanoseconds % NANOS_A_DAY == 0)
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let intervals = array.as_primitive::<IntervalDayTimeType>();
            let mut intervals = intervals.iter().flatten();
            intervals.all(|interval| interval.milliseconds % MILLIS_A_DAY == 0)
        }
        _ => true,
    };
    match is_whole {
        true => Ok(()),
        false => Err(errors::through(errors::date_with_hours())),
    }
}

type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

fn computed(step: Operator, left: &ColumnarValue, right: &ColumnarValue) -> Planned<ColumnarValue> {
    let kernel: Kernel = match step {
        Operator::Plus => add,
        Operator::Minus => sub,
        Operator::Multiply => mul,
        Operator::Divide => div,
        _ => rem,
    };
    apply(left, right, kernel)
}

/// The same of a column, or of a value that is that of each row.
fn each(
    value: &ColumnarValue,
    of: impl Fn(&ArrayRef) -> Planned<ArrayRef>,
) -> Planned<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(of(array)?),
        ColumnarValue::Scalar(value) => {
            let array = of(&value.to_array()?)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
        }
    })
}

fn nothing() -> Error {
    Error::internal("no_number", "the connector computes with what is no number")
}
