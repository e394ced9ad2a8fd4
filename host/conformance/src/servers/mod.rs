//! Sources that lie. Each is a server on the loopback interface, in this process, that does one thing to everybody who connects. What a
//! connection may cost this process itself is bounded: a server gives up after [`SERVES`].
//!
//! Start reading at [`Server::start`].

mod http;
mod postgres;
mod tcp;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

pub use http::HttpLie;
pub use postgres::PostgresLie;
pub use tcp::TcpLie;

/// Longer than any deadline of the tests, so that it is the host that ends things.
const SERVES: Duration = Duration::from_secs(60);

/// What a server does to whoever connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    Tcp(TcpLie),
    Postgres(PostgresLie),
    Http(HttpLie),
}

impl Lie {
    pub fn all() -> impl Iterator<Item = Lie> {
        let tcp = TcpLie::ALL.iter().copied().map(Lie::Tcp);
        let postgres = PostgresLie::ALL.iter().copied().map(Lie::Postgres);
        let http = HttpLie::ALL.iter().copied().map(Lie::Http);
        tcp.chain(postgres).chain(http)
    }
}

/// A running server; it ends when this is dropped.
pub struct Server {
    pub address: SocketAddr,
    open: Arc<AtomicUsize>,
    // Its own threads: a server that sends for ever must not take the time of who measures.
    runtime: Option<Runtime>,
}

impl Server {
    pub fn start(lie: Lie) -> io::Result<Server> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = runtime.block_on_elsewhere(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        let open = Arc::<AtomicUsize>::default();
        let counted = open.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let guard = Open::of(&counted);
                tokio::spawn(async move {
                    let _guard = guard;
                    let _ = tokio::time::timeout(SERVES, serve(stream, lie)).await;
                });
            }
        });
        Ok(Server {
            address,
            open,
            runtime: Some(runtime),
        })
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.open.load(SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct Open(Arc<AtomicUsize>);

impl Open {
    fn of(open: &Arc<AtomicUsize>) -> Open {
        open.fetch_add(1, SeqCst);
        Open(open.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Runs a future on this runtime and waits for it, also where the calling thread belongs to another one.
trait Elsewhere {
    fn block_on_elsewhere<T: Send>(&self, future: impl Future<Output = T> + Send) -> T;
}

impl Elsewhere for Runtime {
    fn block_on_elsewhere<T: Send>(&self, future: impl Future<Output = T> + Send) -> T {
        std::thread::scope(|scope| {
            let run = scope.spawn(|| self.block_on(future));
            run.join().expect("no panic")
        })
    }
}

/// An error here is the host hanging up, which is what it should do.
async fn serve(mut stream: TcpStream, lie: Lie) {
    let _ = stream.set_nodelay(true);
    let _ = match lie {
        Lie::Tcp(lie) => Box::pin(tcp::serve(&mut stream, lie)).await,
        Lie::Postgres(lie) => Box::pin(postgres::serve(&mut stream, lie)).await,
        Lie::Http(lie) => Box::pin(http::serve(&mut stream, lie)).await,
    };
}

/// An enum, all of its values, and a name for each.
macro_rules! lies {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$about])* $variant,)*
        }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant,)*];
        }
    };
}
use lies;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// Proves that every server serves, and ends with its owner: nobody else looks after them.
    #[test]
    fn servers_say_something_or_close() {
        for lie in Lie::all() {
            let server = Server::start(lie).expect("a server");
            let mut client = std::net::TcpStream::connect(server.address).expect("a connection");
            let timeout = Some(Duration::from_millis(20));
            client.set_read_timeout(timeout).expect("a timeout");
            client.set_write_timeout(timeout).expect("a timeout");
            // A startup message of PostgreSQL, and a line of HTTP for the others.
            let _ = client.write_all(b"\0\0\0\x10\0\x03\0\0user\0a\0\0");
            let _ = client.read(&mut [0; 1 << 10]);
        }
    }
}
