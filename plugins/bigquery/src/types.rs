//! The schema of a result: what BigQuery calls its types, and what becomes of them.

use serde::Deserialize;
use souk_sdk::json;
use souk_sdk::{Column, ColumnType, Error};

/// Fields of all depths that a result has at most: BigQuery's own bound of a table.
const FIELDS_MAX: usize = 10_000;
/// Digits of a second that a moment has.
const MICROS: &str = "6";

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Bool,
    Int64,
    Float64,
    Numeric,
    String,
    Bytes,
    Date,
    Time,
    DateTime,
    Timestamp,
    /// A range of them, which is a text.
    Timestamps,
    Json,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Scalar(Scalar),
    Array(Box<Type>),
    Struct(Vec<(String, Type)>),
}

#[derive(Deserialize)]
struct Schema {
    #[serde(default)]
    fields: Vec<Field>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    mode: String,
    #[serde(default)]
    fields: Vec<Field>,
    precision: Option<String>,
    scale: Option<String>,
    max_length: Option<String>,
    timestamp_precision: Option<String>,
    range_element_type: Option<Element>,
}

#[derive(Deserialize)]
struct Element {
    #[serde(rename = "type")]
    kind: String,
}

impl Type {
    pub fn column_type(&self) -> ColumnType {
        let scalar = match self {
            Type::Scalar(scalar) => scalar,
            Type::Array(_) | Type::Struct(_) => return ColumnType::Json,
        };
        match scalar {
            Scalar::Bool => ColumnType::Boolean,
            Scalar::Int64 => ColumnType::Int64,
            Scalar::Float64 => ColumnType::Float64,
            Scalar::Numeric => ColumnType::Decimal,
            Scalar::String | Scalar::Timestamps => ColumnType::Text,
            Scalar::Bytes => ColumnType::Bytes,
            Scalar::Date => ColumnType::Date,
            Scalar::Time => ColumnType::Time,
            Scalar::DateTime => ColumnType::LocalTimestamp,
            Scalar::Timestamp => ColumnType::Timestamp,
            Scalar::Json => ColumnType::Json,
        }
    }
}

/// The columns that a schema describes, each with its type.
pub fn columns(schema: &str) -> Result<(Vec<Column>, Vec<Type>), Error> {
    let schema: Schema =
        json::read_part(schema).map_err(|error| crate::answers::unreadable(&error))?;
    let mut room = FIELDS_MAX;
    let (mut columns, mut types) = (Vec::new(), Vec::new());
    for field in &schema.fields {
        let kind = field.read(&mut room)?;
        columns.push(Column {
            name: field.name.clone(),
            kind: kind.column_type(),
            // An array is never NULL where it leaves: that is an empty one there.
            nullable: !field.is_array(),
            native: field.native(),
        });
        types.push(kind);
    }
    match types.is_empty() {
        true => Err(crate::answers::malformed()),
        false => Ok((columns, types)),
    }
}

impl Field {
    fn is_array(&self) -> bool {
        self.mode == "REPEATED"
    }

    fn is_of_timestamps(&self) -> bool {
        let element = self.range_element_type.as_ref();
        element.is_some_and(|element| element.kind == "TIMESTAMP")
    }

    fn read(&self, room: &mut usize) -> Result<Type, Error> {
        *room = room.checked_sub(1).ok_or_else(|| {
            Error::limit_exceeded(
                "too_many_fields",
                format!("the result has more than {FIELDS_MAX} fields"),
            )
        })?;
        let kind = match self.kind.as_str() {
            "RECORD" | "STRUCT" => {
                let fields = self.fields.iter();
                let fields = fields.map(|field| Ok((field.name.clone(), field.read(room)?)));
                Type::Struct(fields.collect::<Result<_, Error>>()?)
            }
            "BOOLEAN" | "BOOL" => Type::Scalar(Scalar::Bool),
            "INTEGER" | "INT64" => Type::Scalar(Scalar::Int64),
            "FLOAT" | "FLOAT64" => Type::Scalar(Scalar::Float64),
            "NUMERIC" | "BIGNUMERIC" => Type::Scalar(Scalar::Numeric),
            "BYTES" => Type::Scalar(Scalar::Bytes),
            "DATE" => Type::Scalar(Scalar::Date),
            "TIME" => Type::Scalar(Scalar::Time),
            "DATETIME" => Type::Scalar(Scalar::DateTime),
            "JSON" => Type::Scalar(Scalar::Json),
            "TIMESTAMP" => match self.timestamp_precision.as_deref() {
                None | Some(MICROS) => Type::Scalar(Scalar::Timestamp),
                // It would be sent without what is beyond microseconds, and nobody would notice.
                Some(_) => {
                    return Err(Error::source_failed(
                        "finer_than_microseconds",
                        "the result has a TIMESTAMP that is finer than microseconds: write CAST(… AS STRING) or CAST(… AS TIMESTAMP(6))",
                    ));
                }
            },
            "RANGE" if self.is_of_timestamps() => Type::Scalar(Scalar::Timestamps),
            // STRING, and what BigQuery writes as a text: GEOGRAPHY, INTERVAL, RANGE, and what is still to come.
            _ => Type::Scalar(Scalar::String),
        };
        Ok(match self.is_array() {
            true => Type::Array(Box::new(kind)),
            false => kind,
        })
    }

