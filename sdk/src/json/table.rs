//! Rows of a document on their way into columns: each cell is looked at once, while the document is read, and no row is kept.
//!
//! What becomes of a cell its column's type says, which is a [`Kind`] of the engine's own. A list of lists is read by [`Table::rows`]; rows
//! that are written otherwise are read by the engine's own means, which hand the cells of each to [`Table::row`].

use super::reader::{Reader, Written};
use crate::results::{Page, value_bytes_max};
use crate::{Batch, ColumnBuilder, Error, Limits, Step};
use serde::de::Error as _;
use std::fmt;

/// What a column's type makes of cells.
pub trait Kind {
    /// Whether it wants their own text, as what is nested does.
    fn is_raw(&self) -> bool;

    /// Appends a cell. (With the place for its error these are the four arguments that a component has room for in registers: a fifth one is waited for, each
    /// time.)
    fn push(&self, cell: Written<'_>, into: &mut Place<'_>) -> Result<(), Error>;

    /// What is said of rows that are none, and of an answer that has them wrong.
    fn malformed() -> Error;
}

/// Where a value comes to stand.
pub struct Place<'c> {
    pub column: &'c mut ColumnBuilder,
    /// How many bytes a column may become.
    pub room: usize,
}

/// The rows of a page that is being read.
pub struct Table<'t, T> {
    page: Page<'t, T>,
    room: usize,
    id: u32,
    step: &'t mut Step,
    taken: u64,
    refused: Option<Error>,
}

impl<'t, T: Kind> Table<'t, T> {
    /// The step tells them of `id`.
    pub fn new(page: Page<'t, T>, limits: &Limits, id: u32, step: &'t mut Step) -> Table<'t, T> {
        Table {
            page,
            room: value_bytes_max(limits),
            id,
            step,
            taken: 0,
            refused: None,
        }
    }

    /// Reads a list of lists; `null` is none.
    pub fn rows(&mut self, from: &mut Reader<'_>) -> serde_json::Result<()> {
        match from.null()? {
            true => Ok(()),
            false => from.list("rows", |from| self.row(from, |from, cell| cell.read(from))),
        }
    }

    /// Reads a row, which is a list: `cell` comes to each of its cells, and reads it. Why one is refused is told by [`Table::end`].
    pub fn row<'a>(
        &mut self,
        from: &mut Reader<'a>,
        mut cell: impl FnMut(&mut Reader<'a>, Cell<'_, T>) -> serde_json::Result<()>,
    ) -> serde_json::Result<()> {
        from.begin_list("a row")?;
        let room = self.room;
        let taken = self.page.row(|place, kind, into| {
            let mut refused = None;
            let read = from.list_goes_on(place == 0).and_then(|is_there| {
                let next = Cell {
                    kind,
                    into,
                    room,
                    refused: &mut refused,
                };
                match is_there {
                    true => cell(from, next),
                    false => Err(serde_json::Error::custom("a row has too few cells")),
                }
            });
            read.map_err(|error| {
                refused.unwrap_or_else(|| T::malformed().detail(error.to_string()))
            })
        });
        match taken {
            Ok(full) => full.into_iter().for_each(|batch| self.tell(batch)),
            Err(error) => {
                self.refused = Some(error);
                return Err(serde_json::Error::custom("a row is not taken"));
            }
        }
        self.taken += 1;
        match from.list_goes_on(false)? {
            false => Ok(()),
            true => Err(serde_json::Error::custom("a row has too many cells")),
        }
    }

    /// Ends the page. `read`: what reading it has come to. How many rows it had.
    pub fn end<E: fmt::Display>(mut self, read: Result<(), E>) -> Result<u64, Error> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        read.map_err(|error| T::malformed().detail(error.to_string()))?;
        if let Some(batch) = self.page.rest() {
            self.step.batch(self.id, batch);
        }
        Ok(self.taken)
    }

    fn tell(&mut self, batch: Batch) {
        self.step.batch(self.id, batch);
    }
}

/// A cell that comes next, on its way into its column.
pub struct Cell<'c, T> {
    kind: &'c T,
    into: &'c mut ColumnBuilder,
    room: usize,
    refused: &'c mut Option<Error>,
}

