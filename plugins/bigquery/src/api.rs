//! The REST API: what a request looks like.

use serde_json::json;
use souk_sdk::http::{Request, encoded};
use souk_sdk::json::{write_text, write_whole};
use souk_sdk::{Error, HttpRequest, Limits, Query};

use crate::answers::JobReference;
use crate::parameters;
use crate::settings::{Dataset, Settings};
use crate::token::Signer;

/// What the host reads of a response at most: it stands in a session's 64 MiB beside what becomes of it. BigQuery's own bound of a page is 20 MB.
const RESPONSE_BYTES_MAX: u64 = 24 << 20;
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
/// What a request has beside its statement and what all have, and for each value that is bound: most are written without being moved.
const BODY_BYTES: usize = 192;
const PARAMETER_BYTES: usize = 96;
/// What statements run with. A project may have another zone of its own (`default_time_zone`), by which days and texts of moments would differ.
const ZONE: (&str, &str) = ("time_zone", "UTC");

/// All that requests of one session have in common.
pub struct Api {
    pub signer: Signer,
    /// Where statements run.
    pub project: String,
    dataset: Option<Dataset>,
    location: Option<String>,
    /// What each statement needs to be understood, and what each one that is carried out is bounded by, as members that follow another one.
    meant: String,
    bounded: String,
    timeout_ms: u32,
    /// Where statements are asked.
    queries: String,
}

impl Api {
    pub fn new(settings: Settings) -> Result<Api, Error> {
        let timeout_ms = settings.statement_timeout_ms();
        let (key, value) = ZONE;
        let mut meant =
            json!({"useLegacySql": false, "connectionProperties": [{"key": key, "value": value}]});
        if let Some(Dataset { project, name }) = &settings.dataset {
            let project = project.as_ref().unwrap_or(&settings.project_id);
            meant["defaultDataset"] = json!({"projectId": project, "datasetId": name});
        }
        let bounded = json!({
            // As a text, which numbers of 64 bits are.
            "maximumBytesBilled": settings.maximum_bytes_billed.to_string(),
            "formatOptions": {"useInt64Timestamp": true},
        });
        Ok(Api {
            meant: following(&meant),
            bounded: following(&bounded),
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
            timeout_ms,
        })
    }

    /// Asks what kind of statement it is. Nothing is carried out, and nothing is paid for.
    pub fn dry_run(&self, id: u32, query: &Query) -> Result<HttpRequest, Error> {
        let mut body = br#"{"configuration":{"dryRun":true,"query":{"#.to_vec();
        self.described(query, &mut body)?;
        body.extend_from_slice(b"}}");
        if let Some(location) = &self.location {
            let job = json!({"projectId": self.project, "location": location});
            let job = json!({"jobReference": job});
            body.extend_from_slice(following(&job).as_bytes());
        }
        body.push(b'}');
        let request = Request::post(self.path("jobs")).json(body);
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
        let parameters = PARAMETER_BYTES * query.parameters.len();
        let fixed = self.meant.len() + self.bounded.len();
        let mut body = Vec::with_capacity(BODY_BYTES + fixed + query.text.len() + parameters);
        body.push(b'{');
        self.described(query, &mut body)?;
        body.extend_from_slice(self.bounded.as_bytes());
        body.extend_from_slice(b",\"maxResults\":");
        write_whole(rows(limits).into(), &mut body);
        body.extend_from_slice(b",\"timeoutMs\":");
        write_whole(timeout_ms.min(FIRST_WAIT_MS).into(), &mut body);
        body.extend_from_slice(b",\"jobTimeoutMs\":\"");
        write_whole(timeout_ms.into(), &mut body);
        body.push(b'"');
        if let Some(location) = location.or(self.location.as_deref()) {
            body.extend_from_slice(b",\"location\":");
            write_text(location, &mut body);
        }
        body.push(b'}');
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

    /// Appends the members of an object that say what a statement is: its text, what it means, its values.
    fn described(&self, query: &Query, body: &mut Vec<u8>) -> Result<(), Error> {
        body.extend_from_slice(b"\"query\":");
        write_text(&query.text, body);
        body.extend_from_slice(self.meant.as_bytes());
        parameters::write(&query.parameters, body)
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

/// The members of an object as they follow others: with a comma before them, and without its braces.
fn following(object: &serde_json::Value) -> String {
    let text = object.to_string();
    let members = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    format!(",{}", members.unwrap_or_default())
}

/// One more than is allowed tells that there are too many.
fn rows(limits: &Limits) -> u32 {
    limits.rows_max.saturating_add(1).min(PAGE_ROWS)
}
