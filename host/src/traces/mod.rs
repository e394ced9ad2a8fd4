//! Calls that were followed, on their way to the operator's collector: OTLP over HTTP, in protobuf (`otlp.rs` writes it). In batches, on a
//! background thread; what a collector does not take is dropped and counted (`souk_spans_dropped_total`), and nobody waits for it.

mod otlp;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode, Uri, header};
use souk_outbound::spans::{Ended, Recorder};
use souk_outbound::{Bounds, Client, EgressPolicy, Own, Reach, Trust};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Calls sent at once: some hundred KiB.
const BATCH_MAX: usize = 512;
/// How long the first call of a batch waits for others.
const BATCH_DELAY: Duration = Duration::from_secs(1);
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// A collector that is away is asked again after these; then the batch is dropped. Meanwhile the queue fills.
const AGAIN_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// What an answer says is not read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// One line about a collector that does not take what it is sent says as much as many.
const SAID_EVERY: Duration = Duration::from_secs(60);
/// One is used.
const BOUNDS: Bounds = Bounds {
    connect: Duration::from_secs(5),
    head_bytes: 16 << 10,
    idle_per_host: 1,
    idle_total: 1,
    idle: Some(Duration::from_secs(60)),
};

/// Where a base URL takes traces, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it: `/v1/traces` below it.
pub fn endpoint(url: &str) -> Result<Uri> {
    const PATH: &str = "/v1/traces";
    let base = url.trim_end_matches('/');
    let base = base.strip_suffix(PATH).unwrap_or(base);
    let uri: Uri = format!("{base}{PATH}").parse().with_context(wanted)?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().map(|authority| authority.as_str());
    ensure!(
        is_web && authority.is_some_and(|authority| !authority.contains('@')),
        wanted()
    );
    ensure!(uri.query().is_none(), wanted());
    Ok(uri)
}

fn wanted() -> &'static str {
    "--otlp-url wants the address of a collector that speaks OTLP over HTTP, without a user: http://127.0.0.1:4318"
}

/// The sender, as whoever stops the host holds it.
pub struct Exporter {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Exporter {
    pub fn start(
        uri: Uri,
        recorder: Arc<Recorder>,
        ended: mpsc::Receiver<Ended>,
    ) -> Result<Exporter> {
        let egress = EgressPolicy::unrestricted();
        let reach = Reach {
            egress: egress.clone(),
            egress_plain: egress,
            trust: Some(Trust::verified(None).map_err(anyhow::Error::msg)?),
            account: Own,
        };
        let sender = Sender {
            client: Client::new(reach, BOUNDS),
            uri,
            recorder,
            resource: otlp::resource(),
            said: None,
        };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(sender.run(ended, stopped));
        Ok(Exporter { stop, task })
    }

    /// Sends what is there, and ends; what is not taken until `deadline` is dropped, and counted.
    pub async fn shut_down(self, deadline: Instant) {
        let _ = self.stop.send(());
        let mut task = self.task;
        if tokio::time::timeout_at(deadline.into(), &mut task)
            .await
            .is_err()
        {
            task.abort();
            let _ = task.await;
        }
    }
}

/// Calls that are on their way. Those that are here when it goes are lost, and counted: the sender may be cut off at any point.
struct Waiting {
    ended: mpsc::Receiver<Ended>,
    batch: Vec<Ended>,
    recorder: Arc<Recorder>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.ended.close();
        while let Ok(ended) = self.ended.try_recv() {
            self.batch.push(ended);
        }
        let spans = self.batch.iter().map(Ended::spans).sum();
        self.recorder.note_dropped(spans);
    }
}

struct Sender {
    client: Client,
    uri: Uri,
    recorder: Arc<Recorder>,
    resource: Vec<u8>,
    /// When it was last said that a batch was lost.
    said: Option<Instant>,
}

