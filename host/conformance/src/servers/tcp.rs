//! Servers of no protocol at all.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

super::lies! {
    TcpLie {
        /// Reads, and never says a word.
        Silent,
        /// Accepts, and does not even read.
        NeverReads,
        ClosesAtOnce,
        ResetsAtOnce,
        /// Answers as much as it gets.
        Echoes,
        /// Bytes of no protocol, for ever, as fast as they go.
        GarbageForEver,
        /// One byte of nothing every 50 ms.
        Trickles,
        /// 4 KiB of nothing, then silence.
        GarbageOnce,
    }
}

pub async fn serve(stream: &mut TcpStream, lie: TcpLie) -> io::Result<()> {
    match lie {
        TcpLie::Silent => read_all(stream).await,
        TcpLie::NeverReads => silence().await,
        TcpLie::ClosesAtOnce => Ok(()),
        TcpLie::ResetsAtOnce => reset(stream),
        TcpLie::Echoes => {
            let (mut from, mut to) = stream.split();
            tokio::io::copy(&mut from, &mut to).await.map(drop)
        }
        TcpLie::GarbageForEver => for_ever(stream, &garbage(64 << 10)).await,
        TcpLie::Trickles => trickle(stream, &garbage(1 << 16)).await,
        TcpLie::GarbageOnce => {
            stream.write_all(&garbage(4 << 10)).await?;
            read_all(stream).await
        }
    }
}

/// Closes without a goodbye: whoever reads is told that the connection was reset.
pub fn reset(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_zero_linger()
}

pub async fn silence() -> io::Result<()> {
    std::future::pending().await
}

/// Reads until the other side closes.
pub async fn read_all(stream: &mut TcpStream) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}

/// The same again, until the other side has had enough.
pub async fn for_ever(stream: &mut TcpStream, piece: &[u8]) -> io::Result<()> {
    loop {
        stream.write_all(piece).await?;
    }
}

/// One byte at a time, slowly, then silence.
pub async fn trickle(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(50);
    for byte in bytes {
        stream.write_all(&[*byte]).await?;
        tokio::time::sleep(PAUSE).await;
    }
    silence().await
}

/// The same bytes every time, and no protocol's.
pub fn garbage(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}
