//! Sales figures are the plain sums of the recorded rows, to the unit: of executions, and of the ledger's charges and refunds.

mod support;

use souk_domain::actors::Actor;
use souk_domain::ids::{AssetId, CompanyId, EndpointId, ExecutionId, KeyId, RequestId};
use souk_domain::products::Product;
use souk_domain::time::{DAY, Timestamp};
use souk_store::executions::{Billing, Outcome, Run};
use souk_store::refunds;
use souk_store::sales::{self, AssetOrder, Customers, Sold, Span};
use souk_store::teller::{HoldRequest, Receipt, Teller};
use souk_store::{Db, Fields, db};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use support::{credits, grant, stores};

/// A run of a seller's, as it was recorded.
struct Row {
    buyer: String,
    product: String,
    is_asset: bool,
    has_succeeded: bool,
    is_excused: bool,
    credits: i64,
    started_at: i64,
    duration_us: i64,
}

/// A refund, as it was booked.
struct Refund {
    buyer: String,
    product: String,
    credits: i64,
    at: i64,
}

/// Everything that a seller's figures are made from.
struct Rows {
    runs: Vec<Row>,
    refunds: Vec<Refund>,
    charged: i64,
}

impl Rows {
    async fn of(db: &Db, seller: &CompanyId) -> Rows {
        let mut read = db.read().await.unwrap();
        let runs =
            sqlx::query("SELECT * FROM executions WHERE seller_id = $1 AND company_id <> $1")
                .bind(seller.as_str())
                .fetch_all(&mut *read)
                .await
                .unwrap();
        let refunds =
            sqlx::query("SELECT * FROM transactions WHERE seller_id = $1 AND type = 'refund'")
                .bind(seller.as_str())
                .fetch_all(&mut *read)
                .await
                .unwrap();
        let charged = sqlx::query(
            "SELECT CAST(COALESCE(SUM(-amount_credits), 0) AS BIGINT) AS charged FROM transactions WHERE seller_id = $1 AND type = 'charge'",
        )
        .bind(seller.as_str())
        .fetch_one(&mut *read)
        .await
        .unwrap();
        let run = |row: &sqlx::any::AnyRow| Row {
            buyer: row.text("company_id").unwrap(),
            product: row.text("product_id").unwrap(),
            is_asset: row.text("product_type").unwrap() == "asset",
            has_succeeded: row.text("status").unwrap() == "succeeded",
            is_excused: matches!(
                row.text_opt("blame").unwrap().as_deref(),
                Some("caller" | "host")
            ),
            credits: row.number("credits").unwrap(),
            started_at: row.number("started_at").unwrap(),
            duration_us: row.number("duration_us").unwrap(),
        };
        let refund = |row: &sqlx::any::AnyRow| Refund {
            buyer: row.text("company_id").unwrap(),
            product: row.text("product_id").unwrap(),
            credits: row.number("amount_credits").unwrap(),
            at: row.number("created_at").unwrap(),
        };
        Rows {
            runs: runs.iter().map(run).collect(),
            refunds: refunds.iter().map(refund).collect(),
            charged: charged.number("charged").unwrap(),
        }
    }

    /// The sums of what `wanted` takes, by buyer and product.
    fn sum(&self, span: Span, wanted: impl Fn(&str, &str) -> bool) -> Sold {
        let mut sold = Sold::default();
        let mut buyers = BTreeSet::new();
        let is_within = |at| (span.from.micros()..span.to.micros()).contains(&at);
        let runs = self.runs.iter().filter(|row| is_within(row.started_at));
        for row in runs.filter(|row| wanted(&row.buyer, &row.product)) {
            match (row.has_succeeded, row.is_asset) {
                (true, true) => sold.executions += 1,
                (true, false) => sold.requests += 1,
                (false, _) => sold.failed += 1,
            }
            sold.excused += i64::from(row.is_excused);
            if row.has_succeeded {
                buyers.insert(&row.buyer);
            }
            sold.charged_credits += row.credits;
            sold.duration_us += row.duration_us;
        }
        let refunds = self.refunds.iter().filter(|refund| is_within(refund.at));
        let refunds = refunds.filter(|refund| wanted(&refund.buyer, &refund.product));
        sold.refunded_credits = refunds.map(|refund| refund.credits).sum();
        sold.buyers = buyers.len() as i64;
        sold
    }

