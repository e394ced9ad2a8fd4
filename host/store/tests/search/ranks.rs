//! What is popular and what is trending.

use crate::support::stores;
use crate::{Names, seller};
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, ExecutionId, KeyId, RequestId};
use souk_domain::products::Product;
use souk_domain::time::{DAY, Timestamp};
use souk_store::executions::{Billing, Outcome, Run};
use souk_store::search::{self, Order, Wanted};
use souk_store::teller::Teller;
use souk_store::{Fields, db};
use std::collections::BTreeMap;

/// What is popular and what is trending are the sums of recorded runs by others, and end with their dates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_are_the_sums_of_runs() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let seller = seller(db, "acme").await;
        let teller = Teller::open(db).await.unwrap();
        let (today, buyer) = (db::now().day_start(), CompanyId::generate());
        let mut assets = Vec::new();
        for name in ["a", "b", "c", "d"] {
            assets.push(names.asset(db, &seller, name, |_| {}).await);
        }
        for number in 0..200_u32 {
            if number % 100 == 99 {
                // A seller has so many of a flush.
                teller.flush().await;
            }
            let started_at = today.before(DAY * (number * 13 % 45));
            let is_own = number % 11 == 0;
            let has_failed = number % 7 == 0;
            teller.record(&Run {
                id: ExecutionId::generate_at(started_at),
                company: if is_own {
                    seller.company.clone()
                } else {
                    buyer.clone()
                },
                seller: seller.company.clone(),
                product: Product::Asset(assets[(number % 3) as usize].clone()),
                purchase: None,
                price: None,
                actor: Actor::Key(KeyId::generate()),
                request: RequestId::generate_at(started_at),
                outcome: match has_failed {
                    false => Outcome::Succeeded,
                    true => Outcome::Failed {
                        code: "source".into(),
                        blame: "source".into(),
                    },
                },
                billing: if has_failed {
                    Billing::Failed
                } else {
                    Billing::FreeProduct
                },
                rows: 1,
                bytes: 1,
                started_at,
                duration_us: 1,
            });
        }
        teller.flush().await;
        for later in [0, 1, 9, 40] {
            let now = today.after(DAY * later);
            search::ranks::rank(db, now).await.unwrap();
            let mut expected = BTreeMap::new();
            let mut read = db.read().await.unwrap();
            for asset in &assets {
                let rows = sqlx::query(
                    "SELECT started_at FROM executions WHERE product_id = $1 AND status = 'succeeded' AND company_id <> seller_id",
                );
                let rows = rows
                    .bind(asset.as_str())
                    .fetch_all(&mut *read)
                    .await
                    .unwrap();
                let mut ranks = (0, 0);
                for row in rows {
                    let at: Timestamp = row.time("started_at").unwrap();
                    // How many dates ago, today being none.
                    match now.since(at.day_start()).as_secs() / 86_400 {
                        0..7 => ranks = (ranks.0 + 1, ranks.1 + 1),
                        7..14 => ranks = (ranks.0 + 1, ranks.1 - 1),
                        14..30 => ranks.0 += 1,
                        _ => {}
                    }
                }
                expected.insert(asset.to_string(), ranks);
            }
            let rows = sqlx::query("SELECT product_id, popular, trending FROM search_products");
            let rows = rows.fetch_all(&mut *read).await.unwrap();
            drop(read);
            let ranked: BTreeMap<String, (i64, i64)> = rows
                .iter()
                .map(|row| {
                    let ranks = (
                        row.number("popular").unwrap(),
                        row.number("trending").unwrap(),
                    );
                    (row.text("product_id").unwrap(), ranks)
                })
                .collect();
            assert_eq!(ranked, expected, "{} {later}", store.name);
            if later == 0 {
                assert!(expected.values().any(|ranks| ranks.1 != 0 && ranks.0 > 10));
                let by_use = |of: fn(&(i64, i64)) -> i64| {
                    let mut ids: Vec<_> = expected.iter().collect();
                    ids.sort_by_key(|(id, ranks)| std::cmp::Reverse((of(ranks), *id)));
                    ids.iter()
                        .map(|(id, _)| names.0[*id].as_str())
                        .collect::<Vec<_>>()
                };
                let wanted = Wanted::default();
                let popular = names.found(db, &wanted, Order::Popular).await;
                let trending = names.found(db, &wanted, Order::Trending).await;
                assert_eq!(popular[0], by_use(|ranks| ranks.0)[0], "{}", store.name);
                assert_eq!(trending[0], by_use(|ranks| ranks.1)[0], "{}", store.name);
            }
        }
    }
}
