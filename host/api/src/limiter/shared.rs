//! Limits that hosts count together, in Redis or Valkey.
//!
//! A host does not ask for each call. It takes a lot: calls that it may let pass by itself, at most a 64th of what is left, so that towards
//! its end a limit is counted call by call. A lot is counted when it is taken, by a script that nothing interrupts: hosts together never let
//! more pass than the limit. What a host has not spent of a lot goes back within a second or two. While the server does not answer each
//! host counts for itself.

use super::window::Quota;
use parking_lot::Mutex;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{
    Client, ConnectionAddr, ErrorKind, IntoConnectionInfo, RedisError, Script, TlsCertificates,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A lot is this part of what is left.
const LOTS: u32 = 64;
const LOT_MAX: u32 = 256;
/// What a request may wait for the server, which is asked for one in many.
const ANSWER_MAX: Duration = Duration::from_millis(250);
/// How long it is left alone when it did not answer.
const AWAY: Duration = Duration::from_secs(1);
const GIVE_BACK_EVERY: Duration = Duration::from_secs(1);
/// Lots that are given back; beyond that what is unspent of one stays with its host until its window ends. About 150 bytes each.
const LISTED_MAX: usize = 100_000;
/// Before the names of windows, so that others can use the same server.
const PREFIX: &str = "souk:limit:";

/// Grants up to ARGV[2] calls of ARGV[1] in a window of ARGV[3] seconds; answers how many, what is left, when the window ends and when it
/// began. By the server's clock: hosts' may differ.
const TAKE: &str = r"
local used = tonumber(redis.call('HGET', KEYS[1], 'used') or '0')
local granted = math.max(0, math.min(tonumber(ARGV[2]), tonumber(ARGV[1]) - used))
if granted > 0 then
    if used == 0 and redis.call('EXISTS', KEYS[1]) == 0 then
        redis.call('HSET', KEYS[1], 'began', redis.call('TIME')[1])
        redis.call('EXPIRE', KEYS[1], ARGV[3])
    end
    redis.call('HINCRBY', KEYS[1], 'used', granted)
end
local left = math.max(0, tonumber(ARGV[1]) - used - granted)
return {granted, left, redis.call('TTL', KEYS[1]), tonumber(redis.call('HGET', KEYS[1], 'began') or '0')}
";

/// Takes back ARGV[1] calls of the window that began at ARGV[2], if that still runs.
const GIVE_BACK: &str = r"
if redis.call('HGET', KEYS[1], 'began') == ARGV[2] then
    redis.call('HINCRBY', KEYS[1], 'used', -tonumber(ARGV[1]))
end
";

/// The server that hosts count on.
pub struct Shared {
    connection: ConnectionManager,
    take: Script,
    give_back: Script,
    /// Lots of which something may be unspent.
    listed: Mutex<Vec<Listed>>,
    opened: Instant,
    /// Milliseconds since `opened` until which the server is not asked.
    away_until: AtomicU64,
    is_available: AtomicBool,
}

struct Listed {
    name: String,
    lot: Arc<Lot>,
    began: i64,
}

/// What the server has granted.
#[derive(Clone, Copy, Debug)]
struct Granted {
    calls: u32,
    left: u32,
    ends_in: u32,
    began: i64,
}

impl Shared {
    /// Connects when it is needed, and again whenever that breaks. Runs on the current runtime.
    ///
    /// # Errors
    /// A URL that cannot be read, or its authority.
    pub fn open(url: &str) -> Result<Arc<Shared>, RedisError> {
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(ANSWER_MAX))
            .set_response_timeout(Some(ANSWER_MAX));
        let client = client(url)?;
        let shared = Arc::new(Shared {
            connection: ConnectionManager::new_lazy_with_config(client, config)?,
            take: Script::new(TAKE),
            give_back: Script::new(GIVE_BACK),
            listed: Mutex::default(),
            opened: Instant::now(),
            away_until: AtomicU64::new(0),
            is_available: AtomicBool::new(true),
        });
        let weak = Arc::downgrade(&shared);
        tokio::spawn(async move {
            let mut is_known = false;
            while let Some(shared) = weak.upgrade() {
                shared.give_back_unspent().await;
                if !is_known || !shared.is_available() {
                    shared.look().await;
                    is_known = true;
                }
                drop(shared);
                tokio::time::sleep(GIVE_BACK_EVERY).await;
            }
        });
        Ok(shared)
    }

    /// Whether the server answered when it was asked last. Of a host that nobody calls, too: it asks at its start, and until there is an answer.
    pub fn is_available(&self) -> bool {
        self.is_available.load(Relaxed)
    }

    /// Fills a lot, and spends one call of it. `None`: the server does not answer.
    pub(super) async fn refill(
        &self,
        name: &str,
        lot: &Arc<Lot>,
        limit: u32,
        (seconds, now): (u32, u32),
    ) -> Option<Result<Quota, Quota>> {
        let name = format!("{PREFIX}{name}");
        let wanted = (lot.left_in_all(limit, now) / LOTS).clamp(1, LOT_MAX);
        let granted = self.ask(&name, limit, wanted, seconds).await?;
        let spent = lot.fill(granted, limit, now);
        if granted.calls > 1 {
            self.list(name, lot, granted.began);
        }
        Some(spent)
    }

    async fn ask(&self, name: &str, limit: u32, wanted: u32, seconds: u32) -> Option<Granted> {
        if self.is_left_alone() {
            return None;
        }
        let mut connection = self.connection.clone();
        let mut asked = self.take.key(name);
        asked.arg(limit).arg(wanted).arg(seconds);
        let answer = asked.invoke_async::<(u32, u32, i64, i64)>(&mut connection);
        let answer = self.heard(tokio::time::timeout(ANSWER_MAX, answer).await);
        answer.map(|(calls, left, ends_in, began)| Granted {
            calls,
            left,
            ends_in: u32::try_from(ends_in).unwrap_or(seconds).max(1),
            began,
        })
    }

    fn list(&self, name: String, lot: &Arc<Lot>, began: i64) {
        if lot.is_listed.swap(true, Relaxed) {
            return;
        }
        let mut listed = self.listed.lock();
        if listed.len() < LISTED_MAX {
            listed.push(Listed {
                name,
                lot: lot.clone(),
                began,
            });
        }
    }

    /// What hosts hold and do not spend would be missing to the others.
    async fn give_back_unspent(&self) {
        let listed = std::mem::take(&mut *self.listed.lock());
        for Listed { name, lot, began } in listed {
            lot.is_listed.store(false, Relaxed);
            let unspent = lot.take_all();
            if unspent == 0 || self.is_left_alone() {
                continue;
            }
            let mut connection = self.connection.clone();
            let mut given = self.give_back.key(name);
            given.arg(unspent).arg(began);
            let answer = given.invoke_async::<()>(&mut connection);
            if self
                .heard(tokio::time::timeout(ANSWER_MAX, answer).await)
                .is_some()
            {
                lot.elsewhere.fetch_add(unspent, Relaxed);
            }
        }
    }

    fn is_left_alone(&self) -> bool {
        self.millis() < self.away_until.load(Relaxed)
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Asks for nothing, by a script as all else: who may do no more than is needed may do this.
    async fn look(&self) {
        let mut connection = self.connection.clone();
        let mut nothing = self.give_back.key(format!("{PREFIX}nothing"));
        nothing.arg(0).arg(0);
        let answer = nothing.invoke_async::<()>(&mut connection);
        self.noted(tokio::time::timeout(ANSWER_MAX, answer).await);
    }

    /// Leaves a server alone that does not answer.
    fn heard<T, E>(&self, answer: Result<Result<T, RedisError>, E>) -> Option<T> {
        let heard = self.noted(answer);
        if heard.is_none() {
            let until = self.millis() + u64::try_from(AWAY.as_millis()).unwrap_or(u64::MAX);
            self.away_until.store(until, Relaxed);
        }
        heard
    }

    /// Remembers, and says once, whether the server answers.
    fn noted<T, E>(&self, answer: Result<Result<T, RedisError>, E>) -> Option<T> {
        let error = match answer {
            Ok(Ok(value)) => {
                if !self.is_available.swap(true, Relaxed) {
                    tracing::info!(
                        "the server of shared limits answers again: hosts count together"
                    );
                }
                return Some(value);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} ms", ANSWER_MAX.as_millis()),
        };
        if self.is_available.swap(false, Relaxed) {
            tracing::warn!(%error, "the server of shared limits does not answer: until it does this host counts for itself");
        }
        None
    }
}

/// As the URL says: `rediss://` is TLS, with the public authorities or the one in the file of `sslrootcert`.
fn client(url: &str) -> Result<Client, RedisError> {
    let wrong = |what: &'static str, detail: String| {
        RedisError::from((ErrorKind::InvalidClientConfig, what, detail))
    };
    let info = url.into_connection_info()?;
    if matches!(info.addr(), ConnectionAddr::TcpTls { insecure: true, .. }) {
        let detail = "name its authority with ?sslrootcert=FILE".to_owned();
        return Err(wrong("a certificate is always checked", detail));
    }
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let authority = form_urlencoded::parse(query.as_bytes())
        .find_map(|(name, value)| (name == "sslrootcert").then_some(value));
    let Some(path) = authority else {
        return Client::open(info);
    };
    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        let detail = "write rediss:// instead of redis://".to_owned();
        return Err(wrong("sslrootcert is for TLS", detail));
    }
    let pem = std::fs::read(&*path)
        .map_err(|error| wrong("sslrootcert cannot be read", format!("{path}: {error}")))?;
    if !pem.windows(5).any(|word| word == b"-----") {
        return Err(wrong("sslrootcert holds no PEM certificate", path.into()));
    }
    let trusted = TlsCertificates {
        client_tls: None,
        root_cert: Some(pem),
    };
    Client::build_with_tls(info, trusted)
}

