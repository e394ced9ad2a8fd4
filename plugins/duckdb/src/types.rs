//! Logical types as DuckDB serializes them, and what becomes of their values.

use std::fmt;

use souk_sdk::{Column, ColumnType, Error};

use crate::errors::malformed;
use crate::wire::Reader;

/// Columns and fields of all depths that a result has at most.
pub const FIELDS_MAX: usize = 10_000;
/// How deep types lie in each other.
pub const DEPTH_MAX: usize = 64;
/// Words that a result's enumerations have together.
const WORDS_MAX: usize = 200_000;
/// The shortest type is written in so many bytes.
const TYPE_BYTES_MIN: usize = 5;
/// Digits of a `DECIMAL`.
const DIGITS_MAX: u64 = 38;

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Boolean,
    /// Of so many bytes.
    Signed(usize),
    Unsigned(usize),
    Float,
    Double,
    Decimal {
        width: u8,
        scale: u8,
    },
    Bignum,
    Varchar,
    Json,
    Blob,
    Bit,
    Uuid,
    /// As WKB.
    Geometry,
    Date,
    Time,
    TimeNs,
    TimeTz,
    TimestampS,
    TimestampMs,
    Timestamp,
    TimestampNs,
    TimestampTz,
    Interval,
    Enum(Vec<String>),
    List(Box<Type>),
    Array(Box<Type>, usize),
    Map(Box<Type>, Box<Type>),
    Struct(Vec<(String, Type)>),
    /// Its members; a tag of one byte says which of them there is.
    Union(Vec<(String, Type)>),
}

/// How values lie in a vector.
pub enum Layout<'a> {
    /// So many bytes each.
    Fixed(usize),
    Texts,
    List(Child<'a>),
    Array(&'a Type, usize),
    Struct(Vec<Child<'a>>),
}

/// A part of a nested type.
#[derive(Clone, Copy)]
pub enum Child<'a> {
    Of(&'a Type),
    /// Key and value of a map.
    Entry(&'a Type, &'a Type),
    /// Which member of a union there is.
    Tag,
}

impl Child<'_> {
    pub fn layout(&self) -> Layout<'_> {
        match self {
            Child::Of(kind) => kind.layout(),
            Child::Entry(key, value) => Layout::Struct(vec![Child::Of(key), Child::Of(value)]),
            Child::Tag => Layout::Fixed(1),
        }
    }
}

impl Type {
    pub fn layout(&self) -> Layout<'_> {
        match self {
            Type::Boolean => Layout::Fixed(1),
            Type::Signed(bytes) | Type::Unsigned(bytes) => Layout::Fixed(*bytes),
            Type::Float | Type::Date => Layout::Fixed(4),
            Type::Double
            | Type::Time
            | Type::TimeNs
            | Type::TimeTz
            | Type::TimestampS
            | Type::TimestampMs
            | Type::Timestamp
            | Type::TimestampNs
            | Type::TimestampTz => Layout::Fixed(8),
            Type::Uuid | Type::Interval => Layout::Fixed(16),
            Type::Decimal { width, .. } => Layout::Fixed(match width {
                ..=4 => 2,
                5..=9 => 4,
                10..=18 => 8,
                _ => 16,
            }),
            Type::Enum(words) => Layout::Fixed(match words.len() {
                ..=0xff => 1,
                0x100..=0xffff => 2,
                _ => 4,
            }),
            Type::Varchar | Type::Json | Type::Blob | Type::Bit | Type::Bignum | Type::Geometry => {
                Layout::Texts
            }
            Type::List(element) => Layout::List(Child::Of(element)),
            Type::Map(key, value) => Layout::List(Child::Entry(key, value)),
            Type::Array(element, size) => Layout::Array(element, *size),
            Type::Struct(fields) => {
                Layout::Struct(fields.iter().map(|(_, kind)| Child::Of(kind)).collect())
            }
            Type::Union(members) => {
                let members = members.iter().map(|(_, kind)| Child::Of(kind));
                Layout::Struct([Child::Tag].into_iter().chain(members).collect())
            }
        }
    }

    pub fn column_type(&self) -> ColumnType {
        match self {
            Type::Boolean => ColumnType::Boolean,
            Type::Signed(..=8) | Type::Unsigned(..=4) => ColumnType::Int64,
            Type::Signed(_) | Type::Unsigned(_) | Type::Decimal { .. } | Type::Bignum => {
                ColumnType::Decimal
            }
            Type::Float | Type::Double => ColumnType::Float64,
            Type::Blob | Type::Geometry => ColumnType::Bytes,
            Type::Date => ColumnType::Date,
            Type::Time => ColumnType::Time,
            Type::TimestampS | Type::TimestampMs | Type::Timestamp => ColumnType::LocalTimestamp,
            Type::TimestampTz => ColumnType::Timestamp,
            Type::Varchar
            | Type::Bit
            | Type::Uuid
            | Type::TimeNs
            | Type::TimeTz
            | Type::TimestampNs
            | Type::Interval
            | Type::Enum(_) => ColumnType::Text,
            Type::Json
            | Type::List(_)
            | Type::Array(..)
            | Type::Map(..)
            | Type::Struct(_)
            | Type::Union(_) => ColumnType::Json,
        }
    }
}

