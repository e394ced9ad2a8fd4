//! Platforms on which posts are published, over real HTTP: WordPress and Ghost as far as a publisher sees them, receivers of messages and
//! signed requests, and ways for all of them to be wrong.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What was asked is there within moments; a loaded machine gets a thousand times as long.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);

pub const WORDPRESS_USER: &str = "ann";
pub const WORDPRESS_PASSWORD: &str = "aaaa bbbb cccc dddd";
pub const GHOST_KEY: &str =
    "64fb1f:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
pub const SLACK_PATH: &str = "/services/T0/B0/hunter2hunter2";
pub const WEBHOOK_SECRET: &str = "hunter2 hunter2 hunter2";

/// What to do with a request instead of answering it.
#[derive(Clone, Debug)]
pub enum Instead {
    /// With this status, header and body.
    Answer(u16, Option<(&'static str, &'static str)>, String),
    RedirectTo(String),
    /// Does what is asked, and closes the connection without a word.
    LoseTheAnswer,
    /// Takes the request and never answers.
    Silence,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    /// With its query.
    pub path: String,
    pub headers: HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

type Handler = fn(&mut Inner, &Asked) -> (u16, Value);

pub struct Inner {
    handler: Handler,
    asked: Vec<Asked>,
    instead: VecDeque<Instead>,
    posts: Vec<Value>,
    versions: usize,
}

pub struct Platform {
    pub address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
    task: tokio::task::JoinHandle<()>,
}

impl Platform {
    pub async fn wordpress() -> Platform {
        Platform::start(wordpress).await
    }

    pub async fn ghost() -> Platform {
        Platform::start(ghost).await
    }

    /// Takes messages at [`SLACK_PATH`].
    pub async fn slack() -> Platform {
        Platform::start(
            |_, asked| match (asked.path.as_str(), asked.body["text"].as_str()) {
                (SLACK_PATH, Some(_)) => (200, json!("ok")),
                (SLACK_PATH, None) => (400, json!("no_text")),
                _ => (404, json!("no_service")),
            },
        )
        .await
    }

    /// Takes requests that are signed with [`WEBHOOK_SECRET`], and calls every post 7.
    pub async fn webhook() -> Platform {
        Platform::start(|_, asked| match is_signed(asked) {
            true => (200, json!({"id": "7", "url": "https://example.com/7"})),
            false => (401, json!({"error": "the signature is wrong"})),
        })
        .await
    }