/// What this host may let pass of a window that hosts share.
#[derive(Default)]
pub(super) struct Lot {
    /// The second at which the window ends in the upper half, calls that are left in the lower.
    left: AtomicU64,
    /// What is left beside the lot, as of the last answer.
    elsewhere: AtomicU32,
    /// The second of the last answer that granted nothing.
    refused_at: AtomicU32,
    is_listed: AtomicBool,
    /// One request at a time asks for all.
    pub(super) asking: tokio::sync::Mutex<()>,
}

impl Lot {
    /// Spends one call, if there is one.
    pub(super) fn take(&self, limit: u32, now: u32) -> Option<Quota> {
        let spent = self.left.fetch_update(Relaxed, Relaxed, |packed| {
            let (end, left) = unpack(packed);
            (end > now && left > 0).then(|| packed - 1)
        });
        let (end, left) = unpack(spent.ok()?);
        Some(self.quota(limit, end, left - 1))
    }

    /// Undoes a [`Lot::take`], if its window still runs.
    pub(super) fn give_back(&self, now: u32) {
        let _ = self.left.fetch_update(Relaxed, Relaxed, |packed| {
            (unpack(packed).0 > now).then_some(packed + 1)
        });
    }

    /// What is left, unless the window is over.
    pub(super) fn peek(&self, limit: u32, now: u32) -> Option<Quota> {
        let (end, left) = unpack(self.left.load(Relaxed));
        (end > now).then(|| self.quota(limit, end, left))
    }