/// As DuckDB writes it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Boolean => "BOOLEAN",
            Type::Signed(1) => "TINYINT",
            Type::Signed(2) => "SMALLINT",
            Type::Signed(4) => "INTEGER",
            Type::Signed(8) => "BIGINT",
            Type::Signed(_) => "HUGEINT",
            Type::Unsigned(1) => "UTINYINT",
            Type::Unsigned(2) => "USMALLINT",
            Type::Unsigned(4) => "UINTEGER",
            Type::Unsigned(8) => "UBIGINT",
            Type::Unsigned(_) => "UHUGEINT",
            // To others a `FLOAT` has 64 bits.
            Type::Float => "REAL",
            Type::Double => "DOUBLE",
            Type::Decimal { width, scale } => return write!(f, "DECIMAL({width},{scale})"),
            Type::Bignum => "BIGNUM",
            Type::Varchar => "VARCHAR",
            Type::Json => "JSON",
            Type::Blob => "BLOB",
            Type::Bit => "BIT",
            Type::Uuid => "UUID",
            Type::Geometry => "GEOMETRY",
            Type::Date => "DATE",
            Type::Time => "TIME",
            Type::TimeNs => "TIME_NS",
            Type::TimeTz => "TIME WITH TIME ZONE",
            Type::TimestampS => "TIMESTAMP_S",
            Type::TimestampMs => "TIMESTAMP_MS",
            Type::Timestamp => "TIMESTAMP",
            Type::TimestampNs => "TIMESTAMP_NS",
            Type::TimestampTz => "TIMESTAMP WITH TIME ZONE",
            Type::Interval => "INTERVAL",
            // Its words are no part of a name.
            Type::Enum(_) => "ENUM",
            Type::List(element) => return write!(f, "{element}[]"),
            Type::Array(element, size) => return write!(f, "{element}[{size}]"),
            Type::Map(key, value) => return write!(f, "MAP({key}, {value})"),
            Type::Struct(fields) => return members(f, "STRUCT", fields),
            Type::Union(fields) => return members(f, "UNION", fields),
        })
    }
}

fn members(f: &mut fmt::Formatter<'_>, word: &str, fields: &[(String, Type)]) -> fmt::Result {
    write!(f, "{word}(")?;
    for (place, (name, kind)) in fields.iter().enumerate() {
        let comma = if place > 0 { ", " } else { "" };
        match name.as_str() {
            "" => write!(f, "{comma}{kind}")?,
            name => write!(f, "{comma}\"{}\" {kind}", name.replace('"', "\"\""))?,
        }
    }
    f.write_str(")")
}

/// The columns of a result: a list of types, and one of names.
pub fn columns(types: &[Type], names: &[&str]) -> Vec<Column> {
    let columns = types.iter().zip(names);
    let columns = columns.map(|(kind, name)| Column {
        name: (*name).to_owned(),
        kind: kind.column_type(),
        // Nobody says that it is not.
        nullable: true,
        native: kind.to_string(),
    });
    columns.collect()
}

