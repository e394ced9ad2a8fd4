//! From a permit to a session that takes requests: instantiate, dial, shake hands until the guest
//! says `ready`. The caller bounds the time. Handshakes compute, so every call runs in the lanes.

use futures_util::{StreamExt, stream::FuturesUnordered};
use souk_outbound::{Stream, Trust, protect_as};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use std::{sync::Arc, time::Instant};

use super::{
    guests::{Kept, UNSENT_BYTES_MAX, broken, budget, call_fault},
    outgoing::{Failed, LATER_MAX, Pace, Pausing, handshake, pause},
};
use crate::{
    errands::ErrandPlace,
    fault::{Blame, Fault, FaultKind},
    memory::{MemoryRefused, hold},
    pool::{Pool, Target, home, shutting_down},
    source::{Lent, platform_of},
    v1::{
        Call, CheckedStep, Command, DirectoryGuest, DirectoryState, GuestState, Heard, Held, Pause,
        Printer, Received, Settings, WireGuest, WireState,
    },
    wire::{Dialer, HttpOrigin},
};

/// Handshakes are short messages.
const READ_BYTES: usize = 16 << 10;
/// Steps until `ready`: SCRAM over TLS takes about six.
const STEPS_MAX: usize = 200;
/// HTTP requests until `ready`, at once and in all: a token, a list, some pages.
const REQUESTS_AT_ONCE_MAX: usize = 8;
const REQUESTS_MAX: usize = 64;

pub(crate) enum Opened {
    Wire(Box<OpenWire>),
    Directory(Kept<DirectoryState>),
}

/// A guest that is ready, and what it speaks over.
pub(crate) enum OpenWire {
    Tcp(Kept<WireState>, Stream, Dialer),
    Http(Kept<WireState>, HttpOrigin),
}

/// `place`: of an errand.
pub(crate) async fn open(
    pool: &Arc<Pool>,
    place: Option<&Arc<ErrandPlace>>,
) -> Result<Opened, Fault> {
    match &pool.target {
        Target::Tcp { dialer, trust } => {
            let guest = guest(pool, place).await?;
            let (guest, stream) = tcp(pool, guest, dialer, trust.as_ref()).await?;
            let wire = OpenWire::Tcp(guest, stream, dialer.clone());
            Ok(Opened::Wire(Box::new(wire)))
        }
        Target::Http(origin) => {
            let mut origin = HttpOrigin::new(origin.clone(), home());
            let guest = http(pool, guest(pool, place).await?, &mut origin).await?;
            Ok(Opened::Wire(Box::new(OpenWire::Http(guest, origin))))
        }
        Target::Directory(path) => directory(pool, path, None).await.map(Opened::Directory),
        Target::Lent(lender) => {
            let Lent { path, held } = lender.lend().await?;
            let guest = directory(pool, &path, Some(held)).await?;
            Ok(Opened::Directory(guest))
        }
    }
}

async fn tcp(
    pool: &Pool,
    guest: Kept<WireState>,
    dialer: &Dialer,
    trust: Option<&Trust>,
) -> Result<(Kept<WireState>, Stream), Fault> {
    let mut stream = Stream::Plain(dialer.dial().await?);
    let (mut guest, mut step) = call(guest, Call::Start).await?;
    let mut buffer = vec![0; READ_BYTES];
    let mut pauses = Pauses::new(pool);
    let mut steps = 0;
    while steps < STEPS_MAX {
        let (ready, commands) = (is_ready(&step)?, step.commands);
        let sent = commands.iter().map(|command| match command {
            Command::Send(bytes) => bytes.len(),
            _ => 0,
        });
        let sent: usize = sent.sum();
        if sent > UNSENT_BYTES_MAX {
            return Err(broken(format!(
                "it sent more than {UNSENT_BYTES_MAX} bytes ahead"
            )));
        }
        // They lie here until its server has read them.
        let mut held = None;
        hold(&mut held, &pool.memory_account(), sent).map_err(MemoryRefused::fault)?;
        let mut protected = false;
        for command in commands {
            match command {
                Command::Send(bytes) => stream.write_all(&bytes).await.map_err(wire_broke)?,
                Command::StartTls(asked) => {
                    let handshake = handshake(asked)?;
                    let trust = trust.ok_or_else(|| {
                        broken("it asked for TLS, which the connection's ssl_mode rules out")
                    })?;
                    let Stream::Plain(plain) = stream else {
                        return Err(broken("it asked for TLS twice"));
                    };
                    let protected_as = protect_as(plain, trust, &dialer.host, handshake);
                    stream = Stream::Tls(Box::new(protected_as.await?));
                    protected = true;
                }
                Command::Wake(asked) => pauses.begin(asked)?,
                Command::Close => return Err(closed_early()),
                Command::Request(_) | Command::Aside(_) | Command::Confer(_) => {
                    return Err(broken(
                        "it sent a command that opening a wire does not allow",
                    ));
                }
            }
        }
        stream.flush().await.map_err(wire_broke)?;
        drop(held);
        if ready {
            if trust.is_some() && !stream.is_protected() {
                return Err(Fault::new(
                    Blame::Source,
                    FaultKind::Tls,
                    "the source offers no TLS, which the connection's ssl_mode demands",
                )
                .code("tls_not_offered"));
            }
            return Ok((guest, stream));
        }
        let received = match protected {
            true => Received::TlsEstablished,
            false => tokio::select! {
                biased;
                Some((_, Some(woken))) = pauses.running.next() => woken,
                read = stream.read(&mut buffer) => match read.map_err(wire_broke)? {
                    0 => Received::Closed,
                    count => Received::Bytes(buffer[..count].to_vec()),
                },
            },
        };
        // Pauses are bounded by time.
        steps += usize::from(!matches!(received, Received::Woken(_)));
        let is_closed = matches!(received, Received::Closed);
        (guest, step) = call(guest, Call::Receive(received)).await?;
        if is_closed {
            return Err(closed_early());
        }
    }
    // Its connector has listened all the while.
    Err(Fault::new(
        Blame::Source,
        FaultKind::BadAnswer,
        "the source did not come to the end of its greeting",
    )
    .code("bad_answer")
    .detail(format!("no session after {STEPS_MAX} messages")))
}

