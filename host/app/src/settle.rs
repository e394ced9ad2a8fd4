//! What a run costs whom: the hold before it, the charge or the release after it, and its record.
//!
//! A charge is held before the connector runs, so that concurrent calls can neither overspend nor
//! make a seller work for nothing, and posted durably before the first byte of the answer leaves.
//! Runs that cost nothing are recorded without waiting.

pub mod entitlements;

use std::pin::Pin;
use std::time::Duration;

use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, ExecutionId, PriceId, PurchaseId, RequestId, TransactionId};
use souk_domain::time::Timestamp;
use souk_store::executions::{Billing, Ended, Run};
use souk_store::idempotency::{KeptAnswer, Ticket};
use souk_store::purchases::{self, NewPurchase, PurchaseStatus};
use souk_store::teller::{Hold, HoldError, HoldRequest, IdempotencyEntry, PostError, Receipt};
use souk_store::{Cached, StoreError};

use crate::App;
use crate::claims::{self, Written};
use crate::failure::Cause;
use crate::products::Sold;
use crate::readers::Readers;
use entitlements::Entitlement;

/// A hold outlives its run's deadline by as much as posting takes where the store answers. Where it does not, posting may take a minute, and what was held for a
/// run that took all its time has gone by then: it is not charged. What would outlast that, too, would keep a buyer's credits as long whenever a host dies.
const HOLD_GRACE: Duration = Duration::from_secs(10);
/// How long an answer is kept for a retry.
const ANSWER_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Who calls, for the company that pays.
#[derive(Clone)]
pub struct Payer<'a> {
    pub company: &'a CompanyId,
    pub actor: &'a Actor,
    pub request: &'a RequestId,
    pub now: Timestamp,
    /// The claim of a request with an `Idempotency-Key`: its answer is kept with the charge, if there is one.
    pub ticket: Option<&'a Ticket>,
    /// Who reads the answer.
    pub readers: Option<&'a dyn Readers>,
    /// Credits that this run may cost at most, where whoever pays says so.
    pub max_credits: Option<i64>,
}

pub(crate) async fn entitlement(
    app: &App,
    company: &CompanyId,
    product: &str,
) -> Result<Cached<Entitlement>, Cause> {
    let load = || async {
        let mut db = app.db.read().await?;
        Ok::<_, Cause>(
            match purchases::of_product(&mut db, company, product).await? {
                None => Entitlement::None,
                Some(purchase) if purchase.status == PurchaseStatus::Active => {
                    Entitlement::Active(purchase.id)
                }
                Some(purchase) => Entitlement::Ended(purchase.status),
            },
        )
    };
    app.entitlements
        .get_or_load(purchases::entitlement(company.as_str(), product), load)
        .await
}

/// Whether this company has bought a product: an unpublished one stays usable for it, and of an archived one it is told.
pub(crate) async fn has_purchase(
    app: &App,
    company: &CompanyId,
    product: &str,
) -> Result<bool, Cause> {
    Ok(matches!(
        *entitlement(app, company, product).await?,
        Entitlement::Active(_)
    ))
}

/// What a run is going to cost.
pub(crate) enum Charge {
    Free {
        billing: Billing,
        price: Option<PriceId>,
        purchase: Option<PurchaseId>,
        balance: Option<i64>,
    },
    Held {
        hold: Hold,
        price: PriceId,
        entitlement: Cached<Entitlement>,
    },
}

impl Charge {
    pub fn free(billing: Billing) -> Charge {
        Charge::Free {
            billing,
            price: None,
            purchase: None,
            balance: None,
        }
    }

    /// A page beyond the last row costs nothing: a hold is let go of.
    pub fn for_empty_page(self) -> Charge {
        self.for_nothing(Billing::Empty)
    }

    /// Nor does one that its caller has already.
    pub fn for_unchanged_page(self) -> Charge {
        self.for_nothing(Billing::NotModified)
    }

