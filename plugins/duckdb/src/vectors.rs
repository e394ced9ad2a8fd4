//! The vectors of a chunk, read where they lie: a vector keeps slices of the message, and what a cell of it is can be asked for by its row.
//!
//! DuckDB 1.5 sends every vector flat. The other forms that its serialization knows are read as well, but for strings compressed by FSST.

use std::ops::Range;

use souk_sdk::Error;

use crate::errors::malformed;
use crate::types::{self, Child, DEPTH_MAX, Layout, Type};
use crate::wire::Reader;

/// A chunk has 2,048 rows, unless DuckDB was built with another number.
pub const CHUNK_ROWS_MAX: usize = 1 << 16;
/// Texts and lists of a chunk, for which a vector keeps where they lie.
const PLACES_MAX: usize = 2_000_000;
/// Values of a chunk's vectors, whether there are bytes of them or not.
const VALUES_MAX: usize = 1 << 27;
/// How deep vectors lie in each other: as types do, each in a constant or a dictionary.
const VECTORS_MAX: usize = 2 * DEPTH_MAX;

const FLAT: u64 = 0;
const CONSTANT: u64 = 2;
const DICTIONARY: u64 = 3;
const SEQUENCE: u64 = 4;

pub struct Vector<'a> {
    form: Form<'a>,
    count: usize,
}

enum Form<'a> {
    Flat {
        /// A bit for each value that there is; without it there are all.
        validity: Option<&'a [u8]>,
        data: Data<'a>,
    },
    /// The first of its values, as often as it is asked for.
    Constant(Box<Vector<'a>>),
    /// Which of its values there are, in four bytes each.
    Dictionary(&'a [u8], Box<Vector<'a>>),
    Sequence {
        start: i64,
        step: i64,
    },
}

