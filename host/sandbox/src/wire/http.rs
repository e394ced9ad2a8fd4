//! HTTP requests to one origin, over connections that are dialled like any other wire and kept alive
//! for one session. A connector names a path below the base URL; it never leaves it. No redirect is
//! followed, and a response is read no further than asked for.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, header, uri::PathAndQuery};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use url::Url;

use super::{Dialer, Stream, Trust, WireError, protect};
use crate::{
    source::TlsMode,
    v1::{Header, HttpRequest, HttpResponse, WireFault},
};

/// Requests and responses of seller APIs are small; this bounds what a connector may ask for.
const RESPONSE_BYTES_MAX: u64 = 64 << 20;
const REQUEST_HEADERS_MAX: usize = 64;
const RESPONSE_HEADERS_MAX: usize = 100;
const PATH_BYTES_MAX: usize = 8 << 10;

/// Headers about the connection itself, or about who is spoken to: the host's business.
const HOST_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A base URL and what is needed to speak to it: shared by all sessions of a data connection.
pub(crate) struct Origin {
    dialer: Dialer,
    trust: Option<Trust>,
    /// `host` or `host:port`, as the Host header has it.
    authority: HeaderValue,
    /// The base URL's path without its last slash.
    base_path: String,
    attach: Vec<(HeaderName, HeaderValue)>,
}

impl Origin {
    /// `Err` says what is wrong with the settings. `dialer` gives the policy; its address is set here.
    pub fn new(
        base_url: &str,
        attach: &[(String, String)],
        ca_pem: Option<&str>,
        mut dialer: Dialer,
    ) -> Result<Origin, String> {
        let url =
            Url::parse(base_url).map_err(|error| format!("the base URL is no URL: {error}"))?;
        let trust = match url.scheme() {
            "http" => None,
            "https" => Trust::new(TlsMode::VerifyFull, ca_pem)?,
            other => {
                return Err(format!(
                    "the base URL begins with {other}:, only https: and http: are spoken"
                ));
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the base URL holds credentials: give them as credentials".into());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("the base URL has a query or a fragment: paths are appended to it".into());
        }
        let host = url.host_str().ok_or("the base URL names no host")?;
        dialer.host = host.to_owned();
        dialer.port = url
            .port_or_known_default()
            .ok_or("the base URL has no port")?;
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let attach = attach
            .iter()
            .map(|(name, value)| {
                let mut value = HeaderValue::from_str(value)
                    .map_err(|_| format!("the value of header {name} cannot be sent"))?;
                value.set_sensitive(true);
                Ok((
                    name.parse()
                        .map_err(|_| format!("{name:?} is no header name"))?,
                    value,
                ))
            })
            .collect::<Result<_, String>>()?;
        Ok(Origin {
            dialer,
            trust,
            authority: HeaderValue::from_str(&authority)
                .map_err(|_| "the base URL's host cannot be sent".to_owned())?,
            base_path: url.path().trim_end_matches('/').to_owned(),
            attach,
        })
    }

    /// Checks a connector's request and turns it into one to this origin.
    fn request(&self, request: HttpRequest) -> Result<Request<Full<Bytes>>, RefusedRequest> {
        let method = Method::from_bytes(request.method.as_bytes())
            .ok()
            .filter(|method| !matches!(*method, Method::CONNECT | Method::TRACE))
            .ok_or_else(|| {
                RefusedRequest(format!("the method {:?} is not sent", request.method))
            })?;
        let target = self.target(&request.path)?;
        let mut built = Request::new(Full::new(Bytes::from(request.body)));
        *built.method_mut() = method;
        *built.uri_mut() = http::Uri::from(target);
        if request.headers.len() > REQUEST_HEADERS_MAX {
            return Err(RefusedRequest(format!(
                "more than {REQUEST_HEADERS_MAX} headers"
            )));
        }
        let headers = built.headers_mut();
        headers.insert(header::HOST, self.authority.clone());
        for Header { name, value } in &request.headers {
            let lower = name.to_ascii_lowercase();
            if HOST_HEADERS.contains(&lower.as_str()) {
                return Err(RefusedRequest(format!("the header {name:?} is the host's")));
            }
            let name = HeaderName::from_bytes(lower.as_bytes())
                .map_err(|_| RefusedRequest(format!("{name:?} is no header name")))?;
            let value = HeaderValue::from_str(value).map_err(|_| {
                RefusedRequest(format!("the value of header {name} cannot be sent"))
            })?;
            headers.append(name, value);
        }
        for (name, value) in &self.attach {
            headers.insert(name.clone(), value.clone());
        }
        Ok(built)
    }

    /// The base path and the connector's, which must stay below it.
    fn target(&self, path: &str) -> Result<PathAndQuery, RefusedRequest> {
        let refuse = |reason: &str| RefusedRequest(format!("the path {path:?} {reason}"));
        if !path.starts_with('/') {
            return Err(refuse("does not begin with /"));
        }
        if path.len() > PATH_BYTES_MAX {
            return Err(RefusedRequest(format!(
                "the path is longer than {PATH_BYTES_MAX} bytes"
            )));
        }
        if path
            .bytes()
            .any(|byte| byte <= b' ' || byte == 0x7f || byte == b'\\' || byte == b'#')
        {
            return Err(refuse("holds a space, a control character, \\ or #"));
        }
        let segments = path.split('?').next().unwrap_or(path);
        if segments.split('/').any(is_dots) {
            return Err(refuse("leaves the base URL"));
        }
        format!("{}{path}", self.base_path)
            .parse()
            .map_err(|_| refuse("cannot be sent"))
    }
}

/// `.` and `..`, also percent-encoded, also with an encoded slash beside them.
fn is_dots(segment: &str) -> bool {
    let lower = segment.to_ascii_lowercase();
    let plain = lower
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "/");
    plain.split('/').any(|part| {
        part.split(';')
            .next()
            .is_some_and(|name| name == "." || name == "..")
    })
}

