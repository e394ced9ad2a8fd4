//! The dispatcher: takes deliveries that are due, sends them, and writes down what became of them.
//!
//! One task per host decides and writes; attempts run beside it, bounded in number. Hosts that share a store share the work: whoever claims a
//! delivery first has it until the lease ends, so that no two attempt it at once, and a host that dies in between is followed by another (by
//! its own next start, when it has its store to itself). At least once, in no promised order. Start reading at [`Loop::run`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use souk_domain::ids::{CompanyId, DeliveryId, WebhookId};
use souk_domain::time::Timestamp;
use souk_domain::webhooks::{FAILING_MAX, retry_pause};
use souk_store::deliveries::{self, Attempted, Delivery};
use souk_store::webhooks::{self, DisabledReason, Webhook};
use souk_store::{Change, StoreError, Topic, Write};
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinError, JoinSet};

use super::client::{Client, Message, TIMEOUT};
use super::signature::{Secret, header};
use crate::App;
use crate::background::Background;

/// Attempts in flight on this host: each costs a socket, and some memory for TLS.
pub(super) const IN_FLIGHT_MAX: usize = 64;
/// … and to one webhook, so that a slow receiver leaves room for others, and a small one is not run over. How many may go to all webhooks
/// of one company is a setting ([`crate::CompanyBounds::deliveries`]).
pub(super) const IN_FLIGHT_PER_WEBHOOK: usize = 4;
/// Deliveries looked at in one turn: those of companies and webhooks that are busy to their bound may come first, so there is room for as
/// many others.
const LOOKED_AT_MAX: i64 = 2 * IN_FLIGHT_MAX as i64;
/// How long a claim holds: the attempt, the writing down, and a generous difference between the clocks of two hosts.
const LEASE: Duration = Duration::from_secs(60);
const _: () = assert!(LEASE.as_secs() >= 3 * TIMEOUT.as_secs());
/// What was just written is announced; this finds retries that have come due, and what another host has left behind.
const POLL: Duration = Duration::from_secs(1);
/// Old deliveries are in nobody's way for an hour.
const SWEEP_EVERY: Duration = Duration::from_secs(3_600);
/// Of what went wrong, so much is kept for the webhook's owner.
const ERROR_CHARS_MAX: usize = 500;
/// Of randomness, in the name under which this host claims.
const CLAIMANT_BYTES: usize = 16;

/// Delivers from now on, on the current runtime, which should be one that waits little (not a worker's).
pub async fn start(app: &App) -> Result<Background, StoreError> {
    if !app.db.is_shared() {
        // Nobody else has this store open, so whoever held a claim is gone.
        app.db
            .write(async |write| deliveries::release_all(write).await)
            .await?;
    }
    let client = Client::new(&app.egress)
        .map_err(|error| StoreError::Unavailable(format!("TLS cannot be set up: {error}")))?;
    let written = Arc::new(Notify::new());
    let heard = written.clone();
    app.db.on_change(Box::new(move |change| {
        if let Change::One {
            topic: Topic::Delivery,
            ..
        } = change
        {
            heard.notify_one();
        }
    }));
    let dispatch = Loop {
        app: app.clone(),
        client: Arc::new(client),
        claimant: hex::encode(rand::random::<[u8; CLAIMANT_BYTES]>()),
        attempts: JoinSet::new(),
        in_flight: HashMap::new(),
        finished: Vec::new(),
    };
    let app = app.clone();
    Ok(Background::start("webhook deliveries", |stopped| {
        tokio::spawn(sweep(app, stopped.clone()));
        dispatch.run(written, stopped)
    }))
}

/// An attempt that has ended.
struct Finished {
    webhook: WebhookId,
    delivery: DeliveryId,
    attempts: i64,
    /// The receiver's answer, or why there is none, for the webhook's owner.
    result: Result<http::StatusCode, String>,
}

/// Whose room an attempt takes.
struct Receiver {
    webhook: WebhookId,
    company: CompanyId,
}

struct Loop {
    app: App,
    client: Arc<Client>,
    /// The name under which this process claims.
    claimant: String,
    attempts: JoinSet<Finished>,
    /// To whom each attempt goes.
    in_flight: HashMap<Id, Receiver>,
    /// Not written down yet: at most [`IN_FLIGHT_MAX`] and what an unavailable store has held up, which counts as in flight.
    finished: Vec<Finished>,
}

