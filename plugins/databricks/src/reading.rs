//! The rows of a result, chunk by chunk, as batches of columns. They are told while an answer is read, since Databricks sends what they are
//! before them; where it does not, they are kept as they stand until it has.

use std::borrow::Cow;
use std::rc::Rc;

use serde::de::Error as _;
use souk_sdk::json::{self, Answer, Reader, Telling, once_part, once_text};
use souk_sdk::results::{Shape, Shapes};
use souk_sdk::{Column, Error, HttpResponse};

use crate::answers::{Chunk, Manifest, State, Statement, Status, malformed};
use crate::described::Description;
use crate::errors::{columns_changed, truncated};
use crate::types::{self, DESCRIBED_BYTES_MAX, Sent, Type, Way, too_long};

/// Rows of a statement's answers that are wanted.
pub struct Wanted<'s> {
    pub telling: Telling<'s, Sent>,
    /// What was asked for in other words than the statement's own.
    pub exact: Option<&'s Description>,
}

/// Reads how it is with a statement. The first rows of one that has ended well are told if they are wanted, with the columns.
pub fn statement<'a>(
    response: &'a HttpResponse,
    wanted: Option<Wanted<'_>>,
) -> Result<Statement<'a>, Error> {
    let mut page = Page::new(wanted);
    let read = json::members(&response.body, |name, from| page.of_statement(name, from));
    page.end(read)?;
    let (Some(statement_id), Some(status)) = (page.statement_id, page.status) else {
        return Err(malformed().detail("an answer without a statement"));
    };
    Ok(Statement {
        statement_id,
        status,
        manifest: page.manifest,
        is_told: page.rows.told().is_some(),
        result: page.chunk,
    })
}

/// Reads more rows, which are told if they are wanted.
pub fn chunk<'a>(
    response: &'a HttpResponse,
    wanted: Option<Wanted<'_>>,
) -> Result<Chunk<'a>, Error> {
    let mut page = Page::new(wanted);
    let read = json::members(&response.body, |name, from| page.of_chunk(name, from));
    page.end(read)?;
    Ok(page.chunk.unwrap_or_default())
}

/// An answer as far as it was read.
struct Page<'a, 's> {
    statement_id: Option<Cow<'a, str>>,
    status: Option<Status>,
    manifest: Option<Manifest<'a>>,
    chunk: Option<Chunk<'a>>,
    rows: Answer<'a, 's, Sent>,
    exact: Option<&'s Description>,
}

impl<'a, 's> Page<'a, 's> {
    fn new(wanted: Option<Wanted<'s>>) -> Page<'a, 's> {
        Page {
            statement_id: None,
            status: None,
            manifest: None,
            chunk: None,
            exact: wanted.as_ref().and_then(|wanted| wanted.exact),
            rows: Answer::new("data_array", wanted.map(|wanted| wanted.telling)),
        }
    }

    fn of_statement(&mut self, name: &str, from: &mut Reader<'a>) -> serde_json::Result<()> {
        match name {
            "statement_id" => once_text(&mut self.statement_id, from),
            "status" => once_part(&mut self.status, from),
            "manifest" if self.manifest.is_some() => {
                Err(serde_json::Error::duplicate_field("manifest"))
            }
            "manifest" => {
                if !from.null()? {
                    let rows = &self.rows;
                    let manifest =
                        Manifest::read(from, |place, from| rows.description(place, from))?;
                    self.manifest = Some(manifest);
                }
                Ok(())
            }
            "result" if self.chunk.is_some() => Err(serde_json::Error::duplicate_field("result")),
            "result" => match from.null()? {
                true => Ok(()),
                false => {
                    self.chunk = Some(Chunk::default());
                    from.object(|name, value| self.of_chunk(name, value))
                }
            },
            _ => from.skip(),
        }
    }

    fn of_chunk(&mut self, name: &str, from: &mut Reader<'a>) -> serde_json::Result<()> {
        let chunk = self.chunk.get_or_insert_default();
        if name != "data_array" {
            return chunk.member(name, from);
        }
        let is_known = !chunk.lies_elsewhere() && self.is_known();
        let (manifest, exact) = (self.manifest.as_ref(), self.exact);
        self.rows.take(is_known, from, |telling, from| {
            tell(telling, manifest, exact, from)
        })
    }

    /// Whether it is known what rows are, and of nothing that they are not those of a statement that has ended well.
    fn is_known(&self) -> bool {
        let is_over = |status: &Status| matches!(status.state(), Ok(State::Succeeded));
        let is_described = self.manifest.is_some() || self.rows.is_described();
        self.status.as_ref().is_none_or(is_over) && is_described
    }

    /// What reading it has come to. Rows that were kept are told, or that there are none.
    fn end(&mut self, read: serde_json::Result<()>) -> Result<(), Error> {
        self.rows.end(read)?;
        if let Some(chunk) = &mut self.chunk {
            chunk.keep(self.rows.kept());
        }
        if !self.rows.is_wanted() || !self.is_known() {
            return Ok(());
        }
        let chunk = self.chunk.get_or_insert_default();
        // Which they have to be.
        chunk.list()?;
        let (manifest, exact) = (self.manifest.as_ref(), self.exact);
        self.rows
            .tell_kept(|telling, from| tell(telling, manifest, exact, from))?;
        chunk.told(self.rows.told().unwrap_or_default());
        Ok(())
    }
}

