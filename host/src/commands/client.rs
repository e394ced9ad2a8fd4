//! A client of a running host's REST API, as its commands need it: a key, JSON in and out, and errors that say what the host said.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use rand::RngExt;
use reqwest::header::{HeaderValue, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

/// Longer than any operation of the host takes: compiling a large connector, which has two minutes of processor time at idle priority.
const ANSWER_WITHIN: Duration = Duration::from_secs(900);
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The most that a list answers at once.
const PER_PAGE: usize = 100;
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Which host is asked, in whose name, and how its answer is shown.
#[derive(Args)]
pub struct At {
    /// The host to ask.
    #[arg(
        long,
        env = "SOUK_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:8080",
        help_heading = "Host"
    )]
    pub url: String,

    /// An API key of that host. Prefer the environment variable: other users of the machine can read a command line.
    #[arg(
        long,
        env = "SOUK_API_KEY",
        value_name = "KEY",
        hide_env_values = true,
        help_heading = "Host"
    )]
    pub api_key: Option<String>,

    /// Show what the host answered as JSON, for scripts.
    #[arg(long, help_heading = "Host")]
    pub json: bool,
}

/// Whose things are meant.
#[derive(Args)]
pub struct OfCompany {
    /// The id of the company [default: the key's own].
    #[arg(long, value_name = "ID", help_heading = "Host")]
    pub company: Option<String>,
}

/// How much of a list is shown.
#[derive(Args)]
pub struct AtMost {
    /// Show so many at most.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub limit: usize,
}

pub struct Client {
    http: reqwest::Client,
    base_url: String,
    key: Option<HeaderValue>,
}

