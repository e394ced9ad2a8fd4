//! SQL Server's types: how they are named, described and written into rows. Written after MS-TDS 2.2.5.4 and 2.2.5.5, and judged by other people's clients
//! (`tests/engines/sqlserver.py`).

use rusqlite::types::Value;
use souk_sdk::time::{Date, parse_iso8601, parse_rfc3339};

use crate::tables::engines_own;

/// A type as a statement writes it: `decimal(10, 2)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    pub name: String,
    pub numbers: Vec<u32>,
    pub is_max: bool,
}

const MAX: u16 = 0xffff;
/// Latin1_General, of the code page 1252; and the same in UTF-8.
const LATIN: [u8; 5] = [0x09, 0x04, 0xd0, 0x00, 0x34];
const UTF8: [u8; 5] = [0x09, 0x04, 0x00, 0x04, 0x00];
const DAY_1900: i64 = -25_567;
const DAY_1: i64 = -719_162;

impl Kind {
    pub fn simple(name: &str) -> Kind {
        Kind {
            name: name.to_owned(),
            numbers: Vec::new(),
            is_max: false,
        }
    }

    pub fn parse(text: &str) -> Option<Kind> {
        let text = engines_own(text.trim()).to_ascii_lowercase();
        let (name, rest) = text.split_once('(').unwrap_or((&text, ""));
        let rest = rest.trim_end_matches(')').trim();
        let name = match name.trim() {
            "dec" => "decimal",
            "integer" => "int",
            "sysname" => "nvarchar",
            name => name,
        };
        let is_known = [
            "bit",
            "tinyint",
            "smallint",
            "int",
            "bigint",
            "real",
            "float",
            "money",
            "smallmoney",
            "decimal",
            "numeric",
            "date",
            "time",
            "datetime",
            "smalldatetime",
            "datetime2",
            "datetimeoffset",
            "char",
            "varchar",
            "nchar",
            "nvarchar",
            "text",
            "ntext",
            "image",
            "binary",
            "varbinary",
            "uniqueidentifier",
            "xml",
            "sql_variant",
            "utf8",
            "hierarchyid",
        ]
        .contains(&name);
        let numbers = rest
            .split(',')
            .filter_map(|number| number.trim().parse().ok());
        is_known.then(|| Kind {
            name: name.to_owned(),
            numbers: numbers.collect(),
            is_max: rest == "max",
        })
    }

    fn number(&self, at: usize, otherwise: u32) -> u32 {
        self.numbers.get(at).copied().unwrap_or(otherwise)
    }

    fn scale(&self) -> u32 {
        match self.name.as_str() {
            "decimal" | "numeric" => self.number(1, 0),
            "money" | "smallmoney" => 4,
            _ => self.number(0, 7),
        }
    }

    /// Of what a catalog tells: bytes, digits, digits behind the point.
    pub fn sizes(&self) -> (i64, i64, i64) {
        let bytes = match self.name.as_str() {
            _ if self.is_max => -1,
            "nvarchar" | "nchar" => 2 * i64::from(self.number(0, 1)),
            "varchar" | "char" | "varbinary" | "binary" => self.number(0, 1).into(),
            _ => 8,
        };
        match self.name.as_str() {
            "decimal" | "numeric" => (9, self.number(0, 18).into(), self.scale().into()),
            "time" | "datetime2" | "datetimeoffset" => (10, 27, self.scale().into()),
            _ => (bytes, 0, 0),
        }
    }

