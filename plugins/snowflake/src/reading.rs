//! The rows of a result, part by part, as batches of columns. They are told while an answer is read, since Snowflake sends what they are
//! before them; where it does not, they are kept as they stand until it has. Parts that come compressed are told as they are unpacked.

use serde::de::Error as _;
use souk_sdk::json::{self, Answer, Reader, Telling};
use souk_sdk::{Error, Limits, Step};

use crate::answers::{self, Body, Head, MetaData};
use crate::errors::malformed;
use crate::rows::Row;
use crate::types::{self, Type};
use crate::values::push;

/// A result of more parts is not believed.
const PARTITIONS_MAX: usize = 10_000;

/// A result as far as it was read.
#[derive(Default)]
pub struct Reading {
    pub rows: json::Reading<Type>,
    pub parts: Parts,
}

/// Parts of a result.
#[derive(Default)]
pub struct Parts {
    /// How many there are; none, as long as that is not known.
    count: usize,
    /// The one that is read next.
    next: usize,
    /// Rows that there are, and those that came.
    rows: u64,
    came: u64,
}

/// Rows of an answer that are wanted.
pub struct Wanted<'s> {
    pub telling: Telling<'s, Type>,
    pub parts: &'s mut Parts,
}

impl Reading {
    /// Tells rows of a part that came compressed, as they are handed on; whether these were the last of it is handed back.
    pub fn rows(
        &mut self,
        id: u32,
        limits: &Limits,
        step: &mut Step,
        hand_on: impl FnOnce(&mut dyn FnMut(&Row) -> Result<(), Error>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let columns = self.rows.shape().ok_or_else(malformed)?.types.len();
        let mut batches = self.rows.page(limits).ok_or_else(malformed)?;
        let mut came = 0;
        let is_over = hand_on(&mut |row| {
            if row.len() != columns {
                return Err(malformed());
            }
            came += 1;
            let full = batches.row(|place, kind, into| push(*kind, row.cell(place), into))?;
            full.into_iter().for_each(|batch| step.batch(id, batch));
            Ok(())
        })?;
        let rest = batches.rest();
        rest.into_iter().for_each(|batch| step.batch(id, batch));
        self.parts.came += came;
        self.parts.next += usize::from(is_over);
        Ok(is_over)
    }
}

impl Parts {
    /// The part to ask for next; `None`: all have come, and all of their rows.
    pub fn next(&self) -> Result<Option<usize>, Error> {
        match self.next < self.count {
            true => Ok(Some(self.next)),
            false if self.came == self.rows => Ok(None),
            false => Err(Error::source_failed(
                "rows_missing",
                "the result has more or fewer rows than Snowflake said it has",
            )),
        }
    }

    /// A part of so many rows was told. With the first one comes how many there are.
    fn told(&mut self, rows: u64, described: Option<&MetaData<'_>>) {
        if let (0, Some(described)) = (self.count, described) {
            self.count = described.partitions;
            self.rows = described.num_rows;
        }
        self.came += rows;
        self.next += 1;
    }
}

/// Reads an answer. Its rows are told if they are wanted and described, by it or by one before, with the first ones the columns.
pub fn answer<'a>(body: &'a Body<'_>, wanted: Option<Wanted<'_>>) -> Result<Head<'a>, Error> {
    let (telling, parts) = wanted.map(|wanted| (wanted.telling, wanted.parts)).unzip();
    let mut page = Page {
        head: Head::default(),
        has_data: false,
        rows: Answer::new("data", telling),
    };
    let read = page.read(body.text()?);
    page.end(read)?;
    if let (Some(parts), Some(rows)) = (parts, page.rows.told()) {
        parts.told(rows, page.head.result_set_meta_data.as_ref());
    }
    Ok(page.head)
}

/// An answer as far as it was read.
struct Page<'a, 's> {
    head: Head<'a>,
    has_data: bool,
    rows: Answer<'a, 's, Type>,
}

