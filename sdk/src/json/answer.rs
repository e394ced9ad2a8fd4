//! The rows of a result, answer by answer. They are told while an answer is read, where it is known by then what they are; where it is not, they
//! are kept as they stand until it is, which costs no copy.
//!
//! A session has a [`Reading`] for each result, and lends it as a [`Telling`] to who reads an answer, if its rows are wanted. That is an
//! [`Answer`], which takes the member that has rows as it comes by. What rows are, and when that is known, the engine says.

use super::{Kind, Reader, Table, once, twice};
use crate::results::{Page, Shape, Shapes, Told};
use crate::{Error, Limits, Step};
use serde::de::Error as _;
use serde_json::value::RawValue;
use std::fmt;
use std::rc::Rc;

/// A result as far as it was read.
pub struct Reading<T> {
    shape: Option<Rc<Shape<T>>>,
    told: Told,
}

impl<T> Default for Reading<T> {
    fn default() -> Reading<T> {
        Reading {
            shape: None,
            told: Told::default(),
        }
    }
}

impl<T> Reading<T> {
    /// What its rows are; `None`: no answer has said that yet.
    pub fn shape(&self) -> Option<&Shape<T>> {
        self.shape.as_deref()
    }

    /// Begins the next page, of rows that are not JSON's; `None`: it is not known what they are.
    pub fn page<'a>(&'a mut self, limits: &'a Limits) -> Option<Page<'a, T>> {
        let shape = self.shape.as_deref()?;
        Some(self.told.page(shape, limits))
    }
}

/// Where the rows of an answer go: into batches that the step tells of `id`.
pub struct Telling<'s, T> {
    pub id: u32,
    pub limits: &'s Limits,
    pub reading: &'s mut Reading<T>,
    pub shapes: &'s mut Shapes<T>,
    pub step: &'s mut Step,
}

impl<T: Kind> Telling<'_, T> {
    /// Says what rows are, and tells the columns. `shape` is asked for it only where no answer before has said it.
    pub fn describe(
        &mut self,
        shape: impl FnOnce(&mut Shapes<T>) -> Result<Rc<Shape<T>>, Error>,
    ) -> Result<(), Error> {
        if self.reading.shape.is_none() {
            let shape = shape(self.shapes)?;
            let columns = shape.columns.describe();
            self.step.columns(self.id, shape.number, columns);
            self.reading.shape = Some(shape);
        }
        Ok(())
    }

    /// Tells the rows that `read` reads from there; `None`: there are none. How many there were.
    pub fn rows<'a>(
        &mut self,
        from: Option<&mut Reader<'a>>,
        read: impl FnOnce(&mut Reader<'a>, &mut Table<'_, T>) -> serde_json::Result<()>,
    ) -> Result<u64, Error> {
        let page = self.reading.page(self.limits).ok_or_else(T::malformed)?;
        let mut table = Table::new(page, self.limits, self.id, self.step);
        let read = match from {
            Some(from) => read(from, &mut table),
            None => Ok(()),
        };
        table.end(read)
    }
}

/// The rows of an answer that is being read.
pub struct Answer<'a, 's, T> {
    member: &'static str,
    telling: Option<Telling<'s, T>>,
    kept: Option<&'a RawValue>,
    told: Option<u64>,
    refused: Option<Error>,
}

impl<'a, 's, T: Kind> Answer<'a, 's, T> {
    /// `member`: the name of what has rows. `telling`: where they go, if they are wanted.
    pub fn new(member: &'static str, telling: Option<Telling<'s, T>>) -> Answer<'a, 's, T> {
        Answer {
            member,
            telling,
            kept: None,
            told: None,
            refused: None,
        }
    }

    /// Whether rows are wanted.
    pub fn is_wanted(&self) -> bool {
        self.telling.is_some()
    }

    /// Whether rows are wanted, and an answer before this one has said what they are.
    pub fn is_described(&self) -> bool {
        let telling = self.telling.as_ref();
        telling.is_some_and(|telling| telling.reading.shape.is_some())
    }