    async fn start(handler: Handler) -> Platform {
        let inner = Arc::new(Mutex::new(Inner {
            handler,
            asked: Vec::new(),
            instead: VecDeque::new(),
            posts: Vec::new(),
            versions: 0,
        }));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(answer).with_state(inner.clone());
        let task = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the platform serves");
        });
        Platform {
            address,
            inner,
            task,
        }
    }

    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Does this with the next requests, one after the other.
    pub fn next(&self, instead: impl IntoIterator<Item = Instead>) {
        self.lock().instead.extend(instead);
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.lock().asked.clone()
    }

    /// The posts that it has.
    pub fn posts(&self) -> Vec<Value> {
        self.lock().posts.clone()
    }

    /// Waits until `count` requests have arrived.
    pub async fn wait_for(&self, count: usize) -> Vec<Asked> {
        let since = Instant::now();
        loop {
            let asked = self.asked();
            if asked.len() >= count {
                return asked;
            }
            assert!(since.elapsed() < ARRIVES_WITHIN, "{asked:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(inner): State<Arc<Mutex<Inner>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let asked = Asked {
        method: method.to_string(),
        path: uri.to_string(),
        headers,
        text: String::from_utf8_lossy(&body).into_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let (instead, (status, body)) = {
        let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.asked.push(asked.clone());
        let instead = inner.instead.pop_front();
        let answered = match instead {
            None | Some(Instead::LoseTheAnswer) => (inner.handler)(&mut inner, &asked),
            Some(_) => (500, Value::Null),
        };
        (instead, answered)
    };
    let status = StatusCode::from_u16(status).expect("a status");
    match instead {
        None => match body {
            Value::String(text) => (status, text).into_response(),
            body => (status, axum::Json(body)).into_response(),
        },
        Some(Instead::Answer(status, header, body)) => {
            let status = StatusCode::from_u16(status).expect("a status");
            match header {
                Some(header) => (status, [header], body).into_response(),
                None => (status, body).into_response(),
            }
        }
        Some(Instead::RedirectTo(url)) => {
            (StatusCode::FOUND, [("location", url)], "").into_response()
        }
        // The connection is broken off: its task panics.
        Some(Instead::LoseTheAnswer) => panic!("the answer is lost, as the test wants it"),
        Some(Instead::Silence) => std::future::pending().await,
    }
}

fn wordpress(inner: &mut Inner, asked: &Asked) -> (u16, Value) {
    let credentials = STANDARD.encode(format!("{WORDPRESS_USER}:{WORDPRESS_PASSWORD}"));
    if asked.header("authorization") != format!("Basic {credentials}") {
        let message = format!("The password {} is wrong", asked.header("authorization"));
        return (
            401,
            json!({"code": "incorrect_password", "message": message}),
        );
    }
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    let Some(rest) = path.strip_prefix("/wp-json/wp/v2/") else {
        return (404, json!({"code": "rest_no_route"}));
    };
    let link = |id: usize| json!({"id": id, "link": format!("https://blog.example.com/?p={id}")});
    let written = |id: usize| {
        let mut post = asked.body.clone();
        post["id"] = id.into();
        post["content"] = json!({"raw": post["content"]});
        post
    };
    match (asked.method.as_str(), rest) {
        ("GET", "users/me") => {
            let name = json!({"name": "Ann", "capabilities": {"edit_posts": true}});
            (200, name)
        }
        ("GET", "posts") => {
            let wanted = query.split("search=").nth(1).unwrap_or_default();
            let holds = |post: &&Value| post["content"].to_string().contains(wanted);
            let found: Vec<_> = inner.posts.iter().filter(holds).cloned().collect();
            (200, found.into())
        }
        ("POST", "tags") => (201, json!({"id": 3})),
        ("POST", "posts") => {
            let id = inner.posts.len() + 1;
            inner.posts.push(written(id));
            (201, link(id))
        }
        ("POST", one) => {
            let id = one.strip_prefix("posts/").and_then(|id| id.parse().ok());
            match id.and_then(|id: usize| Some((id, inner.posts.get_mut(id.checked_sub(1)?)?))) {
                Some((id, post)) => {
                    *post = written(id);
                    (200, link(id))
                }
                None => (404, json!({"code": "rest_post_invalid_id"})),
            }
        }
        _ => (405, Value::Null),
    }
}

fn ghost(inner: &mut Inner, asked: &Asked) -> (u16, Value) {
    if let Err(why) = check_token(asked.header("authorization")) {
        return (
            401,
            json!({"errors": [{"message": format!("Invalid token: {why}")}]}),
        );
    }
    let path = asked.path.split('?').next().unwrap_or_default();
    let Some(rest) = path.strip_prefix("/ghost/api/admin/posts/") else {
        return (404, json!({"errors": [{"message": "Resource not found"}]}));
    };
    let rest = rest.trim_end_matches('/');
    let place = match rest.strip_prefix("slug/") {
        Some(slug) => inner.posts.iter().position(|post| post["slug"] == slug),
        None => inner.posts.iter().position(|post| post["id"] == rest),
    };
    let posts = |post: &Value| (200, json!({"posts": [post]}));
    match (asked.method.as_str(), rest, place) {
        ("GET", "", _) => (200, json!({"posts": []})),
        ("GET", _, Some(place)) => posts(&inner.posts[place]),
        ("POST", "", _) => {
            let id = format!("{:024x}", inner.posts.len() + 1);
            inner.posts.push(json!({"id": id}));
            let place = inner.posts.len() - 1;
            posts(inner.write(place, asked))
        }
        ("PUT", _, Some(place)) => {
            if inner.posts[place]["updated_at"] != asked.body["posts"][0]["updated_at"] {
                return (409, json!({"errors": [{"message": "Saving failed!"}]}));
            }
            posts(inner.write(place, asked))
        }
        _ => (404, json!({"errors": [{"message": "Resource not found"}]})),
    }
}

impl Inner {
    fn write(&mut self, place: usize, asked: &Asked) -> &Value {
        self.versions += 1;
        let mut post = asked.body["posts"][0].clone();
        post["id"] = self.posts[place]["id"].clone();
        post["updated_at"] = format!("2026-11-22T10:00:00.{:03}Z", self.versions).into();
        let slug = post["slug"].as_str().unwrap_or_default();
        post["url"] = format!("https://ghost.example.com/{slug}/").into();
        self.posts[place] = post;
        &self.posts[place]
    }
}

/// As Ghost checks it: signature, audience, and a life of at most five minutes around now.
fn check_token(header: &str) -> Result<(), &'static str> {
    let (id, secret) = GHOST_KEY.split_once(':').ok_or("no key")?;
    let key: Vec<u8> = (0..secret.len() / 2)
        .filter_map(|place| u8::from_str_radix(&secret[2 * place..2 * place + 2], 16).ok())
        .collect();
    let token = header.strip_prefix("Ghost ").ok_or("no token")?;
    let (signed, signature) = token.rsplit_once('.').ok_or("no signature")?;
    if URL_SAFE_NO_PAD.encode(hmac_sha256(&key, signed)) != signature {
        return Err("the signature is wrong");
    }
    let (head, claims) = signed.split_once('.').ok_or("no claims")?;
    let read = |part: &str| -> Value {
        let bytes = URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    };
    let (head, claims) = (read(head), read(claims));
    if head["alg"] != "HS256" || head["kid"] != id || claims["aud"] != "/admin/" {
        return Err("the head or the audience is wrong");
    }
    let seconds = |name: &str| claims[name].as_i64().unwrap_or_default();
    let now = now_seconds();
    let (issued, expires) = (seconds("iat"), seconds("exp"));
    match (issued - now).abs() < 60 && expires > now && expires - issued <= 300 {
        true => Ok(()),
        false => Err("it is not for now"),
    }
}

fn is_signed(asked: &Asked) -> bool {
    let (id, timestamp) = (
        asked.header("webhook-id"),
        asked.header("webhook-timestamp"),
    );
    let signed = format!("{id}.{timestamp}.{}", asked.text);
    let expected = STANDARD.encode(hmac_sha256(WEBHOOK_SECRET.as_bytes(), &signed));
    let sent = timestamp.parse::<i64>().unwrap_or_default();
    asked.header("webhook-signature") == format!("v1,{expected}")
        && (sent - now_seconds()).abs() < 60
        && !id.is_empty()
}

fn hmac_sha256(key: &[u8], signed: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(signed.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn now_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

/// What a server does that is none.
#[derive(Clone, Copy, Debug)]
pub enum Raw {
    /// A body that has no end.
    Endless,
    /// A head that has none.
    EndlessHead,
    /// Speaks another protocol.
    Garbage,
    /// Closes at once.
    Closes,
    /// A byte of the answer each second.
    Drips,
    /// Ends before the length that it has told.
    PromisesMore,
    /// Goes on behind the length that it has told, with an answer to a question that nobody has asked, and keeps the connection.
    PromisesLess,
    /// Tells two lengths.
    TwoLengths,
    /// A piece without a length.
    NoLength,
    /// A piece that is longer than anything, and has no end.
    LargePiece,
}

/// A server that misbehaves byte by byte, on every connection.
pub struct RawServer {
    pub address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl RawServer {
    pub async fn start(raw: Raw) -> RawServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(misbehave(stream, raw));
            }
        });
        RawServer { address, task }
    }

    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Until the client goes.
async fn misbehave(mut stream: TcpStream, raw: Raw) {
    let mut request = vec![0; 16 << 10];
    if stream.read(&mut request).await.is_err() {
        return;
    }
    let (head, rest, pause) = match raw {
        Raw::Endless => (
            "HTTP/1.1 200 OK\r\n\r\n",
            vec![b'x'; 64 << 10],
            Duration::ZERO,
        ),
        Raw::EndlessHead => (
            "HTTP/1.1 200 OK\r\n",
            b"x-more: more\r\n".repeat(1_000),
            Duration::ZERO,
        ),
        Raw::Garbage => (
            "SSH-2.0-OpenSSH_9.9\r\n",
            vec![0; 16],
            Duration::from_secs(1),
        ),
        Raw::Closes => return,
        Raw::Drips => (
            "HTTP/1.1 200 OK\r\ncontent-length: 600\r\n\r\n",
            vec![b'{'],
            Duration::from_secs(1),
        ),
        Raw::PromisesMore => (
            "HTTP/1.1 200 OK\r\ncontent-length: 600\r\n\r\n{\"id\": 7}",
            Vec::new(),
            Duration::ZERO,
        ),
        Raw::PromisesLess => (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 201 Created\r\ncontent-length: 17\r\n\r\n{\"id\": \"unasked\"}",
            Vec::new(),
            Duration::ZERO,
        ),
        Raw::TwoLengths => (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 9\r\n\r\n{\"id\": 7}",
            Vec::new(),
            Duration::ZERO,
        ),
        Raw::NoLength => (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nmany\r\n{\"id\": 7}\r\n0\r\n\r\n",
            Vec::new(),
            Duration::ZERO,
        ),
        Raw::LargePiece => (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n",
            vec![b'x'; 64 << 10],
            Duration::ZERO,
        ),
    };
    if stream.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    if matches!(raw, Raw::PromisesLess) {
        // The connection stays, so that whoever asks again on it finds the other answer waiting.
        while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
            if stream.write_all(head.as_bytes()).await.is_err() {
                return;
            }
        }
        return;
    }
    if rest.is_empty() {
        let _ = stream.shutdown().await;
        while stream.read(&mut request).await.is_ok_and(|read| read > 0) {}
        return;
    }
    while stream.write_all(&rest).await.is_ok() {
        tokio::time::sleep(pause).await;
    }
}