    /// The refusal of this very second: others are asked once in it, whatever a client sends.
    pub(super) fn refused(&self, limit: u32, now: u32) -> Option<Quota> {
        let quota = self.peek(limit, now)?;
        (quota.remaining == 0 && self.refused_at.load(Relaxed) == now).then_some(quota)
    }

    fn left_in_all(&self, limit: u32, now: u32) -> u32 {
        self.peek(limit, now).map_or(limit, |quota| quota.remaining)
    }

    fn fill(&self, granted: Granted, limit: u32, now: u32) -> Result<Quota, Quota> {
        let end = now.saturating_add(granted.ends_in);
        self.elsewhere.store(granted.left, Relaxed);
        let kept = granted.calls.saturating_sub(1);
        let before = self.left.fetch_update(Relaxed, Relaxed, |packed| {
            let (ended, left) = unpack(packed);
            let left = if ended > now { left } else { 0 };
            Some(u64::from(end) << 32 | u64::from(left.saturating_add(kept)))
        });
        let (ended, left) = unpack(before.unwrap_or_else(|packed| packed));
        let left = if ended > now { left } else { 0 };
        match granted.calls {
            0 => {
                self.refused_at.store(now, Relaxed);
                Err(self.quota(limit, end, left))
            }
            _ => Ok(self.quota(limit, end, left.saturating_add(kept))),
        }
    }

