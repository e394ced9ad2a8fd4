//! Of connections that are kept: how many, how long, and what becomes of one that was closed.

use super::*;

/// One request after the other goes over one connection, however quickly they follow.
#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let server = Server::start(OK).await;
    let url = server.url("http", "127.0.0.1");
    for (place, client) in both(&url, reach(loopback())).into_iter().enumerate() {
        for _ in 0..50 {
            let answer = client.get(&url, AMPLE).await.unwrap();
            assert_eq!(&answer.body.unwrap()[..], b"{}");
        }
        assert_eq!(server.accepted(), place + 1);
        server.wait_open(1).await;
        drop(client);
        server.wait_open(0).await;
    }
}

/// An answer that says in two ways how long it is is read in chunks, and is the last one of its connection: whatever lies between may have read it otherwise.
#[tokio::test]
async fn an_answer_of_two_lengths_is_a_connections_last() {
    const BOTH: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let server = Server::start(BOTH).await;
    let url = server.url("http", "127.0.0.1");
    let host = url.parse().unwrap();
    let client = Either::One(HostClient::new(host, reach(loopback()), BOUNDS, NO_PEAK));
    for number in 1..4 {
        let answer = client.get(&url, AMPLE).await.unwrap();
        assert_eq!(&answer.body.unwrap()[..], b"{}");
        assert_eq!(server.accepted(), number);
    }
    server.wait_open(0).await;
}

/// Of many requests at once, as many connections are kept as may be.
#[tokio::test]
async fn kept_connections_are_bounded_per_host() {
    let server = Server::start(OK).await;
    let url = server.url("http", "127.0.0.1");
    for client in both(&url, reach(loopback())) {
        let get = || client.get(&url, AMPLE);
        let (one, two, three, four) = tokio::join!(get(), get(), get(), get());
        for answer in [one, two, three, four] {
            assert_eq!(answer.unwrap().head.status, 200);
        }
        server.wait_open(BOUNDS.idle_per_host).await;
        drop(client);
        server.wait_open(0).await;
    }
}

/// Four requests at once.
async fn four<A: Account>(client: &Either<A>, url: &str) {
    let get = || client.get(url, AMPLE);
    let (one, two, three, four) = tokio::join!(get(), get(), get(), get());
    for answer in [one, two, three, four] {
        assert_eq!(answer.unwrap().head.status, 200);
    }
}

/// Where as many requests are under way again and again, none of them dials once each has a connection.
#[tokio::test]
async fn many_at_once_keep_their_connections_for_a_while() {
    let server = Server::start(OK).await;
    let url = server.url("http", "127.0.0.1");
    let peak = |connections, idle| Peak { connections, idle };
    let client = |peak| {
        let host = url.parse().unwrap();
        Either::One(HostClient::new(host, reach(loopback()), BOUNDS, peak))
    };
    let kept = client(peak(4, AMPLE));
    for _ in 0..8 {
        four(&kept, &url).await;
    }
    assert_eq!(server.accepted(), 4);
    server.wait_open(4).await;
    drop(kept);
    server.wait_open(0).await;

    let bounded = client(peak(3, AMPLE));
    four(&bounded, &url).await;
    server.wait_open(3).await;
    drop(bounded);

    // While one needs no more than its own, the others are closed, down to what is kept for good.
    let trimmed = client(peak(4, Duration::from_millis(50)));
    for _ in 0..2 {
        four(&trimmed, &url).await;
        let closed = async {
            while server.open() > BOUNDS.idle_per_host {
                trimmed.get(&url, AMPLE).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(AMPLE, closed).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.open(), BOUNDS.idle_per_host);
}

/// Who finds no place has that of a connection which nobody uses, and of no other.
#[tokio::test]
async fn what_nobody_uses_makes_place() {
    let (server, silent) = (Server::start(OK).await, Server::start("").await);
    let account = Few::of(4);
    let client = |url: &str| {
        let reach = Reach {
            account: account.clone(),
            egress: loopback(),
            egress_plain: loopback(),
            trust: None,
        };
        let peak = Peak {
            connections: 4,
            idle: AMPLE,
        };
        Either::One(HostClient::new(url.parse().unwrap(), reach, BOUNDS, peak))
    };
    let (url, silence) = (
        server.url("http", "127.0.0.1"),
        silent.url("http", "127.0.0.1"),
    );
    let (kept, waiting) = (client(&url), client(&silence));
    four(&kept, &url).await;
    server.wait_open(4).await;
    let wait = || waiting.get(&silence, AMPLE);
    let all_taken = async {
        silent.wait_open(4).await;
        server.wait_open(0).await;
        kept.get(&url, AMPLE).await
    };
    tokio::select! {
        answers = async { tokio::join!(wait(), wait(), wait(), wait()) } => panic!("{answers:?}"),
        refused = all_taken => assert_eq!(refused.unwrap_err().to_string(), "no place is left"),
    }
    silent.wait_open(0).await;
    // Those whose requests were given up are closed, and their places are free.
    four(&kept, &url).await;
    assert_eq!(server.accepted(), 8);
}

/// With too many open, whosever they are, requests do not add to those that are kept.
#[tokio::test]
async fn kept_connections_are_bounded_in_total() {
    let (one, other) = (Server::start(OK).await, Server::start(OK).await);
    let bounds = Bounds {
        idle_total: 0,
        ..BOUNDS
    };
    let client = Client::new(reach(loopback()), bounds);
    status(&client, &one.url("http", "127.0.0.1")).await;
    assert_eq!(client.open(), 1);
    status(&client.apart(), &other.url("http", "127.0.0.1")).await;
    other.wait_open(0).await;
    assert!(other.heads()[0].contains("connection: close\r\n"));
    assert_eq!((one.heads().len(), client.open()), (1, 1));
}

/// What nobody has used for a while is closed.
#[tokio::test]
async fn kept_connections_are_closed_in_time() {
    let server = Server::start(OK).await;
    let bounds = Bounds {
        idle: Some(Duration::from_millis(100)),
        ..BOUNDS
    };
    let client = Client::new(reach(loopback()), bounds);
    status(&client, &server.url("http", "127.0.0.1")).await;
    server.wait_open(0).await;
    assert_eq!(client.open(), 0);
}

/// The other side may close a kept connection while this thread is busy, with or without a last word, and the next request come from another
/// thread: then it is sent on a new connection although nobody has told this thread yet.
#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced() {
    for last in [&b""[..], b"HTTP/1.1 408 x\r\ncontent-length: 0\r\n\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (close, closing) = mpsc::channel::<()>();
        let (tell, closed) = mpsc::channel::<()>();
        let server = std::thread::spawn(move || {
            for _ in 0..4 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(&stream).lines();
                while !lines.next().unwrap().unwrap().is_empty() {}
                stream.write_all(OK).unwrap();
                let _ = closing.recv();
                stream.write_all(last).unwrap();
                drop(stream);
                tell.send(()).unwrap();
            }
        });
        for client in both(&url, reach(loopback())) {
            assert_eq!(client.get(&url, AMPLE).await.unwrap().head.status, 200);
            // Blocks the thread, which hears of nothing meanwhile.
            close.send(()).unwrap();
            closed.recv().unwrap();
            assert_eq!(client.get(&url, AMPLE).await.unwrap().head.status, 200);
            close.send(()).unwrap();
            closed.recv().unwrap();
        }
        server.join().unwrap();
    }
}
