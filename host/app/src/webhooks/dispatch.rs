//! The dispatch of webhooks' deliveries: how one that is due is found, sent and written down ([`crate::leases`] does so).

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use souk_domain::ids::{CompanyId, DeliveryId, WebhookId};
use souk_domain::time::Timestamp;
use souk_domain::webhooks::{FAILING_MAX, WEBHOOKS_MAX, retry_pause};
use souk_store::db::SWEPT_WITHIN;
use souk_store::deliveries::{self, Attempted, Delivery};
use souk_store::sealing::Owner;
use souk_store::webhooks::{self, DisabledReason, Webhook};
use souk_store::{Change, Read, StoreError, Topic, Write};
use tokio::sync::{Notify, watch};

use super::client::{Client, IN_FLIGHT_MAX, IN_FLIGHT_PER_WEBHOOK, Message, TIMEOUT};
use super::signature::{Secret, header};
use crate::App;
use crate::background::Background;
use crate::leases::{self, Claim, Due};

const LEASE: Duration = Duration::from_secs(60);
const _: () = assert!(LEASE.as_secs() >= 3 * TIMEOUT.as_secs());
const _: () = assert!(IN_FLIGHT_PER_WEBHOOK as i64 <= deliveries::DUE_PER_WEBHOOK_MAX);
/// Old deliveries are in nobody's way for an hour.
const SWEEP_EVERY: Duration = Duration::from_secs(3_600);
/// Of what went wrong, so much is kept for the webhook's owner.
const ERROR_CHARS_MAX: usize = 500;

/// Delivers from now on, on the current runtime, which should be one that waits little (not a worker's).
pub async fn start(app: &App) -> Result<Background, StoreError> {
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
    let kind = Deliveries {
        app: app.clone(),
        client: Arc::new(client),
    };
    leases::start(app, kind, written).await
}

/// An attempt that has ended.
struct Finished {
    webhook: WebhookId,
    delivery: DeliveryId,
    attempts: i64,
    /// Where it was sent.
    url: String,
    /// The receiver's answer, or why there is none, for the webhook's owner.
    result: Result<http::StatusCode, String>,
}

/// Who has room for so many attempts.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Receiver {
    Webhook(WebhookId),
    Company(CompanyId),
}

#[derive(Clone)]
struct Deliveries {
    app: App,
    client: Arc<Client>,
}

impl leases::Kind for Deliveries {
    const WHAT: &'static str = "webhook deliveries";
    const IN_FLIGHT_MAX: usize = IN_FLIGHT_MAX;
    const LEASE: Duration = LEASE;
    /// What was just written is announced; this finds retries that have come due, and what another host has left behind.
    const POLL: Duration = Duration::from_secs(1);

    type Id = DeliveryId;
    type Concerned = Receiver;
    type Claimed = (Delivery, Webhook);
    type Ended = Finished;

    async fn due(
        &self,
        read: &mut Read,
        now: Timestamp,
        limit: i64,
    ) -> Result<Vec<Due<Self>>, StoreError> {
        let per_company = self.app.bounds.deliveries as usize;
        let per_webhook = IN_FLIGHT_PER_WEBHOOK;
        // One of each of a company's webhooks, however many of these have all that they may have under way.
        let looked_at = (per_company as i64).max(WEBHOOKS_MAX);
        let found = deliveries::due(read, now, per_webhook as i64, looked_at, limit).await?;
        let due = found.into_iter().map(|found| {
            let webhook = (Receiver::Webhook(found.webhook), per_webhook);
            // Without a company its webhook was deleted: it is only swept away, not sent.
            let company = found.company.map(Receiver::Company);
            let company = company.map(|company| (company, per_company));
            Due {
                id: found.id,
                concerns: std::iter::once(webhook).chain(company).collect(),
            }
        });
        Ok(due.collect())
    }

