//! A disk that is really full.

use crate::support::{Market, assert_settled, credits, grant, market, open};
use futures_util::future::join_all;
use souk_store::executions::Billing;
use souk_store::ledger::{self, Account};
use souk_store::refunds::refund;
use souk_store::teller::{PostError, Receipt, Standing, Teller};
use souk_store::{Db, OpenOptions, db};
use std::path::{Path, PathBuf};
use std::process::Command;

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
    let Some(disk) = SmallDisk::mount("4m") else {
        println!(
            "SKIPPED: this process may not mount a small file system; charges::a_full_disk_charges_nothing limits the store itself"
        );
        return;
    };
    let url = format!("sqlite:{}", disk.path("souk.db").display());
    let mut db = open(&url).await;
    let market = market(&db, 100_000).await;
    let mut teller = Teller::open(&db).await.unwrap();
    let first = market.charge(&teller, 1).await.transaction.unwrap();
    let mut booked = 1;
    let mut ballast = 1024 * 1024;
    std::fs::write(disk.path("ballast"), vec![1; ballast]).unwrap();
    for round in 0..3 {
        let seen = charge(&market, &teller, 20_000).await;
        println!(
            "round {round}: {} booked until the disk was full, {} refused, {} unknown",
            seen.booked, seen.refused, seen.unknown
        );
        assert!(seen.refused + seen.unknown > 0, "the disk never got full");
        booked += seen.booked;

        // Whatever else would write is refused, too, and leaves nothing behind. (The last pages may have room for a few: fill them.)
        let mut given = 0;
        loop {
            let mut write = db.write().await.unwrap();
            let refunded = refund(&mut write, &first, None, "full", None, db::now()).await;
            match refunded {
                Ok(_) => given += i64::from(write.commit().await.is_ok()),
                Err(_) => drop(write),
            }
            let mut write = db.write().await.unwrap();
            let granted = ledger::grant(
                &mut write,
                &market.buyer,
                credits(1),
                "full",
                None,
                db::now(),
            )
            .await;
            if granted.is_err() || write.commit().await.is_err() {
                break;
            }
            given += 1;
            assert!(given < 10_000, "the disk has room again");
        }
        booked -= given;

        let found = balance(&db, &market).await;
        let standing = teller.standing(&market.buyer).await.unwrap();
        if seen.unknown == 0 {
            let expected = Standing {
                posted: 100_000 - booked,
                held: 0,
            };
            assert_eq!((found, standing), (100_000 - booked, expected));
        } else {
            assert!(found <= 100_000 - booked && found >= 100_000 - booked - seen.unknown);
            assert_eq!(standing.held, seen.unknown);
        }
        ballast -= 300 * 1024;
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
                assert_eq!(balance(&full, &market).await, found);
                full.close().await;
            }
            make_room();
            db = open(&url).await;
            teller = Teller::open(&db).await.unwrap();
        } else {
            make_room();
        }
        // There is room: it goes on by itself.
        let after = charge(&market, &teller, 1).await;
        assert_eq!(after.booked, CLIENTS as i64, "it did not go on");
        booked = 100_000 - balance(&db, &market).await;
        let standing = teller.standing(&market.buyer).await.unwrap();
        assert_eq!(booked, 100_000 - found + after.booked);
        assert_eq!(standing.posted, found - after.booked);
        if seen.unknown == 0 {
            assert_settled(&db, &teller).await;
        }
        grant(&db, &market.buyer, 1).await;
        booked -= 1;
    }
    drop(teller);
    db.close().await;
    let db = open(&url).await;
    let teller = Teller::open(&db).await.unwrap();
    assert_eq!(
        teller.standing(&market.buyer).await.unwrap().posted,
        100_000 - booked
    );
    assert_settled(&db, &teller).await;
}
