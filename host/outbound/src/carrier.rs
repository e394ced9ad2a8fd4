//! What carries TLS's records: a socket, and, while the two sides shake hands over the Tabular Data Stream, its packets (MS-TDS 2.2.6.5: the
//! handshake is the payload of messages of type 0x12, as PRELOGIN is; whatever follows is bare).
//!
//! What comes may say nothing to whoever reads within TLS: a server may hand out tickets for as long as it likes, eight hundred in a record, and rustls reads on
//! until something is said. So it is counted here.

use std::{
    error::Error,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::{Turn, reading::NoAnswer};

const PRELOGIN: u8 = 0x12;
/// A reply, as later ones are marked: some servers mark these so too.
const TABULAR_RESULT: u8 = 0x04;
const LAST: u8 = 0x01;
const HEADER_BYTES: usize = 8;
/// What a server takes before a login has agreed on more.
const PACKET_BYTES: usize = 4096;
/// One side's part of a handshake: certificates are some kilobytes.
const FLIGHT_BYTES_MAX: usize = 256 << 10;
/// Others on this thread have their turn after so much that says nothing: some milliseconds of tickets. Of what is said whoever reads it gives them theirs.
const TURN_BYTES: usize = 32 << 10;
/// What may come without a word in it. A message of a handshake has 64 KiB at most, a record 16.
const UNSAID_BYTES_MAX: usize = 256 << 10;

pub struct Carrier {
    socket: TcpStream,
    /// Absent but for the handshake.
    packets: Option<Box<Packets>>,
    turn: Turn<TURN_BYTES>,
    /// Bytes that came since something was said.
    unsaid: usize,
    /// What is said within TLS are packets, too.
    is_tds: bool,
}

#[derive(Default)]
struct Packets {
    /// Records that leave as one message.
    flight: Vec<u8>,
    /// The message, and how much of it is written.
    message: Vec<u8>,
    written: usize,
    /// Of the packet that is being read, and how many of its bytes there are.
    header: [u8; HEADER_BYTES],
    known: usize,
    /// What is left of its payload.
    left: usize,
}

impl Carrier {
    pub fn bare(socket: TcpStream, is_tds: bool) -> Carrier {
        Carrier {
            socket,
            packets: None,
            turn: Turn::default(),
            unsaid: 0,
            is_tds,
        }
    }

    pub fn tds(socket: TcpStream) -> Carrier {
        Carrier {
            packets: Some(Box::default()),
            ..Carrier::bare(socket, true)
        }
    }

    /// What came has said so many bytes.
    #[inline]
    pub fn said(&mut self, bytes: usize) {
        self.unsaid = 0;
        self.turn.takes_back(bytes);
    }

    /// Whether each packet of what is said within TLS has to be a record of its own ([`first_packet`]).
    #[inline]
    pub fn is_tds(&self) -> bool {
        self.is_tds
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// The handshake is over: records are bare from here on.
    pub fn unpack(&mut self) -> io::Result<()> {
        match self.packets.take() {
            Some(packets) if packets.left > 0 || packets.known > 0 => Err(invalid(
                "the peer went on after the handshake before it was asked anything",
            )),
            _ => Ok(()),
        }
    }
}

impl Packets {
    fn poll_read(
        &mut self,
        socket: &mut TcpStream,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.left == 0 {
            let mut header = ReadBuf::new(&mut self.header[self.known..]);
            ready!(Pin::new(&mut *socket).poll_read(cx, &mut header))?;
            match header.filled().len() {
                // Whoever reads sees the end.
                0 => return Poll::Ready(Ok(())),
                count => self.known += count,
            }
            if self.known == HEADER_BYTES {
                self.left = payload(&self.header)?;
                self.known = 0;
            }
        }
        let mut piece = [0; PACKET_BYTES];
        let room = self.left.min(buffer.remaining()).min(PACKET_BYTES);
        let mut piece = ReadBuf::new(&mut piece[..room]);
        ready!(Pin::new(socket).poll_read(cx, &mut piece))?;
        self.left -= piece.filled().len();
        buffer.put_slice(piece.filled());
        Poll::Ready(Ok(()))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.flight.len() + bytes.len() > FLIGHT_BYTES_MAX {
            return Err(invalid("the handshake is too long"));
        }
        self.flight.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn poll_flush(&mut self, socket: &mut TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.message.is_empty() && !self.flight.is_empty() {
            self.message = message(&std::mem::take(&mut self.flight));
            self.written = 0;
        }
        while self.written < self.message.len() {
            let rest = &self.message[self.written..];
            match ready!(Pin::new(&mut *socket).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        self.message.clear();
        Pin::new(socket).poll_flush(cx)
    }
}

/// The packet that these bytes begin with, by what its head says of its length; all of them where that is none.
///
/// SQL Server drops whoever sends a record of TLS that has more than a packet, or less: its own clients seal one packet at a time.
pub fn first_packet(bytes: &[u8]) -> &[u8] {
    let length = match bytes {
        [_, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    };
    match length {
        HEADER_BYTES.. => &bytes[..length.min(bytes.len())],
        _ => bytes,
    }
}

/// How many bytes follow a header.
fn payload(header: &[u8; HEADER_BYTES]) -> io::Result<usize> {
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    match header[0] {
        PRELOGIN | TABULAR_RESULT if length >= HEADER_BYTES => Ok(length - HEADER_BYTES),
        kind => Err(invalid(format!(
            "the peer answered the handshake with a packet of type {kind:#04x} and {length} bytes"
        ))),
    }
}

/// The packets of one message.
fn message(payload: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(payload.len() + HEADER_BYTES);
    let mut pieces = payload.chunks(PACKET_BYTES - HEADER_BYTES).peekable();
    let mut number = 0_u8;
    while let Some(piece) = pieces.next() {
        number = number.wrapping_add(1);
        let status = if pieces.peek().is_none() { LAST } else { 0 };
        let length = (piece.len() + HEADER_BYTES) as u16;
        message.extend_from_slice(&[PRELOGIN, status]);
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(&[0, 0, number, 0]);
        message.extend_from_slice(piece);
    }
    message
}

fn invalid(what: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl AsyncRead for Carrier {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Carrier {
            socket,
            packets,
            turn,
            unsaid,
            is_tds: _,
        } = self.get_mut();
        // A read is of some kilobytes.
        ready!(turn.poll_room(cx));
        let before = buffer.filled().len();
        let read = match packets {
            None => Pin::new(socket).poll_read(cx, buffer),
            Some(packets) => packets.poll_read(socket, cx, buffer),
        };
        if !matches!(read, Poll::Ready(Ok(()))) {
            turn.ends();
            return read;
        }
        let bytes = buffer.filled().len() - before;
        turn.goes_on(bytes);
        *unsaid += bytes;
        match *unsaid > UNSAID_BYTES_MAX {
            true => Poll::Ready(Err(invalid(NoAnswer(*unsaid)))),
            false => read,
        }
    }
}

impl AsyncWrite for Carrier {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Carrier {
            socket, packets, ..
        } = self.get_mut();
        match packets {
            None => Pin::new(socket).poll_write(cx, bytes),
            Some(packets) => Poll::Ready(packets.write(bytes)),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Carrier {
            socket, packets, ..
        } = self.get_mut();
        match packets {
            None => Pin::new(socket).poll_write_vectored(cx, pieces),
            Some(packets) => {
                let first = pieces.iter().find(|piece| !piece.is_empty());
                Poll::Ready(first.map_or(Ok(0), |piece| packets.write(piece)))
            }
        }
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Carrier {
            socket, packets, ..
        } = self.get_mut();
        match packets {
            None => Pin::new(socket).poll_flush(cx),
            Some(packets) => packets.poll_flush(socket, cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flight that is longer than a packet is one message, whose last packet says so.
    #[test]
    fn a_flight_is_one_message() {
        let flight: Vec<u8> = (0..10_000).map(|at| at as u8).collect();
        let mut rest = &message(&flight)[..];
        let (mut read, mut seen) = (Vec::new(), Vec::new());
        while !rest.is_empty() {
            let header: [u8; HEADER_BYTES] = rest[..HEADER_BYTES].try_into().unwrap();
            let length = payload(&header).unwrap();
            seen.push((header[1], length, header[6]));
            read.extend_from_slice(&rest[HEADER_BYTES..HEADER_BYTES + length]);
            rest = &rest[HEADER_BYTES + length..];
        }
        assert_eq!(read, flight);
        assert_eq!(seen, [(0, 4088, 1), (0, 4088, 2), (LAST, 1824, 3)]);
    }

    /// What is no packet of a handshake is told, and nothing is read on its word.
    #[test]
    fn headers_are_checked() {
        assert_eq!(payload(&[0x12, 1, 0, 9, 0, 0, 1, 0]).unwrap(), 1);
        assert_eq!(payload(&[0x04, 1, 16, 0, 0, 0, 1, 0]).unwrap(), 4088);
        for wrong in [[0x16, 3, 3, 0, 5, 0, 0, 0], [0x12, 1, 0, 7, 0, 0, 1, 0]] {
            assert!(payload(&wrong).is_err(), "{wrong:?}");
        }
    }

    /// Packets are told apart by their heads, and what has none is not held back.
    #[test]
    fn a_packet_ends_where_it_says() {
        let packet = [6, 1, 0, 9, 0, 0, 1, 0, 7];
        let two = [&packet[..], &packet[..]].concat();
        assert_eq!(first_packet(&two), packet);
        assert_eq!(first_packet(&packet), packet);
        for other in [&packet[..8], &packet[..3], &[6, 1, 0, 7, 0, 0, 1, 0], &[]] {
            assert_eq!(first_packet(other), other);
        }
    }
}
