//! A page of an endpoint as it is answered: in the format that was asked for, with what the envelope of JSON says in headers.

use super::answer;
use super::export::export;
use super::shape::PageAnswer;
use super::{max_credits, once, payer, refusal};
use crate::data::{Address, Request, accept};
use crate::describe::{Describe, Description, JSON};
use crate::idempotency::{self, Attempt};
use crate::refusals::{CONFLICT, NOT_ACCEPTABLE};
use crate::schemas::{Schemas, schema};
use crate::{ApiState, Caller, Problem, RawBody};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use souk_app::fetch::{self, Fetched, Format, Manner, Told};
use souk_app::products::EndpointSnapshot;
use souk_app::run::{About, Payer};
use souk_domain::ids::CompanyId;
use souk_domain::time::Timestamp;
use souk_store::Cached;
use souk_store::executions::Billing;
use std::borrow::Cow;

/// A page, or what a request with the same `Idempotency-Key` was answered.
pub enum RanPage {
    Now {
        format: Format,
        headers: HeaderMap,
        body: Vec<u8>,
    },
    /// The caller has its rows already.
    Unchanged(HeaderMap),
    Before(Response),
    /// All pages.
    Export(Response),
}

/// Fetches a page of an endpoint for `company`, which pays unless it owns it.
pub async fn page<T>(
    api: &ApiState,
    caller: &Caller,
    raw: &RawBody<T>,
    endpoint: Cached<EndpointSnapshot>,
    company: &CompanyId,
    wanted: Request,
    address: Address,
) -> Result<RanPage, Problem> {
    if wanted.is_export {
        // Boxed: a page need not have room for this.
        return Box::pin(export(api, caller, raw, endpoint, company, wanted))
            .await
            .map(RanPage::Export);
    }
    let format = accept::of_page(&raw.parts.headers)?;
    let known = Validators::of(&raw.parts.headers);
    let max_credits = max_credits(&raw.parts.headers)?;
    let timeout = endpoint.timeout;
    // The same request for another format is another request.
    let id = endpoint.row.id.clone();
    let product = match format {
        Format::Json => Cow::from(id.as_str()),
        other => format!("{id} {}", accept::content_type(other)).into(),
    };
    let attempt = once(api, caller, raw, &product, timeout, |ticket| {
        let (api, caller, company) = (api.clone(), caller.clone(), company.clone());
        async move {
            let payer = Payer {
                company: &company,
                max_credits,
                ..payer(&caller, ticket.as_ref())
            };
            let has = |told: &Told| {
                !known.0.is_empty() && known.has(Validator::of(format, told).as_bytes())
            };
            let next_url = |told: &Told| {
                let next = told.next.as_ref()?;
                Some(wanted.link(&address.url(api.settings()), &next.cursor, told.limit))
            };
            let beside = |told: &Told| {
                let headers = headers(format, told, next_url(told).as_deref());
                idempotency::lines(&headers)
            };
            let manner = Manner {
                format,
                head: match format {
                    Format::Json => answer::PAGE_HEAD,
                    _ => b"",
                },
                has: &has,
                beside: &beside,
            };
            let finish = |out: &mut Vec<u8>, told: &Told, about: &About<'_>| {
                let next_url = next_url(told);
                // Rows that the caller has do not leave, nor does what would stand around them.
                let has_envelope = format == Format::Json && !out.is_empty();
                if has_envelope {
                    answer::page(out, &endpoint, told, next_url.as_deref(), about);
                }
                let mut headers = headers(format, told, next_url.as_deref());
                if !has_envelope {
                    members(&mut headers, &endpoint, told, about);
                }
                headers
            };
            fetch::fetch(
                api.app(),
                &endpoint,
                &wanted.choice,
                &payer,
                &manner,
                finish,
            )
            .await
            .map_err(refusal("endpoint", endpoint.row.id.as_str()))
        }
    });
    Ok(match attempt.await? {
        Attempt::Now(Fetched::Page(body, headers)) => RanPage::Now {
            format,
            headers,
            body,
        },
        Attempt::Now(Fetched::Unchanged(headers)) => RanPage::Unchanged(headers),
        Attempt::Before(response) => RanPage::Before(response),
    })
}

/// What `If-None-Match` names.
struct Validators(Vec<String>);

impl Validators {
    fn of(headers: &HeaderMap) -> Validators {
        let values = headers.get_all(header::IF_NONE_MATCH).iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        let each = texts.flat_map(|text| text.split(','));
        Validators(each.map(|tag| opaque(tag).to_owned()).collect())
    }

    /// By weak comparison, as RFC 9110 has it for this header. `*` is no validator here: who names one was given it with rows, and a free answer that there
    /// are some would be one to whether a filter finds any.
    fn has(&self, validator: &[u8]) -> bool {
        let wanted = validator.strip_prefix(b"W/").unwrap_or(validator);
        let mut known = self.0.iter().map(String::as_bytes);
        known.any(|known| known == wanted)
    }
}

