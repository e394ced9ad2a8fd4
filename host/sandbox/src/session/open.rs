//! From a permit to a session that takes requests: instantiate, dial, shake hands until the guest
//! says `ready`. The caller bounds the time.

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{broken, budget, call_fault, wire::WireSession};
use crate::{
    fault::{Blame, Fault, FaultKind},
    pool::{Endpoint, Pool},
    v1::{
        Command, DirectoryGuest, DirectoryState, Event, HttpFailure, Input, Settings, Step,
        WireGuest,
    },
    wire::{Dialer, HttpOrigin, Stream, Trust, protect},
};

/// Handshakes are short messages.
const READ_BYTES: usize = 16 << 10;
/// Steps until `ready`: SCRAM over TLS takes about six.
const STEPS_MAX: usize = 200;

pub(crate) enum Opened {
    Wire(Box<WireSession>),
    Directory(Box<DirectoryGuest>),
}

pub(crate) async fn open(pool: &Pool) -> Result<Opened, Fault> {
    match &pool.endpoint {
        Endpoint::Tcp { dialer, trust } => {
            let (guest, stream) = tcp(pool, dialer, trust.as_ref()).await?;
            Ok(Opened::Wire(Box::new(WireSession::tcp(
                guest,
                stream,
                dialer.clone(),
            ))))
        }
        Endpoint::Http(origin) => {
            let origin = HttpOrigin::new(origin.clone());
            let guest = http(pool, &origin).await?;
            Ok(Opened::Wire(Box::new(WireSession::http(guest, origin))))
        }
        Endpoint::Directory(path) => directory(pool, path)
            .await
            .map(|guest| Opened::Directory(Box::new(guest))),
    }
}

async fn tcp(
    pool: &Pool,
    dialer: &Dialer,
    trust: Option<&Trust>,
) -> Result<(WireGuest, Stream), Fault> {
    let mut guest = guest(pool)?;
    let mut stream = Stream::Plain(dialer.dial().await?);
    let mut step = guest.start().map_err(call_fault)?;
    let mut buffer = vec![0; READ_BYTES];
    for _ in 0..STEPS_MAX {
        let (ready, commands) = (is_ready(&step)?, step.commands);
        let mut protected = false;
        for command in commands {
            match command {
                Command::Send(bytes) => stream.write_all(&bytes).await.map_err(wire_broke)?,
                Command::StartTls => {
                    let trust = trust.ok_or_else(|| {
                        broken("it asked for TLS, which the connection's ssl_mode rules out")
                    })?;
                    let Stream::Plain(plain) = stream else {
                        return Err(broken("it asked for TLS twice"));
                    };
                    stream = Stream::Tls(Box::new(protect(plain, trust, &dialer.host).await?));
                    protected = true;
                }
                Command::Close => return Err(closed_early()),
                Command::Request(_) | Command::Aside(_) => {
                    return Err(broken(
                        "it sent a command that opening a wire does not allow",
                    ));
                }
            }
        }
        stream.flush().await.map_err(wire_broke)?;
        if ready {
            if trust.is_some() && !stream.is_protected() {
                return Err(Fault::new(
                    Blame::Source,
                    FaultKind::Tls,
                    "the source offers no TLS, which the connection's ssl_mode demands",
                )
                .code("tls_not_offered"));
            }
            guest.opened(pool.shared.call_ticks);
            return Ok((guest, stream));
        }
        step = if protected {
            guest.receive(Input::TlsEstablished).map_err(call_fault)?
        } else {
            match stream.read(&mut buffer).await.map_err(wire_broke)? {
                0 => {
                    guest.receive(Input::Closed).map_err(call_fault)?;
                    return Err(closed_early());
                }
                count => guest
                    .receive(Input::Bytes(&buffer[..count]))
                    .map_err(call_fault)?,
            }
        };
    }
    Err(broken(format!("it was not ready after {STEPS_MAX} steps")))
}

async fn http(pool: &Pool, origin: &HttpOrigin) -> Result<WireGuest, Fault> {
    let mut guest = guest(pool)?;
    let mut step = guest.start().map_err(call_fault)?;
    let mut exchanges = FuturesUnordered::new();
    for _ in 0..STEPS_MAX {
        let (ready, commands) = (is_ready(&step)?, step.commands);
        for command in commands {
            let Command::Request(request) = command else {
                return Err(broken("it sent a command of another kind of wire"));
            };
            let id = request.id;
            let exchange = origin.send(request).map_err(|refused| broken(refused.0))?;
            exchanges.push(async move { (id, exchange.await) });
        }
        if ready {
            if !exchanges.is_empty() {
                return Err(broken("it was ready while its own requests were under way"));
            }
            guest.opened(pool.shared.call_ticks);
            return Ok(guest);
        }
        step = match exchanges.next().await {
            Some((_, Ok(response))) => guest.receive(Input::Response(&response)),
            Some((id, Err(error))) => guest.receive(Input::RequestFailed(&HttpFailure {
                id,
                fault: error.fault,
                message: error.message,
            })),
            None => return Err(broken("it waits for nothing and is not ready")),
        }
        .map_err(call_fault)?;
    }
    Err(broken(format!("it was not ready after {STEPS_MAX} steps")))
}

async fn directory(pool: &Pool, path: &std::path::Path) -> Result<DirectoryGuest, Fault> {
    let connector = &pool.connector;
    let pre = connector
        .directory
        .as_ref()
        .ok_or_else(|| broken("it was not linked for directories"))?;
    let state = DirectoryState::new(
        pool.shared.options.limits.directory_memory_bytes,
        Some(path),
    )
    .map_err(|error| {
        Fault::new(
            Blame::Host,
            FaultKind::Internal,
            "the connection's directory cannot be opened",
        )
        .detail(format!("{error:#}"))
    })?;
    let mut guest =
        DirectoryGuest::open(pre, &connector.exports, state, budget(pool), settings(pool))
            .await
            .map_err(call_fault)?;
    let step = guest.start().await.map_err(call_fault)?;
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

fn guest(pool: &Pool) -> Result<WireGuest, Fault> {
    let connector = &pool.connector;
    let memory = pool.shared.options.limits.wire_memory_bytes;
    WireGuest::open(
        &connector.wire,
        &connector.exports,
        memory,
        budget(pool),
        settings(pool),
    )
    .map_err(call_fault)
}

fn settings(pool: &Pool) -> Settings<'_> {
    Settings {
        engine: &pool.source.engine,
        json: &pool.source.settings_json,
    }
}

/// While a session is being opened, there is nothing else to tell.
fn is_ready(step: &Step) -> Result<bool, Fault> {
    match step.events.as_slice() {
        [] => Ok(false),
        [Event::Ready] => Ok(true),
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
