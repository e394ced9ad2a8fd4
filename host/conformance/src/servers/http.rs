//! A seller's API that reads a request and lies in its answer, byte by byte: no HTTP server lets itself be brought to do that.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::tcp::{for_ever, garbage, read_all, reset, silence, trickle};

super::lies! {
    HttpLie {
        /// No lie at all, for guests that only want an answer.
        Honest,
        /// Like `Honest`, but each answer takes a quarter of a second.
        Late,
        SilentAfterTheRequest,
        ResetsAfterTheRequest,
        NoHttp,
        GarbageInTheHead,
        HeadersForEver,
        HeaderWithoutEnd,
        HeadOneByteAtATime,
        StatusOutOfRange,
        ContinueForEver,
        SwitchesProtocols,
        RedirectsToItself,
        BodyOneByteAtATime,
        LongerThanAnnounced,
        ShorterThanAnnounced,
        TwoLengths,
        NegativeLength,
        HugeLength,
        HugeBody,
        ChunksForEver,
        TinyChunksForEver,
        ChunkOfManyDigits,
        ChunkExtensionsForEver,
        TrailersForEver,
        BodyWithoutEnd,
        DeepJson,
        HugeNumber,
        GarbageBody,
        CompressedBomb,
        HugeError,
        SaysRetryInACentury,
        /// Of a connection that is https: no TLS comes.
        TlsTornByGarbage,
        TlsThenSilence,
    }
}

pub async fn serve(stream: &mut TcpStream, lie: HttpLie) -> io::Result<()> {
    match lie {
        HttpLie::TlsTornByGarbage => {
            stream.write_all(&garbage(4 << 10)).await?;
            return read_all(stream).await;
        }
        HttpLie::TlsThenSilence => return silence().await,
        _ => {}
    }
    loop {
        let asset_id = read_request(stream).await?;
        answer(stream, lie, &asset_id).await?;
    }
}

