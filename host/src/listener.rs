//! Accepts connections and serves them: one acceptor deals them round robin to worker threads, each a
//! `current_thread` runtime, so that a request never changes threads and a connector's warm sessions can
//! be local to one.
//!
//! It refuses to know what is served: that is a [`Route`], and a [`Refuse`] for what cannot be read or taken in. Start reading at
//! [`Server::start`]; who is let in is `listener/accept.rs`, how slow a client may be `listener/pace.rs`,
//! and how much it is sent at a stretch `listener/turns.rs`.

mod accept;
mod pace;
mod turns;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::{mpsc, watch};
use tower::Service;

use crate::busy_poll::BusyPoll;
use crate::refusals::{Answers, Refuse, Wire};
use accept::{Accepted, Acceptor};
pub use accept::{Connections, Counts};
pub use pace::{Pace, Paces, Taking};
pub use turns::{Queued, Turns};

/// A request line and its headers: more than any client of ours sends, little enough that every allowed
/// connection may hold it.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Read ahead of the handler at most this much of a body.
const BUFFER_BYTES_MAX: usize = 128 * 1024;
/// Connections that the kernel keeps for us while all workers are busy.
const BACKLOG: i32 = 1024;

/// What answers requests.
pub trait Route:
    Service<Request, Response = Response, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<R> Route for R where
    R: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

pub struct Options {
    pub workers: usize,
    pub connections_max: usize,
    /// Of those, one address (IPv6: one /64 network) may have so many, unless it is a proxy of ours, which speaks for others.
    pub connections_per_address_max: usize,
    pub proxies: Vec<IpNet>,
    /// Client connections leave the descriptors from here on to others, see `descriptors.rs`.
    pub descriptors_max: i32,
    pub refusing_max: usize,
    pub paces: Paces,
    /// Bounds both the time for a request head and the silence between two requests.
    pub idle: Duration,
    /// See `busy_poll.rs`.
    pub busy_poll: Duration,
}

/// How many of all connections one address may have unless the operator says otherwise: a quarter, but enough for any one client.
pub fn share_of_one_address(connections_max: usize) -> usize {
    const ENOUGH: usize = 64;
    (connections_max / 4).max(ENOUGH)
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
    /// Each worker makes its own router: what one counts for a request is at hand on its core alone.
    pub fn start<R: Route>(
        listener: TcpListener,
        options: &Options,
        router: impl Fn() -> R + Clone + Send + 'static,
        refuse: Refuse,
    ) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let connections = Connections::new(options);
        let (phase, _) = watch::channel(Phase::Serving);

        let mut threads = Vec::with_capacity(options.workers + 1);
        let mut inboxes = Vec::with_capacity(options.workers);
        let (made, makes) = std::sync::mpsc::channel();
        for number in 0..options.workers {
            let (inbox, accepted) = mpsc::unbounded_channel();
            let worker = Worker {
                router: router.clone(),
                made: made.clone(),
                refuse: refuse.clone(),
                idle: options.idle,
                busy_poll: options.busy_poll,
                paces: options.paces,
                counts: connections.counts().clone(),
                phase: phase.subscribe(),
            };
            inboxes.push(inbox);
            threads.push(spawn(format!("worker-{number}"), worker.run(accepted))?);
        }
        drop(made);
        for _ in 0..options.workers {
            let gone = |_| io::Error::other("a worker could not make its routes");
            makes.recv().map_err(gone)?;
        }
        let acceptor = Acceptor {
            connections: connections.clone(),
            descriptors_max: options.descriptors_max,
            refusing_max: options.refusing_max,
            refuse,
        };
        let accepting = acceptor.run(listener, inboxes, phase.subscribe());
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
            Err(_) => self.connections.open(),
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

struct Worker<F> {
    router: F,
    /// Is told when there is one.
    made: std::sync::mpsc::Sender<()>,
    refuse: Refuse,
    idle: Duration,
    busy_poll: Duration,
    paces: Paces,
    counts: Arc<Counts>,
    phase: watch::Receiver<Phase>,
}

impl<R: Route, F: Fn() -> R> Worker<F> {
    async fn run(self, mut accepted: mpsc::UnboundedReceiver<Accepted>) {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.idle)
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(BUFFER_BYTES_MAX);
        let busy_poll = BusyPoll::new(self.busy_poll);
        let phase = self.followed();
        let router = (self.router)();
        let _ = self.made.send(());
        drop(self.made);

        let asking = busy_poll.clone();
        souk_sandbox::when_asking(move || asking.asks());
        let alone = busy_poll.clone();
        souk_sandbox::when_alone(move || alone.is_quiet());
        let polling = busy_poll.clone();
        tokio::spawn(async move { polling.run().await });
        let serving = async {
            while let Some(connection) = accepted.recv().await {
                let router = router.clone();
                let phase = phase.clone();
                match prepare(connection.stream, self.paces.answer) {
                    Ok(stream) => {
                        let wire = Wire {
                            stream,
                            peer: connection.peer,
                            refuse: self.refuse.clone(),
                            dressed: Vec::new(),
                            answers: Answers::default(),
                            is_within: false,
                            taking: Taking::new(self.paces.answer, self.counts.clone()),
                            turns: Turns::default(),
                            queued: Queued::default(),
                        };
                        let busy_poll = busy_poll.clone();
                        let pace = self.paces.body;
                        let served = serve(http.clone(), wire, router, busy_poll, pace, phase);
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

impl<F> Worker<F> {
    /// The phase, told on by this thread: each connection looks at it whenever it wakes up, under a lock that threads would share.
    fn followed(&self) -> watch::Receiver<Phase> {
        let mut told = self.phase.clone();
        let (tell, followed) = watch::channel(*told.borrow_and_update());
        tokio::spawn(async move {
            while told.changed().await.is_ok() {
                tell.send_replace(*told.borrow_and_update());
            }
        });
        followed
    }
}

fn prepare(stream: std::net::TcpStream, pace: Pace) -> io::Result<TcpStream> {
    let socket = socket2::SockRef::from(&stream);
    socket.set_tcp_nodelay(true)?;
    // Closes a connection whose client takes nothing of an answer that the kernel has taken whole. Later than we look at others, so
    // that it is known why they were cut.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(pace.grace * 2))?;
    TcpStream::from_std(stream)
}

async fn serve(
    http: http1::Builder,
    wire: Wire,
    router: impl Route,
    busy_poll: Arc<BusyPoll>,
    pace: Pace,
    mut phase: watch::Receiver<Phase>,
) {
    let (peer, queued, answers) = (wire.peer, wire.queued.clone(), wire.answers.clone());
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(|body| pace.body(body));
        request.extensions_mut().insert(ConnectInfo(peer));
        let gives_way = queued.one_more();
        let answering = answers.begin();
        let answer = router.clone().call(request);
        let in_flight = busy_poll.request();
        async move {
            if gives_way {
                tokio::task::yield_now().await;
            }
            let answer = answer.await;
            drop(in_flight);
            answer.map(|answer| answer.map(|body| answering.body(body)))
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

#[cfg(test)]
mod tests;
