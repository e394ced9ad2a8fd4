//! The functions that stand in a plan for what DataFusion computes with fewer digits than there are. Where they stand `exact` decides.
//!
//! Start reading at [`Task`].

pub mod lengths;
pub mod quotients;
pub mod truncated;

use crate::errors;
use crate::floats;
use crate::types;
use datafusion::arrow::array::{ArrayRef, AsArray, Datum};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, neg, rem, sub};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result as Planned};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;
use lengths::{
    INTERVAL, NANOS, PART_DIGITS, extreme, micros, nanos, of_whole_days, of_whole_micros,
};
use quotients::{divided, quotient, unlike};
use souk_sdk::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use truncated::{Granule, truncated};

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
    /// What a cast makes, as it is: what looks into an expression finds no cast there.
    Opaque,
    /// An interval as it is, of whole days.
    Days,
    /// A moment as it is, of whole microseconds.
    Micros,
    /// A span of time in nanoseconds, of which a day has 24 hours and a month 30 days, as PostgreSQL compares spans; of a moment that since 1970.
    Span,
    /// Of intervals the longest one, or else the shortest: the first of those that are equally long.
    Extreme(bool),
    /// The quotient of decimals, or of one and a whole number, to the nearest number of its digits.
    Divide,
    /// The seconds of a minute, with their fraction: in seconds where it has six digits, in thousandths where it has three.
    Part(i8),
    /// A float as a whole one, a half as the even one.
    Even,
    /// The beginning of the second, the day, the month or the like in which a moment is, in UTC.
    Truncate(Granule),
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
            Task::Opaque => "cast",
            Task::Days => "days",
            Task::Micros => "micros",
            Task::Span => "span",
            Task::Extreme(_) => "extreme",
            Task::Divide => "divide",
            Task::Part(_) => "part",
            Task::Even => "even",
            Task::Truncate(_) => "truncate",
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
            // A join has these and a span's length beside the column that they are of, by whose name a cast goes.
            Task::Level if matches!(values, [Expr::Cast(_)]) => format!("level({first})"),
            Task::Opaque => format!("cast({first})"),
            Task::Write(_) | Task::Seconds | Task::Level | Task::Days | Task::Rows(_) => first,
            Task::Micros => format!("micros({first})"),
            Task::Span => format!("span({first})"),
            Task::Move(step) => format!("{first} {step} {}", names.next().unwrap_or_default()),
            Task::Extreme(is_greatest) => {
                let name = if *is_greatest { "greatest" } else { "least" };
                let names: Vec<String> = std::iter::once(first).chain(names).collect();
                format!("{name}({})", names.join(","))
            }
            Task::Divide => format!("{first} / {}", names.next().unwrap_or_default()),
            Task::Part(_) => format!("date_part({first})"),
            Task::Even => format!("round({first})"),
            Task::Truncate(granule) => format!("date_trunc({granule:?},{first})"),
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
            (Task::Extreme(_), _) => INTERVAL,
            (Task::Divide, Some(divided)) => {
                let by = kinds.get(1).unwrap_or(divided);
                match quotient(divided, by) {
                    Some(kind) => kind.data_type(),
                    None => unlike(divided, by)?.2,
                }
            }
            (Task::Part(scale), _) => DataType::Decimal128(PART_DIGITS, *scale),
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
            Task::Opaque => Ok(first),
            Task::Days => of_whole_days(&first).map(|()| first),
            Task::Micros => of_whole_micros(&first).map(|()| first),
            Task::Span => each(&first, nanos),
            Task::Extreme(is_greatest) => {
                let spans: Vec<ColumnarValue> = std::iter::once(first).chain(values).collect();
                extreme(&spans, *is_greatest)
            }
            Task::Divide => {
                let second = values.next();
                let second = second.ok_or_else(|| errors::through(nothing()))?;
                divided(first, second)
            }
            Task::Part(scale) => each(&first, |moments| {
                let kind = DataType::Decimal128(PART_DIGITS, *scale);
                Ok(Arc::new(micros(moments)?.with_data_type(kind)))
            }),
            Task::Even => each(&first, even),
            Task::Truncate(granule) => each(&first, |moments| truncated(moments, *granule)),
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

fn even(floats: &ArrayRef) -> Planned<ArrayRef> {
    let whole: ArrayRef = match floats.data_type() {
        DataType::Float64 => {
            let floats = floats.as_primitive::<Float64Type>();
            Arc::new(floats.unary::<_, Float64Type>(f64::round_ties_even))
        }
        DataType::Float32 => {
            let floats = floats.as_primitive::<Float32Type>();
            Arc::new(floats.unary::<_, Float32Type>(f32::round_ties_even))
        }
        _ => return Err(errors::through(nothing())),
    };
    Ok(whole)
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
    apply(left, right, kernel).map_err(|error| {
        let is_too_large = matches!(
            &error,
            DataFusionError::ArrowError(error, _)
                if matches!(**error, ArrowError::ArithmeticOverflow(_))
        );
        match is_too_large {
            true => {
                let told = errors::number_too_large().detail(error.strip_backtrace());
                errors::through(told)
            }
            false => error,
        }
    })
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