    fn for_nothing(self, billing: Billing) -> Charge {
        match self {
            Charge::Free {
                billing: Billing::Owner,
                ..
            } => self,
            Charge::Free {
                price,
                purchase,
                balance,
                ..
            } => Charge::Free {
                billing,
                price,
                purchase,
                balance,
            },
            Charge::Held { hold, price, .. } => Charge::Free {
                billing,
                price: Some(price),
                purchase: None,
                balance: Some(hold.available() + hold.amount().get()),
            },
        }
    }

    /// Takes out what is to be booked. What is left tells its price, should that fail.
    pub fn take(&mut self) -> Charge {
        let left = Charge::Free {
            billing: Billing::Failed,
            price: self.price().cloned(),
            purchase: None,
            balance: None,
        };
        std::mem::replace(self, left)
    }

    pub fn billing(&self) -> Billing {
        match self {
            Charge::Free { billing, .. } => *billing,
            Charge::Held { .. } => Billing::Charged,
        }
    }

    pub fn price(&self) -> Option<&PriceId> {
        match self {
            Charge::Free { price, .. } => price.as_ref(),
            Charge::Held { price, .. } => Some(price),
        }
    }

    /// How it is billed when it succeeds.
    pub fn settled(&self, purchase: Option<PurchaseId>) -> Settled {
        match self {
            Charge::Free {
                billing, balance, ..
            } => Settled {
                credits: 0,
                transaction: None,
                purchase,
                balance: *balance,
                billing: *billing,
            },
            Charge::Held { hold, .. } => Settled {
                credits: hold.amount().get(),
                transaction: hold.transaction().cloned(),
                purchase,
                balance: Some(hold.available()),
                billing: Billing::Charged,
            },
        }
    }
}

/// How a run was billed, for its answer.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Why it cost something, or why not.
    pub billing: Billing,
    pub credits: i64,
    pub transaction: Option<TransactionId>,
    pub purchase: Option<PurchaseId>,
    /// Of the payer, net of holds; not looked up for the owner's own calls.
    pub balance: Option<i64>,
}

/// Who pays how much, held if it is anything.
pub(crate) async fn hold(
    app: &App,
    payer: &Payer<'_>,
    sold: &Sold<'_>,
    execution: &ExecutionId,
) -> Result<Charge, Cause> {
    if sold.is_owner(payer.company) {
        return Ok(Charge::free(Billing::Owner));
    }
    let price = sold.priced.price.as_ref().ok_or(Cause::NoPrice)?;
    let entitlement = entitlement(app, payer.company, sold.product.id()).await?;
    if let Entitlement::Ended(status) = &*entitlement {
        return Err(Cause::NotEntitled { status: *status });
    }
    if let Some(most) = payer.max_credits
        && price.credits.get() > most
    {
        let price = price.credits.get();
        return Err(Cause::TooDear { price, most });
    }
    if price.credits.is_zero() {
        let purchase = match &*entitlement {
            Entitlement::Active(purchase) => Some(purchase.clone()),
            _ => None,
        };
        let balance = app.teller.balance(payer.company).await?.available();
        return Ok(Charge::Free {
            billing: Billing::FreeProduct,
            price: Some(price.id.clone()),
            purchase,
            balance: Some(balance),
        });
    }
    let request = HoldRequest {
        execution: execution.clone(),
        buyer: payer.company.clone(),
        amount: price.credits,
        // From now: the body may have been minutes on its way.
        expires_at: app.clock.now().after(sold.timeout + HOLD_GRACE),
    };
    let hold = app
        .teller
        .hold(request)
        .await
        .map_err(|error| match error {
            HoldError::Insufficient {
                required,
                balance,
                held,
            } => Cause::InsufficientCredits {
                required: required.get(),
                balance,
                held,
            },
            HoldError::Store(error) => Cause::Store(error),
        })?;
    Ok(Charge::Held {
        hold,
        price: price.id.clone(),
        entitlement,
    })
}

