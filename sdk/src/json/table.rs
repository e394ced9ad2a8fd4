//! Rows of a document on their way into columns: each cell is looked at once, while the document is read, and no row is kept.
//!
//! What becomes of a cell its column's type says, which is a [`Kind`] of the engine's own. A list of lists is read by [`Table::rows`]; rows
//! that are written otherwise are read by a seed of the engine's own that hands the cells of each to [`Table::row`].

use crate::results::{Page, value_bytes_max};
use crate::{Batch, ColumnBuilder, Error, Limits, Step};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use std::fmt;

/// A cell as it is written.
pub enum Written<'a> {
    Null,
    Truth(bool),
    Whole(i64),
    Text(&'a str),
    /// Its own text, where the column's type wants that. NULL does not come so.
    Raw(&'a RawValue),
}

/// What a column's type makes of cells.
pub trait Kind {
    /// Whether it wants their own text: what is nested, and numbers with a fraction, since a parsed one may be off by its last digit.
    fn is_raw(&self) -> bool;

    /// Appends a cell. `room`: how many bytes a column may become.
    fn push(&self, cell: Written<'_>, into: &mut ColumnBuilder, room: usize) -> Result<(), Error>;
}

/// The rows of a page that is being read.
pub struct Table<'t, T> {
    page: Page<'t, T>,
    room: usize,
    id: u32,
    step: &'t mut Step,
    malformed: fn() -> Error,
    taken: u64,
    refused: Option<Error>,
}

impl<'t, T: Kind> Table<'t, T> {
    /// The step tells them of `id`. `malformed`: what is said of rows that are none.
    pub fn new(
        page: Page<'t, T>,
        limits: &Limits,
        id: u32,
        step: &'t mut Step,
        malformed: fn() -> Error,
    ) -> Table<'t, T> {
        Table {
            page,
            room: value_bytes_max(limits),
            id,
            step,
            malformed,
            taken: 0,
            refused: None,
        }
    }

    /// What reads a list of lists.
    pub fn rows(&mut self) -> List<'_, 't, T> {
        List(self)
    }

    /// Takes a row. Why one is refused is told by [`Table::end`].
    pub fn row<'de, A: SeqAccess<'de>>(&mut self, mut cells: A) -> Result<(), A::Error> {
        let (room, malformed) = (self.room, self.malformed);
        let taken = self.page.row(|_, kind, into| {
            match cells.next_element_seed(Cell { kind, into, room }) {
                Ok(Some(pushed)) => pushed.map_err(|error| *error),
                Ok(None) => Err(malformed().detail("a row has too few cells")),
                Err(error) => Err(malformed().detail(error.to_string())),
            }
        });
        match taken {
            Ok(full) => full.into_iter().for_each(|batch| self.tell(batch)),
            Err(error) => {
                self.refused = Some(error);
                return Err(A::Error::custom("a row is not taken"));
            }
        }
        self.taken += 1;
        match cells.next_element::<IgnoredAny>()? {
            None => Ok(()),
            Some(_) => Err(A::Error::custom("a row has too many cells")),
        }
    }

    /// Ends the page. `read`: what reading it has come to. How many rows it had.
    pub fn end<E: fmt::Display>(mut self, read: Result<(), E>) -> Result<u64, Error> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        read.map_err(|error| (self.malformed)().detail(error.to_string()))?;
        if let Some(batch) = self.page.rest() {
            self.step.batch(self.id, batch);
        }
        Ok(self.taken)
    }

    fn tell(&mut self, batch: Batch) {
        self.step.batch(self.id, batch);
    }
}

/// Reads a list of lists; `null` is none.
pub struct List<'r, 't, T>(&'r mut Table<'t, T>);

