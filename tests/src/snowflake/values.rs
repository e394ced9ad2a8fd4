//! Types of Snowflake's, and values as it holds and tells them.

use serde_json::{Value, json};
use souk_sdk::time::{Date, TimeOfDay, iso8601};

const DAY_NS: i128 = 86_400_000_000_000;
const MINUTE_NS: i128 = 60_000_000_000;

/// A type as an answer names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    pub name: String,
    pub precision: Option<u64>,
    pub scale: Option<u64>,
    pub length: Option<u64>,
}

/// What an answer's times look like: as was asked for, or as numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Formats {
    pub date: bool,
    pub time: bool,
    pub timestamp: bool,
    /// Minutes east of Greenwich, of the session's clock.
    pub zone: i128,
}

#[derive(Clone, Debug)]
pub struct Typed {
    pub kind: Kind,
    pub held: Held,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    Null,
    /// As it is told.
    Text(String),
    /// Days since 1970.
    Date(i64),
    /// Nanoseconds since midnight.
    Time(i128),
    /// Nanoseconds since 1970.
    Clock(i128),
    Moment(i128),
    /// And minutes east of Greenwich.
    Zoned(i128, i128),
}

impl Kind {
    pub fn simple(name: &str) -> Kind {
        Kind {
            name: name.to_owned(),
            precision: None,
            scale: None,
            length: None,
        }
    }

    pub fn number(precision: u64, scale: u64) -> Kind {
        Kind {
            precision: Some(precision),
            scale: Some(scale),
            ..Kind::simple("fixed")
        }
    }

    /// As SQL writes it: `NUMBER(38,0)`, `TIMESTAMP_NTZ`.
    pub fn parse(text: &str) -> Option<Kind> {
        let text = text.trim().to_ascii_lowercase();
        let (name, numbers) = match text.split_once('(') {
            Some((name, rest)) => (name.trim(), rest.strip_suffix(')')?),
            None => (text.as_str(), ""),
        };
        let numbers: Vec<u64> = numbers
            .split(',')
            .filter_map(|number| number.trim().parse().ok())
            .collect();
        let first = numbers.first().copied();
        Some(match name {
            "number" | "decimal" | "numeric" => {
                Kind::number(first.unwrap_or(38), numbers.get(1).copied().unwrap_or(0))
            }
            "int" | "integer" | "bigint" => Kind::number(38, 0),
            "float" | "double" | "real" => Kind::simple("real"),
            "varchar" | "text" | "string" | "char" => Kind {
                length: Some(first.unwrap_or(16_777_216)),
                ..Kind::simple("text")
            },
            "binary" => Kind {
                length: Some(first.unwrap_or(8_388_608)),
                ..Kind::simple("binary")
            },
            "time" | "timestamp_ntz" | "timestamp_ltz" | "timestamp_tz" => Kind {
                precision: Some(0),
                scale: Some(first.unwrap_or(9)),
                ..Kind::simple(name)
            },
            "boolean" | "date" | "variant" | "object" | "array" | "map" | "vector"
            | "geography" | "geometry" => Kind::simple(name),
            _ => return None,
        })
    }

    pub fn described(&self, name: &str) -> Value {
        let (kind, precise) = match self.name.as_str() {
            "geography" | "geometry" => ("object", Some(self.name.to_uppercase())),
            name => (name, None),
        };
        json!({"name": name, "database": "", "schema": "", "table": "", "type": kind, "extTypeName": precise, "nullable": true, "precision": self.precision,
            "scale": self.scale, "length": self.length, "byteLength": self.length, "collation": null})
    }
}

