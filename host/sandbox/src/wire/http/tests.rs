use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::{mpsc, oneshot},
};

use super::*;
use crate::{memory::MemoryAccount, tenants::Tenants};

fn origin(base_url: &str) -> Result<Origin, String> {
    origin_within(base_url, &EgressPolicy::public_only())
}

fn origin_within(base_url: &str, egress: &EgressPolicy) -> Result<Origin, String> {
    let tenant = Tenants::default().of("company");
    let account = Account {
        tenant: tenant.clone(),
        sockets_max: 8,
        memory: MemoryAccount {
            company: tenant.clone(),
            company_max: 0,
            host: tenant,
            host_max: 0,
        },
    };
    let attach = [("X-API-Key".into(), "secret".into())];
    let within = Duration::from_secs(20);
    Origin::new(base_url, &attach, None, egress, within, account)
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

/// The first of a session.
fn first(origin: &Origin, request: HttpRequest) -> Result<Request<Full<Bytes>>, RefusedRequest> {
    origin.request(request, &mut Known::default())
}

/// Whatever path a connector names, the request stays below the base URL.
#[test]
fn a_path_stays_below_the_base_url() {
    let origin = origin("https://api.example.com/v2/").unwrap();
    let target =
        |path: &str| first(&origin, request(path, &[])).map(|built| built.uri().to_string());
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
    let headers = [("X-Asset-ID", "a"), ("x-api-key", "forged")];
    let built = first(&origin, request("/", &headers)).unwrap();
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
        let built = first(&origin, request("/", &[(bad, "x")]));
        assert!(built.is_err(), "{bad:?}");
    }
    assert!(first(&origin, request("/", &[("x-a", "line\nbreak")])).is_err());
    let value = |bytes: usize| "x".repeat(bytes);
    let of = |bytes: usize| first(&origin, request("/", &[("x-a", value(bytes).as_str()); 2]));
    assert!(of(REQUEST_HEAD_BYTES_MAX / 2 - 10).is_ok());
    assert!(of(REQUEST_HEAD_BYTES_MAX / 2).is_err());
    let mut long = request("/", &[]);
    long.method = "X".repeat(REQUEST_HEAD_BYTES_MAX + 1);
    assert!(first(&origin, long).is_err());
    let mut connect = request("/", &[]);
    connect.method = "CONNECT".into();
    assert!(first(&origin, connect).is_err());
}

/// A path that is refused is told as far as its query, which may have a key in it.
#[test]
fn queries_of_refused_paths_are_not_told() {
    let origin = origin("https://api.example.com/v2").unwrap();
    for path in ["/rows?key=hush&name=a b", "/../rows?key=hush"] {
        let RefusedRequest(told) = first(&origin, request(path, &[])).unwrap_err();
        assert!(told.contains("rows\"") && !told.contains("hush"), "{told}");
    }
}

/// A request without a body that may have one says so, and each says who sends it, unless its connector does.
#[test]
fn lengths_and_senders_are_said() {
    let origin = origin("https://api.example.com/v2").unwrap();
    let sent = |method: &str, body: &[u8], headers: &[(&str, &str)]| {
        let mut asked = request("/", headers);
        asked.method = method.into();
        asked.body = body.to_vec();
        let built = first(&origin, asked).unwrap();
        let all = |name: &str| {
            let values = built.headers().get_all(name).iter();
            let values = values.map(|value| value.to_str().unwrap().to_owned());
            values.collect::<Vec<_>>()
        };
        (all("content-length"), all("user-agent"))
    };
    let souk = vec![concat!("souk/", env!("CARGO_PKG_VERSION")).to_owned()];
    let (zero, none) = (vec!["0".to_owned()], Vec::<String>::new());
    for method in ["POST", "PUT", "PATCH"] {
        assert_eq!(
            sent(method, b"", &[]),
            (zero.clone(), souk.clone()),
            "{method}"
        );
        // Of a body the client says it.
        assert_eq!(
            sent(method, b"x", &[]),
            (none.clone(), souk.clone()),
            "{method}"
        );
    }
    for method in ["GET", "DELETE"] {
        assert_eq!(
            sent(method, b"", &[]),
            (none.clone(), souk.clone()),
            "{method}"
        );
    }
    let own = sent("POST", b"", &[("User-Agent", "own/1")]);
    assert_eq!(own, (zero, vec!["own/1".to_owned()]));
}

