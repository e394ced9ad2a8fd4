//! Answers made smaller for clients that ask for it (`Accept-Encoding`: zstd, br, gzip).
//!
//! Only answers to reading that are worth it, and only for clients with a key: a page that a browser's cookie opened could have a stranger's
//! text beside its secrets, and their common length would tell of them. What Parquet has compressed is left alone. A worker compresses for
//! two milliseconds at a stretch, then others have their turn. Start reading at [`Wish`].

use crate::unread::{Charge, Tally};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, StatusCode, Version, header};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, StreamBody};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tower::{Layer, ServiceExt};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

/// A smaller answer fits into one packet as it is.
const BYTES_MIN: u64 = 1_024;
/// What is compressed between two looks at the clock: less than a millisecond even as gzip.
const STEP_BYTES: usize = 16 << 10;
/// Workers may be held for some milliseconds at most, and other answers are compressed beside this one.
const STRETCH: Duration = Duration::from_millis(2);
/// What a compressor takes at its fastest: windows, tables and what it has not handed out.
const COMPRESSOR_BYTES: u64 = 1 << 20;

/// What is compressed well, by how its content type begins.
const KINDS: [&str; 5] = [
    "application/json",
    "application/x-ndjson",
    "text/",
    "application/vnd.apache.arrow.stream",
    "application/javascript",
];

/// Among a response's extensions: what its bytes become, for who has to know when they have left. They are others than those that it was made of.
#[derive(Clone)]
pub struct Followed {
    pub follow: Arc<dyn Fn(Bytes) -> Bytes + Send + Sync>,
    pub cut: Arc<Cut>,
}

/// How a body is cut off behind its last byte. A compressor keeps the end of what it was given to itself, and an error would take that with it: so what
/// it compresses ends, and the error comes behind what it has made of it.
pub struct Cut {
    is_compressed: AtomicBool,
    error: OnceLock<String>,
    /// Once all bytes have left.
    gone: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

impl Cut {
    pub fn new(gone: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Arc<Cut> {
        Arc::new(Cut {
            is_compressed: AtomicBool::new(false),
            error: OnceLock::new(),
            gone: Box::new(gone),
        })
    }

    /// `None`: the body is to end, and is cut off behind. `Some`: the error that cuts it off, once all that was before it has left.
    pub async fn end(&self, error: String) -> Option<String> {
        if self.is_compressed.load(Ordering::Relaxed) {
            // It is cut off once.
            let _ = self.error.set(error);
            return None;
        }
        (self.gone)().await;
        Some(error)
    }

    /// Behind the last byte that was made of a body.
    async fn behind(&self) -> Option<axum::BoxError> {
        let error = self.error.get()?;
        (self.gone)().await;
        Some(error.clone().into())
    }
}

/// What a request asks for, if it may be answered compressed: its `Accept-Encoding`.
pub struct Wish(Option<Box<HeaderMap>>);

impl Wish {
    pub fn of<B>(request: &Request<B>) -> Wish {
        let headers = request.headers();
        let asks = headers.contains_key(header::ACCEPT_ENCODING);
        if !asks || request.method() != Method::GET || headers.contains_key(header::COOKIE) {
            return Wish(None);
        }
        let asked = headers.get_all(header::ACCEPT_ENCODING).iter();
        let asked = asked.map(|value| (header::ACCEPT_ENCODING, value.clone()));
        Wish(Some(Box::new(asked.collect())))
    }