impl Typed {
    /// What a request has bound; `None` where it is none of its type.
    pub fn bound(binding: &Value) -> Option<Typed> {
        let kind = binding["type"].as_str()?.to_ascii_lowercase();
        let text = match &binding["value"] {
            Value::Null => None,
            Value::String(text) => Some(text.as_str()),
            _ => return None,
        };
        let digits = |text: &str| text.trim_start_matches('-').len() as u64;
        let typed = match (kind.as_str(), text) {
            ("fixed", Some(text)) => {
                let scale = text
                    .split_once('.')
                    .map_or(0, |(_, part)| part.len() as u64);
                let kind = match scale {
                    0 if digits(text) <= 18 => Kind::number(18, 0),
                    scale => Kind::number(38, scale),
                };
                (kind, Held::Text(text.to_owned()))
            }
            // It takes `Infinity`, and not what it writes itself.
            ("real", Some(text)) if !text.ends_with("inf") => {
                let value: f64 = text.parse().ok()?;
                (Kind::simple("real"), Held::Text(real(value)))
            }
            ("boolean", Some("true" | "false")) => {
                (Kind::simple("boolean"), Held::Text(text?.to_owned()))
            }
            ("binary", Some(text)) if hex::decode(text).is_ok() => {
                (Kind::parse("binary")?, Held::Text(text.to_uppercase()))
            }
            ("text", Some(text)) => (Kind::parse("varchar")?, Held::Text(text.to_owned())),
            ("date", Some(text)) => {
                let ms: i64 = text.parse().ok()?;
                (Kind::simple("date"), Held::Date(ms.div_euclid(86_400_000)))
            }
            ("time", Some(text)) => (Kind::parse("time")?, Held::Time(text.parse().ok()?)),
            ("timestamp_ntz", Some(text)) => (Kind::parse(&kind)?, Held::Clock(text.parse().ok()?)),
            ("timestamp_ltz", Some(text)) => {
                (Kind::parse(&kind)?, Held::Moment(text.parse().ok()?))
            }
            ("timestamp_tz", Some(text)) => {
                let (nanos, zone) = text.split_once(' ')?;
                let zone = zone.parse::<i128>().ok()? - 1_440;
                (Kind::parse(&kind)?, Held::Zoned(nanos.parse().ok()?, zone))
            }
            ("fixed", None) => (Kind::number(38, 0), Held::Null),
            (name, None) => (
                Kind::parse(name).unwrap_or_else(|| Kind::simple("text")),
                Held::Null,
            ),
            _ => return None,
        };
        Some(Typed {
            kind: typed.0,
            held: typed.1,
        })
    }
}

impl Held {
    /// As an answer tells it.
    pub fn told(&self, formats: &Formats) -> Value {
        match self {
            Held::Null => Value::Null,
            Held::Text(text) => text.as_str().into(),
            Held::Date(days) => match formats.date {
                true => Date::from_days(*days).to_string().into(),
                false => days.to_string().into(),
            },
            Held::Time(nanos) => match formats.time {
                true => {
                    let micros = i64::try_from(nanos / 1_000).expect("a time");
                    format!("{}{:03}", TimeOfDay(micros), nanos % 1_000).into()
                }
                false => seconds(*nanos).into(),
            },
            Held::Clock(nanos) => match formats.timestamp {
                true => formatted(*nanos).into(),
                false => seconds(*nanos).into(),
            },
            Held::Moment(nanos) => match formats.timestamp {
                true => on_a_clock(*nanos, formats.zone).into(),
                false => seconds(*nanos).into(),
            },
            Held::Zoned(nanos, zone) => match formats.timestamp {
                true => on_a_clock(*nanos, *zone).into(),
                false => format!("{} {}", seconds(*nanos), zone + 1_440).into(),
            },
        }
    }
}

/// With nine digits of a second.
fn seconds(nanos: i128) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.abs();
    format!(
        "{sign}{}.{:09}",
        nanos / 1_000_000_000,
        nanos % 1_000_000_000
    )
}

/// What a clock shows that is so many minutes east of Greenwich, and how far it is.
fn on_a_clock(nanos: i128, zone: i128) -> String {
    let local = formatted(nanos + zone * MINUTE_NS);
    let sign = if zone < 0 { '-' } else { '+' };
    let (hours, minutes) = (zone.abs() / 60, zone.abs() % 60);
    format!("{local}{sign}{hours:02}:{minutes:02}")
}

fn formatted(nanos: i128) -> String {
    let micros = i64::try_from(nanos.div_euclid(1_000)).expect("a time");
    format!("{}{:03}", iso8601(micros), nanos.rem_euclid(1_000))
}

/// As Snowflake writes a float.
pub fn real(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        value => json!(value).to_string().trim_end_matches(".0").to_owned(),
    }
}

/// Nanoseconds of a time of day, and of a clock: `2026-01-01 12:00:00.123456789`.
pub fn nanos_of(text: &str) -> Option<i128> {
    let (day, time) = match text.split_once([' ', 'T']) {
        Some((day, time)) => (Date::parse(day)?.days(), time),
        None if text.contains(':') => (0, text),
        None => (Date::parse(text)?.days(), "00:00:00"),
    };
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = whole.split(':').map(|part| part.parse::<i128>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let fraction: i128 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let seconds = (hour * 60 + minute) * 60 + second;
    Some(i128::from(day) * DAY_NS + seconds * 1_000_000_000 + fraction)
}

/// Minutes of `+01:00`.
pub fn minutes_of(zone: &str) -> Option<i128> {
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (hours.parse::<i128>().ok()? * 60 + minutes.parse::<i128>().ok()?))
}

/// A moment of nanoseconds on a clock that is so many minutes east.
pub fn zoned(local: i128, minutes: i128) -> Held {
    Held::Zoned(local - minutes * MINUTE_NS, minutes)
}
