//! Statements of companies that have many lines: every line is on its page, as often as it is counted, whether its hour is counted already or not.

use crate::support::{Market, assert_settled, grant, market, mature, stores};
use souk_domain::ids::{AssetId, CompanyId, KeyId};
use souk_domain::money::UsdCents;
use souk_domain::products::Product;
use souk_domain::time::{DAY, HOUR, Timestamp};
use souk_store::payouts::{self, Method, PayoutStatus};
use souk_store::refunds::refund;
use souk_store::statements::{self, LineFilter, LineType, ListError, counted};
use souk_store::teller::Teller;
use souk_store::{Db, Fields, Part, StoreError, db};
use std::time::Duration;

const KINDS: [LineType; 7] = [
    LineType::TopUp,
    LineType::Grant,
    LineType::Charge,
    LineType::Refund,
    LineType::Earning,
    LineType::Payout,
    LineType::Adjustment,
];

/// A line as it should be: when, which one, and of what.
struct Expected {
    at: i64,
    id: String,
    kind: LineType,
    product: Option<String>,
}

/// A buyer of two products of one seller, who buys something itself, gives some back, and has one payout paid and one returned.
async fn trade(db: &Db, teller: &Teller) -> [Market; 3] {
    let first = market(db, 1_000).await;
    let second = Market {
        buyer: first.buyer.clone(),
        seller: first.seller.clone(),
        product: Product::Asset(AssetId::generate()),
        actor: first.actor.clone(),
    };
    let third = Market {
        buyer: first.seller.clone(),
        seller: CompanyId::generate(),
        product: Product::Asset(AssetId::generate()),
        actor: first.actor.clone(),
    };
    grant(db, &third.buyer, 200).await;
    let mut charges = Vec::new();
    for number in 0..24_i64 {
        let market = match number % 4 {
            0 | 1 => &first,
            2 => &second,
            _ => &third,
        };
        let posted = market.charge(teller, 5 + number).await;
        charges.push(posted.transaction.unwrap());
    }
    for charge in charges.iter().step_by(5) {
        let refunded = db
            .write(async |write| refund(write, charge, None, "wrong", None, db::now()).await)
            .await;
        refunded.unwrap();
    }
    grant(db, &first.buyer, 7).await;
    pay(db, &first.seller).await;
    assert_settled(db, teller).await;
    [first, second, third]
}

/// All that is earned becomes payable; ten dollars are paid, and ten come back.
async fn pay(db: &Db, seller: &CompanyId) {
    let actor = KeyId::generate().into();
    let done = db.write(async |write| -> Result<_, StoreError> {
        let now = db::now();
        let before = now.after(HOUR);
        mature(write, seller, before, now).await?;
        let method = Method {
            kind: "paypal".into(),
            account_holder: "S".into(),
            sealed_destination: vec![1],
            last4: "1234".into(),
        };
        payouts::set_method(write, seller, &method, now).await?;
        for end in [PayoutStatus::Paid, PayoutStatus::Cancelled] {
            let amount = UsdCents::new(1_000);
            let asked = payouts::request(write, seller, Some(amount), amount, &actor, now).await;
            let id = asked.unwrap().id;
            let ended = payouts::advance(write, &id, end, None, None, &actor, now).await;
            ended.unwrap();
        }
        Ok(())
    });
    done.await.unwrap();
}

/// Moves all transactions apart, by 37 minutes each, some of them together.
async fn spread(db: &Db, from: Timestamp) {
    let moved = db.write(async |write| -> Result<_, StoreError> {
        let rows = sqlx::query("SELECT id FROM transactions ORDER BY created_at, id")
            .fetch_all(&mut **write)
            .await?;
        for (number, row) in rows.iter().enumerate() {
            let steps = number as u64 / 3 * 2 + number as u64 % 3 / 2;
            let at = from.after(Duration::from_secs(37 * 60) * steps as u32);
            sqlx::query("UPDATE transactions SET created_at = $2 WHERE id = $1")
                .bind(row.text("id")?)
                .bind(at.micros())
                .execute(&mut **write)
                .await?;
        }
        Ok(rows.len())
    });
    assert!(moved.await.unwrap() > 30);
}