    async fn claim(
        &self,
        write: &mut Write,
        id: &DeliveryId,
        claim: &Claim<'_>,
    ) -> Result<Option<Self::Claimed>, StoreError> {
        let taken = deliveries::claim(write, id, claim).await?;
        let Some(delivery) = taken else {
            return Ok(None);
        };
        match webhooks::find(write, &delivery.webhook_id).await? {
            None => deliveries::delete(write, id).await?,
            Some(webhook) if !webhook.is_active() => {
                let (gone, why) = (Attempted::GivenUp, Some("the webhook was disabled"));
                deliveries::record(write, id, claim.by, &gone, None, why, claim.now).await?;
            }
            Some(webhook) => return Ok(Some((delivery, webhook))),
        }
        Ok(None)
    }

    async fn attempt(self, (delivery, webhook): Self::Claimed) -> Finished {
        let _in_flight = self.app.deliveries.begin(&webhook.company_id);
        let result = match self.message(&delivery, &webhook) {
            Ok(message) => {
                let posted = self.client.post(&webhook.company_id, message).await;
                posted.map_err(|error| error.message)
            }
            Err(error) => Err(error),
        };
        Finished {
            webhook: webhook.id,
            delivery: delivery.id,
            attempts: delivery.attempts,
            url: webhook.url,
            result,
        }
    }

    fn order(one: &Finished, other: &Finished) -> Ordering {
        one.webhook.cmp(&other.webhook)
    }

    /// What follows from it for the webhook, too.
    async fn record(
        &self,
        write: &mut Write,
        finished: &Finished,
        by: &str,
        now: Timestamp,
        _: bool,
    ) -> Result<(), StoreError> {
        let code = finished.result.as_ref().ok().map(http::StatusCode::as_u16);
        let error = failure(&finished.result);
        let is_gone = code == Some(GONE) && !has_moved(write, finished).await?;
        let attempted = match &error {
            None => Attempted::Delivered,
            Some(_) if is_gone => Attempted::GivenUp,
            Some(_) => {
                let attempts = u32::try_from(finished.attempts).unwrap_or(u32::MAX);
                retry_pause(attempts, rand::random()).map_or(Attempted::GivenUp, |pause| {
                    Attempted::Again(now.after(pause))
                })
            }
        };
        let delivery = &finished.delivery;
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
            _ if is_gone => DisabledReason::Gone,
            Some(since) if now.since(since) >= FAILING_MAX => DisabledReason::Failing,
            _ => return Ok(()),
        };
        if webhooks::disable(write, webhook, reason, now).await? {
            tracing::warn!(%webhook, reason = reason.as_str(), "a webhook was disabled");
        }
        Ok(())
    }

    async fn beside(self, stopped: watch::Receiver<bool>) {
        sweep(self.app, stopped).await;
    }

    async fn release_all(&self, write: &mut Write) -> Result<(), StoreError> {
        deliveries::release_all(write).await
    }
}

impl Deliveries {
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
        let owner = Owner::of(&webhook.company_id, webhook.id.as_str());
        let plain = self.app.sealer.unseal(owner, sealed);
        let secret = plain.map_err(|error| error.to_string()).and_then(|plain| {
            Secret::read(plain).ok_or_else(|| "it is no webhook secret".to_owned())
        });
        secret.map_err(|error| {
            tracing::error!(webhook = %webhook.id, error, "a webhook's secret cannot be read");
            "the event cannot be signed at the moment".to_owned()
        })
    }
}

/// The receiver wants no more.
const GONE: u16 = 410;

/// Whether the webhook has another address by now, of which the answer says nothing.
async fn has_moved(write: &mut Write, finished: &Finished) -> Result<bool, StoreError> {
    let webhook = webhooks::find(write, &finished.webhook).await?;
    Ok(webhook.is_some_and(|webhook| webhook.url != finished.url))
}

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
        let swept = deliveries::sweep(&app.db, app.clock.now());
        match app.db.answered(SWEPT_WITHIN, swept).await {
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
