//! Who is told that something changed: caches in this process before a commit returns, other hosts through the store.
//!
//! On PostgreSQL the transaction that changes a row also notifies; a listener on every host passes that on. While the listener is not
//! connected (or cannot prove within [`SILENCE_MAX`] that it is), the host is incoherent: caches are bypassed, so nothing stale is served.

use crate::error::StoreError;
use parking_lot::{Mutex, RwLock};
use souk_domain::ids::CompanyId;
use souk_domain::money::UsdCents;
use sqlx::postgres::{PgConnection, PgListener};
use sqlx::{Connection, Executor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What kind of thing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// What a caller shows: an API key or a session.
    Key,
    Company,
    /// A name under which a company is reached, or was; its own id is the name.
    Handle,
    Connection,
    Product,
    Price,
    Purchase,
    Connector,
    /// Something waits to be delivered to this webhook.
    Delivery,
}

impl Topic {
    pub(crate) const ALL: [Topic; 9] = [
        Self::Key,
        Self::Company,
        Self::Handle,
        Self::Connection,
        Self::Product,
        Self::Price,
        Self::Purchase,
        Self::Connector,
        Self::Delivery,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Company => "company",
            Self::Handle => "handle",
            Self::Connection => "connection",
            Self::Product => "product",
            Self::Price => "price",
            Self::Purchase => "purchase",
            Self::Connector => "connector",
            Self::Delivery => "delivery",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.as_str() == text)
    }
}

/// Something changed and was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// One thing, by the id that the writer gave to `touch`.
    One { topic: Topic, id: String },
    /// Changes may have been missed: forget everything.
    Everything,
}

/// What a committed transaction changed of a buyer's account, of which the teller keeps count.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BalanceChange {
    /// So much was added to the balance.
    Gained(UsdCents),
    /// Below so many credits it is low from now on; `None`: the default.
    LowAt(Option<i64>),
}

type Listener = Box<dyn Fn(&Change) + Send + Sync>;
pub(crate) type CreditListener = Box<dyn Fn(&[(CompanyId, BalanceChange)]) + Send + Sync>;

/// The listeners of this process.
pub(crate) struct Changes {
    listeners: RwLock<Vec<Listener>>,
    /// The one teller that counts balances.
    credit_listener: OnceLock<CreditListener>,
    /// False while changes of other hosts may be missed.
    coherent: Arc<AtomicBool>,
    /// Marks this host's own notifications, which were already announced locally.
    host: String,
    /// Until when they are heard all the same, because a commit was not answered: what was announced then may have been before it.
    doubted_until: Mutex<Option<Instant>>,
}

const CHANNEL: &str = "souk_changes";
/// PostgreSQL refuses payloads of 8,000 bytes.
const PAYLOAD_MAX: usize = 7_000;
/// A listener that has heard nothing for this long asks the server whether it is still there …
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// … and counts as disconnected when no answer comes within this.
const ANSWER_MAX: Duration = Duration::from_secs(2);
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);
/// How often the log is told that a host does not hear.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// A commit that was not answered has ended by then: much longer than it takes a server to notice that its client has gone.
const DOUBTED: Duration = Duration::from_secs(600);

impl Changes {
    pub(crate) fn new(coherent: bool) -> Arc<Self> {
        let mut host = String::new();
        for byte in rand::random::<[u8; 8]>() {
            host.push_str(&format!("{byte:02x}"));
        }
        Arc::new(Self {
            listeners: RwLock::default(),
            credit_listener: OnceLock::new(),
            coherent: Arc::new(AtomicBool::new(coherent)),
            host,
            doubted_until: Mutex::default(),
        })
    }

    pub(crate) fn subscribe(&self, listener: Listener) {
        self.listeners.write().push(listener);
    }

    /// Fails if there is a listener already: two tellers would each think they know what is left.
    pub(crate) fn subscribe_credits(&self, listener: CreditListener) -> Result<(), StoreError> {
        let result = self.credit_listener.set(listener);
        result.map_err(|_| StoreError::Unavailable("the store has its teller already".into()))
    }

    pub(crate) fn announce_credits(&self, credits: &[(CompanyId, BalanceChange)]) {
        if let (false, Some(listener)) = (credits.is_empty(), self.credit_listener.get()) {
            listener(credits);
        }
    }