impl Sender {
    async fn run(mut self, ended: mpsc::Receiver<Ended>, mut stopped: oneshot::Receiver<()>) {
        let mut waiting = Waiting {
            ended,
            batch: Vec::with_capacity(BATCH_MAX),
            recorder: self.recorder.clone(),
        };
        let Waiting { ended, batch, .. } = &mut waiting;
        let mut is_stopping = false;
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped, if !is_stopping => {
                    // What is in the queue still comes, and nothing after it.
                    ended.close();
                    is_stopping = true;
                    continue;
                }
                count = ended.recv_many(batch, BATCH_MAX) => if count == 0 {
                    return;
                },
            }
            if !is_stopping {
                let full = async {
                    while batch.len() < BATCH_MAX {
                        let room = BATCH_MAX - batch.len();
                        if ended.recv_many(batch, room).await == 0 {
                            return;
                        }
                    }
                };
                tokio::select! {
                    () = full => {}
                    () = tokio::time::sleep(BATCH_DELAY) => {}
                    _ = &mut stopped => is_stopping = true,
                }
                if is_stopping {
                    ended.close();
                }
            }
            self.send(batch, is_stopping).await;
            // Sent or counted: from here on they are no loss.
            batch.clear();
        }
    }

    async fn send(&mut self, batch: &[Ended], is_last: bool) {
        let spans = batch.iter().map(Ended::spans).sum();
        let body = Bytes::from(otlp::request(&self.resource, batch));
        let mut waits = AGAIN_AFTER.iter().filter(|_| !is_last);
        loop {
            let Err(lost) = self.attempt(body.clone()).await else {
                self.recorder.note_sent(spans);
                return;
            };
            match waits.next().filter(|_| lost.may_pass) {
                Some(wait) => tokio::time::sleep(*wait).await,
                None => {
                    self.recorder.note_dropped(spans);
                    self.say(&lost.why);
                    return;
                }
            }
        }
    }

    async fn attempt(&self, body: Bytes) -> Result<(), Lost> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.uri.clone())
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .header(
                header::USER_AGENT,
                concat!("souk/", env!("CARGO_PKG_VERSION")),
            )
            .body(Full::new(body))
            .map_err(|error| Lost {
                why: error.to_string(),
                may_pass: false,
            })?;
        let answer = self
            .client
            .send(request, SEND_TIMEOUT, ANSWER_BYTES_MAX)
            .await;
        let status = match answer {
            Ok(answer) => answer.head.status,
            Err(error) => {
                return Err(Lost {
                    why: error.message,
                    may_pass: true,
                });
            }
        };
        if status.is_success() {
            return Ok(());
        }
        // Those that OTLP says may be tried again.
        let may_pass = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Err(Lost {
            why: format!("it answered {status}"),
            may_pass,
        })
    }

    fn say(&mut self, why: &str) {
        let now = Instant::now();
        if self.said.is_none_or(|said| now - said >= SAID_EVERY) {
            self.said = Some(now);
            let dropped = self.recorder.dropped();
            tracing::warn!(collector = %self.uri, why, dropped, "the collector does not take spans");
        }
    }
}

/// Why a batch was not taken.
struct Lost {
    why: String,
    /// It may be taken later.
    may_pass: bool,
}

#[cfg(test)]
mod tests {
    use souk_outbound::spans::{Labels, SHARE_OF};
    use tokio::net::TcpListener;

    use super::*;

    /// A host that stops while its collector says nothing waits until the deadline, and counts what it could not send: what was on its way and what
    /// was in the queue.
    #[tokio::test]
    async fn what_is_cut_off_is_counted() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let (recorder, ended) = Recorder::new(SHARE_OF);
        let calls = BATCH_MAX + 3;
        for _ in 0..calls {
            let followed = recorder.follow(None, false).unwrap();
            followed.end("call".into(), Duration::ZERO, Labels::new(), None);
        }
        let exporter = Exporter::start(endpoint(&url).unwrap(), recorder.clone(), ended).unwrap();
        let deadline = Instant::now() + Duration::from_millis(200);
        exporter.shut_down(deadline).await;
        assert_eq!((recorder.sent(), recorder.dropped()), (0, calls as u64));
    }

    #[test]
    fn a_collector_is_named_by_its_base() {
        for (given, wanted) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            (
                "https://otel.example/in",
                "https://otel.example/in/v1/traces",
            ),
            ("http://otel/v1/traces", "http://otel/v1/traces"),
        ] {
            assert_eq!(endpoint(given).unwrap().to_string(), wanted);
        }
        for bad in [
            "",
            "127.0.0.1:4318",
            "grpc://otel:4317",
            "http://u:p@otel",
            "http://o?x=1",
        ] {
            let error = endpoint(bad).unwrap_err();
            assert!(error.to_string().contains("--otlp-url"), "{bad}: {error}");
        }
    }
}
