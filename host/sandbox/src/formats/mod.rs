//! A result in the formats that programs read: rows as JSON, lines of JSON or CSV, columns as Arrow or Parquet.
//!
//! Exact in each: decimals keep their digits, as a number where the format has one that holds them and as text where it has not.
//! Knows no HTTP. Start reading at [`write`]; a whole feed in one answer is [`Stream`].

mod arrow;
mod csv;
mod digest;
mod kinds;
mod stream;

use crate::columns::Output;
use crate::json::{self, Field};

pub use digest::digest;
pub use kinds::{Format, Unfit};
pub use stream::Stream;

/// Appends the first `rows` rows of a result with `fields` in their order.
pub fn write(
    format: Format,
    out: &mut Vec<u8>,
    output: Output,
    fields: &[Field],
    rows: usize,
) -> Result<(), Unfit> {
    match format {
        Format::Json => json::write_rows(out, &output, fields, 0..rows),
        Format::JsonLines => json::write_lines(out, &output, fields, 0..rows),
        Format::Csv => {
            csv::write_head(out, fields);
            csv::write_rows(out, &output, fields, 0..rows);
        }
        Format::Arrow | Format::Parquet => {
            let mut stream = Stream::new(format);
            out.append(&mut stream.write(output, fields, rows)?);
            out.append(&mut stream.finish()?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
