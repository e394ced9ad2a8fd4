//! The REST API: what a request looks like.

use serde_json::{Value as Json, json};
use souk_sdk::http::{Request, encoded};
use souk_sdk::{Error, HttpRequest, Limits, Query};

use crate::answers::JobReference;
use crate::parameters;
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

/// All that requests of one session have in common.
pub struct Api {
    pub signer: Signer,
    /// Where statements run.
    pub project: String,
    dataset: Option<Dataset>,
    location: Option<String>,
    bytes_billed_max: u64,
    timeout_ms: u32,
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
            project: settings.project_id,
            dataset: settings.dataset,
            location: settings.location,
            bytes_billed_max: settings.maximum_bytes_billed,
            timeout_ms,
        })
    }

    /// Asks what kind of statement it is. Nothing is carried out, and nothing is paid for.
    pub fn dry_run(&self, id: u32, query: &Query) -> Result<HttpRequest, Error> {
        let mut configuration = json!({"query": query.text, "useLegacySql": false});
        self.describe(&mut configuration, query)?;
        let mut job = json!({"configuration": {"dryRun": true, "query": configuration}});
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
        let mut body = json!({
            "query": query.text,
            "useLegacySql": false,
            "maxResults": rows(limits),
            "timeoutMs": timeout_ms.min(FIRST_WAIT_MS),
            "jobTimeoutMs": timeout_ms.to_string(),
            "maximumBytesBilled": self.bytes_billed_max.to_string(),
            "formatOptions": {"useInt64Timestamp": true},
        });
        self.describe(&mut body, query)?;
        if let Some(location) = location.or(self.location.as_deref()) {
            body["location"] = location.into();
        }
        let request = Request::post(self.path("queries")).json(body.to_string());
        let timeout_ms = limits.timeout_ms.saturating_add(NAME_MS);
        Ok(self.signed(id, request, timeout_ms, RESPONSE_BYTES_MAX))
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

    /// What a statement needs to be understood: where its tables are, and its values.
    fn describe(&self, configuration: &mut Json, query: &Query) -> Result<(), Error> {
        if let Some(dataset) = &self.dataset {
            let project = dataset.project.as_ref().unwrap_or(&self.project);
            configuration["defaultDataset"] =
                json!({"projectId": project, "datasetId": dataset.name});
        }
        if !query.parameters.is_empty() {
            configuration["parameterMode"] = "POSITIONAL".into();
            configuration["queryParameters"] = parameters::all(&query.parameters)?;
        }
        Ok(())
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
        request
            .query("prettyPrint", false)
            .header("authorization", format!("Bearer {}", self.signer.current()))
            .timeout_ms(timeout_ms)
            .response_bytes_max(bytes_max)
            .numbered(id)
    }
}

/// One more than is allowed tells that there are too many.
fn rows(limits: &Limits) -> u32 {
    limits.rows_max.saturating_add(1).min(PAGE_ROWS)
}
