//! Names of types as Databricks writes them (`DECIMAL(10,2)`, `struct<a:int>`), what becomes of their values, and in which words they are
//! asked for.

use serde::Deserialize;
use souk_sdk::{Column, ColumnType, Error};

use crate::answers::{COLUMNS_MAX, malformed, unreadable};

/// A description's text.
pub const DESCRIBED_BYTES_MAX: usize = 1 << 20;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    Moment,
    /// Whatever has parts.
    Json,
}

/// As which text the API is asked for a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As it writes them itself.
    Plain,
    /// A moment as microseconds: the API's own text has three digits of a second, on the clock of the warehouse.
    Micros,
    /// A clock as Databricks writes it in SQL: the API's own text has three digits of a second.
    Sql,
    /// In base64, which the API does not promise.
    Base64,
    /// As a document in which no digit and no NULL is left out.
    Json,
}

/// What a column's values are, and how they are sent.
pub struct Sent {
    pub kind: Type,
    pub way: Way,
}

impl Type {
    /// Of a name.
    pub fn of(name: &str) -> Type {
        let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let end = name.find(|char| !is_part(char)).unwrap_or(name.len());
        match name[..end].to_ascii_lowercase().as_str() {
            "boolean" => Type::Boolean,
            "tinyint" | "byte" | "smallint" | "short" | "int" | "integer" | "bigint" | "long" => {
                Type::Integer
            }
            "float" | "real" | "double" => Type::Float,
            "decimal" | "dec" | "numeric" => Type::Decimal,
            "binary" => Type::Bytes,
            "date" => Type::Date,
            "time" => Type::Time,
            "timestamp" | "timestamp_ltz" => Type::Moment,
            "timestamp_ntz" => Type::Clock,
            "array" | "map" | "struct" | "variant" | "object" => Type::Json,
            // And intervals, the type of a NULL, and those of tomorrow: whatever is sent.
            _ => Type::Text,
        }
    }

    pub fn column_type(self) -> ColumnType {
        match self {
            Type::Boolean => ColumnType::Boolean,
            Type::Integer => ColumnType::Int64,
            Type::Float => ColumnType::Float64,
            Type::Decimal => ColumnType::Decimal,
            Type::Text => ColumnType::Text,
            Type::Bytes => ColumnType::Bytes,
            Type::Date => ColumnType::Date,
            Type::Time => ColumnType::Time,
            Type::Clock => ColumnType::LocalTimestamp,
            Type::Moment => ColumnType::Timestamp,
            Type::Json => ColumnType::Json,
        }
    }

    pub fn way(self) -> Way {
        match self {
            Type::Bytes => Way::Base64,
            Type::Time | Type::Clock => Way::Sql,
            Type::Moment => Way::Micros,
            Type::Json => Way::Json,
            Type::Boolean
            | Type::Integer
            | Type::Float
            | Type::Decimal
            | Type::Text
            | Type::Date => Way::Plain,
        }
    }
}

/// Whether parts of a value keep all their digits in a document; `Err`: what the type has that does not. Of a map Spark writes the keys as
/// it keeps them: a day as its number, bytes as the place where they lie.
pub fn keeps_keys(type_text: &str) -> Result<(), &'static str> {
    let text = type_text.to_ascii_lowercase();
    if text.contains("... ") && text.contains("more field") {
        return Err("a type that is too long to be described");
    }
    let has_exact_key = |behind: &str| {
        let Some(inside) = behind.trim_start().strip_prefix('<') else {
            return true;
        };
        let inside = inside.trim_start();
        let is_null = inside.starts_with("void");
        let kind = Type::of(inside);
        let is_text = ["string", "char", "varchar"];
        let is_text = || is_text.iter().any(|word| inside.starts_with(word));
        match kind {
            Type::Boolean | Type::Integer | Type::Decimal => true,
            Type::Text => is_null || is_text(),
            _ => false,
        }
    };
    match text.split("map").skip(1).all(has_exact_key) {
        true => Ok(()),
        false => Err("a map whose keys are no texts, whole numbers, decimals or booleans"),
    }
}

/// A column as the API describes it.
#[derive(Deserialize)]
struct Described {
    name: String,
    type_text: String,
}

