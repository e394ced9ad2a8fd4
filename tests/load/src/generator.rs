//! A small closed-loop load generator: `clients` connections, one request in flight on each, all on
//! one thread, so that it costs every competitor the same.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Larger than any answer of the benchmark.
const ANSWER_BYTES_MAX: usize = 4 << 20;

pub struct Run {
    pub requests_per_second: f64,
    pub median_us: f64,
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

/// Runs `requests` in a closed loop for `length` after a warm-up of a fifth of it.
pub fn run(
    address: &str,
    requests: &[Vec<u8>],
    clients: usize,
    length: Duration,
) -> anyhow::Result<Run> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut tasks = Vec::new();
        let warm_up = length / 5;
        let start = Instant::now() + warm_up;
        let end = Instant::now() + length;
        for client in 0..clients {
            let mut connection = Connection::open(address).await?;
            let requests = requests.to_vec();
            tasks.push(tokio::spawn(async move {
                let mut latencies: Vec<u32> = Vec::with_capacity(1 << 16);
                let mut next = client * 7919;
                loop {
                    let request = &requests[next % requests.len()];
                    next += 1;
                    let sent = Instant::now();
                    let (status, body) = connection.exchange(request).await?;
                    if status != 200 {
                        bail!("answer {status}: {}", String::from_utf8_lossy(body));
                    }
                    let now = Instant::now();
                    if now > end {
                        return Ok(latencies);
                    }
                    if sent >= start {
                        latencies.push((now - sent).as_micros().min(u32::MAX as u128) as u32);
                    }
                }
            }));
        }
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(task.await??);
        }
        ensure!(!latencies.is_empty(), "no request ended in time");
        latencies.sort_unstable();
        Ok(Run {
            requests_per_second: latencies.len() as f64 / (length - warm_up).as_secs_f64(),
            median_us: f64::from(latencies[latencies.len() / 2]),
        })
    })
}