    /// Takes what describes the rows, as it stands here: once, and `null` is none. What has described rows of the session before is found again by its
    /// bytes, and is not read.
    pub fn description(
        &self,
        place: &mut Option<&'a str>,
        from: &mut Reader<'a>,
    ) -> serde_json::Result<()> {
        if place.is_some() {
            return Err(twice());
        }
        if from.null()? {
            return Ok(());
        }
        let mut known = self.telling.iter().flat_map(|to| to.shapes.descriptions());
        *place = Some(match known.find_map(|known| from.raw_like(known)) {
            Some(known) => known,
            None => from.raw()?,
        });
        Ok(())
    }

    /// Takes the rows, which stand here, and nowhere else. `tell` tells them if they are wanted and `is_known` what they are; else they are kept.
    /// Why they are refused is told by [`Answer::end`].
    pub fn take(
        &mut self,
        is_known: bool,
        from: &mut Reader<'a>,
        tell: impl FnOnce(&mut Telling<'s, T>, Option<&mut Reader<'a>>) -> Result<u64, Error>,
    ) -> serde_json::Result<()> {
        if self.told.is_some() {
            return Err(serde_json::Error::duplicate_field(self.member));
        }
        match &mut self.telling {
            Some(telling) if is_known && self.kept.is_none() => match tell(telling, Some(from)) {
                Ok(rows) => {
                    self.told = Some(rows);
                    Ok(())
                }
                Err(error) => {
                    self.refused = Some(error);
                    Err(serde_json::Error::custom("rows are not taken"))
                }
            },
            _ => once(&mut self.kept, from),
        }
    }

    /// The answer is read. `read`: what that has come to.
    pub fn end<E: fmt::Display>(&mut self, read: Result<(), E>) -> Result<(), Error> {
        match self.refused.take() {
            Some(error) => Err(error),
            None => read.map_err(|error| T::malformed().detail(error.to_string())),
        }
    }

    /// Tells, as [`Answer::take`] does, the rows that were kept, or that there are none; nothing where they were told, or are not wanted.
    pub fn tell_kept(
        &mut self,
        tell: impl FnOnce(&mut Telling<'s, T>, Option<&mut Reader<'a>>) -> Result<u64, Error>,
    ) -> Result<(), Error> {
        if let (Some(telling), None) = (&mut self.telling, self.told) {
            let mut kept = self.kept.map(|rows| Reader::of(rows.get()));
            self.told = Some(tell(telling, kept.as_mut())?);
        }
        Ok(())
    }

