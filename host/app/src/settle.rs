//! What a run costs whom: the hold before it, the charge or the release after it, and its record.
//!
//! A charge is held before the connector runs, so that concurrent calls can neither overspend nor
//! make a seller work for nothing, and posted durably before the first byte of the answer leaves.
//! Runs that cost nothing are recorded without waiting.

use std::sync::Arc;
use std::time::{Duration, Instant};

use souk_domain::ids::{
    CompanyId, ExecutionId, KeyId, PriceId, PurchaseId, RequestId, TransactionId,
};
use souk_domain::products::Product;
use souk_domain::time::Timestamp;
use souk_store::executions::{Billing, Outcome, Run};
use souk_store::idempotency::{self, Answer, Ticket};
use souk_store::purchases::{self, NewPurchase, PurchaseStatus};
use souk_store::teller::{Hold, HoldError, HoldRequest, IdempotencyEntry, PostError, Receipt};
use souk_store::{Cache, Db, Topic};

use crate::App;
use crate::failure::Refusal;
use crate::products::Priced;

/// Companies and products that meet often; an entry is about 200 bytes.
const STANDINGS_MAX: usize = 100_000;
/// A hold outlives its run's deadline by as much as posting may take.
const HOLD_GRACE: Duration = Duration::from_secs(10);
/// How long an answer is kept for a retry.
const ANSWER_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Who calls. The key's company pays.
#[derive(Clone, Debug)]
pub struct Payer<'a> {
    pub company: &'a CompanyId,
    pub key: &'a KeyId,
    pub request: &'a RequestId,
    pub now: Timestamp,
    /// The claim of a request with an `Idempotency-Key`: its answer is kept with the charge, if there is one.
    pub ticket: Option<&'a Ticket>,
}

/// What is run.
pub(crate) struct Subject<'a> {
    pub execution: &'a ExecutionId,
    pub seller: &'a CompanyId,
    pub product: Product,
    pub priced: &'a Priced,
    pub allow_ai_training: bool,
    pub timeout: Duration,
}

/// What a company has to do with a product that it does not own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Stranger,
    Buyer(PurchaseId),
    /// The purchase was cancelled or suspended.
    Former(PurchaseStatus),
}

/// By [`purchases::standing`].
pub type Standings = Cache<String, Standing>;

pub fn standings(db: &Db) -> Standings {
    Cache::new(
        db,
        STANDINGS_MAX,
        [Topic::Purchase],
        |standing: &String, _| [standing.as_str().into()],
    )
}

pub(crate) async fn standing(
    app: &App,
    company: &CompanyId,
    product: &str,
) -> Result<Arc<Standing>, Refusal> {
    let load = || async {
        let mut db = app.db.read().await?;
        Ok::<_, Refusal>(
            match purchases::of_product(&mut db, company, product).await? {
                None => Standing::Stranger,
                Some(purchase) if purchase.status == PurchaseStatus::Active => {
                    Standing::Buyer(purchase.id)
                }
                Some(purchase) => Standing::Former(purchase.status),
            },
        )
    };
    app.standings
        .get_or_load(purchases::standing(company.as_str(), product), load)
        .await
}

/// Whether an unpublished product stays usable for this company.
pub(crate) async fn has_purchase(
    app: &App,
    company: &CompanyId,
    product: &str,
) -> Result<bool, Refusal> {
    Ok(matches!(
        *standing(app, company, product).await?,
        Standing::Buyer(_)
    ))
}

/// What a run is going to cost.
pub(crate) struct Charge(Kind);

enum Kind {
    Free {
        billing: Billing,
        price: Option<PriceId>,
        purchase: Option<PurchaseId>,
        balance: Option<i64>,
    },
    Held {
        hold: Hold,
        price: PriceId,
        standing: Arc<Standing>,
    },
}

impl Charge {
    pub fn owner() -> Charge {
        Charge(Kind::Free {
            billing: Billing::Owner,
            price: None,
            purchase: None,
            balance: None,
        })
    }

