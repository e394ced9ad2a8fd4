//! The listener over real sockets.

use super::*;
use axum::Router;
use axum::routing::{get, post};
use futures_util::stream;
use hyper::body::Bytes;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

fn options() -> Options {
    Options {
        workers: 2,
        connections_max: 16,
        connections_per_address_max: 16,
        proxies: Vec::new(),
        descriptors_max: i32::MAX,
        refusing_max: 8,
        paces: Paces::default(),
        idle: Duration::from_secs(3),
        busy_poll: Duration::from_micros(100),
    }
}

fn start(router: Router) -> Server {
    start_with(router, &options())
}

fn start_with(router: Router, options: &Options) -> Server {
    start_at("127.0.0.1:0", router, options)
}

fn start_at(address: &str, router: Router, options: &Options) -> Server {
    let listener = bind(address.parse().unwrap()).unwrap();
    let refuse = |status, _| {
        let mut answer = hyper::Response::new(b"{}".to_vec());
        *answer.status_mut() = status;
        answer
    };
    Server::start(listener, options, move || router.clone(), Arc::new(refuse)).unwrap()
}

async fn send(stream: &mut TcpStream, request: &str) {
    stream.write_all(request.as_bytes()).await.unwrap();
}

async fn read_to_end(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// Where one socket listens to both families, a client of IPv4 has the address that it has.
#[tokio::test]
async fn an_address_of_ipv4_is_one() {
    let told = get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() });
    let server = start_at("[::]:0", Router::new().route("/", told), &options());
    let address = ("127.0.0.1", server.address().port());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let from = stream.local_addr().unwrap().to_string();
    let request = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    send(&mut stream, request).await;
    let answer = read_to_end(stream).await;
    assert_eq!(answer.lines().last().unwrap(), from);
    server.stop();
}

#[tokio::test]
async fn connections_are_dealt_to_all_workers_and_the_peer_is_known() {
    let router = Router::new().route(
        "/",
        get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
            format!(
                "{}/{}",
                std::thread::current().name().unwrap_or(""),
                peer.ip()
            )
        }),
    );
    let server = start(router);
    let mut workers = std::collections::BTreeSet::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        send(
            &mut stream,
            "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
        )
        .await;
        workers.insert(read_to_end(stream).await.lines().last().unwrap().to_owned());
    }
    assert_eq!(
        Vec::from_iter(workers),
        ["worker-0/127.0.0.1", "worker-1/127.0.0.1"]
    );
    server.stop();
}

#[tokio::test]
async fn a_drain_finishes_what_is_in_flight_and_takes_nothing_new() {
    let begun = Arc::new(Notify::new());
    let says = begun.clone();
    let router = Router::new().route(
        "/",
        post(|body: String| async move {
            says.notify_one();
            tokio::time::sleep(Duration::from_millis(150)).await;
            body
        }),
    );
    let server = start(router);
    let mut idle = TcpStream::connect(server.address()).await.unwrap();
    let mut busy = TcpStream::connect(server.address()).await.unwrap();
    send(
        &mut busy,
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nwork",
    )
    .await;
    begun.notified().await;

    assert_eq!(server.drain(PATIENCE).await, 0);
    assert!(read_to_end(busy).await.ends_with("work"));
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
    assert!(TcpStream::connect(server.address()).await.is_err());
    server.stop();
}

#[tokio::test]
async fn a_drain_cuts_what_takes_longer_than_its_bound() {
    let begun = Arc::new(Notify::new());
    let says = begun.clone();
    let endless = || async move {
        says.notify_one();
        std::future::pending::<()>().await
    };
    let server = start(Router::new().route("/", get(endless)));
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    send(&mut stream, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    begun.notified().await;
    assert_eq!(server.drain(Duration::from_millis(50)).await, 1);
    server.stop();
}

#[tokio::test]
async fn a_silent_client_is_closed_and_a_huge_head_refused() {
    let hasty = Options {
        idle: Duration::from_millis(300),
        ..options()
    };
    let server = start_with(Router::new(), &hasty);
    let mut silent = TcpStream::connect(server.address()).await.unwrap();
    send(&mut silent, "GET / HT").await;
    assert!(!read_to_end(silent).await.contains("200"));
    server.stop();

    let server = start(Router::new());
    let mut huge = TcpStream::connect(server.address()).await.unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n",
        "y".repeat(HEAD_BYTES_MAX)
    );
    send(&mut huge, &head).await;
    let answer = read_to_end(huge).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\n{}"), "{answer}");
    server.stop();
}

/// Longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(60);
const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Behind an answer, too, what cannot be read is refused in our words, and not in hyper's own.
#[tokio::test]
async fn a_bad_head_behind_an_answer_is_refused() {
    let server = start(hello());
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let heads = "GET / HTTP/1.1\r\nhost: a\r\n\r\n\x01 is no head\r\n\r\n";
    send(&mut stream, heads).await;
    let told = read_to_end(stream).await;
    assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
    let refused = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n";
    assert!(told.contains(refused), "{told}");
    assert!(told.ends_with("\r\n\r\n{}"), "{told}");
    server.stop();
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

/// What the server has to say to a new client that asks.
async fn ask(server: &Server) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    send(&mut stream, GET).await;
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut answer));
    let length = read.await.expect("an answer").unwrap();
    (
        stream,
        String::from_utf8_lossy(&answer[..length]).into_owned(),
    )
}