    /// As GoogleSQL writes it: the API has older names.
    fn native(&self) -> String {
        let inner = match self.kind.as_str() {
            "RECORD" | "STRUCT" => {
                let fields = self.fields.iter();
                let fields = fields.map(|field| format!("{} {}", field.name, field.native()));
                format!("STRUCT<{}>", fields.collect::<Vec<_>>().join(", "))
            }
            "RANGE" => match &self.range_element_type {
                Some(element) => format!("RANGE<{}>", element.kind),
                None => "RANGE".to_owned(),
            },
            kind => {
                let name = match kind {
                    "INTEGER" => "INT64",
                    "FLOAT" => "FLOAT64",
                    "BOOLEAN" => "BOOL",
                    kind => kind,
                };
                match (&self.precision, &self.scale, &self.max_length) {
                    (Some(precision), Some(scale), _) => format!("{name}({precision}, {scale})"),
                    (Some(size), None, _) | (None, _, Some(size)) => format!("{name}({size})"),
                    _ => name.to_owned(),
                }
            }
        };
        match self.is_array() {
            true => format!("ARRAY<{inner}>"),
            false => inner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_in_sql() {
        let schema = r#"{"fields": [
            {"name": "n", "type": "NUMERIC", "mode": "NULLABLE", "precision": "10", "scale": "2"},
            {"name": "s", "type": "STRING", "maxLength": "9"},
            {"name": "r", "type": "RECORD", "mode": "REPEATED", "fields": [
                {"name": "a", "type": "INTEGER"}, {"name": "b", "type": "FLOAT", "mode": "REPEATED"}]},
            {"name": "d", "type": "RANGE", "rangeElementType": {"type": "DATE"}},
            {"name": "x", "type": "OF_TOMORROW"}]}"#;
        let (columns, types) = columns(schema).unwrap();
        let natives: Vec<&str> = columns
            .iter()
            .map(|column| column.native.as_str())
            .collect();
        let record = "ARRAY<STRUCT<a INT64, b ARRAY<FLOAT64>>>";
        assert_eq!(
            natives,
            [
                "NUMERIC(10, 2)",
                "STRING(9)",
                record,
                "RANGE<DATE>",
                "OF_TOMORROW"
            ]
        );
        let nullable: Vec<bool> = columns.iter().map(|column| column.nullable).collect();
        assert_eq!(nullable, [true, true, false, true, true]);
        let floats = Type::Array(Box::new(Type::Scalar(Scalar::Float64)));
        let fields = vec![
            ("a".to_owned(), Type::Scalar(Scalar::Int64)),
            ("b".to_owned(), floats),
        ];
        assert_eq!(types[2], Type::Array(Box::new(Type::Struct(fields))));
    }

    /// No digit is cut off where nobody asked for it.
    #[test]
    fn what_is_finer_than_microseconds_is_refused() {
        let schema = |precision: &str| {
            format!(
                r#"{{"fields": [{{"name": "t", "type": "TIMESTAMP", "timestampPrecision": "{precision}"}}]}}"#
            )
        };
        assert!(columns(&schema("6")).is_ok());
        assert_eq!(
            columns(&schema("12")).unwrap_err().code,
            "finer_than_microseconds"
        );
        assert!(columns("{}").is_err());
    }

    /// A schema that is none is told without what stands in it.
    #[test]
    fn what_is_no_schema_is_not_repeated() {
        for schema in [
            r#"{"fields": "hush"}"#,
            r#"{"fields": ["hush"]}"#,
            r#"{"fields": [{"name": "n", "type": "RANGE", "rangeElementType": "hush"}]}"#,
        ] {
            let told = columns(schema).unwrap_err().detail.unwrap();
            assert!(!told.contains("hush"), "{told}");
        }
    }

    /// However deep a schema is, and however wide, reading it ends.
    #[test]
    fn a_schema_has_bounds() {
        let deep = "{\"fields\":[{\"name\":\"a\",\"type\":\"RECORD\",\"fields\":[".repeat(500);
        assert!(columns(&deep).is_err());
        let field = r#"{"name":"a","type":"STRING"},"#.repeat(FIELDS_MAX);
        let wide = format!("{{\"fields\":[{field}{{\"name\":\"a\",\"type\":\"STRING\"}}]}}");
        assert_eq!(columns(&wide).unwrap_err().code, "too_many_fields");
    }
}