    pub fn test() -> Charge {
        Charge(Kind::Free {
            billing: Billing::Test,
            price: None,
            purchase: None,
            balance: None,
        })
    }

    /// A page beyond the last row costs nothing: a hold is let go of.
    pub fn for_empty_page(self) -> Charge {
        match self.0 {
            Kind::Free {
                billing: Billing::Owner,
                ..
            } => self,
            Kind::Free {
                price,
                purchase,
                balance,
                ..
            } => Charge(Kind::Free {
                billing: Billing::Empty,
                price,
                purchase,
                balance,
            }),
            Kind::Held { hold, price, .. } => {
                let balance = hold.available() + hold.amount().get();
                drop(hold);
                Charge(Kind::Free {
                    billing: Billing::Empty,
                    price: Some(price),
                    purchase: None,
                    balance: Some(balance),
                })
            }
        }
    }
}

/// How a run was billed, for its answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settled {
    pub credits: i64,
    pub transaction: Option<TransactionId>,
    pub purchase: Option<PurchaseId>,
    /// Of the payer, net of holds; not looked up for the owner's own calls.
    pub balance: Option<i64>,
    /// Why nothing was charged.
    pub reason: Option<&'static str>,
}

/// Step two: who pays how much, held if it is anything.
pub(crate) async fn begin(
    app: &App,
    payer: &Payer<'_>,
    subject: &Subject<'_>,
) -> Result<Charge, Refusal> {
    if payer.company == subject.seller {
        return Ok(Charge::owner());
    }
    let price = subject.priced.price.as_ref().ok_or(Refusal::NoPrice)?;
    let standing = standing(app, payer.company, subject.product.id()).await?;
    if let Standing::Former(status) = &*standing {
        return Err(Refusal::NotEntitled { status: *status });
    }
    if price.credits.is_zero() {
        let purchase = match &*standing {
            Standing::Buyer(purchase) => Some(purchase.clone()),
            _ => None,
        };
        let standing = app.teller.standing(payer.company).await?;
        return Ok(Charge(Kind::Free {
            billing: Billing::FreeProduct,
            price: Some(price.id.clone()),
            purchase,
            balance: Some(standing.available()),
        }));
    }
    let request = HoldRequest {
        execution: subject.execution.clone(),
        buyer: payer.company.clone(),
        amount: price.credits,
        expires_at: payer.now.after(subject.timeout + HOLD_GRACE),
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
            } => Refusal::InsufficientCredits {
                required: required.get(),
                balance,
                held,
            },
            HoldError::Store(error) => Refusal::Store(error),
        })?;
    Ok(Charge(Kind::Held {
        hold,
        price: price.id.clone(),
        standing,
    }))
}

/// Step five after a success: the answer, once its charge is durable.
#[allow(clippy::too_many_arguments)]
pub(crate) async fn finish(
    app: &App,
    charge: Charge,
    payer: &Payer<'_>,
    subject: &Subject<'_>,
    rows: usize,
    bytes: usize,
    elapsed: Duration,
    render: impl FnOnce(&Settled) -> Vec<u8>,
) -> Result<Vec<u8>, Refusal> {
    match charge.0 {
        Kind::Free {
            billing,
            price,
            purchase,
            balance,
        } => {
            let settled = Settled {
                balance,
                reason: Some(reason(billing)),
                purchase: purchase.clone(),
                ..Settled::default()
            };
            let body = render(&settled);
            if let Some(ticket) = payer.ticket {
                give_up(app, ticket).await?;
            }
            let mut run = run(payer, subject, billing, Outcome::Succeeded, elapsed);
            (run.price, run.purchase, run.rows, run.bytes) =
                (price, purchase, rows as i64, bytes as i64);
            app.teller.record(run);
            Ok(body)
        }
        Kind::Held {
            hold,
            price,
            standing,
        } => {
            let purchase = match &*standing {
                Standing::Buyer(purchase) => purchase.clone(),
                _ => purchase(app, payer, subject).await?,
            };
            let settled = Settled {
                credits: hold.amount().get(),
                transaction: hold.transaction().cloned(),
                purchase: Some(purchase.clone()),
                balance: Some(hold.available()),
                reason: None,
            };
            let body = render(&settled);
            let mut run = run(
                payer,
                subject,
                Billing::Charged,
                Outcome::Succeeded,
                elapsed,
            );
            (run.price, run.purchase, run.rows, run.bytes) =
                (Some(price), Some(purchase), rows as i64, bytes as i64);
            let idempotency = payer.ticket.map(|ticket| IdempotencyEntry {
                ticket: ticket.clone(),
                answer: Answer::of(200, None, &body, Some(subject.execution)),
                expires_at: payer.now.after(ANSWER_KEPT),
            });
            match app.teller.post(hold, Receipt { run, idempotency }).await {
                Ok(_) => Ok(body),
                Err(error) => Err(refusal(error)),
            }
        }
    }
}

