//! The names of the server's types, read, and which column each becomes.
//!
//! - Whole numbers of up to 64 bits are int64, but for `UInt64`; that, wider ones and `Decimal` are decimal, digit for digit.
//! - `DateTime` is a moment whatever zone it is shown in, for the server keeps seconds since 1970 in UTC. `DateTime64` is one too with
//!   up to six digits; with more it is text, since a timestamp would lose them. Nothing is a timestamp without a zone. `Time` is a span of up to 999 hours: text.
//! - `Array`, `Tuple`, `Map`, `Variant` and what is made of them are json.
//! - `JSON` is json where the server writes it as text ([`Type::Json`]). `Dynamic`, `AggregateFunction` and what is not known are refused.
//!
//! `clickhouse-types` was tried: it knows no tuples with names, no `Nothing` and no bound for how deep a name goes.

use souk_sdk::{ColumnType, Error};

/// Types within types.
const DEPTH_MAX: usize = 32;
/// Types that the columns of a result are made of, those within others among them. Each takes some thirty bytes, and 64 results are known to a session: four
/// of them are written `Ring`.
pub const TYPES_MAX: usize = 16_384;
/// What the server has at most itself.
const FIXED_MAX: usize = 16 << 20;
/// How much of a name is repeated in an error.
const NAME_CHARS: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Bool,
    /// Bytes, and whether it has a sign.
    Int(usize, bool),
    Float32,
    Float64,
    BFloat16,
    /// Bytes and scale.
    Decimal(usize, usize),
    String,
    Fixed(usize),
    Uuid,
    Date,
    Date32,
    DateTime,
    /// Digits behind the second.
    DateTime64(u32),
    Time,
    Time64(u32),
    /// Bytes, and names by their numbers.
    Enum(usize, Vec<(i16, String)>),
    IpV4,
    IpV6,
    /// Never has a value.
    Nothing,
    /// Written as text.
    Json,
    Nullable(Box<Type>),
    Array(Box<Type>),
    Tuple(Vec<(Option<String>, Type)>),
    Map(Box<Type>, Box<Type>),
    Variant(Vec<Type>),
}

impl Type {
    /// `json_as_text`: the server was asked to write JSON as text. `room`: how many types there may be, and are left then for other columns.
    pub fn parse(name: &str, json_as_text: bool, room: &mut usize) -> Result<Type, Error> {
        let mut parser = Parser {
            rest: name,
            json_as_text,
            room: Some(*room),
        };
        let parsed = parser.parse(0).filter(|_| parser.rest.is_empty());
        *room = parser.room.ok_or_else(too_many)?;
        parsed.ok_or_else(|| refused(name))
    }

    pub fn column_type(&self) -> ColumnType {
        match self {
            Type::Bool => ColumnType::Boolean,
            Type::Int(8, false) | Type::Int(9.., _) | Type::Decimal(..) => ColumnType::Decimal,
            Type::Int(..) => ColumnType::Int64,
            Type::Float32 | Type::Float64 | Type::BFloat16 => ColumnType::Float64,
            Type::Date | Type::Date32 => ColumnType::Date,
            Type::DateTime | Type::DateTime64(..=6) => ColumnType::Timestamp,
            Type::String
            | Type::Fixed(_)
            | Type::Uuid
            | Type::DateTime64(_)
            | Type::Time
            | Type::Time64(_)
            | Type::Enum(..)
            | Type::IpV4
            | Type::IpV6
            | Type::Nothing => ColumnType::Text,
            Type::Json | Type::Array(_) | Type::Tuple(_) | Type::Map(..) | Type::Variant(_) => {
                ColumnType::Json
            }
            Type::Nullable(inner) => inner.column_type(),
        }
    }

    /// Whether a value can be the name of a member.
    fn is_key(&self) -> bool {
        match self {
            Type::Nullable(inner) => inner.is_key(),
            Type::Json | Type::Array(_) | Type::Tuple(_) | Type::Map(..) | Type::Variant(_) => {
                false
            }
            _ => true,
        }
    }

