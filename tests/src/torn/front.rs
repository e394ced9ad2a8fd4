//! HTTP within TLS before a server that has none: each answer is read as a whole, and sent on as a test says.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use axum::serve::Listener;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::tls::{TestCa, TlsListener};

/// Of a body that comes in chunks.
const CHUNK_BYTES: usize = 4_000;

/// By what an answer says where its body ends.
#[derive(Clone, Copy, Debug)]
pub enum Ends {
    Length,
    Chunks,
    /// By the end of its connection, as of HTTP/1.0: who takes any end for that one takes a part for the whole.
    Connection,
}

impl Ends {
    pub const ALL: [Ends; 3] = [Ends::Length, Ends::Chunks, Ends::Connection];
}

pub struct TornFront {
    base_url: String,
    /// Whom to trust.
    pub ca_pem: String,
    manner: Arc<Mutex<Manner>>,
    torn: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// How answers are sent on.
#[derive(Clone, Copy)]
struct Manner {
    ends: Ends,
    /// Bodies of at least so many bytes are torn.
    tears: Option<usize>,
}

impl TornFront {
    /// Before a server at this address, `http://…`, which says by length or chunks where its bodies end.
    pub async fn before(base_url: &str) -> TornFront {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let ca = TestCa::new("a front of the tests");
        let mut listener = TlsListener::new(listener, &ca.server(&["127.0.0.1"]));
        let behind = base_url.replace("http://", "");
        let manner = Arc::new(Mutex::new(Manner {
            ends: Ends::Length,
            tears: None,
        }));
        let torn = Arc::<AtomicUsize>::default();
        let (told, counted) = (Arc::clone(&manner), Arc::clone(&torn));
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = Listener::accept(&mut listener).await;
                let (behind, told, counted) =
                    (behind.clone(), Arc::clone(&told), Arc::clone(&counted));
                tokio::spawn(async move {
                    // The end of a connection is its client's, but for one that is torn.
                    if let Ok(true) = serve(client, &behind, &told).await {
                        counted.fetch_add(1, SeqCst);
                    }
                });
            }
        });
        TornFront {
            base_url: format!("https://{address}"),
            ca_pem: ca.pem(),
            manner,
            torn,
            task,
        }
    }

    pub fn base_url(&self) -> String {
        self.base_url.clone()
    }

    /// From now on answers say so where they end, and are whole.
    pub fn ends(&self, ends: Ends) {
        *locked(&self.manner) = Manner { ends, tears: None };
    }

    /// From now on each body of at least so many bytes ends in its middle.
    pub fn tear(&self, bytes_min: usize) {
        locked(&self.manner).tears = Some(bytes_min);
    }

    pub fn mend(&self) {
        locked(&self.manner).tears = None;
    }

    /// Answers that were torn.
    pub fn torn(&self) -> usize {
        self.torn.load(SeqCst)
    }
}

impl Drop for TornFront {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(manner: &Mutex<Manner>) -> std::sync::MutexGuard<'_, Manner> {
    manner.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Request after request, until the client has had enough or an answer is torn: whether one was.
async fn serve(
    client: impl AsyncRead + AsyncWrite + Unpin,
    behind: &str,
    manner: &Mutex<Manner>,
) -> io::Result<bool> {
    let mut client = BufReader::new(client);
    loop {
        let request = Message::read(&mut client).await?;
        let mut server = BufReader::new(TcpStream::connect(behind).await?);
        server
            .write_all(&request.with("x-forwarded-proto: https"))
            .await?;
        let answer = Message::read(&mut server).await?;
        let Manner { ends, tears } = *locked(manner);
        let (head, body) = answer.ending(ends);
        client.write_all(&head).await?;
        if tears.is_some_and(|bytes_min| answer.body.len() >= bytes_min) {
            client.write_all(&body[..body.len() / 2]).await?;
            client.flush().await?;
            // Dropped, TLS has no last word.
            return Ok(true);
        }
        client.write_all(&body).await?;
        client.flush().await?;
        if let Ends::Connection = ends {
            client.shutdown().await?;
            return Ok(false);
        }
    }
}

/// A request or an answer.
struct Message {
    /// Its lines, each with its end.
    head: Vec<Vec<u8>>,
    body: Vec<u8>,
}

impl Message {
    async fn read(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Message> {
        let mut head = Vec::new();
        loop {
            let line = line(stream).await?;
            if line == b"\r\n" {
                break;
            }
            head.push(line);
        }
        let mut message = Message {
            head,
            body: Vec::new(),
        };
        message.body = match message.header("content-length") {
            Some(length) => {
                let length: usize = length.parse().map_err(io::Error::other)?;
                let mut body = vec![0; length];
                stream.read_exact(&mut body).await?;
                body
            }
            None if message.header("transfer-encoding").is_some() => chunks(stream).await?,
            None => Vec::new(),
        };
        Ok(message)
    }

    fn header(&self, name: &str) -> Option<String> {
        self.head.iter().find_map(|line| {
            let line = String::from_utf8_lossy(line);
            let (known, value) = line.split_once(':')?;
            let is_it = known.eq_ignore_ascii_case(name);
            is_it.then(|| value.trim().to_owned())
        })
    }

    /// The whole, with a header more and its body in one piece.
    fn with(&self, header: &str) -> Vec<u8> {
        let mut bytes = self.without_end().concat();
        let length = self.body.len();
        bytes.extend_from_slice(format!("{header}\r\ncontent-length: {length}\r\n\r\n").as_bytes());
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Its head, and its body as that says it.
    fn ending(&self, ends: Ends) -> (Vec<u8>, Vec<u8>) {
        let mut head = self.without_end().concat();
        let (header, body) = match ends {
            // Of an answer that has no body nobody reads a chunk.
            Ends::Chunks if !self.body.is_empty() => {
                ("transfer-encoding: chunked".to_owned(), self.in_chunks())
            }
            Ends::Length | Ends::Chunks => {
                let length = self.body.len();
                (format!("content-length: {length}"), self.body.clone())
            }
            Ends::Connection => ("connection: close".to_owned(), self.body.clone()),
        };
        head.extend_from_slice(format!("{header}\r\n\r\n").as_bytes());
        (head, body)
    }

    fn in_chunks(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for chunk in self.body.chunks(CHUNK_BYTES) {
            out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
        out
    }

    /// The lines of its head, but for those about its end.
    fn without_end(&self) -> Vec<&[u8]> {
        let about_the_end = ["content-length:", "transfer-encoding:", "connection:"];
        let is_kept = |line: &&[u8]| {
            let line = String::from_utf8_lossy(line).to_ascii_lowercase();
            !about_the_end.iter().any(|name| line.starts_with(name))
        };
        self.head
            .iter()
            .map(Vec::as_slice)
            .filter(is_kept)
            .collect()
    }
}

async fn line(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    match stream.read_until(b'\n', &mut line).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}

async fn chunks(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(stream).await?;
        let size = String::from_utf8_lossy(&size);
        let size = size.trim().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        let begin = body.len();
        // Behind each stands the end of a line.
        body.resize(begin + size + 2, 0);
        stream.read_exact(&mut body[begin..]).await?;
        body.truncate(begin + size);
        if size == 0 {
            return Ok(body);
        }
    }
}
