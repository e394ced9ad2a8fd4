//! The functions that stand in a plan for what DataFusion computes with fewer digits than there are. Where they stand `exact` decides.
//!
//! Start reading at [`Task`].

use crate::errors;
use crate::floats;
use crate::types;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Datum, Decimal128Array, Int32Array};
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, neg, rem, sub};
use datafusion::arrow::compute::{DatePart, cast, date_part, interleave, try_binary};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int64Type,
    IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, TimeUnit,
    i256,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::Result as Planned;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
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
    /// Of intervals the longest one, or else the shortest: the first of those that are equally long.
    Extreme(bool),
    /// The quotient of decimals, or of one and a whole number, to the nearest number of its digits.
    Divide,
    /// The seconds of a minute, with their fraction: in seconds where it has six digits, in thousandths where it has three.
    Part(i8),
    /// A float as a whole one, a half as the even one.
    Even,
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
            Task::Extreme(_) => "extreme",
            Task::Divide => "divide",
            Task::Part(_) => "part",
            Task::Even => "even",
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
            Task::Write(_) | Task::Seconds | Task::Level | Task::Days | Task::Rows(_) => first,
            // A join has it beside the column that it is of.
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
            Task::Days => of_whole_days(&first).map(|()| first),
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

/// What spans are made alike as.
pub const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// How long intervals and durations are.
pub fn nanos(spans: &ArrayRef) -> Planned<ArrayRef> {
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

/// Of the intervals of each row the longest one, or the shortest.
fn extreme(spans: &[ColumnarValue], is_greatest: bool) -> Planned<ColumnarValue> {
    let mut kinds = spans.iter();
    let is_one = kinds.all(|span| matches!(span, ColumnarValue::Scalar(_)));
    let spans = ColumnarValue::values_to_arrays(spans)?;
    let lengths: Vec<ArrayRef> = spans.iter().map(nanos).collect::<Planned<_>>()?;
    let lengths = lengths.iter().map(|lengths| lengths.as_primitive());
    let lengths: Vec<&Decimal128Array> = lengths.collect();
    let best = |row: usize| {
        let mut best: Option<(i128, usize)> = None;
        for (at, lengths) in lengths.iter().enumerate() {
            if !lengths.is_valid(row) {
                continue;
            }
            let length = lengths.value(row);
            let is_better = best.is_none_or(|(before, _)| match is_greatest {
                true => length > before,
                false => length < before,
            });
            if is_better {
                best = Some((length, at));
            }
        }
        (best.map_or(0, |(_, at)| at), row)
    };
    let rows = spans.first().map_or(0, |spans| spans.len());
    let rows: Vec<(usize, usize)> = (0..rows).map(best).collect();
    let spans: Vec<&dyn Array> = spans.iter().map(|spans| spans.as_ref()).collect();
    let chosen = interleave(&spans, &rows)?;
    Ok(match is_one {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&chosen, 0)?),
        false => ColumnarValue::Array(chosen),
    })
}

/// Of a number of microseconds in a minute.
const PART_DIGITS: u8 = 8;
const NANOS_A_MINUTE: i64 = 60_000_000_000;

/// The microseconds of moments, times and spans since their last whole minute.
fn micros(moments: &ArrayRef) -> Planned<Decimal128Array> {
    let of_span = |nanos: i64| i128::from(nanos % NANOS_A_MINUTE / 1_000);
    match moments.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => Ok(moments
            .as_primitive::<IntervalMonthDayNanoType>()
            .unary(|span| of_span(span.nanoseconds))),
        DataType::Duration(_) => {
            let spans = nanos(moments)?;
            let spans = spans.as_primitive::<Decimal128Type>();
            Ok(spans.unary(|nanos| nanos % i128::from(NANOS_A_MINUTE) / 1_000))
        }
        _ => {
            let seconds = date_part(moments, DatePart::Second)?;
            let rest = date_part(moments, DatePart::Nanosecond)?;
            let (seconds, rest) = (seconds.as_primitive(), rest.as_primitive());
            let micros = |second: i32, nanos: i32| {
                Ok(i128::from(second) * 1_000_000 + i128::from(nanos) / 1_000)
            };
            Ok(try_binary::<&Int32Array, &Int32Array, _, Decimal128Type>(
                seconds, rest, micros,
            )?)
        }
    }
}

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