/// A tag without its strength.
fn opaque(tag: &str) -> &str {
    let tag = tag.trim();
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// Of rows in a format: `W/"j0123456789abcdefm"` at the longest.
struct Validator {
    text: [u8; 24],
    length: usize,
}

impl Validator {
    /// JSON has an envelope that changes each time, so that its validator is a weak one.
    fn of(format: Format, told: &Told) -> Validator {
        let (weak, word) = match format {
            Format::Json => ("W/", "j"),
            Format::JsonLines => ("", "n"),
            Format::Csv => ("", "c"),
            Format::Arrow => ("", "a"),
            Format::Parquet => ("", "p"),
        };
        let more = if told.paged.has_more { "m" } else { "" };
        let mut mark = [0; 16];
        // Two digits for each of eight bytes.
        let _ = hex::encode_to_slice(told.mark.to_be_bytes(), &mut mark);
        let mut text = [0; 24];
        let mut length = 0;
        let (weak, word, more) = (weak.as_bytes(), word.as_bytes(), more.as_bytes());
        for part in [weak, b"\"", word, &mark, more, b"\""] {
            text[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        Validator { text, length }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

/// Of a page as JSON, with those that every answer has.
const HEADERS: usize = 12;

/// What is told beside the rows.
fn headers(format: Format, told: &Told, next_url: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    if let Ok(tag) = HeaderValue::from_bytes(Validator::of(format, told).as_bytes()) {
        headers.insert(header::ETAG, tag);
    }
    if let Some(next_url) = next_url
        && let Ok(link) = HeaderValue::try_from(format!("<{next_url}>; rel=\"next\""))
    {
        headers.insert(header::LINK, link);
    }
    headers
}

/// What the members of JSON's envelope say, where there is none.
fn members(headers: &mut HeaderMap, endpoint: &EndpointSnapshot, told: &Told, about: &About<'_>) {
    let mut say = |name: &'static str, value: Value| {
        let text = match value {
            Value::Null => return,
            Value::String(text) => text,
            other => other.to_string(),
        };
        // Numbers, words, ids and addresses that we wrote.
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    let (paged, settled) = (told.paged, about.settled);
    let next = told.next.as_ref();
    let freshness = Timestamp::from_micros(about.payer.now.micros());
    for (name, value) in [
        ("x-endpoint-id", json!(endpoint.row.id.as_str())),
        ("x-pagination-start", json!(told.start)),
        ("x-pagination-limit", json!(told.limit)),
        ("x-pagination-returned", json!(paged.returned)),
        ("x-pagination-has-more", json!(paged.has_more)),
        ("x-pagination-next-start", json!(paged.next_start)),
        (
            "x-pagination-next-cursor",
            json!(next.map(|next| &next.cursor)),
        ),
        ("x-pagination-paging", json!(next.map(answer::paging))),
        (
            "x-billing-billable",
            json!(settled.billing == Billing::Charged),
        ),
        ("x-billing-credits-used", json!(settled.credits)),
        ("x-billing-price-credits", json!(answer::price(endpoint))),
        ("x-billing-balance-credits", json!(settled.balance)),
        (
            "x-billing-transaction-id",
            json!(settled.transaction.as_ref().map(|id| id.as_str())),
        ),
        ("x-billing-reason", json!(answer::reason(settled.billing))),
        ("x-execution-time-ms", json!(about.elapsed_ms)),
        ("x-data-freshness", json!(freshness.to_string())),
        (
            "x-ai-training-allowed",
            json!(endpoint.row.written.allow_ai_training),
        ),
        ("x-redistribution-allowed", json!(false)),
    ] {
        say(name, value);
    }
}

impl Describe for RanPage {
    fn describe(into: &mut Description) {
        let text = |_: &mut Schemas| json!({"type": "string"});
        let bytes = |_: &mut Schemas| json!({"type": "string", "contentEncoding": "binary"});
        into.answer(200, Some((JSON, schema::<PageAnswer>)));
        into.answer(200, Some(("application/x-ndjson", text)));
        into.answer(200, Some(("text/csv", text)));
        into.answer(200, Some((accept::content_type(Format::Arrow), bytes)));
        into.answer(200, Some((accept::content_type(Format::Parquet), bytes)));
        into.answer(304, None);
        into.refuse(&[NOT_ACCEPTABLE, CONFLICT]);
    }
}

impl IntoResponse for RanPage {
    fn into_response(self) -> Response {
        match self {
            RanPage::Now {
                format,
                headers,
                body,
            } => {
                let mut response = Response::new(Body::from(body));
                *response.headers_mut() = headers;
                let kind = HeaderValue::from_static(accept::content_type(format));
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                response
            }
            RanPage::Unchanged(headers) => {
                let mut response = StatusCode::NOT_MODIFIED.into_response();
                response.headers_mut().extend(headers);
                response
            }
            RanPage::Before(response) | RanPage::Export(response) => response,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A validator is known by its opaque part, whatever its strength, in a list as alone; `*` knows none.
    #[test]
    fn validators_compare_weakly() {
        let known = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static(text));
            Validators::of(&headers)
        };
        for text in ["\"j1\"", "W/\"j1\"", "\"x\", W/\"j1\""] {
            assert!(known(text).has(b"W/\"j1\""), "{text}");
        }
        for text in ["\"j2\"", "*"] {
            assert!(!known(text).has(b"W/\"j1\""), "{text}");
        }
        assert!(!Validators::of(&HeaderMap::new()).has(b"\"j1\""));
    }
}