impl Loop {
    async fn run(mut self, written: Arc<Notify>, mut stopped: watch::Receiver<bool>) {
        let mut stopping = false;
        loop {
            let idle = self.attempts.is_empty();
            if stopping && idle && self.finished.is_empty() {
                return;
            }
            tokio::select! {
                () = written.notified(), if !stopping => {}
                () = tokio::time::sleep(POLL) => {}
                Some(ended) = self.attempts.join_next_with_id(), if !idle => self.end(ended),
                _ = stopped.changed(), if !stopping => stopping = true,
            }
            while let Some(ended) = self.attempts.try_join_next_with_id() {
                self.end(ended);
            }
            if let Err(error) = self.turn(stopping).await {
                tracing::warn!(%error, "webhook deliveries wait for the store");
                tokio::time::sleep(POLL).await;
            }
        }
    }

    fn end(&mut self, ended: Result<(Id, Finished), JoinError>) {
        match ended {
            Ok((id, finished)) => {
                self.in_flight.remove(&id);
                self.finished.push(finished);
            }
            // Its lease ends, and it is attempted again.
            Err(error) => {
                self.in_flight.remove(&error.id());
                tracing::error!(%error, "an attempt to deliver to a webhook panicked");
            }
        }
    }

    /// Writes down what has ended and takes what is due, in one transaction; then sends what was taken.
    async fn turn(&mut self, stopping: bool) -> Result<(), StoreError> {
        let now = self.app.clock.now();
        let mut due = match stopping {
            true => Vec::new(),
            false => self.due(now).await?,
        };
        if due.is_empty() && self.finished.is_empty() {
            return Ok(());
        }
        // Every host locks webhooks in one order, and deliveries that nobody has yet in another, so that none waits for another in a circle.
        due.sort_unstable();
        self.finished
            .sort_unstable_by(|one, other| one.webhook.cmp(&other.webhook));
        let claimed = self
            .app
            .db
            .write(async |write| -> Result<_, StoreError> {
                for finished in &self.finished {
                    self.settle(write, finished).await?;
                }
                let mut claimed = Vec::with_capacity(due.len());
                for id in &due {
                    let until = now.after(LEASE);
                    let taken = deliveries::claim(write, id, &self.claimant, now, until).await?;
                    let Some(delivery) = taken else { continue };
                    match webhooks::find(write, &delivery.webhook_id).await? {
                        None => deliveries::delete(write, id).await?,
                        Some(webhook) if !webhook.is_active() => {
                            let (gone, why) =
                                (Attempted::GivenUp, Some("the webhook was disabled"));
                            let by = &self.claimant;
                            deliveries::record(write, id, by, &gone, None, why, now).await?;
                        }
                        Some(webhook) => claimed.push((delivery, webhook)),
                    }
                }
                Ok(claimed)
            })
            .await?;
        self.finished.clear();
        for (delivery, webhook) in claimed {
            self.send(delivery, webhook);
        }
        Ok(())
    }

    /// What may be attempted now, within the bounds.
    async fn due(&self, now: Timestamp) -> Result<Vec<DeliveryId>, StoreError> {
        let mut room = IN_FLIGHT_MAX.saturating_sub(self.in_flight.len() + self.finished.len());
        if room == 0 {
            return Ok(Vec::new());
        }
        let mut busy: HashMap<&WebhookId, usize> = HashMap::new();
        let mut busy_companies: HashMap<&CompanyId, usize> = HashMap::new();
        for receiver in self.in_flight.values() {
            *busy.entry(&receiver.webhook).or_default() += 1;
            *busy_companies.entry(&receiver.company).or_default() += 1;
        }
        let per_company = self.app.bounds.deliveries as usize;
        let mut read = self.app.db.read().await?;
        let per_webhook = IN_FLIGHT_PER_WEBHOOK as i64;
        let found = deliveries::due(
            &mut read,
            now,
            per_webhook,
            per_company as i64,
            LOOKED_AT_MAX,
        )
        .await?;
        let mut due = Vec::new();
        for delivery in &found {
            let to_it = busy.entry(&delivery.webhook).or_default();
            let mut nobodys = 0;
            let to_them = match &delivery.company {
                Some(company) => busy_companies.entry(company).or_default(),
                // Its webhook was deleted: it is only swept away, not sent.
                None => &mut nobodys,
            };
            if room > 0 && *to_it < IN_FLIGHT_PER_WEBHOOK && *to_them < per_company {
                *to_it += 1;
                *to_them += 1;
                room -= 1;
                due.push(delivery.id.clone());
            }
        }
        Ok(due)
    }

    fn send(&mut self, delivery: Delivery, webhook: Webhook) {
        let message = self.message(&delivery, &webhook);
        let client = self.client.clone();
        let receiver = Receiver {
            webhook: webhook.id.clone(),
            company: webhook.company_id.clone(),
        };
        let task = self.attempts.spawn(async move {
            let result = match message {
                Ok(message) => {
                    let posted = client.post(&webhook.company_id, message).await;
                    posted.map_err(|error| error.message)
                }
                Err(error) => Err(error),
            };
            Finished {
                webhook: webhook.id,
                delivery: delivery.id,
                attempts: delivery.attempts,
                result,
            }
        });
        self.in_flight.insert(task.id(), receiver);
    }

