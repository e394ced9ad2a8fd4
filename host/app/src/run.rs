//! One run of a product, whatever it is, in five steps.
//!
//! (1) `api` has checked the caller; (2) [`Run::begin`]: the product comes with its price from a cache, and the credits are held; (3) the
//! sandbox asks the source on a warm session, and no transaction is open; (4) what may leave is decided ([`crate::execute`] and
//! [`crate::fetch`] know how for their kind); (5) [`Run::finish`]: the charge is posted durably, and the answer is complete; or
//! [`Run::fail`]: the failure is recorded, and the hold let go of.
//!
//! The owner's call touches no store at all.

use std::time::{Duration, Instant};

use souk_domain::ids::{CompanyId, ExecutionId};
use souk_domain::products::ProductStatus;
use souk_sandbox::{Fault, FaultKind};
use souk_store::executions::{Billing, Ended, Outcome, Run as Record};

use crate::App;
use crate::failure::{Cause, Failure};
use crate::products::Sold;
pub use crate::readers::{Readers, Unread};
pub use crate::settle::Payer;
use crate::settle::{self, Charge, Kept, Settled};

/// Why a product is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For its result; whoever does not own it pays.
    Result,
    /// By its owner, to see whether it works: also before it is published, and always free.
    Test,
}

/// Whether `company` may run this product now. An unpublished one stays with those who bought it.
pub async fn admit(app: &App, sold: &Sold<'_>, company: &CompanyId) -> Result<(), Cause> {
    let is_offered = match sold.status {
        ProductStatus::Archived => return Err(gone(app, sold, company).await?),
        _ if sold.is_owner(company) => return Ok(()),
        ProductStatus::Draft => false,
        ProductStatus::Published => true,
        ProductStatus::Unpublished => settle::has_purchase(app, company, sold.product.id()).await?,
    };
    match is_offered {
        true if sold.is_suspended => Err(Cause::SellerSuspended),
        true => Ok(()),
        false => Err(Cause::NotFound),
    }
}

/// Whoever has bought what is archived is told so; to others it was never there.
async fn gone(app: &App, sold: &Sold<'_>, company: &CompanyId) -> Result<Cause, Cause> {
    let has_bought = settle::has_purchase(app, company, sold.product.id()).await?;
    Ok(match has_bought {
        true => Cause::Archived,
        false => Cause::NotFound,
    })
}

/// A larger answer stays in memory until it is read: there must be room for it before it is paid for.
const LARGE_BYTES: usize = 64 << 10;

/// A run that has begun. Dropped before its end it costs nothing.
pub(crate) struct Run<'a> {
    pub app: &'a App,
    pub sold: Sold<'a>,
    pub payer: &'a Payer<'a>,
    pub purpose: Purpose,
    pub execution: ExecutionId,
    pub started: Instant,
    /// Its answer is a text that a retry can be given.
    pub keeps_answer: bool,
    /// What that says beside the text.
    pub headers: Option<String>,
    /// Bytes that its answer has beside those of its result: the names of fields, in each row.
    pub beside: usize,
    charge: Charge,
}

/// What an answer says about its making.
pub struct About<'a> {
    pub execution: &'a ExecutionId,
    pub payer: &'a Payer<'a>,
    pub purpose: Purpose,
    pub elapsed_ms: u64,
    pub settled: &'a Settled,
}