async fn http(
    pool: &Pool,
    guest: Kept<WireState>,
    origin: &mut HttpOrigin,
) -> Result<Kept<WireState>, Fault> {
    let (mut guest, mut step) = call(guest, Call::Start).await?;
    let mut exchanges = FuturesUnordered::new();
    let mut requests = 0;
    let mut pauses = Pauses::new(pool);
    let mut steps = 0;
    while steps < STEPS_MAX {
        let (ready, commands) = (is_ready(&step)?, step.commands);
        for command in commands {
            let request = match command {
                Command::Request(request) => request,
                Command::Wake(asked) => {
                    pauses.begin(asked)?;
                    continue;
                }
                _ => return Err(broken("it sent a command of another kind of wire")),
            };
            requests += 1;
            if exchanges.len() >= REQUESTS_AT_ONCE_MAX || requests > REQUESTS_MAX {
                return Err(broken(format!(
                    "it made more than {REQUESTS_AT_ONCE_MAX} HTTP requests at once or {REQUESTS_MAX} in all before it was ready"
                )));
            }
            let id = request.id;
            let checked = origin
                .checked(request)
                .map_err(|refused| broken(refused.0))?;
            exchanges.push(async move {
                let exchanged = checked.exchange(Instant::now()).await;
                exchanged.map_err(|error| Failed::new(id, error))
            });
        }
        if ready {
            if !exchanges.is_empty() {
                return Err(broken("it was ready while its own requests were under way"));
            }
            return Ok(guest);
        }
        let mut exhausted = None;
        let received = tokio::select! {
            Some(exchanged) = exchanges.next() => match exchanged {
                Ok((answer, held)) => Received::Response(answer, held),
                Err(Failed { failure, exhausted: short }) => {
                    exhausted = short;
                    Received::RequestFailed(failure)
                }
            },
            Some((_, Some(woken))) = pauses.running.next() => woken,
            else => return Err(broken("it waits for nothing and is not ready")),
        };
        steps += usize::from(!matches!(received, Received::Woken(_)));
        let called = call(guest, Call::Receive(received)).await;
        (guest, step) = called.map_err(|fault| match exhausted {
            Some(exhausted) if fault.kind == FaultKind::Unreachable => exhausted,
            _ => fault,
        })?;
    }
    Err(broken(format!("it was not ready after {STEPS_MAX} steps")))
}

