//! What is said of a product is the plain sum of its recorded rows, to the unit: the counts of each day, the ledger's refunds, and percentiles.

mod support;

use souk_domain::actors::Actor;
use souk_domain::ids::{AssetId, CompanyId, EndpointId, ExecutionId, KeyId, RequestId};
use souk_domain::products::Product;
use souk_domain::time::{DAY, Timestamp};
use souk_store::executions::{Billing, Outcome, Run};
use souk_store::sales::Span;
use souk_store::teller::{HoldRequest, Receipt, Teller};
use souk_store::times;
use souk_store::uses::{self, Uses};
use souk_store::{Db, Fields, StoreError, db, refunds};
use std::collections::BTreeSet;
use std::time::Duration;
use support::{credits, grant, stores};

/// 240 runs of two products over 40 dates: charged, free, failed and the seller's own; every eleventh charge is given back.
async fn trade(db: &Db, seller: &CompanyId, products: &[Product; 2], today: Timestamp) {
    let teller = Teller::open(db).await.unwrap();
    let buyers: Vec<_> = (0..4).map(|_| CompanyId::generate()).collect();
    for buyer in &buyers {
        grant(db, buyer, 10_000).await;
    }
    let mut charges = Vec::new();
    for number in 0..240_u32 {
        let within = match number % 3 {
            0 => Duration::ZERO,
            1 => DAY - Duration::from_micros(1),
            _ => Duration::from_secs(u64::from(number) * 300),
        };
        let started_at = today.before(DAY * (number * 7 % 40)).after(within);
        let amount = i64::from(number % 5);
        let mut run = Run {
            id: ExecutionId::generate_at(started_at),
            company: buyers[number as usize % 4].clone(),
            seller: seller.clone(),
            product: products[number as usize / 3 % 2].clone(),
            purchase: None,
            price: None,
            actor: Actor::Key(KeyId::generate()),
            request: RequestId::generate_at(started_at),
            outcome: Outcome::Succeeded,
            billing: Billing::Charged,
            rows: i64::from(number % 4),
            bytes: 10,
            started_at,
            duration_us: i64::from(number * 7_919 % 50_000),
        };
        match number % 10 {
            3 | 8 => {
                run.outcome = Outcome::Failed {
                    code: "source".into(),
                    blame: "source".into(),
                };
                run.billing = Billing::Failed;
                if number % 20 == 3 {
                    run.company = seller.clone();
                }
                teller.record(run);
            }
            6 => {
                run.company = seller.clone();
                run.billing = Billing::Owner;
                teller.record(run);
            }
            _ if amount > 0 => {
                let request = HoldRequest {
                    execution: run.id.clone(),
                    buyer: run.company.clone(),
                    amount: credits(amount),
                    expires_at: db::now().after(Duration::from_secs(60)),
                };
                let hold = teller.hold(request).await.unwrap();
                let receipt = Receipt {
                    run,
                    idempotency: None,
                };
                let posted = teller.post(hold, receipt).await.unwrap();
                charges.push(posted.transaction.unwrap());
            }
            _ => {
                run.billing = Billing::FreeProduct;
                teller.record(run);
            }
        }
        // The recorder keeps each of so few.
        if number % 60 == 59 {
            teller.flush().await;
        }
    }
    for (place, charge) in charges.iter().step_by(11).enumerate() {
        let at = today.before(DAY * (place as u32 * 3));
        db.write(async |write| {
            let refunded = refunds::refund(write, charge, None, "wrong", None, at).await;
            Ok::<_, StoreError>(refunded.unwrap())
        })
        .await
        .unwrap();
    }
    teller.flush().await;
}

