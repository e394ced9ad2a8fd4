//! What a customer of an endpoint pays: a page with rows is charged, everything else is not.

use serde_json::json;
use souk_tests::{Client, Company, PgCluster};

use crate::{League, host, league, unique};

/// A buyer with 20 credits who bought the league's matches for 3 credits a page.
struct Customer {
    league: League,
    buyer: Company,
    slug: String,
    /// With the endpoint key that came with the purchase.
    feed: Client,
}

impl Customer {
    async fn new() -> Customer {
        let league = league().await;
        let (endpoint, slug) = league.matches(3).await;
        let buyer = host().await.buyer(&unique("customer"), 20).await;
        let bought = buyer.buy(&endpoint).await;
        let feed = buyer
            .client
            .with_key(&bought.text("/data/endpoint_key/key"));
        Customer {
            league,
            buyer,
            slug,
            feed,
        }
    }

    fn path(&self, query: &str) -> String {
        let handle = &self.league.seller.handle;
        format!("/endpoints/v1/{handle}/{}?{query}", self.slug)
    }
}

/// Every page with rows is charged to the company that bought, and is on its statement.
#[tokio::test]
async fn a_page_is_charged_to_the_customer() {
    let customer = Customer::new().await;
    let first = customer.feed.get(&customer.path("limit=2")).await;
    let first = first.expect(200);
    assert_eq!(first.at("/data/service/billing/credits_used"), 3);
    assert_eq!(customer.buyer.credits().await, (17, 0));
    let last = customer.path("start=248&limit=100");
    let last = customer.feed.get(&last).await.expect(200);
    assert_eq!(last.at("/data/service/pagination/has_more"), false);
    assert_eq!(customer.buyer.credits().await, (14, 0));

    let path = customer.buyer.path("/credits/transactions?type=charge");
    let statement = customer.buyer.client.get(&path).await.expect(200);
    let amounts: Vec<_> = (0..2)
        .map(|row| statement.at(&format!("/data/{row}/amount_credits")).clone())
        .collect();
    assert_eq!(amounts, [-3, -3], "{}", statement.body);
}

/// A page beyond the last row has nothing to pay for.
#[tokio::test]
async fn an_empty_page_is_free() {
    let customer = Customer::new().await;
    let beyond = customer.feed.get(&customer.path("start=250&limit=5")).await;
    let beyond = beyond.expect(200);
    assert_eq!(beyond.at("/data/response/data"), &json!([]));
    assert_eq!(beyond.at("/data/service/billing/reason"), "empty_page");
    assert_eq!(customer.buyer.credits().await, (20, 0));
}

/// A page that fails is not charged, and nothing stays held for it.
#[tokio::test]
async fn a_page_that_fails_is_free() {
    let customer = Customer::new().await;
    let source = PgCluster::shared().await;
    let source = source.client(&customer.league.database).await;
    let rename = |from: &str, to: &str| format!("ALTER TABLE {from} RENAME TO {to}");
    source
        .batch_execute(&rename("matches", "hidden_matches"))
        .await
        .expect("DDL");
    let refusal = customer.feed.get(&customer.path("limit=2")).await;
    let refusal = refusal.expect_error(502, "SOURCE_ERROR");
    assert_eq!(refusal.at("/error/details/charged"), false);
    let said = refusal.text("/error/message");
    assert!(
        !said.contains("relation") && !said.contains("matches"),
        "{said}"
    );
    assert_eq!(customer.buyer.credits().await, (20, 0));
    source
        .batch_execute(&rename("hidden_matches", "matches"))
        .await
        .expect("DDL");
    let page = customer.feed.get(&customer.path("limit=2")).await;
    page.expect(200);
    assert_eq!(customer.buyer.credits().await, (17, 0));
}

/// Who has not enough credits for a page gets none.
#[tokio::test]
async fn a_page_beyond_the_balance_is_refused() {
    let customer = Customer::new().await;
    for _ in 0..6 {
        customer
            .feed
            .get(&customer.path("limit=1"))
            .await
            .expect(200);
    }
    let refusal = customer.feed.get(&customer.path("limit=1")).await;
    refusal.expect_error(402, "INSUFFICIENT_CREDITS");
    assert_eq!(customer.buyer.credits().await, (2, 0));
}

/// A preview is of the rows that were stored when the product was published, whatever the source says since.
#[tokio::test]
async fn a_preview_shows_what_was_stored() {
    let customer = Customer::new().await;
    let source = PgCluster::shared().await;
    let source = source.client(&customer.league.database).await;
    let found = customer
        .buyer
        .client
        .get(&customer.buyer.path("/purchases"))
        .await;
    let endpoint = found.expect(200).text("/data/0/product_id");
    let path = format!("/marketplace/products/{endpoint}/preview");
    let before = customer.buyer.client.get(&path).await.expect(200);
    source
        .batch_execute("UPDATE matches SET team = 'Renamed'")
        .await
        .expect("DML");
    let after = customer.buyer.client.get(&path).await.expect(200);
    let rows = after.at("/data/response/data");
    assert_eq!(rows, before.at("/data/response/data"));
    assert_eq!(rows.as_array().map(Vec::len), Some(3), "{rows}");
    assert!(!rows.to_string().contains("Renamed"), "{rows}");
    let live = customer
        .feed
        .get(&customer.path("limit=1"))
        .await
        .expect(200);
    assert_eq!(live.at("/data/response/data/0/team"), "Renamed");
}