    fn message(&self, delivery: &Delivery, webhook: &Webhook) -> Result<Message, String> {
        let now = self.app.clock.now();
        let former = webhook.former_secret.as_ref();
        let former = former.filter(|former| former.until > now);
        let sealed =
            std::iter::once(&webhook.sealed_secret).chain(former.map(|former| &former.sealed));
        let mut secrets = Vec::with_capacity(2);
        for sealed in sealed {
            secrets.push(self.unseal(webhook, sealed)?);
        }
        let (id, timestamp) = (delivery.id.to_string(), now.seconds());
        Ok(Message {
            url: webhook.url.clone(),
            signature: header(&secrets, &id, timestamp, &delivery.body),
            id,
            timestamp,
            body: delivery.body.clone(),
        })
    }

    /// What is wrong with the master key is not the company's business.
    fn unseal(&self, webhook: &Webhook, sealed: &[u8]) -> Result<Secret, String> {
        let owner = super::owner(&webhook.company_id, &webhook.id);
        let plain = self.app.sealer.unseal(owner, sealed);
        let secret = plain.map_err(|error| error.to_string()).and_then(|plain| {
            Secret::read(plain).ok_or_else(|| "it is no webhook secret".to_owned())
        });
        secret.map_err(|error| {
            tracing::error!(webhook = %webhook.id, error, "a webhook's secret cannot be read");
            "the event cannot be signed at the moment".to_owned()
        })
    }

    /// Writes down what became of an attempt, and what follows from it for the webhook.
    async fn settle(&self, write: &mut Write, finished: &Finished) -> Result<(), StoreError> {
        let now = self.app.clock.now();
        let code = finished.result.as_ref().ok().map(http::StatusCode::as_u16);
        let error = failure(&finished.result);
        let attempted = match (&error, code) {
            (None, _) => Attempted::Delivered,
            (Some(_), Some(GONE)) => Attempted::GivenUp,
            (Some(_), _) => {
                let attempts = u32::try_from(finished.attempts).unwrap_or(u32::MAX);
                retry_pause(attempts, rand::random()).map_or(Attempted::GivenUp, |pause| {
                    Attempted::Again(now.after(pause))
                })
            }
        };
        let (delivery, by) = (&finished.delivery, &self.claimant);
        let text = error.as_deref();
        if !deliveries::record(write, delivery, by, &attempted, code, text, now).await? {
            return Ok(());
        }
        let webhook = &finished.webhook;
        tracing::debug!(%webhook, %delivery, attempt = finished.attempts, ?attempted, error = text, "webhook delivery attempted");
        if attempted == Attempted::Delivered {
            return webhooks::note_success(write, webhook).await;
        }
        let since = webhooks::note_failure(write, webhook, now).await?;
        let reason = match since {
            _ if code == Some(GONE) => DisabledReason::Gone,
            Some(since) if now.since(since) >= FAILING_MAX => DisabledReason::Failing,
            _ => return Ok(()),
        };
        if webhooks::disable(write, webhook, reason, now).await? {
            tracing::warn!(%webhook, reason = reason.as_str(), "a webhook was disabled");
        }
        Ok(())
    }
}

/// The receiver wants no more.
const GONE: u16 = 410;

/// Why an attempt failed, for the webhook's owner. `None`: it did not. A redirect is a failure: what it points to was not checked, and is not
/// what the company has named.
fn failure(result: &Result<http::StatusCode, String>) -> Option<String> {
    match result {
        Ok(status) if status.is_success() => None,
        Ok(status) if status.is_redirection() => Some(format!(
            "answered {}: redirects are not followed, name the final address",
            status.as_u16()
        )),
        Ok(status) => Some(format!("answered {}", status.as_u16())),
        Err(error) => Some(error.chars().take(ERROR_CHARS_MAX).collect()),
    }
}

/// Forgets old deliveries by and by. Any number of hosts may do so at once.
async fn sweep(app: App, mut stopped: watch::Receiver<bool>) {
    loop {
        match deliveries::sweep(&app.db, app.clock.now()).await {
            Ok(0) => {}
            Ok(swept) => tracing::info!(swept, "old webhook deliveries were forgotten"),
            Err(error) => {
                tracing::warn!(%error, "old webhook deliveries could not be forgotten; trying again later");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(SWEEP_EVERY) => {}
            _ = stopped.changed() => return,
        }
    }
}
