//! Texts of which each is written as what differs from the one before it, and lengths that are written as differences: how long all of a page
//! are together. A page of a kilobyte may say gigabytes.

use super::numbers::{signed, varint};
use datafusion::parquet::basic::Encoding;
use datafusion::parquet::column::page::{Page, PageReader};
use datafusion::parquet::errors::Result as Read;
use datafusion::parquet::file::metadata::ColumnChunkMetaData;
use datafusion::parquet::file::serialized_reader::SerializedPageReader;

use bytes::Bytes;
use std::sync::Arc;

/// Bits of a number are no more.
const WIDTH_MAX: u32 = 64;

/// What the texts of each page of data have together. `None` of a page that does not hold what it says.
pub fn texts(pages: &Bytes, column: &ColumnChunkMetaData) -> Read<Vec<Option<u64>>> {
    let length = i64::try_from(pages.len()).unwrap_or(i64::MAX);
    let alone = column.clone().into_builder();
    let alone = alone
        .set_data_page_offset(0)
        .set_dictionary_page_offset(None)
        .set_total_compressed_size(length)
        .build()?;
    let mut reader = SerializedPageReader::new(Arc::new(pages.clone()), &alone, 0, None)?;
    let mut found = Vec::new();
    while let Some(page) = reader.get_next_page()? {
        if page.is_data_page() {
            found.push(of_page(&page, column));
        }
    }
    Ok(found)
}

fn of_page(page: &Page, column: &ColumnChunkMetaData) -> Option<u64> {
    let values = values(page, column)?;
    let count = u64::from(page.num_values());
    match page.encoding() {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => Some(sum(values, count)?.0),
        Encoding::DELTA_BYTE_ARRAY => {
            let (shared, rest) = sum(values, count)?;
            let (own, _) = sum(rest, count)?;
            shared.checked_add(own)
        }
        _ => Some(values.len() as u64),
    }
}

/// What stands behind the levels, which say which values are NULL and which are in one list.
fn values<'p>(page: &'p Page, column: &ColumnChunkMetaData) -> Option<&'p [u8]> {
    let bytes = page.buffer().as_ref();
    match page {
        Page::DataPageV2 {
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => {
            let levels = def_levels_byte_len.checked_add(*rep_levels_byte_len)?;
            bytes.get(levels as usize..)
        }
        Page::DataPage {
            num_values,
            rep_level_encoding,
            def_level_encoding,
            ..
        } => {
            let levels = column.column_descr();
            let bytes = behind(
                bytes,
                levels.max_rep_level(),
                *rep_level_encoding,
                *num_values,
            )?;
            behind(
                bytes,
                levels.max_def_level(),
                *def_level_encoding,
                *num_values,
            )
        }
        Page::DictionaryPage { .. } => None,
    }
}

fn behind(bytes: &[u8], level_max: i16, encoding: Encoding, count: u32) -> Option<&[u8]> {
    if level_max == 0 {
        return Some(bytes);
    }
    if encoding == Encoding::RLE {
        let (length, rest) = bytes.split_first_chunk()?;
        return rest.get(u32::from_le_bytes(*length) as usize..);
    }
    let width = u64::from(i16::BITS - level_max.leading_zeros());
    let length = (u64::from(count) * width).div_ceil(8);
    bytes.get(usize::try_from(length).ok()?..)
}

/// The sum of numbers that are written as differences, and what is behind them. `None` of what is none, or of more than `count_max`.
fn sum(bytes: &[u8], count_max: u64) -> Option<(u64, &[u8])> {
    let mut input = Input { bytes };
    let (block, parts, count) = (
        varint(&mut input.bytes)?,
        varint(&mut input.bytes)?,
        varint(&mut input.bytes)?,
    );
    let mut number = signed(&mut input.bytes)?;
    if count > count_max || parts == 0 || block % parts != 0 {
        return None;
    }
    let part = block / parts;
    if part == 0 || part % 32 != 0 {
        return None;
    }
    let (mut total, mut left) = (0u64, count);
    if left > 0 {
        total = length(number)?;
        left -= 1;
    }
    while left > 0 {
        let least = signed(&mut input.bytes)?;
        let widths = input.take(parts)?;
        for width in widths {
            if left == 0 {
                break;
            }
            let width = u32::from(*width);
            if width > WIDTH_MAX {
                return None;
            }
            let packed = input.take(part.checked_mul(width.into())? / 8)?;
            for at in 0..part.min(left) {
                let ahead = least.wrapping_add(bits(packed, at, width) as i64);
                number = number.wrapping_add(ahead);
                total = total.checked_add(length(number)?)?;
            }
            left -= part.min(left);
        }
    }
    Some((total, input.bytes))
}

/// A length is a number of 32 bits, which wraps where the differences are of more.
fn length(number: i64) -> Option<u64> {
    u64::try_from(number as i32).ok()
}

/// The number at a place among numbers of so many bits, the lowest first.
fn bits(packed: &[u8], at: u64, width: u32) -> u64 {
    let first = at * u64::from(width);
    let byte = (first / 8) as usize;
    let mut nine = [0; 16];
    let there = packed.get(byte..).unwrap_or_default();
    let there = &there[..there.len().min(9)];
    nine[..there.len()].copy_from_slice(there);
    let shifted = u128::from_le_bytes(nine) >> (first % 8);
    let mask = (1u128 << width) - 1;
    (shifted & mask) as u64
}

struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(usize::try_from(count).ok()?)?;
        self.bytes = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of Parquet's own description: 1 to 5, and 7, 5, 3, 1, 2, 3, 4, 5.
    #[test]
    fn sums_are_those_of_the_description() {
        let same = [0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 0, 0, 0, 0, 9];
        assert_eq!(sum(&same, 5), Some((15, &[9][..])));
        assert_eq!(sum(&same, 4), None, "more than there are");
        let mut other = vec![0x80, 0x01, 0x04, 0x08, 0x0e, 0x03, 2, 0, 0, 0];
        // Differences -2, -2, -2, 1, 1, 1, 1, each less the least, in two bits.
        other.extend([0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(sum(&other, 8), Some((30, &[9][..])));
        for end in 0..other.len() - 1 {
            assert_eq!(sum(&other[..end], 8), None, "cut at {end}");
        }
    }

    #[test]
    fn what_is_no_length_is_told() {
        for bytes in [
            &[0x80, 0x01, 0x00, 0x05, 0x02][..],
            &[0x80, 0x01, 0x03, 0x05, 0x02],
            &[0x00, 0x04, 0x05, 0x02],
            &[0x80, 0x01, 0x04, 0x01, 0x01],
            &[0x80, 0x01, 0x04, 0x02, 0x02, 0, 65, 0, 0, 0],
            &[0xff; 30],
        ] {
            assert_eq!(sum(bytes, 100), None, "{bytes:?}");
        }
    }
}
