//! How fast lists, search and figures are where there is much: 100,000 products, 1,000,000 executions. A command of its own:
//! `tests/load/figures store`. `SOUK_SPEED_PRODUCTS=1000` for fewer, `SOUK_SPEED_STORE=postgres` for one store.

mod support;

use souk_domain::ids::{AssetId, CompanyId, UserId};
use souk_domain::products::{ProductStatus, ProductType};
use souk_domain::time::DAY;
use souk_store::products::{self, Filter, Sort};
use souk_store::sales::{self, Span};
use souk_store::search::{self, Order, Wanted};
use souk_store::{Db, Part, StoreError, db, marketplace, overview, prices, times, uses};
use std::time::{Duration, Instant};
use support::stores;

/// What a question may take, in a build for use.
const TARGET: Duration = Duration::from_millis(25);
/// Of each question.
const ROUNDS: usize = 21;
const EXECUTIONS: i64 = 1_000_000;

const SPORTS: [&str; 20] = [
    "football",
    "tennis",
    "basketball",
    "hockey",
    "rugby",
    "cricket",
    "golf",
    "cycling",
    "swimming",
    "rowing",
    "boxing",
    "judo",
    "sailing",
    "skiing",
    "biathlon",
    "handball",
    "volleyball",
    "baseball",
    "darts",
    "snooker",
];
const MEASURES: [&str; 30] = [
    "goals",
    "assists",
    "passes",
    "shots",
    "saves",
    "fouls",
    "cards",
    "corners",
    "attendance",
    "possession",
    "expected",
    "injuries",
    "transfers",
    "salaries",
    "odds",
    "winners",
    "losses",
    "rankings",
    "points",
    "rebounds",
    "steals",
    "blocks",
    "turnovers",
    "aces",
    "volleys",
    "distance",
    "speed",
    "heartrate",
    "sleep",
    "tickets",
];
const PLACES: [&str; 50] = [
    "amsterdam",
    "berlin",
    "barcelona",
    "lisbon",
    "madrid",
    "munich",
    "milan",
    "turin",
    "rome",
    "naples",
    "paris",
    "lyon",
    "marseille",
    "london",
    "manchester",
    "liverpool",
    "glasgow",
    "dublin",
    "brussels",
    "antwerp",
    "porto",
    "sevilla",
    "valencia",
    "bilbao",
    "vienna",
    "salzburg",
    "zurich",
    "basel",
    "geneva",
    "prague",
    "warsaw",
    "krakow",
    "budapest",
    "bucharest",
    "sofia",
    "athens",
    "istanbul",
    "kyiv",
    "oslo",
    "bergen",
    "stockholm",
    "malmo",
    "copenhagen",
    "aarhus",
    "helsinki",
    "tampere",
    "tallinn",
    "riga",
    "vilnius",
    "reykjavik",
];

struct Seeded {
    companies: Vec<CompanyId>,
}

/// Products of ten companies, the first of which has all but a tenth of them.
async fn seed(db: &Db, count: usize) -> Seeded {
    let mut companies = Vec::new();
    let mut users: Vec<UserId> = Vec::new();
    for number in 0..10 {
        let founded = support::company(db, &format!("seller-{number}")).await;
        companies.push(founded.company.id);
        users.push(founded.user.id);
    }
    let now = db::now();
    for batch in 0..count.div_ceil(500) {
        let seeded = db.write(async |write| -> Result<(), StoreError> {
            for number in (batch * 500)..((batch + 1) * 500).min(count) {
                let of = if number % 10 == 0 {
                    1 + number / 10 % 9
                } else {
                    0
                };
                let id = AssetId::generate();
                let (sport, measure) = (SPORTS[number % 20], MEASURES[number / 20 % 30]);
                let place = PLACES[number / 600 % 50];
                let name = format!(
                    "{measure} per match in {place} {sport} season {}",
                    number / 30_000 + 1990
                );
                let mut asset = support::asset(&name, &format!("asset-{number}"));
                asset.description = format!(
                    "How many {measure} there are, number {number}, by {}",
                    PLACES[number * 7 % 50]
                );
                asset.category = Some(format!("category {}", number % 40));
                asset.labels = format!(
                    r#"{{"industry_ids":[{}],"use_case_ids":[],"tags":["{}"]}}"#,
                    number % 20,
                    MEASURES[number * 3 % 30]
                );
                asset.details.sport = Some(sport.into());
                products::insert(write, &id, &companies[of], &users[of], &asset, now).await?;
                products::set_status(write, &companies[of], &id, ProductStatus::Published, now)
                    .await?;
            }
            Ok(())
        });
        seeded.await.unwrap();
    }
    Seeded { companies }
}

