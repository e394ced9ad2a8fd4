//! What ClickHouse writes in JSON for a client of its own, made into what souk writes: by the table of types in `docs/engines.md`, read anew.

use serde_json::Value;
use serde_json::value::RawValue;
use souk_tests::ClickHouse;

use super::blocks::{Block, Parameter};
use super::spelling::moment;
use super::{Column, Row, Told};

pub const ANSWERED: [&str; 3] = [
    include_str!("clickhouse/values.sql"),
    include_str!("clickhouse/queries.sql"),
    include_str!("clickhouse/parameters.sql"),
];
pub const REFUSED: &str = include_str!("clickhouse/refused.sql");
const SCHEMA: &str = include_str!("clickhouse/schema.sql");

/// Digits of `DateTime64` that a timestamp has.
const MICROS: usize = 6;
/// `DateTime` has the seconds of 32 bits, from the year 1970 on.
const SECONDS: std::ops::RangeInclusive<i64> = 0..=u32::MAX as i64;

/// The statements that make what is asked, which ends each with its line.
pub fn schema() -> Vec<&'static str> {
    SCHEMA.split_terminator(";\n").collect()
}

/// What a statement that writes would change: rows, what there is, settings, users, files.
pub fn state(server: &ClickHouse, database: &str) -> String {
    server.admin(
        database,
        "SELECT (SELECT sum(cityHash64(*)) FROM staff), (SELECT count() FROM matches), (SELECT arraySort(groupArray(name)) FROM system.tables WHERE database = currentDatabase()),
        (SELECT count() FROM system.functions WHERE origin != 'System'), (SELECT count() FROM system.databases WHERE name = 'two'), (SELECT count() FROM system.mutations WHERE database = currentDatabase()),
        (SELECT arraySort(groupArray((name, value))) FROM system.settings WHERE name IN ('readonly', 'max_threads')), (SELECT count() FROM file('/tmp/souk_breadth*', 'One'))",
    )
}

/// What the statement answers, with the block's values written into it.
pub fn told(server: &ClickHouse, database: &str, block: &Block) -> Told {
    let sql = block.filled(literal);
    let answer = server.told(database, sql.trim_end_matches([';', '\n']));
    let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", block.name));
    let mut lines = answer.lines();
    let mut head = || -> Vec<String> {
        let line = lines.next().expect("names and types");
        serde_json::from_str(line).expect("a list of texts")
    };
    let (names, kinds) = (head(), head());
    let row = |line: &str| -> Row {
        let cells = parts(line);
        assert_eq!(cells.len(), kinds.len(), "{line}");
        let cells = kinds.iter().zip(cells);
        cells.map(|(kind, cell)| spelled(kind, cell)).collect()
    };
    Told {
        rows: lines.map(row).collect(),
        columns: names
            .iter()
            .zip(&kinds)
            .map(|(name, kind)| told_column(name, kind))
            .collect(),
    }
}

fn told_column(name: &str, kind: &str) -> Column {
    let (word, _) = Kind::of(kind).plain();
    let others = [
        "Bool",
        "Date",
        "Date32",
        "DateTime",
        "DateTime64",
        "Enum8",
        "Enum16",
        "FixedString",
        "IPv4",
        "IPv6",
        "String",
        "Time",
        "Time64",
        "UUID",
    ];
    Column {
        name: name.to_owned(),
        is_number: is_number(word),
        is_float: is_float(word),
        sorts: is_number(word) || others.contains(&word),
    }
}

fn is_float(word: &str) -> bool {
    matches!(word, "Float32" | "Float64" | "BFloat16")
}

fn is_number(word: &str) -> bool {
    let exact = ["Int", "UInt", "Decimal", "Interval"];
    is_float(word) || exact.iter().any(|begin| word.starts_with(begin))
}

/// A type: its name and what stands in its parentheses.
struct Kind<'a> {
    word: &'a str,
    parts: Vec<&'a str>,
}

