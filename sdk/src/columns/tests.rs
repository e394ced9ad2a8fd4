//! Columns are what was pushed, whichever way.

use super::*;
use serde_json::value::RawValue;

/// A column without NULLs carries no bitmap; the first NULL makes one that is right for the rows before it.
#[test]
fn the_bitmap_comes_with_the_first_null() {
    let mut plain = ColumnBuilder::new(ColumnType::Int64);
    (0..9).for_each(|i| plain.i64(i).unwrap());
    assert_eq!(plain.finish().validity, None);

    let mut holed = ColumnBuilder::new(ColumnType::Text);
    (0..9).for_each(|_| holed.push(Cell::Text("é")).unwrap());
    holed.null();
    holed.push(Cell::Text("z")).unwrap();
    let chunk = holed.finish();
    assert_eq!(chunk.validity, Some(vec![0xff, 0b0000_0101]));
    let ColumnData::VarLen(text) = chunk.data else {
        panic!()
    };
    assert_eq!(text.offsets, [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 18, 19]);
}

/// A value that is the only one of its batch, as the one before was, has as much room as it needs, whatever that one needed.
#[test]
fn a_single_value_has_its_own_room() {
    let room = |builder: ColumnBuilder| match builder.finish().data {
        ColumnData::VarLen(text) => (text.bytes.len(), text.bytes.capacity()),
        _ => panic!(),
    };
    for length in [0, 1, 7, 8, 20, 40, 100] {
        let value = "x".repeat(length);
        let mut single = ColumnBuilder::with_capacity(ColumnType::Text, 1, 20);
        single.var(value.as_bytes()).unwrap();
        assert_eq!(room(single), (length, length));
    }
    let mut many = ColumnBuilder::with_capacity(ColumnType::Text, 9, 64);
    (0..9).for_each(|_| many.push(Cell::Text("seven")).unwrap());
    assert_eq!(room(many), (45, 64));
    // How long a value is that is written in place is not known before.
    let mut written = ColumnBuilder::with_capacity(ColumnType::Json, 1, 20);
    let all = |out: &mut Vec<u8>| {
        b"[1, 2]".iter().for_each(|byte| out.push(*byte));
        Ok(())
    };
    written.var_with(all).unwrap();
    assert_eq!(room(written), (6, 20));
    let mut expected = ColumnBuilder::with_capacity(ColumnType::Json, 1, 20);
    expected.expect(6);
    expected.var_with(all).unwrap();
    assert_eq!(room(expected), (6, 6));
    let mut number = ColumnBuilder::new(ColumnType::Int64);
    number.expect(6);
    assert_eq!(number.bytes(), 0);
}

/// Booleans are packed, least significant bit first.
#[test]
fn booleans_are_packed() {
    let mut bits = ColumnBuilder::new(ColumnType::Boolean);
    [true, false, true, true, false, false, false, false, true]
        .iter()
        .for_each(|&b| bits.boolean(b).unwrap());
    bits.null();
    let chunk = bits.finish();
    assert_eq!(chunk.data, ColumnData::Bits(vec![0b0000_1101, 0b0000_0001]));
    assert_eq!(chunk.validity, Some(vec![0xff, 0b01]));
}

/// However many values come at once, after however many others and NULLs: the column is the same as of one after the other.
#[test]
fn many_values_are_each_of_them() {
    let texts: Vec<String> = (0..40).map(|n| "é".repeat(n)).collect();
    let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    for kind in [
        ColumnType::Boolean,
        ColumnType::Date,
        ColumnType::Int64,
        ColumnType::Float64,
        ColumnType::Text,
    ] {
        for (before, nulls, count) in (0..18_usize)
            .flat_map(|before| [0, 1].map(|nulls| (before, nulls)))
            .flat_map(|(before, nulls)| (0..20_usize).map(move |count| (before, nulls, count)))
        {
            let (mut one, mut many) = (ColumnBuilder::new(kind), ColumnBuilder::new(kind));
            for _ in 0..nulls {
                one.null();
                many.null();
            }
            for part in [0..before, before..before + count, 0..count] {
                let bytes: Vec<u8> = part.clone().map(|n| (n % 3) as u8).collect();
                for (n, byte) in part.clone().zip(&bytes) {
                    match kind {
                        ColumnType::Boolean => one.boolean(byte & 1 == 1),
                        ColumnType::Date => one.i32(n as i32 - 9),
                        ColumnType::Int64 => one.i64(n as i64 - i64::MAX),
                        ColumnType::Float64 => one.f64(n as f64 / 3.0),
                        _ => one.var(texts[n]),
                    }
                    .unwrap();
                }
                match kind {
                    ColumnType::Boolean => many.booleans(&bytes),
                    ColumnType::Date => many.i32s(part.map(|n| n as i32 - 9)),
                    ColumnType::Int64 => many.i64s(part.map(|n| n as i64 - i64::MAX)),
                    ColumnType::Float64 => many.f64s(part.map(|n| n as f64 / 3.0)),
                    _ => many.vars(&texts[part]),
                }
                .unwrap();
                assert_eq!(one.rows(), many.rows());
            }
            one.null();
            many.null();
            let (one, many) = (one.finish(), many.finish());
            assert_eq!(one.data, many.data, "{kind:?} {before} {nulls} {count}");
            assert_eq!(one.validity, many.validity, "{kind:?} {before} {count}");
        }
    }
    let mut date = ColumnBuilder::new(ColumnType::Date);
    assert!(date.i64s([1].into_iter()).is_err() && date.vars(&[b"a"]).is_err());
    assert!(date.booleans(&[1]).is_err() && date.f64s([1.0].into_iter()).is_err());
    assert_eq!(date.rows(), 0);
}

