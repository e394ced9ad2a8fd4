//! What the server says of a column, and which type its values are read by ([`Reading`]).

use crate::dates::DECIMALS_MAX;
use crate::protocol::{self, Reader};
use crate::values::Reading;
use souk_sdk::Error;
use std::borrow::Cow;

/// Numbers of types in the protocol.
pub mod id {
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const VECTOR: u8 = 242;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

const UNSIGNED: u16 = 1 << 5;
const IS_BINARY: u16 = 1 << 7;
const IS_ENUM: u16 = 1 << 8;
const IS_SET: u16 = 1 << 11;
/// Bytes that the longest character of utf8mb4 takes: lengths are given in bytes.
const CHARACTER_BYTES: u32 = 4;

/// What the server says of a column.
pub struct Definition<'a> {
    pub name: &'a [u8],
    /// It is a column of a table or a view, and not something that the statement computes.
    is_of_table: bool,
    character_set: u16,
    length: u32,
    kind: u8,
    flags: u16,
    decimals: u8,
}

impl<'a> Definition<'a> {
    pub fn read(body: &'a [u8]) -> Result<Definition<'a>, Error> {
        let mut reader = Reader(body);
        // Catalog, schema, table.
        for _ in 0..3 {
            reader.sized()?;
        }
        let own_table = reader.sized()?;
        let name = reader.sized()?;
        let _own_name = reader.sized()?;
        let mut reader = Reader(reader.sized()?);
        Ok(Definition {
            name,
            is_of_table: !own_table.is_empty(),
            character_set: reader.u16()?,
            length: reader.u32()?,
            kind: reader.u8()?,
            flags: reader.u16()?,
            decimals: reader.u8()?,
        })
    }

    fn is_unsigned(&self) -> bool {
        self.flags & UNSIGNED != 0
    }

    /// How many a BIT has.
    fn bits(&self) -> u8 {
        u8::try_from(self.length).unwrap_or(u8::MAX)
    }

    fn is_text(&self) -> bool {
        self.character_set != protocol::BINARY
    }

    pub fn reading(&self) -> Result<Reading, Error> {
        Ok(match (self.kind, self.is_unsigned()) {
            (id::TINY, false) => Reading::I8,
            (id::TINY, true) => Reading::U8,
            (id::SHORT, false) => Reading::I16,
            (id::SHORT, true) | (id::YEAR, _) => Reading::U16,
            (id::LONG | id::INT24, false) => Reading::I32,
            (id::LONG | id::INT24, true) => Reading::U32,
            (id::LONGLONG, false) => Reading::I64,
            (id::LONGLONG, true) => Reading::U64,
            (id::FLOAT, _) => Reading::F32,
            (id::DOUBLE, _) => Reading::F64,
            (id::NULL, _) => Reading::Null,
            (id::TIMESTAMP, _) => Reading::Moment,
            (id::DATETIME, _) => Reading::LocalMoment,
            (id::DATE, _) => Reading::Date,
            (id::TIME, _) => Reading::Time(self.decimals.min(DECIMALS_MAX)),
            // What MariaDB computes has that flag, and what MySQL computes has no table.
            (id::BIT, _) if self.flags & IS_BINARY != 0 || !self.is_of_table => {
                Reading::ComputedBits(self.bits())
            }
            (id::BIT, _) => Reading::Bits(self.bits()),
            (id::JSON, _) => Reading::Json,
            (id::NEWDECIMAL | id::DECIMAL, _) => Reading::Decimal,
            (id::GEOMETRY | id::VECTOR, _) => Reading::Bytes,
            (
                id::VARCHAR
                | id::ENUM
                | id::SET
                | id::TINY_BLOB
                | id::MEDIUM_BLOB
                | id::LONG_BLOB
                | id::BLOB
                | id::VAR_STRING
                | id::STRING,
                _,
            ) => match self.is_text() {
                true => Reading::Text,
                false => Reading::Bytes,
            },
            (other, _) => {
                return Err(Error::unsupported("a type of the result's columns")
                    .detail(format!("type {other} of the protocol")));
            }
        })
    }

    /// The type's name for people: `int unsigned`, `decimal(10,2)`, `varchar(20)`.
    pub fn native(&self) -> Cow<'static, str> {
        let name = match self.kind {
            id::TINY => "tinyint",
            id::SHORT => "smallint",
            id::INT24 => "mediumint",
            id::LONG => "int",
            id::LONGLONG => "bigint",
            id::YEAR => return "year".into(),
            id::FLOAT => return "float".into(),
            id::DOUBLE => return "double".into(),
            id::NULL => return "null".into(),
            id::DATE => return "date".into(),
            id::JSON => return "json".into(),
            id::GEOMETRY => return "geometry".into(),
            id::VECTOR => return "vector".into(),
            id::BIT => return format!("bit({})", self.length).into(),
            id::DECIMAL | id::NEWDECIMAL => return self.decimal().into(),
            id::TIME => return self.precise("time"),
            id::TIMESTAMP => return self.precise("timestamp"),
            id::DATETIME => return self.precise("datetime"),
            _ if self.flags & IS_ENUM != 0 => return "enum".into(),
            _ if self.flags & IS_SET != 0 => return "set".into(),
            _ => return self.string(),
        };
        match self.is_unsigned() {
            true => format!("{name} unsigned").into(),
            false => name.into(),
        }
    }

    fn decimal(&self) -> String {
        let point = u32::from(self.decimals > 0);
        let sign = u32::from(!self.is_unsigned());
        let digits = self.length.saturating_sub(point + sign);
        format!("decimal({digits},{})", self.decimals)
    }

    fn precise(&self, name: &'static str) -> Cow<'static, str> {
        match self.decimals {
            1..=DECIMALS_MAX => format!("{name}({})", self.decimals).into(),
            _ => name.into(),
        }
    }

    fn string(&self) -> Cow<'static, str> {
        let is_text = self.is_text();
        let length = match is_text {
            true => self.length / CHARACTER_BYTES,
            false => self.length,
        };
        match (self.kind, is_text) {
            (id::STRING, true) => format!("char({length})").into(),
            (id::STRING, false) => format!("binary({length})").into(),
            (id::VARCHAR | id::VAR_STRING, true) => format!("varchar({length})").into(),
            (id::VARCHAR | id::VAR_STRING, false) => format!("varbinary({length})").into(),
            (_, is_text) => {
                let size = match length {
                    0..=0xff => "tiny",
                    0x100..=0xffff => "",
                    0x1_0000..=0xff_ffff => "medium",
                    _ => "long",
                };
                format!("{size}{}", if is_text { "text" } else { "blob" }).into()
            }
        }
    }
}