async fn answer(stream: &mut TcpStream, lie: HttpLie, asset_id: &str) -> io::Result<()> {
    use HttpLie::*;
    let body = format!(
        "{{\"timestamp\":\"2026-11-20T08:00:00Z\",\"answer_value\":21,\"asset_id\":\"{asset_id}\"}}"
    );
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let sized = |length: &str| format!("{json}content-length: {length}\r\n\r\n");
    let whole = format!("{}{body}", sized(&body.len().to_string()));
    let chunked = format!("{json}transfer-encoding: chunked\r\n\r\n");
    let plain = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    match lie {
        Honest => stream.write_all(whole.as_bytes()).await,
        Late => {
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
            stream.write_all(whole.as_bytes()).await
        }
        SilentAfterTheRequest => silence().await,
        ResetsAfterTheRequest => {
            reset(stream)?;
            Err(io::ErrorKind::ConnectionReset.into())
        }
        NoHttp => tell(stream, "220 mail.example.com ESMTP at your service\r\n").await,
        GarbageInTheHead => {
            stream.write_all(json.as_bytes()).await?;
            stream.write_all(&garbage(64 << 10)).await?;
            read_all(stream).await
        }
        HeadersForEver => {
            stream.write_all(json.as_bytes()).await?;
            for_ever(stream, "x-more: and more\r\n".repeat(1000).as_bytes()).await
        }
        HeaderWithoutEnd => {
            stream
                .write_all(format!("{json}x-long: ").as_bytes())
                .await?;
            for_ever(stream, &[b'h'; 64 << 10]).await
        }
        HeadOneByteAtATime => trickle(stream, whole.as_bytes()).await,
        StatusOutOfRange => tell(stream, "HTTP/1.1 99999 WOW\r\ncontent-length: 0\r\n\r\n").await,
        ContinueForEver => {
            // So much at once that a reader never has to wait for more.
            for_ever(
                stream,
                "HTTP/1.1 100 Continue\r\n\r\n".repeat(40_000).as_bytes(),
            )
            .await
        }
        SwitchesProtocols => {
            let head =
                "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: souk\r\n\r\n";
            tell(stream, head).await
        }
        RedirectsToItself => {
            let head = "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(head.as_bytes()).await
        }
        BodyOneByteAtATime => {
            stream
                .write_all(sized(&body.len().to_string()).as_bytes())
                .await?;
            trickle(stream, body.as_bytes()).await
        }
        LongerThanAnnounced => {
            let extra = format!("{whole}{whole}{}", "and so on ".repeat(10_000));
            tell(stream, &extra).await
        }
        ShorterThanAnnounced => {
            let head = sized(&(body.len() + 1000).to_string());
            stream.write_all(format!("{head}{body}").as_bytes()).await?;
            Err(io::ErrorKind::UnexpectedEof.into())
        }
        TwoLengths => {
            let head = format!("{json}content-length: 5\r\ncontent-length: 500000\r\n\r\n{body}");
            tell(stream, &head).await
        }
        NegativeLength => tell(stream, &format!("{}{body}", sized("-1"))).await,
        HugeLength => tell(stream, &format!("{}{body}", sized("9223372036854775807"))).await,
        HugeBody => {
            const MIB: usize = 1 << 20;
            stream
                .write_all(sized(&(200 * MIB).to_string()).as_bytes())
                .await?;
            for _ in 0..200 {
                stream.write_all(&vec![b'b'; MIB]).await?;
            }
            read_all(stream).await
        }
        ChunksForEver => {
            stream.write_all(chunked.as_bytes()).await?;
            let chunk = format!("10000\r\n{}\r\n", "c".repeat(0x10000));
            for_ever(stream, chunk.as_bytes()).await
        }
        TinyChunksForEver => {
            stream.write_all(chunked.as_bytes()).await?;
            for_ever(stream, "1\r\n \r\n".repeat(1000).as_bytes()).await
        }
        ChunkOfManyDigits => {
            tell(stream, &format!("{chunked}{}\r\n{body}", "f".repeat(4000))).await
        }
        ChunkExtensionsForEver => {
            stream.write_all(format!("{chunked}5;").as_bytes()).await?;
            for_ever(stream, &[b'e'; 64 << 10]).await
        }
        TrailersForEver => {
            let all = format!("{chunked}{:x}\r\n{body}\r\n0\r\n", body.len());
            stream.write_all(all.as_bytes()).await?;
            for_ever(stream, "x-late: and later\r\n".repeat(1000).as_bytes()).await
        }
        BodyWithoutEnd => {
            stream.write_all(format!("{json}\r\n").as_bytes()).await?;
            for_ever(stream, &[b' '; 64 << 10]).await
        }
        DeepJson => {
            stream
                .write_all(ok(&"[".repeat(1_000_000)).as_bytes())
                .await
        }
        HugeNumber => {
            let digits = "9".repeat(900_000);
            let long = body.replace(":21,", &format!(":{digits},"));
            stream.write_all(ok(&long).as_bytes()).await
        }
        GarbageBody => {
            let bytes = garbage(64 << 10);
            stream
                .write_all(sized(&bytes.len().to_string()).as_bytes())
                .await?;
            stream.write_all(&bytes).await
        }
        CompressedBomb => {
            let zeros = "\0".repeat(1 << 16);
            let head = format!(
                "{json}content-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
                zeros.len()
            );
            stream.write_all(format!("{head}{zeros}").as_bytes()).await
        }
        HugeError => {
            let text = "sorry, ".repeat(100_000);
            stream
                .write_all(plain("500 Internal Server Error", &text).as_bytes())
                .await
        }
        SaysRetryInACentury => {
            let head = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 99999999999999999999\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(head.as_bytes()).await
        }
        // These never come to a request.
        TlsTornByGarbage | TlsThenSilence => Ok(()),
    }
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Says it, and waits for what comes of it.
async fn tell(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    read_all(stream).await
}

/// Reads a request to its end; its `X-Asset-ID` is what a good answer echoes.
async fn read_request(stream: &mut TcpStream) -> io::Result<String> {
    const HEAD_BYTES_MAX: usize = 64 << 10;
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if bytes.len() > HEAD_BYTES_MAX || stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let header = |wanted: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let length: usize = header("content-length").parse().unwrap_or_default();
    let mut body = vec![0; length.saturating_sub(bytes.len() - end)];
    stream.read_exact(&mut body).await?;
    Ok(header("x-asset-id"))
}
