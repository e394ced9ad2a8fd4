//! Every format has every value of a result, exactly.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{Format, Stream, Unfit, write};
use crate::columns::{Batch, Chunk, Column, ColumnData, ColumnKind, DAY_MICROS, Output, VarLen};
use crate::json::Field;

fn texts(values: &[&str]) -> ColumnData {
    let mut var = VarLen {
        offsets: vec![0],
        bytes: Vec::new(),
    };
    for value in values {
        var.bytes.extend_from_slice(value.as_bytes());
        var.offsets.push(var.bytes.len() as i32);
    }
    ColumnData::VarLen(var)
}

/// A result of one batch: three rows of every kind, the second NULL throughout.
fn every_kind() -> Output {
    let kinds = [
        (ColumnKind::Boolean, "bool", ColumnData::Bits(vec![0b101])),
        (
            ColumnKind::Int64,
            "int8",
            ColumnData::I64s(vec![i64::MIN, 0, 7]),
        ),
        (
            ColumnKind::Float64,
            "float8",
            ColumnData::F64s(vec![0.1, 0.0, f64::NAN]),
        ),
        (
            ColumnKind::Decimal,
            "numeric(10,2)",
            texts(&["-12.3", "", "99999999.99"]),
        ),
        (
            ColumnKind::Decimal,
            "numeric",
            texts(&["1234567890123456789012345678901234567890.5", "", "NaN"]),
        ),
        (
            ColumnKind::Decimal,
            "numeric(3,1)",
            texts(&["1.5", "", "NaN"]),
        ),
        (ColumnKind::Text, "text", texts(&["a \"b\", c", "", ""])),
        (ColumnKind::Bytes, "bytea", texts(&["ab", "", "c"])),
        (
            ColumnKind::Date,
            "date",
            ColumnData::I32s(vec![19_782, 0, -1]),
        ),
        (
            ColumnKind::Time,
            "time",
            ColumnData::I64s(vec![1, 0, 86_399_999_999]),
        ),
        (
            ColumnKind::Timestamp,
            "timestamptz",
            ColumnData::I64s(vec![-1, 0, 951_782_400_000_000]),
        ),
        (ColumnKind::Json, "jsonb", texts(&["{\"a\":1}", "", "[1]"])),
        (
            ColumnKind::LocalTimestamp,
            "timestamp",
            ColumnData::I64s(vec![-1, 0, 951_782_400_000_001]),
        ),
    ];
    let column = |(kind, native, _): &(ColumnKind, &str, ColumnData)| Column {
        name: kind.as_str().to_owned(),
        kind: *kind,
        nullable: true,
        native: (*native).to_owned(),
    };
    let columns = kinds.iter().map(column).collect();
    let chunks = kinds.into_iter().map(|(_, _, data)| Chunk {
        validity: Some(vec![0b101]),
        data,
    });
    let batch = Batch {
        rows: 3,
        chunks: chunks.collect(),
    };
    Output::new(columns, vec![batch], 300)
}

fn fields(output: &Output) -> Vec<Field> {
    let named = output.columns.iter().enumerate();
    named
        .map(|(index, column)| Field::new(index, format!("{} {index}", column.name)))
        .collect()
}

fn written(format: Format, rows: usize) -> Vec<u8> {
    let output = every_kind();
    let fields = fields(&output);
    let mut out = Vec::new();
    write(format, &mut out, output, &fields, rows).unwrap();
    out
}

fn check_columns(batch: &RecordBatch) {
    let schema = batch.schema();
    let kind = |place: usize| schema.field(place).data_type().clone();
    assert_eq!(batch.num_rows(), 3);
    for column in batch.columns() {
        assert_eq!(column.null_count(), 1, "{:?}", column.data_type());
        assert!(column.is_null(1));
    }
    assert!(batch.column(0).as_boolean().value(0));
    assert_eq!(
        batch.column(1).as_primitive::<Int64Type>().value(0),
        i64::MIN
    );
    assert_eq!(batch.column(2).as_primitive::<Float64Type>().value(0), 0.1);
    assert_eq!(kind(3), DataType::Decimal128(10, 2));
    let decimals = batch.column(3).as_primitive::<Decimal128Type>();
    assert_eq!(
        (decimals.value(0), decimals.value(2)),
        (-1_230, 9_999_999_999)
    );
    // Too many digits for any number, and a number that is none: texts, which say what they are.
    for (place, first) in [
        (4, "1234567890123456789012345678901234567890.5"),
        (5, "1.5"),
    ] {
        assert_eq!(kind(place), DataType::Utf8);
        assert_eq!(schema.field(place).metadata()["souk.type"], "decimal");
        let texts = batch.column(place).as_string::<i32>();
        assert_eq!((texts.value(0), texts.value(2)), (first, "NaN"));
    }
    assert_eq!(batch.column(6).as_string::<i32>().value(0), "a \"b\", c");
    assert_eq!(batch.column(7).as_binary::<i32>().value(2), b"c");
    assert_eq!(batch.column(8).as_primitive::<Date32Type>().value(2), -1);
    assert_eq!(
        batch
            .column(9)
            .as_primitive::<Time64MicrosecondType>()
            .value(0),
        1
    );
    let zoned = batch.column(10).as_primitive::<TimestampMicrosecondType>();
    assert_eq!((zoned.value(0), zoned.timezone()), (-1, Some("UTC")));
    assert_eq!(batch.column(11).as_string::<i32>().value(0), "{\"a\":1}");
    assert_eq!(
        schema.field(11).metadata()["ARROW:extension:name"],
        "arrow.json"
    );
    let local = batch.column(12).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(
        (local.value(2), local.timezone()),
        (951_782_400_000_001, None)
    );
}