    /// What a description of columns says of the type.
    pub fn describe(&self, out: &mut Vec<u8>) {
        let sized = |out: &mut Vec<u8>, id: u8, of: u32, collation: Option<[u8; 5]>| {
            out.push(id);
            let bytes = match self.is_max {
                true => MAX,
                false => (self.number(0, 30) * of) as u16,
            };
            out.extend_from_slice(&bytes.to_le_bytes());
            out.extend(collation.into_iter().flatten());
        };
        match self.name.as_str() {
            "bit" => out.extend([0x68, 1]),
            "tinyint" => out.extend([0x26, 1]),
            "smallint" => out.extend([0x26, 2]),
            "int" => out.extend([0x26, 4]),
            "bigint" => out.extend([0x26, 8]),
            "real" => out.extend([0x6d, 4]),
            "float" => out.extend([0x6d, 8]),
            "smallmoney" => out.extend([0x6e, 4]),
            "money" => out.extend([0x6e, 8]),
            "smalldatetime" => out.extend([0x6f, 4]),
            "datetime" => out.extend([0x6f, 8]),
            "uniqueidentifier" => out.extend([0x24, 16]),
            "decimal" => out.extend([0x6a, 17, self.number(0, 18) as u8, self.scale() as u8]),
            "numeric" => out.extend([0x6c, 17, self.number(0, 18) as u8, self.scale() as u8]),
            "date" => out.push(0x28),
            "time" => out.extend([0x29, self.scale() as u8]),
            "datetime2" => out.extend([0x2a, self.scale() as u8]),
            "datetimeoffset" => out.extend([0x2b, self.scale() as u8]),
            "varbinary" => sized(out, 0xa5, 1, None),
            "binary" => sized(out, 0xad, 1, None),
            "varchar" => sized(out, 0xa7, 1, Some(LATIN)),
            "utf8" => sized(out, 0xa7, 1, Some(UTF8)),
            "char" => sized(out, 0xaf, 1, Some(LATIN)),
            "nvarchar" => sized(out, 0xe7, 2, Some(LATIN)),
            "nchar" => sized(out, 0xef, 2, Some(LATIN)),
            "xml" => out.extend([0xf1, 0]),
            "text" | "ntext" | "image" => {
                out.push(match self.name.as_str() {
                    "text" => 0x23,
                    "ntext" => 0x63,
                    _ => 0x22,
                });
                out.extend_from_slice(&i32::MAX.to_le_bytes());
                if self.name != "image" {
                    out.extend(LATIN);
                }
                // The table that it is of, in one part.
                out.extend([1, 1, 0, b't', 0]);
            }
            "sql_variant" => out.extend([0x62, 0x49, 0x1f, 0, 0]),
            "hierarchyid" => {
                out.extend([0xf0, 0x7c, 0x03]);
                for name in ["shop", "sys", "hierarchyid"] {
                    out.push(name.len() as u8);
                    out.extend(name.encode_utf16().flat_map(u16::to_le_bytes));
                }
                out.extend([0, 0]);
            }
            other => panic!("no type {other}"),
        }
    }

    /// A value with its length before it.
    pub fn write(&self, value: &Value, out: &mut Vec<u8>) {
        if *value == Value::Null {
            return match self.name.as_str() {
                "sql_variant" => out.extend([0; 4]),
                "text" | "ntext" | "image" => out.push(0),
                "xml" | "hierarchyid" => out.extend([0xff; 8]),
                _ if self.is_max => out.extend([0xff; 8]),
                "varbinary" | "binary" | "varchar" | "utf8" | "char" | "nvarchar" | "nchar" => {
                    out.extend([0xff; 2])
                }
                _ => out.push(0),
            };
        }
        let bytes = self.bytes(value);
        match self.name.as_str() {
            "sql_variant" => {
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend(bytes);
            }
            "text" | "ntext" | "image" => {
                out.push(16);
                out.extend([7; 16 + 8]);
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend(bytes);
            }
            "xml" | "hierarchyid" => chunked(&bytes, out),
            _ if self.is_max => chunked(&bytes, out),
            "varbinary" | "binary" | "varchar" | "utf8" | "char" | "nvarchar" | "nchar" => {
                out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
                out.extend(bytes);
            }
            _ => {
                out.push(bytes.len() as u8);
                out.extend(bytes);
            }
        }
    }

