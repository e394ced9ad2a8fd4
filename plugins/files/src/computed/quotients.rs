//! Quotients of decimals, to the nearest number of their digits.
//!
//! Start reading at [`quotient`] and [`divided`].

use super::{computed, each, nothing};
use crate::errors;
use crate::floats;
use datafusion::arrow::array::{ArrayRef, AsArray, Decimal128Array};
use datafusion::arrow::compute::{cast, try_binary};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, i256};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::Result as Planned;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{ColumnarValue, Operator};
use std::sync::Arc;

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
    pub fn data_type(self) -> DataType {
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
pub fn unlike(divided: &DataType, by: &DataType) -> Planned<(DataType, DataType, DataType)> {
    let alike = BinaryTypeCoercer::new(divided, &Operator::Divide, by);
    let (divided, by) = alike.get_input_types()?;
    Ok((divided, by, alike.get_result_type()?))
}

pub fn divided(divided: ColumnarValue, by: ColumnarValue) -> Planned<ColumnarValue> {
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