/// Tells the columns, if they are not told, and the rows that stand there. How many there were.
fn tell(
    telling: &mut Telling<'_, Sent>,
    manifest: Option<&Manifest<'_>>,
    exact: Option<&Description>,
    from: Option<&mut Reader<'_>>,
) -> Result<u64, Error> {
    let limits = telling.limits;
    telling.describe(|shapes| {
        let manifest = manifest.ok_or_else(malformed)?;
        if manifest.is_truncated() {
            return Err(truncated(manifest.total_row_count(), limits));
        }
        let described = manifest.columns.ok_or_else(malformed)?;
        if described.len() > DESCRIBED_BYTES_MAX {
            return Err(too_long());
        }
        match exact {
            None => plain(described, shapes),
            Some(exact) => in_other_words(described, exact, shapes),
        }
    })?;
    telling.rows(from, |from, table| table.rows(from))
}

/// The shape of a result as the API describes it.
fn plain(described: &str, shapes: &mut Shapes<Sent>) -> Result<Rc<Shape<Sent>>, Error> {
    shapes.of(described.as_bytes(), || {
        let columns = types::columns(described)?;
        let (columns, kinds) = split(&columns);
        // It was described as another, or else it had been asked for in other words.
        if kinds.iter().any(|kind| kind.way() != Way::Plain) {
            return Err(columns_changed());
        }
        let kinds = kinds.into_iter().map(|kind| Sent {
            kind,
            way: Way::Plain,
        });
        Ok((columns, kinds.collect()))
    })
}

/// The shape of a result that comes in other words: both what it was described as and what the API describes are of it.
fn in_other_words(
    described: &str,
    exact: &Description,
    shapes: &mut Shapes<Sent>,
) -> Result<Rc<Shape<Sent>>, Error> {
    shapes.of(&exact.key(described), || {
        let sent = types::columns(described)?;
        let (columns, kinds) = split(&exact.columns);
        let fits = |(kind, (_, sent)): (&Type, &(String, String))| {
            let wanted = match kind.way() {
                Way::Plain => *kind,
                Way::Micros => Type::Integer,
                Way::Sql | Way::Base64 | Way::Json => Type::Text,
            };
            Type::of(sent) == wanted
        };
        if sent.len() != kinds.len() || !kinds.iter().zip(&sent).all(fits) {
            return Err(columns_changed());
        }
        let kinds = kinds.into_iter().map(|kind| Sent {
            kind,
            way: kind.way(),
        });
        Ok((columns, kinds.collect()))
    })
}

