//! Calls of procedures (MS-TDS 2.2.6.6): the values that are bound, as their types have them.

use std::collections::HashMap;

use rusqlite::types::Value;
use souk_sdk::time::{Date, TimeOfDay, iso8601, rfc3339};

use super::login::units;
use super::types::Kind;

/// A value and its type, which a statement that only echoes it needs.
#[derive(Clone, Debug)]
pub struct Bound {
    pub kind: Kind,
    pub value: Value,
}

pub type Values = HashMap<String, Bound>;

/// What is called, and with what: unnamed values have no name.
pub struct Call {
    pub procedure: String,
    pub values: Vec<(String, Bound)>,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(self.take(bytes)?);
        Some(u64::from_le_bytes(wide))
    }
}

/// What stands behind the headers of a request.
pub fn behind_headers(body: &[u8]) -> Option<&[u8]> {
    let length = u32::from_le_bytes(*body.first_chunk::<4>()?) as usize;
    body.get(length..)
}

impl Call {
    pub fn read(body: &[u8]) -> Option<Call> {
        let mut reader = Reader(behind_headers(body)?);
        let procedure = match reader.number(2)? {
            0xffff => match reader.number(2)? {
                10 => "sp_executesql".to_owned(),
                number => format!("procedure {number}"),
            },
            length => units(reader.take(2 * length as usize)?),
        };
        reader.number(2)?;
        let mut values = Vec::new();
        while !reader.0.is_empty() {
            let length = reader.number(1)? as usize;
            let name = units(reader.take(2 * length)?);
            reader.number(1)?;
            values.push((name, value(&mut reader)?));
        }
        Some(Call { procedure, values })
    }
}

