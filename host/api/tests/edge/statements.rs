//! Statements and refunds: every side sees its own view, and nothing is given back twice.

use crate::world::{World, now, request};
use axum::body::Body;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{poll, stream};
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use souk_domain::ids::CompanyId;
use souk_domain::time::{DAY, HOUR};
use souk_store::{StoreError, maturity};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;
use tower::ServiceExt;

async fn text(world: &World, key: &str, path: &str, accept: &str) -> (String, String) {
    let request = request(Method::GET, key, path).header("accept", accept);
    let response = world
        .router
        .clone()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let kind = response.headers()["content-type"].to_str().unwrap();
    let kind = kind.to_owned();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (kind, String::from_utf8(bytes.to_vec()).unwrap())
}

/// The seller gives back what a buyer paid: exactly, once, on both statements; nobody else can.
#[tokio::test]
async fn a_seller_refunds_once() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset(&acme).await;
    world.grant(&buyer, 10).await;
    let charge = world.charge(&buyer, &acme, &asset, 7).await;
    let earning = charge.replace("txn_", "ern_");
    let reason = json!({"reason": "=wrong, data"});
    let path = |rest: &str| format!("/credits/transactions/{rest}/refund");

    let refused = world
        .post(&buyer.key, &buyer.path(&path(&charge)), reason.clone())
        .await;
    refused.expect_error(404, "TRANSACTION_NOT_FOUND");
    let refused = world
        .post(&acme.key, &acme.path(&path(&earning)), json!({}))
        .await;
    refused.expect_error(400, "VALIDATION_ERROR");
    let refunded = world
        .post(&acme.key, &acme.path(&path(&earning)), reason.clone())
        .await
        .expect(201);
    assert_eq!(
        (
            refunded.at("/data/type"),
            refunded.at("/data/amount_credits"),
            refunded.at("/data/amount_usd_cents"),
            refunded.at("/data/reversal_of"),
            refunded.at("/data/balance_after_credits"),
        ),
        (
            &json!("refund"),
            &json!(-7),
            &json!(-280),
            &json!(earning),
            &Value::Null
        )
    );
    let shown = world
        .get(&acme.key, refunded.header("location"))
        .await
        .expect(200);
    assert_eq!(shown.at("/data"), refunded.at("/data"));
    for id in [&earning, &charge] {
        world
            .post(&acme.key, &acme.path(&path(id)), reason.clone())
            .await
            .expect_error(409, "INVALID_STATE");
    }
    let again = world
        .post(&world.platform, &buyer.path(&path(&charge)), reason)
        .await;
    again.expect_error(409, "INVALID_STATE");

    let seen = world
        .get(
            &buyer.key,
            &buyer.path(&format!("/credits/transactions?product_id={asset}")),
        )
        .await
        .expect(200);
    assert_eq!(
        (
            seen.at("/meta/total"),
            seen.at("/data/0/amount_credits"),
            seen.at("/data/0/balance_after_credits"),
            seen.at("/data/0/reversal_of"),
            seen.at("/data/0/api_key_id"),
        ),
        (
            &json!(2),
            &json!(7),
            &json!(10),
            &json!(charge),
            &Value::Null
        )
    );
    let balance = world.get(&buyer.key, &buyer.path("/credits")).await;
    assert_eq!(balance.at("/data/balance_credits"), 10);
    assert_eq!(balance.at("/data/total_spent_credits_30d"), 0);
    let grant = world
        .get(&buyer.key, &buyer.path("/credits/transactions?type=grant"))
        .await
        .text("/data/0/id");
    world
        .post(
            &world.platform,
            &buyer.path(&path(&grant)),
            json!({"reason": "x"}),
        )
        .await
        .expect_error(409, "INVALID_STATE");
}

