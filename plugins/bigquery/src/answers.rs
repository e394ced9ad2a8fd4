//! What BigQuery answers, as far as it is read. Whole numbers of 64 bits are texts in its JSON.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use souk_sdk::json::{self, Kind, Table};
use souk_sdk::{Error, HttpFailure, HttpResponse};

use crate::errors;

/// Of `jobs.query` and `jobs.getQueryResults`.
#[derive(Default)]
pub struct Results<'a> {
    pub job_complete: Option<bool>,
    pub job_reference: Option<JobReference>,
    /// Once it is complete.
    pub schema: Option<&'a RawValue>,
    /// Of all pages.
    pub total_rows: Option<String>,
    /// There are more rows.
    pub page_token: Option<String>,
    /// Where they were not told while the answer was read.
    pub rows: Option<&'a RawValue>,
}

/// Reads rows: `[{"f": [{"v": …}, …]}, …]`.
pub struct OfRows<'r, 't, T>(pub &'r mut Table<'t, T>);

impl<'de, T: Kind> DeserializeSeed<'de> for OfRows<'_, '_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, T: Kind> Visitor<'de> for OfRows<'_, '_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        loop {
            let cells = OfCells(&mut *self.0);
            if rows.next_element_seed(Member("f", cells))?.is_none() {
                return Ok(());
            }
        }
    }
}

struct OfCells<'r, 't, T>(&'r mut Table<'t, T>);

impl<'de, T: Kind> DeserializeSeed<'de> for OfCells<'_, '_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, T: Kind> Visitor<'de> for OfCells<'_, '_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("cells")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, cells: A) -> Result<(), A::Error> {
        self.0.row(Values(cells))
    }
}

/// Elements that are the member `v` each.
struct Values<A>(A);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Values<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Member("v", seed))
    }
}

/// Of an object the member of this name, which it has once, as the seed reads it.
struct Member<S>(&'static str, S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Member<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Member<S> {
    type Value = S::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<S::Value, A::Error> {
        let Member(wanted, seed) = self;
        let (mut seed, mut found) = (Some(seed), None);
        while let Some(is_it) = object.next_key_seed(Is(wanted))? {
            match (is_it, seed.take()) {
                (true, Some(seed)) => found = Some(object.next_value_seed(seed)?),
                (true, None) => return Err(A::Error::duplicate_field(wanted)),
                (false, unused) => {
                    seed = unused;
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        found.ok_or_else(|| A::Error::missing_field(wanted))
    }
}

/// Whether a name is this one.
struct Is(&'static str);

impl<'de> DeserializeSeed<'de> for Is {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Is {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
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

    /// The rows that were kept.
    pub fn kept(&self) -> Result<Vec<Row<'a>>, Error> {
        let rows = self.rows.map(|rows| serde_json::from_str(rows.get()));
        let rows = rows.transpose();
        rows.map(Option::unwrap_or_default)
            .map_err(|error| malformed().detail(error.to_string()))
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
    statistics: Option<Statistics>,
}

#[derive(Deserialize)]
struct Statistics {
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

/// The answer, where it is one.
pub fn answer(outcome: Result<HttpResponse, HttpFailure>) -> Result<HttpResponse, Error> {
    match outcome {
        Ok(response) if response.status == 200 => Ok(response),
        Ok(response) => Err(errors::refused(response)),
        Err(failure) => Err(failure.within("64 MiB")),
    }
}

/// What stands in an answer.
pub fn read<'a, T: Deserialize<'a>>(response: &'a HttpResponse) -> Result<T, Error> {
    json::read(&response.body).map_err(|error| malformed().detail(error.to_string()))
}

pub fn malformed() -> Error {
    Error::source_failed(
        "malformed_answer",
        "what answers at the connection's address does not speak as BigQuery's REST API does",
    )
}
