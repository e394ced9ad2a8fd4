//! What a column was declared as.

use souk_sdk::ColumnType;

/// What a declared type promises. SQLite does not hold columns to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    Boolean,
    Integer,
    Real,
    Decimal,
    Text,
    Blob,
    Date,
    Time,
    /// `DATETIME`, `TIMESTAMP`: with or without a zone, as its texts have it.
    Timestamp,
    /// `TIMESTAMPTZ`, `TIMESTAMP WITH TIME ZONE`: a text without one is in UTC.
    ZonedTimestamp,
    Json,
    Nothing,
}

impl Declared {
    pub fn parse(declared: Option<&str>) -> Declared {
        let Some(declared) = declared else {
            return Declared::Nothing;
        };
        let upper = declared.to_ascii_uppercase();
        let base = upper.split('(').next().unwrap_or_default().trim();
        let has = |parts: &[&str]| parts.iter().any(|part| base.contains(part));
        match base {
            "DATE" => Declared::Date,
            "TIME" => Declared::Time,
            "DATETIME" => Declared::Timestamp,
            "JSON" => Declared::Json,
            "TIMESTAMPTZ" => Declared::ZonedTimestamp,
            // The precision stands in between: `TIMESTAMP(3) WITH TIME ZONE`.
            _ if base.starts_with("TIMESTAMP") => match upper.contains("WITH TIME ZONE") {
                true => Declared::ZonedTimestamp,
                false => Declared::Timestamp,
            },
            _ if has(&["BOOL"]) => Declared::Boolean,
            // From here on in the order of SQLite's own rules of affinity.
            _ if has(&["INT"]) => Declared::Integer,
            _ if has(&["CHAR", "CLOB", "TEXT"]) => Declared::Text,
            _ if has(&["BLOB"]) => Declared::Blob,
            _ if has(&["REAL", "FLOA", "DOUB"]) => Declared::Real,
            _ if has(&["DEC", "NUMERIC"]) => Declared::Decimal,
            _ => Declared::Nothing,
        }
    }

    /// The type of a column in which no value was seen.
    pub fn suggests(self) -> ColumnType {
        match self {
            Declared::Boolean => ColumnType::Boolean,
            Declared::Integer => ColumnType::Int64,
            Declared::Real => ColumnType::Float64,
            Declared::Decimal => ColumnType::Decimal,
            Declared::Text | Declared::Nothing => ColumnType::Text,
            Declared::Blob => ColumnType::Bytes,
            Declared::Date => ColumnType::Date,
            Declared::Time => ColumnType::Time,
            Declared::Timestamp => ColumnType::LocalTimestamp,
            Declared::ZonedTimestamp => ColumnType::Timestamp,
            Declared::Json => ColumnType::Json,
        }
    }
}