#[test]
fn arrow_has_every_value() {
    let bytes = written(Format::Arrow, 3);
    let reader = StreamReader::try_new(bytes.as_slice(), None).unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    check_columns(&batches[0]);
}

#[test]
fn parquet_has_every_value() {
    let bytes = bytes::Bytes::from(written(Format::Parquet, 3));
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)
        .unwrap()
        .build();
    let batches: Vec<RecordBatch> = reader.unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    check_columns(&batches[0]);
}

#[test]
fn csv_has_every_value() {
    let text = String::from_utf8(written(Format::Csv, 3)).unwrap();
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(
        lines[1],
        "true,-9223372036854775808,0.1,-12.3,1234567890123456789012345678901234567890.5,1.5,\"a \"\"b\"\", c\",YWI=,\
         2024-02-29,00:00:00.000001,1969-12-31T23:59:59.999999Z,\"{\"\"a\"\":1}\",1969-12-31T23:59:59.999999"
    );
    assert_eq!(lines[2], ",".repeat(12));
    assert!(lines[3].starts_with("true,7,NaN,99999999.99,NaN,NaN,\"\",Yw==,1969-12-31"));
}

#[test]
fn lines_of_json_are_objects() {
    let text = String::from_utf8(written(Format::JsonLines, 2)).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["text 6"], "a \"b\", c");
    assert_eq!(lines[1]["int64 1"], serde_json::Value::Null);
}

/// However a document is laid out, its row is one line; what stands in its texts is none of that.
#[test]
fn a_document_of_several_lines_is_one_line() {
    let mut output = every_kind();
    let laid_out = "{\r\n  \"a\": 1,\n  \"b\": \"x\\ny\"\n}";
    output.batches[0].chunks[11].data = texts(&[laid_out, "", "[\n]"]);
    let (named, mut out) = (fields(&output), Vec::new());
    write(Format::JsonLines, &mut out, output, &named, 3).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains('\r'), "{text}");
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["json 11"], serde_json::json!({"a": 1, "b": "x\ny"}));
}

/// A page may end within a batch: what lies behind it does not leave.
#[test]
fn a_page_ends_within_a_batch() {
    let bytes = written(Format::Arrow, 1);
    let reader = StreamReader::try_new(bytes.as_slice(), None).unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(batches[0].num_rows(), 1);
    assert_eq!(
        batches[0].column(6).as_string::<i32>().value(0),
        "a \"b\", c"
    );
    assert!(!String::from_utf8_lossy(&bytes).contains("[1]"));
    assert!(!String::from_utf8_lossy(&written(Format::Csv, 1)).contains("1970-01-01"));
}

/// No rows are a table without rows.
#[test]
fn an_empty_page_is_a_table() {
    let bytes = written(Format::Arrow, 0);
    let reader = StreamReader::try_new(bytes.as_slice(), None).unwrap();
    assert_eq!(reader.schema().fields().len(), 13);
    assert_eq!(
        reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(),
        0
    );
    let bytes = bytes::Bytes::from(written(Format::Parquet, 0));
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
}

/// Pages of a feed make one stream, with one head and one end; what would change its columns on the way is refused.
#[test]
fn pages_make_one_stream() {
    for format in [Format::Arrow, Format::Parquet, Format::Csv] {
        let mut stream = Stream::new(format);
        let mut all = Vec::new();
        for _ in 0..3 {
            let output = every_kind();
            let fields = fields(&output);
            all.append(&mut stream.write(output, &fields, 2).unwrap());
        }
        all.append(&mut stream.finish().unwrap());
        let rows = match format {
            Format::Arrow => StreamReader::try_new(all.as_slice(), None)
                .unwrap()
                .map(|batch| batch.unwrap().num_rows())
                .sum(),
            Format::Parquet => ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(all))
                .unwrap()
                .metadata()
                .file_metadata()
                .num_rows() as usize,
            _ => String::from_utf8(all).unwrap().matches("\r\n").count() - 1,
        };
        assert_eq!(rows, 6, "{format:?}");
    }
    let mut stream = Stream::new(Format::Arrow);
    let first = every_kind();
    let named = fields(&first);
    stream.write(first, &named, 3).unwrap();
    let mut other = every_kind();
    let mut columns = other.columns.to_vec();
    columns[1].kind = ColumnKind::Float64;
    other.columns = columns.into();
    let refused = stream.write(other, &named, 3);
    assert_eq!(refused, Err(Unfit::Type("int64 1".to_owned())));
}

/// Neither format has the end of a day among its times of day, and midnight would be another time.
#[test]
fn the_end_of_a_day_is_refused_where_there_is_none() {
    let shown = |format, rows| {
        let mut output = every_kind();
        output.batches[0].chunks[9].data = ColumnData::I64s(vec![1, DAY_MICROS, DAY_MICROS]);
        let (named, mut out) = (fields(&output), Vec::new());
        write(format, &mut out, output, &named, rows).map(|()| out)
    };
    for format in [Format::Arrow, Format::Parquet] {
        let refused = Unfit::EndOfDay("time 9".to_owned());
        assert_eq!(shown(format, 3), Err(refused), "{format:?}");
        // NULL, whatever lies under it.
        assert!(shown(format, 2).is_ok(), "{format:?}");
    }
    for format in [Format::Json, Format::JsonLines, Format::Csv] {
        let text = String::from_utf8(shown(format, 3).unwrap()).unwrap();
        assert!(text.contains("24:00:00.000000"), "{text}");
    }
}