async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("in time");
}

/// A client that finds no room is told so, and told whose doing that is; when there is room again it is served.
#[tokio::test]
async fn a_client_without_room_is_refused_and_not_left_waiting() {
    let all = Options {
        idle: PATIENCE,
        connections_max: 2,
        ..options()
    };
    let address = Options {
        idle: PATIENCE,
        connections_per_address_max: 2,
        ..options()
    };
    for (options, status) in [(all, "503"), (address, "429")] {
        let server = start_with(hello(), &options);
        let (first, answer) = ask(&server).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let (_second, _) = ask(&server).await;
        let (refused, answer) = ask(&server).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert!(answer.contains("\r\nconnection: close\r\n") && answer.contains("\r\ndate: "));
        assert!(answer.ends_with("\r\n\r\n{}"), "{answer}");
        assert_eq!(read_to_end(refused).await, "");
        drop(first);
        until(async || ask(&server).await.1.starts_with("HTTP/1.1 200 ")).await;
        server.stop();
    }
}

/// A proxy of ours speaks for others: it may have every connection.
#[tokio::test]
async fn a_proxy_of_ours_is_not_one_client() {
    let options = Options {
        connections_per_address_max: 1,
        proxies: vec!["127.0.0.0/8".parse().unwrap()],
        ..options()
    };
    let server = start_with(hello(), &options);
    let (_first, _) = ask(&server).await;
    let (_second, answer) = ask(&server).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    server.stop();
}

/// Connections leave the last descriptors to others, and who is refused for that is told too.
#[tokio::test]
async fn a_client_does_not_take_the_last_descriptor() {
    let options = Options {
        descriptors_max: 0,
        ..options()
    };
    let server = start_with(hello(), &options);
    let (_, answer) = ask(&server).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(server.connections().open(), 0);
    assert_eq!(server.connections().counts().refused.load(Relaxed), 1);
    server.stop();
}

/// More than the kernel takes off our hands.
const LARGE: usize = 64 << 20;

fn large() -> Router {
    Router::new().route("/", get(|| async { vec![b'x'; LARGE] }))
}

/// The same, of which each piece begins when the kernel has the one before.
fn in_pieces() -> Router {
    const PIECE: &[u8] = &[b'x'; 128 << 10];
    let pieces = std::iter::repeat_n(PIECE, LARGE / PIECE.len());
    let pieces = pieces.map(|piece| Ok::<_, Infallible>(Bytes::from_static(piece)));
    let body = || async { axum::body::Body::from_stream(stream::iter(pieces)) };
    Router::new().route("/", get(body))
}

fn pace(grace: Duration, bytes_per_second: u64) -> Pace {
    Pace {
        grace,
        bytes_per_second,
    }
}

/// A server whose clients may take their time for a moment, and then must be this quick.
fn start_pressing(router: Router, bytes_per_second: u64) -> Server {
    let paces = Paces {
        answer: pace(Duration::from_millis(300), bytes_per_second),
        ..Paces::default()
    };
    let options = Options {
        idle: PATIENCE,
        paces,
        ..options()
    };
    start_with(router, &options)
}

/// A client that takes nothing of its answer is cut; then its page is gone.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut() {
    let server = start_pressing(large(), 1);
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    send(&mut stream, GET).await;
    stream.read_exact(&mut [0; 100]).await.unwrap();
    until(async || server.connections().open() == 0).await;
    server.stop();
}

/// So is one that takes it all the time, but too slowly, also where it has each piece in time.
#[tokio::test]
async fn a_client_that_reads_too_slowly_is_cut() {
    for router in [large(), in_pieces()] {
        let server = start_pressing(router, 1 << 40);
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        send(&mut stream, GET).await;
        let (mut taken, mut buffer) = (0, vec![0; 256 << 10]);
        while taken < LARGE
            && let Ok(read @ 1..) = stream.read(&mut buffer).await
        {
            taken += read;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(taken < LARGE, "all of it was sent");
        until(async || server.connections().open() == 0).await;
        server.stop();
    }
}

/// What the API counts as unread is what has not been sent: the bytes of an answer are let go of with the last of them, not before.
#[tokio::test]
async fn an_answer_is_held_until_it_is_sent() {
    struct Held(Vec<u8>, Arc<AtomicBool>);
    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Held {
        fn drop(&mut self) {
            self.1.store(true, Relaxed);
        }
    }
    let gone = Arc::new(AtomicBool::new(false));
    let flag = gone.clone();
    let answer = move || {
        let held = Held(vec![b'x'; LARGE], flag.clone());
        async { hyper::body::Bytes::from_owner(held) }
    };
    let server = start(Router::new().route("/", get(answer)));
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let request = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    send(&mut stream, request).await;
    stream.read_exact(&mut [0; 100]).await.unwrap();
    assert!(!gone.load(Relaxed));
    assert!(read_to_end(stream).await.len() > LARGE - 100);
    until(async || gone.load(Relaxed)).await;
    server.stop();
}

/// A client that is slow, but takes what it must, gets all of it; so does one that stops for a moment.
#[tokio::test]
async fn a_client_that_reads_gets_its_whole_answer() {
    let paces = Paces {
        answer: pace(Duration::from_secs(5), 1),
        ..Paces::default()
    };
    let server = start_with(large(), &Options { paces, ..options() });
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    send(
        &mut stream,
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    )
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.len() > LARGE);
    assert_eq!(server.connections().counts().too_slow.load(Relaxed), 0);
    server.stop();
}

