//! HTTP requests to one origin, over connections kept alive for the sessions of one thread. A connector names a path below the base URL; it never leaves
//! it, and it says nothing about the connection or in somebody else's name. A response is read no further than asked for.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header, uri::PathAndQuery};
use http_body_util::Full;
use parking_lot::Mutex;
use souk_outbound::{
    Bounds, Counts, EgressPolicy, Error, ErrorKind, HostClient, Peak, Reach, Trust, WeakHostClient,
};
use url::Url;

use super::Account;
use crate::{
    fault::MEMORY_EXHAUSTED,
    memory::{HeldMemory, hold},
    v1::{Header, HttpAnswer, HttpRequest},
};

/// Requests and responses of seller APIs are small; this bounds what a connector may ask for.
const RESPONSE_BYTES_MAX: u64 = 64 << 20;
const REQUEST_HEADERS_MAX: usize = 64;
const RESPONSE_HEAD_BYTES_MAX: usize = 408 << 10;
const PATH_BYTES_MAX: usize = 8 << 10;
/// Of a request's method and headers. They are on nobody's account.
const REQUEST_HEAD_BYTES_MAX: usize = 64 << 10;
/// Connections that the sessions of one thread keep alive as long as any of them lives.
const IDLE_MAX: usize = 8;
/// Where more requests are in flight at once, one for each of them, as long as there are as many, and nobody else of the company needs their
/// places: a fifth of what a company has. (A session has up to 64 fast ones, `pool/`. Those that end while as many lie idle are closed.)
const PEAK: Peak = Peak {
    connections: 128,
    idle: Duration::from_secs(2),
};
/// Headers that a session remembers, and the bytes of one: a statement of Trino's has ten, and tokens are no longer. They are on nobody's account.
const KNOWN_HEADERS_MAX: usize = 12;
const KNOWN_HEADER_BYTES_MAX: usize = 4 << 10;
/// Headers of each request that are neither the connector's nor attached: whom it is sent to, how long it is, and who sends it.
const OWN_HEADERS: usize = 3;
/// Of a connector that does not say so itself: firewalls before servers refuse who does not.
const USER_AGENT: &str = concat!("souk/", env!("CARGO_PKG_VERSION"));

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

/// Why no header of this name can be sent in a connector's stead (`x-souk-header`). `None`: it can.
pub fn refused_header(name: &str) -> Option<&'static str> {
    match name.parse::<HeaderName>() {
        Err(_) => Some("is no header name"),
        Ok(name) if HOST_HEADERS.contains(&name.as_str()) => Some("is the host's own"),
        Ok(_) => None,
    }
}

/// Methods whose requests have a body as a rule, so that a server wants to know of its absence.
fn may_have_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// A base URL and what is needed to speak to it: shared by all sessions of a data connection.
pub(crate) struct Origin {
    /// Whose bounds and policy those of the sessions have.
    client: HostClient<Account>,
    /// `host` or `host:port`, as the Host header has it.
    authority: HeaderValue,
    /// The base URL's path without its last slash.
    base_path: String,
    attach: Vec<(HeaderName, HeaderValue)>,
    /// The connections of each thread's sessions ([`home`](crate::pool::home)), as long as it has any.
    at_home: Mutex<Vec<(u64, WeakHostClient<Account>)>>,
}

