//! The REST API: what a request looks like.

use serde::Serialize;
use serde_json::json;
use souk_sdk::http::{Request, encoded};
use souk_sdk::{Error, HttpRequest, Limits, Query};

use crate::answers::JobReference;
use crate::parameters::{self, Parameter};
use crate::settings::{Dataset, Settings};
use crate::token::Signer;

/// What the host reads of a response at most. BigQuery's own bound of a page is a third of it.
const RESPONSE_BYTES_MAX: u64 = 64 << 20;
/// Of an answer without rows.
const SMALL_RESPONSE_BYTES: u64 = 8 << 20;
/// Rows of one page; BigQuery sends fewer where they are long.
const PAGE_ROWS: u32 = 10_000;
/// Datasets of one page: as many as BigQuery gives.
const PAGE_DATASETS: u32 = 1_000;
/// How long the first answer may wait for a statement's end. Until it comes nobody knows the job's name, by which it is cancelled: less than
/// the two seconds that the host waits for the end of a request that was cancelled.
const FIRST_WAIT_MS: u32 = 1_000;
/// How much longer than the statement the request for it may take: the job's name is in its answer.
const NAME_MS: u32 = 1_500;
/// How long one of the later ones may. BigQuery keeps it shorter where it likes.
const WAIT_MS: u32 = 10_000;
/// What a request has beside its statement, and for each value that is bound: most are written without being moved.
const BODY_BYTES: usize = 512;
const PARAMETER_BYTES: usize = 96;
/// What statements run with. A project may have another zone of its own (`default_time_zone`), by which days and texts of moments would differ.
const PROPERTIES: [Property; 1] = [Property {
    key: "time_zone",
    value: "UTC",
}];

/// All that requests of one session have in common.
pub struct Api {
    pub signer: Signer,
    /// Where statements run.
    pub project: String,
    dataset: Option<Dataset>,
    location: Option<String>,
    /// As a text, which numbers of 64 bits are.
    bytes_billed_max: String,
    timeout_ms: u32,
    /// Where statements are asked.
    queries: String,
}

/// A statement with what bounds it, as `jobs.query` takes it: each one is written straight into its request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    #[serde(flatten)]
    described: Described<'a>,
    max_results: u32,
    timeout_ms: u32,
    job_timeout_ms: String,
    maximum_bytes_billed: &'a str,
    format_options: FormatOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
}

/// What a statement needs to be understood: where its tables are, and its values.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Described<'a> {
    query: &'a str,
    use_legacy_sql: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_dataset: Option<Reference<'a>>,
    connection_properties: &'static [Property],
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter_mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    query_parameters: Vec<Parameter>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference<'a> {
    project_id: &'a str,
    dataset_id: &'a str,
}

#[derive(Serialize)]
struct Property {
    key: &'static str,
    value: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FormatOptions {
    use_int64_timestamp: bool,
}

impl Api {
    pub fn new(settings: Settings) -> Result<Api, Error> {
        let timeout_ms = settings.statement_timeout_ms();
        Ok(Api {
            signer: Signer::new(
                settings.client_email,
                settings.private_key_id,
                &settings.private_key,
            )?,
            queries: format!(
                "/bigquery/v2/projects/{}/queries?prettyPrint=false",
                encoded(&settings.project_id)
            ),
            project: settings.project_id,
            dataset: settings.dataset,
            location: settings.location,
            bytes_billed_max: settings.maximum_bytes_billed.to_string(),
            timeout_ms,
        })
    }

    /// Asks what kind of statement it is. Nothing is carried out, and nothing is paid for.
    pub fn dry_run(&self, id: u32, query: &Query) -> Result<HttpRequest, Error> {
        let described = self.described(query)?;
        let mut job = json!({"configuration": {"dryRun": true, "query": described}});
        if let Some(location) = &self.location {
            job["jobReference"] = json!({"projectId": self.project, "location": location});
        }
        let request = Request::post(self.path("jobs")).json(job.to_string());
        Ok(self.small(id, request, query.limits.timeout_ms))
    }