    fn bytes(&self, value: &Value) -> Vec<u8> {
        // What most rows are made of, without a text on the way.
        match (self.name.as_str(), value) {
            ("bit", Value::Integer(number)) => return vec![u8::from(*number != 0)],
            ("int", Value::Integer(number)) => return (*number as i32).to_le_bytes().into(),
            ("bigint", Value::Integer(number)) => return number.to_le_bytes().into(),
            ("float", Value::Real(number)) => return number.to_le_bytes().into(),
            ("nvarchar", Value::Text(text)) => return units(text),
            _ => {}
        }
        let text = shown(value);
        let integer = || {
            text.parse::<i64>()
                .unwrap_or_else(|_| panic!("{text} is no {}", self.name))
        };
        match self.name.as_str() {
            "bit" => vec![u8::from(text != "0")],
            "tinyint" => vec![integer() as u8],
            "smallint" => (integer() as i16).to_le_bytes().into(),
            "int" => (integer() as i32).to_le_bytes().into(),
            "bigint" => integer().to_le_bytes().into(),
            "real" => text.parse::<f32>().expect("a number").to_le_bytes().into(),
            "float" => text.parse::<f64>().expect("a number").to_le_bytes().into(),
            "decimal" | "numeric" => {
                let (is_negative, magnitude) = scaled(value, self.scale());
                let mut bytes = vec![u8::from(!is_negative)];
                bytes.extend_from_slice(&magnitude.to_le_bytes());
                bytes
            }
            "smallmoney" | "money" => {
                let (is_negative, magnitude) = scaled(value, 4);
                let units = if is_negative {
                    -(magnitude as i128)
                } else {
                    magnitude as i128
                } as i64;
                match self.name.as_str() {
                    "money" => [
                        ((units >> 32) as i32).to_le_bytes(),
                        (units as u32).to_le_bytes(),
                    ]
                    .concat(),
                    _ => (units as i32).to_le_bytes().into(),
                }
            }
            "date" => date(&text).to_le_bytes()[..3].into(),
            "time" => clock(&text, self.scale()),
            "datetime2" => {
                let (day, time) = text.split_once(['T', ' ']).unwrap_or((&text, "00:00:00"));
                [
                    &clock(time, self.scale())[..],
                    &date(day).to_le_bytes()[..3],
                ]
                .concat()
            }
            "datetimeoffset" => offset(&text, self.scale()),
            "datetime" => {
                let micros = local(&text);
                let (days, rest) = (
                    micros.div_euclid(86_400_000_000),
                    micros.rem_euclid(86_400_000_000),
                );
                let ticks = (rest * 3 + 5_000) / 10_000;
                [
                    ((days - DAY_1900) as i32).to_le_bytes(),
                    (ticks as u32).to_le_bytes(),
                ]
                .concat()
            }
            "smalldatetime" => {
                let minutes = local(&text).div_euclid(60_000_000);
                let days = (minutes.div_euclid(1_440) - DAY_1900) as u16;
                [
                    days.to_le_bytes(),
                    (minutes.rem_euclid(1_440) as u16).to_le_bytes(),
                ]
                .concat()
            }
            "uniqueidentifier" => {
                let hex: String = text.chars().filter(|char| *char != '-').collect();
                let bytes = hex::decode(hex).expect("a uniqueidentifier");
                [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]
                    .map(|at: usize| bytes[at])
                    .into()
            }
            "binary" | "varbinary" | "image" | "hierarchyid" => match value {
                Value::Blob(bytes) => bytes.clone(),
                _ => text.into_bytes(),
            },
            "varchar" | "char" | "text" => {
                let padded = match self.name.as_str() {
                    "char" => format!("{text:width$}", width = self.number(0, 1) as usize),
                    _ => text,
                };
                // What the page has beyond ISO 8859-1 is one sign here.
                padded
                    .chars()
                    .map(|char| {
                        if char == '€' {
                            0x80
                        } else {
                            char as u32 as u8
                        }
                    })
                    .collect()
            }
            "utf8" => text.into_bytes(),
            "nchar" => units(&format!(
                "{text:width$}",
                width = self.number(0, 1) as usize
            )),
            "nvarchar" | "ntext" | "xml" => units(&text),
            "sql_variant" => match value {
                Value::Integer(number) => {
                    [&[0x38, 0][..], &(*number as i32).to_le_bytes()].concat()
                }
                Value::Real(number) => [&[0x3e, 0][..], &number.to_le_bytes()].concat(),
                _ => {
                    let bytes = units(&text);
                    let mut out = vec![0xe7, 7];
                    out.extend(LATIN);
                    out.extend_from_slice(&8_000_u16.to_le_bytes());
                    out.extend(bytes);
                    out
                }
            },
            other => panic!("no type {other}"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn units(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// In chunks of which the last one is short, of a length that is said before or, every other time, not.
fn chunked(bytes: &[u8], out: &mut Vec<u8>) {
    let said = match bytes.len().is_multiple_of(4) {
        true => bytes.len() as u64,
        false => u64::MAX - 1,
    };
    out.extend_from_slice(&said.to_le_bytes());
    for chunk in bytes.chunks(7_000) {
        out.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
        out.extend_from_slice(chunk);
    }
    out.extend([0; 4]);
}

/// A number with so many digits behind the point, as one without.
fn scaled(value: &Value, scale: u32) -> (bool, u128) {
    let text = match value {
        Value::Real(number) => format!("{number:.scale$}", scale = scale as usize),
        other => shown(other),
    };
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction: String = format!("{fraction:0<width$}", width = scale as usize)
        .chars()
        .take(scale as usize)
        .collect();
    (
        is_negative,
        format!("{whole}{fraction}").parse().expect("a number"),
    )
}

/// Days since 0001-01-01.
fn date(text: &str) -> u32 {
    let date = Date::parse(&text[..10]).unwrap_or_else(|| panic!("{text} is no date"));
    (date.days() - DAY_1) as u32
}

/// A time of day in units of so many digits of a second.
fn clock(text: &str, digits: u32) -> Vec<u8> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let parts: Vec<i64> = clock
        .split(':')
        .map(|part| part.parse().expect("a time"))
        .collect();
    let seconds = parts[0] * 3_600 + parts[1] * 60 + parts.get(2).copied().unwrap_or_default();
    let fraction: String = format!("{fraction:0<7}")
        .chars()
        .take(digits as usize)
        .collect();
    let units = seconds * 10_i64.pow(digits) + fraction.parse::<i64>().unwrap_or_default();
    let bytes = match digits {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    };
    units.to_le_bytes()[..bytes].into()
}

/// `2026-01-01T01:00:00.0000001+01:00`, or in UTC without an offset.
fn offset(text: &str, digits: u32) -> Vec<u8> {
    let (moment, minutes) = match text[10..].rfind(['+', '-']) {
        Some(at) => {
            let (moment, offset) = text.split_at(10 + at);
            let parts: Vec<i64> = offset[1..]
                .split(':')
                .map(|part| part.parse().expect("an offset"))
                .collect();
            let minutes = parts[0] * 60 + parts[1];
            (
                moment,
                if offset.starts_with('-') {
                    -minutes
                } else {
                    minutes
                },
            )
        }
        None => (text.trim_end_matches('Z'), 0),
    };
    let moment = moment.trim().replacen(' ', "T", 1);
    let (clock_text, fraction) = moment.split_once('.').unwrap_or((&moment, ""));
    let utc = parse_rfc3339(&format!("{clock_text}Z")).expect("a moment") - minutes * 60_000_000;
    let utc = souk_sdk::time::iso8601(utc);
    let (day, time) = utc[..19].split_once('T').expect("a moment");
    let time = clock(&format!("{time}.{fraction}"), digits);
    [
        &time[..],
        &date(day).to_le_bytes()[..3],
        &(minutes as i16).to_le_bytes(),
    ]
    .concat()
}

fn local(text: &str) -> i64 {
    let text = match text.len() {
        10 => format!("{text}T00:00:00"),
        _ => text.replacen(' ', "T", 1),
    };
    parse_iso8601(&text).unwrap_or_else(|| panic!("{text} is no time"))
}