    fn buyers(&self, span: Span) -> BTreeSet<&str> {
        let runs = self.runs.iter().filter(|row| {
            row.has_succeeded && (span.from.micros()..span.to.micros()).contains(&row.started_at)
        });
        runs.map(|row| &*row.buyer).collect()
    }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A seller's 300 runs over 70 dates: charged, free, failed and its own, by six buyers of five products, some of them given back.
async fn trade(db: &Db, seller: &CompanyId, today: Timestamp) {
    let teller = Teller::open(db).await.unwrap();
    let mut dice = Dice(7);
    let buyers: Vec<_> = (0..6).map(|_| CompanyId::generate()).collect();
    for buyer in &buyers {
        grant(db, buyer, 10_000).await;
    }
    let products: Vec<_> = (0..5)
        .map(|number| match number % 2 {
            0 => Product::Asset(AssetId::generate()),
            _ => Product::Endpoint(EndpointId::generate()),
        })
        .collect();
    let mut charges = Vec::new();
    for _ in 0..300 {
        // Some of the first and last microsecond of their date.
        let within = match dice.roll(4) {
            0 => Duration::ZERO,
            1 => DAY - Duration::from_micros(1),
            _ => Duration::from_secs(dice.roll(86_400)),
        };
        let started_at = today.before(DAY * dice.roll(70) as u32).after(within);
        // Buyers come and go: each has its own weeks.
        let mut buyer = &buyers[dice.roll(6) as usize];
        if started_at < today.before(DAY * 35) || started_at >= today.before(DAY * 10) {
            buyer = &buyers[dice.roll(3) as usize];
        }
        let amount = dice.roll(9) as i64;
        let is_charged = amount > 0;
        let mut run = Run {
            id: ExecutionId::generate_at(started_at),
            company: buyer.clone(),
            seller: seller.clone(),
            product: products[dice.roll(5) as usize].clone(),
            purchase: None,
            price: None,
            actor: Actor::Key(KeyId::generate()),
            request: RequestId::generate_at(started_at),
            outcome: Outcome::Succeeded,
            billing: Billing::Charged,
            rows: 3,
            bytes: 10,
            started_at,
            duration_us: dice.roll(50_000) as i64,
        };
        match dice.roll(10) {
            0 => {
                run.outcome = Outcome::Failed {
                    code: "SOURCE_ERROR".into(),
                    blame: ["source", "caller", "host"][dice.roll(3) as usize].into(),
                };
                run.billing = Billing::Failed;
                teller.record(&run);
            }
            1 => {
                run.company = seller.clone();
                run.billing = Billing::Owner;
                teller.record(&run);
            }
            _ if is_charged => {
                let request = HoldRequest {
                    execution: run.id.clone(),
                    buyer: buyer.clone(),
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
                teller.record(&run);
            }
        }
    }
    for (place, charge) in charges.iter().step_by(17).enumerate() {
        let at = today.before(DAY * (place as u32 * 5));
        db.write(async |write| {
            let refunded = refunds::refund(write, charge, None, "wrong", None, at).await;
            Ok::<_, souk_store::StoreError>(refunded.unwrap())
        })
        .await
        .unwrap();
    }
    teller.flush().await;
}

/// For every date, week-long and whole period, product and buyer: the figures are the sums of the rows; all charges together are the ledger's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_are_the_sums_of_the_rows() {
    for store in stores().await {
        let db = &store.db;
        let seller = support::company(db, "seller").await.company.id;
        let today = db::now().day_start();
        trade(db, &seller, today).await;
        let rows = Rows::of(db, &seller).await;
        assert!(
            rows.runs.len() > 200 && rows.refunds.len() > 8,
            "{}",
            store.name
        );
        let end = today.after(DAY);
        let last = |days: u32, skipped: u32| Span {
            from: end.before(DAY * (days + skipped)),
            to: end.before(DAY * skipped),
        };
        let spans: Vec<_> = (0..80).map(|day| last(1, day)).collect();
        let mut read = db.read().await.unwrap();
        let over = sales::over(&mut read, &seller, &spans).await.unwrap();
        for (span, sold) in spans.iter().zip(&over) {
            assert_eq!(
                *sold,
                rows.sum(*span, |_, _| true),
                "{} {span:?}",
                store.name
            );
        }
        for span in [last(7, 0), last(30, 0), last(30, 30), last(90, 0)] {
            let over = sales::over(&mut read, &seller, &[span]).await.unwrap();
            assert_eq!(
                over,
                [rows.sum(span, |_, _| true)],
                "{} {span:?}",
                store.name
            );
            let products = sales::by_product(&mut read, &seller, span).await.unwrap();
            let buyers = sales::by_buyer(&mut read, &seller, span).await.unwrap();
            let mut total = [Sold::default(), Sold::default()];
            for product in &products {
                let expected = rows.sum(span, |_, id| id == product.id);
                assert_eq!(product.sold, expected, "{} {}", store.name, product.id);
                total[0].charged_credits += expected.charged_credits;
                total[0].refunded_credits += expected.refunded_credits;
            }
            for buyer in &buyers {
                let expected = rows.sum(span, |id, _| id == buyer.id);
                assert_eq!(buyer.sold, expected, "{} {}", store.name, buyer.id);
                total[1].charged_credits += expected.charged_credits;
                total[1].refunded_credits += expected.refunded_credits;
            }
            for total in total {
                assert_eq!(
                    total.revenue_credits(),
                    over[0].revenue_credits(),
                    "{}",
                    store.name
                );
            }
            let revenue = |sold: &Sold| sold.revenue_credits();
            assert!(
                products.is_sorted_by_key(|one| -revenue(&one.sold)),
                "{}",
                store.name
            );
            assert!(
                buyers.is_sorted_by_key(|one| -revenue(&one.sold)),
                "{}",
                store.name
            );
        }
        let all = sales::over(&mut read, &seller, &[last(90, 0)])
            .await
            .unwrap()[0];
        assert_eq!(all.charged_credits, rows.charged, "{}", store.name);
        let cents = all.revenue().get();
        assert_eq!(
            (cents, cents * 4 / 5),
            (all.revenue_credits() * 50, all.earnings().get())
        );
        assert_eq!(all.platform_fee().get() * 5, cents);
        // Somebody who sold nothing has nothing.
        let nobody = CompanyId::generate();
        let nothing = sales::over(&mut read, &nobody, &[last(90, 0)])
            .await
            .unwrap();
        assert_eq!(nothing, [Sold::default()]);
    }
}

/// Customers come, stay and go as their runs say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn customers_come_and_go() {
    for store in stores().await {
        let db = &store.db;
        let seller = support::company(db, "seller").await.company.id;
        let today = db::now().day_start();
        trade(db, &seller, today).await;
        let rows = Rows::of(db, &seller).await;
        let end = today.after(DAY);
        let mut read = db.read().await.unwrap();
        let mut churned = 0;
        for days in [1, 7, 30, 90] {
            let from = end.before(DAY * days);
            let (span, before) = (
                Span { from, to: end },
                Span {
                    from: from.before(DAY * days),
                    to: from,
                },
            );
            let ever = Span {
                from: Timestamp::from_micros(0),
                to: from,
            };
            let (here, was, known) = (rows.buyers(span), rows.buyers(before), rows.buyers(ever));
            let expected = Customers {
                total: here.len() as i64,
                new: here.difference(&known).count() as i64,
                churned: was.difference(&here).count() as i64,
            };
            let found = sales::customers(&mut read, &seller, span, before)
                .await
                .unwrap();
            assert_eq!(found, expected, "{} {days}", store.name);
            churned += found.churned;
        }
        assert!(churned > 0, "{}: nobody left in this test", store.name);
    }
}