/// What the host refused with.
#[derive(Debug)]
pub struct Refused {
    pub status: StatusCode,
    pub code: String,
    pub message: String,
    /// What is wrong with which field.
    pub fields: Vec<(String, String)>,
    pub request_id: Option<String>,
    pub retry_after: Option<u64>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}: {}",
            self.status.as_u16(),
            self.code,
            self.message
        )?;
        if self.fields.len() > 1 {
            for (field, message) in &self.fields {
                write!(f, "\n  {field}: {message}")?;
            }
        }
        if let Some(seconds) = self.retry_after {
            write!(f, "\n  try again in {seconds} s")?;
        }
        match &self.request_id {
            Some(id) => write!(f, "\n  request id {id}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refused {}

impl Client {
    pub fn new(at: &At) -> Result<Client> {
        let base_url = at.url.trim_end_matches('/').to_owned();
        ensure!(
            base_url.starts_with("http://") || base_url.starts_with("https://"),
            "--url must be an http:// or https:// address, not {:?}",
            at.url
        );
        // A variable that is there and empty is one that nobody has set.
        let given = at.api_key.as_deref().map(str::trim);
        let key = match given.filter(|key| !key.is_empty()) {
            Some(key) => {
                let mut key = HeaderValue::from_str(key)
                    .context("--api-key is no key: it has characters that no key has")?;
                key.set_sensitive(true);
                Some(key)
            }
            None => None,
        };
        use_ring();
        let http = reqwest::Client::builder()
            .user_agent(concat!("souk/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_WITHIN)
            .timeout(ANSWER_WITHIN)
            // A key is not carried to where an answer points.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .context("this machine's certificates cannot be used")?;
        Ok(Client {
            http,
            base_url,
            key,
        })
    }

    /// A request to `path`, which begins with a slash, with the key.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base_url));
        match &self.key {
            Some(key) => request.header("x-api-key", key),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        self.data(self.request(Method::GET, path)).await
    }

    /// With an `Idempotency-Key` of its own: nothing is done twice because a proxy tried again.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.post_once(path, body, &random_key()).await
    }

    /// The same with the caller's `Idempotency-Key`: whoever repeats it gets the first answer.
    pub async fn post_once(
        &self,
        path: &str,
        body: &Value,
        idempotency_key: &str,
    ) -> Result<Value> {
        let request = self
            .request(Method::POST, path)
            .header(IDEMPOTENCY_KEY, idempotency_key);
        self.data(request.json(body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<Value> {
        self.data(self.request(Method::PUT, path).json(body)).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Result<Value> {
        self.data(self.request(Method::PATCH, path).json(body))
            .await
    }

    pub async fn delete(&self, path: &str) -> Result<()> {
        self.send(self.request(Method::DELETE, path)).await?;
        Ok(())
    }

    /// A list, page by page. `path` may have a query already. Answers how many there are in all too.
    pub async fn list(&self, path: &str, limit: usize) -> Result<(Vec<Value>, usize)> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let mut found = Vec::new();
        for page in 1.. {
            let path = format!("{path}{separator}page={page}&per_page={PER_PAGE}");
            let mut answer = self.json(self.request(Method::GET, &path)).await?;
            let total = answer["meta"]["total"].as_u64().unwrap_or(0);
            let total = usize::try_from(total)?;
            let Some(rows) = answer["data"].as_array_mut() else {
                bail!("{path}: the host's answer is no list");
            };
            let is_last = rows.len() < PER_PAGE;
            found.append(rows);
            if is_last || found.len() >= limit {
                found.truncate(limit);
                return Ok((found, total));
            }
        }
        Ok((found, 0))
    }

    /// The company that is named, or the key's own.
    pub async fn company(&self, of: &OfCompany) -> Result<String> {
        match &of.company {
            Some(id) => Ok(segment(id)),
            None => {
                let company = self.get("/companies/me").await?;
                let id = company["id"].as_str();
                Ok(id.context("the host names no company")?.to_owned())
            }
        }
    }

    /// What the answer's `data` is.
    pub async fn data(&self, request: RequestBuilder) -> Result<Value> {
        let mut answer = self.json(request).await?;
        Ok(answer["data"].take())
    }

    /// The whole answer, null for one without a body.
    pub async fn json(&self, request: RequestBuilder) -> Result<Value> {
        let response = self.send(request).await?;
        let bytes = response.bytes().await.map_err(|error| self.lost(error))?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes)
            .with_context(|| format!("{} did not answer JSON: is it a souk host?", self.base_url))
    }

    /// The answer to be read by the caller, if it is a good one. [`Refused`] otherwise.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let response = request.send().await.map_err(|error| self.lost(error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(response).await)
    }

    async fn refused(&self, response: Response) -> anyhow::Error {
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        let body = response.bytes().await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let error = &body["error"];
        let (Some(code), Some(message)) = (error["code"].as_str(), error["message"].as_str())
        else {
            return anyhow!(
                "{} answered {status}, and not as a souk host does: is there something else in front of it?",
                self.base_url
            );
        };
        if self.key.is_none() && code == "MISSING_API_KEY" {
            return anyhow!("{}", no_key());
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let fields = error["details"]["errors"].as_array();
        let fields = fields.map_or(&[][..], Vec::as_slice).iter();
        Refused {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            fields: fields
                .map(|error| (text(&error["field"]), text(&error["message"])))
                .collect(),
            request_id: error["details"]["request_id"].as_str().map(str::to_owned),
            retry_after,
        }
        .into()
    }

    /// No answer came. reqwest's own text names the address and nothing else; the reason is what it carries.
    fn lost(&self, error: reqwest::Error) -> anyhow::Error {
        let mut reason: &dyn std::error::Error = &error;
        while let Some(source) = reason.source() {
            reason = source;
        }
        let what = match () {
            () if error.is_timeout() => "did not answer in time".to_owned(),
            () if error.is_connect() => format!(
                "cannot be reached: {reason}. Is the host running there? --url or SOUK_URL names another"
            ),
            () => format!("broke off: {reason}"),
        };
        anyhow!("{} {what}", self.base_url)
    }
}

/// Before the first TLS of this process, which would not know with what.
pub fn use_ring() {
    // Whoever was first has installed the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn no_key() -> &'static str {
    "the host asks for an API key: give one in SOUK_API_KEY (or with --api-key)"
}

fn random_key() -> String {
    let random: u128 = rand::rng().random();
    format!("souk-cli-{random:032x}")
}

/// Text as a segment of a path.
pub fn segment(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match is_plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// An object of those members that are given.
pub fn body<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let given = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_id_stays_one_segment() {
        assert_eq!(segment("cmp_1-a"), "cmp_1-a");
        assert_eq!(segment("../a b?x"), "..%2Fa%20b%3Fx");
    }

    #[test]
    fn a_refusal_says_all_that_the_host_said() {
        let refused = Refused {
            status: StatusCode::BAD_REQUEST,
            code: "VALIDATION_ERROR".to_owned(),
            message: "2 fields are not valid; see details.errors".to_owned(),
            fields: vec![
                ("name".to_owned(), "is missing".to_owned()),
                ("handle".to_owned(), "is missing".to_owned()),
            ],
            request_id: Some("req_1".to_owned()),
            retry_after: Some(3),
        };
        assert_eq!(
            refused.to_string(),
            "400 VALIDATION_ERROR: 2 fields are not valid; see details.errors\n  name: is missing\n  handle: is missing\n  try again in 3 s\n  request id req_1"
        );
    }
}