/// What was said before is sent as if it were new, and what differs is checked as the first was; little is kept of it.
#[test]
fn what_is_said_again_is_sent_again() {
    let origin = origin("https://api.example.com/v2").unwrap();
    let mut known = Known::default();
    let mut sent = |path: &str, headers: &[(&str, &str)]| {
        let built = origin.request(request(path, headers), &mut known).ok()?;
        let all = built.headers().iter();
        let mut all: Vec<_> = all
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .filter(|line| {
                let own = ["host: ", "x-api-key: ", "content-length: ", "user-agent: "];
                !own.iter().any(|own| line.starts_with(own))
            })
            .collect();
        all.insert(0, built.uri().to_string());
        Some(all)
    };
    let (one, two) = (("Authorization", "one"), ("authorization", "two"));
    let (kind, name) = (("X-Kind", "k"), ("x-name", "n"));
    for _ in 0..2 {
        let all = ["/v2/a?b", "authorization: one", "x-kind: k"];
        assert_eq!(sent("/a?b", &[one, kind]).unwrap(), all);
    }
    let all = ["/v2/a?c", "authorization: two", "x-kind: k", "x-name: n"];
    assert_eq!(sent("/a?c", &[two, kind, name]).unwrap(), all);
    let all = ["/v2/a", "x-kind: k", "authorization: two"];
    assert_eq!(sent("/a", &[kind, two]).unwrap(), all);
    assert_eq!(sent("/a", &[]).unwrap(), ["/v2/a"]);
    assert!(sent("/a/..", &[]).is_none() && sent("/", &[("host", "k")]).is_none());
    assert!(sent("/", &[("X-Kind", "k\n")]).is_none());
    let long = "x".repeat(KNOWN_HEADER_BYTES_MAX);
    for _ in 0..2 {
        let all = sent("/", &[("x-long", long.as_str()); KNOWN_HEADERS_MAX + 2]).unwrap();
        assert_eq!(all.len(), 1 + KNOWN_HEADERS_MAX + 2);
    }
    sent("/", &[kind; 2 * KNOWN_HEADERS_MAX]).unwrap();
    assert_eq!(known.headers.len(), KNOWN_HEADERS_MAX);
    assert!(known.headers.iter().all(|header| header.value == "k"));
}

/// Sessions of one thread ask over the same connections, which are closed with the last of them.
#[tokio::test]
async fn connections_are_shared_at_home() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let egress = EgressPolicy::public_only().allow_socket(address);
    let origin = Arc::new(origin_within(&format!("http://{address}"), &egress).unwrap());
    let (accepts, mut accepted) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (is_open, closed) = oneshot::channel::<()>();
            accepts.send(closed).unwrap();
            tokio::spawn(async move {
                let _is_open = is_open;
                let mut asked = [0; 4 << 10];
                while let Ok(1..) = stream.read(&mut asked).await {
                    let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
                    stream.write_all(answer).await.unwrap();
                }
            });
        }
    });
    let ask = async |session: &mut HttpOrigin| {
        let mut request = request("/", &[]);
        request.timeout_ms = 20_000;
        let checked = session.checked(request).unwrap();
        checked.exchange(Instant::now()).await.unwrap().0.status
    };
    let (here, elsewhere) = (1, 2);
    let at = |home| HttpOrigin::new(origin.clone(), home);
    let (mut one, mut other) = (at(here), at(here));
    assert_eq!(ask(&mut one).await, 204);
    assert_eq!(ask(&mut other).await, 204);
    assert_eq!(ask(&mut one).await, 204);
    let of_both = accepted.recv().await.unwrap();
    assert!(accepted.try_recv().is_err());
    drop((one, other));
    assert!(of_both.await.is_err());
    let (mut one, mut other) = (at(here), at(elsewhere));
    for session in [&mut one, &mut other] {
        assert_eq!(ask(session).await, 204);
        assert!(accepted.recv().await.is_some());
    }
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
