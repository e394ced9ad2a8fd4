//! A disk that is really full.

use crate::support::{Market, assert_settled, grant, market, open};
use futures_util::future::join_all;
use souk_store::executions::Billing;
use souk_store::ledger::{self, Account};
use souk_store::teller::{Balance, PostError, Receipt, Teller};
use souk_store::{Db, OpenOptions, StoreError};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A small file system of its own. Unmounted when it is dropped.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// `None`: this process may not mount.
    fn mount(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(directory.path())
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then_some(Self { directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let path: &Path = self.directory.path();
        Command::new("umount").arg("-l").arg(path).status().ok();
    }
}

const CLIENTS: usize = 8;

#[derive(Default)]
struct Seen {
    booked: i64,
    refused: i64,
    unknown: i64,
}

/// Charges one credit at a time until as many failed as there are clients, or `rounds` are over.
async fn charge(market: &Market, teller: &Teller, rounds: usize) -> Seen {
    let mut seen = Seen::default();
    for _ in 0..rounds {
        let one = async || {
            let run = market.run(Billing::Charged);
            let hold = market.hold(teller, 1, &run).await.unwrap();
            let receipt = Receipt {
                run,
                idempotency: None,
            };
            teller.post(hold, receipt).await
        };
        for result in join_all((0..CLIENTS).map(|_| one())).await {
            match result {
                Ok(_) => seen.booked += 1,
                Err(PostError::NotBooked(_)) => seen.refused += 1,
                Err(PostError::Unknown(_)) => seen.unknown += 1,
                Err(error) => panic!("{error}"),
            }
        }
        if seen.refused + seen.unknown >= CLIENTS as i64 {
            break;
        }
    }
    seen
}

async fn balance(db: &Db, market: &Market) -> i64 {
    let mut read = db.read().await.unwrap();
    let account = Account::Buyer(market.buyer.clone());
    ledger::balance(&mut read, &account).await.unwrap().get() / 50
}

/// A file system without room gives errors, never a wrong balance; with room again it goes on, also after a restart while it was full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_system_that_is_full_charges_nothing() {
    let Some(disk) = SmallDisk::mount("104m") else {
        println!(
            "SKIPPED: this process may not mount a small file system; charges::a_full_store_charges_nothing limits the store itself"
        );
        return;
    };
    let url = format!("sqlite:{}", disk.path("souk.db").display());
    let mut db = open(&url).await;
    let market = market(&db, 100_000).await;
    let mut teller = Teller::open(&db).await.unwrap();
    market.charge(&teller, 1).await;
    let mut booked = 1;
    // What is freed each time has room for all that the charge log may hold.
    const ROOM: usize = 16 << 20;
    let mut ballast = 5 * ROOM;
    std::fs::write(disk.path("ballast"), vec![1; ballast]).unwrap();
    for round in 0..2 {
        let seen = charge(&market, &teller, 20_000).await;
        println!(
            "round {round}: {} booked until the disk was full, {} refused, {} unknown",
            seen.booked, seen.refused, seen.unknown
        );
        assert!(seen.refused + seen.unknown > 0, "the disk never got full");
        booked += seen.booked;

        // Nothing else can be read or written either, or it would be answered from books that are behind.
        let written = db.write(async |_| Ok::<_, StoreError>(())).await;
        assert!(db.read().await.is_err() && written.is_err());
        let in_memory = teller.balance(&market.buyer).await.unwrap();
        let expected = Balance {
            posted: 100_000 - booked,
            held: 0,
        };
        assert_eq!((in_memory, seen.unknown), (expected, 0));
        // At a restart SQLite copies its whole log.
        ballast = if round == 1 {
            0
        } else {
            ballast.saturating_sub(ROOM)
        };
        let make_room = || {
            let file = std::fs::File::options()
                .write(true)
                .open(disk.path("ballast"));
            file.unwrap().set_len(ballast as u64).unwrap();
        };
        if round == 1 {
            // A restart on the full disk may fail, and changes nothing.
            drop(teller);
            db.close().await;
            if let Ok(full) = Db::open(&OpenOptions::new(&url)).await {
                full.close().await;
            }
            make_room();
            db = open(&url).await;
            teller = Teller::open(&db).await.unwrap();
        } else {
            make_room();
        }
        // There is room: it goes on by itself, when the next try finds out.
        let begun = Instant::now();
        while let Err(error) = db.read().await {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "it did not go on: {error}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(balance(&db, &market).await, 100_000 - booked);
        let after = charge(&market, &teller, 1).await;
        assert_eq!(after.booked, CLIENTS as i64, "it did not go on");
        booked += after.booked;
        assert_eq!(balance(&db, &market).await, 100_000 - booked);
        assert_settled(&db, &teller).await;
        grant(&db, &market.buyer, 1).await;
        booked -= 1;
    }
    drop(teller);
    db.close().await;
    let db = open(&url).await;
    let teller = Teller::open(&db).await.unwrap();
    assert_eq!(
        teller.balance(&market.buyer).await.unwrap().posted,
        100_000 - booked
    );
    assert_settled(&db, &teller).await;
}