    /// The answer compressed, if that was asked for and is worth it.
    pub async fn grant(self, response: Response, tally: Option<&Arc<Tally>>) -> Response {
        match self.0.filter(|_| is_worthwhile(&response)) {
            None => response,
            // Boxed: other requests need not have room for this.
            Some(asked) => Box::pin(compressed(*asked, response, tally)).await,
        }
    }
}

/// Fast rather than small: the workers' time is everybody's.
async fn compressed(
    asked: HeaderMap,
    mut response: Response,
    tally: Option<&Arc<Tally>>,
) -> Response {
    let headers = response.headers_mut();
    // The bytes will be others than those that it was made of.
    let weak = headers.get(header::ETAG).and_then(|tag| {
        let tag = tag.to_str().ok()?;
        let is_strong = tag.starts_with('"');
        is_strong.then(|| HeaderValue::try_from(format!("W/{tag}")).ok())?
    });
    if let Some(weak) = weak {
        headers.insert(header::ETAG, weak);
    }
    let followed = response.extensions_mut().remove::<Followed>();
    let response = response.map(|body| {
        Body::new(Stepped {
            body,
            left: Bytes::new(),
            since: None,
            _charge: tally.map(|tally| tally.take(COMPRESSOR_BYTES)),
        })
    });
    let mut request = Request::new(());
    *request.headers_mut() = asked;
    let mut response = Some(response);
    let answered = tower::service_fn(move |_| {
        let response = response.take().unwrap_or_default();
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let layer = CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        // That is judged already.
        .compress_when(|_: StatusCode, _: Version, _: &HeaderMap, _: &Extensions| true);
    let Ok(response) = layer.layer(answered).oneshot(request).await;
    match followed {
        Some(followed) => {
            followed.cut.is_compressed.store(true, Ordering::Relaxed);
            response.map(|body| {
                let frames = stream::unfold((body, followed), |(mut body, followed)| async {
                    let frame: Result<_, axum::BoxError> = match body.frame().await {
                        Some(Ok(frame)) => Ok(frame.map_data(|bytes| (followed.follow)(bytes))),
                        Some(Err(error)) => Err(error),
                        None => Err(followed.cut.behind().await?),
                    };
                    Some((frame, (body, followed)))
                });
                Body::new(StreamBody::new(frames.fuse()))
            })
        }
        None => response.map(Body::new),
    }
}

fn is_worthwhile(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let size = http_body::Body::size_hint(response.body());
    response.status() == StatusCode::OK
        && KINDS.iter().any(|begin| kind.starts_with(begin))
        && size.upper().is_none_or(|upper| upper >= BYTES_MIN)
}

/// A body in steps, with a pause for others after each stretch of them.
struct Stepped {
    body: Body,
    left: Bytes,
    /// When this stretch began.
    since: Option<Instant>,
    _charge: Option<Charge>,
}

impl http_body::Body for Stepped {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() > STRETCH {
            self.since = None;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        while self.left.is_empty() {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Pending => {
                    self.since = None;
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.left = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                Poll::Ready(end) => return Poll::Ready(end),
            }
        }
        let piece = match self.left.len() > STEP_BYTES {
            true => self.left.split_to(STEP_BYTES),
            // Whoever compresses keeps it until more comes, and a part of a frame would keep all of that.
            false => Bytes::copy_from_slice(&std::mem::take(&mut self.left)),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let left = self.left.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + left);
        }
        hint.set_lower(hint.lower() + left);
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body as _;

    fn stepped(bytes: usize) -> Stepped {
        Stepped {
            body: Body::from(vec![b'x'; bytes]),
            left: Bytes::new(),
            since: None,
            _charge: None,
        }
    }

    /// A large body comes whole, in steps, and tells its size until then.
    #[tokio::test]
    async fn a_body_comes_in_steps() {
        let mut body = stepped(STEP_BYTES * 2 + 1);
        assert_eq!(body.size_hint().exact(), Some(STEP_BYTES as u64 * 2 + 1));
        let mut sizes = Vec::new();
        while let Some(frame) = body.frame().await {
            sizes.push(frame.unwrap().into_data().unwrap().len());
        }
        assert_eq!(sizes, [STEP_BYTES, STEP_BYTES, 1]);
    }

    /// The last piece of a frame is none of its memory, which is free as soon as that has come.
    #[tokio::test]
    async fn a_frame_is_free_with_its_last_piece() {
        let frame = Bytes::from(vec![b'x'; STEP_BYTES * 2]);
        let mut body = Stepped {
            body: Body::from(frame.clone()),
            ..stepped(0)
        };
        let mut last = Bytes::new();
        while let Some(piece) = body.frame().await {
            last = piece.unwrap().into_data().unwrap();
        }
        assert_eq!(last.len(), STEP_BYTES);
        assert!(frame.is_unique());
    }

    /// After a stretch others have their turn.
    #[tokio::test]
    async fn a_stretch_ends() {
        let mut body = stepped(STEP_BYTES * 2);
        body.frame().await;
        body.since = Instant::now().checked_sub(STRETCH * 2);
        let polled = std::future::poll_fn(|context| {
            Poll::Ready(Pin::new(&mut body).poll_frame(context).is_pending())
        });
        assert!(polled.await);
        assert_eq!(
            body.frame()
                .await
                .unwrap()
                .unwrap()
                .into_data()
                .unwrap()
                .len(),
            STEP_BYTES
        );
    }

    /// Neither what is small, nor what failed, nor what is compressed already, nor what a cookie opened.
    #[tokio::test]
    async fn only_what_is_worth_it() {
        let wish = |method: Method, headers: &[(&'static str, &'static str)]| {
            let mut request = Request::builder().method(method);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            Wish::of(&request.body(()).unwrap())
        };
        let asks = ("accept-encoding", "gzip");
        let is_wished = |wish: Wish| wish.0.is_some();
        assert!(is_wished(wish(Method::GET, &[asks])));
        assert!(!is_wished(wish(Method::GET, &[])));
        assert!(!is_wished(wish(Method::POST, &[asks])));
        assert!(!is_wished(wish(Method::GET, &[asks, ("cookie", "a=b")])));
        for (status, kind, bytes, expected) in [
            (200, "application/json", 1_024, true),
            (200, "text/csv; charset=utf-8", 5_000, true),
            (200, "application/json", 1_023, false),
            (404, "application/json", 5_000, false),
            (200, "application/vnd.apache.parquet", 5_000, false),
        ] {
            let mut response = Response::new(Body::from(vec![b'x'; bytes]));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            headers.insert(header::ETAG, HeaderValue::from_static("\"a\""));
            let response = wish(Method::GET, &[asks]).grant(response, None).await;
            let headers = response.headers();
            let case = format!("{status} {kind} {bytes}");
            assert_eq!(headers.contains_key("content-encoding"), expected, "{case}");
            let tag = headers[header::ETAG].to_str().unwrap().to_owned();
            assert_eq!(tag.starts_with("W/"), expected, "{case}");
            let sent = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(sent.len() < bytes, expected, "{case}");
        }
    }
}