impl<'a> Page<'a, '_> {
    /// An object that has its rows as `data`, or only the rows.
    fn read(&mut self, document: &'a str) -> serde_json::Result<()> {
        let mut from = Reader::of(document);
        match from.is_list() {
            true => self.data(&mut from)?,
            false => from.object(|name, value| match name {
                "data" => self.data(value),
                _ => {
                    let rows = &self.rows;
                    let head = &mut self.head;
                    head.member(name, value, |place, from| rows.description(place, from))
                }
            })?,
        }
        from.end()
    }

    fn data(&mut self, from: &mut Reader<'a>) -> serde_json::Result<()> {
        // Not even `null` stands beside them.
        if std::mem::replace(&mut self.has_data, true) {
            return Err(serde_json::Error::duplicate_field("data"));
        }
        let is_known = self.is_known();
        let described = self.head.result_set_meta_data.as_ref();
        self.rows.take(is_known, from, |telling, from| {
            tell(telling, described, from)
        })
    }

    /// Whether it is known what rows are.
    fn is_known(&self) -> bool {
        self.head.result_set_meta_data.is_some() || self.rows.is_described()
    }

    /// What reading it has come to. Rows that were kept are told.
    fn end(&mut self, read: serde_json::Result<()>) -> Result<(), Error> {
        self.rows.end(read)?;
        if !self.rows.is_wanted() || !self.is_known() {
            return Ok(());
        }
        if !self.has_data {
            return Err(malformed().detail("an answer without rows"));
        }
        let described = self.head.result_set_meta_data.as_ref();
        self.rows
            .tell_kept(|telling, from| tell(telling, described, from))
    }
}