/// Texts are looked at together, and each has to be one by itself.
#[test]
fn each_text_is_utf8() {
    let is_text = |values: &[&[u8]]| {
        let mut builder = ColumnBuilder::new(ColumnType::Text);
        builder.var(b"\xff").unwrap();
        builder.vars(values).unwrap();
        assert!(!builder.is_text(0));
        let is_text = builder.is_text(1);
        let mut batch = ColumnBuilder::new(ColumnType::Text);
        batch.vars(values).unwrap();
        let batch = Batch {
            rows: values.len() as u32,
            chunks: vec![batch.finish()],
        };
        assert_eq!(batch.is_text(), is_text, "{values:?}");
        is_text
    };
    let long = "x".repeat(40);
    let texts = ["", "a", "é", "😀", long.as_str(), "", "ä"].map(str::as_bytes);
    assert!(is_text(&[]) && is_text(&[b""]) && is_text(&texts));
    let halves: [&[u8]; 2] = [b"a\xc3", b"\xa9b"];
    assert!(is_text(&[b"a\xc3\xa9b"]) && !is_text(&halves));
    // Wherever a wrong byte stands.
    for at in 0..long.len() {
        let mut broken = long.clone().into_bytes();
        broken[at] = 0x80;
        assert!(!is_text(&[&broken]), "{at}");
    }
    assert!(ColumnBuilder::new(ColumnType::Int64).is_text(0));
}

/// Digits stay as they were written, and what is no number is no cell.
#[test]
fn numbers_keep_their_digits() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    for digits in [
        "1.50",
        "-0",
        "9007199254740993",
        "12345678901234567890.00100",
        "1e400",
    ] {
        let (number, text) = (raw(digits), raw(&format!("\"{digits}\"")));
        assert_eq!(Cell::number(&number).unwrap(), Cell::Decimal(digits));
        assert_eq!(Cell::number(&text).unwrap(), Cell::Decimal(digits));
    }
    assert_eq!(Cell::number(&raw("null")).unwrap(), Cell::Null);
    for other in [
        "\"12,5 EUR\"",
        "true",
        "[]",
        "\"\"",
        "\"-\"",
        "\"0x10\"",
        "\"007\"",
        "\"1 \"",
        "\"NaN\"",
    ] {
        assert!(Cell::number(&raw(other)).is_err(), "{other}");
    }
    assert_eq!(Cell::json(&raw("null")), Cell::Null);
    assert_eq!(Cell::json(&raw("[1]")), Cell::Json("[1]"));
}

/// Of what is no number its kind and its length are told, and nothing of what it says.
#[test]
fn what_is_no_number_is_not_quoted() {
    for (value, told) in [
        ("\"hush\"", "a text of 6 bytes"),
        ("{\"hush\":1}", "an object of 10 bytes"),
        ("[\"hush\"]", "an array of 8 bytes"),
        ("false", "a boolean of 5 bytes"),
    ] {
        let value = RawValue::from_string(value.to_owned()).unwrap();
        let error = Cell::number(&value).unwrap_err();
        assert_eq!(error.detail.as_deref(), Some(told));
        assert!(!error.message.contains("hush"), "{}", error.message);
    }
}

/// A value of another type is refused and the column keeps its length.
#[test]
fn a_wrong_type_is_refused() {
    let mut date = ColumnBuilder::new(ColumnType::Date);
    assert_eq!(
        date.push(Cell::Int64(1)).unwrap_err().class,
        crate::ErrorClass::Internal
    );
    let mut json = ColumnBuilder::new(ColumnType::Json);
    assert!(
        json.var_with(|out| {
            out.extend(b"half");
            Err(too_long())
        })
        .is_err()
    );
    json.push(Cell::Json("{}")).unwrap();
    assert_eq!(
        json.finish().data,
        ColumnData::VarLen(VarLen {
            offsets: vec![0, 2],
            bytes: b"{}".to_vec()
        })
    );
}
