//! Servers that answer as a profile says, in place of a source: so a connector can be tried where there is none.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::profile::{ScriptedAnswer, ScriptedLine};

/// A running server on the loopback interface; it ends when this is dropped.
pub struct Server {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Answers requests by method and path; what it was not told is 404.
    pub async fn http(answers: &[ScriptedAnswer]) -> io::Result<Server> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::<[ScriptedAnswer]>::from(answers));
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Server { address, task })
    }

    /// Answers lines with lines; what it was not told ends the connection.
    pub async fn lines(lines: &[ScriptedLine]) -> io::Result<Server> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let lines = Arc::<[ScriptedLine]>::from(lines);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, lines.clone()));
            }
        });
        Ok(Server { address, task })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(answers): State<Arc<[ScriptedAnswer]>>, request: Request) -> Response {
    let path = request.uri().path_and_query();
    let path = path.map_or("/", |path| path.as_str());
    let found = answers
        .iter()
        .find(|answer| answer.method == request.method().as_str() && answer.path == path);
    let mut response = Response::builder();
    let (status, body) = match found {
        Some(found) => {
            for (name, value) in &found.headers {
                response = response.header(name, value);
            }
            (found.status, found.body.clone())
        }
        None => (404, String::new()),
    };
    // A status or header that is none is the profile's mistake, seen as a server that fails.
    let failed = |_| Response::new(Body::from("the profile's answer is no HTTP"));
    let built = response.status(status).body(Body::from(body));
    built.unwrap_or_else(failed)
}

async fn talk(stream: TcpStream, lines: Arc<[ScriptedLine]>) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read).lines();
    while let Ok(Some(line)) = read.next_line().await {
        let Some(found) = lines.iter().find(|known| known.receives == line) else {
            return;
        };
        let answer: String = found.sends.iter().map(|line| format!("{line}\n")).collect();
        if write.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