/// A statement's times run as its balance does, whichever request was begun first: what is booked while the body of a grant or a refund is on its way is
/// earlier than that.
#[tokio::test]
async fn what_is_booked_later_is_later_on_the_statement() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset(&acme).await;
    world.grant(&buyer, 10).await;
    let charge = world.charge(&buyer, &acme, &asset, 7).await;
    let grants = format!("/admin/companies/{}/credits/grants", buyer.id);
    let refund = buyer.path(&format!("/credits/transactions/{charge}/refund"));
    for (path, body) in [
        (grants, json!({"credits": 5, "reason": "late"})),
        (refund, json!({"reason": "wrong data"})),
    ] {
        let (begin, begun) = oneshot::channel();
        let (arrive, arrives) = oneshot::channel::<()>();
        let late = stream::once(async move {
            begin.send(()).unwrap();
            arrives.await.unwrap();
            Ok::<_, Infallible>(Bytes::from(body.to_string()))
        });
        let sent = request(Method::POST, &world.platform, &path)
            .header("content-type", "application/json")
            .body(Body::from_stream(late))
            .unwrap();
        let meanwhile = async {
            begun.await.unwrap();
            world.charge(&buyer, &acme, &asset, 1).await;
            arrive.send(()).unwrap();
        };
        let (answer, ()) = tokio::join!(world.send(sent), meanwhile);
        answer.expect(201);
    }
    let path = buyer.path("/credits/transactions");
    let statement = world.get(&buyer.key, &path).await.expect(200);
    let lines = statement.at("/data").as_array().unwrap().iter();
    let lines = lines.map(|line| {
        let balance = line["balance_after_credits"].as_i64();
        (line["type"].as_str().unwrap(), balance.unwrap())
    });
    let expected = [
        ("refund", 13),
        ("charge", 6),
        ("grant", 7),
        ("charge", 2),
        ("charge", 3),
        ("grant", 10),
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected, "{}", statement.body);
}

/// What has become payable is given back all the same, and platform staff may do it.
#[tokio::test]
async fn a_matured_share_is_given_back() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset(&acme).await;
    world.grant(&buyer, 10).await;
    let charge = world.charge(&buyer, &acme, &asset, 5).await;
    let seller = CompanyId::parse(&acme.id).unwrap();
    let matured = world
        .db
        .write(async |write| {
            let later = now().after(HOUR);
            let seen = maturity::Seen::of(write, &seller, later, now()).await?;
            maturity::mature(write, &seller, &seen, now()).await
        })
        .await
        .unwrap();
    assert_eq!(matured.unwrap().amount.get(), 200);
    world
        .post(
            &world.platform,
            &buyer.path(&format!("/credits/transactions/{charge}/refund")),
            json!({"reason": "complaint"}),
        )
        .await
        .expect(201);
    let today = now().date();
    let books = world
        .get(
            &world.platform,
            &format!("/admin/ledger/reconciliation?date={today}"),
        )
        .await
        .expect(200);
    assert_eq!(books.at("/data/balanced"), true, "{}", books.body);
    let closing = json!({
        "platform_promo": -500, "platform_revenue": 0, "buyer": 500, "seller_pending": 0, "seller_payable": 0,
    });
    assert_eq!(books.at("/data/day/closing_usd_cents"), &closing);
    let booked: Vec<_> = books
        .at("/data/day/booked")
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(
        booked[0],
        &json!({"type": "charge", "transactions": 1, "amount_credits": -5, "amount_usd_cents": 250})
    );
    let before = now().before(DAY).date();
    let books = world
        .get(
            &world.platform,
            &format!("/admin/ledger/reconciliation?date={before}"),
        )
        .await
        .expect(200);
    assert_eq!(books.at("/data/day/booked"), &json!([]));
    assert_eq!(books.at("/data/day/closing_usd_cents/buyer"), 0);
    world
        .get(
            &world.platform,
            "/admin/ledger/reconciliation?date=yesterday",
        )
        .await
        .expect_error(400, "INVALID_PARAMETER");
}

