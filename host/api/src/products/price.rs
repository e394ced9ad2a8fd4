//! A price given with its endpoint: the same as one given by itself.

use crate::prices::timeline::{self, check_history, place};
use crate::refusals::CONFLICT;
use crate::{Caller, Problem};
use souk_domain::money::Credits;
use souk_domain::prices::Validity;
use souk_domain::time::Timestamp;
use souk_store::prices::{self, NewPrice, Price};
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
        Some(current) if !is_so(&current, credits) => {
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
    let now = timeline::now(write, product, now).await?;
    let current = prices::active(write, product, now).await?;
    if current.is_some_and(|current| is_so(&current, credits)) {
        return Ok(());
    }
    let new = NewPrice {
        company: caller.company(),
        product,
        credits,
        usd: credits.cents(),
        discount_percent: None,
        original_credits: None,
        validity: Validity {
            from: now,
            to: None,
        },
        created_by: caller.named(),
    };
    place(write, &new, now, CONFLICT).await?;
    Ok(())
}

/// Whether it costs that already. A discount that ends does not: what comes again behind it costs something else.
fn is_so(current: &Price, credits: Credits) -> bool {
    current.credits == credits && current.ends_at.is_none()
}
