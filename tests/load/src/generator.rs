//! A small closed-loop load generator: `clients` connections, one request in flight on each, all on
//! one thread, so that it costs every competitor the same.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Larger than any answer of the benchmark.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// How long a client waits after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(1);

pub struct Run {
    pub requests_per_second: f64,
    pub median_us: f64,
    pub p99_us: f64,
}

/// Bytes of one HTTP/1.1 request, keep-alive.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if method == "POST" {
        text.push_str(&format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        ));
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub async fn open(address: &str) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            buffer: Vec::with_capacity(256 << 10),
        })
    }

    /// Sends one request and reads one answer; returns its status line and body.
    pub async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<(u16, &[u8])> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (mut head_end, mut total) = (0, usize::MAX);
        while self.buffer.len() < total {
            ensure!(
                self.buffer.len() < ANSWER_BYTES_MAX,
                "the answer is too long"
            );
            ensure!(
                self.stream.read_buf(&mut self.buffer).await? > 0,
                "the connection was closed"
            );
            if total == usize::MAX
                && let Some(at) = self
                    .buffer
                    .windows(4)
                    .position(|window| window == b"\r\n\r\n")
            {
                head_end = at + 4;
                total = head_end + content_length(&self.buffer[..head_end])?;
            }
        }
        let status = std::str::from_utf8(&self.buffer[9..12])?.parse()?;
        Ok((status, &self.buffer[head_end..total]))
    }
}

fn content_length(head: &[u8]) -> anyhow::Result<usize> {
    let head = std::str::from_utf8(head)?;
    for line in head.lines() {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            return Ok(value.trim().parse()?);
        }
    }
    bail!("the answer has no Content-Length: {head}")
}

/// How much longer than asked a run may take until a request ends.
const LONGER_MAX: u32 = 64;

/// Runs `requests` in a closed loop for `length` after a warm-up of a fifth of it. An answer that is no 200 ends it. Where a disk that others keep busy
/// holds up all of them, so that none ends, it is run anew for longer: the rate has the halt in it.
pub fn run(
    address: &str,
    requests: &[Vec<u8>],
    clients: usize,
    length: Duration,
) -> anyhow::Result<Run> {
    let mut longer = 1;
    while longer <= LONGER_MAX {
        let measured = measure(address, requests, clients, length * longer)?;
        if let Some(failure) = measured.first_failure {
            bail!("{failure}");
        }
        if !measured.latencies_us.is_empty() {
            return Ok(measured.run());
        }
        longer *= 4;
    }
    bail!("no request ended in {LONGER_MAX} times {length:?}")
}

/// What a closed loop saw.
#[derive(Default)]
pub struct Measured {
    /// Of answers with 200, ascending.
    pub latencies_us: Vec<u32>,
    /// Answers with another status, and connections that broke.
    pub failed: u64,
    pub first_failure: Option<String>,
    /// Without the warm-up.
    pub length: Duration,
}

impl Measured {
    pub fn run(&self) -> Run {
        Run {
            requests_per_second: self.latencies_us.len() as f64 / self.length.as_secs_f64(),
            median_us: self.quantile_us(0.5),
            p99_us: self.quantile_us(0.99),
        }
    }

    /// 0 when there is none.
    fn quantile_us(&self, quantile: f64) -> f64 {
        let last = self.latencies_us.len().saturating_sub(1);
        let at = (last as f64 * quantile).ceil() as usize;
        self.latencies_us.get(at).copied().map_or(0.0, f64::from)
    }
}

/// As [`run`]; what fails is counted, and its client goes on.
pub fn measure(
    address: &str,
    requests: &[Vec<u8>],
    clients: usize,
    length: Duration,
) -> anyhow::Result<Measured> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut tasks = Vec::new();
        let warm_up = length / 5;
        let start = Instant::now() + warm_up;
        let end = Instant::now() + length;
        for client in 0..clients {
            let connection = Connection::open(address).await?;
            let requests = requests.to_vec();
            let address = address.to_owned();
            tasks.push(tokio::spawn(async move {
                closed_loop(&address, connection, &requests, client, start..end).await
            }));
        }
        let mut all = Measured {
            length: length - warm_up,
            ..Measured::default()
        };
        for task in tasks {
            let one = task.await?;
            all.latencies_us.extend(one.latencies_us);
            all.failed += one.failed;
            all.first_failure = all.first_failure.or(one.first_failure);
        }
        all.latencies_us.sort_unstable();
        Ok(all)
    })
}

/// One client. What is in flight when its time is over does not count, however long it takes.
async fn closed_loop(
    address: &str,
    mut connection: Connection,
    requests: &[Vec<u8>],
    client: usize,
    time: std::ops::Range<Instant>,
) -> Measured {
    let mut seen = Measured::default();
    seen.latencies_us.reserve(1 << 16);
    let mut next = client * 7919;
    loop {
        let request = &requests[next % requests.len()];
        next += 1;
        let sent = Instant::now();
        let exchange = connection.exchange(request);
        let failure = match tokio::time::timeout_at(time.end.into(), exchange).await {
            Err(_) => return seen,
            Ok(Ok((200, _))) => {
                if sent >= time.start {
                    let micros = sent.elapsed().as_micros();
                    seen.latencies_us.push(micros.min(u32::MAX as u128) as u32);
                }
                continue;
            }
            Ok(Ok((status, body))) => {
                format!("answer {status}: {}", String::from_utf8_lossy(body))
            }
            Ok(Err(error)) => {
                if let Ok(again) = Connection::open(address).await {
                    connection = again;
                }
                format!("{error:#}")
            }
        };
        seen.failed += 1;
        seen.first_failure.get_or_insert(failure);
        // A host that refuses at once must not make this a loop without a pause.
        tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
    }
}
