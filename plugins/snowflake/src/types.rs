//! The types of columns, as an answer describes them (`rowType`).

use souk_sdk::{Column, ColumnType};

use crate::answers::Described;

/// A `NUMBER` of so many digits is one of 64 bits.
const INT64_DIGITS: u32 = 18;

/// What a column is read as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Type {
    Boolean,
    Int64,
    Decimal,
    Float,
    Text,
    Bytes,
    Date,
    Time,
    /// On a clock of no zone.
    Clock,
    Moment,
    /// A document.
    Json,
    /// A document, or a text that is none.
    Loose,
}

impl Type {
    fn column_type(self) -> ColumnType {
        match self {
            Type::Boolean => ColumnType::Boolean,
            Type::Int64 => ColumnType::Int64,
            Type::Decimal => ColumnType::Decimal,
            Type::Float => ColumnType::Float64,
            Type::Text => ColumnType::Text,
            Type::Bytes => ColumnType::Bytes,
            Type::Date => ColumnType::Date,
            Type::Time => ColumnType::Time,
            Type::Clock => ColumnType::LocalTimestamp,
            Type::Moment => ColumnType::Timestamp,
            Type::Json | Type::Loose => ColumnType::Json,
        }
    }
}

/// The columns of a description, each with its type.
pub fn columns(described: &[Described]) -> (Vec<Column>, Vec<Type>) {
    let read = |described: &Described| {
        let kind = described.read();
        let column = Column {
            name: described.name.clone(),
            kind: kind.column_type(),
            nullable: described.nullable.unwrap_or(true),
            native: described.native(),
        };
        (column, kind)
    };
    described.iter().map(read).unzip()
}

impl Described {
    fn read(&self) -> Type {
        match self.name_of_type().to_ascii_lowercase().as_str() {
            "fixed" => match (self.scale.unwrap_or(0), self.precision.unwrap_or(u32::MAX)) {
                (0, ..=INT64_DIGITS) => Type::Int64,
                _ => Type::Decimal,
            },
            "real" | "float" | "double" => Type::Float,
            "boolean" => Type::Boolean,
            "binary" => Type::Bytes,
            "date" => Type::Date,
            "time" => Type::Time,
            "timestamp_ntz" | "timestamp" => Type::Clock,
            "timestamp_ltz" | "timestamp_tz" => Type::Moment,
            "object" | "array" | "map" | "vector" => Type::Json,
            "variant" | "geography" | "geometry" => Type::Loose,
            // TEXT, and what is still to come.
            _ => Type::Text,
        }
    }

    fn name_of_type(&self) -> &str {
        let precise = self.precise.as_deref();
        let is_known = |name: &&str| ["GEOGRAPHY", "GEOMETRY"].contains(name);
        precise.filter(is_known).unwrap_or(&self.kind)
    }

    /// As SQL writes it: the API has older names.
    fn native(&self) -> String {
        let name = self.name_of_type().to_ascii_uppercase();
        let (precision, scale) = (self.precision.unwrap_or(38), self.scale.unwrap_or(0));
        match (name.as_str(), self.length) {
            ("FIXED", _) => format!("NUMBER({precision},{scale})"),
            ("REAL" | "DOUBLE", _) => "FLOAT".to_owned(),
            ("TEXT", Some(length)) => format!("VARCHAR({length})"),
            ("TEXT", None) => "VARCHAR".to_owned(),
            ("BINARY", Some(length)) => format!("BINARY({length})"),
            ("TIME" | "TIMESTAMP_NTZ" | "TIMESTAMP_LTZ" | "TIMESTAMP_TZ", _) => {
                format!("{name}({scale})")
            }
            _ => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_named_as_in_sql() {
        for (described, kind, native) in [
            (
                r#""fixed","precision":18,"scale":0"#,
                Type::Int64,
                "NUMBER(18,0)",
            ),
            (
                r#""FIXED","precision":38,"scale":0"#,
                Type::Decimal,
                "NUMBER(38,0)",
            ),
            (
                r#""fixed","precision":10,"scale":2"#,
                Type::Decimal,
                "NUMBER(10,2)",
            ),
            (r#""fixed""#, Type::Decimal, "NUMBER(38,0)"),
            (r#""real""#, Type::Float, "FLOAT"),
            (
                r#""text","length":16777216,"byteLength":16777216"#,
                Type::Text,
                "VARCHAR(16777216)",
            ),
            (r#""boolean""#, Type::Boolean, "BOOLEAN"),
            (r#""binary","length":8"#, Type::Bytes, "BINARY(8)"),
            (r#""date""#, Type::Date, "DATE"),
            (r#""time","scale":9"#, Type::Time, "TIME(9)"),
            (
                r#""timestamp_ntz","scale":3"#,
                Type::Clock,
                "TIMESTAMP_NTZ(3)",
            ),
            (
                r#""timestamp_ltz","scale":9"#,
                Type::Moment,
                "TIMESTAMP_LTZ(9)",
            ),
            (
                r#""timestamp_tz","scale":9"#,
                Type::Moment,
                "TIMESTAMP_TZ(9)",
            ),
            (r#""variant""#, Type::Loose, "VARIANT"),
            (r#""array""#, Type::Json, "ARRAY"),
            (r#""vector""#, Type::Json, "VECTOR"),
            (r#""geography""#, Type::Loose, "GEOGRAPHY"),
            (r#""of_tomorrow""#, Type::Text, "OF_TOMORROW"),
        ] {
            let text = format!("{{\"name\":\"N\",\"type\":{described},\"nullable\":false}}");
            let (columns, types) = columns(&[serde_json::from_str(&text).unwrap()]);
            assert_eq!((types[0], columns[0].native.as_str()), (kind, native));
            assert!(!columns[0].nullable);
        }
    }
}