/// A statement as CSV has the same lines; what a spreadsheet would calculate is a text.
#[tokio::test]
async fn a_statement_is_csv_on_demand() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset(&acme).await;
    world.grant(&buyer, 10).await;
    let charge = world.charge(&buyer, &acme, &asset, 3).await;
    world
        .post(
            &acme.key,
            &acme.path(&format!("/credits/transactions/{charge}/refund")),
            json!({"reason": "=HYPERLINK(\"x\"), sorry"}),
        )
        .await
        .expect(201);
    let path = buyer.path("/credits/transactions");
    let (kind, by_header) = text(&world, &buyer.key, &path, "text/csv").await;
    assert_eq!(kind, "text/csv; charset=utf-8");
    let (_, by_parameter) = text(&world, &buyer.key, &format!("{path}?format=csv"), "*/*").await;
    assert_eq!(by_header, by_parameter);
    let lines: Vec<_> = by_header.trim_end().split("\r\n").collect();
    assert_eq!(lines.len(), 4, "{by_header}");
    assert!(lines[0].starts_with("id,type,status,amount_credits,"));
    assert!(
        lines[1].contains(",\"'=HYPERLINK(\"\"x\"\"), sorry\","),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].starts_with(&format!("{charge},charge,posted,-3,-150,7,{asset},")),
        "{}",
        lines[2]
    );
    let (kind, _) = text(
        &world,
        &buyer.key,
        &format!("{path}?format=json"),
        "text/csv",
    )
    .await;
    assert_eq!(kind, "application/json");
    let (_, page) = text(
        &world,
        &buyer.key,
        &format!("{path}?format=csv&per_page=1&page=2"),
        "*/*",
    )
    .await;
    assert_eq!(page.trim_end().split("\r\n").nth(1), Some(lines[2]));
    let today = now().date();
    for (dates, total) in [
        (format!("start_date={today}&end_date={today}"), 3),
        (format!("end_date={today}T00:00:00Z"), 0),
    ] {
        let listed = world.get(&buyer.key, &format!("{path}?{dates}")).await;
        assert_eq!(listed.expect(200).at("/meta/total"), total, "{dates}");
    }
}

/// Whoever has more than a million lines names a period for those of one product, and is told so; pages of all of them need none.
#[tokio::test]
async fn few_lines_among_very_many_need_a_period() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset(&acme).await;
    world.grant(&buyer, 10).await;
    world.charge(&buyer, &acme, &asset, 3).await;
    let counted = world.db.write(async |write| -> Result<_, StoreError> {
        for sql in [
            "INSERT INTO counted_lines (company_id, earned, type, hour, lines) VALUES ($1, 0, 'charge', 0, 1000000)",
            "INSERT INTO settings (name, value) SELECT 'lines_counted_until', '3600000000' WHERE $1 <> ''",
        ] {
            let written = sqlx::query(sql).bind(&buyer.id);
            written.execute(&mut **write).await.unwrap();
        }
        Ok(())
    });
    counted.await.unwrap();
    let path = buyer.path("/credits/transactions");
    let all = world.get(&buyer.key, &path).await.expect(200);
    assert_eq!(all.at("/meta/total"), 1_000_002);
    let of_product = format!("{path}?product_id={asset}");
    let refused = world.get(&buyer.key, &of_product).await;
    let refused = refused.expect_error(400, "INVALID_PERIOD");
    let message = refused.text("/error/message");
    assert!(message.contains("1000002 lines"), "{message}");
    let today = now().before(DAY).date();
    let lately = format!("{of_product}&start_date={today}");
    let found = world.get(&buyer.key, &lately).await.expect(200);
    assert_eq!(found.at("/meta/total"), 1);
}

/// A long statement as CSV is written where the host computes for its company, and waits for a turn there; a short one is a worker's.
#[tokio::test]
async fn a_long_statement_is_written_in_a_lane() {
    const LINES: usize = 300;
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset(&acme).await;
    world.grant(&buyer, LINES as i64).await;
    let charges = (1..LINES).map(|_| world.charge(&buyer, &acme, &asset, 1));
    join_all(charges).await;

    // The company has as many lanes as cores, at the most.
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    let company = CompanyId::parse(&buyer.id).unwrap();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let taken = (0..=lanes).map(|_| {
        let gate = gate.clone();
        let wait = move || gate.lock().unwrap().recv().is_err();
        world.state.app().compute_in_turn(&company, wait)
    });
    let mut taken = pin!(join_all(taken));
    assert!(poll!(taken.as_mut()).is_pending());

    let path = buyer.path("/credits/transactions?format=csv");
    let page = format!("{path}&per_page=10");
    let (_, page) = text(&world, &buyer.key, &page, "*/*").await;
    assert_eq!(page.lines().count(), 11);
    let mut whole = pin!(text(&world, &buyer.key, &path, "*/*"));
    let early = tokio::time::timeout(Duration::from_millis(500), whole.as_mut()).await;
    assert!(early.is_err());
    drop(open);
    let (_, whole) = whole.await;
    assert_eq!(whole.lines().count(), 1 + LINES);
    assert!(taken.await.into_iter().all(|waited| waited == Some(true)));
}
