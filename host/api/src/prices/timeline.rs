//! Putting a price into its product's history, so that at most one holds at any instant.

use crate::refusals::{PRICE_OVERLAP, Refusal};
use crate::{Caller, Problem};
use souk_domain::money::{Credits, UsdCents};
use souk_domain::prices::Validity;
use souk_domain::products::Product;
use souk_domain::time::{DAY, Timestamp};
use souk_store::prices::{self, NewPrice, Price};
use souk_store::{AnyConnection, Write};
use std::time::Duration;

/// A client that says `effective_from: now` is believed although its request took a moment.
const LATE: Duration = Duration::from_secs(60);

/// Prices of a product that are yet to hold: all are looked at whenever one is placed, moved or deleted.
const PLANNED_MAX: usize = 100;

/// Prices of a product that ended within [`ENDED_DAYS`]: they stay for good, since runs and the ledger name them, and grow by no more than that.
/// One that changes every hour has room.
const ENDED_MAX: i64 = 1_000;
const ENDED_DAYS: u32 = 30;

/// The begin of a price: now, or what was asked for. `now` is when the request came in, which may be long before its body was whole: a price begins
/// when it is written, at the earliest, or what was paid meanwhile would have cost something else.
pub fn begin(asked: Option<Timestamp>, now: Timestamp) -> Result<Timestamp, Problem> {
    match asked {
        Some(at) if at > now => Ok(at),
        Some(at) if at < now.before(LATE) => Err(Problem::invalid(
            "effective_from",
            "must not lie in the past",
        )),
        _ => Ok(now),
    }
}

/// What a new price is.
pub struct Entry {
    pub credits: Credits,
    pub usd: UsdCents,
    pub discount: Option<(i64, Credits)>,
    pub from: Timestamp,
    /// Afterwards the price that held before goes on.
    pub to: Option<Timestamp>,
}

/// Ends the price that holds at `entry.from` and puts the new one there, up to the next price that is already planned.
pub async fn place(
    write: &mut Write,
    caller: &Caller,
    product: &Product,
    entry: Entry,
    now: Timestamp,
) -> Result<Price, Problem> {
    check_history(write, product.id(), now, PRICE_OVERLAP).await?;
    let planned = prices::holding_from(write, product.id(), now).await?;
    let waiting = planned.iter().filter(|price| price.validity.from > now);
    // Where it ends, the former price is planned to go on.
    let added = usize::from(entry.from > now) + usize::from(entry.to.is_some());
    if added > 0 && waiting.count() + added > PLANNED_MAX {
        let message =
            format!("a product has at most {PLANNED_MAX} planned prices: delete some first");
        return Err(Problem::of(PRICE_OVERLAP, message));
    }
    if planned
        .iter()
        .any(|price| price.validity.from == entry.from)
    {
        return Err(overlap("another price begins at the same instant"));
    }
    let former = planned
        .iter()
        .find(|price| price.validity.contains(entry.from));
    let next = planned
        .iter()
        .find(|price| price.validity.from > entry.from)
        .map(|price| price.validity.from);
    if let (Some(to), Some(next)) = (entry.to, next)
        && next < to
    {
        return Err(overlap("another price begins before this one ends"));
    }
    let new = NewPrice {
        company: caller.company(),
        product: product.id(),
        credits: entry.credits,
        usd: entry.usd,
        discount_percent: entry.discount.map(|(percent, _)| percent),
        original_credits: entry.discount.map(|(_, original)| original),
        validity: Validity {
            from: entry.from,
            to: entry.to.or(next),
        },
        created_by: caller.actor().as_str(),
    };
    if let Some(former) = former {
        prices::end_at(write, former, entry.from, now).await?;
    }
    if let (Some(to), Some(former)) = (entry.to, former)
        && former.validity.to.is_none_or(|end| end > to)
    {
        resume(write, former, to, now).await?;
    }
    Ok(prices::insert(write, &new, now).await?)
}

/// Refuses, with this code, another price of a product of which too many have ended lately.
pub async fn check_history(
    db: &mut AnyConnection,
    product: &str,
    now: Timestamp,
    refusal: Refusal,
) -> Result<(), Problem> {
    let since = now.before(DAY * ENDED_DAYS);
    if prices::ended_since(db, product, since, now).await? < ENDED_MAX {
        return Ok(());
    }
    let message = format!(
        "at most {ENDED_MAX} prices of a product end within {ENDED_DAYS} days: set another one later"
    );
    Err(Problem::of(refusal, message))
}

/// The former price again, after one that held for a while.
async fn resume(
    write: &mut Write,
    former: &Price,
    from: Timestamp,
    now: Timestamp,
) -> Result<(), Problem> {
    let again = NewPrice {
        company: &former.company_id,
        product: &former.product_id,
        credits: former.credits,
        usd: former.usd,
        discount_percent: former.discount_percent,
        original_credits: former.original_credits,
        validity: Validity {
            from,
            to: former.validity.to,
        },
        created_by: &former.created_by,
    };
    prices::insert(write, &again, now).await?;
    Ok(())
}

/// Moves a planned price: the one before it ends where it begins, and it ends at the latest where the next one begins.
pub async fn shift(
    write: &mut Write,
    price: &Price,
    asked: Validity,
    now: Timestamp,
) -> Result<Validity, Problem> {
    let others = prices::holding_from(write, &price.product_id, now).await?;
    let others = || others.iter().filter(|other| other.id != price.id);
    let next = others()
        .find(|other| other.validity.from > price.validity.from)
        .map(|other| other.validity.from);
    let moved = Validity {
        from: asked.from,
        to: asked.to.or(next),
    };
    if moved.to.is_some_and(|to| to <= moved.from) {
        return Err(Problem::invalid(
            "effective_to",
            "must be after effective_from",
        ));
    }
    if let (Some(next), Some(to)) = (next, moved.to)
        && next < to
    {
        return Err(overlap("another price begins before this one ends"));
    }
    if let Some(before) = others().find(|other| other.validity.to == Some(price.validity.from)) {
        if before.validity.from >= moved.from {
            return Err(overlap("another price begins later than that"));
        }
        prices::end_at(write, before, moved.from, now).await?;
    }
    Ok(moved)
}

fn overlap(message: &'static str) -> Problem {
    Problem::of(PRICE_OVERLAP, message)
}