/// Step five after a failure: the hold is let go of, and the failure recorded.
pub(crate) async fn fail(
    app: &App,
    charge: Charge,
    payer: &Payer<'_>,
    subject: &Subject<'_>,
    refusal: &Refusal,
    started: Instant,
) {
    let price = match charge.0 {
        Kind::Free { price, .. } => price,
        Kind::Held { hold, price, .. } => {
            drop(hold);
            Some(price)
        }
    };
    let (code, blame) = refusal.recorded();
    let outcome = Outcome::Failed {
        code: code.into(),
        blame: blame.into(),
    };
    let mut run = run(payer, subject, Billing::Failed, outcome, started.elapsed());
    run.price = price;
    app.teller.record(run);
}

/// The purchase that a first paid run makes: what the buyer is held to is what was true now.
async fn purchase(
    app: &App,
    payer: &Payer<'_>,
    subject: &Subject<'_>,
) -> Result<PurchaseId, Refusal> {
    let price = subject.priced.price.as_ref().ok_or(Refusal::NoPrice)?;
    let new = NewPurchase {
        buyer: payer.company,
        seller: subject.seller,
        product: &subject.product,
        credits: price.credits,
        ai_training_allowed: subject.allow_ai_training,
        accepted_by: payer.key.as_str(),
    };
    let purchase = app
        .db
        .write(async |tx| purchases::implicit(tx, &new, payer.now).await)
        .await?;
    match purchase.status {
        PurchaseStatus::Active => Ok(purchase.id),
        status => Err(Refusal::NotEntitled { status }),
    }
}

/// The answer of a free run is not kept: running it again costs nothing.
async fn give_up(app: &App, ticket: &Ticket) -> Result<(), Refusal> {
    app.db
        .write(async |tx| {
            idempotency::release(tx, ticket).await?;
            Ok(())
        })
        .await
}

fn run(
    payer: &Payer<'_>,
    subject: &Subject<'_>,
    billing: Billing,
    outcome: Outcome,
    elapsed: Duration,
) -> Run {
    Run {
        id: subject.execution.clone(),
        company: payer.company.clone(),
        seller: subject.seller.clone(),
        product: subject.product.clone(),
        purchase: None,
        price: None,
        key: payer.key.clone(),
        request: payer.request.clone(),
        outcome,
        billing,
        rows: 0,
        bytes: 0,
        started_at: payer.now,
        duration_us: i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX),
    }
}

/// What an answer says about a run that cost nothing.
fn reason(billing: Billing) -> &'static str {
    match billing {
        Billing::Empty => "empty_page",
        Billing::FreeProduct => "free",
        billing => billing.as_str(),
    }
}

fn refusal(error: PostError) -> Refusal {
    Refusal::Internal(format!("the charge was not booked: {error}"))
}
