//! What the clients promise, over real sockets. [`Either`] is where both promise the same.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Weak, mpsc};
use std::time::Instant;

use http::Uri;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::*;
use crate::testing::{Ca, Server};
use crate::{EgressPolicy, HostClient, Lends, Lookups, OwnOfEach, Peak, Trust};

mod kept;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
/// Longer than anything takes here, on whatever machine.
const AMPLE: Duration = Duration::from_secs(60);
const BOUNDS: Bounds = Bounds {
    connect: AMPLE,
    head_bytes: 8 << 10,
    idle_per_host: 2,
    idle_total: 8,
    idle: None,
};
/// Nothing beyond the bound.
const NO_PEAK: Peak = Peak {
    connections: BOUNDS.idle_per_host,
    idle: AMPLE,
};

fn loopback() -> EgressPolicy {
    EgressPolicy::public_only().allow_network("127.0.0.0/8".parse().unwrap())
}

fn reach(egress: EgressPolicy) -> Reach {
    Reach {
        egress: egress.clone(),
        egress_plain: egress,
        trust: Some(Trust::verified(None).unwrap()),
        account: Own,
    }
}

fn trusting(ca: &Ca) -> Client {
    let trust = Some(Trust::verified(Some(&ca.pem())).unwrap());
    let reach = Reach {
        trust,
        ..reach(loopback())
    };
    Client::new(reach, BOUNDS)
}

async fn get<A: Account>(client: &Client<A>, url: &str) -> Result<Answer, Error> {
    let request = Request::get(url).body(Full::default()).unwrap();
    client.send(request, AMPLE, 1 << 10).await
}

async fn status<A: Account>(client: &Client<A>, url: &str) -> u16 {
    get(client, url).await.unwrap().head.status.as_u16()
}

async fn kind<A: Account>(client: &Client<A>, url: &str) -> ErrorKind {
    get(client, url).await.unwrap_err().kind
}

enum Either<A: Account = Own> {
    Any(Client<A>),
    One(HostClient<A>),
}

/// A client of each kind.
fn both<A: Account>(url: &str, reach: Reach<A>) -> [Either<A>; 2] {
    let host: Uri = url.parse().unwrap();
    [
        Either::Any(Client::new(reach.clone(), BOUNDS)),
        Either::One(HostClient::new(host, reach, BOUNDS, NO_PEAK)),
    ]
}

impl<A: Account> Either<A> {
    async fn get(&self, url: &str, within: Duration) -> Result<Answer, Error> {
        let uri: Uri = url.parse().unwrap();
        let host = uri.authority().unwrap().to_string();
        let request = Request::get(match self {
            Either::Any(_) => uri,
            Either::One(_) => Uri::from(uri.into_parts().path_and_query.unwrap()),
        });
        let request = request.header("host", host).body(Full::default()).unwrap();
        match self {
            Either::Any(client) => client.send(request, within, 1 << 10).await,
            Either::One(client) => {
                let until = Instant::now() + within;
                let sent = client.send(request, until, 1 << 10, ());
                sent.await.map(|(answer, ())| answer)
            }
        }
    }
}