/// A list of types.
pub fn list(reader: &mut Reader<'_>) -> Result<Vec<Type>, Error> {
    let mut room = Room {
        fields: FIELDS_MAX,
        words: WORDS_MAX,
    };
    let count = reader.count(TYPE_BYTES_MIN)?;
    let types = (0..count).map(|_| read(reader, 0, &mut room));
    types.collect()
}

/// What a list of types may still have.
struct Room {
    fields: usize,
    words: usize,
}

/// What a type has besides its id.
enum More {
    Nothing,
    Decimal {
        width: u64,
        scale: u64,
    },
    List(Type),
    Array(Type, u64),
    Struct(Vec<(String, Type)>),
    Enum(Vec<String>),
    /// What a type of the same name and no values of its own is called.
    Alias(String),
}

fn read(reader: &mut Reader<'_>, depth: usize, room: &mut Room) -> Result<Type, Error> {
    room.fields = room.fields.checked_sub(1).ok_or_else(|| {
        Error::limit_exceeded(
            "too_many_fields",
            format!("the result has more than {FIELDS_MAX} columns and fields"),
        )
    })?;
    if depth == DEPTH_MAX {
        return Err(Error::limit_exceeded(
            "too_deep",
            format!("a type of the result is nested more than {DEPTH_MAX} times"),
        ));
    }
    reader.field(100)?;
    let id = reader.number()?;
    if let Some(wanted) = refused(id) {
        return Err(wanted);
    }
    let more = match reader.is_field(101) && reader.boolean()? {
        true => more(reader, depth, room)?,
        false => More::Nothing,
    };
    reader.end()?;
    known(id, more)
}

/// The type of an id.
fn known(id: u64, more: More) -> Result<Type, Error> {
    Ok(match (id, more) {
        // A NULL of no type.
        (1, _) => Type::Signed(4),
        (10, _) => Type::Boolean,
        (11, _) => Type::Signed(1),
        (12, _) => Type::Signed(2),
        (13, _) => Type::Signed(4),
        (14, _) => Type::Signed(8),
        (15, _) => Type::Date,
        (16, _) => Type::Time,
        (17, _) => Type::TimestampS,
        (18, _) => Type::TimestampMs,
        (19, _) => Type::Timestamp,
        (20, _) => Type::TimestampNs,
        (21, More::Decimal { width, scale }) if width <= DIGITS_MAX && scale <= width => {
            Type::Decimal {
                width: width as u8,
                scale: scale as u8,
            }
        }
        (22, _) => Type::Float,
        (23, _) => Type::Double,
        (24 | 25, More::Alias(alias)) if alias == "JSON" => Type::Json,
        (24 | 25, _) => Type::Varchar,
        (26, _) => Type::Blob,
        (27, _) => Type::Interval,
        (28, _) => Type::Unsigned(1),
        (29, _) => Type::Unsigned(2),
        (30, _) => Type::Unsigned(4),
        (31, _) => Type::Unsigned(8),
        (32, _) => Type::TimestampTz,
        (34, _) => Type::TimeTz,
        (35, _) => Type::TimeNs,
        (36, _) => Type::Bit,
        (39, _) => Type::Bignum,
        (49, _) => Type::Unsigned(16),
        (50, _) => Type::Signed(16),
        (54, _) => Type::Uuid,
        (60, _) => Type::Geometry,
        (100, More::Struct(fields)) if !fields.is_empty() => Type::Struct(fields),
        (101, More::List(element)) => Type::List(Box::new(element)),
        (102, More::List(Type::Struct(entry))) => map(entry)?,
        (104, More::Enum(words)) => Type::Enum(words),
        (107, More::Struct(mut fields)) if fields.len() > 1 => {
            let (_, tag) = fields.remove(0);
            match tag {
                Type::Unsigned(1) => Type::Union(fields),
                _ => return Err(malformed()),
            }
        }
        (108, More::Array(element, size @ 1..)) => {
            let size = usize::try_from(size).map_err(|_| malformed())?;
            Type::Array(Box::new(element), size)
        }
        _ => return Err(malformed()),
    })
}