/// The lines of a company, by looking at each transaction.
async fn all_lines(db: &Db, company: &CompanyId) -> Vec<Expected> {
    let mut read = db.read().await.unwrap();
    let rows = sqlx::query(
        "SELECT id, type, company_id, seller_id, product_id, created_at FROM transactions",
    )
    .fetch_all(&mut *read)
    .await
    .unwrap();
    let mut lines = Vec::new();
    for row in &rows {
        let (id, kind) = (row.text("id").unwrap(), row.text("type").unwrap());
        let expected = |id: String, kind: LineType| Expected {
            at: row.number("created_at").unwrap(),
            id,
            kind,
            product: row.text_opt("product_id").unwrap(),
        };
        if row.text("company_id").unwrap() == company.as_str() {
            let kind = match kind.as_str() {
                "maturity" | "payout_paid" => continue,
                "payout_return" => LineType::Payout,
                kind => LineType::parse(kind).unwrap(),
            };
            lines.push(expected(id, kind));
        } else if row.text_opt("seller_id").unwrap().as_deref() == Some(company.as_str()) {
            let kind = match kind.as_str() {
                "charge" => LineType::Earning,
                _ => LineType::Refund,
            };
            lines.push(expected(id.replace("txn_", "ern_"), kind));
        }
    }
    lines
}

/// Page by page, newest first, each line is there once, and none else, and their number is told.
async fn check(db: &Db, company: &CompanyId, filter: &LineFilter) -> usize {
    let is_wanted = |line: &Expected| {
        filter.kind.is_none_or(|kind| kind == line.kind)
            && filter.from.is_none_or(|from| line.at >= from.micros())
            && filter.to.is_none_or(|to| line.at < to.micros())
            && (filter.product_id.is_none() || filter.product_id == line.product)
    };
    let expected = all_lines(db, company).await;
    let expected = expected.iter().filter(|line| is_wanted(line));
    let mut expected: Vec<(i64, String)> =
        expected.map(|line| (line.at, line.id.clone())).collect();
    let mut read = db.snapshot().await.unwrap();
    let mut found: Vec<(i64, String)> = Vec::new();
    loop {
        let part = Part::new(5, found.len() as i64);
        let listed = statements::list(&mut read, company, filter, part).await;
        let (lines, total) = listed.unwrap();
        assert_eq!(total, expected.len() as i64, "{filter:?}");
        if lines.is_empty() {
            break;
        }
        let lines = lines.into_iter();
        found.extend(lines.map(|line| (line.transaction.created_at.micros(), line.id)));
    }
    assert!(found.is_sorted_by_key(|(at, _)| -at), "{filter:?}");
    // Within one instant a store sorts ids as its collation has it.
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "{filter:?}");
    expected.len()
}

/// Of every type, product and period, before hours are counted and after.
#[tokio::test]
async fn every_line_is_counted_and_on_its_page() {
    for store in stores().await {
        let db = &store.db;
        let teller = Teller::open(db).await.unwrap();
        let [first, second, third] = trade(db, &teller).await;
        let now = db::now();
        let begins =
            Timestamp::from_micros(now.micros() / 3_600_000_000 * 3_600_000_000).before(HOUR * 40);
        spread(db, begins).await;
        let at = |minutes: u64| Some(begins.after(Duration::from_secs(minutes * 60)));
        let periods = [
            (None, None),
            (at(74), at(600)),
            (at(120), at(360)),
            (at(121), at(130)),
            (at(900), None),
            (at(600), at(120)),
        ];
        let mut filters = Vec::new();
        for (from, to) in periods {
            for kind in KINDS.map(Some).into_iter().chain([None]) {
                filters.push(LineFilter {
                    kind,
                    from,
                    to,
                    product_id: None,
                });
            }
        }
        for kind in [None, Some(LineType::Earning), Some(LineType::Charge)] {
            for market in [&first, &second, &third] {
                filters.push(LineFilter {
                    kind,
                    product_id: Some(market.product.id().to_owned()),
                    ..LineFilter::default()
                });
            }
        }
        let companies = [&first.buyer, &first.seller];
        let (mut checked, mut hours) = (Vec::new(), 0);
        for counted_at in [begins.after(HOUR * 3), begins.after(HOUR * 9), now] {
            let mut lines = 0;
            for company in companies {
                for filter in &filters {
                    lines += check(db, company, filter).await;
                }
            }
            checked.push(lines);
            while counted::count(db, counted_at).await.unwrap() {}
            let before = std::mem::replace(&mut hours, counted_hours(db).await);
            assert!(before < hours, "{} {before} {hours}", store.name);
        }
        for company in companies {
            for filter in &filters {
                check(db, company, filter).await;
            }
        }
        assert!(
            checked
                .iter()
                .all(|lines| *lines == checked[0] && *lines > 150)
        );

        // What comes now is in no hour that is over, and nothing is counted twice.
        let all = LineFilter::default();
        let before = check(db, &first.buyer, &all).await;
        first.charge(&teller, 1).await;
        teller.flush().await;
        assert!(!counted::count(db, now).await.unwrap(), "{}", store.name);
        assert_eq!(counted_hours(db).await, hours);
        assert_eq!(check(db, &first.buyer, &all).await, before + 1);
    }
}

