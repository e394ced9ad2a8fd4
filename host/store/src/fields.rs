//! Columns in the house dialect: ids and texts are TEXT, times BIGINT microseconds, flags SMALLINT, money BIGINT.

use crate::error::StoreError;
use souk_domain::money::Credits;
use souk_domain::time::Timestamp;
use sqlx::Row;
use sqlx::any::AnyRow;

/// Typed access to the columns of a row. A column of another shape is [`StoreError::Corrupt`].
pub trait Fields {
    fn text(&self, column: &str) -> Result<String, StoreError>;
    fn text_opt(&self, column: &str) -> Result<Option<String>, StoreError>;
    fn number(&self, column: &str) -> Result<i64, StoreError>;
    fn number_opt(&self, column: &str) -> Result<Option<i64>, StoreError>;

    fn flag(&self, column: &str) -> Result<bool, StoreError> {
        Ok(self.number(column)? != 0)
    }

    fn time(&self, column: &str) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_micros(self.number(column)?))
    }

    fn time_opt(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.number_opt(column)?.map(Timestamp::from_micros))
    }

    fn credits(&self, column: &str) -> Result<Credits, StoreError> {
        Credits::new(self.number(column)?).map_err(|error| corrupt(column, error))
    }

    /// An id, or anything else that is read from a text.
    fn id<T: std::str::FromStr>(&self, column: &str) -> Result<T, StoreError>
    where
        T::Err: std::fmt::Display,
    {
        self.text(column)?
            .parse()
            .map_err(|error| corrupt(column, error))
    }

    fn id_opt<T: std::str::FromStr>(&self, column: &str) -> Result<Option<T>, StoreError>
    where
        T::Err: std::fmt::Display,
    {
        self.text_opt(column)?
            .map(|text| text.parse().map_err(|error| corrupt(column, error)))
            .transpose()
    }
}

impl Fields for AnyRow {
    fn text(&self, column: &str) -> Result<String, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn text_opt(&self, column: &str) -> Result<Option<String>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn number(&self, column: &str) -> Result<i64, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn number_opt(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.try_get(column)?)
    }
}

/// The words of a source, a connector or a platform, without the U+0000 that PostgreSQL takes in no text: it would refuse the whole transaction.
pub(crate) fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

/// A stored value that does not read back.
pub fn corrupt(column: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("column {column}: {error}"))
}