/// A request that a connector may not make: its contract is broken.
#[derive(Debug)]
pub(crate) struct RefusedRequest(pub String);

/// The connections of one session to its origin.
#[derive(Clone)]
pub(crate) struct HttpOrigin {
    origin: Arc<Origin>,
    idle: Arc<Mutex<Vec<SendRequest<Full<Bytes>>>>>,
}

/// Connections that one session keeps alive: one for each request that it may have in flight.
const IDLE_MAX: usize = 8;

impl HttpOrigin {
    pub fn new(origin: Arc<Origin>) -> HttpOrigin {
        HttpOrigin {
            origin,
            idle: Arc::default(),
        }
    }

    /// Checks the request now; the returned future sends it and reads the whole response.
    pub fn send(
        &self,
        request: HttpRequest,
    ) -> Result<impl Future<Output = Result<HttpResponse, WireError>> + Send + use<>, RefusedRequest>
    {
        let id = request.id;
        let bytes_max = request.response_bytes_max.min(RESPONSE_BYTES_MAX) as usize;
        let timeout = Duration::from_millis(u64::from(request.timeout_ms));
        let request = self.origin.request(request)?;
        let this = self.clone();
        Ok(async move {
            tokio::time::timeout(timeout, this.exchange(id, request, bytes_max))
                .await
                .unwrap_or_else(|_| Err(WireError::new(WireFault::Timeout, "no response in time")))
        })
    }