/// Hours that a clock which was ahead has counted go on: no line is missing on its page, and they are counted anew when they are over.
#[tokio::test]
async fn a_clock_that_was_ahead_hides_no_line() {
    for store in stores().await {
        let db = &store.db;
        let teller = Teller::open(db).await.unwrap();
        let market = market(db, 100).await;
        market.charge(&teller, 4).await;
        teller.flush().await;
        let now = db::now();
        while counted::count(db, now.after(DAY * 3)).await.unwrap() {}
        market.charge(&teller, 5).await;
        teller.flush().await;
        let (buyer, all) = (&market.buyer, LineFilter::default());
        let listed = async |part: Part| {
            let mut read = db.snapshot().await.unwrap();
            let listed = statements::list(&mut read, buyer, &all, part).await;
            let (lines, total) = listed.unwrap();
            (lines.len(), total)
        };
        // What was granted, and two charges.
        for (limit, offset, expected) in [(10, 0, (3, 3)), (1, 2, (1, 3))] {
            let found = listed(Part::new(limit, offset)).await;
            assert_eq!(found, expected, "{} {offset}", store.name);
        }
        for counted_at in [now, now.after(HOUR * 3)] {
            while counted::count(db, counted_at).await.unwrap() {}
            assert_eq!(check(db, buyer, &all).await, 3, "{}", store.name);
        }
    }
}

async fn counted_hours(db: &Db) -> i64 {
    let row = sqlx::query("SELECT COUNT(*) AS hours FROM counted_lines")
        .fetch_one(&mut *db.read().await.unwrap())
        .await;
    row.unwrap().number("hours").unwrap()
}

/// Whoever has very many lines and wants few of them names a period; pages of all of them need none.
#[tokio::test]
async fn few_lines_among_very_many_need_a_period() {
    const MANY: i64 = statements::SEARCHED_MAX + 1;
    for store in stores().await {
        let market = market(&store.db, 10).await;
        let teller = Teller::open(&store.db).await.unwrap();
        market.charge(&teller, 4).await;
        teller.flush().await;
        let written = store.db.write(async |write| -> Result<_, StoreError> {
            for (company, earned, kind) in [
                (&market.buyer, 0_i64, "refund"),
                (&market.seller, 1, "charge"),
            ] {
                sqlx::query(
                    "INSERT INTO counted_lines (company_id, earned, type, hour, lines) VALUES ($1, $2, $3, 0, $4)",
                )
                .bind(company.as_str())
                .bind(earned)
                .bind(kind)
                .bind(MANY)
                .execute(&mut **write)
                .await?;
            }
            sqlx::query("INSERT INTO settings (name, value) VALUES ('lines_counted_until', '3600000000')")
                .execute(&mut **write)
                .await?;
            Ok(())
        });
        written.await.unwrap();
        let lately = Some(db::now().before(HOUR));
        let product = Some(market.product.id().to_owned());
        let list = async |company: &CompanyId, kind, from, product_id: &Option<String>| {
            let filter = LineFilter {
                kind,
                from,
                to: None,
                product_id: product_id.clone(),
            };
            let mut read = store.db.read().await.unwrap();
            let listed = statements::list(&mut read, company, &filter, Part::first(1)).await;
            listed.map(|(lines, total)| (lines.len(), total))
        };
        let (buyer, seller) = (&market.buyer, &market.seller);
        let all = list(seller, None, None, &None).await.unwrap();
        assert_eq!(all, (1, MANY + 1), "{}", store.name);
        let refused = list(seller, None, None, &product).await;
        assert!(matches!(refused, Err(ListError::TooMany(lines)) if lines == MANY + 1));
        let found = list(seller, None, lately, &product).await.unwrap();
        assert_eq!(found, (1, 1), "{}", store.name);
        let earnings = list(seller, Some(LineType::Earning), None, &None).await;
        assert_eq!(earnings.unwrap(), (1, MANY + 1), "{}", store.name);

        // A few charges among what was given back.
        let refused = list(buyer, Some(LineType::Charge), None, &None).await;
        assert!(matches!(refused, Err(ListError::TooMany(lines)) if lines == MANY + 1));
        let found = list(buyer, Some(LineType::Charge), lately, &None).await;
        assert_eq!(found.unwrap(), (1, 1), "{}", store.name);
        let grants = list(buyer, Some(LineType::Grant), None, &None).await;
        assert_eq!(grants.unwrap(), (1, 1), "{}", store.name);
    }
}