/// A map is a list of what has a key and a value.
fn map(mut entry: Vec<(String, Type)>) -> Result<Type, Error> {
    let (Some((_, value)), Some((_, key)), None) = (entry.pop(), entry.pop(), entry.pop()) else {
        return Err(malformed());
    };
    // Of two documents, `1` and `"1"`, the same name would be made.
    if let Type::List(_)
    | Type::Array(..)
    | Type::Map(..)
    | Type::Struct(_)
    | Type::Union(_)
    | Type::Json = key
    {
        return Err(unsupported(
            "MAP with keys that are nested",
            ": write map_entries(…)",
        ));
    }
    Ok(Type::Map(Box::new(key), Box::new(value)))
}

/// Types that nobody is told the values of.
fn refused(id: u64) -> Option<Error> {
    let (name, instead) = match id {
        109 => ("VARIANT", ": write CAST(… AS JSON)"),
        105 => ("AGGREGATE_STATE", ": write finalize(…)"),
        51 => ("POINTER", ""),
        106 => ("LAMBDA", ""),
        6 => ("TYPE", ": write CAST(… AS VARCHAR)"),
        _ => return None,
    };
    Some(unsupported(name, instead))
}

fn unsupported(name: &str, instead: &str) -> Error {
    Error::source_failed(
        "unsupported_type",
        format!("the result has a column of the type {name}, which has no values here{instead}"),
    )
}

/// Reads an `ExtraTypeInfo`.
fn more(reader: &mut Reader<'_>, depth: usize, room: &mut Room) -> Result<More, Error> {
    reader.field(100)?;
    let id = reader.number()?;
    let alias = match reader.is_field(101) {
        true => reader.text()?.to_owned(),
        false => String::new(),
    };
    // What an extension says of a type of its own (`extension_info`).
    if reader.is_field(103) && reader.boolean()? {
        return Err(unsupported("of an extension", ": CAST it"));
    }
    let more = match id {
        // Nothing but a name.
        0 | 1 => More::Alias(alias),
        2 => More::Decimal {
            width: optional(reader, 200)?,
            scale: optional(reader, 201)?,
        },
        3 => {
            if reader.is_field(200) {
                reader.text()?;
            }
            More::Alias(alias)
        }
        4 => {
            reader.field(200)?;
            More::List(read(reader, depth + 1, room)?)
        }
        5 => More::Struct(fields(reader, depth, room)?),
        6 => More::Enum(words(reader, room)?),
        9 => {
            reader.field(200)?;
            let element = read(reader, depth + 1, room)?;
            More::Array(element, optional(reader, 201)?)
        }
        13 => {
            geometry(reader)?;
            More::Nothing
        }
        _ => return Err(malformed()),
    };
    reader.end()?;
    Ok(more)
}

/// A number that is left out where it is 0.
fn optional(reader: &mut Reader<'_>, number: u16) -> Result<u64, Error> {
    match reader.is_field(number) {
        true => reader.number(),
        false => Ok(0),
    }
}

/// Names and types of a struct's fields.
fn fields(
    reader: &mut Reader<'_>,
    depth: usize,
    room: &mut Room,
) -> Result<Vec<(String, Type)>, Error> {
    if !reader.is_field(200) {
        return Ok(Vec::new());
    }
    let count = reader.count(TYPE_BYTES_MIN)?;
    let fields = (0..count).map(|_| {
        reader.field(0)?;
        let name = reader.text()?.to_owned();
        reader.field(1)?;
        let kind = read(reader, depth + 1, room)?;
        reader.end()?;
        Ok((name, kind))
    });
    fields.collect()
}

fn words(reader: &mut Reader<'_>, room: &mut Room) -> Result<Vec<String>, Error> {
    reader.field(200)?;
    let wanted = reader.number()?;
    reader.field(201)?;
    let count = reader.count(1)?;
    if wanted != count as u64 {
        return Err(malformed());
    }
    room.words = room.words.checked_sub(count).ok_or_else(|| {
        Error::limit_exceeded(
            "too_many_words",
            format!("the result's enumerations have more than {WORDS_MAX} words: write CAST(… AS VARCHAR)"),
        )
    })?;
    let words = (0..count).map(|_| reader.text().map(str::to_owned));
    words.collect()
}

/// The coordinates that a geometry is in, which are not told.
fn geometry(reader: &mut Reader<'_>) -> Result<(), Error> {
    if reader.is_field(200) {
        if reader.is_field(100) {
            reader.text()?;
        }
        reader.end()?;
    }
    Ok(())
}