    pub fn is_nullable(&self) -> bool {
        matches!(self, Type::Nullable(_) | Type::Variant(_) | Type::Nothing)
    }
}

fn too_many() -> Error {
    Error::limit_exceeded(
        "columns_too_long",
        format!("the result's columns are made of more than {TYPES_MAX} types"),
    )
}

#[cold]
fn refused(name: &str) -> Error {
    let word = name.split('(').next().unwrap_or_default();
    let message = match word {
        "AggregateFunction" => {
            "the result has a column of an aggregate function's state: read it with finalizeAggregation or a -Merge function"
        }
        _ => {
            "the result has a column of a type that this connector does not read: convert it in the statement, with toString for instance"
        }
    };
    // What a statement selects is its seller's.
    let error = Error::source_failed("column_type", message);
    error.detail(name.chars().take(NAME_CHARS).collect::<String>())
}

struct Parser<'a> {
    rest: &'a str,
    json_as_text: bool,
    /// For more types; `None` where there were too many.
    room: Option<usize>,
}

impl<'a> Parser<'a> {
    /// Takes room for so many types.
    fn count(&mut self, types: usize) -> Option<()> {
        self.room = self.room?.checked_sub(types);
        self.room.map(|_| ())
    }

    fn take(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    fn takes(&mut self, text: &str) -> bool {
        self.take(text).is_some()
    }

    fn word(&mut self) -> &'a str {
        let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let end = self.rest.find(|char| !is_word(char));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        let is_part = |char: char| char.is_ascii_digit() || char == '-';
        let end = self.rest.find(|char| !is_part(char))?;
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().ok()
    }

