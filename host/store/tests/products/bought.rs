//! What becomes of products for those who have bought them.

use crate::support::stores;
use crate::{NOW, both, company};
use souk_domain::money::Credits;
use souk_domain::products::{Product, ProductStatus};
use souk_store::purchases::{self, NewPurchase};
use souk_store::{marketplace, products};

/// A buyer looks at what it has bought until that is archived, and is told of it after that; others look at what is on sale.
#[tokio::test]
async fn what_was_bought_is_seen_by_its_buyer() {
    use ProductStatus::{Archived, Draft, Published, Unpublished};
    for store in stores().await {
        let db = &store.db;
        let (owner, buyer) = (company(db, "acme").await, company(db, "buyer").await);
        let (asset, other) = both(db, &owner, "goals", "goals", NOW).await;
        let product = Product::Asset(asset.clone());
        let new = NewPurchase {
            buyer: &buyer,
            seller: &owner,
            product: &product,
            credits: Credits::ZERO,
            ai_training_allowed: true,
            accepted_by: "key_1",
        };
        db.write(async |tx| purchases::implicit(tx, &new, NOW).await)
            .await
            .unwrap();
        for status in [Draft, Published, Unpublished, Archived] {
            if status != Draft {
                db.write(async |tx| products::set_status(tx, &owner, &asset, status, NOW).await)
                    .await
                    .unwrap();
            }
            let mut read = db.read().await.unwrap();
            let id = asset.as_str();
            for (reader, seen) in [
                (&buyer, matches!(status, Published | Unpublished)),
                (&owner, status == Published),
            ] {
                let listing = marketplace::visible(&mut read, reader, id, NOW).await;
                let listing = listing.unwrap().map(|listing| listing.status);
                assert_eq!(listing, seen.then_some(status), "{}", store.name);
            }
            let ids = [id, other.as_str()];
            let bought = marketplace::bought(&mut read, ids.into_iter(), NOW).await;
            let bought = bought.unwrap();
            let told = ids.map(|id| (bought[id].name.as_str(), bought[id].status));
            assert_eq!(told, [("goals", status), ("goals", Draft)]);
        }
    }
}