impl<'de, T: Kind> DeserializeSeed<'de> for List<'_, '_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, T: Kind> Visitor<'de> for List<'_, '_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("rows")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    // Else the library's own error would tell all of it.
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::custom("a text where rows are expected"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while rows.next_element_seed(Row(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

struct Row<'r, 't, T>(&'r mut Table<'t, T>);

impl<'de, T: Kind> DeserializeSeed<'de> for Row<'_, '_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, T: Kind> Visitor<'de> for Row<'_, '_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a row")
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::custom("a text where a row is expected"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, cells: A) -> Result<(), A::Error> {
        self.0.row(cells)
    }
}

/// What a column's type has said of a cell. It goes through many hands, for which an error is large.
type Pushed = Result<(), Box<Error>>;

/// Appends a cell.
struct Cell<'c, T> {
    kind: &'c T,
    into: &'c mut ColumnBuilder,
    room: usize,
}

impl<T: Kind> Cell<'_, T> {
    fn push(self, cell: Written<'_>) -> Pushed {
        let pushed = self.kind.push(cell, self.into, self.room);
        pushed.map_err(Box::new)
    }
}

impl<'de, T: Kind> DeserializeSeed<'de> for Cell<'_, T> {
    type Value = Pushed;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        if !self.kind.is_raw() {
            return from.deserialize_any(self);
        }
        let raw = <&RawValue>::deserialize(from)?;
        Ok(self.push(match raw.get() {
            "null" => Written::Null,
            _ => Written::Raw(raw),
        }))
    }
}

impl<'de, T: Kind> Visitor<'de> for Cell<'_, T> {
    type Value = Pushed;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a cell")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.push(Written::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.push(Written::Truth(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.push(Written::Whole(value)))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
        let value = i64::try_from(value).map_err(|_| E::custom("a number that is too large"))?;
        self.visit_i64(value)
    }

    // Its digits are gone.
    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Err(E::custom("a number where none is expected"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(self.push(Written::Text(value)))
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

        fn push(
            &self,
            cell: Written<'_>,
            into: &mut ColumnBuilder,
            room: usize,
        ) -> Result<(), Error> {
            let note = match cell {
                Written::Null => "null".to_owned(),
                Written::Truth(value) => format!("truth {value}"),
                Written::Whole(value) => format!("whole {value}"),
                Written::Text("no") => return Err(Error::source_failed("no", "not this one")),
                Written::Text(text) => format!("text {text}"),
                Written::Raw(raw) => format!("raw {}", raw.get()),
            };
            assert!(room > 1_000);
            into.var(note.as_bytes())
        }
    }

    fn malformed() -> Error {
        Error::source_failed("malformed", "no rows")
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
        let mut table = Table::new(page, &limits, 7, &mut step, malformed);
        let list: &RawValue = serde_json::from_str(list).unwrap();
        let read = crate::json::kept(list, table.rows());
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
            ("\"secret\"", "a text where rows"),
            ("[\"secret\"]", "a text where a row"),
            ("[[1]]", "too few cells"),
            ("[[1,2,\"secret\"]]", "too many cells"),
            ("[[1,0.25]]", "a number where none"),
            ("[[1,18446744073709551615]]", "too large"),
            ("[[1,{\"secret\":1}]]", "map, expected a cell"),
            ("[[1,[\"secret\"]]]", "sequence, expected a cell"),
            ("[[1,\"\\ud800\"]]", "hex escape"),
            ("[7]", "expected a row"),
            ("{}", "expected rows"),
        ] {
            let error = read(&[false, false], list).unwrap_err();
            let told = error.detail.unwrap_or_default();
            assert_eq!(error.code, "malformed", "{list}");
            assert!(told.contains(detail) && !told.contains("secret"), "{told}");
            assert!(!told.contains("0.25"), "{told}");
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
        let list: &RawValue = serde_json::from_str(&list).unwrap();
        let page = told.page(&shape, &limits);
        let mut table = Table::new(page, &limits, 7, &mut step, malformed);
        let read = crate::json::kept(list, table.rows());
        assert_eq!(table.end(read).unwrap(), 20_001);
        assert_eq!(step.into_parts().1.len(), 3);
    }
}
