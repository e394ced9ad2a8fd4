//! A request head that cannot be read never reaches the router: hyper answers it with a bare status and closes the connection. Here
//! that answer is dressed, on its way out, as the envelope with the headers that every other answer has. What the router answers is never touched,
//! however much some bytes in the middle of it look like one of hyper's: they are a seller's, who could end the answer with what is dressed, and begin another.
//!
//! Refuses to know what the envelope says: that is [`Refuse`]. Start reading at [`Wire::poll_write`].

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use hyper::body::{Bytes, Frame, SizeHint};
use hyper::{Response, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::listener::{Queued, Taking, Turns};

/// Makes the answer to a client whose request could not be read, or whose connection is refused.
pub type Refuse = Arc<dyn Fn(StatusCode, SocketAddr) -> Response<Vec<u8>> + Send + Sync>;

/// What hyper says by itself is a status line and three headers, about 110 bytes. Whatever the router answers has more headers than fit.
const BARE_BYTES_MAX: usize = 160;

/// A client's connection, as hyper sees it.
pub struct Wire {
    pub stream: TcpStream,
    pub peer: SocketAddr,
    pub refuse: Refuse,
    /// What goes out in place of hyper's own answer, as far as it has not gone yet.
    pub dressed: Vec<u8>,
    /// What the router answers.
    pub answers: Answers,
    /// What is written next may belong to one of those.
    pub is_within: bool,
    /// Whether the client takes what it is sent.
    pub taking: Taking,
    /// How much it is sent at a stretch.
    pub turns: Turns,
    /// What it has sent without waiting.
    pub queued: Queued,
}

impl Wire {
    #[inline]
    fn attempted(
        &mut self,
        context: &mut Context<'_>,
        attempt: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match &attempt {
            Poll::Ready(Ok(written)) => {
                self.turns.goes_on(*written);
                self.is_within = true;
            }
            _ => self.turns.ends(),
        }
        self.taking.watch(context, &self.stream, attempt)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wire = &mut *self;
        let bare = match wire.is_within {
            true => None,
            false => bare_refusal(bytes),
        };
        let Some((status, bare)) = bare else {
            let room = ready!(wire.turns.poll_room(context)).min(bytes.len());
            let attempt = Pin::new(&mut wire.stream).poll_write(context, &bytes[..room]);
            return wire.attempted(context, attempt);
        };
        if wire.dressed.is_empty() {
            wire.dressed = dress(bare, (wire.refuse)(status, wire.peer));
        }
        while !wire.dressed.is_empty() {
            match ready!(Pin::new(&mut wire.stream).poll_write(context, &wire.dressed))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => drop(wire.dressed.drain(..written)),
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [one] = slices {
            return self.poll_write(context, one);
        }
        let wire = &mut *self;
        let room = ready!(wire.turns.poll_room(context));
        let (fitting, count) = fitting(slices, room);
        let attempt = Pin::new(&mut wire.stream).poll_write_vectored(context, &fitting[..count]);
        wire.attempted(context, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Asked for when everything is written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.taking.done();
        self.turns.ends();
        self.is_within = self.answers.are_any();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        match &read {
            Poll::Pending => self.queued.over(),
            Poll::Ready(_) if buffer.filled().len() > before => self.taking.over(),
            Poll::Ready(_) => {}
        }
        read
    }
}

/// Answers of the router that hyper does not have whole yet.
#[derive(Clone, Default)]
pub struct Answers(Arc<AtomicU32>);

impl Answers {
    /// One more is being made.
    #[inline]
    pub fn begin(&self) -> Answering {
        self.0.fetch_add(1, Relaxed);
        Answering(self.clone())
    }

    #[inline]
    fn are_any(&self) -> bool {
        self.0.load(Relaxed) > 0
    }
}

/// One of them, as long as it is there.
pub struct Answering(Answers);

impl Answering {
    #[inline]
    pub fn body(self, body: Body) -> AnswerBody {
        AnswerBody {
            body,
            _answering: self,
        }
    }
}

impl Drop for Answering {
    #[inline]
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// The body of one. hyper lets go of it when it has the last of it, and asks for all to be flushed after that.
pub struct AnswerBody {
    body: Body,
    _answering: Answering,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    #[inline]
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// More than a head and a body are seldom written at once.
const SLICES_MAX: usize = 8;

/// What of the slices is no longer than this, and how many they are.
fn fitting<'s>(slices: &'s [IoSlice<'_>], mut room: usize) -> ([IoSlice<'s>; SLICES_MAX], usize) {
    let (mut fitting, mut count) = ([IoSlice::new(&[]); SLICES_MAX], 0);
    for (place, slice) in fitting.iter_mut().zip(slices) {
        let part = &slice[..room.min(slice.len())];
        *place = IoSlice::new(part);
        room -= part.len();
        count += 1;
        if room == 0 {
            break;
        }
    }
    (fitting, count)
}

/// An answer that hyper made by itself, and its status.
fn bare_refusal(bytes: &[u8]) -> Option<(StatusCode, &str)> {
    if bytes.len() > BARE_BYTES_MAX || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let bare = std::str::from_utf8(bytes).ok()?;
    let status = bare.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    let status = StatusCode::from_bytes(status.as_bytes()).ok()?;
    Some((status, bare)).filter(|(status, _)| status.is_client_error())
}

/// The answer to a client of whom nothing was read.
pub fn whole(answer: Response<Vec<u8>>) -> Vec<u8> {
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&Timestamp::now());
    let date = date.map_or_else(|_| String::new(), |date| format!("date: {date}\r\n"));
    dress(
        &format!(
            "HTTP/1.1 {}\r\nconnection: close\r\n{date}\r\n",
            answer.status()
        ),
        answer,
    )
}

/// `answer` on the wire, with the date and the word to close from `bare`.
fn dress(bare: &str, answer: Response<Vec<u8>>) -> Vec<u8> {
    let (head, body) = answer.into_parts();
    let kept = bare
        .lines()
        .skip(1)
        .filter(|line| !line.is_empty() && !line.starts_with("content-length"));
    let mut text = format!("HTTP/1.1 {}\r\ncontent-length: {}", head.status, body.len());
    for line in kept {
        text.extend(["\r\n", line]);
    }
    let mut out = text.into_bytes();
    for (name, value) in &head.headers {
        for part in [b"\r\n", name.as_str().as_bytes(), b": ", value.as_bytes()] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(&body);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::{Counts, Paces};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const BARE: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";

    /// What hyper says by itself is dressed; what an answer of the router's goes on or ends with is its own, whatever it looks like and however it is
    /// cut in pieces, also behind a pause.
    #[tokio::test]
    async fn what_is_answered_leaves_as_it_is() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut wire = Wire {
            stream: TcpStream::connect(address).await.unwrap(),
            peer: address,
            refuse: Arc::new(|_, _| Response::new(b"dressed".to_vec())),
            dressed: Vec::new(),
            answers: Answers::default(),
            is_within: false,
            taking: Taking::new(Paces::default().answer, Arc::<Counts>::default()),
            turns: Turns::default(),
            queued: Queued::default(),
        };
        let (mut client, _) = listener.accept().await.unwrap();
        let answering = wire.answers.begin();
        wire.write_all(b"an answer begins, ").await.unwrap();
        wire.write_all(BARE).await.unwrap();
        wire.flush().await.unwrap();
        wire.write_all(BARE).await.unwrap();
        drop(answering);
        wire.write_all(BARE).await.unwrap();
        wire.flush().await.unwrap();
        wire.write_all(BARE).await.unwrap();
        drop(wire);
        let mut told = Vec::new();
        client.read_to_end(&mut told).await.unwrap();
        let own = [&b"an answer begins, "[..], BARE, BARE, BARE].concat();
        let dressed = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ndressed";
        assert_eq!(told, [&own[..], dressed].concat());
    }
}
