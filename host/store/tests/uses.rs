//! What is said of a product is the plain sum of its recorded rows, to the unit: the counts of each day, the ledger's refunds, and percentiles.

mod support;

use souk_domain::actors::Actor;
use souk_domain::ids::{AssetId, CompanyId, EndpointId, ExecutionId, KeyId, RequestId};
use souk_domain::products::Product;
use souk_domain::time::{DAY, Timestamp};
use souk_store::executions::{Billing, Outcome, Run};
use souk_store::founding::Founded;
use souk_store::sales::Span;
use souk_store::teller::{Asked, HoldRequest, Receipt, Teller};
use souk_store::uses::{self, Uses};
use souk_store::{Db, Fields, StoreError, db, products, refunds};
use souk_store::{days, times};
use std::collections::BTreeSet;
use std::time::Duration;
use support::{company, credits, grant, stores};

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
                    blame: ["source", "caller", "host"][number as usize / 20 % 3].into(),
                };
                run.billing = Billing::Failed;
                if number % 20 == 3 {
                    run.company = seller.clone();
                }
                teller.record(&run);
            }
            6 => {
                run.company = seller.clone();
                run.billing = Billing::Owner;
                teller.record(&run);
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
                teller.record(&run);
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
        let is_excused = matches!(
            row.text_opt("blame").unwrap().as_deref(),
            Some("caller" | "host")
        );
        sum.excused += i64::from(is_excused);
        sum.own_excused += i64::from(is_excused && is_own);
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

/// A company's run of a product of its own.
fn run(caller: &CompanyId, product: &Product, started_at: Timestamp, duration_us: i64) -> Run {
    Run {
        id: ExecutionId::generate_at(started_at),
        company: caller.clone(),
        seller: caller.clone(),
        product: product.clone(),
        purchase: None,
        price: None,
        actor: Actor::Key(KeyId::generate()),
        request: RequestId::generate_at(started_at),
        outcome: Outcome::Succeeded,
        billing: Billing::Owner,
        rows: 2,
        bytes: 10,
        started_at,
        duration_us,
    }
}

fn noon(date: &str) -> Timestamp {
    Timestamp::parse(&format!("{date}T12:00:00Z")).unwrap()
}

/// From the first date of all to the end of 2026.
fn ever() -> Span {
    Span {
        from: Timestamp::from_micros(0),
        to: noon("2027-01-01").day_start(),
    }
}

/// What a company runs is kept by date for 400 days, and its newest rows; what was before stands on the first date of its month, and no run is missing.
/// Others' dates stay.
#[tokio::test]
async fn old_dates_become_months() {
    const DATES: [&str; 9] = [
        "2024-12-31",
        "2025-01-01",
        "2025-01-15",
        "2025-01-31",
        "2025-02-01",
        "2025-02-02",
        "2025-02-03",
        "2025-02-28",
        "2026-03-09",
    ];
    let now = noon("2026-03-10");
    for store in stores().await {
        let db = &store.db;
        let (busy, quiet) = (company(db, "busy").await, company(db, "quiet").await);
        let teller = Teller::open(db).await.unwrap();
        let of_busy = Product::Asset(AssetId::generate());
        let of_quiet = Product::Asset(AssetId::generate());
        for date in DATES {
            teller.record(&run(&busy.company.id, &of_busy, noon(date), 1_000));
            teller.record(&run(&quiet.company.id, &of_quiet, noon(date), 1_000));
        }
        // Only whoever still calls gets more rows.
        let key = Actor::from(busy.key.id.clone());
        teller.count_use(Asked {
            actor: &key,
            company: &busy.company.id,
            route: "/assets",
            at: now,
            failed: false,
            admitted: true,
        });
        teller.flush().await;
        let shown = async |product: &Product| -> Vec<String> {
            let mut read = db.read().await.unwrap();
            let by_day = uses::by_day(&mut read, product.id(), ever()).await.unwrap();
            let days = by_day.into_iter();
            days.map(|(day, uses)| format!("{} {}", day.date(), uses.runs()))
                .collect()
        };
        let keep = async |rows_max: i64| days::keep(db, rows_max, now).await.unwrap();
        let whole = async || {
            let (mut read, seller) = (db.read().await.unwrap(), CompanyId::generate());
            let over = uses::over(&mut read, &seller, of_busy.id(), ever()).await;
            over.unwrap()
        };
        let before = whole().await;
        assert_eq!((before.succeeded, before.rows), (9, 18), "{}", store.name);
        keep(days::ROWS_KEPT).await;
        let kept = [
            "2024-12-01 1",
            "2025-01-01 3",
            "2025-02-01 2",
            "2025-02-03 1",
            "2025-02-28 1",
            "2026-03-09 1",
        ];
        assert_eq!(shown(&of_busy).await, kept, "{}", store.name);

        // A store that was away is told late.
        let late = run(&busy.company.id, &of_busy, noon("2025-01-20"), 1_000);
        teller.record(&late);
        teller.flush().await;
        keep(3).await;
        let kept = [&kept[..1], &["2025-01-01 4"][..], &kept[2..]].concat();
        assert_eq!(shown(&of_busy).await, kept, "{}", store.name);
        for (rows_max, february) in [
            (2, &["2025-02-01 3", "2025-02-28 1"][..]),
            (1, &["2025-02-01 4"][..]),
            (1, &["2025-02-01 4"][..]),
        ] {
            keep(rows_max).await;
            let kept = [&kept[..2], february, &kept[5..]].concat();
            assert_eq!(shown(&of_busy).await, kept, "{} {rows_max}", store.name);
        }
        let after = whole().await;
        let one_more = Uses {
            succeeded: 10,
            own_succeeded: 10,
            rows: 20,
            duration_us: 10_000,
            own_duration_us: 10_000,
            ..before
        };
        assert_eq!(after, one_more, "{}", store.name);
        let all = DATES.map(|date| format!("{date} 1"));
        assert_eq!(shown(&of_quiet).await, all, "{}", store.name);
    }
}

/// How long runs took is kept for 400 days, and the newest rows of each seller; when the newest run of a product began is known for good.
#[tokio::test]
async fn old_durations_are_forgotten() {
    let now = noon("2026-03-10");
    for store in stores().await {
        let db = &store.db;
        let (busy, quiet) = (company(db, "busy").await, company(db, "quiet").await);
        let teller = Teller::open(db).await.unwrap();
        let sold = async |seller: &Founded, slug: &str| {
            let (id, written) = (AssetId::generate(), support::asset(slug, slug));
            let (seller, user) = (&seller.company.id, &seller.user.id);
            let inserted = db.write(async |write| {
                products::insert(write, &id, seller, user, &written, now).await
            });
            inserted.await.unwrap();
            Product::Asset(id)
        };
        let used = sold(&busy, "used").await;
        let former = sold(&busy, "former").await;
        let others = sold(&quiet, "others").await;
        for (product, date, duration_us) in [
            (&used, "2025-01-15", 1_000),
            (&used, "2026-03-08", 2_000),
            (&used, "2026-03-09", 3_000),
            (&former, "2025-01-15", 1_000),
            (&former, "2025-01-20", 1_000),
            (&others, "2026-03-01", 1_000),
            (&others, "2026-03-02", 1_000),
        ] {
            let caller = CompanyId::generate();
            teller.record(&run(&caller, product, noon(date), duration_us));
        }
        teller.flush().await;
        let p95 = async |product: &Product| {
            let mut read = db.read().await.unwrap();
            times::p95_us(&mut read, product.id(), ever())
                .await
                .unwrap()
        };
        let last = async |product: &Product| {
            let mut read = db.read().await.unwrap();
            let last_at = times::last_at(&mut read, product.id()).await.unwrap();
            last_at.map(|at| at.date())
        };
        let rows = async |product: &Product| {
            let row = sqlx::query(
                "SELECT COUNT(*) AS kept FROM usage_times WHERE product_id = $1 AND runs > 0",
            )
            .bind(product.id())
            .fetch_one(&mut *db.read().await.unwrap())
            .await;
            row.unwrap().number("kept").unwrap()
        };
        let all = async || (rows(&used).await, rows(&former).await, rows(&others).await);
        assert_eq!(all().await, (3, 2, 2), "{}", store.name);
        for (rows_max, expected) in [
            (times::ROWS_KEPT, (2, 0, 2)),
            (2, (2, 0, 2)),
            (1, (1, 0, 1)),
            (1, (1, 0, 1)),
        ] {
            times::keep(db, rows_max, now).await.unwrap();
            assert_eq!(all().await, expected, "{} {rows_max}", store.name);
            assert_eq!(p95(&used).await, Some(3_008), "{}", store.name);
            assert_eq!(p95(&former).await, None, "{}", store.name);
            let newest = [last(&used).await, last(&former).await];
            let dates = ["2026-03-09", "2025-01-20"].map(|date| Some(date.to_owned()));
            assert_eq!(newest, dates, "{}", store.name);
        }
        teller.record(&run(&busy.company.id, &former, now, 1_000));
        teller.flush().await;
        assert_eq!(last(&former).await, Some("2026-03-10".to_owned()));
        assert_eq!(p95(&former).await, Some(1_008), "{}", store.name);
    }
}
