//! Accepts connections and serves them: one acceptor deals them round robin to worker threads, each a
//! `current_thread` runtime, so that a request never changes threads and a connector's warm sessions can
//! be local to one.
//!
//! It refuses to know what is served: that is a `Router`, and a [`Refuse`] for what cannot be read. Start reading at [`Server::start`].

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Sleep;
use tower::Service;

use crate::busy_poll::BusyPoll;
use crate::refusals::{Refuse, Wire};

/// A request line and its headers: more than any client of ours sends, little enough that every allowed
/// connection may hold it.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Read ahead of the handler at most this much of a body.
const BUFFER_BYTES_MAX: usize = 128 * 1024;
/// A client that sends nothing of a body it promised, or takes nothing of its answer, for this long is gone.
const STALL: Duration = Duration::from_secs(30);
/// Connections that the kernel keeps for us while all workers are busy.
const BACKLOG: i32 = 1024;
/// After an error of `accept` (out of descriptors) the next attempt waits, or the log would fill.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

pub struct Options {
    pub workers: usize,
    pub connections_max: usize,
    /// Bounds both the time for a request head and the silence between two requests.
    pub idle: Duration,
    /// See `busy_poll.rs`.
    pub busy_poll: Duration,
}

/// Where the server is in its life. Threads follow it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Phase {
    Serving,
    /// No new connections; the ones that stand end with the request they are in.
    Draining,
    Stopped,
}

/// A sender that is gone counts as every phase: then nobody is left to ask for more.
async fn reached(phase: &mut watch::Receiver<Phase>, at: Phase) {
    drop(phase.wait_for(|phase| *phase >= at).await);
}

/// A server under way. Dropping it stops the threads without waiting for requests.
pub struct Server {
    address: SocketAddr,
    phase: watch::Sender<Phase>,
    connections: Connections,
    threads: Vec<JoinHandle<()>>,
}

/// Counts client connections: one permit each.
#[derive(Clone)]
pub struct Connections {
    permits: Arc<Semaphore>,
    max: usize,
}

impl Connections {
    fn new(max: usize) -> Connections {
        Connections {
            permits: Arc::new(Semaphore::new(max)),
            max,
        }
    }

    /// The acceptor holds one permit for the connection that it waits for.
    pub fn open(&self) -> usize {
        self.max
            .saturating_sub(self.permits.available_permits() + 1)
    }

    async fn all_ended(&self) {
        // At most 1,000,000, see `Settings`.
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        drop(self.permits.acquire_many(all).await);
    }
}

/// One accepted connection on its way to a worker. The permit counts it until it ends.
struct Accepted {
    stream: std::net::TcpStream,
    peer: SocketAddr,
    permit: OwnedSemaphorePermit,
}

/// Binds without accepting yet: connections wait in the backlog until [`Server::start`].
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM,
        Some(socket2::Protocol::TCP),
    )?;
    // A host that was just stopped leaves connections in TIME_WAIT on the same port.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

impl Server {
    pub fn start(
        listener: TcpListener,
        options: &Options,
        router: Router,
        refuse: Refuse,
    ) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let connections = Connections::new(options.connections_max);
        let (phase, _) = watch::channel(Phase::Serving);

        let mut threads = Vec::with_capacity(options.workers + 1);
        let mut inboxes = Vec::with_capacity(options.workers);
        for number in 0..options.workers {
            let (inbox, accepted) = mpsc::unbounded_channel();
            let worker = Worker {
                router: router.clone(),
                refuse: refuse.clone(),
                idle: options.idle,
                busy_poll: options.busy_poll,
                phase: phase.subscribe(),
            };
            inboxes.push(inbox);
            threads.push(spawn(format!("worker-{number}"), worker.run(accepted))?);
        }
        let accepting = accept(
            listener,
            inboxes,
            connections.permits.clone(),
            phase.subscribe(),
        );
        threads.push(spawn("acceptor".to_owned(), accepting)?);

        Ok(Server {
            address,
            phase,
            connections,
            threads,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn connections(&self) -> Connections {
        self.connections.clone()
    }

    /// Stops accepting and waits until every request in flight has been answered, for `bound` at most.
    /// The number of connections that had to be cut comes back. The threads go on, so that what they
    /// opened (the store's connections) can still be closed; end them with [`Server::stop`].
    pub async fn drain(&self, bound: Duration) -> usize {
        self.phase.send_replace(Phase::Draining);
        match tokio::time::timeout(bound, self.connections.all_ended()).await {
            Ok(()) => 0,
            // The acceptor is gone, and its permit with it.
            Err(_) => self.connections.max - self.connections.permits.available_permits(),
        }
    }

    /// Waits until every connection has ended, after [`Server::drain`].
    pub async fn ended(&self) {
        self.connections.all_ended().await;
    }

    pub fn stop(mut self) {
        self.phase.send_replace(Phase::Stopped);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a server thread panicked");
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Stopped);
    }
}

fn spawn(
    name: String,
    work: impl Future<Output = ()> + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name(name)
        .spawn(move || runtime.block_on(work))
}

async fn accept(
    listener: TcpListener,
    inboxes: Vec<mpsc::UnboundedSender<Accepted>>,
    connections: Arc<Semaphore>,
    mut phase: watch::Receiver<Phase>,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the listener cannot be used"),
    };
    let accepting = async {
        for inbox in inboxes.iter().cycle() {
            // The permit first: a connection over the maximum waits in the backlog, unanswered.
            let Ok(permit) = connections.clone().acquire_owned().await else {
                return;
            };
            let (stream, peer) = loop {
                match listener.accept().await {
                    Ok(accepted) => break accepted,
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_RETRY).await;
                    }
                }
            };
            // Registered with this thread's reactor by accept; the worker registers it with its own.
            match stream.into_std() {
                Ok(stream) => drop(inbox.send(Accepted {
                    stream,
                    peer,
                    permit,
                })),
                Err(error) => tracing::warn!(%error, "a connection could not be handed over"),
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        () = reached(&mut phase, Phase::Draining) => {}
    }
}

