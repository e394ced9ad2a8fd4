//! What BigQuery answers, as far as it is read. Whole numbers of 64 bits are texts in its JSON.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use souk_sdk::{Error, HttpFailure, HttpResponse, json};

use crate::errors;

/// Of `jobs.query` and `jobs.getQueryResults`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Results<'a> {
    #[serde(default)]
    pub job_complete: bool,
    pub job_reference: Option<JobReference>,
    /// Once it is complete.
    #[serde(borrow)]
    pub schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub rows: FoundRows<'a>,
    total_rows: Option<String>,
    /// There are more rows.
    pub page_token: Option<String>,
}

/// The cells of all rows, one after the other: lists of their own would be allocated for each row.
#[derive(Default)]
pub struct FoundRows<'a> {
    cells: Vec<&'a RawValue>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl<'a> FoundRows<'a> {
    pub fn iter(&self) -> impl Iterator<Item = &[&'a RawValue]> {
        let mut begin = 0;
        self.ends.iter().map(move |end| {
            let row = &self.cells[begin..*end];
            begin = *end;
            row
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FoundRows<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<FoundRows<'a>, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = FoundRows<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("rows")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<FoundRows<'de>, A::Error> {
                let mut all = FoundRows::default();
                while rows.next_element_seed(OfRow(&mut all.cells))?.is_some() {
                    all.ends.push(all.cells.len());
                }
                Ok(all)
            }
        }
        from.deserialize_seq(All)
    }
}

/// `{"f": [{"v": …}, …]}`: appends its cells.
struct OfRow<'c, 'de>(&'c mut Vec<&'de RawValue>);

impl<'de> DeserializeSeed<'de> for OfRow<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OfRow<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(name) = row.next_key::<&RawValue>()? {
            match (name.get(), found) {
                ("\"f\"", false) => {
                    row.next_value_seed(OfCells(self.0))?;
                    found = true;
                }
                ("\"f\"", true) => return Err(A::Error::custom("a row has its cells twice")),
                _ => drop(row.next_value::<IgnoredAny>()?),
            }
        }
        match found {
            true => Ok(()),
            false => Err(A::Error::custom("a row without cells")),
        }
    }
}

struct OfCells<'c, 'de>(&'c mut Vec<&'de RawValue>);

impl<'de> DeserializeSeed<'de> for OfCells<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OfCells<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("cells")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<(), A::Error> {
        while let Some(cell) = cells.next_element::<Cell<'_>>()? {
            self.0.push(cell.value);
        }
        Ok(())
    }
}

/// A row within a value.
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

impl Results<'_> {
    /// Of all pages; as many as were read where it is not said.
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