enum Data<'a> {
    Fixed(&'a [u8], usize),
    Texts(Vec<&'a [u8]>),
    List(Vec<(u32, u32)>, Box<Vector<'a>>),
    Array(usize, Box<Vector<'a>>),
    Struct(Vec<Vector<'a>>),
}

/// A value as it lies in its vector.
pub enum Found<'v, 'a> {
    Null,
    Fixed(&'a [u8]),
    /// One of a sequence.
    Number(i64),
    Text(&'a [u8]),
    List(&'v Vector<'a>, Range<usize>),
    /// One value of each.
    Struct(&'v [Vector<'a>], usize),
}

/// Values of consecutive rows, all of which are there.
pub enum Run<'v, 'a> {
    /// As many bytes of each, one behind the other.
    Fixed(&'a [u8]),
    Texts(&'v [&'a [u8]]),
}

impl<'a> Vector<'a> {
    /// The values of these rows where they lie one behind the other, which they do in almost every vector, and none of them is NULL. `None`: each
    /// has to be asked for.
    pub fn run(&self, rows: Range<usize>) -> Option<Run<'_, 'a>> {
        let Form::Flat { validity, data } = &self.form else {
            return None;
        };
        if validity.is_some_and(|mask| !are_there(mask, &rows)) {
            return None;
        }
        match data {
            Data::Fixed(bytes, width) => {
                let (begin, end) = (rows.start * width, rows.end * width);
                bytes.get(begin..end).map(Run::Fixed)
            }
            Data::Texts(texts) => texts.get(rows).map(Run::Texts),
            Data::List(..) | Data::Array(..) | Data::Struct(_) => None,
        }
    }

    pub fn at(&self, row: usize) -> Result<Found<'_, 'a>, Error> {
        if row >= self.count {
            return Err(malformed());
        }
        match &self.form {
            Form::Constant(one) => one.at(0),
            Form::Dictionary(places, values) => {
                let place = places.get(4 * row..4 * row + 4).ok_or_else(malformed)?;
                let place = u32::from_le_bytes(place.try_into().map_err(|_| malformed())?);
                values.at(place as usize)
            }
            Form::Sequence { start, step } => {
                let row = i64::try_from(row).map_err(|_| malformed())?;
                Ok(Found::Number(start.wrapping_add(step.wrapping_mul(row))))
            }
            Form::Flat { validity, data } => {
                let is_there = |mask: &[u8]| mask.get(row / 8).map(|byte| byte >> (row % 8) & 1);
                match validity {
                    Some(mask) if is_there(mask) != Some(1) => Ok(Found::Null),
                    _ => data.at(row),
                }
            }
        }
    }
}

/// Whether a mask has a bit for each of these rows.
fn are_there(mask: &[u8], rows: &Range<usize>) -> bool {
    let before = (1_u8 << (rows.start % 8)) - 1;
    let behind = match rows.end % 8 {
        0 => 0,
        used => 0xff << used,
    };
    match mask.get(rows.start / 8..rows.end.div_ceil(8)) {
        None => false,
        Some([]) => true,
        Some([one]) => one | before | behind == 0xff,
        Some([first, between @ .., last]) => {
            let are_ends = first | before == 0xff && last | behind == 0xff;
            are_ends && between.iter().all(|byte| *byte == 0xff)
        }
    }
}

impl<'a> Data<'a> {
    fn at(&self, row: usize) -> Result<Found<'_, 'a>, Error> {
        let found = match self {
            Data::Fixed(bytes, width) => {
                let begin = row * width;
                bytes.get(begin..begin + width).map(Found::Fixed)
            }
            Data::Texts(texts) => texts.get(row).map(|text| Found::Text(text)),
            Data::List(entries, of) => entries.get(row).map(|(begin, count)| {
                let begin = *begin as usize;
                Found::List(of, begin..begin + *count as usize)
            }),
            Data::Array(size, of) => Some(Found::List(of, row * size..row * size + size)),
            Data::Struct(fields) => Some(Found::Struct(fields, row)),
        };
        found.ok_or_else(malformed)
    }
}

/// The columns of a chunk; how many rows they have.
pub struct Chunk<'a> {
    pub rows: usize,
    pub columns: Vec<Vector<'a>>,
}

/// Reads a chunk of a result whose types are these, and were written so.
pub fn chunk<'a>(
    reader: &mut Reader<'a>,
    types: &[Type],
    written: &[u8],
) -> Result<Chunk<'a>, Error> {
    reader.field(300)?;
    reader.field(100)?;
    let rows = usize::try_from(reader.number()?).map_err(|_| malformed())?;
    if rows > CHUNK_ROWS_MAX {
        return Err(malformed());
    }
    reader.field(101)?;
    same(reader, types, written)?;
    reader.field(102)?;
    if reader.count(1)? != types.len() {
        return Err(malformed());
    }
    let mut room = Room {
        places: PLACES_MAX,
        values: VALUES_MAX,
    };
    let mut columns = Vec::with_capacity(types.len());
    for kind in types {
        columns.push(read(reader, &kind.layout(), rows, 0, &mut room)?);
        reader.end()?;
    }
    reader.end()?;
    reader.end()?;
    Ok(Chunk { rows, columns })
}

/// Reads the types that a chunk says again. They may be written otherwise, as long as they are the same here: what DuckDB has computed beforehand has lost
/// the collation that the result's type has (`'a' || 'b' COLLATE NOCASE`), and what it unites has never had it.
fn same(reader: &mut Reader<'_>, types: &[Type], written: &[u8]) -> Result<(), Error> {
    if reader.goes_on_with(written) {
        return reader.exactly(written);
    }
    match types::list(reader)?.as_slice() == types {
        true => Ok(()),
        false => Err(malformed()),
    }
}

/// What the vectors of a chunk may still have.
struct Room {
    places: usize,
    values: usize,
}

impl Room {
    fn places(&mut self, count: usize) -> Result<(), Error> {
        self.places = self.places.checked_sub(count).ok_or_else(too_large)?;
        Ok(())
    }
}

/// Reads a vector without its end.
fn read<'a>(
    reader: &mut Reader<'a>,
    layout: &Layout<'_>,
    count: usize,
    depth: usize,
    room: &mut Room,
) -> Result<Vector<'a>, Error> {
    if depth == VECTORS_MAX {
        return Err(malformed());
    }
    room.values = room.values.checked_sub(count).ok_or_else(too_large)?;
    let form = match reader.is_field(90) {
        true => reader.number()?,
        false => FLAT,
    };
    let form = match form {
        FLAT => flat(reader, layout, count, depth, room)?,
        CONSTANT => {
            let one = read(reader, layout, 1, depth + 1, room)?;
            Form::Constant(Box::new(one))
        }
        DICTIONARY => {
            reader.field(91)?;
            let places = reader.blob()?;
            if places.len() != 4 * count {
                return Err(malformed());
            }
            reader.field(92)?;
            let values = usize::try_from(reader.number()?).map_err(|_| malformed())?;
            let values = read(reader, layout, values, depth + 1, room)?;
            Form::Dictionary(places, Box::new(values))
        }
        SEQUENCE => {
            reader.field(91)?;
            let start = reader.signed()?;
            reader.field(92)?;
            let step = reader.signed()?;
            match layout {
                Layout::Fixed(1..=8) => Form::Sequence { start, step },
                _ => return Err(malformed()),
            }
        }
        _ => {
            return Err(Error::source_failed(
                "unsupported_vector",
                "DuckDB sent values in a form that is not read here",
            ));
        }
    };
    Ok(Vector { form, count })
}

