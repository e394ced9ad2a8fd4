//! A PostgreSQL in a hundred lines, which trusts everybody and knows one table with one row, and lies in one place.

use std::collections::HashMap;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::tcp::{for_ever, garbage, read_all, reset, silence, trickle};

super::lies! {
    PostgresLie {
        /// No lie at all: proves that the others are reached.
        Honest,
        /// The issue's own: `ParameterStatus` for ever, before the session is ready.
        ParameterStatusForEver,
        /// The same, in answer to a statement.
        ParameterStatusInsteadOfRows,
        NoticesForEver,
        ReadyForEver,
        AuthenticationForEver,
        SilentAfterStartup,
        /// A proof of the password that takes two thousand million rounds.
        ManyScramRounds,
        ScramGarbage,
        TlsTornByGarbage,
        TlsTornByClosing,
        TlsThenSilence,
        RowsForEver,
        /// A row of 1 GiB is announced, and arrives at 20 bytes a second.
        LyingLength,
        /// A row of 200 MiB is announced, and does arrive.
        OversizedRow,
        NegativeLength,
        ShortMessage,
        /// A row with 30,000 fields where one was described.
        MoreFieldsThanColumns,
        FieldBeyondTheMessage,
        ThirtyThousandColumns,
        LongColumnNames,
        UnknownTypes,
        NullBytesInText,
        TruncatedRow,
        RowsOneByteAtATime,
        ResetInTheMiddle,
        GarbageInTheMiddle,
        HugeError,
        HugeErrorForEver,
        ErrorWithoutEnd,
        RowsBeforeColumns,
        CompletesForEver,
        CopiesOut,
        SilentInTheMiddle,
        ParametersByTheThousand,
    }
}

const SSL_REQUEST: i32 = 80_877_103;
const CANCEL_REQUEST: i32 = 80_877_102;
/// A frontend message of the connector is a statement and its parameters.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

pub async fn serve(stream: &mut TcpStream, lie: PostgresLie) -> io::Result<()> {
    loop {
        let length = stream.read_i32().await?;
        let code = stream.read_i32().await?;
        let mut rest = vec![0; bounded(length - 8)?];
        stream.read_exact(&mut rest).await?;
        match code {
            SSL_REQUEST => match lie {
                PostgresLie::TlsTornByGarbage => {
                    stream.write_all(b"S").await?;
                    stream.write_all(&garbage(4 << 10)).await?;
                    return read_all(stream).await;
                }
                PostgresLie::TlsTornByClosing => return stream.write_all(b"S").await,
                PostgresLie::TlsThenSilence => {
                    stream.write_all(b"S").await?;
                    return silence().await;
                }
                _ => stream.write_all(b"N").await?,
            },
            CANCEL_REQUEST => return Ok(()),
            _ => break,
        }
    }
    start_up(stream, lie).await?;
    statements(stream, lie).await
}

async fn start_up(stream: &mut TcpStream, lie: PostgresLie) -> io::Result<()> {
    let status = message(b'S', b"application_name\0everybody\0");
    match lie {
        PostgresLie::ParameterStatusForEver => {
            stream
                .write_all(&message(b'R', &0i32.to_be_bytes()))
                .await?;
            return for_ever(stream, &status.repeat(1000)).await;
        }
        PostgresLie::AuthenticationForEver => {
            let ok = message(b'R', &0i32.to_be_bytes());
            return for_ever(stream, &ok.repeat(1000)).await;
        }
        PostgresLie::ManyScramRounds | PostgresLie::ScramGarbage => {
            let sasl = [&10i32.to_be_bytes()[..], b"SCRAM-SHA-256\0\0"].concat();
            stream.write_all(&message(b'R', &sasl)).await?;
            let first = read_message(stream).await?.1;
            let text = String::from_utf8_lossy(&first);
            let nonce = text.rsplit("r=").next().unwrap_or_default();
            let answer = match lie {
                PostgresLie::ManyScramRounds => {
                    format!("r={nonce}souk,s=c291aw==,i=2000000000")
                }
                _ => format!("r={nonce},s=%%%,i=-1,\0{}", "x".repeat(1 << 20)),
            };
            let continued = [&11i32.to_be_bytes()[..], answer.as_bytes()].concat();
            stream.write_all(&message(b'R', &continued)).await?;
            return read_all(stream).await;
        }
        _ => {}
    }
    let mut out = message(b'R', &0i32.to_be_bytes());
    out.extend(status);
    out.extend(message(b'S', b"server_version\x0015.0\0"));
    out.extend(message(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]));
    out.extend(READY);
    stream.write_all(&out).await?;
    match lie {
        PostgresLie::ReadyForEver => for_ever(stream, &READY.repeat(1000)).await,
        PostgresLie::SilentAfterStartup => silence().await,
        _ => Ok(()),
    }
}