/// However much comes at once, others on the thread that reads it have their turns in between.
#[tokio::test]
async fn others_have_their_turns_while_much_is_read() {
    const HINTS: usize = 8 << 10;
    let hint = format!(
        "HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n",
        "x".repeat(1 << 10)
    );
    let hints = hint.repeat(HINTS);
    let server = Server::start([hints.as_bytes(), OK].concat()).await;
    let client = Client::new(reach(loopback()), BOUNDS);
    let url = server.url("http", "127.0.0.1");
    let turns = Cell::new(0);
    let others = async {
        while turns.get() < usize::MAX {
            turns.set(turns.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answered = status(&client, &url) => assert_eq!(answered, 200),
        () = others => panic!("they have no end"),
    }
    // One after each 64 KiB, if the kernel always had some.
    let turns = turns.get();
    assert!(turns >= hints.len() / (128 << 10), "{turns}");
}

/// A server that says without end that its answer is still to come is told as one that does not answer, long before the time is over.
#[tokio::test]
async fn an_answer_that_never_begins_ends_its_request() {
    let server = Server::start("HTTP/1.1 100 Continue\r\n\r\n".repeat(100_000)).await;
    let url = server.url("http", "127.0.0.1");
    let host = url.parse().unwrap();
    let client = Either::One(HostClient::new(host, reach(loopback()), BOUNDS, NO_PEAK));
    let error = client.get(&url, AMPLE).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::BadResponse, "{error}");
    server.wait_open(0).await;
}

/// A company whose names are never answered keeps none from looking up theirs, and the host none of its own.
#[tokio::test]
async fn names_of_each_are_looked_up_apart() {
    let one = OwnOfEach::default();
    let places = one.lookups().places.clone();
    let silent = places.try_acquire_many_owned(2).unwrap();
    assert!(one.clone().lookups().places.try_acquire().is_err());
    assert!(one.apart().lookups().places.try_acquire().is_ok());
    assert!(Own.lookups().places.try_acquire().is_ok());
    drop(silent);
}

/// Two companies that send to one receiver do so over connections of their own, each over its own again and again.
#[tokio::test]
async fn clients_of_different_keys_share_no_connection() {
    let server = Server::start(OK).await;
    let clients = Clients::<&str>::new(reach(loopback()), BOUNDS);
    for _ in 0..3 {
        for company in ["one", "other"] {
            let client = clients.of(&company);
            assert_eq!(status(&client, &server.url("http", "127.0.0.1")).await, 200);
        }
    }
    assert_eq!(server.accepted(), 2);
    assert_eq!(clients.of(&"one").open(), 2);
}

/// Clients that send nothing are forgotten with their connections, those in use are not.
#[tokio::test]
async fn clients_are_not_remembered_without_end() {
    let server = Server::start(OK).await;
    let clients = Clients::<usize>::new(reach(loopback()), BOUNDS);
    let used = clients.of(&0);
    status(&clients.of(&1), &server.url("http", "127.0.0.1")).await;
    for key in 2..=CLIENTS_MAX {
        clients.of(&key);
    }
    assert!(clients.by_key.lock().len() <= CLIENTS_MAX);
    assert!(Arc::ptr_eq(&used, &clients.of(&0)));
    server.wait_open(0).await;
}

/// Whether an address is written into the URL or a name leads to it: it is judged, and what is refused is not dialled.
#[tokio::test]
async fn every_address_is_judged() {
    let server = Server::start(OK).await;
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        for scheme in ["http", "https"] {
            let url = server.url(scheme, host);
            for client in both(&url, reach(EgressPolicy::public_only())) {
                let refused = client.get(&url, AMPLE).await.unwrap_err();
                assert_eq!(refused.kind, ErrorKind::EgressRefused, "{url}");
            }
        }
    }
    assert_eq!(server.accepted(), 0);
}

/// Where bytes travel in the open may be a narrower matter than where they travel protected.
#[tokio::test]
async fn each_scheme_has_its_policy() {
    let ca = Ca::new();
    let plain = Server::start(OK).await;
    let protected = Server::start_tls(OK, &ca.leaf("127.0.0.1")).await;
    let reach = Reach {
        egress_plain: EgressPolicy::public_only(),
        trust: Some(Trust::verified(Some(&ca.pem())).unwrap()),
        ..reach(loopback())
    };
    let client = Client::new(reach.clone(), BOUNDS);
    let url = plain.url("http", "127.0.0.1");
    assert_eq!(kind(&client, &url).await, ErrorKind::EgressRefused);
    let url = protected.url("https", "127.0.0.1");
    assert_eq!(status(&client, &url).await, 200);
    let trust = None;
    let client = Client::new(Reach { trust, ..reach }, BOUNDS);
    assert_eq!(kind(&client, &url).await, ErrorKind::Unreachable);
}

/// A server whose certificate leads to a trusted authority and names the host is asked; any other never sees the request.
#[tokio::test]
async fn only_trusted_servers_are_asked() {
    let (ca, other) = (Ca::new(), Ca::new());
    let server = Server::start_tls(OK, &ca.leaf("localhost")).await;
    let right = server.url("https", "localhost");
    assert_eq!(status(&trusting(&ca), &right).await, 200);
    assert_eq!(server.heads().len(), 1);
    let wrong_name = server.url("https", "127.0.0.1");
    assert_eq!(kind(&trusting(&ca), &wrong_name).await, ErrorKind::Tls);
    assert_eq!(kind(&trusting(&other), &right).await, ErrorKind::Tls);
    let public = Client::new(reach(loopback()), BOUNDS);
    let refused = get(&public, &right).await.unwrap_err();
    assert!(refused.to_string().contains("certificate"), "{refused}");
    assert_eq!(server.heads().len(), 1);
}

