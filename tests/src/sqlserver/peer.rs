//! One connection: packets, and the TLS that is in them while it shakes hands (TDS 7.4) or around them (TDS 8.0).

use std::io::{self, Read, Write};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::{ServerConfig, ServerConnection};

use super::door::Liar;

pub const BATCH: u8 = 0x01;
pub const RPC: u8 = 0x03;
pub const REPLY: u8 = 0x04;
pub const ATTENTION: u8 = 0x06;
pub const MANAGER: u8 = 0x0e;
pub const LOGIN: u8 = 0x10;
pub const PRELOGIN: u8 = 0x12;
const HEADER_BYTES: usize = 8;
const END: u8 = 1;
/// What a record of TLS begins with: nobody has said anything in packets.
const HANDSHAKE_RECORD: u8 = 0x16;
/// Its type, a version and its length.
const RECORD_HEADER_BYTES: usize = 5;

/// A client's message.
pub struct Message {
    pub kind: u8,
    /// Of its first packet.
    pub status: u8,
    pub body: Vec<u8>,
}

pub struct Peer {
    socket: TcpStream,
    tls: Option<ServerConnection>,
    /// What has come of records, once they are bare.
    wire: Vec<u8>,
    plain: Vec<u8>,
    /// What is read at once.
    read: Vec<u8>,
    /// Who says what is told here, at a door that lies.
    liar: Option<Liar>,
    pub packet_bytes: usize,
    /// The client was let in.
    pub is_open: bool,
}

impl Peer {
    pub fn new(socket: TcpStream, liar: Option<Liar>) -> Peer {
        Peer {
            socket,
            tls: None,
            wire: Vec::new(),
            plain: Vec::new(),
            read: vec![0; 16 << 10],
            liar,
            packet_bytes: 4_096,
            is_open: false,
        }
    }

    /// Whether the client begins with TLS.
    pub async fn begins_sealed(&self) -> io::Result<bool> {
        let mut first = [0];
        self.socket.peek(&mut first).await?;
        Ok(first[0] == HANDSHAKE_RECORD)
    }

    pub fn is_sealed(&self) -> bool {
        self.tls.is_some()
    }

    /// The protocol that both sides have chosen.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.alpn_protocol()
    }

    /// The next message; `None` when the client has gone.
    pub async fn message(&mut self) -> io::Result<Option<Message>> {
        let mut message: Option<Message> = None;
        loop {
            while self.plain.len() < HEADER_BYTES {
                if !self.fill().await? {
                    return Ok(None);
                }
            }
            let length = usize::from(u16::from_be_bytes([self.plain[2], self.plain[3]]));
            if length < HEADER_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            while self.plain.len() < length {
                if !self.fill().await? {
                    return Ok(None);
                }
            }
            let packet: Vec<u8> = self.plain.drain(..length).collect();
            let message = message.get_or_insert_with(|| Message {
                kind: packet[0],
                status: packet[1],
                body: Vec::new(),
            });
            message.body.extend_from_slice(&packet[HEADER_BYTES..]);
            if packet[1] & END != 0 {
                let body = std::mem::take(&mut message.body);
                return Ok(Some(Message { body, ..*message }));
            }
        }
    }

    /// Reads once, unless there is a record already. Cancelled, it has lost nothing. As SQL Server does, it has done with a client whose record has a part of
    /// a packet, or more than a packet may have.
    async fn fill(&mut self) -> io::Result<bool> {
        if self.tls.is_none() || record_bytes(&self.wire).is_none() {
            let count = self.socket.read(&mut self.read).await?;
            let into = match self.tls {
                Some(_) => &mut self.wire,
                None => &mut self.plain,
            };
            into.extend_from_slice(&self.read[..count]);
            if count == 0 {
                return Ok(false);
            }
        }
        let Some(tls) = &mut self.tls else {
            return Ok(true);
        };
        while let Some(length) = record_bytes(&self.wire) {
            let record: Vec<u8> = self.wire.drain(..length).collect();
            let mut record = &record[..];
            while !record.is_empty() {
                if tls.read_tls(&mut record)? == 0 {
                    return Ok(false);
                }
            }
            let state = tls.process_new_packets().map_err(io::Error::other)?;
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            tls.reader().read_exact(&mut plain)?;
            if !are_packets(&plain, self.packet_bytes) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.plain.extend(plain);
        }
        Ok(true)
    }

    /// The next record of a handshake that is not in packets.
    async fn record(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = record_bytes(&self.wire) {
                return Ok(self.wire.drain(..length).collect());
            }
            let count = self.socket.read(&mut self.read).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.wire.extend_from_slice(&self.read[..count]);
        }
    }

    /// A whole message.
    pub async fn say(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        self.say_part(kind, body, true).await
    }

    /// A part of a message, in whole packets.
    pub async fn say_part(&mut self, kind: u8, body: &[u8], is_last: bool) -> io::Result<()> {
        let room = self.packet_bytes - HEADER_BYTES;
        let packed = |body: &[u8]| packets(kind, body, room, is_last);
        let out = match &mut self.liar {
            // Before TLS stands, nobody is to be lied to within it.
            Some(liar) if self.tls.is_some() => liar.told(body, self.is_open, packed),
            _ => packed(body),
        };
        self.write(&out).await
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return self.socket.write_all(bytes).await;
        };
        // What is written waits in memory, of which there is some.
        for piece in bytes.chunks(16 << 10) {
            tls.writer().write_all(piece)?;
            let mut records = Vec::new();
            while tls.wants_write() {
                tls.write_tls(&mut records)?;
            }
            self.socket.write_all(&records).await?;
        }
        Ok(())
    }

    /// Shakes hands, in packets or bare.
    pub async fn shake_hands(
        &mut self,
        config: Arc<ServerConfig>,
        in_packets: bool,
    ) -> io::Result<()> {
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            let records = match in_packets {
                true => {
                    let message = self.message().await?;
                    match message {
                        Some(message) if message.kind == PRELOGIN => message.body,
                        _ => return Err(io::ErrorKind::InvalidData.into()),
                    }
                }
                false => self.record().await?,
            };
            let mut records = &records[..];
            while !records.is_empty() {
                tls.read_tls(&mut records)?;
                let accepted = tls.process_new_packets();
                let mut flight = Vec::new();
                while tls.wants_write() {
                    tls.write_tls(&mut flight)?;
                }
                match in_packets {
                    _ if flight.is_empty() => {}
                    true => self.say(PRELOGIN, &flight).await?,
                    false => self.socket.write_all(&flight).await?,
                }
                let state = accepted.map_err(io::Error::other)?;
                // A client may say something together with the end of its handshake.
                let mut plain = vec![0; state.plaintext_bytes_to_read()];
                tls.reader().read_exact(&mut plain)?;
                self.plain.extend(plain);
            }
        }
        self.tls = Some(tls);
        Ok(())
    }
}