const READY: &[u8] = b"Z\0\0\0\x05I";
/// The same within a transaction.
const READY_WITHIN: &[u8] = b"Z\0\0\0\x05T";

/// Answers message by message, as if everything were fine, up to the lie.
async fn statements(stream: &mut TcpStream, lie: PostgresLie) -> io::Result<()> {
    let (mut texts, mut portal) = (HashMap::<Vec<u8>, Vec<u8>>::new(), Vec::new());
    let (mut out, mut ready) = (Vec::new(), READY);
    loop {
        let (tag, body) = read_message(stream).await?;
        match tag {
            b'P' => {
                let mut words = body.split(|byte| *byte == 0);
                let name = words.next().unwrap_or_default().to_vec();
                texts.insert(name, words.next().unwrap_or_default().to_vec());
                out.extend(message(b'1', b""));
            }
            b'D' => {
                let statement = body.get(1..).unwrap_or_default();
                let name = statement
                    .split(|byte| *byte == 0)
                    .next()
                    .unwrap_or_default();
                let reads = texts.get(name).is_some_and(|text| is_query(text));
                out.extend(message(b't', &parameters(lie)));
                match reads {
                    true => out.extend(columns(lie)),
                    false => out.extend(message(b'n', b"")),
                }
            }
            b'B' => {
                let name = body.split(|byte| *byte == 0).nth(1).unwrap_or_default();
                portal = texts.get(name).cloned().unwrap_or_default();
                out.extend(message(b'2', b""));
            }
            b'E' if is_query(&portal) => {
                stream.write_all(&std::mem::take(&mut out)).await?;
                execute(stream, lie).await?;
            }
            b'E' => {
                if asks_whose(&portal) {
                    out.extend(data_row(&[b"1", b"on"]));
                }
                ready = match &portal {
                    text if text.starts_with(b"BEGIN") => READY_WITHIN,
                    text if text.starts_with(b"ROLLBACK") => READY,
                    _ => ready,
                };
                out.extend(message(b'C', b"RESET\0"));
            }
            b'C' => out.extend(message(b'3', b"")),
            b'S' => out.extend(ready),
            b'Q' => out.extend([&message(b'C', b"SET\0"), READY].concat()),
            b'X' => return Ok(()),
            _ => {}
        }
        if matches!(tag, b'S' | b'H' | b'Q') {
            stream.write_all(&std::mem::take(&mut out)).await?;
        }
    }
}

/// Whether the backend is the one that the login named, and has taken its settings: it is and has.
fn asks_whose(text: &[u8]) -> bool {
    text.windows(14).any(|window| window == b"pg_backend_pid")
}

/// The tests' own statement, not what the connector says to set its session up.
fn is_query(text: &[u8]) -> bool {
    text.windows(9)
        .any(|window| window.eq_ignore_ascii_case(b"SELECT id"))
}