/// Executions over 90 dates of a hundred products by fifty buyers, and their counts.
async fn run(db: &Db, seller: &CompanyId) -> String {
    let today = db::now().day_start();
    let first = today.before(DAY * 89).micros();
    let written = db.write(async |write| -> Result<(), StoreError> {
        let numbers = format!("WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {})", EXECUTIONS - 1);
        let product = "(SELECT id FROM speed_products p WHERE p.number = n.i % 100)";
        for sql in [
            "CREATE TABLE speed_products (number BIGINT PRIMARY KEY, id TEXT NOT NULL)".to_owned(),
            format!("INSERT INTO speed_products SELECT ROW_NUMBER() OVER (ORDER BY created_at, id) - 1, id FROM products WHERE company_id = '{seller}' ORDER BY created_at, id LIMIT 100"),
            format!(
                "INSERT INTO executions (id, company_id, seller_id, product_type, product_id, status, billing, credits, rows_returned, bytes_returned, started_at, duration_us)
                 {numbers}
                 SELECT 'exe_' || n.i, 'cmp_' || (n.i % 50), '{seller}', 'asset', {product}, 'succeeded', 'charged', 2, 1, 10,
                        {first} + (n.i % 90) * 86400000000 + n.i, 1000 + n.i % 5000
                 FROM n"
            ),
            "INSERT INTO usage_days (company_id, day, product_id, product_type, seller_id, succeeded, failed, credits, rows_returned, duration_us)
             SELECT company_id, started_at - started_at % 86400000000, product_id, product_type, seller_id, COUNT(*), 0, SUM(credits), SUM(rows_returned), SUM(duration_us)
             FROM executions
             GROUP BY company_id, started_at - started_at % 86400000000, product_id, product_type, seller_id".to_owned(),
            "INSERT INTO usage_times (product_id, day, at_most_us, runs, last_at)
             SELECT product_id, started_at - started_at % 86400000000, (duration_us + 63) / 64 * 64, COUNT(*), MAX(started_at)
             FROM executions
             GROUP BY product_id, started_at - started_at % 86400000000, (duration_us + 63) / 64 * 64".to_owned(),
        ] {
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut **write).await?;
        }
        Ok(())
    });
    written.await.unwrap();
    let mut read = db.read().await.unwrap();
    let row = sqlx::query("SELECT id FROM speed_products WHERE number = 0")
        .fetch_one(&mut *read)
        .await
        .unwrap();
    souk_store::Fields::text(&row, "id").unwrap()
}