impl Origin {
    /// `Err` says what is wrong with the settings.
    pub fn new(
        base_url: &str,
        attach: &[(String, String)],
        ca_pem: Option<&str>,
        egress: &EgressPolicy,
        connect_timeout: Duration,
        account: Account,
    ) -> Result<Origin, String> {
        let url =
            Url::parse(base_url).map_err(|error| format!("the base URL is no URL: {error}"))?;
        let (scheme, trust) = match url.scheme() {
            "http" => ("http", None),
            "https" => ("https", Some(Trust::verified(ca_pem)?)),
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
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let host = Uri::builder()
            .scheme(scheme)
            .authority(authority.as_str())
            .path_and_query("/")
            .build()
            .map_err(|error| format!("the base URL's host cannot be reached: {error}"))?;
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
        let reach = Reach {
            egress: egress.clone(),
            egress_plain: egress.clone(),
            trust,
            account,
        };
        let bounds = Bounds {
            connect: connect_timeout,
            head_bytes: RESPONSE_HEAD_BYTES_MAX,
            idle_per_host: IDLE_MAX,
            idle_total: IDLE_MAX,
            // As long as a session.
            idle: None,
        };
        Ok(Origin {
            client: HostClient::new(host, reach, bounds, PEAK),
            authority: HeaderValue::from_str(&authority)
                .map_err(|_| "the base URL's host cannot be sent".to_owned())?,
            base_path: url.path().trim_end_matches('/').to_owned(),
            attach,
            at_home: Mutex::default(),
        })
    }

    /// Sessions of one thread share their connections, which follow how many requests it has under way, however many sessions those are of.
    fn client_at(&self, home: u64) -> HostClient<Account> {
        let mut at_home = self.at_home.lock();
        let mut known = at_home.iter().filter(|(its_home, _)| *its_home == home);
        if let Some(client) = known.find_map(|(_, client)| client.upgrade()) {
            return client;
        }
        let client = self.client.apart();
        at_home.retain(|(_, client)| client.upgrade().is_some());
        at_home.push((home, client.downgrade()));
        client
    }

    /// Checks a connector's request and turns it into one to this origin.
    fn request(
        &self,
        request: HttpRequest,
        known: &mut Known,
    ) -> Result<Request<Full<Bytes>>, RefusedRequest> {
        let method = Method::from_bytes(request.method.as_bytes())
            .ok()
            .filter(|method| !matches!(*method, Method::CONNECT | Method::TRACE))
            .ok_or_else(|| {
                RefusedRequest(format!("the method {:?} is not sent", request.method))
            })?;
        let target = self.target(&request.path, &mut known.target)?;
        let says_no_length = request.body.is_empty() && may_have_body(&method);
        let mut built = Request::new(Full::new(Bytes::from(request.body)));
        *built.method_mut() = method;
        *built.uri_mut() = Uri::from(target);
        if request.headers.len() > REQUEST_HEADERS_MAX {
            return Err(RefusedRequest(format!(
                "more than {REQUEST_HEADERS_MAX} headers"
            )));
        }
        let header_bytes = |header: &Header| header.name.len() + header.value.len();
        let head_bytes = request.headers.iter().map(header_bytes).sum::<usize>();
        if request.method.len() + head_bytes > REQUEST_HEAD_BYTES_MAX {
            return Err(RefusedRequest(format!(
                "headers of more than {REQUEST_HEAD_BYTES_MAX} bytes"
            )));
        }
        let all = OWN_HEADERS + request.headers.len() + self.attach.len();
        let mut headers = HeaderMap::with_capacity(all);
        headers.insert(header::HOST, self.authority.clone());
        // Of a body that there is the client says its length. Of one that there is not it says nothing, and servers refuse that (411), Google's among them.
        if says_no_length {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        for (place, header) in request.headers.into_iter().enumerate() {
            let (name, value) = known.header(place, header)?;
            headers.append(name, value);
        }
        for (name, value) in &self.attach {
            headers.insert(name.clone(), value.clone());
        }
        headers
            .entry(header::USER_AGENT)
            .or_insert_with(|| HeaderValue::from_static(USER_AGENT));
        *built.headers_mut() = headers;
        Ok(built)
    }

    /// The base path and the connector's, which must stay below it.
    fn target(
        &self,
        path: &str,
        known: &mut Option<PathAndQuery>,
    ) -> Result<PathAndQuery, RefusedRequest> {
        if let Some(target) = &*known
            && target.as_str().strip_prefix(&self.base_path) == Some(path)
        {
            return Ok(target.clone());
        }
        let segments = path.split('?').next().unwrap_or(path);
        // What stands behind the question mark may be a key, and this is logged.
        let refuse = |reason: &str| RefusedRequest(format!("the path {segments:?} {reason}"));
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
            return Err(refuse(
                "holds a space, a control character, \\ or #, here or in its query",
            ));
        }
        if segments.split('/').any(is_dots) {
            return Err(refuse("leaves the base URL"));
        }
        let mut target = String::with_capacity(self.base_path.len() + path.len());
        target.push_str(&self.base_path);
        target.push_str(path);
        let target = PathAndQuery::try_from(target).map_err(|_| refuse("cannot be sent"))?;
        Ok(known.insert(target).clone())
    }
}

/// What a session's last request said, as it was sent. The next one says most of it again, which is then neither checked nor copied.
#[derive(Default)]
struct Known {
    target: Option<PathAndQuery>,
    /// By their places.
    headers: Vec<KnownHeader>,
}

struct KnownHeader {
    /// As the connector wrote it.
    written: String,
    name: HeaderName,
    value: HeaderValue,
}

impl Known {
    fn header(
        &mut self,
        place: usize,
        header: Header,
    ) -> Result<(HeaderName, HeaderValue), RefusedRequest> {
        if let Some(known) = self.headers.get(place)
            && known.written == header.name
            && known.value.as_bytes() == header.value.as_bytes()
        {
            return Ok((known.name.clone(), known.value.clone()));
        }
        let Header {
            name: written,
            value,
        } = header;
        let bytes = written.len() + value.len();
        // In lower case from here on.
        let name = HeaderName::from_bytes(written.as_bytes())
            .map_err(|_| RefusedRequest(format!("{written:?} is no header name")))?;
        if HOST_HEADERS.contains(&name.as_str()) {
            return Err(RefusedRequest(format!("the header {name} is the host's")));
        }
        let value = HeaderValue::try_from(value)
            .map_err(|_| RefusedRequest(format!("the value of header {name} cannot be sent")))?;
        if place < KNOWN_HEADERS_MAX && bytes <= KNOWN_HEADER_BYTES_MAX {
            let known = KnownHeader {
                written,
                name: name.clone(),
                value: value.clone(),
            };
            // Behind one that is too long there is no place.
            if place == self.headers.len() {
                self.headers.push(known);
            } else if let Some(before) = self.headers.get_mut(place) {
                *before = known;
            }
        }
        Ok((name, value))
    }
}

/// `.` and `..`, also percent-encoded, also with an encoded slash beside them.
fn is_dots(segment: &str) -> bool {
    if !segment.bytes().any(|byte| matches!(byte, b'.' | b'%')) {
        return false;
    }
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

/// What one session asks its origin.
pub(crate) struct HttpOrigin {
    origin: Arc<Origin>,
    client: HostClient<Account>,
    known: Known,
}

impl HttpOrigin {
    /// `home`: the session's.
    pub fn new(origin: Arc<Origin>, home: u64) -> HttpOrigin {
        HttpOrigin {
            client: origin.client_at(home),
            origin,
            known: Known::default(),
        }
    }

    /// Checks a request, which is not sent yet.
    pub fn checked(&mut self, mut request: HttpRequest) -> Result<Checked, RefusedRequest> {
        let bodies = Bodies::new(self.client.clone(), request.body.len());
        if bodies.is_err() {
            // It is not sent, and may wait for its turn to say so.
            request.body = Vec::new();
        }
        Ok(Checked {
            bodies,
            id: request.id,
            bytes_max: request.response_bytes_max.min(RESPONSE_BYTES_MAX) as usize,
            within: Duration::from_millis(u64::from(request.timeout_ms)),
            request: self.origin.request(request, &mut self.known)?,
        })
    }
}

/// A request that may be sent.
pub(crate) struct Checked {
    /// An error: its company has no memory for what it says.
    bodies: Result<Bodies, Error>,
    id: u32,
    bytes_max: usize,
    within: Duration,
    request: Request<Full<Bytes>>,
}

impl Checked {
    /// Sends it and reads the whole response, which may take its time from `now` on.
    pub async fn exchange(self, now: Instant) -> Result<(HttpAnswer, Option<HeldMemory>), Error> {
        let bodies = self.bodies?;
        let client = bodies.client.clone();
        let until = now + self.within;
        let exchange = client.send(self.request, until, self.bytes_max, bodies);
        let (answer, bodies) = exchange.await?;
        let answer = HttpAnswer {
            id: self.id,
            status: answer.head.status.as_u16(),
            headers: answer.head.headers,
            body: answer.body?,
        };
        Ok((answer, bodies.held))
    }
}

/// The memory of a request's body, which its connection has a copy of until it is answered, and of the response's.
struct Bodies {
    /// Has the account. The thread's own: what all sessions of a company count would be fetched from another core for each exchange.
    client: HostClient<Account>,
    sent: usize,
    held: Option<HeldMemory>,
}

impl Bodies {
    fn new(client: HostClient<Account>, sent: usize) -> Result<Bodies, Error> {
        let mut bodies = Bodies {
            client,
            sent,
            held: None,
        };
        bodies.hold(0)?;
        Ok(bodies)
    }
}

impl Counts for Bodies {
    fn hold(&mut self, bytes: usize) -> Result<(), Error> {
        let account = &self.client.account().memory;
        hold(&mut self.held, account, self.sent + bytes).map_err(|refused| {
            let message = refused.fault().message;
            Error::new(ErrorKind::Exhausted(MEMORY_EXHAUSTED), message)
        })
    }
}

#[cfg(test)]
mod tests;