impl<'a> Run<'a> {
    /// Step two: who pays how much, held if it is anything.
    pub async fn begin(
        app: &'a App,
        sold: Sold<'a>,
        payer: &'a Payer<'a>,
        purpose: Purpose,
    ) -> Result<Run<'a>, Failure> {
        let execution = ExecutionId::generate_at(payer.now);
        let started = Instant::now();
        let charge = match purpose {
            Purpose::Test => Ok(Charge::free(Billing::Test)),
            Purpose::Result => settle::hold(app, payer, &sold, &execution).await,
        };
        match charge {
            Ok(charge) => Ok(Run {
                app,
                sold,
                payer,
                purpose,
                execution,
                started,
                keeps_answer: true,
                headers: None,
                beside: 0,
                charge,
            }),
            Err(cause) => Err(Failure::before(sold.is_owner(payer.company), cause)),
        }
    }

    pub fn deadline(&self) -> Instant {
        self.started + self.sold.timeout
    }

    /// A page beyond the last row costs nothing: a hold is let go of.
    pub fn found_nothing(mut self) -> Run<'a> {
        self.charge = self.charge.for_empty_page();
        self
    }

    /// A page that its caller has already costs nothing.
    pub fn found_unchanged(mut self) -> Run<'a> {
        self.charge = self.charge.for_unchanged_page();
        self
    }

    /// Step five after a failure, which is recorded.
    pub fn fail(&self, cause: Cause) -> Failure {
        self.fail_after(self.started.elapsed(), cause)
    }

    /// The same of a run that took so long.
    fn fail_after(&self, elapsed: Duration, cause: Cause) -> Failure {
        let cause = late(&self.sold, elapsed, cause);
        let failure = failure(&self.sold, self.payer, &self.execution, cause);
        // It may be in the books, as a success.
        if matches!(failure.cause, Cause::ChargeInDoubt(_)) {
            return failure;
        }
        let outcome = Outcome::Failed {
            code: failure.class().as_str().into(),
            blame: failure.cause.blame().as_str().into(),
        };
        let sold = &self.sold;
        let record = Record {
            price: self.charge.price().cloned(),
            ..record(
                sold,
                self.payer,
                &self.execution,
                Billing::Failed,
                outcome,
                elapsed,
            )
        };
        self.app
            .teller
            .record_failed(&record, failure.cause.reason());
        failure
    }

    /// Step five after a success: what `render` makes of how it was billed, once its charge is durable. `elapsed`: until the result was there;
    /// `rows` and `bytes` of it. What cannot be charged has failed.
    pub async fn finish(
        mut self,
        elapsed: Duration,
        rows: usize,
        bytes: usize,
        render: impl FnOnce(&About<'_>) -> Vec<u8>,
    ) -> Result<Vec<u8>, Failure> {
        let held = bytes.saturating_add(self.beside);
        let _room = match self.payer.readers {
            Some(readers) if held >= LARGE_BYTES => {
                let room = readers.room(held as u64);
                Some(room.map_err(|unread| self.fail(Cause::Unread(unread)))?)
            }
            _ => None,
        };
        let (sold, payer) = (&self.sold, self.payer);
        // What the store takes is not the product's time.
        let purchase = settle::purchase(self.app, &self.charge, payer, sold)
            .await
            .map_err(|cause| self.fail_after(elapsed, cause))?;
        let settled = self.charge.settled(purchase);
        let body = render(&About {
            execution: &self.execution,
            payer,
            purpose: self.purpose,
            elapsed_ms: elapsed.as_millis() as u64,
            settled: &settled,
        });
        let (billing, price) = (self.charge.billing(), self.charge.price().cloned());
        let ended = Ended {
            company: payer.company,
            seller: sold.owner,
            product: sold.product,
            outcome: &Outcome::Succeeded,
            rows: rows as i64,
            started_at: payer.now,
            duration_us: micros(elapsed),
        };
        let record = || Record {
            purchase: settled.purchase,
            price,
            rows: rows as i64,
            bytes: bytes as i64,
            ..record(
                sold,
                payer,
                &self.execution,
                billing,
                Outcome::Succeeded,
                elapsed,
            )
        };
        let kept = Kept {
            body: &body,
            headers: self.headers.take(),
        };
        let kept = Some(kept).filter(|_| self.keeps_answer);
        let charge = self.charge.take();
        if let Some(booking) = settle::book(self.app, charge, payer, &ended, record, kept) {
            booking
                .await
                .map_err(|cause| self.fail_after(elapsed, cause))?;
        }
        Ok(body)
    }
}

/// The record of a run that has ended.
fn record(
    sold: &Sold<'_>,
    payer: &Payer<'_>,
    execution: &ExecutionId,
    billing: Billing,
    outcome: Outcome,
    elapsed: Duration,
) -> Record {
    Record {
        id: execution.clone(),
        company: payer.company.clone(),
        seller: sold.owner.clone(),
        product: sold.product.clone(),
        purchase: None,
        price: None,
        actor: payer.actor.clone(),
        request: payer.request.clone(),
        outcome,
        billing,
        rows: 0,
        bytes: 0,
        started_at: payer.now,
        duration_us: micros(elapsed),
    }
}

fn micros(elapsed: Duration) -> i64 {
    i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX)
}

/// What comes too late after this many hundredths of a product's time has met that: what is left is told to a source in its own units, and its
/// word takes its way.
const NEARLY_ALL: u128 = 90;

/// Says of what came too late how long was waited, and whose limit that was: its owner could not know which one to change.
pub(crate) fn late(sold: &Sold<'_>, waited: Duration, cause: Cause) -> Cause {
    let fault = match cause {
        Cause::Fault(fault) if fault.kind == FaultKind::Timeout => fault,
        other => return other,
    };
    let kind = sold.product.product_type().as_str();
    let (waited_ms, timeout_ms) = (waited.as_millis(), sold.timeout.as_millis());
    let how_long = match fault.code.as_str() {
        _ if waited_ms * 100 >= timeout_ms * NEARLY_ALL => {
            format!("it had {timeout_ms} ms, the {kind}'s timeout_ms")
        }
        "statement_timeout" => format!(
            "after {waited_ms} ms it met its data connection's statement_timeout_ms, or a limit of the source's own; the {kind}'s timeout_ms is \
             {timeout_ms}"
        ),
        _ => format!("it ended after {waited_ms} ms; the {kind}'s timeout_ms is {timeout_ms}"),
    };
    Cause::Fault(Fault {
        message: format!("{}: {how_long}", fault.message),
        ..fault
    })
}

/// What is said of a run that had begun.
pub(crate) fn failure(
    sold: &Sold<'_>,
    payer: &Payer<'_>,
    execution: &ExecutionId,
    cause: Cause,
) -> Failure {
    Failure {
        execution: Some(execution.clone()),
        owner: sold.is_owner(payer.company),
        seller_api: sold.seller_api,
        in_test: false,
        made_up: Vec::new(),
        cause,
    }
}