    fn take_all(&self) -> u32 {
        let taken = self.left.fetch_and(!u64::from(u32::MAX), Relaxed);
        unpack(taken).1
    }

    fn quota(&self, limit: u32, end: u32, left: u32) -> Quota {
        Quota {
            limit,
            remaining: left.saturating_add(self.elsewhere.load(Relaxed)).min(limit),
            reset: end,
        }
    }
}

fn unpack(packed: u64) -> (u32, u32) {
    ((packed >> 32) as u32, packed as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u32 = 1_700_000_000;

    fn granted(calls: u32, left: u32) -> Granted {
        Granted {
            calls,
            left,
            ends_in: 3600,
            began: 1,
        }
    }

    /// The call that asked has its own; the rest of the lot is for those that come, until it is used up, given back or over.
    #[test]
    fn a_lot_is_spent_once() {
        let lot = Lot::default();
        assert_eq!(lot.take(100, NOW), None);
        let first = lot.fill(granted(3, 50), 100, NOW).unwrap();
        assert_eq!((first.remaining, first.reset), (52, NOW + 3600));
        assert_eq!(lot.take(100, NOW).unwrap().remaining, 51);
        lot.give_back(NOW);
        assert_eq!(lot.take(100, NOW).unwrap().remaining, 51);
        assert_eq!(lot.take_all(), 1);
        assert_eq!(lot.take(100, NOW), None);
        lot.fill(granted(2, 0), 100, NOW).unwrap();
        assert_eq!(lot.take(100, NOW + 3600), None);
        assert_eq!(lot.peek(100, NOW + 3600), None);
    }

    /// What the URL says of the way there is carried out, or refused before the host starts.
    #[test]
    fn a_url_says_whom_to_trust() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (empty, wrong) = (file("empty.pem", ""), file("wrong.pem", BROKEN_PEM));
        let authority = rcgen::generate_simple_self_signed(["redis.internal".to_owned()]).unwrap();
        let right = file("right.pem", &authority.cert.pem());
        for good in [
            "redis://:p@127.0.0.1:1/2".to_owned(),
            "rediss://:p@redis.internal:1/2".to_owned(),
            format!("rediss://:p@redis.internal:1/2?sslrootcert={right}"),
        ] {
            let opened = client(&good).map(drop);
            assert!(opened.is_ok(), "{good}: {opened:?}");
        }
        for (bad, says) in [
            ("http://127.0.0.1".to_owned(), ""),
            ("rediss://127.0.0.1/#insecure".to_owned(), "always checked"),
            (
                "rediss://127.0.0.1/?sslrootcert=/nonexistent".to_owned(),
                "/nonexistent",
            ),
            (format!("rediss://127.0.0.1/?sslrootcert={empty}"), "no PEM"),
            (format!("rediss://127.0.0.1/?sslrootcert={wrong}"), ""),
            (
                format!("redis://127.0.0.1/?sslrootcert={right}"),
                "rediss://",
            ),
        ] {
            let error = client(&bad).map(drop).unwrap_err().to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }

    const BROKEN_PEM: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

    /// Who is refused is refused for the rest of the second without another question.
    #[test]
    fn a_refusal_holds_for_its_second() {
        let lot = Lot::default();
        assert!(lot.refused(10, NOW).is_none());
        let refused = lot.fill(granted(0, 0), 10, NOW).unwrap_err();
        assert_eq!((refused.remaining, refused.reset), (0, NOW + 3600));
        assert!(lot.refused(10, NOW).is_some());
        assert!(lot.refused(10, NOW + 1).is_none());
    }
}
