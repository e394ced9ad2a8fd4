//! Collecting the money of top-ups: whom to ask, what they answer, and what their events change.
//!
//! A [`provider`] begins a payment and reads its own events; refuses to know the store. The flows here write: [`top_up`] (a company buys
//! credits), [`receive`] (a provider tells), [`settle`] (staff tells). Whoever says so and however often, a top-up is credited once:
//! see `souk_store::top_ups::settle`. No transaction is open while a provider is asked.

mod client;
pub mod instant;
pub mod manual;
mod provider;
pub mod stripe;

use souk_domain::actors::Actor;
use souk_domain::ids::TopUpId;
use souk_domain::time::{DAY, Timestamp};
use souk_store::disputes::{self, Followed};
use souk_store::idempotency::{self, KeptAnswer, Ticket};
use souk_store::top_ups::{self, NewTopUp, TopUp, TopUpStatus};
use souk_store::{StoreError, Write, payment_events};

use crate::App;
pub use provider::{
    BeginError, Begun, Checkout, Dispute, Event, EventError, News, Notice, Order, Payments,
    Provider,
};

/// Why a top-up has not begun.
#[derive(Debug, thiserror::Error)]
pub enum TopUpError {
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// The same `Idempotency-Key` has begun another top-up.
    #[error("the idempotency key was used for another top-up")]
    Reused,
    /// Nothing was written.
    #[error("the company has other top-ups at the payment provider")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The claim of a request with an `Idempotency-Key`: its answer is kept in the transaction that it tells of.
pub struct Retry<'a> {
    pub ticket: &'a Ticket,
    /// What is kept, of the top-up as it is then.
    pub answer: &'a (dyn Fn(&TopUp) -> Result<KeptAnswer, StoreError> + Sync),
    pub kept_until: Timestamp,
}

impl Retry<'_> {
    /// A top-up is begun and credited once, so a claim that has lapsed meanwhile does no harm.
    async fn keep(&self, write: &mut Write, top_up: &TopUp) -> Result<(), StoreError> {
        let answer = (self.answer)(top_up)?;
        idempotency::complete(write, self.ticket, &answer, self.kept_until).await?;
        Ok(())
    }

    /// Of whose key it is, beside the key: staff and the company itself may send the same one.
    fn name(&self) -> String {
        let scope = &self.ticket.scope;
        format!("{}/{}", scope.company, scope.key)
    }
}

/// Begins a top-up. It is written down before its provider is asked, so that an event always finds it; and so does a retry, when the host
/// died before the answer was kept.
pub async fn top_up(
    app: &App,
    mut order: Order,
    actor: &Actor,
    retry: Option<Retry<'_>>,
) -> Result<TopUp, TopUpError> {
    let place = app.payments.place(&order.company).await;
    let _place = place.ok_or(TopUpError::Busy)?;
    let provider = &app.payments.active;
    let name = retry.as_ref().map(Retry::name);
    let now = app.clock.now();
    let before = app
        .db
        .write(async |write| -> Result<_, TopUpError> {
            let known = match &name {
                Some(name) => {
                    let (company, since) = (&order.company, now.before(DAY));
                    top_ups::begun_under(write, company, name, provider.name(), since).await?
                }
                None => None,
            };
            let Some(top_up) = known else {
                let new = NewTopUp {
                    id: &order.top_up,
                    company: &order.company,
                    credits: order.credits,
                    provider: provider.name(),
                    payment_method: order.payment_method.as_deref(),
                    actor,
                    idempotency_key: name.as_deref(),
                };
                top_ups::insert(write, &new, now).await?;
                return Ok(None);
            };
            if top_up.credits != order.credits || top_up.payment_method != order.payment_method {
                return Err(TopUpError::Reused);
            }
            let is_begun = top_up.status == TopUpStatus::Settled || top_up.checkout_url.is_some();
            if let (true, Some(retry)) = (is_begun, &retry) {
                retry.keep(write, &top_up).await?;
            }
            Ok(Some((top_up, is_begun)))
        })
        .await?;
    match before {
        Some((top_up, true)) => return Ok(top_up),
        Some((top_up, false)) => order.top_up = top_up.id,
        None => {}
    }

    let begun = provider.begin(&order).await;
    let top_up = app.db.write(async |write| -> Result<_, TopUpError> {
        match &begun {
            Ok(Begun::Paid { reference }) => {
                let now = app.clock.now();
                top_ups::settle(write, &order.top_up, reference, Some(actor), now).await?;
            }
            Ok(Begun::Waiting {
                checkout: Some(checkout),
            }) => {
                let (reference, url) = (&checkout.reference, Some(checkout.url.as_str()));
                top_ups::set_checkout(write, &order.top_up, reference, url).await?;
            }
            Ok(Begun::Waiting { checkout: None }) => {}
            Err(error) => {
                tracing::warn!(top_up = %order.top_up, provider = provider.name(), %error, "a top-up has not begun");
                top_ups::fail(write, &order.top_up, &told(error)).await?;
            }
        }
        let top_up = top_ups::find(write, &order.top_up).await?;
        let top_up = top_up.ok_or(StoreError::NotFound)?;
        if let (Some(retry), Ok(_)) = (&retry, &begun) {
            retry.keep(write, &top_up).await?;
        }
        Ok(top_up)
    }).await?;
    begun?;
    Ok(top_up)
}