    /// `'text'` or `` `name` ``.
    fn quoted(&mut self, quote: char) -> Option<String> {
        self.take(quote.encode_utf8(&mut [0; 4]))?;
        let (mut text, mut chars) = (String::new(), self.rest.char_indices());
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' => text.push(match chars.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    '0' => '\0',
                    other => other,
                }),
                found if found == quote => {
                    self.rest = &self.rest[at + 1..];
                    // Doubled.
                    match self.rest.starts_with(quote) {
                        false => return Some(text),
                        true => {
                            text.push(quote);
                            self.rest = &self.rest[1..];
                            chars = self.rest.char_indices();
                        }
                    }
                }
                other => text.push(other),
            }
        }
        None
    }

    fn parse(&mut self, depth: usize) -> Option<Type> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.count(1)?;
        let depth = depth + 1;
        let word = self.word();
        let simple = match word {
            "Bool" => Type::Bool,
            "String" => Type::String,
            "UUID" => Type::Uuid,
            "Date" => Type::Date,
            "Date32" => Type::Date32,
            "IPv4" => Type::IpV4,
            "IPv6" => Type::IpV6,
            "Float32" => Type::Float32,
            "Float64" => Type::Float64,
            "BFloat16" => Type::BFloat16,
            "Nothing" => Type::Nothing,
            "Time" => Type::Time,
            "Point" => self.points(0)?,
            "Ring" | "LineString" | "MultiPoint" => self.points(1)?,
            "Polygon" | "MultiLineString" => self.points(2)?,
            "MultiPolygon" => self.points(3)?,
            "DateTime" => {
                if self.takes("(") {
                    self.quoted('\'')?;
                    self.take(")")?;
                }
                Type::DateTime
            }
            "JSON" | "Object" if self.json_as_text => {
                // Its hints say nothing about its text.
                if self.rest.starts_with('(') {
                    self.skip_parentheses()?;
                }
                Type::Json
            }
            _ if word.starts_with("Interval") => Type::Int(8, true),
            _ => match integer(word) {
                Some(found) => found,
                None => {
                    self.take("(")?;
                    let found = self.composed(word, depth)?;
                    self.take(")")?;
                    found
                }
            },
        };
        Some(simple)
    }

    /// Points, in lists within so many lists.
    fn points(&mut self, lists: usize) -> Option<Type> {
        // Beside the one that was read: the lists, and the two numbers of a point.
        self.count(lists + 2)?;
        let point = Type::Tuple(vec![(None, Type::Float64), (None, Type::Float64)]);
        Some((0..lists).fold(point, |inner, _| array(inner)))
    }

    /// What stands in the parentheses of a type.
    fn composed(&mut self, word: &str, depth: usize) -> Option<Type> {
        Some(match word {
            "Nullable" => Type::Nullable(Box::new(self.parse(depth)?)),
            "LowCardinality" => self.parse(depth)?,
            "Array" => array(self.parse(depth)?),
            "FixedString" => {
                let length = self.number()?;
                Some(Type::Fixed(length)).filter(|_| (1..=FIXED_MAX).contains(&length))?
            }
            "Decimal" => {
                let precision: usize = self.number()?;
                self.take(", ")?;
                let scale: usize = self.number()?;
                let bytes = match precision {
                    1..=9 => 4,
                    10..=18 => 8,
                    19..=38 => 16,
                    39..=76 => 32,
                    _ => return None,
                };
                Some(Type::Decimal(bytes, scale)).filter(|_| scale <= precision)?
            }
            "DateTime64" => {
                let digits = self.digits()?;
                if self.takes(", ") {
                    self.quoted('\'')?;
                }
                Type::DateTime64(digits)
            }
            "Time64" => Type::Time64(self.digits()?),
            "Enum8" => Type::Enum(1, self.names()?),
            "Enum16" => Type::Enum(2, self.names()?),
            "Map" => {
                let key = self.parse(depth)?;
                if !key.is_key() {
                    return None;
                }
                self.take(", ")?;
                Type::Map(Box::new(key), Box::new(self.parse(depth)?))
            }
            "SimpleAggregateFunction" => {
                self.word();
                if self.rest.starts_with('(') {
                    self.skip_parentheses()?;
                }
                self.take(", ")?;
                self.parse(depth)?
            }
            "Variant" => Type::Variant(self.list(|parser| parser.parse(depth))?),
            "Nested" => array(Type::Tuple(self.list(|parser| parser.element(depth))?)),
            "Tuple" => Type::Tuple(self.list(|parser| parser.element(depth))?),
            _ => return None,
        })
    }

    fn digits(&mut self) -> Option<u32> {
        self.number().filter(|digits| *digits <= 9)
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut found = vec![one(self)?];
        while self.takes(", ") {
            found.push(one(self)?);
        }
        Some(found)
    }

    /// `Int8` or `name Int8`.
    fn element(&mut self, depth: usize) -> Option<(Option<String>, Type)> {
        if self.rest.starts_with('`') {
            let name = self.quoted('`')?;
            self.take(" ")?;
            return Some((Some(name), self.parse(depth)?));
        }
        let before = self.rest;
        let word = self.word();
        if self.takes(" ") {
            return Some((Some(word.to_owned()), self.parse(depth)?));
        }
        self.rest = before;
        Some((None, self.parse(depth)?))
    }

    fn names(&mut self) -> Option<Vec<(i16, String)>> {
        let mut names = self.list(|parser| {
            let name = parser.quoted('\'')?;
            parser.take(" = ")?;
            Some((parser.number()?, name))
        })?;
        names.sort_unstable_by_key(|(number, _)| *number);
        Some(names)
    }

    fn skip_parentheses(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.rest.chars().next()? {
                quote @ ('\'' | '`') => {
                    self.quoted(quote)?;
                    continue;
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            let first = self.rest.chars().next()?.len_utf8();
            self.rest = &self.rest[first..];
            if depth == 0 {
                return Some(());
            }
        }
    }
}

fn array(inner: Type) -> Type {
    Type::Array(Box::new(inner))
}

