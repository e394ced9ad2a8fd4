//! What a column of a result becomes, and where its values stand in a row.

use encoding_rs::Encoding;
use souk_sdk::{Column, ColumnType, Error};
use tds_protocol::token::{Collation, ColumnData, TypeInfo};
use tds_protocol::types::TypeId;

use crate::dates::{DIGITS_MAX, MICRO_DIGITS};
use crate::protocol::malformed;

/// Flags of a column: it may be NULL, or it is not known whether it may.
const NULLABLE: u16 = 0x0001;
const NULLABLE_UNKNOWN: u16 = 0x8000;
/// The length of `varchar(max)` and its kin, whose values come in chunks.
const UNBOUNDED: u32 = 0xffff;
pub const DECIMAL_DIGITS_MAX: u8 = 38;

/// What the bytes of a value are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// NULL is its only value.
    Nothing,
    Bit,
    Int,
    Float,
    Money,
    /// With so many digits behind the point.
    Decimal(u8),
    /// Text in a code page.
    Chars(&'static Encoding),
    /// Text in UTF-16.
    Wide,
    Bytes,
    Guid,
    Date,
    /// With so many digits of a second, as the next ones.
    Time(u8),
    DateTime2(u8),
    DateTimeOffset(u8),
    /// `datetime` or, of four bytes, `smalldatetime`.
    DateTime,
    /// A type of its own with each value.
    Variant,
}

/// How a row says how long a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    Fixed(usize),
    /// In a byte; 0 is NULL.
    Byte,
    /// In two bytes; 0xffff is NULL.
    Short,
    /// In chunks.
    Chunks,
    /// Behind a pointer that is not needed (`text`, `ntext`, `image`).
    Pointer,
    /// In four bytes; 0 is NULL (`sql_variant`).
    Long,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub kind: Kind,
    pub length: Length,
}

/// A result's column, and how its values are read.
pub fn column(described: &ColumnData) -> Result<(Column, Reading), Error> {
    let (length, kind) = of(
        described.type_id,
        &described.type_info,
        described.name.as_str(),
    )?;
    let column = Column {
        name: described.name.clone(),
        kind: column_type(kind),
        nullable: described.flags & (NULLABLE | NULLABLE_UNKNOWN) != 0,
        native: native(described.type_id, &described.type_info),
    };
    Ok((column, Reading { kind, length }))
}

fn of(id: TypeId, info: &TypeInfo, name: &str) -> Result<(Length, Kind), Error> {
    let digits = || match info.scale {
        Some(digits @ 0..=DIGITS_MAX) => Ok(digits),
        _ => Err(malformed()),
    };
    let sized = || match info.max_length {
        Some(UNBOUNDED) => Length::Chunks,
        _ => Length::Short,
    };
    Ok(match id {
        TypeId::Null => (Length::Fixed(0), Kind::Nothing),
        TypeId::Bit => (Length::Fixed(1), Kind::Bit),
        TypeId::Int1 => (Length::Fixed(1), Kind::Int),
        TypeId::Int2 => (Length::Fixed(2), Kind::Int),
        TypeId::Int4 => (Length::Fixed(4), Kind::Int),
        TypeId::Int8 => (Length::Fixed(8), Kind::Int),
        TypeId::Float4 => (Length::Fixed(4), Kind::Float),
        TypeId::Float8 => (Length::Fixed(8), Kind::Float),
        TypeId::Money4 => (Length::Fixed(4), Kind::Money),
        TypeId::Money => (Length::Fixed(8), Kind::Money),
        TypeId::DateTime4 => (Length::Fixed(4), Kind::DateTime),
        TypeId::DateTime => (Length::Fixed(8), Kind::DateTime),
        TypeId::BitN => (Length::Byte, Kind::Bit),
        TypeId::IntN => (Length::Byte, Kind::Int),
        TypeId::FloatN => (Length::Byte, Kind::Float),
        TypeId::MoneyN => (Length::Byte, Kind::Money),
        TypeId::DateTimeN => (Length::Byte, Kind::DateTime),
        TypeId::Guid => (Length::Byte, Kind::Guid),
        TypeId::Decimal | TypeId::Numeric | TypeId::DecimalN | TypeId::NumericN => {
            match (info.precision, info.scale) {
                (Some(1..=DECIMAL_DIGITS_MAX), Some(scale @ 0..=DECIMAL_DIGITS_MAX)) => {
                    (Length::Byte, Kind::Decimal(scale))
                }
                _ => return Err(malformed()),
            }
        }
        TypeId::Date => (Length::Byte, Kind::Date),
        TypeId::Time => (Length::Byte, Kind::Time(digits()?)),
        TypeId::DateTime2 => (Length::Byte, Kind::DateTime2(digits()?)),
        TypeId::DateTimeOffset => (Length::Byte, Kind::DateTimeOffset(digits()?)),
        TypeId::BigVarBinary | TypeId::BigBinary => (sized(), Kind::Bytes),
        TypeId::BigVarChar | TypeId::BigChar => {
            (sized(), Kind::Chars(encoding(info.collation, name)?))
        }
        TypeId::NVarChar | TypeId::NChar => (sized(), Kind::Wide),
        TypeId::Xml => (Length::Chunks, Kind::Wide),
        TypeId::Text => (
            Length::Pointer,
            Kind::Chars(encoding(info.collation, name)?),
        ),
        TypeId::NText => (Length::Pointer, Kind::Wide),
        TypeId::Image => (Length::Pointer, Kind::Bytes),
        TypeId::Variant => (Length::Long, Kind::Variant),
        TypeId::Udt => {
            return Err(unsupported(
                name,
                "is of a type of the CLR (hierarchyid, geography, geometry or one of your own): read it by ToString() or CAST it",
            ));
        }
        _ => {
            return Err(unsupported(
                name,
                "is of a type that this connector does not read: CAST it",
            ));
        }
    })
}