async fn directory(
    pool: &Arc<Pool>,
    path: &std::path::Path,
    held: Option<Held>,
) -> Result<Kept<DirectoryState>, Fault> {
    let Some(pre) = pool.connector.directory.clone() else {
        return Err(broken("it was not linked for directories"));
    };
    no_devices(path)?;
    let budget = budget(pool);
    let printer = Printer::new(Some(pool.speaker.clone()));
    let state = DirectoryState::new(&budget, printer, Some((path, held)));
    let state = state.map_err(|error| {
        Fault::new(
            Blame::Host,
            FaultKind::Internal,
            "the connection's directory cannot be opened",
        )
        .detail(format!("{error:#}"))
    })?;
    let owned = pool.clone();
    let opening = async move {
        let exports = &owned.connector.exports;
        DirectoryGuest::open(&pre, exports, state, budget, settings(&owned)).await
    };
    let guest = Kept::open(pool, None, opening).await?;
    let (guest, step) = call(guest, Call::Start).await?;
    if !step.commands.is_empty() {
        return Err(broken("it sent a command, and there is no wire"));
    }
    if !is_ready(&step)? {
        return Err(broken(
            "it was not ready after its start, and there is nothing to wait for",
        ));
    }
    Ok(guest)
}

/// The pauses of a session that is being opened.
struct Pauses {
    running: FuturesUnordered<Pausing>,
    pace: Pace,
    latest: Instant,
}

impl Pauses {
    fn new(pool: &Pool) -> Pauses {
        Pauses {
            running: FuturesUnordered::new(),
            pace: Pace::default(),
            latest: Instant::now() + pool.shared.options.limits.open_timeout,
        }
    }

    fn begin(&mut self, asked: Pause) -> Result<(), Fault> {
        if self.running.len() >= LATER_MAX {
            return Err(broken(format!(
                "it asked for more than {LATER_MAX} pauses at once"
            )));
        }
        let pausing = pause(asked, None, &mut self.pace, self.latest);
        self.running.push(pausing);
        Ok(())
    }
}

/// Files of a directory that are looked at.
const FILES_MAX: usize = 1_024;

/// Opening a pipe or a device may hold a thread for ever. The host puts nothing but files there; this notices if somebody
/// else has put something else. (Links lead nowhere outside: the directory is all that the guest can open.) What cannot be read is this host's own disk.
fn no_devices(path: &std::path::Path) -> Result<(), Fault> {
    let unread = |error: std::io::Error| {
        Fault::new(
            Blame::Host,
            FaultKind::Internal,
            "the connection's files cannot be read on this host",
        )
        .code("file_unread")
        .detail(error.to_string())
    };
    let entries = std::fs::read_dir(path).map_err(unread)?;
    for entry in entries.take(FILES_MAX) {
        let kind = entry.and_then(|entry| entry.file_type()).map_err(unread)?;
        if !kind.is_file() && !kind.is_dir() && !kind.is_symlink() {
            return Err(Fault::new(
                Blame::Source,
                FaultKind::SourceError,
                "the connection's files cannot be opened",
            )
            .detail("it holds a pipe, a socket or a device"));
        }
    }
    Ok(())
}

async fn guest(
    pool: &Arc<Pool>,
    place: Option<&Arc<ErrandPlace>>,
) -> Result<Kept<WireState>, Fault> {
    let owned = pool.clone();
    let opening = async move {
        let budget = budget(&owned);
        let printer = Printer::new(Some(owned.speaker.clone()));
        let state = WireState::new(&budget, printer);
        let connector = &owned.connector;
        let (pre, exports) = (&connector.wire, &connector.exports);
        WireGuest::open(pre, exports, state, budget, settings(&owned)).await
    };
    Kept::open(pool, place, opening).await
}

async fn call<T: GuestState>(
    mut guest: Kept<T>,
    call: Call,
) -> Result<(Kept<T>, CheckedStep), Fault> {
    let task = guest.call_in_lane(false, call);
    let (guest, step) = task
        .ok_or_else(shutting_down)?
        .await
        .ok_or_else(shutting_down)?;
    Ok((guest, step.map_err(call_fault)?))
}

fn settings(pool: &Pool) -> Settings<'_> {
    let engine = &pool.source.engine;
    Settings {
        engine: platform_of(engine).unwrap_or(engine),
        json: &pool.source.settings_json,
    }
}

/// While a session is being opened, there is nothing else to tell.
fn is_ready(step: &CheckedStep) -> Result<bool, Fault> {
    match step.events.as_slice() {
        [] => Ok(false),
        [Heard::Ready] => Ok(true),
        _ => Err(broken(
            "it sent events before it was ready, or was ready twice",
        )),
    }
}

fn wire_broke(error: std::io::Error) -> Fault {
    Fault::new(
        Blame::Source,
        FaultKind::Unreachable,
        "the source broke the connection",
    )
    .code("connection_reset")
    .detail(error.to_string())
}

fn closed_early() -> Fault {
    Fault::new(
        Blame::Source,
        FaultKind::Unreachable,
        "the source closed the connection while it was being opened",
    )
    .code("connection_closed")
}
