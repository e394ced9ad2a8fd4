//! A price given with its endpoint: the same as one given by itself.

use crate::prices::timeline::check_history;
use crate::refusals::CONFLICT;
use crate::{Caller, Problem};
use souk_domain::money::Credits;
use souk_domain::prices::Validity;
use souk_domain::time::Timestamp;
use souk_store::prices::{self, NewPrice};
use souk_store::{AnyConnection, Write};

/// Refuses what [`set`] would refuse now: for whoever has to ask a source before.
pub async fn check(
    db: &mut AnyConnection,
    caller: &Caller,
    product: &str,
    credits: Credits,
) -> Result<(), Problem> {
    let now = caller.now();
    match prices::active(db, product, now).await? {
        Some(current) if current.credits != credits => {
            check_history(db, product, now, CONFLICT).await
        }
        _ => Ok(()),
    }
}

/// The price that holds from now until one that is planned already. The caller has written the product: nobody else changes its prices meanwhile.
pub async fn set(
    write: &mut Write,
    caller: &Caller,
    product: &str,
    credits: Credits,
    now: Timestamp,
) -> Result<(), Problem> {
    let holding = prices::holding_from(write, product, now).await?;
    let current = holding.iter().find(|price| price.validity.contains(now));
    if let Some(current) = current {
        if current.credits == credits {
            return Ok(());
        }
        check_history(write, product, now, CONFLICT).await?;
        prices::end_at(write, current, now, now).await?;
    }
    let planned = holding
        .iter()
        .map(|price| price.validity.from)
        .filter(|from| *from > now)
        .min();
    let new = NewPrice {
        company: caller.company(),
        product,
        credits,
        usd: credits.cents(),
        discount_percent: None,
        original_credits: None,
        validity: Validity {
            from: now,
            to: planned,
        },
        created_by: caller.actor().as_str(),
    };
    prices::insert(write, &new, now).await?;
    Ok(())
}