    async fn exchange(
        self,
        id: u32,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<HttpResponse, WireError> {
        let (sender, response) = match self.reuse().await {
            // A kept connection may have been closed a moment ago. Only a request that was not
            // written at all is sent again.
            Some(mut sender) => match sender.try_send_request(request).await {
                Ok(response) => (sender, response),
                Err(mut error) => match error.take_message() {
                    Some(request) => self.first(request).await?,
                    None => return Err(http_error(error.into_error())),
                },
            },
            None => self.first(request).await?,
        };
        let (parts, body) = response.into_parts();
        if parts.headers.len() > RESPONSE_HEADERS_MAX {
            return Err(WireError::new(
                WireFault::BadResponse,
                format!("more than {RESPONSE_HEADERS_MAX} headers"),
            ));
        }
        let body = Limited::new(body, bytes_max)
            .collect()
            .await
            .map_err(|error| match error.downcast::<hyper::Error>() {
                Ok(error) => http_error(*error),
                Err(_) => WireError::new(
                    WireFault::BadResponse,
                    format!("the response is longer than {bytes_max} bytes"),
                ),
            })?;
        // The body was read to its end, so the connection is at a message's border.
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && !sender.is_closed() {
            idle.push(sender);
        }
        drop(idle);
        let headers = parts
            .headers
            .iter()
            .filter_map(|(name, value)| {
                Some(Header {
                    name: name.as_str().to_owned(),
                    value: value.to_str().ok()?.to_owned(),
                })
            })
            .collect();
        Ok(HttpResponse {
            id,
            status: parts.status.as_u16(),
            headers,
            body: body.to_bytes().to_vec(),
        })
    }

    async fn first(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(SendRequest<Full<Bytes>>, Response<Incoming>), WireError> {
        let mut sender = self.connect().await?;
        let response = sender.send_request(request).await.map_err(http_error)?;
        Ok((sender, response))
    }

    /// A connection that is still open, the one used last.
    async fn reuse(&self) -> Option<SendRequest<Full<Bytes>>> {
        if self.idle.lock().is_empty() {
            return None;
        }
        // A request that another thread hands over may be here before this thread has heard that the
        // seller closed a connection, however long ago: this lets it hear.
        tokio::task::yield_now().await;
        let mut idle = self.idle.lock();
        while let Some(sender) = idle.pop() {
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, WireError> {
        let socket = self.origin.dialer.socket()?;
        let stream = self.origin.dialer.dial().await?;
        let stream = match &self.origin.trust {
            Some(trust) => Stream::Tls(Box::new(
                protect(stream, trust, &self.origin.dialer.host).await?,
            )),
            None => Stream::Plain(stream),
        };
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(http_error)?;
        // Ends when the last sender is dropped, and notices at once when the peer closes.
        tokio::spawn(async move {
            let _socket = socket;
            let _ = connection.await;
        });
        Ok(sender)
    }
}

fn http_error(error: hyper::Error) -> WireError {
    let fault = if error.is_parse() || error.is_parse_too_large() {
        WireFault::BadResponse
    } else if error.is_timeout() {
        WireFault::Timeout
    } else {
        WireFault::Reset
    };
    let source = std::error::Error::source(&error)
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    WireError::new(fault, format!("{error}{source}"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::egress::EgressPolicy;

    fn origin(base_url: &str) -> Result<Origin, String> {
        let dialer = Dialer {
            host: String::new(),
            port: 0,
            egress: EgressPolicy::public_only(),
            connect_timeout: Duration::from_secs(1),
            account: None,
        };
        Origin::new(
            base_url,
            &[("X-API-Key".into(), "secret".into())],
            None,
            dialer,
        )
    }

    fn request(path: &str, headers: &[(&str, &str)]) -> HttpRequest {
        HttpRequest {
            id: 1,
            method: "POST".into(),
            path: path.into(),
            headers: headers
                .iter()
                .map(|(name, value)| Header {
                    name: (*name).into(),
                    value: (*value).into(),
                })
                .collect(),
            body: Vec::new(),
            timeout_ms: 1000,
            response_bytes_max: 1000,
        }
    }

    /// Whatever path a connector names, the request stays below the base URL.
    #[test]
    fn a_path_stays_below_the_base_url() {
        let origin = origin("https://api.example.com/v2/").unwrap();
        let target = |path: &str| {
            origin
                .request(request(path, &[]))
                .map(|built| built.uri().to_string())
        };
        assert_eq!(target("/").unwrap(), "/v2/");
        assert_eq!(target("/a/b?c=../d").unwrap(), "/v2/a/b?c=../d");
        assert_eq!(target("//evil.example/x").unwrap(), "/v2//evil.example/x");
        for bad in [
            "",
            "a",
            "http://evil/",
            "/..",
            "/../x",
            "/a/../../x",
            "/%2e%2e/x",
            "/.%2E/x",
            "/a/..%2fx",
            "/a\\..\\x",
            "/x y",
            "/x\r\nHost: evil",
            "/x#y",
            "/..;a/x",
            "@evil/",
        ] {
            assert!(target(bad).is_err(), "{bad:?}");
        }
    }

    /// The host speaks for itself; a connector cannot speak for it.
    #[test]
    fn headers_of_the_connection_are_the_hosts() {
        let origin = origin("http://api.example.com:8080").unwrap();
        let built = origin
            .request(request(
                "/",
                &[("X-Asset-ID", "a"), ("x-api-key", "forged")],
            ))
            .unwrap();
        assert_eq!(built.headers()["host"], "api.example.com:8080");
        assert_eq!(built.headers()["x-api-key"], "secret");
        assert_eq!(built.headers()["x-asset-id"], "a");
        for bad in [
            "Host",
            "connection",
            "Transfer-Encoding",
            "Content-Length",
            "Proxy-Authorization",
            "TE",
            "a b",
            "",
        ] {
            assert!(
                origin.request(request("/", &[(bad, "x")])).is_err(),
                "{bad:?}"
            );
        }
        assert!(
            origin
                .request(request("/", &[("x-a", "line\nbreak")]))
                .is_err()
        );
        let mut connect = request("/", &[]);
        connect.method = "CONNECT".into();
        assert!(origin.request(connect).is_err());
    }

    /// A seller may close a kept connection while this thread is busy, and the next request come from another thread: then it is sent
    /// on a new connection although nobody has told this thread yet.
    #[tokio::test]
    async fn a_connection_that_was_closed_meanwhile_is_replaced() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (close, closing) = std::sync::mpsc::channel::<()>();
        let (tell, closed) = std::sync::mpsc::channel::<()>();
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(&stream).lines();
                while !lines.next().unwrap().unwrap().is_empty() {}
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    .unwrap();
                let _ = closing.recv();
                drop(stream);
                tell.send(()).unwrap();
            }
        });
        let dialer = Dialer {
            host: String::new(),
            port: 0,
            egress: EgressPolicy::public_only().allow_socket(address),
            connect_timeout: Duration::from_secs(10),
            account: None,
        };
        let origin = Origin::new(&format!("http://{address}"), &[], None, dialer).unwrap();
        let origin = HttpOrigin::new(Arc::new(origin));
        let get = || {
            let mut get = request("/", &[]);
            get.method = "GET".into();
            get.timeout_ms = 10_000;
            origin.send(get).unwrap()
        };
        assert_eq!(get().await.unwrap().status, 200);
        assert_eq!(origin.idle.lock().len(), 1);
        // Blocks the thread, which hears of nothing meanwhile.
        close.send(()).unwrap();
        closed.recv().unwrap();
        assert_eq!(get().await.unwrap().status, 200);
        drop(close);
        server.join().unwrap();
    }

    #[test]
    fn base_urls_are_checked() {
        for bad in [
            "ftp://x/",
            "x",
            "https://user:pw@x/",
            "https://x/?a=b",
            "https://x/#a",
        ] {
            assert!(origin(bad).is_err(), "{bad:?}");
        }
    }
}