fn split(columns: &[(String, String)]) -> (Vec<Column>, Vec<Type>) {
    let columns = columns.iter();
    columns
        .map(|(name, kind)| types::column(name, kind))
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::COLUMNS_MAX;
    use souk_sdk::testing::spoilt;
    use souk_sdk::{ColumnType, Event, Limits, Step};

    /// Results of one session, one after the other.
    #[derive(Default)]
    struct Session {
        shapes: Shapes<Sent>,
    }

    impl Session {
        /// What the answer to a statement tells: `c` for columns, `s` for those that the host knows, or how many rows a batch has.
        fn reads(&mut self, document: &str, exact: Option<&Description>) -> Result<String, Error> {
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
            let (mut reading, mut step) = (json::Reading::default(), Step::default());
            let telling = Telling {
                id: 7,
                limits: &limits,
                reading: &mut reading,
                shapes: &mut self.shapes,
                step: &mut step,
            };
            let read = statement(&response, Some(Wanted { telling, exact }))?;
            read.id()?;
            read.status.state()?;
            let (_, events) = step.into_parts();
            let told = events.into_iter().map(|event| match event {
                Event::Columns(shape) if shape.columns.is_some() => "c".to_owned(),
                Event::Columns(_) => "s".to_owned(),
                Event::Batch(rows) => rows.batch.rows.to_string(),
                other => panic!("{other:?}"),
            });
            Ok(told.collect())
        }

        fn plain(&mut self, document: &str) -> Result<String, Error> {
            self.reads(document, None)
        }
    }

    const COLUMN: &str = r#"[{"name":"n","type_text":"BIGINT","position":0}]"#;

    /// An answer of two rows, of which the columns are described so.
    fn answers(columns: &str) -> String {
        format!(
            r#"{{"statement_id":"a","status":{{"state":"SUCCEEDED"}},"manifest":{{"schema":{{"columns":{columns}}},"total_row_count":2,"truncated":false}},"result":{{"chunk_index":0,"data_array":[["1"],[null]]}}}}"#
        )
    }

    /// A description is known by its bytes, and by all of them: what it says is not looked at again.
    #[test]
    fn what_is_known_is_not_read_again() {
        let mut session = Session::default();
        assert_eq!(session.plain(&answers(COLUMN)).unwrap(), "c2");
        assert_eq!(session.plain(&answers(COLUMN)).unwrap(), "s2");
        // With a blank more it is another one, which is read.
        let other = COLUMN.replace(',', ", ");
        assert_eq!(session.plain(&answers(&other)).unwrap(), "c2");
        assert_eq!(session.plain(&answers(&other)).unwrap(), "s2");
        // No columns: it is taken only where it is known.
        let nobodys = r#"[{"of":"nobody"}]"#;
        assert!(session.plain(&answers(nobodys)).is_err());
        let column = Column {
            name: "n".to_owned(),
            kind: ColumnType::Int64,
            nullable: true,
            native: "BIGINT".to_owned(),
        };
        let sent = Sent {
            kind: Type::Integer,
            way: Way::Plain,
        };
        session
            .shapes
            .add(nobodys.as_bytes(), vec![column], vec![sent]);
        assert_eq!(session.plain(&answers(nobodys)).unwrap(), "c2");
    }

    /// What comes in other words is known by those as well: what does not fit is refused however well the rest is known, and neither is taken
    /// for what comes in its own.
    #[test]
    fn other_words_are_known_by_what_is_sent() {
        let mut moments = Description::default();
        moments.columns.push(("n".into(), "timestamp".into()));
        let mut clocks = Description::default();
        clocks.columns.push(("n".into(), "timestamp_ntz".into()));
        let mut session = Session::default();
        let document = answers(COLUMN);
        for told in ["c2", "s2"] {
            assert_eq!(session.reads(&document, Some(&moments)).unwrap(), told);
        }
        let texts = answers(&COLUMN.replace("BIGINT", "STRING"));
        for _ in 0..2 {
            let error = session.reads(&texts, Some(&moments)).unwrap_err();
            assert_eq!(error.code, "columns_changed");
            let error = session.reads(&document, Some(&clocks)).unwrap_err();
            assert_eq!(error.code, "columns_changed");
        }
        for told in ["c2", "s2"] {
            assert_eq!(session.plain(&document).unwrap(), told);
        }
        assert_eq!(session.reads(&document, Some(&moments)).unwrap(), "s2");
    }

    /// Whether a description is known decides nothing of what an answer is, whatever is wrong with it.
    #[test]
    fn a_wrong_answer_is_wrong_for_who_knows_its_columns() {
        let document = answers(COLUMN);
        let mut taken = 0;
        let mut look = |spoilt: &str| {
            let mut knows = Session::default();
            knows.plain(&document).unwrap();
            let (first, again) = (Session::default().plain(spoilt), knows.plain(spoilt));
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
        let with = |manifest: &str| {
            format!(
                r#"{{"statement_id":"a","status":{{"state":"SUCCEEDED"}},"manifest":{manifest},"result":{{"data_array":[["1"]]}}}}"#
            )
        };
        let good = format!(r#"{{"schema":{{"columns":{COLUMN}}}}}"#);
        assert!(Session::default().plain(&with(&good)).is_ok());
        for document in [
            with("{}"),
            with("[]"),
            with("7"),
            with(r#""secret""#),
            with(r#"{"schema":null}"#),
            with(r#"{"schema":{}}"#),
            with(r#"{"schema":[]}"#),
            with(r#"{"schema":"secret"}"#),
            with(r#"{"schema":{"columns":null}}"#),
            with(r#"{"schema":{"columns":[]}}"#),
            with(r#"{"schema":{"columns":{}}}"#),
            with(r#"{"schema":{"columns":[7]}}"#),
            with(&good.replace("}}", r#","columns":[]}}"#)),
            with(&good.replace("}}", r#"},"schema":{}}"#)),
            with(&good.replace("}}", r#"},"truncated":7}"#)),
            with(&good.replace("}}", r#"},"total_row_count":-1}"#)),
            with(&good.replace("}}", r#"},"total_row_count":1.5}"#)),
            with(&good).replace(r#","result""#, &format!(r#","manifest":{good},"result""#)),
            with(&good).replace(r#""a""#, "7"),
            with(&good).replace("]]}}", r#"]]},"statement_id":"b"}"#),
        ] {
            for is_known in [false, true] {
                let mut session = Session::default();
                if is_known {
                    session.plain(&answers(COLUMN)).unwrap();
                }
                let error = session.plain(&document).unwrap_err();
                assert_eq!(error.code, "malformed_answer", "{document}");
            }
        }
    }

    #[test]
    fn a_description_has_a_bound() {
        let long = format!("[{}{}", " ".repeat(DESCRIBED_BYTES_MAX), &COLUMN[1..]);
        let error = Session::default().plain(&answers(&long)).unwrap_err();
        assert_eq!(error.code, "columns_too_long");
        let column = r#"{"name":"n","type_text":"BIGINT"}"#;
        let many = format!("[{column}{}]", format!(",{column}").repeat(COLUMNS_MAX));
        let error = Session::default().plain(&answers(&many)).unwrap_err();
        assert_eq!(error.code, "columns_too_long");
    }
}