/// How long the record is that these bytes begin with, if it is here as a whole.
fn record_bytes(wire: &[u8]) -> Option<usize> {
    let [_, _, _, high, low] = wire.first_chunk::<RECORD_HEADER_BYTES>()?;
    let length = RECORD_HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
    (wire.len() >= length).then_some(length)
}

/// Whether these are whole packets, and together no longer than one may be.
fn are_packets(mut plain: &[u8], packet_bytes: usize) -> bool {
    if plain.len() > packet_bytes {
        return false;
    }
    while let [_, _, high, low, ..] = plain {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        match plain.split_at_checked(length) {
            Some((packet, rest)) if packet.len() >= HEADER_BYTES => plain = rest,
            _ => return false,
        }
    }
    plain.is_empty()
}

/// A message, or a part of one, in packets of at most so many bytes each.
fn packets(kind: u8, body: &[u8], room: usize, is_last: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + HEADER_BYTES);
    let mut pieces = body.chunks(room).peekable();
    let mut piece = pieces.next().unwrap_or_default();
    for number in 1_usize.. {
        let status = if is_last && pieces.peek().is_none() {
            END
        } else {
            0
        };
        let length = ((piece.len() + HEADER_BYTES) as u16).to_be_bytes();
        out.extend_from_slice(&[kind, status, length[0], length[1], 0, 51, number as u8, 0]);
        out.extend_from_slice(piece);
        match pieces.next() {
            Some(next) => piece = next,
            None => break,
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As SQL Server has it by what its clients' users report: a record is a packet, or several small ones.
    #[test]
    fn a_record_has_whole_packets() {
        let packet = |length: usize| packets(RPC, &vec![7; length - HEADER_BYTES], 9_000, true);
        assert!(are_packets(&packet(512), 512) && are_packets(&[], 512));
        assert!(are_packets(&[packet(8), packet(504)].concat(), 512));
        for wrong in [
            packet(513),
            [packet(512), packet(8)].concat(),
            packet(512)[..511].to_vec(),
            [packet(100), packet(9)[..4].to_vec()].concat(),
            vec![RPC, END, 0],
            vec![RPC, END, 0, 0, 0, 0, 0, 0],
        ] {
            assert!(!are_packets(&wrong, 512), "{} bytes", wrong.len());
        }
    }
}
