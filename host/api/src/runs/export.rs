//! A whole feed as one streamed answer. What a page costs and when is `souk_app::fetch::export`'s business; here is how it leaves.
//!
//! The first page decides about the status. An answer that ends is complete; where a later page fails, the connection is cut behind what was paid, so
//! that nobody takes a part for the whole. With checkpoints (NDJSON) the last line says why instead.

use super::unread_pages::UnreadPages;
use super::{max_credits, payer, refusal};
use crate::compression::{Cut, Followed};
use crate::data::{Request, accept};
use crate::gate;
use crate::idempotency;
use crate::problem::FieldError;
use crate::refusals::INVALID_PARAMETER;
use crate::unread::Exporting;
use crate::{ApiState, Caller, Problem, RawBody};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::json;
use souk_app::context::carried;
use souk_app::fetch::Format;
use souk_app::fetch::export::{self, Inlet, Part};
use souk_app::products::EndpointSnapshot;
use souk_app::run::Payer;
use souk_domain::ids::CompanyId;
use souk_domain::time::Timestamp;
use souk_store::Cached;
use souk_store::audit::on_behalf;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::task::AbortHandle;

/// Exports under way of one company: each holds two pages of at most 16 MiB and a session of the seller's source.
pub const EXPORTS_MAX: u32 = 4;

const ROWS: HeaderName = HeaderName::from_static("x-export-rows");
const PAGES: HeaderName = HeaderName::from_static("x-export-pages");
const CREDITS: HeaderName = HeaderName::from_static("x-export-credits-used");

/// Streams all pages of an endpoint for `company`, which pays for each unless it owns it.
pub async fn export<T>(
    api: &ApiState,
    caller: &Caller,
    raw: &RawBody<T>,
    endpoint: Cached<EndpointSnapshot>,
    company: &CompanyId,
    mut wanted: Request,
) -> Result<Response, Problem> {
    let format = accept::of_export(&raw.parts.headers)?;
    if raw.parts.headers.contains_key(idempotency::HEADER) {
        let message =
            "an export is not repeated but continued, with cursor: send no Idempotency-Key";
        let error = FieldError::new("Idempotency-Key", "conflict", message);
        return Err(Problem::fields(INVALID_PARAMETER, vec![error]));
    }
    if wanted.has_checkpoints && format != Format::JsonLines {
        let message = "only NDJSON has room for checkpoints";
        let error = FieldError::new("checkpoints", "conflict", message);
        return Err(Problem::fields(INVALID_PARAMETER, vec![error]));
    }
    // A body there ends with its connection, whether that was cut or not.
    if !wanted.has_checkpoints && raw.parts.version < Version::HTTP_11 {
        let message = "a part of it could not be told from the whole over HTTP/1.0: ask by HTTP/1.1, all the way (nginx: proxy_http_version 1.1), \
                       or for NDJSON with checkpoints=true";
        let error = FieldError::new("export", "conflict", message);
        return Err(Problem::fields(INVALID_PARAMETER, vec![error]));
    }
    if wanted.choice.limit.is_none() {
        let most = u32::try_from(endpoint.row.written.details.max_limit);
        wanted.choice.limit = Some(most.unwrap_or(u32::MAX));
    }
    let place = caller.unread().begin_export(EXPORTS_MAX).ok_or_else(|| {
        Problem::busy(1)
            .worded(format!(
                "your company has {EXPORTS_MAX} exports under way; begin this one when one of them has ended"
            ))
            .detail("exhausted", "exports_exhausted")
    })?;

    let max_credits = max_credits(&raw.parts.headers)?;
    let (outlet, mut inlet) = export::channel();
    let id = endpoint.row.id.clone();
    let unread = UnreadPages::of(caller.unread().clone());
    let work = {
        let (api, caller, company) = (api.clone(), caller.clone(), company.clone());
        let unread = unread.clone();
        let choice = wanted.choice;
        tokio::spawn(carried(on_behalf(async move {
            let payer = Payer {
                company: &company,
                readers: Some(&*unread),
                max_credits,
                ..payer(&caller, None)
            };
            export::export(api.app(), &endpoint, &choice, &payer, format, outlet).await;
        })))
    };
    let work = Work(work.abort_handle());
    let told = refusal("endpoint", id.as_str());
    let first = match inlet.next().await {
        Some(first) => first.map_err(&told)?,
        None => return Err(Problem::internal("an export ended before it began")),
    };
    let pages = unread.clone();
    let sent = unread.clone();
    let cut = Cut::new(move || {
        let sent = sent.clone();
        // Who takes it too slowly is cut by that, and nobody is waited for longer than an export may take.
        let gone = async move { tokio::time::timeout(export::TIME_MAX, sent.gone()).await };
        gone.map(drop).boxed()
    });
    let followed = Followed {
        follow: Arc::new(move |bytes: Bytes| pages.counted(bytes.into())),
        cut: cut.clone(),
    };
    let sending = Sending {
        api: api.clone(),
        headers: raw.parts.headers.clone(),
        endpoint: id.to_string(),
        unread,
        cut,
        has_checkpoints: wanted.has_checkpoints,
        inlet,
        next: Next::Part(first),
        _work: work,
        _place: place,
    };
    let frames = stream::unfold(sending, Sending::frame).fuse();
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    response.extensions_mut().insert(followed);
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static(accept::content_type(format));
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    let trailers = format!("{ROWS}, {PAGES}, {CREDITS}");
    if let Ok(trailers) = HeaderValue::try_from(trailers) {
        headers.insert(header::TRAILER, trailers);
    }
    Ok(response)
}