/// Digits that a quotient has behind the point, if they leave room for those before it: rates of millions are told, and a few quotients can
/// be multiplied with each other.
const QUOTIENT_SCALE: i16 = 10;
/// How many more a quotient has at least than what is divided, as far as that.
const SCALE_MORE: i16 = 4;
const DECIMAL_DIGITS: i16 = 38;

/// How decimals are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotient {
    divided: (u8, i8),
    by: (u8, i8),
    digits: u8,
    scale: i8,
}

impl Quotient {
    fn data_type(self) -> DataType {
        DataType::Decimal128(self.digits, self.scale)
    }
}

/// `None` where DataFusion divides: whole numbers, floats, and decimals of other widths.
pub fn quotient(divided: &DataType, by: &DataType) -> Option<Quotient> {
    if !divided.is_decimal() && !by.is_decimal() {
        return None;
    }
    let (divided, by) = (digits(divided)?, digits(by)?);
    let (scale, less) = (i16::from(divided.1), i16::from(by.1));
    let before = i16::from(divided.0) - scale + less;
    let most = scale.max(QUOTIENT_SCALE.min(scale + SCALE_MORE));
    let scale = most.max(QUOTIENT_SCALE.min(DECIMAL_DIGITS - before));
    let digits = DECIMAL_DIGITS.min(before + scale);
    Some(Quotient {
        divided,
        by,
        digits: u8::try_from(digits).ok()?,
        scale: i8::try_from(scale).ok()?,
    })
}

/// Digits of a decimal, and of those the ones behind the point.
fn digits(kind: &DataType) -> Option<(u8, i8)> {
    match kind {
        DataType::Decimal128(digits, scale) if *scale >= 0 => Some((*digits, *scale)),
        DataType::Int8 | DataType::UInt8 => Some((3, 0)),
        DataType::Int16 | DataType::UInt16 => Some((5, 0)),
        DataType::Int32 | DataType::UInt32 => Some((10, 0)),
        DataType::Int64 | DataType::UInt64 => Some((20, 0)),
        _ => None,
    }
}

/// As what DataFusion divides others, and what comes of it. What a UNION is of is known late: decimals may have become floats since.
fn unlike(divided: &DataType, by: &DataType) -> Planned<(DataType, DataType, DataType)> {
    let alike = BinaryTypeCoercer::new(divided, &Operator::Divide, by);
    let (divided, by) = alike.get_input_types()?;
    Ok((divided, by, alike.get_result_type()?))
}

fn divided(divided: ColumnarValue, by: ColumnarValue) -> Planned<ColumnarValue> {
    let kinds = (divided.data_type(), by.data_type());
    if quotient(&kinds.0, &kinds.1).is_none() {
        let (kind, of_by, of_quotient) = unlike(&kinds.0, &kinds.1)?;
        let (divided, by) = (divided.cast_to(&kind, None)?, by.cast_to(&of_by, None)?);
        let quotients = computed(Operator::Divide, &divided, &by)?;
        return match of_quotient.is_floating() {
            true => each(&quotients, floats::leveled),
            false => Ok(quotients),
        };
    }
    let is_one = matches!(
        (&divided, &by),
        (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_))
    );
    let numbers = ColumnarValue::values_to_arrays(&[divided, by])?;
    let [divided, by] = numbers.as_slice() else {
        return Err(errors::through(nothing()));
    };
    let kind = quotient(divided.data_type(), by.data_type());
    let kind = kind.ok_or_else(|| errors::through(nothing()))?;
    let quotients = quotients(divided, by, kind)?;
    Ok(match is_one {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&quotients, 0)?),
        false => ColumnarValue::Array(Arc::new(quotients)),
    })
}