/// Tells the columns, if they are not told, and the rows that stand there. How many there were.
fn tell(
    telling: &mut Telling<'_, Type>,
    described: Option<&MetaData<'_>>,
    from: Option<&mut Reader<'_>>,
) -> Result<u64, Error> {
    let rows_max = telling.limits.rows_max;
    telling.describe(|shapes| {
        let described = described.ok_or_else(malformed)?;
        if described.num_rows > u64::from(rows_max) {
            return Err(Error::too_many_rows(rows_max));
        }
        if described.partitions > PARTITIONS_MAX {
            return Err(malformed());
        }
        let row_type = described.row_type;
        shapes.of(row_type.as_bytes(), || {
            Ok(types::columns(&answers::columns(row_type)?))
        })
    })?;
    telling.rows(from, |from, table| table.rows(from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::results::Shapes;
    use souk_sdk::testing::spoilt;
    use souk_sdk::{Column, ColumnType, Event, HttpResponse};

    /// Results of one session, one after the other.
    #[derive(Default)]
    struct Session {
        shapes: Shapes<Type>,
    }

    impl Session {
        /// What the answer to a statement tells: `c` for columns, `s` for those that the host knows, or how many rows a batch has.
        fn reads(&mut self, document: &str) -> Result<String, Error> {
            let response = HttpResponse {
                id: 1,
                status: 200,
                headers: Vec::new(),
                body: document.as_bytes().to_vec(),
            };
            let limits = Limits {
                rows_max: 100,
                bytes_max: 1 << 20,
                timeout_ms: 1,
            };
            let (mut reading, mut step) = (Reading::default(), Step::default());
            let wanted = Wanted {
                telling: Telling {
                    id: 7,
                    limits: &limits,
                    reading: &mut reading.rows,
                    shapes: &mut self.shapes,
                    step: &mut step,
                },
                parts: &mut reading.parts,
            };
            answer(&Body::of(&response)?, Some(wanted))?;
            reading.parts.next()?;
            let (_, events) = step.into_parts();
            let told = events.into_iter().map(|event| match event {
                Event::Columns(shape) if shape.columns.is_some() => "c".to_owned(),
                Event::Columns(_) => "s".to_owned(),
                Event::Batch(rows) => rows.batch.rows.to_string(),
                other => panic!("{other:?}"),
            });
            Ok(told.collect())
        }
    }

    const COLUMN: &str = r#"[{"name":"N","type":"fixed","precision":18,"scale":0}]"#;

    /// An answer of two rows, of which the columns are described so.
    fn answers(row_type: &str) -> String {
        format!(
            r#"{{"resultSetMetaData":{{"numRows":2,"rowType":{row_type},"partitionInfo":[{{}}]}},"data":[["1"],[null]],"statementHandle":"a"}}"#
        )
    }

    /// A description is known by its bytes, and by all of them: what it says is not looked at again.
    #[test]
    fn what_is_known_is_not_read_again() {
        let mut session = Session::default();
        assert_eq!(session.reads(&answers(COLUMN)).unwrap(), "c2");
        assert_eq!(session.reads(&answers(COLUMN)).unwrap(), "s2");
        // With a blank more it is another one, which is read.
        let other = COLUMN.replace(',', ", ");
        assert_eq!(session.reads(&answers(&other)).unwrap(), "c2");
        assert_eq!(session.reads(&answers(&other)).unwrap(), "s2");
        // No columns: it is taken only where it is known.
        let nobodys = r#"[{"of":"nobody"}]"#;
        assert!(session.reads(&answers(nobodys)).is_err());
        let column = Column {
            name: "N".to_owned(),
            kind: ColumnType::Int64,
            nullable: true,
            native: "NUMBER(18,0)".to_owned(),
        };
        let columns = vec![column];
        session
            .shapes
            .add(nobodys.as_bytes(), columns, vec![Type::Int64]);
        assert_eq!(session.reads(&answers(nobodys)).unwrap(), "c2");
    }

    /// Whether a description is known decides nothing of what an answer is, whatever is wrong with it.
    #[test]
    fn a_wrong_answer_is_wrong_for_who_knows_its_columns() {
        let document = answers(COLUMN);
        let mut taken = 0;
        let mut look = |spoilt: &str| {
            let mut knows = Session::default();
            knows.reads(&document).unwrap();
            let (first, again) = (Session::default().reads(spoilt), knows.reads(spoilt));
            match (first, again) {
                (Ok(first), Ok(again)) => {
                    assert_eq!(first.replace('c', "s"), again.replace('c', "s"), "{spoilt}");
                    taken += 1;
                }
                (Err(first), Err(again)) => assert_eq!(first.code, again.code, "{spoilt}"),
                (first, again) => panic!("{first:?} and {again:?} of {spoilt}"),
            }
        };
        for spoilt in spoilt(&document, "{}[]\",:\\0 é\u{1}") {
            look(&spoilt);
        }
        assert!(taken > 100, "{taken}");
    }

    /// Each is an error of the source's, whether the description in it is known or not.
    #[test]
    fn what_describes_nothing_is_refused() {
        let meta = |members: &str| format!(r#"{{"resultSetMetaData":{members},"data":[["1"]]}}"#);
        let twice = format!(r#"{{"numRows":1,"rowType":{COLUMN},"rowType":{COLUMN}}}"#);
        let once = format!(r#"{{"numRows":1,"rowType":{COLUMN}}}"#);
        assert!(Session::default().reads(&meta(&once)).is_ok());
        for document in [
            meta("{}"),
            meta("[]"),
            meta("7"),
            meta(r#""secret""#),
            meta(r#"{"numRows":1}"#),
            meta(r#"{"numRows":1,"rowType":null}"#),
            meta(r#"{"numRows":1,"rowType":[]}"#),
            meta(r#"{"numRows":1,"rowType":{}}"#),
            meta(r#"{"numRows":1,"rowType":"secret"}"#),
            meta(r#"{"numRows":1,"rowType":["secret"]}"#),
            meta(&format!(r#"{{"rowType":{COLUMN}}}"#)),
            meta(&once.replace(":1,", ":null,")),
            meta(&once.replace(":1,", ":-1,")),
            meta(&once.replace(":1,", ":1.5,")),
            meta(&once.replace(":1,", r#":1,"partitionInfo":null,"#)),
            meta(&once.replace(":1,", r#":1,"partitionInfo":{},"#)),
            meta(&once.replace(":1,", r#":1,"partitionInfo":[],"partitionInfo":[],"#)),
            meta(&twice),
            meta(&once).replace(
                r#","data""#,
                &format!(r#","resultSetMetaData":{once},"data""#),
            ),
            meta(&once).replace("]]}", "]],\"statementHandle\":7}"),
        ] {
            for is_known in [false, true] {
                let mut session = Session::default();
                if is_known {
                    session.reads(&answers(COLUMN)).unwrap();
                }
                let error = session.reads(&document).unwrap_err();
                assert_eq!(error.code, "malformed_answer", "{document}");
            }
        }
    }
}
