//! What Snowflake answers, as far as it is read. Later parts of a result come compressed: `unpacking` reads those.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use souk_sdk::json::{self, Reader, once_raw, once_scalar, once_text};
use souk_sdk::{Error, HttpFailure, HttpResponse};

use crate::errors::{malformed, unreadable};
use crate::rows::{Row, Rows};
use crate::unpacking;

/// Of a result; Snowflake itself has no more.
const COLUMNS_MAX: usize = 16_384;
/// The names and types of all of them, and all that is said of them: so much a session may remember.
const DESCRIBED_BYTES_MAX: usize = 4 << 20;
const ROW_TYPE_BYTES_MAX: usize = 8 << 20;

/// Of a statement that goes on, or has ended well.
#[derive(Default)]
pub struct Head<'a> {
    pub statement_handle: Option<Cow<'a, str>>,
    /// Once it has ended.
    pub result_set_meta_data: Option<MetaData<'a>>,
}

pub struct MetaData<'a> {
    pub num_rows: u64,
    /// As it stands: what [`columns`] reads, where that is not known.
    pub row_type: &'a str,
    /// Parts that the result has; at least one.
    pub partitions: usize,
}

impl<'a> Head<'a> {
    /// What stands in an answer beside its rows.
    pub fn of(body: &'a Body<'_>) -> Result<Head<'a>, Error> {
        let mut head = Head::default();
        let read = json::members(&body.0, |name, from| head.member(name, from, once_raw));
        read.map_err(unreadable)?;
        Ok(head)
    }

    /// Takes a member of an answer, but for its rows; `row_type` takes what describes those.
    pub fn member(
        &mut self,
        name: &str,
        from: &mut Reader<'a>,
        row_type: impl FnMut(&mut Option<&'a str>, &mut Reader<'a>) -> serde_json::Result<()>,
    ) -> serde_json::Result<()> {
        match name {
            "statementHandle" => once_text(&mut self.statement_handle, from),
            "resultSetMetaData" if self.result_set_meta_data.is_some() => {
                Err(serde_json::Error::duplicate_field("resultSetMetaData"))
            }
            "resultSetMetaData" => {
                if !from.null()? {
                    self.result_set_meta_data = Some(MetaData::read(from, row_type)?);
                }
                Ok(())
            }
            _ => from.skip(),
        }
    }
}

impl<'a> MetaData<'a> {
    fn read(
        from: &mut Reader<'a>,
        mut row_type: impl FnMut(&mut Option<&'a str>, &mut Reader<'a>) -> serde_json::Result<()>,
    ) -> serde_json::Result<MetaData<'a>> {
        let (mut num_rows, mut described, mut partitions) = (None, None, None);
        from.object(|name, value| match name {
            "numRows" => once_scalar(&mut num_rows, value),
            "rowType" => row_type(&mut described, value),
            "partitionInfo" => count(&mut partitions, value),
            _ => value.skip(),
        })?;
        let missing = serde_json::Error::missing_field;
        Ok(MetaData {
            num_rows: num_rows.ok_or_else(|| missing("numRows"))?,
            row_type: described.ok_or_else(|| missing("rowType"))?,
            partitions: partitions.unwrap_or_default().max(1),
        })
    }
}

/// Takes a list that may stand once, of which only the length matters.
fn count(place: &mut Option<usize>, from: &mut Reader<'_>) -> serde_json::Result<()> {
    if place.is_some() {
        return Err(serde_json::Error::duplicate_field("partitionInfo"));
    }
    let mut length = 0;
    from.list("parts of a result", |part| {
        length += 1;
        part.skip()
    })?;
    *place = Some(length);
    Ok(())
}

/// The columns of a result, of which there is at least one.
pub fn columns(row_type: &str) -> Result<Vec<Described>, Error> {
    if row_type.len() > ROW_TYPE_BYTES_MAX {
        return Err(malformed().detail("a result has too many columns"));
    }
    let RowType(columns) = serde_json::from_str(row_type).map_err(unreadable)?;
    Ok(columns)
}

struct RowType(Vec<Described>);

/// A column as it is described.
#[derive(Debug, Deserialize)]
pub struct Described {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is more precisely: of a `GEOGRAPHY` the type is `object`.
    #[serde(rename = "extTypeName")]
    pub precise: Option<String>,
    pub precision: Option<u32>,
    pub scale: Option<u32>,
    pub length: Option<u64>,
    pub nullable: Option<bool>,
}

impl<'de> Deserialize<'de> for RowType {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RowType, D::Error> {
        from.deserialize_seq(Columns)
    }
}

/// Reads them one after the other, as long as there are not too many.
struct Columns;

impl<'de> Visitor<'de> for Columns {
    type Value = RowType;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("columns")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut columns: A) -> Result<RowType, A::Error> {
        let (mut all, mut bytes) = (Vec::new(), 0);
        while let Some(column) = columns.next_element::<Described>()? {
            bytes += column.name.len() + column.kind.len();
            if all.len() == COLUMNS_MAX || bytes > DESCRIBED_BYTES_MAX {
                return Err(A::Error::custom("a result has too many columns"));
            }
            all.push(column);
        }
        match all.is_empty() {
            true => Err(A::Error::custom("a result has no columns")),
            false => Ok(RowType(all)),
        }
    }
}

