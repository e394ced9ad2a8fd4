//! What is shown beside a purchase: what it was used for, and what was bought, as that is today.

use crate::Problem;
use souk_domain::time::Timestamp;
use souk_store::marketplace::{self, Bought};
use souk_store::purchases::{self, Purchase, Used};
use souk_store::{AnyConnection, StoreError};

pub struct Beside {
    pub used: Used,
    pub product: Bought,
}

/// Beside one purchase.
pub async fn beside(
    db: &mut AnyConnection,
    purchase: &Purchase,
    now: Timestamp,
) -> Result<Beside, Problem> {
    let mut one = beside_each(db, std::slice::from_ref(purchase), now).await?;
    one.pop().ok_or_else(|| nothing(purchase))
}

/// Beside each of some purchases of one company, in their order: as many statements as beside one.
pub async fn beside_each(
    db: &mut AnyConnection,
    purchases: &[Purchase],
    now: Timestamp,
) -> Result<Vec<Beside>, Problem> {
    let used = purchases::used_of(db, purchases).await?;
    let ids = purchases
        .iter()
        .map(|purchase| purchase.product_id.as_str());
    let mut products = marketplace::bought(db, ids, now).await?;
    let each = purchases.iter().map(|purchase| {
        let product = products.remove(&purchase.product_id);
        Ok(Beside {
            used: used.get(&purchase.id).copied().unwrap_or_default(),
            product: product.ok_or_else(|| nothing(purchase))?,
        })
    });
    each.collect()
}

/// Products are archived, and never deleted.
fn nothing(purchase: &Purchase) -> Problem {
    StoreError::Corrupt(format!("the purchase {} is of nothing", purchase.id)).into()
}