fn integer(word: &str) -> Option<Type> {
    let (bits, is_signed) = match word.strip_prefix("UInt") {
        Some(bits) => (bits, false),
        None => (word.strip_prefix("Int")?, true),
    };
    let bytes = match bits {
        "8" => 1,
        "16" => 2,
        "32" => 4,
        "64" => 8,
        "128" => 16,
        "256" => 32,
        _ => return None,
    };
    Some(Type::Int(bytes, is_signed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, json_as_text: bool) -> Result<Type, Error> {
        let mut room = TYPES_MAX;
        Type::parse(name, json_as_text, &mut room)
    }

    fn parse(name: &str) -> Type {
        read(name, true).unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }

    /// A type takes room for each one that it is made of, however short it is written.
    #[test]
    fn types_are_counted() {
        for (name, wanted) in [
            ("Array(Nullable(Bool))", 3_usize),
            ("Tuple(a Bool, b Map(String, Bool))", 5),
            ("Ring", 4),
            ("MultiPoint", 4),
            ("Array(MultiPolygon)", 7),
        ] {
            let mut room = wanted;
            Type::parse(name, true, &mut room).unwrap();
            assert_eq!(room, 0, "{name}");
            let error = Type::parse(name, true, &mut (wanted - 1)).unwrap_err();
            assert_eq!(error.code, "columns_too_long", "{name}");
        }
    }

    #[test]
    fn names_are_read() {
        let number = || Type::Int(4, true);
        for (name, wanted) in [
            (
                "LowCardinality(Nullable(String))",
                Type::Nullable(Box::new(Type::String)),
            ),
            ("Decimal(76, 20)", Type::Decimal(32, 20)),
            ("DateTime64(3, 'Europe/Berlin')", Type::DateTime64(3)),
            ("DateTime('UTC')", Type::DateTime),
            ("IntervalMonth", Type::Int(8, true)),
            (
                "Enum8('a\\'b' = -1, 'c, )' = 2)",
                Type::Enum(1, vec![(-1, "a'b".into()), (2, "c, )".into())]),
            ),
            (
                "Tuple(a Int32, `b c` Array(Int32), `Map` Map(String, Int32))",
                Type::Tuple(vec![
                    (Some("a".into()), number()),
                    (Some("b c".into()), array(number())),
                    (
                        Some("Map".into()),
                        Type::Map(Box::new(Type::String), Box::new(number())),
                    ),
                ]),
            ),
            (
                "Tuple(Int32, Int32)",
                Type::Tuple(vec![(None, number()), (None, number())]),
            ),
            ("SimpleAggregateFunction(sum, Int32)", number()),
            (
                "SimpleAggregateFunction(groupArrayArray(5), Array(Int32))",
                array(number()),
            ),
            (
                "JSON(max_dynamic_paths=8, `a.b` Int8, SKIP REGEXP ')')",
                Type::Json,
            ),
            ("Array(Nothing)", array(Type::Nothing)),
        ] {
            assert_eq!(parse(name), wanted, "{name}");
        }
    }

    #[test]
    fn what_is_not_read_is_refused() {
        let deep = format!("{}Int8{}", "Array(".repeat(10_000), ")".repeat(10_000));
        for name in [
            "",
            "Tuple()",
            "Int",
            "Int7",
            "Array(",
            "Array(Int8",
            "Array(Int8))",
            "Decimal(77, 1)",
            "Decimal(5, 6)",
            "FixedString(0)",
            "FixedString(99999999999)",
            "DateTime64(10)",
            "Enum8()",
            "Enum8('a' = 70000)",
            "Enum8('a",
            "Dynamic",
            "Point(",
            "Nullable()",
            "JSON(",
            "Map(String)",
            "Map(Array(Int8), Int8)",
            "Tuple(é Int8)",
            "AggregateFunction(uniq, UInt64)",
            &deep,
        ] {
            let error = read(name, true).unwrap_err();
            assert_eq!(error.code, "column_type", "{name:.40}");
        }
        let error = read("AggregateFunction(uniq, UInt64)", true).unwrap_err();
        assert!(error.message.contains("finalizeAggregation"));
        assert!(read("JSON", false).is_err());
    }
}
