//! Types of Parquet's columns that its reader does not read as they are.

use crate::errors;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::error::Result as Planned;
use souk_sdk::Error;

/// Of an interval of Parquet's, which is months, days and a time, the reader leaves out the months; by the length of bytes that have none it divides.
pub fn check_kind(field: &Field) -> Planned<()> {
    let refused = |message: &str| {
        let error = Error::source_failed("type_unknown", message);
        Err(errors::through(error.detail(field.name().clone())))
    };
    let is_interval = |kind: &DataType| matches!(kind, DataType::Interval(_));
    let is_of_no_bytes = |kind: &DataType| *kind == DataType::FixedSizeBinary(0);
    if has(field.data_type(), is_interval) {
        return refused(
            "the source holds an interval of Parquet, which cannot be read without losing its months: write it as a text",
        );
    }
    match has(field.data_type(), is_of_no_bytes) {
        true => refused("the source holds bytes of a fixed length that is 0, which cannot be read"),
        false => Ok(()),
    }
}

/// Whether a type is such a one, or is made of one.
fn has(kind: &DataType, is_it: fn(&DataType) -> bool) -> bool {
    match kind {
        kind if is_it(kind) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has(field.data_type(), is_it),
        DataType::Struct(fields) => fields.iter().any(|field| has(field.data_type(), is_it)),
        _ => false,
    }
}