/// A column of a result, by its name and its type's.
pub fn column(name: &str, type_text: &str) -> (Column, Type) {
    let kind = Type::of(type_text);
    let column = Column {
        name: name.to_owned(),
        kind: kind.column_type(),
        // Nobody says that it is not.
        nullable: true,
        native: type_text.to_owned(),
    };
    (column, kind)
}

/// The columns that an answer describes: the name and the type of each.
pub fn columns(described: &str) -> Result<Vec<(String, String)>, Error> {
    let described: Vec<Described> =
        serde_json::from_str(described).map_err(|error| unreadable(&error))?;
    match described.len() {
        0 => Err(malformed()),
        1..=COLUMNS_MAX => {
            let columns = described.into_iter();
            Ok(columns
                .map(|column| (column.name, column.type_text))
                .collect())
        }
        _ => Err(too_long()),
    }
}

pub fn too_long() -> Error {
    Error::limit_exceeded(
        "columns_too_long",
        format!(
            "the result has more than {COLUMNS_MAX} columns, or their names and types are longer than 1 MiB"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_their_first_word() {
        for (name, wanted) in [
            ("BOOLEAN", Type::Boolean),
            ("tinyint", Type::Integer),
            ("BIGINT", Type::Integer),
            ("FLOAT", Type::Float),
            ("DECIMAL(38,0)", Type::Decimal),
            ("decimal(10, 2)", Type::Decimal),
            ("STRING", Type::Text),
            ("STRING COLLATE UTF8_LCASE", Type::Text),
            ("VARCHAR(20)", Type::Text),
            ("BINARY", Type::Bytes),
            ("date", Type::Date),
            ("TIME(6)", Type::Time),
            ("TIMESTAMP", Type::Moment),
            ("timestamp_ltz", Type::Moment),
            ("TIMESTAMP_NTZ", Type::Clock),
            ("INTERVAL DAY TO SECOND", Type::Text),
            ("interval year to month", Type::Text),
            ("VOID", Type::Text),
            ("ARRAY<INT>", Type::Json),
            ("map<string,array<timestamp>>", Type::Json),
            ("struct<a:int,... 3 more fields>", Type::Json),
            ("VARIANT", Type::Json),
            ("GEOGRAPHY(4326)", Type::Text),
            ("", Type::Text),
        ] {
            assert_eq!(Type::of(name), wanted, "{name}");
        }
    }

    #[test]
    fn keys_of_maps_are_exact_or_refused() {
        for kind in [
            "array<timestamp>",
            "map<string,date>",
            "map<string collate UTF8_LCASE,binary>",
            "MAP<BIGINT, MAP<DECIMAL(3,1), TIMESTAMP>>",
            "map<boolean,int>",
            "map<varchar(20),int>",
            "map<void,void>",
            "struct<map:int,mapped:date>",
            "variant",
        ] {
            assert_eq!(keeps_keys(kind), Ok(()), "{kind}");
        }
        for kind in [
            "map<date,int>",
            "MAP<TIMESTAMP, INT>",
            "map < timestamp_ntz,int>",
            "map<binary,int>",
            "map<float,int>",
            "map<double,int>",
            "map<time(6),int>",
            "map<interval day,int>",
            "map<struct<a:int>,int>",
            "map<array<string>,int>",
            "map<string,map<date,int>>",
            "array<struct<a:int,b:map<date,int>>>",
            "struct<a:int,... 3 more fields>",
            "struct<a:int,... 1 more field>",
        ] {
            assert!(keeps_keys(kind).is_err(), "{kind}");
        }
    }

    #[test]
    fn columns_are_described() {
        let described = r#"[{"name":"a","type_text":"INT","type_name":"INT","position":0}]"#;
        assert_eq!(columns(described).unwrap(), [("a".into(), "INT".into())]);
        for broken in ["[]", "{}", "[1]", "[{\"name\":\"a\"}]", "null"] {
            assert!(columns(broken).is_err(), "{broken}");
        }
        // Without what stands there.
        for broken in ["\"hush\"", "[\"hush\"]"] {
            let told = columns(broken).unwrap_err().detail.unwrap();
            assert!(!told.contains("hush"), "{told}");
        }
        let one = r#"{"name":"","type_text":""}"#;
        let many = format!("[{}{one}]", format!("{one},").repeat(COLUMNS_MAX));
        assert_eq!(columns(&many).unwrap_err().code, "columns_too_long");
    }
}
