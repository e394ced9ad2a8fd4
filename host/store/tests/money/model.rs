//! The ledger against a simple model.

use crate::support::{Market, assert_settled, grant, market, open, sqlite};
use proptest::prelude::*;
use souk_domain::ids::CompanyId;
use souk_store::db;
use souk_store::executions::Billing;
use souk_store::refunds::{RefundError, refund};
use souk_store::teller::{Receipt, Standing, Teller};
use std::collections::HashMap;
use std::sync::LazyLock;

/// One step of the model test.
#[derive(Debug, Clone)]
enum Step {
    Grant {
        buyer: usize,
        amount: i64,
    },
    Hold {
        buyer: usize,
        amount: i64,
    },
    /// The number of an open hold, modulo how many there are.
    Post {
        hold: usize,
    },
    Void {
        hold: usize,
    },
    Refund {
        charge: usize,
    },
    /// The process dies: all holds are gone.
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..3_usize, 1..50_i64).prop_map(|(buyer, amount)| Step::Grant { buyer, amount }),
        6 => (0..3_usize, 0..30_i64).prop_map(|(buyer, amount)| Step::Hold { buyer, amount }),
        4 => any::<usize>().prop_map(|hold| Step::Post { hold }),
        2 => any::<usize>().prop_map(|hold| Step::Void { hold }),
        2 => any::<usize>().prop_map(|charge| Step::Refund { charge }),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..60)
}

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
});

fn model_config() -> ProptestConfig {
    use proptest::test_runner::FileFailurePersistence::Direct;
    ProptestConfig {
        cases: 24,
        failure_persistence: Some(Box::new(Direct("tests/money/model.regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(model_config())]

    /// Whatever is interleaved, the store agrees with a model that a child could keep with pebbles.
    #[test]
    fn the_ledger_agrees_with_a_simple_model(steps in steps()) {
        RUNTIME.block_on(async {
            let store = sqlite().await;
            let (url, mut db) = (store.url.clone(), store.db.clone());
            let _files = store.without_db();
            let mut teller = Teller::open(&db).await.unwrap();
            let sellers = market(&db, 0).await;
            let buyers: Vec<Market> = (0..3)
                .map(|_| Market { buyer: CompanyId::generate(), seller: sellers.seller.clone(), product: sellers.product.clone(), key: sellers.key.clone() })
                .collect();
            let mut model: HashMap<usize, Standing> = HashMap::new();
            let mut holds = Vec::new();
            let mut charges = Vec::new();
            for step in steps {
                match step {
                    Step::Grant { buyer, amount } => {
                        grant(&db, &buyers[buyer].buyer, amount).await;
                        model.entry(buyer).or_default().posted += amount;
                    }
                    Step::Hold { buyer, amount } => {
                        let run = buyers[buyer].run(Billing::Charged);
                        let standing = model.entry(buyer).or_default();
                        match buyers[buyer].hold(&teller, amount, &run).await {
                            Ok(hold) => {
                                assert!(standing.available() >= amount);
                                standing.held += amount;
                                holds.push((buyer, amount, run, hold));
                            }
                            Err(_) => assert!(standing.available() < amount),
                        }
                    }
                    Step::Post { hold } if !holds.is_empty() => {
                        let (buyer, amount, run, hold) = holds.swap_remove(hold % holds.len());
                        let posted = teller.post(hold, Receipt { run, idempotency: None }).await.unwrap();
                        let standing = model.entry(buyer).or_default();
                        standing.held -= amount;
                        standing.posted -= amount;
                        if let Some(transaction) = posted.transaction {
                            assert_eq!(posted.balance_credits, Some(standing.posted));
                            charges.push((buyer, amount, transaction, false));
                        } else {
                            assert_eq!(amount, 0);
                        }
                    }
                    Step::Void { hold } if !holds.is_empty() => {
                        let (buyer, amount, _, hold) = holds.swap_remove(hold % holds.len());
                        drop(hold);
                        model.entry(buyer).or_default().held -= amount;
                    }
                    Step::Refund { charge } if !charges.is_empty() => {
                        let index = charge % charges.len();
                        let (buyer, amount, transaction, refunded) = &mut charges[index];
                        let mut write = db.write().await.unwrap();
                        match refund(&mut write, transaction, None, "test", None, db::now()).await {
                            Ok(_) => {
                                assert!(!*refunded);
                                write.commit().await.unwrap();
                                *refunded = true;
                                model.entry(*buyer).or_default().posted += *amount;
                            }
                            Err(RefundError::Refunded) => assert!(*refunded),
                            Err(error) => panic!("{error}"),
                        }
                    }
                    Step::Crash => {
                        holds.drain(..).for_each(|(_, _, _, hold)| std::mem::forget(hold));
                        db.close().await;
                        drop((db, teller));
                        db = open(&url).await;
                        teller = Teller::open(&db).await.unwrap();
                        model.values_mut().for_each(|standing| standing.held = 0);
                    }
                    _ => {}
                }
                for (buyer, standing) in &model {
                    assert_eq!(teller.standing(&buyers[*buyer].buyer).await.unwrap(), *standing);
                }
            }
            holds.clear();
            assert_settled(&db, &teller).await;
        });
    }
}