fn quotients(divided: &ArrayRef, by: &ArrayRef, kind: Quotient) -> Planned<Decimal128Array> {
    let decimals = |numbers: &ArrayRef, (digits, scale)| {
        let kind = DataType::Decimal128(digits, scale);
        cast(numbers, &kind)
    };
    let (divided, by) = (decimals(divided, kind.divided)?, decimals(by, kind.by)?);
    let more = i16::from(kind.scale) - i16::from(kind.divided.1) + i16::from(kind.by.1);
    let more = u32::try_from(more).map_err(|_| errors::through(nothing()))?;
    let greatest = 10_i128.pow(u32::from(kind.digits)) - 1;
    let quotients = try_binary::<_, _, _, Decimal128Type>(
        divided.as_primitive::<Decimal128Type>(),
        by.as_primitive::<Decimal128Type>(),
        |divided, by| {
            if by == 0 {
                return Err(ArrowError::DivideByZero);
            }
            let quotient = nearest(divided, by, more);
            let quotient = quotient.filter(|number| number.abs() <= greatest);
            quotient.ok_or_else(|| {
                ArrowError::ArithmeticOverflow(format!("{divided} / {by} has too many digits"))
            })
        },
    )?;
    Ok(quotients.with_data_type(kind.data_type()))
}

/// `divided * 10^more / by`, of which a half goes away from zero; `None` if it has more than 128 bits.
fn nearest(divided: i128, by: i128, more: u32) -> Option<i128> {
    let short = 10_i128.checked_pow(more);
    if let Some(divided) = short.and_then(|power| divided.checked_mul(power)) {
        let (quotient, rest) = (divided.checked_div(by)?, divided.checked_rem(by)?);
        let is_half = rest.unsigned_abs() >= by.unsigned_abs() - rest.unsigned_abs();
        return Some(match is_half {
            true if (divided < 0) == (by < 0) => quotient + 1,
            true => quotient - 1,
            false => quotient,
        });
    }
    let power = i256::from_i128(10).checked_pow(more)?;
    let divided = i256::from_i128(divided).checked_mul(power)?;
    let by = i256::from_i128(by);
    let (quotient, rest) = (divided.checked_div(by)?, divided.checked_rem(by)?);
    let rest = rest.wrapping_abs();
    let away = match rest.checked_add(rest)? >= by.wrapping_abs() {
        true if divided.is_negative() == by.is_negative() => i256::ONE,
        true => i256::MINUS_ONE,
        false => i256::ZERO,
    };
    quotient.checked_add(away)?.to_i128()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_the_nearest() {
        for (divided, by, more, wanted) in [
            (1, 3, 4, Some(3_333)),
            (2, 3, 4, Some(6_667)),
            (-2, 3, 4, Some(-6_667)),
            (2, -3, 4, Some(-6_667)),
            (1, 8, 2, Some(13)),
            (-1, 8, 2, Some(-13)),
            (0, 5, 10, Some(0)),
            (10_i128.pow(37), 10_i128.pow(37), 10, Some(10_i128.pow(10))),
            (10_i128.pow(37) * 2, 10_i128.pow(37) * -3, 4, Some(-6_667)),
            (10_i128.pow(37), 1, 10, None),
        ] {
            assert_eq!(nearest(divided, by, more), wanted, "{divided} / {by}");
        }
    }

    #[test]
    fn quotients_have_digits_where_there_is_room() {
        let decimal = DataType::Decimal128;
        for (divided, by, wanted) in [
            (decimal(12, 2), DataType::Int64, Some((20, 10))),
            (decimal(2, 1), decimal(2, 1), Some((12, 10))),
            (DataType::Int64, decimal(3, 2), Some((32, 10))),
            (decimal(33, 2), decimal(22, 2), Some((38, 6))),
            (decimal(38, 20), decimal(38, 20), Some((38, 20))),
            (DataType::Int64, DataType::Int64, None),
            (decimal(12, 2), DataType::Float64, None),
            (DataType::Decimal256(50, 2), decimal(12, 2), None),
        ] {
            let found = quotient(&divided, &by).map(|kind| (kind.digits, kind.scale));
            assert_eq!(found, wanted, "{divided} / {by}");
        }
    }
}