    /// The rows as they stand, where they were not told while the answer was read.
    pub fn kept(&self) -> Option<&'a RawValue> {
        self.kept
    }

    /// How many rows were told; `None`: they were not.
    pub fn told(&self) -> Option<u64> {
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Place, Written, members};
    use crate::{ColumnType, Event, column};

    /// Whole numbers.
    struct Number;

    impl Kind for Number {
        fn is_raw(&self) -> bool {
            false
        }

        fn push(&self, cell: Written<'_>, into: &mut Place<'_>) -> Result<(), Error> {
            match cell {
                Written::Whole(value) => into.column.i64(value),
                _ => Err(Error::source_failed("no_number", "not this one")),
            }
        }

        fn malformed() -> Error {
            Error::source_failed("malformed", "no rows")
        }
    }

    /// A session that reads answers of the form `{"of": 1, "rows": [[1], [2]]}`, where `of` says how many columns there are.
    struct Session {
        limits: Limits,
        reading: Reading<Number>,
        shapes: Shapes<Number>,
        step: Step,
    }

    impl Session {
        fn of(rows_max: u32) -> Session {
            Session {
                limits: Limits {
                    rows_max,
                    bytes_max: 1 << 20,
                    timeout_ms: 1,
                },
                reading: Reading::default(),
                shapes: Shapes::default(),
                step: Step::default(),
            }
        }

        /// How many rows of an answer were told, and what of it was kept.
        fn telling(&mut self, is_wanted: bool) -> Option<Telling<'_, Number>> {
            is_wanted.then_some(Telling {
                id: 7,
                limits: &self.limits,
                reading: &mut self.reading,
                shapes: &mut self.shapes,
                step: &mut self.step,
            })
        }

        fn read(
            &mut self,
            is_wanted: bool,
            document: &str,
        ) -> Result<(Option<u64>, Option<String>), Error> {
            let mut answer = Answer::new("rows", self.telling(is_wanted));
            let mut of = None::<usize>;
            let read = members(document.as_bytes(), |name, from| match name {
                "of" => once(&mut of, from),
                "rows" => {
                    let is_known = of.is_some() || answer.is_described();
                    answer.take(is_known, from, |telling, from| tell(telling, of, from))
                }
                _ => from.skip(),
            });
            answer.end(read)?;
            answer.tell_kept(|telling, from| tell(telling, of, from))?;
            let kept = answer.kept().map(|rows| rows.get().to_owned());
            Ok((answer.told(), kept))
        }

        /// What the step tells: `c` for columns, `s` for those that the host knows, or how many rows a batch has.
        fn told(&mut self) -> String {
            let (_, events) = std::mem::take(&mut self.step).into_parts();
            let told = events.into_iter().map(|event| match event {
                Event::Columns(shape) if shape.id == 7 => match shape.columns {
                    Some(_) => "c".to_owned(),
                    None => "s".to_owned(),
                },
                Event::Batch(rows) if rows.id == 7 => rows.batch.rows.to_string(),
                other => panic!("{other:?}"),
            });
            told.collect()
        }
    }

    fn tell(
        telling: &mut Telling<'_, Number>,
        of: Option<usize>,
        from: Option<&mut Reader<'_>>,
    ) -> Result<u64, Error> {
        telling.describe(|shapes| {
            let of = of.ok_or_else(Number::malformed)?;
            shapes.of(of.to_string().as_bytes(), || {
                let columns = (0..of).map(|_| column("n", ColumnType::Int64, "n"));
                let kinds = (0..of).map(|_| Number);
                Ok((columns.collect(), kinds.collect()))
            })
        })?;
        telling.rows(from, |from, table| table.rows(from))
    }

    /// Rows are told whether they stand behind what they are, before it, or in an answer that says nothing of it any more; columns once.
    #[test]
    fn rows_are_told_wherever_they_stand() {
        let mut session = Session::of(9);
        let behind = session.read(true, r#"{"of":1,"rows":[[1],[2]]}"#).unwrap();
        assert_eq!(behind, (Some(2), None));
        assert_eq!(session.reading.shape().unwrap().types.len(), 1);
        let later = session.read(true, r#"{"rows":[[3]]}"#).unwrap();
        assert_eq!(later, (Some(1), None));
        assert_eq!(session.told(), "c21");

        // The next result has the same columns.
        session.reading = Reading::default();
        let before = session.read(true, r#"{"rows":[[1],[2]],"of":1}"#).unwrap();
        assert_eq!(before, (Some(2), Some("[[1],[2]]".to_owned())));
        assert_eq!(session.told(), "s2");
    }

    /// What describes rows is taken as it stands, whether it is known or not: once, and `null` is none.
    #[test]
    fn descriptions_are_taken_as_they_stand() {
        let take = |is_wanted: bool, document: &str| {
            let mut session = Session::of(9);
            for known in [r#"{"a":1}"#, r#"{"a":2}"#] {
                session.shapes.add(known.as_bytes(), vec![], vec![]);
            }
            let answer = Answer::new("rows", session.telling(is_wanted));
            let mut taken = None;
            let read = members(document.as_bytes(), |name, from| match name {
                "d" => answer.description(&mut taken, from),
                _ => from.skip(),
            });
            read.map(|()| taken.map(str::to_owned)).ok()
        };
        for is_wanted in [true, false] {
            for (document, wanted) in [
                (r#"{"d": {"a":1} ,"b":7}"#, Some(r#"{"a":1}"#)),
                (r#"{"d":{"a":2}}"#, Some(r#"{"a":2}"#)),
                (r#"{"d":{"a":10}}"#, Some(r#"{"a":10}"#)),
                (r#"{"d":{"a": 1}}"#, Some(r#"{"a": 1}"#)),
                (r#"{"d":null}"#, None),
                (r#"{"d":null,"d":{"a":1}}"#, Some(r#"{"a":1}"#)),
            ] {
                let wanted = wanted.map(str::to_owned);
                assert_eq!(take(is_wanted, document), Some(wanted), "{document}");
            }
            for broken in [
                r#"{"d":{"a":1},"d":{"a":1}}"#,
                r#"{"d":{"a":1]}"#,
                r#"{"d":{"a":1}"#,
            ] {
                assert_eq!(take(is_wanted, broken), None, "{broken}");
            }
        }
    }

    /// No rows are a result, too, and `null` is none.
    #[test]
    fn columns_are_told_without_rows() {
        for document in [
            r#"{"of":1}"#,
            r#"{"of":1,"rows":null}"#,
            r#"{"rows":null,"of":1}"#,
            r#"{"of":1,"rows":[]}"#,
            r#"{"rows":[],"of":1}"#,
        ] {
            let mut session = Session::of(0);
            let (told, _) = session.read(true, document).unwrap();
            assert_eq!((told, session.told().as_str()), (Some(0), "c"));
        }
    }

    /// Of rows that nobody wants nothing is told, and nothing is said of what they are.
    #[test]
    fn what_is_not_wanted_is_kept() {
        let mut session = Session::of(1);
        let read = session.read(false, r#"{"of":1,"rows":[["x"]]}"#).unwrap();
        assert_eq!(read, (None, Some(r#"[["x"]]"#.to_owned())));
        assert!(session.reading.shape().is_none());
        assert!(session.reading.page(&session.limits).is_none());
        assert_eq!(session.told(), "");
    }

    /// Rows stand once, wherever, wanted or not; `null` beside them is none, as long as nothing was told.
    #[test]
    fn rows_stand_once() {
        for (is_wanted, document) in [
            (true, r#"{"of":1,"rows":[[1]],"rows":[[2]]}"#),
            (true, r#"{"of":1,"rows":[[1]],"rows":null}"#),
            (true, r#"{"rows":[[1]],"of":1,"rows":[[2]]}"#),
            (true, r#"{"rows":[[1]],"rows":[[2]],"of":1}"#),
            (false, r#"{"of":1,"rows":[[1]],"rows":[[2]]}"#),
        ] {
            let error = Session::of(9).read(is_wanted, document).unwrap_err();
            assert_eq!(error.code, "malformed", "{document}");
            let detail = error.detail.unwrap_or_default();
            let says_so = detail.contains("duplicate field `rows`") || detail.contains("twice");
            assert!(says_so, "{detail}");
        }
        let mut session = Session::of(9);
        let read = session.read(true, r#"{"rows":null,"of":1,"rows":[[2]]}"#);
        assert_eq!(read.unwrap().0, Some(1));
    }

    /// Why rows are refused is told as it is, wherever they stand; what is broken elsewhere is the answer's.
    #[test]
    fn a_refusal_is_told_as_it_is() {
        let code = |document: &str| Session::of(2).read(true, document).unwrap_err().code;
        assert_eq!(code(r#"{"of":1,"rows":[[1],["x"]]"#), "no_number");
        assert_eq!(code(r#"{"rows":[[1],["x"]],"of":1}"#), "no_number");
        assert_eq!(code(r#"{"of":1,"rows":[[1],[2],[3],"#), "rows_limit");
        assert_eq!(code(r#"{"of":1,"rows":[[1,2]]}"#), "malformed");
        assert_eq!(code(r#"{"of":1,"rows":[[1]]"#), "malformed");
        assert_eq!(code(r#"{"rows":[[1]]}"#), "malformed");
        assert_eq!(code("{}"), "malformed");
    }

    /// The limits are of all answers together.
    #[test]
    fn limits_are_of_the_result() {
        let mut session = Session::of(3);
        session.read(true, r#"{"of":1,"rows":[[1],[2]]}"#).unwrap();
        session.read(true, r#"{"rows":[[3]]}"#).unwrap();
        let error = session.read(true, r#"{"rows":[[4]]}"#).unwrap_err();
        assert_eq!(error.code, "rows_limit");
    }
}
