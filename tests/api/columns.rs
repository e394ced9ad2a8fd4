//! The release policy at a page: whatever columns a connector answers with, the published ones leave or nothing.

use serde_json::json;
use souk_tests::{Answer, Client, Company, guests};

use crate::{host, unique};

/// An endpoint of `id` and `label` on a connector that answers with other columns when the filter says so, and
/// a buyer of it.
struct Sold {
    seller: Company,
    buyer: Company,
    endpoint: String,
    path: String,
    /// Of the buyer's endpoint key.
    client: Client,
}

const PRICE: i64 = 2;

async fn sold() -> Sold {
    let seller = host().await.company(&unique("columns")).await;
    seller.connector(guests::WRONG_COLUMNS).await;
    let connection = seller.nowhere("wrong-columns").await;
    let slug = unique("columns");
    let fields = json!({"slug": slug, "source": {"schema": "main", "table": "fixed"},
        "fields": [{"name": "id"}, {"name": "label"}], "order_by": ["id"], "filters": ["label"]});
    let endpoint = seller.endpoint(&connection, fields).await;
    seller.publish(&endpoint, PRICE as u64).await;

    let buyer = host().await.buyer(&unique("reader"), 100).await;
    let purchase = buyer.buy(&endpoint).await;
    Sold {
        path: format!("/endpoints/v1/{}/{slug}", seller.handle),
        client: buyer
            .client
            .with_key(&purchase.text("/data/endpoint_key/key")),
        seller,
        buyer,
        endpoint,
    }
}

impl Sold {
    async fn page(&self, label: &str) -> Answer {
        self.client
            .get(&format!("{}?label={label}", self.path))
            .await
    }
}

/// The published columns are shown and paid for, by a buyer's endpoint key.
fn assert_page(answer: Answer) {
    let page = answer.expect(200);
    assert_eq!(
        page.at("/data/response/data"),
        &json!([{"id": 1, "label": "shown"}])
    );
    assert_eq!(page.at("/data/service/billing/credits_used"), &json!(PRICE));
}

/// A column more, fewer, under another name or in another place: the page is an error that shows nothing of it and
/// costs nothing, and the next page is served. Which column it is, its seller is told, and nobody else.
#[tokio::test]
async fn a_page_with_other_columns_than_the_published_ones_is_withheld() {
    let sold = sold().await;
    let before = sold.buyer.balance().await;
    assert_page(sold.page("good").await);
    assert_eq!(sold.buyer.balance().await, before - PRICE);

    let own = sold
        .seller
        .path(&format!("/endpoints/{}/execute", sold.endpoint));
    for (label, differs) in [
        ("extra", "\"secret\" was not asked for"),
        ("fewer", "\"label\" is missing"),
        (
            "renamed",
            "\"label\" is missing; \"secret\" was not asked for",
        ),
        ("swapped", "they came in another order, or more than once"),
        ("none", "\"id\", \"label\" are missing"),
    ] {
        let before = sold.buyer.balance().await;
        let own = format!("{own}?label={label}");
        let (bought, own) = (sold.page(label).await, sold.seller.client.get(&own).await);
        for (answer, told) in [(bought, json!(null)), (own, json!(differs))] {
            let refusal = answer.expect_error(502, "SOURCE_ERROR");
            let body = refusal.body.to_string();
            assert_eq!(refusal.at("/error/details/blame"), "source", "{body}");
            assert_eq!(refusal.at("/error/details/reason"), "bad_answer", "{body}");
            assert_eq!(refusal.at("/error/details/charged"), false, "{body}");
            assert_eq!(refusal.at("/error/details/source_message"), &told, "{body}");
            assert!(
                refusal
                    .text("/error/message")
                    .contains("other columns than the published ones"),
                "{body}"
            );
            for value in ["hidden", "shown"] {
                assert!(!body.contains(value), "{label}: {body}");
            }
            assert_eq!(
                body.contains("secret"),
                told.to_string().contains("secret"),
                "{label}: {body}"
            );
        }
        assert_eq!(sold.buyer.balance().await, before, "{label}");
        assert_page(sold.page("good").await);
        assert_eq!(sold.buyer.balance().await, before - PRICE);
    }
}
