//! JSON Lines: read as a whole once, to find the columns and their types, and then batch by batch.
//!
//! Each name that an object has is a column, in the order in which they first come; an object without it has NULL there. Objects and
//! lists are JSON, as they are written.

use super::lines::{Lines, members};
use super::moment::Moment;
use super::profile::Profile;
use super::streamed::{self, Batches, Streamed};
use super::text::{self, Text};
use super::{COLUMNS_MAX, Known, named};
use crate::clock::Clock;
use crate::errors;
use crate::slice::Slice;
use datafusion::arrow::array::{
    ArrayBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder,
    RecordBatch, RecordBatchOptions, StringBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde_json::value::RawValue;
use souk_sdk::Error;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// A longer name is a value that stands in its place.
const NAME_BYTES_MAX: usize = 1024;

#[derive(Debug)]
struct JsonFiles {
    text: Text,
    schema: SchemaRef,
    longest: u64,
}

#[derive(Default)]
struct Found {
    names: HashMap<String, usize>,
    columns: Vec<Column>,
    rows: u64,
    longest: u64,
    bytes: u64,
}

#[derive(Default)]
struct Column {
    name: String,
    profile: Profile,
    values: u64,
    /// Those that are objects or lists.
    nested: u64,
    /// The last line that has it.
    line: u64,
}

pub fn open(files: &[(String, Slice)], clock: &Clock, packed: bool) -> Result<Known, Error> {
    let text = Text {
        files: files.to_vec(),
        packed,
        clock: clock.clone(),
    };
    let mut found = Found::default();
    for (name, slice) in files {
        let opened = text.open(slice);
        opened
            .and_then(|opened| found.file(&mut Lines::new(opened)))
            .map_err(|error| named(error, name))?;
    }
    let rows = found.rows;
    let fields: Vec<Field> = found
        .columns
        .iter()
        .map(|column| column.field(rows))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let source = JsonFiles {
        text,
        schema: schema.clone(),
        longest: found.longest,
    };
    let row_bytes = found.bytes / rows.max(1);
    Ok(streamed::known(
        schema,
        Arc::new(source),
        Some(rows),
        row_bytes,
    ))
}

impl Found {
    fn file(&mut self, lines: &mut Lines) -> Result<(), Error> {
        loop {
            let Some((number, line)) = lines.read()? else {
                return Ok(());
            };
            self.rows += 1;
            self.longest = self.longest.max(line.len() as u64);
            self.bytes += line.len() as u64;
            members(line, number, |name, value| self.member(name, value, number))?;
        }
    }

    fn member(&mut self, name: &str, value: &RawValue, number: u64) -> Result<(), Error> {
        let row = self.rows;
        let at = match self.names.get(name) {
            Some(at) => *at,
            None => self.add(name)?,
        };
        let column = &mut self.columns[at];
        if column.line == row {
            return Err(errors::broken(
                "name_twice",
                format!("line {number} of the file has an object with a name that is there twice"),
            )
            .detail(name.to_owned()));
        }
        column.line = row;
        column.value(value)
    }

    fn add(&mut self, name: &str) -> Result<usize, Error> {
        let at = self.columns.len();
        if at == COLUMNS_MAX {
            return Err(errors::broken(
                "too_many_columns",
                format!("the file's objects have more than {COLUMNS_MAX} names"),
            ));
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(errors::broken(
                "name_too_long",
                format!("the file's objects have a name of more than {NAME_BYTES_MAX} bytes"),
            ));
        }
        self.names.insert(name.to_owned(), at);
        self.columns.push(Column {
            name: name.to_owned(),
            ..Column::default()
        });
        Ok(at)
    }
}

impl Column {
    fn value(&mut self, value: &RawValue) -> Result<(), Error> {
        let text = value.get();
        if text == "null" {
            return Ok(());
        }
        self.values += 1;
        match text.as_bytes().first() {
            Some(b'"') => self.profile.quoted(&unquoted(text)?),
            Some(b't' | b'f') => self.profile.boolean(),
            Some(b'{' | b'[') => {
                self.nested += 1;
                self.profile.other();
            }
            _ => self.profile.json_number(text),
        }
        Ok(())
    }

    fn field(&self, rows: u64) -> Field {
        let field = Field::new(
            &self.name,
            self.profile.data_type(),
            self.values < rows || rows == 0,
        );
        match self.values > 0 && self.nested == self.values {
            true => crate::types::as_json(field),
            false => field,
        }
    }
}

fn unquoted(text: &str) -> Result<Cow<'_, str>, Error> {
    // Without anything escaped it is what stands between the quotes.
    if let Some(inner) = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        && !inner.contains('\\')
    {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str(text).map(Cow::Owned).map_err(|error| {
        errors::broken(
            "no_text",
            "the file has a text that is none, like half a pair of UTF-16",
        )
        .detail(error.to_string())
    })
}

impl Streamed for JsonFiles {
    fn batches(&self, columns: &[usize]) -> Result<Batches, Error> {
        let schema = Arc::new(
            self.schema
                .project(columns)
                .map_err(|error| errors::of_file(&error))?,
        );
        let names = schema.fields().iter().enumerate();
        let pass = Pass {
            names: names
                .map(|(at, field)| (field.name().clone(), at))
                .collect(),
            schema,
            rows: text::batch_rows(self.longest, columns.len()),
            clock: self.text.clock.clone(),
        };
        let slices: Vec<Slice> = self
            .text
            .files
            .iter()
            .map(|(_, slice)| slice.clone())
            .collect();
        let text = self.text.clone();
        let pass = Arc::new(pass);
        let read = move |slice: Slice| -> Batches {
            let mut lines = match text.open(&slice) {
                Ok(opened) => Lines::new(opened),
                Err(error) => return Box::new(std::iter::once(Err(error))),
            };
            let pass = pass.clone();
            Box::new(std::iter::from_fn(move || {
                pass.batch(&mut lines).transpose()
            }))
        };
        Ok(Box::new(slices.into_iter().flat_map(read)))
    }
}

/// One reading of some of the columns.
struct Pass {
    schema: SchemaRef,
    names: HashMap<String, usize>,
    rows: usize,
    clock: Clock,
}

impl Pass {
    fn batch(&self, lines: &mut Lines) -> Result<Option<RecordBatch>, Error> {
        self.clock.check()?;
        let fields = self.schema.fields().iter();
        let mut builders: Vec<Builder> = fields
            .map(|field| Builder::new(field.data_type(), self.rows))
            .collect();
        let mut rows = 0;
        while rows < self.rows {
            let Some((number, line)) = lines.read()? else {
                break;
            };
            members(line, number, |name, value| match self.names.get(name) {
                Some(at) => builders[*at].push(value.get()),
                None => Ok(()),
            })?;
            rows += 1;
            builders.iter_mut().for_each(|builder| builder.fill(rows));
        }
        if rows == 0 {
            return Ok(None);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let arrays = builders.into_iter().map(Builder::finish).collect();
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
        batch.map(Some).map_err(|error| errors::of_file(&error))
    }
}

enum Builder {
    Boolean(BooleanBuilder),
    Int64(Int64Builder),
    Float64(Float64Builder),
    Decimal(Decimal128Builder, usize),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Text(StringBuilder),
}

impl Builder {
    fn new(kind: &DataType, rows: usize) -> Builder {
        match kind {
            DataType::Boolean => Builder::Boolean(BooleanBuilder::with_capacity(rows)),
            DataType::Int64 => Builder::Int64(Int64Builder::with_capacity(rows)),
            DataType::Float64 => Builder::Float64(Float64Builder::with_capacity(rows)),
            DataType::Decimal128(_, scale) => {
                let builder = Decimal128Builder::with_capacity(rows).with_data_type(kind.clone());
                Builder::Decimal(builder, usize::try_from(*scale).unwrap_or(0))
            }
            DataType::Date32 => Builder::Date(Date32Builder::with_capacity(rows)),
            DataType::Timestamp(_, zone) => {
                let builder = TimestampMicrosecondBuilder::with_capacity(rows)
                    .with_timezone_opt(zone.clone());
                Builder::Timestamp(builder)
            }
            _ => Builder::Text(StringBuilder::with_capacity(rows, 0)),
        }
    }

    /// One value, as it is written. Which type all of them have was found before.
    fn push(&mut self, value: &str) -> Result<(), Error> {
        if value == "null" {
            return Ok(());
        }
        let text = match value.starts_with('"') {
            true => unquoted(value)?,
            false => Cow::Borrowed(value),
        };
        match self {
            Builder::Text(builder) => builder.append_value(&text),
            Builder::Boolean(builder) => builder.append_value(&text == "true"),
            Builder::Int64(builder) => builder.append_value(text.parse().map_err(|_| changed())?),
            Builder::Float64(builder) => builder.append_value(text.parse().map_err(|_| changed())?),
            Builder::Decimal(builder, scale) => {
                builder.append_value(units(&text, *scale).ok_or_else(changed)?);
            }
            Builder::Date(builder) => {
                builder.append_value(Moment::parse(&text).ok_or_else(changed)?.days)
            }
            Builder::Timestamp(builder) => {
                builder.append_value(
                    Moment::parse(&text)
                        .ok_or_else(changed)?
                        .micros_since_1970(),
                );
            }
        }
        Ok(())
    }

    /// NULL where the row had nothing.
    fn fill(&mut self, rows: usize) {
        if self.as_builder().len() < rows {
            match self {
                Builder::Boolean(builder) => builder.append_null(),
                Builder::Int64(builder) => builder.append_null(),
                Builder::Float64(builder) => builder.append_null(),
                Builder::Decimal(builder, _) => builder.append_null(),
                Builder::Date(builder) => builder.append_null(),
                Builder::Timestamp(builder) => builder.append_null(),
                Builder::Text(builder) => builder.append_null(),
            }
        }
    }

    fn finish(mut self) -> datafusion::arrow::array::ArrayRef {
        self.as_builder().finish()
    }

    fn as_builder(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            Builder::Boolean(builder) => builder,
            Builder::Int64(builder) => builder,
            Builder::Float64(builder) => builder,
            Builder::Decimal(builder, _) => builder,
            Builder::Date(builder) => builder,
            Builder::Timestamp(builder) => builder,
            Builder::Text(builder) => builder,
        }
    }
}

/// The number in units of its last digit.
fn units(text: &str, scale: usize) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let zeros = scale.checked_sub(fraction.len())?;
    format!("{whole}{fraction}{}", "0".repeat(zeros))
        .parse()
        .ok()
}

/// Uploads do not change once they have a name, and neither does what is found in them.
fn changed() -> Error {
    Error::source_failed("file_changed", "the file was changed while it was read")
}