/// Assets are listed with the sums of their rows, in every order, page by page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn assets_are_listed_as_they_do() {
    for store in stores().await {
        let db = &store.db;
        let founded = support::company(db, "seller").await;
        let seller = founded.company.id;
        let today = db::now().day_start();
        trade(db, &seller, today).await;
        let rows = Rows::of(db, &seller).await;
        let products: BTreeSet<_> = rows
            .runs
            .iter()
            .filter(|row| row.is_asset)
            .map(|row| row.product.clone())
            .collect();
        // What was traded gets its asset; one more was never used.
        for (place, id) in products
            .iter()
            .cloned()
            .chain([AssetId::generate().to_string()])
            .enumerate()
        {
            let id = AssetId::parse(&id).unwrap();
            let written = support::asset(&format!("asset {place}"), &format!("asset-{place}"));
            let inserted = db.write(async |write| {
                let user = &founded.user.id;
                souk_store::products::insert(write, &id, &seller, user, &written, db::now()).await
            });
            inserted.await.unwrap();
        }
        let end = today.after(DAY);
        let from = end.before(DAY * 30);
        let (span, before) = (
            Span { from, to: end },
            Span {
                from: from.before(DAY * 30),
                to: from,
            },
        );
        let mut read = db.read().await.unwrap();
        let expected: BTreeMap<String, (Sold, i64)> = products
            .iter()
            .map(|id| {
                let of = |span| rows.sum(span, |_, product| product == id);
                (id.clone(), (of(span), of(before).executions))
            })
            .collect();
        for order in [
            AssetOrder::Name,
            AssetOrder::Executions,
            AssetOrder::Revenue,
            AssetOrder::Buyers,
            AssetOrder::SuccessRate,
            AssetOrder::Duration,
        ] {
            for is_descending in [true, false] {
                let mut all = Vec::new();
                for offset in 0..4 {
                    let (page, total) = sales::assets(
                        &mut read,
                        &seller,
                        (span, before),
                        order,
                        is_descending,
                        souk_store::Part::new(1, offset),
                    )
                    .await
                    .unwrap();
                    assert_eq!(total, 4, "{}", store.name);
                    all.extend(page);
                }
                for asset in &all {
                    let (sold, former) = expected.get(&asset.id).copied().unwrap_or_default();
                    assert_eq!(
                        (asset.sold, asset.executions_before),
                        (sold, former),
                        "{}",
                        store.name
                    );
                }
                let ids: BTreeSet<_> = all.iter().map(|asset| &asset.id).collect();
                assert_eq!(ids.len(), 4, "{}", store.name);
                let by = |asset: &sales::AssetSales| -> i64 {
                    let runs = (asset.sold.executions + asset.sold.failed).max(1);
                    let has_run = asset.sold.executions + asset.sold.failed > 0;
                    let answerable = asset.sold.executions + asset.sold.failed - asset.sold.excused;
                    match order {
                        AssetOrder::Name => asset.name.bytes().last().map_or(0, i64::from),
                        AssetOrder::Executions => asset.sold.executions,
                        AssetOrder::Revenue => asset.sold.revenue_credits(),
                        AssetOrder::Buyers => asset.sold.buyers,
                        AssetOrder::SuccessRate if answerable > 0 => {
                            asset.sold.executions * 1_000_000 / answerable
                        }
                        AssetOrder::Duration if has_run => asset.sold.duration_us / runs,
                        _ => -1,
                    }
                };
                let sign = if is_descending { -1 } else { 1 };
                assert!(
                    all.is_sorted_by_key(|asset| sign * by(asset)),
                    "{} {order:?}",
                    store.name
                );
            }
        }
    }
}
