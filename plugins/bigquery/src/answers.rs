//! What BigQuery answers, as far as it is read. Whole numbers of 64 bits are texts in its JSON.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;
use souk_sdk::json::{self, Kind, Reader, Table, part_or_none, what_is_wrong};
use souk_sdk::{Error, HttpFailure, HttpResponse, Query};

use crate::errors;

/// Of `jobs.query` and `jobs.getQueryResults`.
#[derive(Default)]
pub struct Results<'a> {
    pub job_complete: Option<bool>,
    /// As it stands: an answer that is complete is asked after no more.
    pub job_reference: Option<&'a str>,
    /// Once it is complete, as it stands.
    pub schema: Option<&'a str>,
    /// Of all pages.
    pub total_rows: Option<Cow<'a, str>>,
    /// There are more rows.
    pub page_token: Option<Cow<'a, str>>,
    /// Where they were not told while the answer was read.
    pub rows: Option<&'a RawValue>,
}

/// How rows and cells begin where BigQuery leaves out the blanks, which it is asked to.
const ROW: &[u8; 5] = b"{\"f\":";
const CELL: &[u8; 5] = b"{\"v\":";

/// Reads rows: `[{"f": [{"v": …}, …]}, …]`.
pub fn rows<T: Kind>(from: &mut Reader<'_>, table: &mut Table<'_, T>) -> serde_json::Result<()> {
    from.list("rows", |row| {
        only("f", ROW, row, |cells| {
            table.row(cells, |from, cell| {
                only("v", CELL, from, |value| cell.read(value))
            })
        })
    })
}

/// Reads the member of this name, which an object has once; mostly it begins with that, written like this.
#[inline]
fn only<'a>(
    wanted: &'static str,
    begin: &[u8; 5],
    from: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    if from.passes(begin) {
        read(from)?;
        return from.members_left(|name, value| match name == wanted {
            true => Err(serde_json::Error::duplicate_field(wanted)),
            false => value.skip(),
        });
    }
    let mut read = Some(read);
    from.object(|name, value| match (name == wanted, read.take()) {
        (true, Some(read)) => read(value),
        (true, None) => Err(serde_json::Error::duplicate_field(wanted)),
        (false, unused) => {
            read = unused;
            value.skip()
        }
    })?;
    match read {
        None => Ok(()),
        Some(_) => Err(serde_json::Error::missing_field(wanted)),
    }
}

/// A row that is kept, or one within a value.
#[derive(Deserialize)]
pub struct Row<'a> {
    #[serde(borrow, rename = "f")]
    pub cells: Vec<Cell<'a>>,
}

#[derive(Deserialize)]
pub struct Cell<'a> {
    #[serde(borrow, rename = "v")]
    pub value: &'a RawValue,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobReference {
    pub project_id: String,
    pub job_id: String,
    pub location: Option<String>,
}

impl<'a> Results<'a> {
    pub fn is_complete(&self) -> bool {
        self.job_complete == Some(true)
    }

    /// Nothing is left to be asked for.
    pub fn is_last(&self) -> bool {
        self.is_complete() && self.page_token.as_deref().is_none_or(str::is_empty)
    }

    /// The name of the job.
    pub fn job(&self) -> Result<Option<JobReference>, Error> {
        let job = self.job_reference.map(json::read_part).transpose();
        job.map_err(|error| unreadable(&error))
    }

    /// The rows that were kept.
    pub fn kept(&self) -> Result<Vec<Row<'a>>, Error> {
        // A text that stood there would be told, all of it.
        if self.rows.is_some_and(|rows| rows.get().starts_with('"')) {
            return Err(malformed().detail("a text in place of rows"));
        }
        let rows = self.rows.map(|rows| serde_json::from_str(rows.get()));
        let rows = rows.transpose();
        rows.map(Option::unwrap_or_default)
            .map_err(|error| unreadable(&error))
    }

    /// 0 where it is not said.
    pub fn total_rows(&self) -> u64 {
        let said = self.total_rows.as_deref();
        said.and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

/// Of `jobs.insert`.
#[derive(Deserialize)]
pub struct Job {
    #[serde(default, deserialize_with = "part_or_none")]
    statistics: Option<Statistics>,
}

#[derive(Deserialize)]
struct Statistics {
    #[serde(default, deserialize_with = "part_or_none")]
    query: Option<QueryStatistics>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueryStatistics {
    statement_type: Option<String>,
}

impl Job {
    pub fn statement_type(&self) -> Option<&str> {
        let query = self.statistics.as_ref()?.query.as_ref()?;
        query.statement_type.as_deref()
    }
}

/// Of `datasets.list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Datasets {
    #[serde(default)]
    pub datasets: Vec<Dataset>,
    pub next_page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dataset {
    pub dataset_reference: DatasetReference,
    pub location: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatasetReference {
    pub dataset_id: String,
}

/// The answer, where it is one. `query`: what was asked in it for a caller, whose values may be what is refused.
pub fn answer(
    outcome: Result<HttpResponse, HttpFailure>,
    query: Option<&Query>,
) -> Result<HttpResponse, Error> {
    match outcome {
        Ok(response) if response.status == 200 => Ok(response),
        Ok(response) => Err(errors::refused(response, query)),
        Err(failure) => Err(failure.within("24 MiB")),
    }
}

/// What stands in an answer.
pub fn read<'a, T: Deserialize<'a>>(response: &'a HttpResponse) -> Result<T, Error> {
    let read = json::utf8(&response.body).and_then(json::read_part);
    read.map_err(|error| unreadable(&error))
}

pub fn malformed() -> Error {
    Error::source_failed(
        "malformed_answer",
        "what answers at the connection's address does not speak as BigQuery's REST API does",
    )
}

/// What is wrong with an answer's JSON, without its content.
pub fn unreadable(error: &serde_json::Error) -> Error {
    malformed().detail(what_is_wrong(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands where it does not belong is the project's data, and not told.
    #[test]
    fn what_cannot_be_read_is_told_without_its_content() {
        let response = |body: &str| HttpResponse {
            id: 1,
            status: 200,
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        };
        let datasets = |body: &str| read::<Datasets>(&response(body)).err();
        let kept = |rows: &str| {
            let results = Results {
                rows: Some(serde_json::from_str(rows).unwrap()),
                ..Results::default()
            };
            results.kept().err()
        };
        let job = |job: &str| {
            let results = Results {
                job_reference: Some(job),
                ..Results::default()
            };
            results.job().err()
        };
        for error in [
            datasets(r#"{"datasets": "hush"}"#),
            datasets(r#"{"datasets": [{"datasetReference": "hush"}]}"#),
            kept(r#"["hush"]"#),
            kept(r#"[{"f": "hush"}]"#),
            kept(r#"[{"f": ["hush"]}]"#),
            job(r#"{"projectId": {"hush": 1}}"#),
            job(r#"{"projectId": "p", "jobId": 7007}"#),
        ] {
            let error = error.unwrap();
            assert_eq!(error.code, "malformed_answer");
            let told = error.detail.unwrap();
            assert!(!told.contains("hush") && !told.contains("7007"), "{told}");
            assert!(told.contains("line 1"), "{told}");
        }
    }
}
