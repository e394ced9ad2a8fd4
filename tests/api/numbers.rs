//! Computations that nobody waits for any more, as their buyer sees them. A file is computed on in the host itself: whoever hangs up, or comes to the end
//! of the time, pays nothing, has nothing held, and is answered the next time. Of which engine, and what else there is to see, say the tests of each;
//! that nothing is computed any more is in `host/sandbox/tests`.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::{Answer, Company, TestHost};
use tokio::task::JoinHandle;

use crate::unique;
use crate::voids::{books, until};

/// Rows of a file's table `t`, whose column `n` has the numbers from 0 on.
pub const ROWS: u32 = 100_000;
/// Ten thousand million pairs of rows, which are compared, and which are added up. Each takes a minute and more; with the default it does not.
pub const PAIRS: [&str; 2] = [
    "SELECT count(*) FROM t a, t b WHERE a.n < :rows AND b.n < :rows AND a.n * b.n % 7 = 8",
    "SELECT sum(a.n * b.n % 7) FROM t a CROSS JOIN t b WHERE a.n < :rows AND b.n < :rows",
];
const PRICE: i64 = 3;
/// A loaded machine gets twenty times as long as it takes, which is less than a statement has.
pub const SOON: Duration = Duration::from_secs(20);
/// What a statement has that is to outlast it.
const SHORT: Duration = Duration::from_secs(2);
/// What one has whose caller hangs up before.
const LONG: Duration = Duration::from_secs(60);

/// A seller of such a file and a buyer with a hundred credits, who has asked for the greatest number: its asset. The file is open by then, and read.
pub struct Numbers {
    seller: Company,
    connection: String,
    buyer: Company,
    greatest: String,
}

/// A call whose credits are held, and the buyer's books before it.
pub struct Asked {
    call: JoinHandle<Answer>,
    before: (i64, i64, i64),
}

impl Numbers {
    pub async fn sold(host: &TestHost, engine: &str, name: &str, file: Vec<u8>) -> Numbers {
        let seller = host.company(&unique(engine)).await;
        let connection = seller.file(engine, name, file).await;
        let greatest = json!({"sql_logic": "SELECT max(n) FROM t"});
        let greatest = seller.asset(&connection, greatest).await;
        seller.publish(&greatest, PRICE as u64).await;
        let numbers = Numbers {
            seller,
            connection,
            buyer: host.buyer(&unique("reader"), 100).await,
            greatest,
        };
        numbers.are_answered().await;
        numbers
    }

    /// What is soon computed is answered soon.
    pub async fn are_answered(&self) {
        let begun = Instant::now();
        let answer = self.buyer.execute(&self.greatest, json!({})).await;
        assert_eq!(answer.expect(200).at("/data/answer_value"), ROWS - 1);
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    }

    /// A statement that takes longer than it may ends with its time, and costs nothing.
    pub async fn are_late(&self, sql: &str) {
        let buyer = &self.buyer;
        let asset = self.asset(sql, SHORT).await;
        let before = books(&buyer.client, buyer).await;
        let begun = Instant::now();
        let late = buyer.execute(&asset, json!({"rows": ROWS})).await;
        let took = begun.elapsed();
        let late = late.expect_error(504, "EXECUTION_TIMEOUT");
        assert_eq!(late.at("/error/details/charged"), false, "{}", late.body);
        assert!(took < SHORT + SOON, "{sql}: {took:?}");
        assert_eq!(books(&buyer.client, buyer).await, before, "{sql}");
    }

    /// A buyer's call of a statement, once its credits are held.
    pub async fn asked(&self, sql: &str) -> Asked {
        let buyer = &self.buyer;
        let asset = self.asset(sql, LONG).await;
        let before = books(&buyer.client, buyer).await;
        let (balance, _, charges) = before;
        let call = {
            let buyer = buyer.clone();
            let rows = json!({"rows": ROWS});
            tokio::spawn(async move { buyer.execute(&asset, rows).await })
        };
        until(&buyer.client, buyer, (balance - PRICE, PRICE, charges)).await;
        Asked { call, before }
    }

    /// Its caller hangs up, and has the books that it had, long before the statement's time is over.
    pub async fn hang_up(&self, asked: Asked) {
        asked.call.abort();
        let since = Instant::now();
        until(&self.buyer.client, &self.buyer, asked.before).await;
        assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    }

    /// An asset of this statement, which may take so long.
    async fn asset(&self, sql: &str, time: Duration) -> String {
        let asset = json!({"sql_logic": sql, "timeout_ms": time.as_millis() as u64,
            "parameters": [{"name": "rows", "type": "integer", "default": 2}]});
        let asset = self.seller.asset(&self.connection, asset).await;
        self.seller.publish(&asset, PRICE as u64).await;
        asset
    }
}
