//! The least and the greatest value of each type, and NULL.

use crate::common::array;
use crate::{DAYS, MICROS};
use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, Float16Type, Int8Type, i256};
use souk_sdk::ColumnType::{
    self, Boolean, Bytes, Date, Decimal, Float64, Int64, Json, LocalTimestamp, Text, Time,
    Timestamp,
};

type F16 = <Float16Type as ArrowPrimitiveType>::Native;

/// A column of three rows: the least value, the greatest, and NULL.
pub struct Case {
    pub name: &'static str,
    pub array: ArrayRef,
    pub kind: ColumnType,
    pub told: [String; 2],
}

fn case(name: &'static str, array: ArrayRef, kind: ColumnType, told: [impl ToString; 2]) -> Case {
    let told = told.map(|told| told.to_string());
    Case {
        name,
        array,
        kind,
        told,
    }
}

fn three<A: From<Vec<Option<T>>> + Array + 'static, T>([least, greatest]: [T; 2]) -> ArrayRef {
    array(A::from(vec![Some(least), Some(greatest), None]))
}

pub fn decimal(digits: u8, scale: i8, values: [i128; 2]) -> ArrayRef {
    let values = Decimal128Array::from_iter(values.map(Some).into_iter().chain([None]));
    array(values.with_precision_and_scale(digits, scale).unwrap())
}

/// What Parquet has, too.
pub fn of_both() -> Vec<Case> {
    let nines = |count| "9".repeat(count);
    let all = 10_i128.pow(38) - 1;
    let wide = [nines(76), "1".to_owned()].map(|text| i256::from_string(&text));
    let wide = Decimal256Array::from_iter(wide.into_iter().chain([None]));
    let wide = wide.with_precision_and_scale(76, 38).unwrap();
    let small = F16::from_bits(1);
    let in_zone = TimestampMicrosecondArray::from_iter(MICROS.map(Some).into_iter().chain([None]));
    let lists = [Some(vec![]), Some(vec![None, Some(1)]), None];
    let lists = ListArray::from_iter_primitive::<Int8Type, Vec<_>, _>(lists);
    vec![
        case(
            "b",
            three::<BooleanArray, _>([false, true]),
            Boolean,
            ["false", "true"],
        ),
        case(
            "i8",
            three::<Int8Array, _>([i8::MIN, i8::MAX]),
            Int64,
            [i8::MIN, i8::MAX],
        ),
        case(
            "i16",
            three::<Int16Array, _>([i16::MIN, i16::MAX]),
            Int64,
            [i16::MIN, i16::MAX],
        ),
        case(
            "i32",
            three::<Int32Array, _>([i32::MIN, i32::MAX]),
            Int64,
            [i32::MIN, i32::MAX],
        ),
        case(
            "i64",
            three::<Int64Array, _>([i64::MIN, i64::MAX]),
            Int64,
            [i64::MIN, i64::MAX],
        ),
        case(
            "u8",
            three::<UInt8Array, _>([0, u8::MAX]),
            Int64,
            [0, u8::MAX],
        ),
        case(
            "u16",
            three::<UInt16Array, _>([0, u16::MAX]),
            Int64,
            [0, u16::MAX],
        ),
        case(
            "u32",
            three::<UInt32Array, _>([0, u32::MAX]),
            Int64,
            [0, u32::MAX],
        ),
        case(
            "u64",
            three::<UInt64Array, _>([0, u64::MAX]),
            Decimal,
            [0, u64::MAX],
        ),
        case(
            "f16",
            three::<Float16Array, _>([F16::MIN, small]),
            Float64,
            [-65_504.0, f64::from(small)],
        ),
        case(
            "f32",
            three::<Float32Array, _>([f32::MIN, 16_777_216.0]),
            Float64,
            [f32::MIN.to_string(), "16777216".to_owned()],
        ),
        case(
            "f64",
            three::<Float64Array, _>([f64::MIN, f64::from_bits(1)]),
            Float64,
            [f64::MIN, f64::from_bits(1)],
        ),
        case(
            "none",
            three::<Float64Array, _>([f64::NEG_INFINITY, f64::NAN]),
            Float64,
            ["-inf", "NaN"],
        ),
        // A zero has no sign, so that it is one.
        case(
            "zero",
            three::<Float64Array, _>([-0.0, 0.0]),
            Float64,
            ["0", "0"],
        ),
        case("d1", decimal(1, 0, [-9, 9]), Decimal, ["-9", "9"]),
        case(
            "d9",
            decimal(9, 9, [-999_999_999, 1]),
            Decimal,
            ["-0.999999999", "0.000000001"],
        ),
        case(
            "d18",
            decimal(18, 3, [-999_999_999_999_999_999, 0]),
            Decimal,
            ["-999999999999999.999", "0.000"],
        ),
        case("d38", decimal(38, 0, [-all, all]), Decimal, [-all, all]),
        case(
            "d38s",
            decimal(38, 38, [-all, 1]),
            Decimal,
            [
                format!("-0.{}", nines(38)),
                format!("0.{}1", "0".repeat(37)),
            ],
        ),
        case(
            "d76",
            array(wide),
            Decimal,
            [
                format!("{}.{}", nines(38), nines(38)),
                format!("0.{}1", "0".repeat(37)),
            ],
        ),
        case(
            "text",
            three::<StringArray, _>(["", "\u{0}é\u{10ffff}"]),
            Text,
            ["", "\u{0}é\u{10ffff}"],
        ),
        case(
            "bin",
            three::<BinaryArray, _>([&b""[..], b"\x00\x7f"]),
            Bytes,
            ["", "\u{0}\u{7f}"],
        ),
        case("day", three::<Date32Array, _>(DAYS), Date, DAYS),
        case(
            "t_ms",
            three::<Time32MillisecondArray, _>([0, 86_399_999]),
            Time,
            [0, 86_399_999_000_i64],
        ),
        case(
            "t_us",
            three::<Time64MicrosecondArray, _>([0, 86_399_999_999]),
            Time,
            [0, 86_399_999_999_i64],
        ),
        case(
            "t_ns",
            three::<Time64NanosecondArray, _>([0, 86_399_999_999_000]),
            Time,
            [0, 86_399_999_999_i64],
        ),
        case(
            "ms",
            three::<TimestampMillisecondArray, _>(MICROS.map(|micros| micros.div_euclid(1_000))),
            LocalTimestamp,
            [MICROS[0], MICROS[1] - 999],
        ),
        case(
            "us",
            three::<TimestampMicrosecondArray, _>(MICROS),
            LocalTimestamp,
            MICROS,
        ),
        case(
            "ns",
            three::<TimestampNanosecondArray, _>([
                -9_223_372_036_854_775_000,
                9_223_372_036_854_775_000,
            ]),
            LocalTimestamp,
            [-9_223_372_036_854_775_i64, 9_223_372_036_854_775],
        ),
        case(
            "tz",
            array(in_zone.with_timezone("+05:30")),
            Timestamp,
            MICROS,
        ),
        case("list", array(lists), Json, ["[]", "[null,1]"]),
    ]
}