fn flat<'a>(
    reader: &mut Reader<'a>,
    layout: &Layout<'_>,
    count: usize,
    depth: usize,
    room: &mut Room,
) -> Result<Form<'a>, Error> {
    // How a geometry is written: as WKB.
    if let Layout::Texts = layout
        && reader.is_field(99)
        && reader.number()? != 1
    {
        return Err(malformed());
    }
    reader.field(100)?;
    let validity = match reader.boolean()? {
        false => None,
        true => {
            reader.field(101)?;
            let mask = reader.blob()?;
            if mask.len() < count.div_ceil(8) {
                return Err(malformed());
            }
            Some(mask)
        }
    };
    let data = match layout {
        Layout::Fixed(width) => {
            reader.field(102)?;
            let bytes = reader.blob()?;
            if count.checked_mul(*width) != Some(bytes.len()) {
                return Err(malformed());
            }
            Data::Fixed(bytes, *width)
        }
        Layout::Texts => {
            reader.field(102)?;
            Data::Texts(texts(reader, count, room)?)
        }
        Layout::List(child) => list(reader, child, count, depth, room)?,
        Layout::Array(element, size) => {
            reader.field(103)?;
            if reader.number()? != *size as u64 {
                return Err(malformed());
            }
            reader.field(104)?;
            let values = count.checked_mul(*size).ok_or_else(malformed)?;
            let values = read(reader, &element.layout(), values, depth + 1, room)?;
            reader.end()?;
            Data::Array(*size, Box::new(values))
        }
        Layout::Struct(fields) => {
            reader.field(103)?;
            if reader.count(1)? != fields.len() {
                return Err(malformed());
            }
            let fields = fields.iter().map(|field| {
                let vector = read(reader, &field.layout(), count, depth + 1, room)?;
                reader.end()?;
                Ok(vector)
            });
            Data::Struct(fields.collect::<Result<_, Error>>()?)
        }
    };
    Ok(Form::Flat { validity, data })
}

fn texts<'a>(
    reader: &mut Reader<'a>,
    count: usize,
    room: &mut Room,
) -> Result<Vec<&'a [u8]>, Error> {
    if reader.count(1)? != count {
        return Err(malformed());
    }
    room.places(count)?;
    // A list that may fail is collected without knowing how long it becomes: it would be moved nine times for a thousand.
    let mut texts = Vec::with_capacity(count);
    for _ in 0..count {
        texts.push(reader.blob()?);
    }
    Ok(texts)
}

