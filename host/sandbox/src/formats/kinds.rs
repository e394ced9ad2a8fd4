//! Which formats there are, and why rows do not fit one.

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// An array of objects.
    Json,
    /// An object a line.
    JsonLines,
    Csv,
    /// Arrow's IPC stream.
    Arrow,
    Parquet,
}

/// Why rows cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("the column \"{0}\" changes its type within the feed; ask for NDJSON")]
    Type(String),
    #[error("a number in the column \"{0}\" has more digits than its type; ask for NDJSON")]
    Digits(String),
    #[error(
        "the column \"{0}\" has the time 24:00:00, which this format has not; ask for NDJSON or CSV"
    )]
    EndOfDay(String),
    #[error(
        "its {0} groups of rows are as many as a Parquet file has of so many columns; ask for fewer fields, or for another format"
    )]
    Groups(usize),
    #[error("the rows cannot be written: {0}")]
    Writer(String),
}
