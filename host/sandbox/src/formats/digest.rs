//! What rows are, in a number: equal rows have equal ones, in however many batches they came.

use bytemuck::cast_slice;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::columns::{Chunk, ColumnData, Output};
use crate::json::Field;

/// Of the first `rows` rows of a result as far as `fields` show them. Different rows have different digests but for one pair in 2^64, by
/// chance: who makes rows that collide has made his own. Another release may reckon otherwise.
///
/// Every page has one, so that whole columns are hashed and not values: by value it took a tenth of the time of a page with 1,000 rows.
pub fn digest(output: &Output, fields: &[Field], rows: usize) -> u64 {
    let mut hash = Hash::of(output.bytes);
    hash.update(&(rows as u64).to_le_bytes());
    for field in fields {
        hash.update(&field.digest.to_le_bytes());
        let Some(column) = output.columns.get(field.index) else {
            hash.update(&[u8::MAX]);
            continue;
        };
        hash.update(&[column.kind as u8]);
        // One after the other, so that it does not matter where a batch ends.
        for (chunk, rows) in shown(output, field.index, rows) {
            values(&mut hash, chunk, rows);
        }
        for (chunk, rows) in shown(output, field.index, rows) {
            lengths(&mut hash, chunk, rows);
        }
        let mut before = 0;
        for (chunk, rows) in shown(output, field.index, rows) {
            if chunk.validity.is_some() {
                let nulls = (0..rows).filter(|row| chunk.is_null(*row));
                nulls.for_each(|row| hash.update(&((before + row) as u64).to_le_bytes()));
            }
            before += rows;
        }
    }
    hash.finish()
}

/// Hashes what is together small in one go: the state of one that goes on is larger than most pages, and takes longer to set up.
struct Hash {
    /// Not hashed yet.
    together: Vec<u8>,
    going_on: Option<Box<Xxh3>>,
}

/// A page of some tens of rows; within what the processor has at hand.
const TOGETHER: usize = 8 << 10;
/// What a row of some columns has beside its values: marks of the columns, lengths. Nothing but a first size.
const BESIDE: usize = 256;

