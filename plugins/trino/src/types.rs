//! Names of types as a coordinator writes them (`row(a bigint, "b c" array(decimal(38,0)))`), and what becomes of their values.

use serde::Deserialize;
use souk_sdk::json::what_is_wrong;
use souk_sdk::{Column, ColumnType, Error};

use crate::answers::malformed;

/// Columns and fields of all depths that a result has at most.
pub const FIELDS_MAX: usize = 10_000;
/// How deep types lie in each other.
const DEPTH_MAX: usize = 64;
/// Digits of a second that a moment has here; what has more leaves as Trino writes it.
const MICROS: u32 = 6;
/// What a time has that does not say.
const PRECISION: u32 = 3;

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Boolean,
    Integer,
    Float,
    Decimal,
    Text,
    Bytes,
    Date,
    Time,
    /// Of no zone.
    Clock,
    /// With one.
    Moment,
    Json,
    Array(Box<Type>),
    /// Keys are texts in an answer.
    Map(Box<Type>),
    Row(Vec<(Option<String>, Type)>),
    /// A type of a plugin's or of tomorrow: whatever is sent.
    Other,
}

#[derive(Deserialize)]
struct Described {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

impl Type {
    pub fn column_type(&self) -> ColumnType {
        match self {
            Type::Boolean => ColumnType::Boolean,
            Type::Integer => ColumnType::Int64,
            Type::Float => ColumnType::Float64,
            Type::Decimal => ColumnType::Decimal,
            Type::Text | Type::Other => ColumnType::Text,
            Type::Bytes => ColumnType::Bytes,
            Type::Date => ColumnType::Date,
            Type::Time => ColumnType::Time,
            Type::Clock => ColumnType::LocalTimestamp,
            Type::Moment => ColumnType::Timestamp,
            Type::Json | Type::Array(_) | Type::Map(_) | Type::Row(_) => ColumnType::Json,
        }
    }
}

/// The columns that an answer describes, each with its type.
pub fn columns(described: &str) -> Result<(Vec<Column>, Vec<Type>), Error> {
    let described: Vec<Described> = serde_json::from_str(described)
        .map_err(|error| malformed().detail(what_is_wrong(&error)))?;
    let mut room = FIELDS_MAX;
    let (mut columns, mut types) = (Vec::new(), Vec::new());
    for column in described {
        let kind = read(&column.kind, &mut room)?;
        columns.push(Column {
            name: column.name,
            kind: kind.column_type(),
            // Nobody says that it is not.
            nullable: true,
            native: column.kind,
        });
        types.push(kind);
    }
    match types.is_empty() {
        true => Err(malformed()),
        false => Ok((columns, types)),
    }
}

/// The type of a whole name.
fn read(name: &str, room: &mut usize) -> Result<Type, Error> {
    let mut reader = Reader {
        rest: name.trim(),
        room,
    };
    let kind = reader.kind(0)?;
    match reader.rest.is_empty() {
        true => Ok(kind),
        false => Err(malformed().detail(format!("the type {name:?}"))),
    }
}

struct Reader<'a, 'r> {
    rest: &'a str,
    room: &'r mut usize,
}

impl<'a> Reader<'a, '_> {
    fn kind(&mut self, depth: usize) -> Result<Type, Error> {
        *self.room = self.room.checked_sub(1).ok_or_else(|| {
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
        let word = self.word();
        let is_composite = self.rest.starts_with('(');
        Ok(match word.to_ascii_lowercase().as_str() {
            "" => return Err(malformed()),
            "boolean" => Type::Boolean,
            "tinyint" | "smallint" | "integer" | "bigint" => Type::Integer,
            "real" | "double" => Type::Float,
            "decimal" => {
                self.size()?;
                Type::Decimal
            }
            "varchar" | "char" => {
                self.size()?;
                Type::Text
            }
            "varbinary" => Type::Bytes,
            "json" => Type::Json,
            "date" => Type::Date,
            "time" => match self.clock()? {
                (..=MICROS, false) => Type::Time,
                _ => Type::Text,
            },
            "timestamp" => match self.clock()? {
                (..=MICROS, false) => Type::Clock,
                (..=MICROS, true) => Type::Moment,
                _ => Type::Text,
            },
            "interval" => {
                self.interval();
                Type::Text
            }
            "uuid" | "ipaddress" | "unknown" => Type::Text,
            "array" if is_composite => {
                self.open();
                let element = self.kind(depth + 1)?;
                self.close()?;
                Type::Array(Box::new(element))
            }
            "map" if is_composite => {
                self.open();
                self.kind(depth + 1)?;
                if !self.takes(",") {
                    return Err(malformed());
                }
                let value = self.kind(depth + 1)?;
                self.close()?;
                Type::Map(Box::new(value))
            }
            "row" if is_composite => {
                self.open();
                let mut fields = vec![self.field(depth)?];
                while self.takes(",") {
                    fields.push(self.field(depth)?);
                }
                self.close()?;
                Type::Row(fields)
            }
            _ => {
                self.skip_arguments()?;
                Type::Other
            }
        })
    }

    /// `"name" type`, `name type` or `type` alone.
    fn field(&mut self, depth: usize) -> Result<(Option<String>, Type), Error> {
        if self.rest.starts_with('"') {
            let name = self.quoted()?;
            return Ok((Some(name), self.kind(depth + 1)?));
        }
        // A type's name may have blanks of its own, so it is tried first: a name is followed by one, and a type by what ends a field.
        let (begin, room) = (self.rest, *self.room);
        let alone = self.kind(depth + 1);
        if let Ok(kind) = alone
            && (self.rest.starts_with(',') || self.rest.starts_with(')'))
        {
            return Ok((None, kind));
        }
        (self.rest, *self.room) = (begin, room);
        let name = self.word().to_owned();
        match name.is_empty() {
            true => Err(malformed()),
            false => Ok((Some(name), self.kind(depth + 1)?)),
        }
    }

    /// The next word; nothing where none is.
    fn word(&mut self) -> &'a str {
        let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$' | '@' | ':');
        let rest = self.rest;
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        self.rest = rest[end..].trim_start();
        &rest[..end]
    }

    /// A quoted name, of which quotes are doubled.
    fn quoted(&mut self) -> Result<String, Error> {
        let mut name = String::new();
        let mut rest = &self.rest[1..];
        loop {
            let (part, after) = rest.split_once('"').ok_or_else(malformed)?;
            name.push_str(part);
            match after.strip_prefix('"') {
                Some(more) => {
                    name.push('"');
                    rest = more;
                }
                None => {
                    self.rest = after.trim_start();
                    return Ok(name);
                }
            }
        }
    }

    fn takes(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    /// That it is there was looked at.
    fn open(&mut self) {
        self.takes("(");
    }

    fn close(&mut self) -> Result<(), Error> {
        match self.takes(")") {
            true => Ok(()),
            false => Err(malformed()),
        }
    }

    /// The first number in parentheses, if there are any.
    fn size(&mut self) -> Result<Option<u32>, Error> {
        if !self.takes("(") {
            return Ok(None);
        }
        let (inside, rest) = self.rest.split_once(')').ok_or_else(malformed)?;
        self.rest = rest.trim_start();
        let first = inside.split(',').next().unwrap_or_default().trim();
        first.parse().map(Some).map_err(|_| malformed())
    }

    /// How many digits of a second, and whether there is a zone.
    fn clock(&mut self) -> Result<(u32, bool), Error> {
        let digits = self.size()?.unwrap_or(PRECISION);
        let has_zone = self.words(&["with", "time", "zone"]);
        if !has_zone {
            self.words(&["without", "time", "zone"]);
        }
        Ok((digits, has_zone))
    }

    /// `year to month`, `day to second`.
    fn interval(&mut self) {
        let _ = self.words(&["year", "to", "month"]) || self.words(&["day", "to", "second"]);
    }

    /// Takes these words, all of them or none.
    fn words(&mut self, words: &[&str]) -> bool {
        let begin = self.rest;
        let are_there = words
            .iter()
            .all(|wanted| self.word().eq_ignore_ascii_case(wanted));
        if !are_there {
            self.rest = begin;
        }
        are_there
    }

    fn skip_arguments(&mut self) -> Result<(), Error> {
        if !self.rest.starts_with('(') {
            return Ok(());
        }
        let mut depth = 0usize;
        for (at, byte) in self.rest.bytes().enumerate() {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = self.rest[at + 1..].trim_start();
                return Ok(());
            }
        }
        Err(malformed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> Type {
        read(name, &mut FIELDS_MAX.clone()).unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }

    #[test]
    fn scalars_are_known() {
        for (name, wanted) in [
            ("tinyint", Type::Integer),
            ("decimal(38,0)", Type::Decimal),
            ("decimal(10, 2)", Type::Decimal),
            ("varchar", Type::Text),
            ("varchar(2147483646)", Type::Text),
            ("char(4)", Type::Text),
            ("real", Type::Float),
            ("time", Type::Time),
            ("time(6)", Type::Time),
            ("time(7)", Type::Text),
            ("time(3) with time zone", Type::Text),
            ("timestamp", Type::Clock),
            ("timestamp(0)", Type::Clock),
            ("timestamp(12)", Type::Text),
            ("timestamp with time zone", Type::Moment),
            ("timestamp(6) with time zone", Type::Moment),
            ("timestamp(9) with time zone", Type::Text),
            ("interval day to second", Type::Text),
            ("interval year to month", Type::Text),
            ("unknown", Type::Text),
            ("HyperLogLog", Type::Other),
            ("qdigest(double)", Type::Other),
            ("function(integer,integer)", Type::Other),
        ] {
            assert_eq!(kind(name), wanted, "{name}");
        }
    }

    #[test]
    fn composites_are_taken_apart() {
        let field = |name: &str, kind: Type| (Some(name.to_owned()), kind);
        assert_eq!(
            kind("row(a bigint, \"b \"\"c\" decimal(38,0), d array(map(varchar,real)))"),
            Type::Row(vec![
                field("a", Type::Integer),
                field("b \"c", Type::Decimal),
                field("d", Type::Array(Box::new(Type::Map(Box::new(Type::Float))))),
            ])
        );
        // Names that are types, and types that have blanks.
        assert_eq!(
            kind(
                "row(timestamp timestamp(3) with time zone,interval interval day to second,time bigint)"
            ),
            Type::Row(vec![
                field("timestamp", Type::Moment),
                field("interval", Type::Text),
                field("time", Type::Integer),
            ])
        );
        assert_eq!(
            kind("row(timestamp(3) with time zone,interval day to second,row(x date))"),
            Type::Row(vec![
                (None, Type::Moment),
                (None, Type::Text),
                (None, Type::Row(vec![field("x", Type::Date)])),
            ])
        );
    }

    /// However deep a name is, and however wide, reading it ends.
    #[test]
    fn names_have_bounds() {
        let mut room = FIELDS_MAX;
        let deep = format!("{}bigint{}", "array(".repeat(500), ")".repeat(500));
        assert_eq!(read(&deep, &mut room).unwrap_err().code, "too_deep");
        let wide = format!("row({}\"z\" bigint)", "\"a\" bigint,".repeat(FIELDS_MAX));
        assert_eq!(
            read(&wide, &mut room.clone()).unwrap_err().code,
            "too_many_fields"
        );
        let unclear = format!("{}x bigint{}", "row(".repeat(60), ")".repeat(60));
        let _ = read(&unclear, &mut FIELDS_MAX.clone());
        for broken in [
            "",
            "(",
            "array(",
            "array(bigint",
            "row()",
            "map(bigint)",
            "decimal(",
            "decimal(x)",
            "bigint)",
            "qdigest(a",
            "row(\"a bigint)",
            "bigint bigint",
        ] {
            assert!(read(broken, &mut FIELDS_MAX.clone()).is_err(), "{broken}");
        }
        assert!(columns("[]").is_err());
        assert!(columns("{}").is_err());
        let told = columns("[\"hush\"]").unwrap_err().detail.unwrap();
        assert!(!told.contains("hush"), "{told}");
    }
}