/// The purchase that a run belongs to. A first paid run makes it: what the buyer is held to is what was true now.
pub(crate) async fn purchase(
    app: &App,
    charge: &Charge,
    payer: &Payer<'_>,
    sold: &Sold<'_>,
) -> Result<Option<PurchaseId>, Cause> {
    match charge {
        Charge::Free { purchase, .. } => return Ok(purchase.clone()),
        Charge::Held { entitlement, .. } => {
            if let Entitlement::Active(purchase) = &**entitlement {
                return Ok(Some(purchase.clone()));
            }
        }
    }
    let price = sold.priced.price.as_ref().ok_or(Cause::NoPrice)?;
    let new = NewPurchase {
        buyer: payer.company,
        seller: sold.owner,
        product: sold.product,
        credits: price.credits,
        ai_training_allowed: sold.allow_ai_training,
        accepted_by: payer.actor.as_str(),
    };
    let implicit = app
        .db
        .write(async |tx| purchases::implicit(tx, &new, payer.now).await);
    let purchase = Box::pin(implicit).await?;
    match purchase.status {
        PurchaseStatus::Active => Ok(Some(purchase.id)),
        status => Err(Cause::NotEntitled { status }),
    }
}

/// Books a run that succeeded, durably if it costs anything, with the answer that a retry gets: `kept`, if it can be. `None`: it is booked.
///
/// What waits is boxed: an owner's run need not have room for it. Nor has it a record most times, which is made of what many requests share.
pub(crate) fn book<'a>(
    app: &'a App,
    charge: Charge,
    payer: &'a Payer<'_>,
    ended: &Ended<'_>,
    record: impl FnOnce() -> Run,
    kept: Option<Kept<'a>>,
) -> Option<Booking<'a>> {
    match (charge, payer.ticket) {
        (Charge::Held { hold, .. }, _) => {
            Some(Box::pin(charge_for(app, hold, payer, record(), kept)))
        }
        (Charge::Free { .. }, Some(ticket)) => {
            let run = record();
            Some(Box::pin(async move {
                // Its answer is not kept: running it again costs nothing.
                claims::let_go(app, ticket, Written::Surely, ()).await;
                app.teller.record(&run);
                Ok(())
            }))
        }
        (Charge::Free { .. }, None) => {
            app.teller.record_ended(ended, record);
            None
        }
    }
}

/// What is kept of an answer.
pub(crate) struct Kept<'a> {
    pub body: &'a [u8],
    /// What stands beside it, as whoever answers has written it down.
    pub headers: Option<String>,
}

/// A run that waits for the store.
pub(crate) type Booking<'a> = Pin<Box<dyn Future<Output = Result<(), Cause>> + Send + 'a>>;

async fn charge_for(
    app: &App,
    hold: Hold,
    payer: &Payer<'_>,
    run: Run,
    kept: Option<Kept<'_>>,
) -> Result<(), Cause> {
    let idempotency = payer.ticket.map(|ticket| IdempotencyEntry {
        ticket: ticket.clone(),
        answer: match kept {
            Some(Kept { body, headers }) => {
                KeptAnswer::of(200, None, body, Some(&run.id)).with_headers(headers)
            }
            None => KeptAnswer::of_run(200, &run.id),
        },
        expires_at: payer.now.after(ANSWER_KEPT),
    });
    match app.teller.post(hold, Receipt { run, idempotency }).await {
        Ok(_) => Ok(()),
        // The store took nothing, a full disk say: as everywhere else, it may be tried again.
        Err(PostError::NotBooked(error)) => Err(StoreError::Unavailable(error).into()),
        Err(PostError::Unknown(error)) => Err(Cause::ChargeInDoubt(error)),
        // A store that has not answered for so long has had the hold, or the claim on the key, lapse.
        Err(error @ (PostError::Expired | PostError::Superseded)) => {
            Err(StoreError::Unavailable(error.to_string()).into())
        }
    }
}