async fn execute(stream: &mut TcpStream, lie: PostgresLie) -> io::Result<()> {
    use PostgresLie::*;
    let row = data_row(&[&1i64.to_be_bytes()]);
    let end = message(b'C', b"SELECT 1\0");
    match lie {
        ParameterStatusInsteadOfRows => {
            let status = message(b'S', b"application_name\0everybody\0");
            for_ever(stream, &status.repeat(1000)).await
        }
        NoticesForEver => {
            let notice = message(b'N', b"SNOTICE\0VNOTICE\0C00000\0Mlisten\0\0");
            for_ever(stream, &notice.repeat(1000)).await
        }
        RowsForEver => for_ever(stream, &row.repeat(1000)).await,
        CompletesForEver => for_ever(stream, &end.repeat(1000)).await,
        LyingLength => {
            stream.write_all(&header(b'D', 1 << 30)).await?;
            trickle(stream, &[0; 1 << 12]).await
        }
        OversizedRow => {
            const MIB: usize = 1 << 20;
            stream.write_all(&header(b'D', 200 * MIB as i32)).await?;
            for _ in 0..200 {
                stream.write_all(&vec![0; MIB]).await?;
            }
            read_all(stream).await
        }
        NegativeLength => tell(stream, &header(b'D', -5)).await,
        ShortMessage => tell(stream, b"D\0\0\0\x03").await,
        MoreFieldsThanColumns => tell(stream, &data_row(&vec![&[0; 8][..]; 30_000])).await,
        FieldBeyondTheMessage => {
            let field = [&1u16.to_be_bytes()[..], &i32::MAX.to_be_bytes(), b"abc"].concat();
            tell(stream, &message(b'D', &field)).await
        }
        TruncatedRow => stream.write_all(&row[..row.len() - 3]).await,
        RowsOneByteAtATime => trickle(stream, &row.repeat(1000)).await,
        ResetInTheMiddle => {
            stream.write_all(&row[..5]).await?;
            reset(stream)?;
            Err(io::ErrorKind::ConnectionReset.into())
        }
        GarbageInTheMiddle => {
            stream.write_all(&row).await?;
            tell(stream, &garbage(256 << 10)).await
        }
        HugeError => tell(stream, &[&error(24 << 20), READY].concat()).await,
        HugeErrorForEver => for_ever(stream, &[&error(1 << 20), READY].concat()).await,
        ErrorWithoutEnd => tell(stream, &message(b'E', &[b'M'; 1 << 16])).await,
        CopiesOut => tell(stream, &message(b'H', &[0, 0, 1, 0, 0])).await,
        SilentInTheMiddle => {
            stream.write_all(&row).await?;
            silence().await
        }
        NullBytesInText => {
            let text = data_row(&[b"a\0b\xff\xfe"]);
            stream.write_all(&[text, end].concat()).await
        }
        LongColumnNames
        | ThirtyThousandColumns
        | UnknownTypes
        | RowsBeforeColumns
        | ParametersByTheThousand
        | Honest => stream.write_all(&[row, end].concat()).await,
        // These have ended before.
        ParameterStatusForEver
        | ReadyForEver
        | AuthenticationForEver
        | SilentAfterStartup
        | ManyScramRounds
        | ScramGarbage
        | TlsTornByGarbage
        | TlsTornByClosing
        | TlsThenSilence => Ok(()),
    }
}

/// Says it, and waits for what comes of it.
async fn tell(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    read_all(stream).await
}

fn parameters(lie: PostgresLie) -> Vec<u8> {
    match lie {
        PostgresLie::ParametersByTheThousand => {
            let count = 60_000u16;
            [&count.to_be_bytes()[..], &[0; 240_000]].concat()
        }
        _ => 0u16.to_be_bytes().to_vec(),
    }
}

/// The description of a result.
fn columns(lie: PostgresLie) -> Vec<u8> {
    const INT8: i32 = 20;
    const TEXT: i32 = 25;
    let (count, name, kind) = match lie {
        PostgresLie::ThirtyThousandColumns => (30_000, "c".to_owned(), INT8),
        PostgresLie::LongColumnNames => (1, "n".repeat(12 << 20), INT8),
        PostgresLie::UnknownTypes => (1, "id".to_owned(), 2_000_000),
        PostgresLie::NullBytesInText => (1, "id".to_owned(), TEXT),
        PostgresLie::RowsBeforeColumns => return data_row(&[&1i64.to_be_bytes()]),
        _ => (1u16, "id".to_owned(), INT8),
    };
    let mut body = count.to_be_bytes().to_vec();
    for _ in 0..count {
        body.extend(name.as_bytes());
        body.push(0);
        body.extend(0i32.to_be_bytes());
        body.extend(0i16.to_be_bytes());
        body.extend(kind.to_be_bytes());
        body.extend(8i16.to_be_bytes());
        body.extend((-1i32).to_be_bytes());
        body.extend(0i16.to_be_bytes());
    }
    message(b'T', &body)
}

fn data_row(fields: &[&[u8]]) -> Vec<u8> {
    let mut body = (fields.len() as u16).to_be_bytes().to_vec();
    for field in fields {
        body.extend((field.len() as i32).to_be_bytes());
        body.extend(*field);
    }
    message(b'D', &body)
}

fn error(bytes: usize) -> Vec<u8> {
    let text = "sorry, ".repeat(bytes / 7);
    let body = format!("SERROR\0VERROR\0CXX000\0M{text}\0\0");
    message(b'E', body.as_bytes())
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&header(tag, body.len() as i32 + 4)[..], body].concat()
}

fn header(tag: u8, length: i32) -> Vec<u8> {
    [&[tag][..], &length.to_be_bytes()].concat()
}

async fn read_message(stream: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let tag = stream.read_u8().await?;
    let length = stream.read_i32().await?;
    let mut body = vec![0; bounded(length - 4)?];
    stream.read_exact(&mut body).await?;
    Ok((tag, body))
}

fn bounded(length: i32) -> io::Result<usize> {
    usize::try_from(length)
        .ok()
        .filter(|length| *length <= MESSAGE_BYTES_MAX)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}