/// The body of an answer. One that comes compressed is no longer unpacked than one may be that does not.
pub struct Body<'a>(Cow<'a, [u8]>);

impl<'a> Body<'a> {
    pub fn of(response: &'a HttpResponse) -> Result<Body<'a>, Error> {
        match unpacking::is_packed(&response.body) {
            true => unpacking::whole(&response.body).map(|text| Body(Cow::Owned(text))),
            false => Ok(Body(Cow::Borrowed(&response.body))),
        }
    }

    pub fn text(&self) -> Result<&str, Error> {
        json::utf8(&self.0).map_err(unreadable)
    }

    /// Hands on one row after the other, until one is refused.
    pub fn rows(&self, each: impl FnMut(&Row) -> Result<(), Error>) -> Result<(), Error> {
        let mut rows = Rows::new(each);
        let outcome = rows.read(self.text()?);
        match rows.refused {
            Some(refused) => Err(refused),
            None => outcome.map_err(unreadable),
        }
    }
}

/// A refusal as it is read: one that comes compressed is unpacked, as far as it can be.
pub fn plain(mut response: HttpResponse) -> HttpResponse {
    if unpacking::is_packed(&response.body)
        && let Ok(text) = unpacking::whole(&response.body)
    {
        response.body = text;
    }
    response
}

/// No answer came.
pub fn broken(failure: HttpFailure) -> Error {
    failure.within("16 MiB or what the request's limits leave room for")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(body: &[u8]) -> Result<Vec<Vec<Option<String>>>, Error> {
        let mut all = Vec::new();
        Body(body.into()).rows(|row| {
            let cells = (0..row.len()).map(|place| row.cell(place).map(str::to_owned));
            all.push(cells.collect());
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn rows_are_read() {
        let text = r#"{"a":{"data":[["x"]]},"data":[["1",null,"ä\"\n"],[true,-7,18446744073709551615]],"b":[1.5]}"#;
        let owned = |text: &str| Some(text.to_owned());
        let wanted = [
            vec![owned("1"), None, owned("ä\"\n")],
            vec![owned("true"), owned("-7"), owned("18446744073709551615")],
        ];
        assert_eq!(rows(text.as_bytes()).unwrap(), wanted);
        assert_eq!(rows(b"[[\"1\"],[]]").unwrap(), [vec![owned("1")], vec![]]);
        assert_eq!(rows(b"{\"data\":[]}").unwrap().len(), 0);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for body in [
            &b""[..],
            b"{}",
            b"null",
            b"{\"data\":[[\"1\"]",
            b"{\"data\":[[\"1\"]]} x",
            b"{\"data\":[[\"1\"]],\"data\":[[\"2\"]]}",
            b"{\"data\":[[1.5]]}",
            b"{\"data\":[[[]]]}",
            b"{\"data\":[\"1\"]}",
            b"{\"data\":{}}",
            b"{\"data\":[[\"\xff\"]]}",
        ] {
            let error = rows(body).unwrap_err();
            assert_eq!(error.code, "malformed_answer", "{body:?}");
        }
        let wide = format!("[[{}null]]", "null,".repeat(COLUMNS_MAX));
        assert!(rows(wide.as_bytes()).is_err());
    }

    /// What stands where it does not belong is the seller's data, and not told.
    #[test]
    fn what_cannot_be_read_is_told_without_its_content() {
        let head = |text: &str| Head::of(&Body(text.as_bytes().into())).err();
        for error in [
            head(r#"{"resultSetMetaData": {"numRows": "hush", "rowType": []}}"#),
            head(r#"{"resultSetMetaData": "hush"}"#),
            columns(r#""hush""#).err(),
            columns(r#"["hush"]"#).err(),
            columns(r#"[{"name": "n", "type": "fixed", "precision": "hush"}]"#).err(),
            rows(br#"{"data": "hush"}"#).err(),
        ] {
            let error = error.unwrap();
            assert_eq!(error.code, "malformed_answer");
            let told = error.detail.unwrap();
            assert!(!told.contains("hush"), "{told}");
        }
    }

    #[test]
    fn a_description_has_bounds() {
        let described = |row_type: &str| {
            let text =
                format!("{{\"resultSetMetaData\":{{\"numRows\":1,\"rowType\":{row_type}}}}}");
            let body = Body(text.as_bytes().into());
            let head = Head::of(&body)?;
            columns(head.result_set_meta_data.unwrap().row_type)
        };
        let column = r#"{"name":"a","type":"text","of":"tomorrow"}"#;
        assert_eq!(described(&format!("[{column}]")).unwrap().len(), 1);
        let many = vec![column; COLUMNS_MAX + 1].join(",");
        let long = "a".repeat(DESCRIBED_BYTES_MAX);
        let more = "a".repeat(ROW_TYPE_BYTES_MAX);
        for broken in [
            "[]",
            "{}",
            "null",
            "[{\"name\":\"a\"}]",
            "[{\"name\":\"a\",\"type\":\"fixed\",\"precision\":-1}]",
            &format!("[{many}]"),
            &format!("[{{\"name\":\"{long}\",\"type\":\"text\"}}]"),
            &format!("[{{\"name\":\"a\",\"type\":\"text\",\"of\":\"{more}\"}}]"),
        ] {
            assert!(described(broken).is_err());
        }
    }
}