/// From single runs and the ledger, without any count; and how long the runs took.
async fn sum(db: &Db, seller: &CompanyId, product: &str, span: Span) -> (Uses, Vec<i64>) {
    let mut read = db.read().await.unwrap();
    let (mut sum, mut durations, mut buyers) = (Uses::default(), Vec::new(), BTreeSet::new());
    let is_within = |at: i64| (span.from.micros()..span.to.micros()).contains(&at);
    let rows = sqlx::query("SELECT * FROM executions WHERE product_id = $1")
        .bind(product)
        .fetch_all(&mut *read)
        .await
        .unwrap();
    for row in rows {
        let number = |name: &str| row.number(name).unwrap();
        if !is_within(number("started_at")) {
            continue;
        }
        let company = row.text("company_id").unwrap();
        let is_own = company == seller.as_str();
        let has_succeeded = row.text("status").unwrap() == "succeeded";
        match has_succeeded {
            true => sum.succeeded += 1,
            false => sum.failed += 1,
        }
        match (is_own, has_succeeded) {
            (true, true) => sum.own_succeeded += 1,
            (true, false) => sum.own_failed += 1,
            (false, true) => drop(buyers.insert(company)),
            (false, false) => {}
        }
        sum.rows += number("rows_returned");
        sum.duration_us += number("duration_us");
        sum.own_duration_us += if is_own { number("duration_us") } else { 0 };
        sum.charged_credits += number("credits");
        durations.push(number("duration_us"));
    }
    sum.buyers = buyers.len() as i64;
    let rows = sqlx::query(
        "SELECT amount_credits, created_at FROM transactions WHERE product_id = $1 AND type = 'refund'",
    )
    .bind(product)
    .fetch_all(&mut *read)
    .await
    .unwrap();
    for row in rows {
        if is_within(row.number("created_at").unwrap()) {
            sum.refunded_credits += row.number("amount_credits").unwrap();
        }
    }
    durations.sort_unstable();
    (sum, durations)
}

/// Of every date, of every period and of both products: counts, buyers, credits and percentiles are those of the rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_products_figures_are_the_sums_of_its_rows() {
    for store in stores().await {
        let db = &store.db;
        let seller = support::company(db, "seller").await.company.id;
        let products = [
            Product::Asset(AssetId::generate()),
            Product::Endpoint(EndpointId::generate()),
        ];
        let today = db::now().day_start();
        trade(db, &seller, &products, today).await;
        let end = today.after(DAY);
        for product in products.iter().map(Product::id) {
            let (mut has_refunds, mut has_own) = (false, false);
            for days in [1, 2, 7, 30, 90] {
                let span = Span {
                    from: end.before(DAY * days),
                    to: end,
                };
                let (expected, durations) = sum(db, &seller, product, span).await;
                let mut read = db.read().await.unwrap();
                let over = uses::over(&mut read, &seller, product, span).await.unwrap();
                assert_eq!(over, expected, "{} {days}", store.name);
                // The smallest that at least 95 of 100 do not exceed.
                let is_p95 = |at: &usize| (at + 1) * 100 >= durations.len() * 95;
                let rank = (0..durations.len()).find(is_p95);
                let p95 = times::p95_us(&mut read, product, span).await.unwrap();
                let told = rank.map(|rank| durations[rank]..=durations[rank] * 33 / 32 + 1);
                assert!(
                    p95.is_some_and(|p95| told.clone().unwrap().contains(&p95)),
                    "{} {days}: {p95:?} is not {told:?}",
                    store.name
                );
                let by_day = uses::by_day(&mut read, product, span).await.unwrap();
                drop(read);
                let mut runs = 0;
                for (day, uses) in &by_day {
                    let date = Span {
                        from: *day,
                        to: day.after(DAY),
                    };
                    let (expected, _) = sum(db, &seller, product, date).await;
                    let expected = Uses {
                        refunded_credits: 0,
                        ..expected
                    };
                    assert_eq!(*uses, expected, "{} {day}", store.name);
                    runs += uses.runs();
                }
                assert_eq!(runs, over.runs(), "{} {days}", store.name);
                has_refunds |= over.refunded_credits > 0;
                has_own |= over.own_failed > 0 && over.own_succeeded > 0;
            }
            assert!(has_refunds && has_own, "{}: too little traded", store.name);
            let mut read = db.read().await.unwrap();
            let last_at = times::last_at(&mut read, product).await.unwrap().unwrap();
            assert!(
                last_at >= today && last_at < end,
                "{} {last_at}",
                store.name
            );
        }
        let mut read = db.read().await.unwrap();
        let nothing = AssetId::generate();
        let span = Span {
            from: today,
            to: end,
        };
        let nothing = nothing.as_str();
        assert_eq!(
            uses::over(&mut read, &seller, nothing, span).await.unwrap(),
            Uses::default()
        );
        assert_eq!(times::p95_us(&mut read, nothing, span).await.unwrap(), None);
        assert_eq!(times::last_at(&mut read, nothing).await.unwrap(), None);
    }
}