impl<'a> Kind<'a> {
    fn of(text: &'a str) -> Kind<'a> {
        let text = match text {
            "Point" => "Tuple(Float64, Float64)",
            "Ring" | "LineString" => "Array(Point)",
            "Polygon" => "Array(Ring)",
            "MultiLineString" => "Array(LineString)",
            "MultiPolygon" => "Array(Polygon)",
            text => text,
        };
        let Some((word, inner)) = text.split_once('(') else {
            return Kind {
                word: text,
                parts: Vec::new(),
            };
        };
        let inner = inner.strip_suffix(')').expect("the end of a type");
        Kind {
            word,
            parts: listed(inner),
        }
    }

    /// Without what says only how it is kept: the name, and the type that has it.
    fn plain(self) -> (&'a str, Kind<'a>) {
        match self.word {
            "Nullable" | "LowCardinality" => Kind::of(self.parts[0]).plain(),
            "SimpleAggregateFunction" => Kind::of(self.parts[1]).plain(),
            word => (word, self),
        }
    }
}

/// What stands between the commas that are in no parentheses and no quotes.
fn listed(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0);
    let mut quote = None;
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match (quote, sign) {
            (Some(_), '\\') => {
                signs.next();
            }
            (Some(open), sign) if sign == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '`') => quote = Some(sign),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + ", ".len();
            }
            (None, _) => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// A value as souk writes it.
fn spelled(kind: &str, value: &RawValue) -> Option<String> {
    let (word, kind) = Kind::of(kind).plain();
    let is_nested = ["Array", "Tuple", "Map", "Nested", "JSON", "Variant"].contains(&word);
    match value.get() {
        "null" => None,
        _ if is_nested => Some(nested(&kind, value)),
        _ => Some(plain(&kind, &text(value))),
    }
}

/// A value that is not nested.
fn plain(kind: &Kind<'_>, text: &str) -> String {
    match kind.word {
        word if is_float(word) => match text {
            // The sign of one that was computed says nothing.
            "nan" | "-nan" => "NaN".to_owned(),
            "inf" => "Infinity".to_owned(),
            "-inf" => "-Infinity".to_owned(),
            number => number.to_owned(),
        },
        "FixedString" => text.trim_end_matches('\0').to_owned(),
        "DateTime" | "DateTime64" => {
            let text = text.strip_suffix('Z').expect("a moment in UTC");
            let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
            match digits > MICROS {
                true => format!("{text}Z"),
                false => format!("{}Z", moment(text)),
            }
        }
        _ => text.to_owned(),
    }
}

/// A value as JSON.
fn document(kind: &str, value: &RawValue) -> String {
    match value.get() {
        "null" => "null".to_owned(),
        _ => nested(&Kind::of(kind).plain().1, value),
    }
}

fn nested(kind: &Kind<'_>, value: &RawValue) -> String {
    match kind.word {
        "Array" => list(kind.parts[0], value),
        "Tuple" => pair(&kind.parts, value),
        "Nested" => list(&format!("Tuple({})", kind.parts.join(", ")), value),
        "Map" => {
            let (key, of) = (Kind::of(kind.parts[0]).plain().1, kind.parts[1]);
            let entries = parts(value.get()).into_iter().map(|entry| {
                let entry = parts(entry.get());
                (plain(&key, &text(entry[0])), document(of, entry[1]))
            });
            object(entries.collect())
        }
        // What it is of, its text does not say.
        "JSON" | "Variant" => value.get().to_owned(),
        "Bool" => value.get().to_owned(),
        word if is_float(word) => match value.get().parse::<f64>() {
            Ok(number) => Value::from(number).to_string(),
            Err(_) => Value::from(plain(kind, &text(value))).to_string(),
        },
        word if is_number(word) => value.get().to_owned(),
        _ => Value::from(plain(kind, &text(value))).to_string(),
    }
}

fn list(kind: &str, value: &RawValue) -> String {
    let items = parts(value.get()).into_iter();
    let items: Vec<String> = items.map(|item| document(kind, item)).collect();
    format!("[{}]", items.join(","))
}

/// An object, if all members have names.
fn pair(members: &[&str], value: &RawValue) -> String {
    let values = parts(value.get());
    let members = members.iter().map(|member| named(member)).zip(values);
    let members: Vec<(Option<String>, String)> = members
        .map(|((name, kind), value)| (name, document(kind, value)))
        .collect();
    let names: Option<Vec<String>> = members.iter().map(|(name, _)| name.clone()).collect();
    let values = members.into_iter().map(|(_, value)| value);
    match names {
        Some(names) => object(names.into_iter().zip(values).collect()),
        None => format!("[{}]", values.collect::<Vec<String>>().join(",")),
    }
}