/// The median over the rounds of one question. One that takes too long is `missed`.
async fn median(
    what: &str,
    store: &str,
    missed: &mut Vec<String>,
    mut ask: impl AsyncFnMut(usize) -> i64,
) -> Duration {
    let mut took = Vec::new();
    let mut found = 0;
    for round in 0..ROUNDS {
        let begun = Instant::now();
        found = ask(round).await;
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    let median = took[ROUNDS / 2];
    println!(
        "{store:8} {:7.2} ms  (most {:7.2})  {what}: {found}",
        median.as_secs_f64() * 1e3,
        took[ROUNDS - 1].as_secs_f64() * 1e3
    );
    if median > TARGET {
        missed.push(format!("{store}: {what} took {median:.1?}"));
    }
    median
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement of minutes"]
async fn measure() {
    let count =
        std::env::var("SOUK_SPEED_PRODUCTS").map_or(100_000, |count| count.parse().unwrap());
    let mut missed = Vec::new();
    let only = std::env::var("SOUK_SPEED_STORE").ok();
    for store in stores().await {
        if only.as_ref().is_some_and(|only| only != store.name) {
            continue;
        }
        let db = &store.db;
        let begun = Instant::now();
        let Seeded { companies } = seed(db, count).await;
        println!(
            "{:8} {count} products indexed in {:.1} s",
            store.name,
            begun.elapsed().as_secs_f64()
        );
        let begun = Instant::now();
        search::learn(db).await.unwrap();
        println!(
            "{:8} their words learnt in {:.1} s",
            store.name,
            begun.elapsed().as_secs_f64()
        );
        let begun = Instant::now();
        let product = run(db, &companies[0]).await;
        println!(
            "{:8} {EXECUTIONS} executions in {:.1} s",
            store.name,
            begun.elapsed().as_secs_f64()
        );
        if store.name == "postgres" {
            // As its own housekeeping does after a while.
            let mut read = db.read().await.unwrap();
            sqlx::query("VACUUM ANALYZE")
                .execute(&mut *read)
                .await
                .unwrap();
        }
        let begun = Instant::now();
        search::ranks::rank(db, db::now()).await.unwrap();
        println!(
            "{:8} ranked in {:.2} s",
            store.name,
            begun.elapsed().as_secs_f64()
        );
        let (buyer, seller) = (&companies[9], &companies[0]);
        let now = db::now();
        let mut read = db.read().await.unwrap();
        let mut searches = Vec::new();
        let text = |text: &'static str| Wanted {
            text: Some(text),
            ..Wanted::default()
        };
        for (what, wanted, order) in [
            ("newest of all", Wanted::default(), Order::Relevance),
            ("popular of all", Wanted::default(), Order::Popular),
            ("trending of all", Wanted::default(), Order::Trending),
            ("by name of all", Wanted::default(), Order::Name),
            (
                "a sport",
                Wanted {
                    sport: Some("tennis"),
                    ..Wanted::default()
                },
                Order::Recent,
            ),
            (
                "a category, popular",
                Wanted {
                    category: Some("category 7"),
                    ..Wanted::default()
                },
                Order::Popular,
            ),
            ("two words", text("goals berlin"), Order::Relevance),
            ("three words", text("goals berlin tennis"), Order::Relevance),
            (
                "a word and a beginning",
                text("assists amst"),
                Order::Relevance,
            ),
            (
                "two words, both mistyped",
                text("gaols brelin"),
                Order::Relevance,
            ),
            ("a rare word", text("number 77777"), Order::Relevance),
            ("a word in 5,000", text("goals"), Order::Relevance),
            ("a word in all", text("season"), Order::Relevance),
            ("a word in 5,000, popular", text("goals"), Order::Popular),
            (
                "two words of a sport",
                Wanted {
                    sport: Some("tennis"),
                    ..text("goals berlin")
                },
                Order::Relevance,
            ),
            (
                "an industry",
                Wanted {
                    industry: Some(7),
                    ..Wanted::default()
                },
                Order::Recent,
            ),
        ] {
            let wanted = Wanted {
                product_type: Some(ProductType::Asset),
                ..wanted
            };
            let took = median(what, store.name, &mut missed, async |_| {
                let listed =
                    marketplace::list(&mut read, buyer, &wanted, order, now, Part::first(20));
                let (listed, total) = listed.await.unwrap();
                let ids = listed.iter().map(|listing| listing.id.as_str());
                marketplace::stats(&mut read, ids, now).await.unwrap();
                total
            });
            searches.push(took.await);
        }
        searches.sort_unstable();
        println!(
            "{:8} {:7.2} ms  median of all searches",
            store.name,
            searches[searches.len() / 2].as_secs_f64() * 1e3
        );
        for (what, offset) in [("list of 50", 0), ("list of 50, page 1000", 49_950)] {
            let listed = median(what, store.name, &mut missed, async |_| {
                let (filter, part) = (Filter::default(), Part::new(50, offset));
                let listed = products::list::<AssetId>(
                    &mut read,
                    seller,
                    &filter,
                    Sort::CreatedAt,
                    true,
                    part,
                );
                let (rows, total) = listed.await.unwrap();
                let ids = rows.iter().map(|row| row.id.as_str());
                prices::active_of(&mut read, ids, now).await.unwrap();
                total
            });
            listed.await;
        }
        let to = now.day_start().after(DAY);
        let span = |days: u32| Span {
            from: to.before(DAY * days),
            to,
        };
        for days in [7, 30, 90] {
            let before = Span {
                from: span(days).from.before(DAY * days),
                to: span(days).from,
            };
            let what = format!("dashboard of {days} dates");
            let asked = median(&what, store.name, &mut missed, async |_| {
                sales::over(&mut read, seller, &[span(days), before])
                    .await
                    .unwrap();
                sales::by_product(&mut read, seller, span(days))
                    .await
                    .unwrap()
                    .len() as i64
            });
            asked.await;
        }
        median(
            "statistics of a product, 30 dates",
            store.name,
            &mut missed,
            async |_| {
                let uses = uses::over(&mut read, seller, &product, span(30))
                    .await
                    .unwrap();
                uses::by_day(&mut read, &product, span(30)).await.unwrap();
                times::p95_us(&mut read, &product, span(30)).await.unwrap();
                times::last_at(&mut read, &product).await.unwrap();
                uses.succeeded
            },
        )
        .await;
        median("summary", store.name, &mut missed, async |_| {
            overview::counts(&mut read, seller, now)
                .await
                .unwrap()
                .assets
        })
        .await;
    }
    assert!(cfg!(debug_assertions) || missed.is_empty(), "{missed:#?}");
}