/// A body that trickles is given up, though it never stops.
#[tokio::test]
async fn a_body_that_trickles_is_cut() {
    let router = Router::new().route("/", post(|_: String| async { "whole" }));
    let paces = Paces {
        body: pace(Duration::from_millis(300), 1 << 40),
        ..Paces::default()
    };
    let server = start_with(router, &Options { paces, ..options() });
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n";
    writing.write_all(head.as_bytes()).await.unwrap();
    let trickle = tokio::spawn(async move {
        while writing.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let mut answer = [0; 13];
    let read = tokio::time::timeout(PATIENCE, reading.read_exact(&mut answer));
    read.await.expect("an answer").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400 ");
    trickle.abort();
    server.stop();
}

/// The kernel would take megabytes at once: in one turn it is given no more than a piece, of one slice as of several.
#[tokio::test]
async fn a_long_answer_leaves_others_their_turn() {
    const BYTES: usize = 32 << 20;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // On a thread of its own, so that there is always room.
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap()
    });
    let mut wire = Wire {
        stream: TcpStream::connect(address).await.unwrap(),
        peer: address,
        refuse: Arc::new(|_, _| hyper::Response::default()),
        dressed: Vec::new(),
        answers: Answers::default(),
        is_within: false,
        taking: Taking::new(
            Paces::default().answer,
            Connections::new(&options()).counts().clone(),
        ),
        turns: Turns::default(),
        queued: Queued::default(),
    };
    let (head, body) = (vec![b'h'; 500], vec![b'b'; BYTES]);
    let (mut written, mut most) = (0, 0);
    // As hyper does: again and again until it has to wait.
    std::future::poll_fn(|context| {
        let mut now = 0;
        while written < 2 * BYTES {
            let left = &body[written % BYTES..];
            let mut wire = std::pin::Pin::new(&mut wire);
            let attempt = match written < BYTES {
                true => wire.as_mut().poll_write(context, left),
                false => {
                    let slices = [&head, left].map(std::io::IoSlice::new);
                    wire.as_mut().poll_write_vectored(context, &slices)
                }
            };
            let std::task::Poll::Ready(bytes) = attempt else {
                return std::task::Poll::Pending;
            };
            let bytes = bytes.unwrap();
            (now, written) = (now + bytes, written + bytes);
            most = most.max(now);
        }
        std::task::Poll::Ready(())
    })
    .await;
    assert!(most <= turns::TURN_BYTES, "{most} bytes in one turn");
    drop(wire);
    assert!(reader.join().unwrap() > 0);
}

/// However many requests a client sends at once, all are answered, and others on its worker have their turns in between.
#[tokio::test]
async fn requests_that_are_sent_at_once_leave_others_their_turns() {
    const REQUESTS: usize = 10_000;
    let one = Options {
        workers: 1,
        ..options()
    };
    let (begun, turns) = (Arc::new(Notify::new()), Arc::new(AtomicU64::new(0)));
    let (begins, counted) = (begun.clone(), turns.clone());
    let counts = || async move {
        begins.notify_one();
        while counted.fetch_add(1, Relaxed) < u64::MAX {
            tokio::task::yield_now().await;
        }
    };
    let server = start_with(hello().route("/turns", get(counts)), &one);
    let mut other = TcpStream::connect(server.address()).await.unwrap();
    send(&mut other, "GET /turns HTTP/1.1\r\nhost: a\r\n\r\n").await;
    begun.notified().await;

    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let before = turns.load(Relaxed);
    let last = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let all = GET.repeat(REQUESTS - 1) + last;
    // It stays open until all is read.
    let written = tokio::spawn(async move {
        writing.write_all(all.as_bytes()).await.unwrap();
        writing
    });
    let mut answers = String::new();
    let read = tokio::time::timeout(PATIENCE, reading.read_to_string(&mut answers));
    read.await.expect("all answers").unwrap();
    drop(written.await.unwrap());
    assert_eq!(answers.matches("hello").count(), REQUESTS);
    let turns = turns.load(Relaxed) - before;
    assert!(turns >= REQUESTS as u64 / 16, "{turns} turns");
    server.stop();
}