struct Worker {
    router: Router,
    refuse: Refuse,
    idle: Duration,
    busy_poll: Duration,
    phase: watch::Receiver<Phase>,
}

impl Worker {
    async fn run(self, mut accepted: mpsc::UnboundedReceiver<Accepted>) {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.idle)
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(BUFFER_BYTES_MAX);
        let busy_poll = BusyPoll::new(self.busy_poll);

        let polling = busy_poll.clone();
        tokio::spawn(async move { polling.run().await });
        let serving = async {
            while let Some(connection) = accepted.recv().await {
                let router = self.router.clone();
                let phase = self.phase.clone();
                match prepare(connection.stream) {
                    Ok(stream) => {
                        let wire = Wire {
                            stream,
                            peer: connection.peer,
                            refuse: self.refuse.clone(),
                            dressed: Vec::new(),
                        };
                        let busy_poll = busy_poll.clone();
                        let served = serve(http.clone(), wire, router, busy_poll, phase);
                        tokio::spawn(async move {
                            served.await;
                            drop(connection.permit);
                        });
                    }
                    Err(error) => {
                        tracing::debug!(%error, peer = %connection.peer, "a connection broke at once")
                    }
                }
            }
            // The acceptor is gone; what it handed over goes on.
            std::future::pending::<()>().await;
        };
        let mut phase = self.phase.clone();
        tokio::select! {
            () = serving => {}
            () = reached(&mut phase, Phase::Stopped) => {}
        }
    }
}

fn prepare(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    let socket = socket2::SockRef::from(&stream);
    socket.set_tcp_nodelay(true)?;
    // Also closes a connection whose client takes nothing of its answer.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(STALL))?;
    TcpStream::from_std(stream)
}

async fn serve(
    http: http1::Builder,
    wire: Wire,
    router: Router,
    busy_poll: Arc<BusyPoll>,
    mut phase: watch::Receiver<Phase>,
) {
    let peer = wire.peer;
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(body);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = router.clone().call(request);
        let in_flight = busy_poll.request();
        async move {
            let answer = answer.await;
            drop(in_flight);
            answer
        }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(wire), service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = reached(&mut phase, Phase::Draining) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "a connection ended early");
    }
}

fn body(incoming: Incoming) -> axum::body::Body {
    if incoming.is_end_stream() {
        axum::body::Body::empty()
    } else {
        axum::body::Body::new(Prompt {
            incoming,
            stall: None,
        })
    }
}

/// A request body whose sender may not stall. The timer exists only while there is something to wait for.
struct Prompt {
    incoming: Incoming,
    stall: Option<Pin<Box<Sleep>>>,
}

impl hyper::body::Body for Prompt {
    type Data = hyper::body::Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(context) {
            self.stall = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let stall = self
            .stall
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL)));
        match stall.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err("the request body stalled".into()))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn options() -> Options {
        Options {
            workers: 2,
            connections_max: 16,
            idle: Duration::from_millis(300),
            busy_poll: Duration::from_micros(100),
        }
    }

    fn start(router: Router) -> Server {
        let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let refuse = |status, _| {
            let mut answer = hyper::Response::new(b"{}".to_vec());
            *answer.status_mut() = status;
            answer
        };
        Server::start(listener, &options(), router, Arc::new(refuse)).unwrap()
    }

    async fn send(stream: &mut TcpStream, request: &str) {
        stream.write_all(request.as_bytes()).await.unwrap();
    }

    async fn read_to_end(mut stream: TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
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
        let router = Router::new().route(
            "/",
            post(|body: String| async move {
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
        tokio::time::sleep(Duration::from_millis(50)).await;

        assert_eq!(server.drain(Duration::from_secs(5)).await, 0);
        assert!(read_to_end(busy).await.ends_with("work"));
        assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
        assert!(TcpStream::connect(server.address()).await.is_err());
        server.stop();
    }

    #[tokio::test]
    async fn a_drain_cuts_what_takes_longer_than_its_bound() {
        let router = Router::new().route("/", get(std::future::pending::<()>));
        let server = start(router);
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        send(&mut stream, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(server.drain(Duration::from_millis(50)).await, 1);
        server.stop();
    }

    #[tokio::test]
    async fn a_silent_client_is_closed_and_a_huge_head_refused() {
        let server = start(Router::new());
        let mut silent = TcpStream::connect(server.address()).await.unwrap();
        send(&mut silent, "GET / HT").await;
        assert!(!read_to_end(silent).await.contains("200"));

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
}