/// Whoever hangs up wants no more pages.
struct Work(AbortHandle);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An export on its way out.
struct Sending {
    api: ApiState,
    /// Of the request: its key may be revoked while it lasts.
    headers: HeaderMap,
    endpoint: String,
    unread: Arc<UnreadPages>,
    /// With an error the listener drops what it has not written yet.
    cut: Arc<Cut>,
    has_checkpoints: bool,
    inlet: Inlet,
    next: Next,
    _work: Work,
    _place: Exporting,
}

enum Next {
    /// A page that is paid.
    Part(Part),
    Ask {
        rows: u64,
        pages: u64,
        credits: i64,
        cursor: String,
    },
    Trailers(HeaderMap),
    End,
}

type Sent = Option<(Result<Frame<Bytes>, axum::BoxError>, Sending)>;

impl Sending {
    async fn frame(mut self) -> Sent {
        loop {
            match std::mem::replace(&mut self.next, Next::End) {
                Next::Part(part) => return Some((Ok(self.page(part)), self)),
                Next::Ask {
                    rows,
                    pages,
                    credits,
                    cursor,
                } => match self.ask().await {
                    Ok(part) => self.next = Next::Part(part),
                    Err(problem) if self.has_checkpoints => {
                        let mut line = json!({"$checkpoint": {
                            "cursor": cursor, "rows": rows, "pages": pages, "credits_used": credits, "complete": false,
                            "error": {"code": problem.code(), "message": problem.message()},
                        }})
                        .to_string();
                        line.push('\n');
                        return Some((Ok(Frame::data(Bytes::from(line))), self));
                    }
                    Err(problem) => {
                        let error = format!("the export ends early: {}", problem.code());
                        let error = self.cut.end(error).await?;
                        return Some((Err(error.into()), self));
                    }
                },
                Next::Trailers(trailers) => return Some((Ok(Frame::trailers(trailers)), self)),
                Next::End => return None,
            }
        }
    }

    /// The next page, if whoever asked may still have it.
    async fn ask(&mut self) -> Result<Part, Problem> {
        let now = Timestamp::from(SystemTime::now());
        gate::still_passes(&self.api, &self.headers, now).await?;
        match self.inlet.next().await {
            Some(part) => part.map_err(refusal("endpoint", &self.endpoint)),
            None => Err(Problem::internal("an export ended before its last page")),
        }
    }

    fn page(&mut self, part: Part) -> Frame<Bytes> {
        let Part {
            mut bytes,
            rows,
            pages,
            credits,
            cursor,
            held,
        } = part;
        if self.has_checkpoints {
            let line = json!({"$checkpoint": {
                "cursor": cursor, "rows": rows, "pages": pages, "credits_used": credits, "complete": cursor.is_none(),
            }});
            bytes.extend_from_slice(line.to_string().as_bytes());
            bytes.push(b'\n');
        }
        self.next = match cursor {
            Some(cursor) => Next::Ask {
                rows,
                pages,
                credits,
                cursor,
            },
            None => {
                let mut trailers = HeaderMap::new();
                trailers.insert(ROWS, HeaderValue::from(rows));
                trailers.insert(PAGES, HeaderValue::from(pages));
                trailers.insert(CREDITS, HeaderValue::from(credits));
                Next::Trailers(trailers)
            }
        };
        let bytes = self.unread.counted(bytes);
        drop(held);
        Frame::data(bytes)
    }
}