impl Hash {
    /// For values of so many bytes, or some more. Of a single row that is so little that the allocator has it at hand.
    fn of(bytes: usize) -> Hash {
        Hash {
            together: Vec::with_capacity((bytes + BESIDE).min(TOGETHER)),
            going_on: None,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        if self.together.len() + bytes.len() > TOGETHER {
            let going_on = self.going_on.get_or_insert_with(|| Box::new(Xxh3::new()));
            going_on.update(&self.together);
            self.together.clear();
            if bytes.len() > TOGETHER {
                going_on.update(bytes);
                return;
            }
        }
        self.together.extend_from_slice(bytes);
    }

    /// The same whether it was small or not.
    fn finish(self) -> u64 {
        match self.going_on {
            None => xxh3_64(&self.together),
            Some(mut going_on) => {
                going_on.update(&self.together);
                going_on.digest()
            }
        }
    }
}

/// A column's part of each batch, as far as it is among the first `rows` rows.
fn shown(output: &Output, column: usize, mut rows: usize) -> impl Iterator<Item = (&Chunk, usize)> {
    output.batches.iter().filter_map(move |batch| {
        let shown = rows.min(batch.rows as usize);
        rows -= shown;
        let chunk = batch.chunks.get(column).filter(|_| shown > 0)?;
        Some((chunk, shown))
    })
}

fn values(hash: &mut Hash, chunk: &Chunk, rows: usize) {
    match &chunk.data {
        ColumnData::Bits(bits) => {
            (0..rows).for_each(|row| hash.update(&[bits[row >> 3] >> (row & 7) & 1]));
        }
        ColumnData::I32s(days) => hash.update(cast_slice(&days[..rows])),
        ColumnData::I64s(values) => hash.update(cast_slice(&values[..rows])),
        ColumnData::F64s(values) => hash.update(cast_slice(&values[..rows])),
        ColumnData::VarLen(values) => {
            let (begin, end) = (values.offsets[0], values.offsets[rows]);
            hash.update(&values.bytes[begin as usize..end as usize]);
        }
    }
}

/// Where each text ends.
fn lengths(hash: &mut Hash, chunk: &Chunk, rows: usize) {
    let ColumnData::VarLen(values) = &chunk.data else {
        return;
    };
    let mut some = [0i32; 64];
    for (begin, end) in (0..rows)
        .step_by(some.len())
        .map(|row| (row, rows.min(row + 64)))
    {
        let offsets = &values.offsets[begin..=end];
        for (length, pair) in some.iter_mut().zip(offsets.windows(2)) {
            *length = pair[1] - pair[0];
        }
        hash.update(cast_slice(&some[..end - begin]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Batch, Chunk, Column, ColumnKind, VarLen};

    fn output(batches: &[&[Option<&str>]]) -> Output {
        let column = Column {
            name: "t".into(),
            kind: ColumnKind::Text,
            nullable: true,
            native: String::new(),
        };
        let batch = |texts: &&[Option<&str>]| {
            let mut values = VarLen {
                offsets: vec![0],
                bytes: Vec::new(),
            };
            let mut validity = vec![0u8; texts.len().div_ceil(8)];
            for (row, text) in texts.iter().enumerate() {
                values.bytes.extend(text.unwrap_or_default().bytes());
                values.offsets.push(values.bytes.len() as i32);
                validity[row >> 3] |= u8::from(text.is_some()) << (row & 7);
            }
            Batch {
                rows: texts.len() as u32,
                chunks: vec![Chunk {
                    validity: Some(validity),
                    data: ColumnData::VarLen(values),
                }],
            }
        };
        Output::new([column].into(), batches.iter().map(batch).collect(), 0)
    }

    /// However it is cut, and whether it fits together or not.
    #[test]
    fn pieces_do_not_matter() {
        let bytes: Vec<u8> = (0..5 * TOGETHER).map(|n| (n * 7 % 251) as u8).collect();
        for length in [0, 1, 240, 1_000, TOGETHER, TOGETHER + 1, bytes.len()] {
            for piece in [1, 63, 4_096, TOGETHER + 7] {
                let mut hash = Hash::of(0);
                bytes[..length]
                    .chunks(piece)
                    .for_each(|piece| hash.update(piece));
                assert_eq!(
                    hash.finish(),
                    xxh3_64(&bytes[..length]),
                    "{length} in {piece}"
                );
            }
        }
    }

    /// A change of a value, of a NULL, of where a text ends or of a name is another digest; another cut into batches is not, nor is a row
    /// beyond the page.
    #[test]
    fn only_rows_count() {
        let of = |batches: &[&[Option<&str>]], rows| {
            digest(&output(batches), &[Field::new(0, "t")], rows)
        };
        let whole = of(&[&[Some("ab"), None, Some("c")]], 3);
        assert_eq!(
            of(&[&[Some("ab"), None, Some("c"), Some("more")]], 3),
            whole
        );
        for other in [
            of(&[&[Some("a"), None, Some("bc")]], 3),
            of(&[&[Some("ab"), Some(""), Some("c")]], 3),
            of(&[&[Some("ab"), None, Some("d")]], 3),
            of(&[&[Some("ab"), None, Some("c")]], 2),
            digest(
                &output(&[&[Some("ab"), None, Some("c")]]),
                &[Field::new(0, "u")],
                3,
            ),
        ] {
            assert_ne!(other, whole);
        }
        let numbers = |cuts: &[&[i64]]| {
            let column = Column {
                name: "n".into(),
                kind: ColumnKind::Int64,
                nullable: true,
                native: String::new(),
            };
            let batch = |numbers: &&[i64]| Batch {
                rows: numbers.len() as u32,
                chunks: vec![Chunk {
                    validity: None,
                    data: ColumnData::I64s(numbers.to_vec()),
                }],
            };
            let output = Output::new([column].into(), cuts.iter().map(batch).collect(), 0);
            digest(&output, &[Field::new(0, "n")], 3)
        };
        assert_eq!(numbers(&[&[1, 2], &[3]]), numbers(&[&[1], &[2, 3]]));
    }
}