/// What Arrow has beyond that.
pub fn of_arrow() -> Vec<Case> {
    let numbers = Int64Array::from(vec![i64::MIN, i64::MAX]);
    let keys = Int8Array::from(vec![Some(0), Some(1), None]);
    let dictionary = DictionaryArray::<Int8Type>::try_new(keys, array(numbers)).unwrap();
    let of_nine = Decimal32Array::from(vec![Some(-999_999_999), Some(1), None]);
    let of_eighteen = Decimal64Array::from(vec![Some(-999_999_999_999_999_999), Some(1), None]);
    let day = 86_400_000;
    let seconds = MICROS.map(|micros| micros.div_euclid(1_000_000));
    let in_zone = TimestampSecondArray::from(vec![Some(seconds[0]), Some(seconds[1]), None]);
    let told = [MICROS[0], MICROS[1] - 999_999];
    let bytes = [&b""[..], b"\x00\x7f"];
    vec![
        case(
            "d32",
            array(of_nine.with_precision_and_scale(9, 9).unwrap()),
            Decimal,
            ["-0.999999999", "0.000000001"],
        ),
        case(
            "d64",
            array(of_eighteen.with_precision_and_scale(18, 0).unwrap()),
            Decimal,
            [-999_999_999_999_999_999_i64, 1],
        ),
        case(
            "hundreds",
            decimal(5, -2, [-12_345, 1]),
            Decimal,
            ["-1234500", "100"],
        ),
        case(
            "large",
            three::<LargeStringArray, _>(["", "l"]),
            Text,
            ["", "l"],
        ),
        case(
            "view",
            three::<StringViewArray, _>(["", "a view that is long enough"]),
            Text,
            ["", "a view that is long enough"],
        ),
        case(
            "large_bin",
            three::<LargeBinaryArray, _>(bytes),
            Bytes,
            ["", "\u{0}\u{7f}"],
        ),
        case(
            "view_bin",
            three::<BinaryViewArray, _>(bytes),
            Bytes,
            ["", "\u{0}\u{7f}"],
        ),
        case(
            "day_ms",
            three::<Date64Array, _>(DAYS.map(|days| i64::from(days) * day)),
            Date,
            DAYS,
        ),
        case(
            "t_s",
            three::<Time32SecondArray, _>([0, 86_399]),
            Time,
            [0, 86_399_000_000_i64],
        ),
        case(
            "s",
            three::<TimestampSecondArray, _>(seconds),
            LocalTimestamp,
            told,
        ),
        case(
            "s_tz",
            array(in_zone.with_timezone("Europe/Berlin")),
            Timestamp,
            told,
        ),
        case("dict", array(dictionary), Int64, [i64::MIN, i64::MAX]),
        case(
            "runs",
            array(
                RunArray::<datafusion::arrow::datatypes::Int32Type>::from_iter([
                    Some("r"),
                    Some("s"),
                    None,
                ]),
            ),
            Text,
            ["r", "s"],
        ),
    ]
}
