//! A store that is a server's: who hangs up in the middle, and connections that a network has lost.

#[allow(dead_code)] // Of the wire only what is done to single statements.
#[path = "../../../../tests/src/cut_commits.rs"]
mod cut_commits;

use crate::support::{Store, assert_settled, company, market, open, postgres};
use cut_commits::{CommitWire, Cut};
use souk_domain::actors::Actor;
use souk_store::audit::{self, Act, ActedBy};
use souk_store::executions::Billing;
use souk_store::founding::Founded;
use souk_store::teller::{PostError, Receipt, Teller};
use souk_store::{Db, Fields, OpenOptions, StoreError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection is given back within half a minute; a loaded machine gets a multiple.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(120);

async fn number(db: &Db, sql: &'static str) -> i64 {
    let mut read = db.read().await.unwrap();
    let row = sqlx::query(sql).fetch_one(&mut *read).await.unwrap();
    row.number("n").unwrap()
}

/// Whoever gives a snapshot up while it begins leaves nothing of it behind: who reads by that connection next sees what is committed.
#[tokio::test]
async fn a_snapshot_that_is_given_up_is_nobody_elses() {
    const COMPANIES: &str = "SELECT COUNT(*) AS n FROM companies";
    let store = postgres().await;
    let options = OpenOptions {
        connections: 1,
        ..OpenOptions::new(&store.url)
    };
    let reader = Db::open(&options).await.unwrap();
    // Given up after one step, after two, and so on, until it has begun. On a busy machine a server may answer a step before it has ended.
    let mut steps = 1;
    for round in 0..50 {
        let mut snapshot = Box::pin(reader.snapshot());
        let mut has_begun = false;
        for _ in 0..steps {
            has_begun = futures_util::poll!(&mut snapshot).is_ready();
            if has_begun {
                break;
            }
            // What it has asked is answered meanwhile.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(snapshot);
        let before = number(&reader, COMPANIES).await;
        company(&store.db, &format!("c{round}")).await;
        let after = number(&reader, COMPANIES).await;
        assert_eq!(after, before + 1, "after {steps} steps");
        match has_begun {
            true if steps > 1 => return,
            true => {}
            false => steps += 1,
        }
    }
    panic!("it was never given up, or has never begun");
}

/// Longer than it takes to begin a few, and shorter than a writer waits for its turn.
const SLEEPS: &str = "SELECT CAST(pg_sleep(4) AS TEXT) AS slept";
const ASLEEP: &str = "
    SELECT COUNT(*) AS n
    FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'active' AND query LIKE 'SELECT CAST(pg_sleep(4)%'";
/// Transactions that one company may have at work at a server.
const OF_COMPANY: i64 = 4;

fn act(founded: &Founded) -> Arc<Act> {
    let company = &founded.company.id;
    let by = ActedBy {
        company: company.clone(),
        actor: Actor::from(founded.key.id.clone()),
        user: None,
        role: 4,
    };
    Arc::new(Act {
        company: Some(company.clone()),
        by: Some(by),
        ..(*Act::command("test", "/")).clone()
    })
}

/// A company whose clients hang up has no more transactions at work at a server than one whose clients wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_hangs_up_keeps_the_place_of_what_a_server_goes_on_with() {
    let store = postgres().await;
    let founded = company(&store.db, "acme").await;
    for asleep in 1..=OF_COMPANY {
        let sleeps = store.db.write(async |write| -> Result<(), StoreError> {
            sqlx::query(SLEEPS).execute(&mut **write).await?;
            Ok(())
        });
        let is_asleep = async {
            while number(&store.db, ASLEEP).await < asleep {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            biased;
            _ = audit::acting(act(&founded), sleeps) => panic!("it ended at once"),
            () = is_asleep => {}
        }
    }
    let next = store
        .db
        .write(async |_| -> Result<_, StoreError> { Ok(number(&store.db, ASLEEP).await) });
    let asleep = audit::acting(act(&founded), next).await.unwrap();
    assert!(asleep < OF_COMPANY, "{asleep} beside the next");
}

const COMPUTES: &str = "SELECT CAST(pg_sleep(600) AS TEXT) AS slept";
const COMPUTING: &str = "
    SELECT COUNT(*) AS n
    FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'active' AND query LIKE 'SELECT CAST(pg_sleep(600)%'";

/// What a server computes by a connection that was thrown away, since nobody waits for it any more, ends with that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_computed_by_a_connection_that_is_thrown_away_ends() {
    let store = postgres().await;
    let computes = async {
        let mut read = store.db.read().await?;
        sqlx::query(COMPUTES).execute(&mut *read).await?;
        Ok::<_, StoreError>(())
    };
    let is_computing = async {
        while number(&store.db, COMPUTING).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        biased;
        ended = computes => panic!("{ended:?}"),
        () = is_computing => {}
    }
    let begun = Instant::now();
    while number(&store.db, COMPUTING).await > 0 {
        assert!(begun.elapsed() < GIVEN_BACK_WITHIN, "it goes on");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

const UNHEARD: &str = "SELECT CAST(7 AS BIGINT) AS unheard";

/// Does `work` until what it asks is swallowed; then nobody waits for it any more.
async fn hang_up(wire: &CommitWire, work: impl Future<Output = Result<(), StoreError>>) {
    let before = wire.cuts();
    wire.swallow_question(UNHEARD);
    let is_swallowed = async {
        while wire.cuts() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        biased;
        ended = work => panic!("{ended:?}"),
        () = is_swallowed => {}
    }
}

/// A statement of the teller's is answered within 15 seconds, all of them within 60; a loaded machine takes longer.
const BOOKED_WITHIN: Duration = Duration::from_secs(50);

/// A wire to the store's server, and the store's address behind it.
async fn behind_a_wire(store: &Store) -> (CommitWire, String) {
    let (server, rest) = store.url.rsplit_once(':').unwrap();
    let (port, database) = rest.split_once('/').unwrap();
    let wire = CommitWire::to(port.parse().unwrap()).await;
    // What is said within TLS nobody else can read.
    let url = format!("{server}:{}/{database}?sslmode=disable", wire.port);
    (wire, url)
}

/// A charge whose statement a network swallows is booked by another connection, once, while what was held for it is there: a server that says nothing for
/// longer than it waits for a lock is not waited for.
#[tokio::test]
async fn a_charge_that_is_swallowed_is_booked_by_another_connection() {
    let store = postgres().await;
    let (wire, url) = behind_a_wire(&store).await;
    let behind = open(&url).await;
    let market = market(&store.db, 10).await;
    let teller = Teller::open(&behind).await.unwrap();
    market.charge(&teller, 1).await;
    let run = market.run(Billing::Charged);
    let hold = market.hold(&teller, 4, &run).await.unwrap();
    wire.swallow_question("INSERT INTO transactions");
    let (begun, idempotency) = (Instant::now(), None);
    let posted = teller.post(hold, Receipt { run, idempotency }).await;
    assert_eq!(wire.cuts(), 1);
    assert!(begun.elapsed() < BOOKED_WITHIN, "{:?}", begun.elapsed());
    assert_eq!(posted.expect("booked").balance_credits, Some(5));
    assert_settled(&store.db, &teller).await;
}

/// How long a connection is waited for here. A batch is tried five times.
const PATIENCE: Duration = Duration::from_secs(8);

/// While a server is away, whoever has waited for long behind what it did not answer is told so then, and not after as many tries of his own.
#[tokio::test]
async fn who_has_waited_behind_what_is_not_answered_is_told_so() {
    let store = postgres().await;
    let (wire, url) = behind_a_wire(&store).await;
    let options = OpenOptions {
        patience: PATIENCE,
        ..OpenOptions::new(url)
    };
    let behind = Db::open(&options).await.unwrap();
    let market = market(&store.db, 10).await;
    let teller = Teller::open(&behind).await.unwrap();
    market.charge(&teller, 1).await;
    let (first, second) = (market.run(Billing::Charged), market.run(Billing::Charged));
    let held = market.hold(&teller, 4, &first).await.unwrap();
    let held_behind = market.hold(&teller, 2, &second).await.unwrap();
    wire.cut_off(Cut::Before, "INSERT INTO transactions");
    // Nobody listens any more: a connection is waited for.
    drop(wire);
    let post = async |hold, run| {
        let idempotency = None;
        let posted = teller.post(hold, Receipt { run, idempotency }).await;
        (posted, Instant::now())
    };
    let waits = async {
        // Until the first one is under way.
        tokio::time::sleep(Duration::from_secs(1)).await;
        post(held_behind, second).await
    };
    let begun = Instant::now();
    let ((first, told), (second, told_behind)) = tokio::join!(post(held, first), waits);
    assert!(matches!(first, Err(PostError::Unknown(_))), "{first:?}");
    assert!(matches!(second, Err(PostError::NotBooked(_))), "{second:?}");
    let (took, took_behind) = (told - begun, told_behind.saturating_duration_since(told));
    assert!(took > 4 * PATIENCE, "{took:?}");
    assert!(took_behind < 2 * PATIENCE, "{took_behind:?}");
}

/// Of a connection that a network has lost the place in its pool is free again, though whoever used it has hung up.
#[tokio::test]
async fn a_lost_connection_takes_up_no_place_for_good() {
    let store = postgres().await;
    let (wire, url) = behind_a_wire(&store).await;
    let options = OpenOptions {
        connections: 1,
        ..OpenOptions::new(url)
    };
    let db = Db::open(&options).await.unwrap();
    let read = async {
        let mut read = db.read().await?;
        sqlx::query(UNHEARD).execute(&mut *read).await?;
        Ok(())
    };
    hang_up(&wire, read).await;
    let write = db.write(async |write| -> Result<(), StoreError> {
        sqlx::query(UNHEARD).execute(&mut **write).await?;
        Ok(())
    });
    hang_up(&wire, write).await;
    let begun = Instant::now();
    while let Err(error) = db.ping().await {
        assert!(begun.elapsed() < GIVEN_BACK_WITHIN, "{error}");
    }
    while let Err(error) = db.write(async |_| Ok::<_, StoreError>(())).await {
        assert!(begun.elapsed() < GIVEN_BACK_WITHIN, "{error}");
    }
}