/// `a Int8`, `` `a b` Int8 ``, `Int8`.
fn named(member: &str) -> (Option<String>, &str) {
    if let Some(quoted) = member.strip_prefix('`') {
        let (name, kind) = quoted.split_once("` ").expect("the end of a name");
        return (Some(name.to_owned()), kind);
    }
    match member.split_once(' ') {
        Some((name, kind)) if !name.contains(['(', ',']) => (Some(name.to_owned()), kind),
        _ => (None, member),
    }
}

fn object(members: Vec<(String, String)>) -> String {
    let members = members.into_iter();
    let members: Vec<String> = members
        .map(|(name, value)| format!("{}:{value}", Value::from(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// The items of a list, as they are written.
fn parts(text: &str) -> Vec<&RawValue> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What a string says; anything else as it is written.
fn text(value: &RawValue) -> String {
    match value.get() {
        quoted if quoted.starts_with('"') => serde_json::from_str(quoted).expect("a text"),
        plain => plain.to_owned(),
    }
}

/// A parameter's value: of the type that `docs/engines.md` says it has, also where it is NULL.
fn literal(parameter: &Parameter) -> String {
    let kind = match parameter.kind {
        "integer" => "Int64",
        "number" => "Float64",
        "string" => "String",
        "boolean" => "Bool",
        "date" => "Date32",
        "timestamp" => return instant(&parameter.value),
        other => panic!("{other} is no type of a parameter"),
    };
    let text = match &parameter.value {
        Value::Null => return format!("CAST(NULL AS Nullable({kind}))"),
        Value::String(text) => text.replace('\\', "\\\\").replace('\'', "\\'"),
        value => value.to_string(),
    };
    format!("CAST('{text}' AS {kind})")
}

/// A moment, of whole seconds as one where that has room for it.
fn instant(value: &Value) -> String {
    let Some(text) = value.as_str() else {
        return "CAST(NULL AS Nullable(DateTime64(6, 'UTC')))".to_owned();
    };
    let at: jiff::Timestamp = text.parse().expect("a moment");
    let kind = match at.subsec_nanosecond() == 0 && SECONDS.contains(&at.as_second()) {
        true => "DateTime('UTC')",
        false => "DateTime64(6, 'UTC')",
    };
    let text = at.to_string().replace('T', " ").replace('Z', "");
    format!("CAST('{text}' AS {kind})")
}

#[test]
fn types_are_read_as_clickhouse_names_them() {
    let kind = Kind::of("Enum8('a\\'b' = -1, 'c, )' = 2)");
    assert_eq!(kind.parts, ["'a\\'b' = -1", "'c, )' = 2"]);
    let kind = Kind::of("Tuple(`a b` Int8, t Tuple(Int8, String))");
    assert_eq!(kind.parts, ["`a b` Int8", "t Tuple(Int8, String)"]);
    assert_eq!(named(kind.parts[0]), (Some("a b".to_owned()), "Int8"));
    assert_eq!(named("Decimal(9, 2)"), (None, "Decimal(9, 2)"));
    let column = told_column("a", "LowCardinality(Nullable(String))");
    assert!(column.sorts && !column.is_number);
    let value = |kind: &str, text: &str| {
        let value: &RawValue = serde_json::from_str(text).expect("a value");
        spelled(kind, value)
    };
    for (kind, text, expected) in [
        ("Nullable(Int8)", "null", None),
        (
            "DateTime64(3, 'Asia/Tokyo')",
            r#""2026-01-01T00:00:00.500Z""#,
            Some("2026-01-01T00:00:00.500000Z"),
        ),
        (
            "DateTime64(9)",
            r#""1969-12-31T23:59:59.000000001Z""#,
            Some("1969-12-31T23:59:59.000000001Z"),
        ),
        (
            "Tuple(a Decimal(9, 2), `b c` Array(Nullable(Float64)))",
            r#"[1.50, [1, null, "nan"]]"#,
            Some(r#"{"a":1.50,"b c":[1.0,null,"NaN"]}"#),
        ),
        (
            "Map(String, FixedString(3))",
            r#"[["a","x\u0000\u0000"],["a","y"]]"#,
            Some(r#"{"a":"x","a":"y"}"#),
        ),
        ("Point", "[1.5,-2]", Some("[1.5,-2.0]")),
    ] {
        assert_eq!(value(kind, text).as_deref(), expected, "{kind}");
    }
}
