//! What an answer begins with: the columns.

use souk_sdk::Error;

use crate::values::{Reader, malformed};

/// What a result has at most; a server that says more is not believed.
const COLUMNS_MAX: usize = 16_384;
/// Names and types of all columns together. What types are read into takes many times as much, and has a bound of its own.
const DESCRIBED_BYTES_MAX: usize = 1 << 20;

/// Names and types of the columns that an answer begins with.
pub fn head<'a>(reader: &mut Reader<'a>) -> Result<Vec<(&'a str, &'a str)>, Error> {
    let count = reader.length()?;
    if !(1..=COLUMNS_MAX).contains(&count) {
        return Err(malformed());
    }
    let (mut texts, mut bytes) = (Vec::new(), 0);
    for _ in 0..2 * count {
        let text = std::str::from_utf8(reader.sized()?).map_err(|_| malformed())?;
        bytes += text.len();
        if bytes > DESCRIBED_BYTES_MAX {
            return Err(Error::limit_exceeded(
                "columns_too_long",
                "the names and types of the result's columns are longer than 1 MiB",
            ));
        }
        texts.push(text);
    }
    let (names, types) = texts.split_at(count);
    Ok(names.iter().copied().zip(types.iter().copied()).collect())
}