/// Why a top-up has not begun, for its company. What is wrong between this host and its provider is the operator's, and in the log: a provider that
/// refuses our key names it, and what cannot be reached has an address.
fn told(error: &BeginError) -> String {
    match error {
        BeginError::Unavailable(_) => "the payment provider could not be used".to_owned(),
        BeginError::PaymentMethod(_) | BeginError::Refused(_) => error.to_string(),
    }
}

/// What an event has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    Settled,
    Failed,
    /// It was settled by other money than this: nothing has changed, and staff must decide.
    PaidAgain,
    /// What it had bought was taken back, as far as it was there.
    TakenBack,
    /// What was taken back is there again.
    GivenBack,
    /// Known before, or about a payment that is not ours, or not final: nothing has changed.
    Nothing,
}

#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error(transparent)]
    Event(#[from] EventError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Acts on what was sent to a provider's webhook. Sent again, it does nothing.
pub async fn receive(
    app: &App,
    provider: &dyn Provider,
    signature: Option<&str>,
    body: &[u8],
) -> Result<Received, ReceiveError> {
    let now = app.clock.now();
    let event = match provider.read_event(signature, body, now)? {
        Some(Notice::Payment(event)) => event,
        Some(Notice::Dispute(dispute)) => return disputed(app, provider.name(), &dispute).await,
        None => return Ok(Received::Nothing),
    };
    app.db.write(async |write| {
        let top_up = top_ups::find(write, &event.top_up).await?;
        let Some(top_up) = top_up.filter(|top_up| top_up.provider == provider.name()) else {
            // The account may also serve others.
            tracing::info!(event = event.id, top_up = %event.top_up, "an event about an unknown top-up");
            return Ok(Received::Nothing);
        };
        // The statement is in the order of its times: what was booked while this waited for its turn is earlier.
        let now = app.clock.now();
        let is_new = payment_events::note(
            write,
            provider.name(),
            &event.id,
            &event.kind,
            &top_up.id,
            now,
        )
        .await?;
        if !is_new {
            return Ok(Received::Nothing);
        }
        let received = match &event.news {
            News::Paid { amount } if *amount != Some(top_up.credits.cents()) => {
                tracing::error!(
                    event = event.id, top_up = %top_up.id, ?amount, expected = %top_up.credits.cents(),
                    "a payment of another amount than asked for; staff must decide"
                );
                Received::Nothing
            }
            News::Paid { .. } => {
                let settled = top_ups::settle(write, &top_up.id, &event.id, None, now).await?;
                if settled.is_some() {
                    paid(app, write, provider.name(), &event).await?;
                    Received::Settled
                } else if is_settled_by(write, provider.name(), &event).await? {
                    paid(app, write, provider.name(), &event).await?;
                    Received::Nothing
                } else {
                    tracing::error!(
                        event = event.id, top_up = %top_up.id, payment = event.reference,
                        "paid although it was settled; staff must decide"
                    );
                    Received::PaidAgain
                }
            }
            News::Failed { reason } => match top_ups::fail(write, &top_up.id, reason).await? {
                true => Received::Failed,
                false => Received::Nothing,
            },
            News::Waiting => Received::Nothing,
        };
        Ok(received)
    }).await
}

/// A top-up was settled by this payment, which may have been taken back already.
async fn paid(
    app: &App,
    write: &mut Write,
    provider: &str,
    event: &Event,
) -> Result<(), StoreError> {
    if let Some(payment) = &event.payment {
        disputes::note_payment(write, provider, payment, Some(&event.top_up)).await?;
        follow(app, write, provider, payment).await?;
    }
    Ok(())
}

/// A payment was taken back, or is there again.
async fn disputed(app: &App, provider: &str, dispute: &Dispute) -> Result<Received, ReceiveError> {
    app.db
        .write(async |write| {
            let payment = dispute.payment.as_str();
            let Some(amount) = dispute.amount else {
                if let Some(top_up) = disputes::of_payment(write, provider, payment).await? {
                    tracing::error!(
                        dispute = dispute.id, top_up = %top_up.id,
                        "a dispute in another currency than US dollars; staff must decide"
                    );
                }
                return Ok(Received::Nothing);
            };
            let told = disputes::Dispute {
                provider,
                id: &dispute.id,
                payment,
                amount,
                is_won: dispute.is_won,
            };
            disputes::note(write, &told, app.clock.now()).await?;
            Ok(follow(app, write, provider, payment).await?)
        })
        .await
}

/// Does what is to be done about a payment's disputes, and says so in the log.
async fn follow(
    app: &App,
    write: &mut Write,
    provider: &str,
    payment: &str,
) -> Result<Received, StoreError> {
    let now = app.clock.now();
    let mut received = Received::Nothing;
    for done in disputes::follow(write, &app.teller, provider, payment, now).await? {
        match done {
            Followed::Taken {
                company,
                credits,
                missing,
            } => {
                received = Received::TakenBack;
                if missing.get() > 0 {
                    tracing::error!(
                        payment, %company, %credits, %missing,
                        "a payment was taken back whose credits are spent; staff must decide"
                    );
                } else {
                    tracing::warn!(payment, %company, %credits, "a payment was taken back, and its credits with it");
                }
            }
            Followed::Returned { company, credits } => {
                received = Received::GivenBack;
                tracing::info!(payment, %company, %credits, "a dispute was won, and its credits are back");
            }
            Followed::Undecided { top_up, amount } => {
                tracing::error!(
                    payment, %top_up, %amount,
                    "a dispute of another amount than whole credits of its top-up; staff must decide"
                );
            }
        }
    }
    Ok(received)
}

/// Whether a top-up that is settled was so by the payment that `event` is about. Two events about one payment are usual; a payment on top of another one,
/// or of what staff has settled by hand, is not.
async fn is_settled_by(
    write: &mut Write,
    provider: &str,
    event: &Event,
) -> Result<bool, StoreError> {
    // Read again: it may have been settled since it was found.
    let top_up = top_ups::find(write, &event.top_up).await?;
    let top_up = top_up.ok_or(StoreError::NotFound)?;
    if top_up.provider_reference.as_deref() != Some(event.reference.as_str()) {
        return Ok(false);
    }
    match &top_up.reference {
        // An event's, or staff's own words.
        Some(reference) => payment_events::is_noted(write, provider, reference, &top_up.id).await,
        None => Ok(false),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    #[error("no such top-up")]
    NotFound,
    #[error("the top-up was settled before")]
    Settled,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Staff says that the money has come.
pub async fn settle(
    app: &App,
    id: &TopUpId,
    reference: &str,
    actor: &Actor,
    retry: Option<Retry<'_>>,
) -> Result<TopUp, SettleError> {
    app.db
        .write(async |write| {
            let settled =
                top_ups::settle(write, id, reference, Some(actor), app.clock.now()).await?;
            let Some(settled) = settled else {
                let known = top_ups::find(write, id).await?;
                return Err(match known {
                    Some(top_up) if top_up.status == TopUpStatus::Settled => SettleError::Settled,
                    _ => SettleError::NotFound,
                });
            };
            if let Some(retry) = &retry {
                retry.keep(write, &settled).await?;
            }
            Ok(settled)
        })
        .await
}