fn list<'a>(
    reader: &mut Reader<'a>,
    child: &Child<'_>,
    count: usize,
    depth: usize,
    room: &mut Room,
) -> Result<Data<'a>, Error> {
    reader.field(104)?;
    let values = usize::try_from(reader.number()?).map_err(|_| malformed())?;
    reader.field(105)?;
    if reader.count(1)? != count {
        return Err(malformed());
    }
    room.places(count)?;
    let entries = (0..count).map(|_| {
        reader.field(100)?;
        let begin = reader.number()?;
        reader.field(101)?;
        let length = reader.number()?;
        reader.end()?;
        let end = begin.checked_add(length).ok_or_else(malformed)?;
        // Of what is NULL they say nothing.
        match (u32::try_from(begin), u32::try_from(length)) {
            (Ok(begin), Ok(length)) if end <= values as u64 => Ok((begin, length)),
            _ => Err(malformed()),
        }
    });
    let entries = entries.collect::<Result<_, Error>>()?;
    reader.field(106)?;
    let values = read(reader, &child.layout(), values, depth + 1, room)?;
    reader.end()?;
    Ok(Data::List(entries, Box::new(values)))
}

fn too_large() -> Error {
    Error::limit_exceeded(
        "chunk_too_large",
        "2,048 rows of the result hold more texts and lists than are read at once: ask for fewer of them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a mask says of some rows is what it says of each of them.
    #[test]
    fn a_mask_is_read_bit_by_bit() {
        for hole in 0..40 {
            let mut mask = [0xff_u8; 5];
            mask[hole / 8] ^= 1 << (hole % 8);
            for start in 0..=40 {
                for end in start..=40 {
                    let is_outside = !(start..end).contains(&hole);
                    let rows = start..end;
                    assert_eq!(are_there(&mask, &rows), is_outside, "{hole} {rows:?}");
                }
            }
        }
        assert!(!are_there(&[0xff], &(0..9)) && !are_there(&[], &(3..4)));
    }

    /// There is a run of what is flat and has no NULL, of as many rows as there are.
    #[test]
    fn a_run_is_of_values_that_are_there() {
        let bytes: Vec<u8> = (0..20).collect();
        let flat = |validity, data| Vector {
            form: Form::Flat { validity, data },
            count: 10,
        };
        let fixed = flat(None, Data::Fixed(&bytes, 2));
        let is_run = |vector: &Vector<'_>, rows: Range<usize>| match vector.run(rows.clone()) {
            Some(Run::Fixed(run)) => run == &bytes[2 * rows.start..2 * rows.end],
            Some(Run::Texts(run)) => run.len() == rows.len(),
            None => false,
        };
        assert!(is_run(&fixed, 0..10) && is_run(&fixed, 3..4) && is_run(&fixed, 10..10));
        assert!(!is_run(&fixed, 9..11));
        // The seventh is NULL.
        let holed = flat(Some(&[0xbf, 0xff]), Data::Fixed(&bytes, 2));
        assert!(is_run(&holed, 0..6) && is_run(&holed, 7..10) && !is_run(&holed, 6..7));
        let texts = flat(None, Data::Texts(vec![&b"a"[..]; 10]));
        assert!(is_run(&texts, 0..10) && is_run(&texts, 2..5) && !is_run(&texts, 9..11));
        let fields = flat(None, Data::Struct(vec![]));
        assert!(fields.run(0..10).is_none());
        for form in [
            Form::Constant(Box::new(flat(None, Data::Fixed(&bytes, 2)))),
            Form::Dictionary(&bytes, Box::new(flat(None, Data::Fixed(&bytes, 2)))),
            Form::Sequence { start: 0, step: 1 },
        ] {
            assert!(Vector { form, count: 5 }.run(0..5).is_none());
        }
    }
}
