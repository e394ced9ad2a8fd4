//! The rows of an answer, one after the other, in place of each other: all of them at once would take many times the memory of their text.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use souk_sdk::Error;

/// Cells of a row; a result has no more columns.
const CELLS_MAX: usize = 16_384;

/// Cells of a row: texts, or nothing.
#[derive(Default)]
pub struct Row {
    text: String,
    /// Where each begins and ends.
    cells: Vec<Option<(usize, usize)>>,
}

impl Row {
    /// Takes the cells of a row that stands alone in place of those of the last one.
    pub fn read(&mut self, text: &[u8]) -> serde_json::Result<()> {
        let mut from = serde_json::Deserializer::from_slice(text);
        Cells(self).deserialize(&mut from)?;
        from.end()
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// `None`: NULL.
    pub fn cell(&self, place: usize) -> Option<&str> {
        let (begin, end) = (*self.cells.get(place)?)?;
        self.text.get(begin..end)
    }

    fn clear(&mut self) {
        self.text.clear();
        self.cells.clear();
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        let begin = self.text.len();
        // A String takes everything.
        let _ = fmt::Write::write_fmt(&mut self.text, text);
        self.cells.push(Some((begin, self.text.len())));
    }
}

/// Rows on their way through an answer.
pub struct Rows<F> {
    each: F,
    row: Row,
    /// Why the last one was not taken.
    pub refused: Option<Error>,
}

impl<F: FnMut(&Row) -> Result<(), Error>> Rows<F> {
    pub fn new(each: F) -> Rows<F> {
        Rows {
            each,
            row: Row::default(),
            refused: None,
        }
    }
}

/// An answer: an object that has its rows as `data`, or only the rows.
pub struct Answer<'r, F>(pub &'r mut Rows<F>);

impl<'de, F: FnMut(&Row) -> Result<(), Error>> DeserializeSeed<'de> for Answer<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&Row) -> Result<(), Error>> Visitor<'de> for Answer<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an answer with rows")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_data = false;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "data" if std::mem::replace(&mut has_data, true) => {
                    return Err(A::Error::duplicate_field("data"));
                }
                "data" => map.next_value_seed(Data(self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match has_data {
            true => Ok(()),
            false => Err(A::Error::missing_field("data")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, rows: A) -> Result<(), A::Error> {
        Data(self.0).visit_seq(rows)
    }
}

/// The rows.
struct Data<'r, F>(&'r mut Rows<F>);

impl<'de, F: FnMut(&Row) -> Result<(), Error>> DeserializeSeed<'de> for Data<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&Row) -> Result<(), Error>> Visitor<'de> for Data<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while rows.next_element_seed(Cells(&mut self.0.row))?.is_some() {
            if let Err(error) = (self.0.each)(&self.0.row) {
                self.0.refused = Some(error);
                return Err(A::Error::custom("a row is not taken"));
            }
        }
        Ok(())
    }
}

/// Takes the cells of a row in place of those of the last one.
struct Cells<'r>(&'r mut Row);

impl<'de> DeserializeSeed<'de> for Cells<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Cells<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a row")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        self.0.clear();
        while row.next_element_seed(Cell(self.0))?.is_some() {
            if self.0.len() > CELLS_MAX {
                return Err(A::Error::custom("a row has too many cells"));
            }
        }
        Ok(())
    }
}

/// Takes a cell: a text. Whole numbers and truth may stand there as such.
struct Cell<'r>(&'r mut Row);

impl<'de> DeserializeSeed<'de> for Cell<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Cell<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, or null")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.push(format_args!("{text}"));
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.cells.push(None);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.push(format_args!("{value}"));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.push(format_args!("{value}"));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.0.push(format_args!("{value}"));
        Ok(())
    }
}