impl<T: Kind> Cell<'_, T> {
    /// Reads it where it stands.
    #[inline]
    pub fn read(self, from: &mut Reader<'_>) -> serde_json::Result<()> {
        let Cell {
            kind,
            into,
            room,
            refused,
        } = self;
        let mut place = Place { column: into, room };
        // What it came to is looked at where it lies: an error is long, and moved piece by piece whether or not there is one.
        let is_taken = from.cell(kind.is_raw(), |cell| match kind.push(cell, &mut place) {
            Ok(()) => true,
            Err(error) => {
                *refused = Some(error);
                false
            }
        })?;
        match is_taken {
            true => Ok(()),
            false => Err(serde_json::Error::custom("a cell is not taken")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Shape, Shapes, Told};
    use crate::{ColumnType, column};
    use std::rc::Rc;

    /// Writes down how cells are written. `raw`: whether they come as they stand.
    struct Notes {
        raw: bool,
    }

    impl Kind for Notes {
        fn is_raw(&self) -> bool {
            self.raw
        }

        fn push(&self, cell: Written<'_>, into: &mut Place<'_>) -> Result<(), Error> {
            let note = match cell {
                Written::Null => "null".to_owned(),
                Written::Truth(value) => format!("truth {value}"),
                Written::Whole(value) => format!("whole {value}"),
                Written::Text("no") => return Err(Error::source_failed("no", "not this one")),
                Written::Number(digits) => format!("number {digits}"),
                Written::Text(text) => format!("text {text}"),
                Written::Raw(raw) => format!("raw {}", raw.get()),
            };
            assert!(into.room > 1_000);
            into.column.var(note.as_bytes())
        }

        fn malformed() -> Error {
            Error::source_failed("malformed", "no rows")
        }
    }

    fn shape(raws: &[bool]) -> Rc<Shape<Notes>> {
        let columns = raws.iter().map(|_| column("c", ColumnType::Text, "text"));
        let kinds = raws.iter().map(|raw| Notes { raw: *raw });
        Shapes::default().add(b"", columns.collect(), kinds.collect())
    }

    /// What becomes of a list of rows that have such columns: their number, and the notes of the first column.
    fn read(raws: &[bool], list: &str) -> Result<(u64, String), Error> {
        let (shape, mut told, mut step) = (shape(raws), Told::default(), Step::default());
        let limits = Limits {
            rows_max: 3,
            bytes_max: 1 << 20,
            timeout_ms: 1,
        };
        let page = told.page(&shape, &limits);
        let mut table = Table::new(page, &limits, 7, &mut step);
        let read = table.rows(&mut Reader::of(list));
        let rows = table.end(read)?;
        let (_, events) = step.into_parts();
        let mut notes = String::new();
        for event in events {
            let crate::Event::Batch(mut batch) = event else {
                panic!("{event:?}");
            };
            assert_eq!(batch.id, 7);
            let crate::ColumnData::VarLen(texts) = batch.batch.chunks.remove(0).data else {
                panic!();
            };
            notes.push_str(&String::from_utf8(texts.bytes).unwrap());
        }
        Ok((rows, notes))
    }

    /// A cell comes as what it is, or as it stands where its column's type wants that.
    #[test]
    fn cells_come_as_they_are_wanted() {
        for (cell, wanted, raw) in [
            ("null", "null", "null"),
            (" null ", "null", "null"),
            ("true", "truth true", "raw true"),
            ("-5", "whole -5", "raw -5"),
            (
                "9223372036854775807",
                "whole 9223372036854775807",
                "raw 9223372036854775807",
            ),
            ("\"a\"", "text a", "raw \"a\""),
            ("0.50", "number 0.50", "raw 0.50"),
            (
                "18446744073709551615",
                "number 18446744073709551615",
                "raw 18446744073709551615",
            ),
            (r#""a\n\u00e9""#, "text a\né", r#"raw "a\n\u00e9""#),
        ] {
            let list = format!("[[{cell}]]");
            assert_eq!(read(&[false], &list).unwrap(), (1, wanted.to_owned()));
            assert_eq!(read(&[true], &list).unwrap(), (1, raw.to_owned()));
        }
        for (list, rows) in [("null", 0), ("[]", 0), ("[[1],[2],[3]]", 3)] {
            assert_eq!(read(&[false], list).unwrap().0, rows, "{list}");
        }
        // Digits that a float has not.
        let (_, notes) = read(&[true], "[[0.30000000000000004440]]").unwrap();
        assert_eq!(notes, "raw 0.30000000000000004440");
    }

    /// What is no row is told without its content.
    #[test]
    fn what_is_no_row_is_malformed() {
        for (list, detail) in [
            ("\"secret\"", "a text in place of rows"),
            ("[\"secret\"]", "a text in place of a row"),
            ("[[1]]", "too few cells"),
            ("[[]]", "too few cells"),
            ("[[1,2,\"secret\"]]", "too many cells"),
            ("[[1,{\"secret\":1}]]", "an object in place of a cell"),
            ("[[1,[\"secret\"]]]", "a list in place of a cell"),
            ("[[1,\"\\ud800\"]]", "hex escape"),
            ("[[1,]]", "in place of a cell"),
            ("[[1,2],]", "in place of a row"),
            ("[7]", "a number in place of a row"),
            ("{}", "an object in place of rows"),
        ] {
            let error = read(&[false, false], list).unwrap_err();
            let told = error.detail.unwrap_or_default();
            assert_eq!(error.code, "malformed", "{list}");
            assert!(told.contains(detail) && !told.contains("secret"), "{told}");
        }
    }

    /// What a column's type refuses, or a limit, is told as it is, and nothing behind it is read.
    #[test]
    fn a_row_is_refused() {
        let code = |list: &str| read(&[false], list).unwrap_err().code;
        assert_eq!(code("[[1],[\"no\"],7]"), "no");
        assert_eq!(code("[[1],[2],[3],[4],7]"), "rows_limit");
        assert_eq!(code("[[1],[2],7]"), "malformed");
    }

    /// A batch is told as soon as it is full.
    #[test]
    fn full_batches_are_told() {
        let (shape, mut told, mut step) = (shape(&[false]), Told::default(), Step::default());
        let limits = Limits {
            rows_max: u32::MAX,
            bytes_max: u64::MAX,
            timeout_ms: 1,
        };
        let list = format!("[{}[0]]", "[0],".repeat(20_000));
        let page = told.page(&shape, &limits);
        let mut table = Table::new(page, &limits, 7, &mut step);
        let read = table.rows(&mut Reader::of(&list));
        assert_eq!(table.end(read).unwrap(), 20_001);
        assert_eq!(step.into_parts().1.len(), 3);
    }
}
