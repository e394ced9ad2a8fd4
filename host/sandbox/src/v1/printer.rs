//! The standard output and error of a guest. What one call prints is held here, bounded, and handed to its speaker when the call is over:
//! a call that prints nothing costs one load.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult},
};

use crate::journal::{CALL_BYTES, Speaker, Stream};

/// Pieces of what one call prints: who goes from one stream to the other more often has the rest under the last one.
const PIECES_MAX: usize = 16;

/// Clones share what was printed.
#[derive(Clone, Default)]
pub(crate) struct Printer(Arc<Printed>);

#[derive(Default)]
struct Printed {
    /// Absent: nobody knows yet who speaks.
    speaker: Option<Arc<Speaker>>,
    /// Whether `text` holds anything.
    some: AtomicBool,
    text: Mutex<Text>,
}

#[derive(Default)]
struct Text {
    /// In the order of writing: a new piece where the stream changes.
    pieces: Vec<(Stream, Vec<u8>)>,
    bytes: usize,
    /// Bytes beyond what one call may print.
    beyond: usize,
}

impl Printer {
    pub fn new(speaker: Option<Arc<Speaker>>) -> Printer {
        Printer(Arc::new(Printed {
            speaker,
            ..Printed::default()
        }))
    }

    /// Whether nothing was printed since it was last heard.
    #[inline]
    pub fn is_silent(&self) -> bool {
        !self.0.some.load(Ordering::Relaxed)
    }

    pub fn print(&self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut text = self.0.text.lock();
        let fits = bytes.len().min(CALL_BYTES - text.bytes);
        text.beyond += bytes.len() - fits;
        text.bytes += fits;
        let is_last = text.pieces.len() == PIECES_MAX;
        match text.pieces.last_mut() {
            Some((last, piece)) if *last == stream || is_last => {
                piece.extend_from_slice(&bytes[..fits]);
            }
            _ if fits > 0 => text.pieces.push((stream, bytes[..fits].to_vec())),
            _ => {}
        }
        self.0.some.store(true, Ordering::Relaxed);
    }

    /// Takes what was printed, tells it to the journal, and returns the whole, without secrets. `None`: nothing.
    pub fn hear(&self) -> Option<String> {
        if self.is_silent() {
            return None;
        }
        let text = std::mem::take(&mut *self.0.text.lock());
        self.0.some.store(false, Ordering::Relaxed);
        let mut whole = String::new();
        for (stream, bytes) in text.pieces {
            let said = String::from_utf8_lossy(&bytes).into_owned();
            let said = match &self.0.speaker {
                Some(speaker) => speaker.redacted(said),
                None => said,
            };
            if let Some(speaker) = &self.0.speaker {
                speaker.say(stream, &said);
            }
            whole.push_str(&said);
        }
        if text.beyond > 0 {
            let told = format!(
                "{} more bytes were printed in this call, which may print {CALL_BYTES}",
                text.beyond
            );
            if let Some(speaker) = &self.0.speaker {
                speaker.say(Stream::Fault, &told);
            }
            whole.push('\n');
            whole.push_str(&told);
        }
        Some(whole)
    }

    /// As a directory guest has it.
    pub fn stream(&self, stream: Stream) -> Standard {
        Standard {
            printer: self.clone(),
            stream,
        }
    }
}

/// A standard stream as `wasmtime-wasi` takes it. Never full, never closed.
pub(crate) struct Standard {
    printer: Printer,
    stream: Stream,
}

impl IsTerminal for Standard {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Standard {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.printer.stream(self.stream))
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.printer.stream(self.stream))
    }
}

impl OutputStream for Standard {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.printer.print(self.stream, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CALL_BYTES)
    }
}

impl Pollable for Standard {
    fn ready<'a, 'b>(&'a mut self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(std::future::ready(()))
    }
}

impl AsyncWrite for Standard {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.printer.print(self.stream, bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever goes from one stream to the other is heard whole, in few pieces.
    #[test]
    fn pieces_are_bounded() {
        let printer = Printer::new(None);
        for _ in 0..CALL_BYTES / 2 {
            printer.print(Stream::Stdout, b"a");
            printer.print(Stream::Stderr, b"b");
        }
        assert_eq!(printer.0.text.lock().pieces.len(), PIECES_MAX);
        assert_eq!(printer.hear(), Some("ab".repeat(CALL_BYTES / 2)));
    }
}