fn unsupported(name: &str, what: &str) -> Error {
    Error::new(
        souk_sdk::ErrorClass::Unsupported,
        "unsupported_type",
        format!("a column of the result {what}"),
    )
    .detail(format!("column \"{name}\""))
}

/// The code page of a column's texts.
pub fn encoding(collation: Option<Collation>, name: &str) -> Result<&'static Encoding, Error> {
    match collation {
        Some(collation) if collation.is_utf8() => Ok(encoding_rs::UTF_8),
        Some(collation) => collation.encoding().ok_or_else(|| {
            unsupported(
                name,
                "has texts of a code page that this connector does not read: CAST it AS nvarchar",
            )
        }),
        None => Err(malformed()),
    }
}

fn column_type(kind: Kind) -> ColumnType {
    match kind {
        Kind::Bit => ColumnType::Boolean,
        Kind::Int => ColumnType::Int64,
        Kind::Float => ColumnType::Float64,
        Kind::Money | Kind::Decimal(_) => ColumnType::Decimal,
        Kind::Bytes => ColumnType::Bytes,
        Kind::Date => ColumnType::Date,
        Kind::Time(0..=MICRO_DIGITS) => ColumnType::Time,
        Kind::DateTime2(0..=MICRO_DIGITS) | Kind::DateTime => ColumnType::LocalTimestamp,
        Kind::DateTimeOffset(0..=MICRO_DIGITS) => ColumnType::Timestamp,
        _ => ColumnType::Text,
    }
}

/// As the server's own catalog writes it.
fn native(id: TypeId, info: &TypeInfo) -> String {
    let bytes = info.max_length.unwrap_or_default();
    let by_bytes = |names: [&str; 4]| {
        let name = match bytes {
            1 => names[0],
            2 => names[1],
            4 => names[2],
            _ => names[3],
        };
        name.to_owned()
    };
    let sized = |name: &str, of: u32| match bytes {
        UNBOUNDED => format!("{name}(max)"),
        _ => format!("{name}({})", bytes / of),
    };
    let digits = info.scale.unwrap_or_default();
    match id {
        TypeId::Null => "null".into(),
        TypeId::Bit | TypeId::BitN => "bit".into(),
        TypeId::Int1 => "tinyint".into(),
        TypeId::Int2 => "smallint".into(),
        TypeId::Int4 => "int".into(),
        TypeId::Int8 => "bigint".into(),
        TypeId::IntN => by_bytes(["tinyint", "smallint", "int", "bigint"]),
        TypeId::Float4 => "real".into(),
        TypeId::Float8 => "float".into(),
        TypeId::FloatN => by_bytes(["real", "real", "real", "float"]),
        TypeId::Money4 => "smallmoney".into(),
        TypeId::Money => "money".into(),
        TypeId::MoneyN => by_bytes(["smallmoney", "smallmoney", "smallmoney", "money"]),
        TypeId::DateTime4 => "smalldatetime".into(),
        TypeId::DateTime => "datetime".into(),
        TypeId::DateTimeN => by_bytes([
            "smalldatetime",
            "smalldatetime",
            "smalldatetime",
            "datetime",
        ]),
        TypeId::Guid => "uniqueidentifier".into(),
        TypeId::Decimal | TypeId::DecimalN => {
            format!("decimal({},{digits})", info.precision.unwrap_or_default())
        }
        TypeId::Numeric | TypeId::NumericN => {
            format!("numeric({},{digits})", info.precision.unwrap_or_default())
        }
        TypeId::Date => "date".into(),
        TypeId::Time => format!("time({digits})"),
        TypeId::DateTime2 => format!("datetime2({digits})"),
        TypeId::DateTimeOffset => format!("datetimeoffset({digits})"),
        TypeId::BigVarBinary => sized("varbinary", 1),
        TypeId::BigBinary => sized("binary", 1),
        TypeId::BigVarChar => sized("varchar", 1),
        TypeId::BigChar => sized("char", 1),
        TypeId::NVarChar => sized("nvarchar", 2),
        TypeId::NChar => sized("nchar", 2),
        TypeId::Xml => "xml".into(),
        TypeId::Text => "text".into(),
        TypeId::NText => "ntext".into(),
        TypeId::Image => "image".into(),
        TypeId::Variant => "sql_variant".into(),
        _ => "udt".into(),
    }
}