    /// Runs a statement. `location`: where it runs, if that is known.
    pub fn query(
        &self,
        id: u32,
        query: &Query,
        location: Option<&str>,
    ) -> Result<HttpRequest, Error> {
        let limits = &query.limits;
        let timeout_ms = self.timeout_ms.min(limits.timeout_ms).max(1);
        let asked = Asked {
            described: self.described(query)?,
            max_results: rows(limits),
            timeout_ms: timeout_ms.min(FIRST_WAIT_MS),
            job_timeout_ms: timeout_ms.to_string(),
            maximum_bytes_billed: &self.bytes_billed_max,
            format_options: FormatOptions {
                use_int64_timestamp: true,
            },
            location: location.or(self.location.as_deref()),
        };
        let parameters = PARAMETER_BYTES * query.parameters.len();
        let mut body = Vec::with_capacity(BODY_BYTES + query.text.len() + parameters);
        // A Vec takes everything, and its members' names are texts.
        let _ = serde_json::to_writer(&mut body, &asked);
        let request = Request::post(self.queries.as_str()).json(body);
        let timeout_ms = limits.timeout_ms.saturating_add(NAME_MS);
        Ok(self.let_in(id, request, timeout_ms, RESPONSE_BYTES_MAX))
    }

    /// Waits for the end of a job and reads its rows, or goes on reading where `page` begins.
    pub fn results(
        &self,
        id: u32,
        job: &JobReference,
        page: Option<&str>,
        limits: &Limits,
    ) -> HttpRequest {
        let mut request = Request::get(self.job(job, "queries", ""))
            .query("maxResults", rows(limits))
            .query("timeoutMs", limits.timeout_ms.min(WAIT_MS))
            .query("formatOptions.useInt64Timestamp", true);
        if let Some(location) = &job.location {
            request = request.query("location", location);
        }
        if let Some(page) = page {
            request = request.query("pageToken", page);
        }
        self.signed(id, request, limits.timeout_ms, RESPONSE_BYTES_MAX)
    }

    pub fn cancel(&self, id: u32, job: &JobReference, timeout_ms: u32) -> HttpRequest {
        let mut request = Request::post(self.job(job, "jobs", "/cancel"));
        if let Some(location) = &job.location {
            request = request.query("location", location);
        }
        self.small(id, request, timeout_ms)
    }

    pub fn datasets(&self, id: u32, page: Option<&str>, timeout_ms: u32) -> HttpRequest {
        let mut request = Request::get(self.path("datasets")).query("maxResults", PAGE_DATASETS);
        if let Some(page) = page {
            request = request.query("pageToken", page);
        }
        self.small(id, request, timeout_ms)
    }

    /// The dataset of the settings; without one there is nothing to ask for.
    pub fn dataset(&self, id: u32, timeout_ms: u32) -> Option<HttpRequest> {
        let dataset = self.dataset.as_ref()?;
        let project = dataset.project.as_ref().unwrap_or(&self.project);
        let name = encoded(&dataset.name);
        let path = format!("/bigquery/v2/projects/{}/datasets/{name}", encoded(project));
        Some(self.small(id, Request::get(path), timeout_ms))
    }

    fn described<'a>(&'a self, query: &'a Query) -> Result<Described<'a>, Error> {
        let reference = |dataset: &'a Dataset| Reference {
            project_id: dataset.project.as_ref().unwrap_or(&self.project),
            dataset_id: &dataset.name,
        };
        Ok(Described {
            query: &query.text,
            use_legacy_sql: false,
            default_dataset: self.dataset.as_ref().map(reference),
            connection_properties: &PROPERTIES,
            parameter_mode: (!query.parameters.is_empty()).then_some("POSITIONAL"),
            query_parameters: parameters::all(&query.parameters)?,
        })
    }

    fn path(&self, what: &str) -> String {
        format!("/bigquery/v2/projects/{}/{what}", encoded(&self.project))
    }

    fn job(&self, job: &JobReference, what: &str, act: &str) -> String {
        let (project, id) = (encoded(&job.project_id), encoded(&job.job_id));
        format!("/bigquery/v2/projects/{project}/{what}/{id}{act}")
    }

    fn small(&self, id: u32, request: Request, timeout_ms: u32) -> HttpRequest {
        self.signed(id, request, timeout_ms, SMALL_RESPONSE_BYTES)
    }

    fn signed(&self, id: u32, request: Request, timeout_ms: u32, bytes_max: u64) -> HttpRequest {
        self.let_in(
            id,
            request.query("prettyPrint", false),
            timeout_ms,
            bytes_max,
        )
    }

    fn let_in(&self, id: u32, request: Request, timeout_ms: u32, bytes_max: u64) -> HttpRequest {
        request
            .header("authorization", self.signer.authorization())
            .timeout_ms(timeout_ms)
            .response_bytes_max(bytes_max)
            .numbered(id)
    }
}

/// One more than is allowed tells that there are too many.
fn rows(limits: &Limits) -> u32 {
    limits.rows_max.saturating_add(1).min(PAGE_ROWS)
}