fn value(reader: &mut Reader<'_>) -> Option<Bound> {
    let id = reader.number(1)? as u8;
    let of = |name: &str, numbers: &[u32]| Kind {
        name: name.to_owned(),
        numbers: numbers.to_vec(),
        is_max: false,
    };
    let bound = |kind: Kind, value: Value| Some(Bound { kind, value });
    match id {
        0x26 | 0x68 | 0x6d | 0x6e | 0x6f | 0x24 => {
            let most = reader.number(1)?;
            let length = reader.number(1)? as usize;
            let bytes = reader.take(length)?;
            let kind = match (id, most) {
                (0x68, _) => of("bit", &[]),
                (0x6d, 4) => of("real", &[]),
                (0x6d, _) => of("float", &[]),
                (0x26, 1) => of("tinyint", &[]),
                (0x26, 2) => of("smallint", &[]),
                (0x26, 4) => of("int", &[]),
                (0x24, _) => of("uniqueidentifier", &[]),
                (0x6e, _) => of("money", &[]),
                (0x6f, _) => of("datetime", &[]),
                _ => of("bigint", &[]),
            };
            let value = match (id, bytes) {
                (_, []) => Value::Null,
                (0x6d, bytes) if bytes.len() == 8 => {
                    Value::Real(f64::from_le_bytes(bytes.try_into().ok()?))
                }
                (0x6d, bytes) => Value::Real(f32::from_le_bytes(bytes.try_into().ok()?).into()),
                (0x6f, bytes) if bytes.len() == 8 => {
                    let days = i32::from_le_bytes(*bytes.first_chunk::<4>()?);
                    let ticks = u32::from_le_bytes(bytes[4..].try_into().ok()?);
                    let micros =
                        (i64::from(days) - 25_567) * 86_400_000_000 + i64::from(ticks) * 10_000 / 3;
                    Value::Text(format!("{}0", iso8601(micros)))
                }
                (0x26 | 0x68, [byte]) => Value::Integer(i64::from(*byte)),
                (0x26, bytes) => {
                    let mut wide = [if bytes.last()? & 0x80 != 0 { 0xff } else { 0 }; 8];
                    wide[..bytes.len()].copy_from_slice(bytes);
                    Value::Integer(i64::from_le_bytes(wide))
                }
                _ => Value::Blob(bytes.to_vec()),
            };
            bound(kind, value)
        }
        0x6a | 0x6c => {
            reader.number(1)?;
            let (precision, scale) = (reader.number(1)? as u32, reader.number(1)? as u32);
            let length = reader.number(1)? as usize;
            let bytes = reader.take(length)?;
            let value = match bytes {
                [] => Value::Null,
                [sign, magnitude @ ..] => {
                    let mut wide = [0; 16];
                    wide[..magnitude.len()].copy_from_slice(magnitude);
                    let digits = format!(
                        "{:0>width$}",
                        u128::from_le_bytes(wide),
                        width = scale as usize + 1
                    );
                    let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
                    let sign = if *sign == 0 { "-" } else { "" };
                    let point = if scale > 0 { "." } else { "" };
                    Value::Text(format!("{sign}{whole}{point}{fraction}"))
                }
            };
            bound(of("decimal", &[precision, scale]), value)
        }
        0x28 => {
            let length = reader.number(1)? as usize;
            let bytes = reader.take(length)?;
            let value = match bytes {
                [a, b, c] => {
                    let days = i64::from(u32::from_le_bytes([*a, *b, *c, 0])) - 719_162;
                    Value::Text(Date::from_days(days).to_string())
                }
                _ => Value::Null,
            };
            bound(of("date", &[]), value)
        }
        0x29..=0x2b => {
            let digits = reader.number(1)? as u32;
            let length = reader.number(1)? as usize;
            let bytes = reader.take(length)?;
            let name = ["time", "datetime2", "datetimeoffset"][usize::from(id - 0x29)];
            let time = |bytes: &[u8]| {
                let mut wide = [0; 8];
                wide[..bytes.len()].copy_from_slice(bytes);
                i64::from_le_bytes(wide) * 1_000_000 / 10_i64.pow(digits)
            };
            let of_clock = if digits <= 2 {
                3
            } else if digits <= 4 {
                4
            } else {
                5
            };
            let value = match (bytes, id) {
                ([], _) => Value::Null,
                (bytes, 0x29) => Value::Text(format!("{}0", TimeOfDay(time(bytes)))),
                (bytes, _) => {
                    let day = bytes.get(of_clock..of_clock + 3)?;
                    let days = i64::from(u32::from_le_bytes([day[0], day[1], day[2], 0])) - 719_162;
                    let micros = days * 86_400_000_000 + time(&bytes[..of_clock]);
                    Value::Text(match id {
                        0x2a => format!("{}0", iso8601(micros)),
                        _ => rfc3339(micros).replace('Z', "0"),
                    })
                }
            };
            bound(of(name, &[digits]), value)
        }
        0xe7 | 0xef | 0xa7 | 0xaf | 0xa5 | 0xad => {
            let most = reader.number(2)?;
            let is_text = !matches!(id, 0xa5 | 0xad);
            let is_wide = matches!(id, 0xe7 | 0xef);
            if is_text {
                reader.take(5)?;
            }
            let bytes = match most {
                0xffff => match reader.number(8)? {
                    u64::MAX => None,
                    _ => {
                        let mut whole = Vec::new();
                        loop {
                            match reader.number(4)? as usize {
                                0 => break Some(whole),
                                length => whole.extend_from_slice(reader.take(length)?),
                            }
                        }
                    }
                },
                _ => match reader.number(2)? {
                    0xffff => None,
                    length => Some(reader.take(length as usize)?.to_vec()),
                },
            };
            let kind = Kind {
                name: match (is_text, is_wide) {
                    (true, true) => "nvarchar",
                    (true, false) => "varchar",
                    _ => "varbinary",
                }
                .to_owned(),
                numbers: vec![if is_wide { 4_000 } else { 8_000 }],
                is_max: most == 0xffff,
            };
            let value = match bytes {
                None => Value::Null,
                Some(bytes) if is_wide => Value::Text(units(&bytes)),
                Some(bytes) if is_text => {
                    Value::Text(bytes.iter().map(|byte| char::from(*byte)).collect())
                }
                Some(bytes) => Value::Blob(bytes),
            };
            bound(kind, value)
        }
        _ => None,
    }
}