/// What a redirect points to was not checked, and is not what was asked for.
#[tokio::test]
async fn redirects_are_answers() {
    let elsewhere = Server::start(OK).await;
    let location = elsewhere.url("http", "127.0.0.1");
    let answer = format!("HTTP/1.1 302 x\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    let server = Server::start(answer).await;
    let url = server.url("http", "127.0.0.1");
    for client in both(&url, reach(loopback())) {
        assert_eq!(client.get(&url, AMPLE).await.unwrap().head.status, 302);
    }
    assert_eq!(elsewhere.accepted(), 0);
}

/// Heads are read so far and no further.
#[tokio::test]
async fn heads_are_bounded() {
    let head = |lines: String| format!("HTTP/1.1 200 x\r\n{lines}content-length: 0\r\n\r\n");
    let long = |bytes: usize| head(format!("x-long: {}\r\n", "x".repeat(bytes)));
    let many = |count: usize| head("x-many: x\r\n".repeat(count - 1));
    for (answer, fits) in [
        (long(BOUNDS.head_bytes / 2), true),
        (long(BOUNDS.head_bytes * 2), false),
        (many(100), true),
        (many(101), false),
    ] {
        let server = Server::start(answer).await;
        let url = server.url("http", "127.0.0.1");
        for client in both(&url, reach(loopback())) {
            match client.get(&url, AMPLE).await {
                Ok(answer) => assert!(fits, "{} headers", answer.head.headers.len()),
                Err(error) => assert!(!fits && error.kind == ErrorKind::BadResponse, "{error}"),
            }
        }
    }
}

/// Of a body that is too long, nothing is given; the status still is. The connection is not used again.
#[tokio::test]
async fn bodies_are_bounded() {
    let endless = b"HTTP/1.1 202 x\r\ncontent-length: 99999999999\r\n\r\n{}".to_vec();
    let server = Server::start([endless, vec![b'x'; 1 << 10]].concat()).await;
    let url = server.url("http", "127.0.0.1");
    for client in both(&url, reach(loopback())) {
        let answer = client.get(&url, AMPLE).await.unwrap();
        assert_eq!(answer.head.status, 202);
        assert_eq!(answer.body.unwrap_err().kind, ErrorKind::BadResponse);
        server.wait_open(0).await;
    }
}

/// An answer that is cut short, or none at all, is an error.
#[tokio::test]
async fn broken_answers_are_errors() {
    for (broken, expected) in [
        (
            &b"HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\n{}"[..],
            ErrorKind::Reset,
        ),
        (b"HTTP/1.1 200", ErrorKind::Reset),
        (b"nonsense\r\n\r\n", ErrorKind::BadResponse),
        (b"", ErrorKind::Reset),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                let mut stream = listener.accept().unwrap().0;
                let mut lines = BufReader::new(&stream).lines();
                while !lines.next().unwrap().unwrap().is_empty() {}
                stream.write_all(broken).unwrap();
            }
        });
        for client in both(&url, reach(loopback())) {
            let error = match client.get(&url, AMPLE).await {
                Ok(answer) => answer.body.unwrap_err(),
                Err(error) => error,
            };
            assert_eq!(error.kind, expected, "{broken:?}: {error}");
        }
        server.join().unwrap();
    }
}

/// Of a body that ends with its connection nobody knows that it was all of it, unless TLS's last word says so (`close_notify`).
#[tokio::test]
async fn a_body_without_a_goodbye_is_an_error() {
    let ca = Ca::new();
    for says_goodbye in [true, false] {
        let config = ca.leaf("127.0.0.1").config(rustls::DEFAULT_VERSIONS);
        let answer = b"HTTP/1.1 200 x\r\n\r\n{}";
        let server = crate::testing::closing(config, answer, says_goodbye).await;
        let url = format!("https://{server}/");
        let reach = Reach {
            trust: Some(Trust::verified(Some(&ca.pem())).unwrap()),
            ..reach(loopback())
        };
        for client in both(&url, reach) {
            let body = client.get(&url, AMPLE).await.unwrap().body;
            match says_goodbye {
                true => assert_eq!(&body.unwrap()[..], b"{}"),
                false => assert_eq!(body.unwrap_err().kind, ErrorKind::Reset),
            }
        }
    }
}

/// Time runs out for one that says nothing, and its connection is closed.
#[tokio::test]
async fn silence_ends() {
    let server = Server::start("").await;
    let url = server.url("http", "127.0.0.1");
    for client in both(&url, reach(loopback())) {
        let silence = client.get(&url, Duration::from_millis(50)).await;
        assert_eq!(silence.unwrap_err().kind, ErrorKind::Timeout);
        server.wait_open(0).await;
    }
}

/// An answer that begins and does not end has its status all the same, and its connection is closed.
#[tokio::test]
async fn an_answer_that_does_not_end_has_begun() {
    let server = Server::start(b"HTTP/1.1 202 x\r\ncontent-length: 9\r\n\r\n{}").await;
    let client = Client::new(reach(loopback()), BOUNDS);
    let request = Request::get(server.url("http", "127.0.0.1"));
    let request = request.body(Full::default()).unwrap();
    // Longer than the head takes here, on whatever machine.
    let within = Duration::from_secs(3);
    let answer = client.send(request, within, 1 << 10).await.unwrap();
    assert_eq!(answer.head.status, 202);
    assert_eq!(answer.body.unwrap_err().kind, ErrorKind::Timeout);
    server.wait_open(0).await;
}

