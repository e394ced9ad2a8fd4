//! The functions that stand in a plan for what DataFusion computes with fewer digits than there are. Where they stand `exact` decides.
//!
//! Start reading at [`Task`].

use crate::errors;
use crate::floats;
use crate::types;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Datum};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, neg, rem, sub};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Float64Type, Int64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, TimeUnit,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;
use souk_sdk::Error;
use std::fmt::Write as _;
use std::sync::Arc;

/// A call of the function that does this.
pub fn call(task: Task, values: Vec<Expr>) -> Expr {
    let signature = Signature::variadic_any(Volatility::Immutable);
    let function = Arc::new(ScalarUDF::from(Function { task, signature }));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, values))
}

/// What a call does, if it is one of a function here.
pub fn task(call: &ScalarFunction) -> Option<&Task> {
    let function = call.func.inner().downcast_ref::<Function>()?;
    Some(&function.task)
}

/// What is done instead.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Whole numbers of one type, from left to right.
    Compute(Vec<Operator>),
    Negate,
    /// A decimal as a text of this type.
    Write(DataType),
    /// A date that is moved by whole days, to and fro.
    Move(Operator),
    /// A float as it is, within the seconds that nanoseconds reach.
    Seconds,
    /// Floats as they are, without the sign of a zero and of what is no number.
    Level,
    /// An interval as it is, of whole days.
    Days,
    /// A span of time in nanoseconds, of which a day has 24 hours and a month 30 days, as PostgreSQL compares spans.
    Span,
    /// What this function makes of a column, of a second value that is none.
    Rows(Arc<ScalarUDF>),
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
            Task::Level => "level",
            Task::Days => "days",
            Task::Span => "span",
            Task::Rows(_) => "rows",
        }
    }

    /// As that is called which it stands for.
    fn schema_name(&self, values: &[Expr]) -> Planned<String> {
        if let Task::Rows(function) = &self.task {
            return function.schema_name(values);
        }
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
            Task::Write(_)
            | Task::Seconds
            | Task::Level
            | Task::Days
            | Task::Span
            | Task::Rows(_) => first,
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
            (Task::Span, _) => NANOS,
            (Task::Rows(_), _) => kinds.get(1).cloned().unwrap_or(DataType::Null),
            (_, Some(kind)) => kind.clone(),
            (_, None) => DataType::Null,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Planned<FieldRef> {
        let kinds = args.arg_fields.iter().map(|field| field.data_type());
        let kinds: Vec<DataType> = kinds.cloned().collect();
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        let field = Field::new(self.name(), self.return_type(&kinds)?, is_nullable);
        Ok(Arc::new(match (&self.task, args.arg_fields.first()) {
            // It stands for a table's column, of which a file may say more.
            (Task::Level, Some(column)) => field.with_metadata(column.metadata().clone()),
            _ => field,
        }))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Planned<ColumnarValue> {
        if let Task::Rows(function) = &self.task {
            return of_a_row(function, args);
        }
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
            Task::Level => each(&first, floats::leveled),
            Task::Days => of_whole_days(&first).map(|()| first),
            Task::Span => each(&first, nanos),
            Task::Rows(_) => Err(errors::through(nothing())),
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

/// Of 128 bits, which no span outgrows.
const NANOS: DataType = DataType::Decimal128(38, 0);
const DAYS_A_MONTH: i128 = 30;

/// How long intervals and durations are.
fn nanos(spans: &ArrayRef) -> Planned<ArrayRef> {
    let days = |days: i128| days * i128::from(NANOS_A_DAY);
    let nanos = match spans.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => spans
            .as_primitive::<IntervalMonthDayNanoType>()
            .unary::<_, Decimal128Type>(|span| {
                let whole = i128::from(span.months) * DAYS_A_MONTH + i128::from(span.days);
                days(whole) + i128::from(span.nanoseconds)
            }),
        DataType::Interval(IntervalUnit::DayTime) => spans
            .as_primitive::<IntervalDayTimeType>()
            .unary::<_, Decimal128Type>(|span| {
            days(span.days.into()) + i128::from(span.milliseconds) * 1_000_000
        }),
        DataType::Interval(IntervalUnit::YearMonth) => spans
            .as_primitive::<IntervalYearMonthType>()
            .unary::<_, Decimal128Type>(|months| days(i128::from(months) * DAYS_A_MONTH)),
        DataType::Duration(unit) => {
            let unit: i128 = match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1_000,
                TimeUnit::Nanosecond => 1,
            };
            let units = cast(spans, &DataType::Int64)?;
            let units = units.as_primitive::<Int64Type>();
            units.unary::<_, Decimal128Type>(|units| i128::from(units) * unit)
        }
        _ => return Err(errors::through(nothing())),
    };
    Ok(Arc::new(nanos.with_data_type(NANOS)))
}

/// Refuses intervals of which a date would lose something.
pub fn of_whole_days(value: &ColumnarValue) -> Planned<()> {
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

/// What a function makes of one row that has the second value.
fn of_a_row(function: &ScalarUDF, mut args: ScalarFunctionArgs) -> Planned<ColumnarValue> {
    let Some(ColumnarValue::Scalar(value)) = args.args.get(1) else {
        return function.invoke_with_args(args);
    };
    let row = ColumnarValue::Array(value.to_array()?);
    args.args[1] = row;
    args.number_rows = 1;
    match function.invoke_with_args(args)? {
        ColumnarValue::Array(row) => {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&row, 0)?))
        }
        value => Ok(value),
    }
}

/// What a dictionary is of.
pub fn plain(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, of) => plain(of),
        _ => kind,
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
