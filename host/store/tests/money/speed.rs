//! Figures, printed with `--nocapture`.

use crate::support::{assert_settled, credits, later, market, sqlite, stores};
use souk_domain::ids::ExecutionId;
use souk_store::db;
use souk_store::teller::{HoldRequest, Teller};
use std::sync::Arc;
use std::time::Instant;

/// Prints how many charges a second one commit after the other can carry; asserts only that they all arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn throughput() {
    for store in stores().await {
        let market = Arc::new(market(&store.db, 10_000_000).await);
        let teller = Teller::open(&store.db).await.unwrap();
        for (clients, each) in [(1, 300), (16, 200), (64, 200)] {
            let begun = Instant::now();
            let tasks: Vec<_> = (0..clients)
                .map(|_| {
                    let (teller, market) = (teller.clone(), market.clone());
                    tokio::spawn(async move {
                        for _ in 0..each {
                            market.charge(&teller, 1).await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            let seconds = begun.elapsed().as_secs_f64();
            let total = f64::from(clients * each);
            println!(
                "{}: {clients} clients: {:.0} charges/s, {:.2} ms each",
                store.name,
                total / seconds,
                seconds * 1_000.0 * f64::from(clients) / total
            );
        }
        assert_settled(&store.db, &teller).await;
        assert_eq!(
            teller.balance(&market.buyer).await.unwrap().posted,
            10_000_000 - 300 - 3_200 - 12_800
        );
    }
}

/// Reserving costs next to nothing where the host has its store to itself.
#[tokio::test]
async fn holds_in_memory_are_cheap() {
    let store = sqlite().await;
    let market = market(&store.db, 1_000).await;
    let teller = Teller::open(&store.db).await.unwrap();
    let request = HoldRequest {
        execution: ExecutionId::generate_at(db::now()),
        buyer: market.buyer.clone(),
        amount: credits(1),
        expires_at: later(db::now(), 60),
    };
    let begun = Instant::now();
    const TIMES: u32 = 10_000;
    for _ in 0..TIMES {
        drop(teller.hold(request.clone()).await.unwrap());
    }
    println!("hold and void: {:?} each", begun.elapsed() / TIMES);
}