    pub(crate) fn coherent(&self) -> Arc<AtomicBool> {
        self.coherent.clone()
    }

    pub(crate) fn announce(&self, change: &Change) {
        for listener in self.listeners.read().iter() {
            listener(change);
        }
    }

    pub(crate) fn announce_each(&self, touched: Vec<(Topic, String)>) {
        for (topic, id) in touched {
            self.announce(&Change::One { topic, id });
        }
    }

    /// A commit was not answered, and may be on its way. Its notification comes behind it.
    pub(crate) fn doubt(&self) {
        *self.doubted_until.lock() = Some(Instant::now() + DOUBTED);
    }

    /// The notification payloads that tell other hosts of `touched`: `host` and then lines of `topic id`.
    pub(crate) fn payloads(&self, touched: &[(Topic, String)]) -> Vec<String> {
        let mut payloads = vec![self.host.clone()];
        for (topic, id) in touched {
            let line = format!("\n{} {id}", topic.as_str());
            match payloads.last_mut() {
                Some(last) if last.len() + line.len() <= PAYLOAD_MAX => last.push_str(&line),
                _ => payloads.push(format!("{}{line}", self.host)),
            }
        }
        payloads
    }

    fn receive(&self, payload: &str) {
        let mut lines = payload.lines();
        if lines.next() == Some(self.host.as_str()) {
            let doubted_until = *self.doubted_until.lock();
            if doubted_until.is_none_or(|until| until <= Instant::now()) {
                return;
            }
        }
        for line in lines {
            match line
                .split_once(' ')
                .and_then(|(topic, id)| Some((Topic::parse(topic)?, id)))
            {
                Some((topic, id)) => self.announce(&Change::One {
                    topic,
                    id: id.to_owned(),
                }),
                // A newer host knows topics that this one does not.
                None => self.announce(&Change::Everything),
            }
        }
    }
}

pub(crate) const NOTIFY: &str = "SELECT pg_notify('souk_changes', $1)";

/// Listens until the last `Db` is gone. Whenever the connection is new, everything is announced as changed.
pub(crate) async fn listen(changes: std::sync::Weak<Changes>, url: String) {
    let mut told: Option<Instant> = None;
    while let Some(strong) = changes.upgrade() {
        let coherent = strong.coherent();
        drop(strong);
        if let Err(error) = listen_once(&changes, &url).await
            && told.is_none_or(|told| told.elapsed() >= TELL_EVERY)
        {
            told = Some(Instant::now());
            tracing::warn!(%error, "not hearing of other hosts' changes; caches are bypassed until the store answers again");
        }
        coherent.store(false, Ordering::SeqCst);
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}

async fn listen_once(changes: &std::sync::Weak<Changes>, url: &str) -> Result<(), StoreError> {
    // Once, by a connection of its own: the listener's tries again and again, and says only that time is over.
    let reached = async { PgConnection::connect(url).await?.close().await };
    tokio::time::timeout(ANSWER_MAX, reached)
        .await
        .map_err(|_| silent())??;
    let mut listener = tokio::time::timeout(ANSWER_MAX, PgListener::connect(url))
        .await
        .map_err(|_| silent())??;
    listener.eager_reconnect(false);
    tokio::time::timeout(ANSWER_MAX, listener.listen(CHANNEL))
        .await
        .map_err(|_| silent())??;
    if let Some(changes) = changes.upgrade() {
        changes.announce(&Change::Everything);
        changes.coherent.store(true, Ordering::SeqCst);
    }
    loop {
        let received = tokio::time::timeout(SILENCE_MAX, listener.try_recv()).await;
        let Some(changes) = changes.upgrade() else {
            return Ok(());
        };
        match received {
            Ok(Ok(Some(notification))) => changes.receive(notification.payload()),
            Ok(Ok(None)) => return Err(silent()),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => {
                tokio::time::timeout(ANSWER_MAX, (&mut listener).execute("SELECT 1"))
                    .await
                    .map_err(|_| silent())??;
            }
        }
    }
}

fn silent() -> StoreError {
    StoreError::Unavailable("the connection that listens for changes was lost".into())
}