/// An account of a few sockets.
#[derive(Clone)]
struct Few {
    places: Arc<Semaphore>,
    lenders: Arc<Mutex<Vec<Weak<dyn Lends<OwnedSemaphorePermit>>>>>,
}

impl Few {
    fn of(sockets: usize) -> Few {
        Few {
            places: Arc::new(Semaphore::new(sockets)),
            lenders: Arc::default(),
        }
    }
}

impl Account for Few {
    type Place = OwnedSemaphorePermit;

    fn take_socket(&self) -> Result<Self::Place, Error> {
        let free = || self.places.clone().try_acquire_owned().ok();
        let lenders = || self.lenders.lock().clone().into_iter();
        let lent = || lenders().find_map(|lender| lender.upgrade()?.lend());
        let place = free().or_else(lent).or_else(free);
        place.ok_or_else(|| Error::new(ErrorKind::Exhausted("sockets"), "no place is left"))
    }

    fn may_borrow(&self, from: Weak<dyn Lends<Self::Place>>) {
        self.lenders.lock().push(from);
    }

    fn lookups(&self) -> Arc<Lookups> {
        Own.lookups()
    }
}

/// Each connection takes a place of the account as long as it lives, and without one nothing is dialled.
#[tokio::test]
async fn sockets_are_taken_from_the_account() {
    let server = Server::start(OK).await;
    let account = Few::of(3);
    let reach = Reach {
        egress: loopback(),
        egress_plain: loopback(),
        trust: None,
        account: account.clone(),
    };
    let url = server.url("http", "127.0.0.1");
    let make = || both(&url, reach.clone());
    let clients: Vec<_> = [make(), make()].into_iter().flatten().collect();
    for client in &clients[..3] {
        assert_eq!(client.get(&url, AMPLE).await.unwrap().head.status, 200);
    }
    // What is kept would make place.
    account.lenders.lock().clear();
    for client in make() {
        let refused = client.get(&url, AMPLE).await.unwrap_err();
        assert_eq!(refused.to_string(), "no place is left");
    }
    assert_eq!(
        (server.accepted(), account.places.available_permits()),
        (3, 0)
    );
    drop(clients);
    server.wait_open(0).await;
    assert_eq!(account.places.available_permits(), 3);
}

/// A peer that does not take what it is sent keeps no connection open, whether it has answered or not.
#[tokio::test]
async fn what_a_peer_does_not_take_is_let_go() {
    for answer in [OK, b""] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (ends, ended) = mpsc::channel::<()>();
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.read_exact(&mut [0]).unwrap();
            stream.write_all(answer).unwrap();
            // It reads nothing more until the end.
            let _ = ended.recv();
        });
        let account = Few::of(1);
        let reach = Reach {
            egress: loopback(),
            egress_plain: loopback(),
            trust: None,
            account: account.clone(),
        };
        let client = HostClient::new(url.parse().unwrap(), reach, BOUNDS, NO_PEAK);
        let body = Full::new(Bytes::from(vec![0; 32 << 20]));
        let request = Request::post(Uri::from_static("/")).body(body).unwrap();
        let within = match answer.is_empty() {
            true => Duration::from_millis(100),
            false => AMPLE,
        };
        let sent = client.send(request, Instant::now() + within, 1 << 10, ());
        let answered = tokio::time::timeout(AMPLE, sent).await.unwrap();
        assert_eq!(answered.is_ok(), !answer.is_empty());
        let free = async {
            while account.places.available_permits() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(AMPLE, free).await.unwrap();
        drop(ends);
        server.join().unwrap();
    }
}

/// The address in a URL of IPv6 is written in brackets.
#[tokio::test]
async fn addresses_of_ipv6_are_dialled() {
    let Ok(listener) = tokio::net::TcpListener::bind("[::1]:0").await else {
        return;
    };
    let address = listener.local_addr().unwrap();
    let client = Client::new(reach(EgressPolicy::public_only()), BOUNDS);
    let url = format!("http://{address}/");
    assert_eq!(kind(&client, &url).await, ErrorKind::EgressRefused);
    let client = Client::new(
        reach(EgressPolicy::public_only().allow_socket(address)),
        BOUNDS,
    );
    let hang_up = async { drop(listener.accept().await.unwrap()) };
    let (answer, ()) = tokio::join!(get(&client, &url), hang_up);
    assert_eq!(answer.unwrap_err().kind, ErrorKind::Reset);
}
