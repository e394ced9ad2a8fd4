//! A directory of files, a session on it, and its answers as texts.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod extremes;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use souk_connector_files::Session;
use souk_sdk::{
    Chunk, Column, ColumnData, ColumnType, Error, Event, Limits, Machine, Query, Request,
    SchemaFilter, Settings, Step, Value,
};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

pub const LIMITS: Limits = Limits {
    rows_max: 2_000,
    bytes_max: 4 << 20,
    timeout_ms: 20_000,
};

/// Three rows of a CSV, of which the last is empty but for its number.
pub const ORDERS: &str = "id,sku,price,placed,at,paid,note\n\
    1,007,10.50,2026-01-01,2026-01-01T12:00:00Z,true,plain\n\
    2,1e5,2.25,2026-01-02,2026-01-01T13:00:00+01:00,false,\"with, and \"\"quotes\"\"\n and a line\"\n\
    3,,,,,,\n";

pub struct Answer {
    pub columns: Vec<Column>,
    /// Each value as a text; NULL is `None`.
    pub rows: Vec<Vec<Option<String>>>,
}

impl Answer {
    pub fn kinds(&self) -> Vec<ColumnType> {
        self.columns.iter().map(|column| column.kind).collect()
    }

    /// The rows, values with a bar between, `~` for NULL.
    pub fn lines(&self) -> Vec<String> {
        let line = |row: &Vec<Option<String>>| {
            let values = row.iter().map(|value| value.as_deref().unwrap_or("~"));
            values.collect::<Vec<_>>().join("|")
        };
        self.rows.iter().map(line).collect()
    }
}

pub fn directory(files: &[(&str, &[u8])]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(directory.path().join(name), bytes).unwrap();
    }
    directory
}

pub fn open(directory: &Path, name: &str) -> Result<Session, Error> {
    let settings = Settings {
        engine: "files".into(),
        json: format!("{{\"database\":{name:?},\"statement_timeout_ms\":10000}}"),
    };
    let mut session = Session::open_in(directory, &settings)?;
    let mut step = Step::default();
    session.start(&mut step)?;
    assert_eq!(step.into_parts().1, [Event::Ready]);
    Ok(session)
}

/// A session on one file of these bytes.
pub fn file(name: &str, bytes: &[u8]) -> (TempDir, Session) {
    let directory = directory(&[(name, bytes)]);
    let session = open(directory.path(), name).unwrap();
    (directory, session)
}

pub fn ask(session: &mut Session, text: &str) -> Result<Answer, Error> {
    ask_with(session, text, Vec::new(), LIMITS)
}

pub fn ask_with(
    session: &mut Session,
    text: &str,
    parameters: Vec<Value>,
    limits: Limits,
) -> Result<Answer, Error> {
    let text = text.into();
    request(
        session,
        Request::Query(Query {
            text,
            parameters,
            limits,
        }),
    )
}

/// The numbers of the rows for which the condition holds.
pub fn rows(session: &mut Session, condition: &str, values: Vec<Value>) -> String {
    let sql = format!("SELECT n FROM t WHERE {condition} ORDER BY n");
    let answer = ask_with(session, &sql, values, LIMITS);
    let answer = answer.unwrap_or_else(|error| panic!("{condition}: {error:?}"));
    answer.lines().join(" ")
}

pub fn numbers(count: i64) -> ArrayRef {
    array(Int64Array::from_iter_values(1..=count))
}

pub fn schema(session: &mut Session) -> Result<Answer, Error> {
    request(
        session,
        Request::Schema(SchemaFilter {
            schemas: Vec::new(),
            tables: Vec::new(),
            include_fields: true,
            limits: Limits {
                rows_max: 100_000,
                ..LIMITS
            },
        }),
    )
}

pub fn ping(session: &mut Session) -> Result<Answer, Error> {
    request(session, Request::Ping(LIMITS))
}

pub fn request(session: &mut Session, request: Request) -> Result<Answer, Error> {
    let mut step = Step::default();
    session.submit(7, request, &mut step).unwrap();
    let mut answer = Answer {
        columns: Vec::new(),
        rows: Vec::new(),
    };
    for event in step.into_parts().1 {
        match event {
            // Each session of these tests asks a thing once: all shapes are described.
            Event::Columns(shape) => answer.columns = shape.columns.unwrap_or_default(),
            Event::Batch(rows) => {
                let rows_of = rows.batch.rows as usize;
                let columns: Vec<Vec<Option<String>>> = rows
                    .batch
                    .chunks
                    .iter()
                    .map(|chunk| texts(chunk, rows_of))
                    .collect();
                for row in 0..rows_of {
                    answer
                        .rows
                        .push(columns.iter().map(|column| column[row].clone()).collect());
                }
            }
            Event::Done(7) => return Ok(answer),
            Event::Failed(failure) => return Err(failure.error),
            other => panic!("{other:?}"),
        }
    }
    panic!("the request did not end")
}

fn texts(chunk: &Chunk, rows: usize) -> Vec<Option<String>> {
    let valid = |row: usize| {
        let bits = chunk.validity.as_ref();
        bits.is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 == 1)
    };
    let text = |row: usize| match &chunk.data {
        ColumnData::Bits(bits) => (bits[row / 8] >> (row % 8) & 1 == 1).to_string(),
        ColumnData::I32s(values) => values[row].to_string(),
        ColumnData::I64s(values) => values[row].to_string(),
        ColumnData::F64s(values) => values[row].to_string(),
        ColumnData::VarLen(var) => {
            let (start, end) = (var.offsets[row] as usize, var.offsets[row + 1] as usize);
            String::from_utf8_lossy(&var.bytes[start..end]).into_owned()
        }
    };
    (0..rows).map(|row| valid(row).then(|| text(row))).collect()
}

pub fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

pub fn parquet(batch: &RecordBatch) -> Vec<u8> {
    parquet_with(batch, WriterProperties::builder().build())
}

pub fn parquet_with(batch: &RecordBatch, properties: WriterProperties) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

pub fn arrow(batch: &RecordBatch, packed: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default()
        .try_with_compression(packed)
        .unwrap();
    let mut writer =
        FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.get_ref().clone()
}

pub fn array(array: impl datafusion::arrow::array::Array + 'static) -> ArrayRef {
    Arc::new(array)
}

/// A tar archive of these files.
pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ::tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = ::tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, *bytes).unwrap();
    }
    archive.into_inner().unwrap()
}
