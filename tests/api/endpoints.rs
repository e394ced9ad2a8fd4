//! Endpoints: pages with truthful `has_more`, published fields only, previews of three rows.

use serde_json::json;
use souk_tests::PgCluster;
use souk_tests::postgres::{GATED, Gate};

use crate::{host, league, unique};

/// Every row appears once, in order, and `has_more` is true exactly until the last page.
#[tokio::test]
async fn pages_are_whole_and_has_more_is_true_knowledge() {
    let league = league().await;
    let (endpoint, _) = league.matches(1).await;
    let path = league
        .seller
        .path(&format!("/endpoints/{endpoint}/execute"));
    let mut seen = Vec::new();
    let mut start = 0;
    loop {
        let page = league
            .seller
            .client
            .get(&format!("{path}?start={start}&limit=50"))
            .await
            .expect(200);
        let rows = page
            .at("/data/response/data")
            .as_array()
            .expect("rows")
            .clone();
        seen.extend(rows.iter().map(|row| row["id"].as_i64().expect("an id")));
        let paging = page.at("/data/service/pagination").clone();
        assert_eq!(paging["returned"], rows.len());
        start += 50;
        assert_eq!(paging["has_more"], start < 250, "{paging}");
        if paging["has_more"] == false {
            break;
        }
        assert_eq!(paging["next_start"], start);
    }
    assert_eq!(seen, (1..=250).collect::<Vec<i64>>());
    let beyond = league
        .seller
        .client
        .get(&format!("{path}?start=250"))
        .await
        .expect(200);
    assert_eq!(beyond.at("/data/response/data"), &json!([]));
}

/// Only the published fields leave, under their aliases, filtered by equality.
#[tokio::test]
async fn only_published_fields_leave() {
    let league = league().await;
    let (endpoint, _) = league.matches(1).await;
    let path = league
        .seller
        .path(&format!("/endpoints/{endpoint}/execute"));
    let page = league
        .seller
        .client
        .get(&format!("{path}?team=Celtic&limit=2"))
        .await
        .expect(200);
    assert_eq!(
        page.at("/data/response/data"),
        &json!([{"id": 2, "team": "Celtic", "scored": 2, "played_on": "2026-01-03"}, {"id": 5, "team": "Celtic", "scored": 0, "played_on": "2026-01-06"}])
    );
    assert!(!page.body.to_string().contains("hidden"));
    league
        .seller
        .client
        .get(&format!("{path}?secret=x"))
        .await
        .expect_error(400, "INVALID_PARAMETER");
    league
        .seller
        .client
        .get(&format!("{path}?id=seven"))
        .await
        .expect_error(400, "INVALID_PARAMETER");
    league
        .seller
        .client
        .get(&format!("{path}?limit=1001"))
        .await
        .expect_error(400, "INVALID_PARAMETER");
    league
        .seller
        .client
        .get(&format!("{path}?start=-1"))
        .await
        .expect_error(400, "INVALID_PARAMETER");
}

/// A preview is always the same three rows and costs nothing.
#[tokio::test]
async fn a_preview_is_three_stored_rows() {
    let league = league().await;
    let (endpoint, _) = league.matches(4).await;
    let buyer = host().await.buyer(&unique("window"), 10).await;
    let path = format!("/marketplace/products/{endpoint}/preview");
    let first = buyer.client.get(&path).await.expect(200);
    let second = buyer.client.get(&path).await.expect(200);
    assert_eq!(
        first.at("/data/response/data"),
        second.at("/data/response/data")
    );
    assert_eq!(
        first.at("/data/response/data").as_array().map(Vec::len),
        Some(3)
    );
    assert_eq!(first.at("/data/service/billing/reason"), "preview");
    assert_eq!(buyer.balance().await, 10);
}

/// The URL that the API tells is the URL that works.
#[tokio::test]
async fn the_url_that_is_told_works() {
    let league = league().await;
    let (endpoint, slug) = league.matches(1).await;
    let told = league
        .seller
        .client
        .get(&league.seller.path(&format!("/endpoints/{endpoint}/url")))
        .await
        .expect(200);
    assert_eq!(told.at("/data/slug"), &json!(slug));
    league
        .seller
        .client
        .get(&told.text("/data/path_url"))
        .await
        .expect(200);
}

/// Each way to call an endpoint that the API lists works as it says: with the key that it asks for, at the URL, for so many credits.
#[tokio::test]
async fn the_ways_that_are_listed_work() {
    let league = league().await;
    let (endpoint, slug) = league.matches(2).await;
    let seller = &league.seller;
    let own = seller.path(&format!("/endpoints/{endpoint}"));
    let listed = seller
        .client
        .get(&format!("{own}/available-endpoints"))
        .await;
    let listed = listed.expect(200);
    let ways = listed.at("/data").as_array().expect("ways").clone();
    let names: Vec<_> = ways.iter().map(|way| way["name"].clone()).collect();
    assert_eq!(names, ["data", "preview", "execute", "test", "url"]);
    let buyer = host().await.buyer(&unique("caller"), 10).await;
    let bought = buyer.buy(&endpoint).await;
    let customer = buyer
        .client
        .with_key(&bought.text("/data/endpoint_key/key"));
    for way in &ways {
        let text = |name: &str| way[name].as_str().expect("a text").to_owned();
        let (name, url, path) = (text("name"), text("url"), text("path"));
        assert_eq!(text("method"), "GET");
        // What only the seller may do is refused to others.
        let (client, is_sellers) = match name.as_str() {
            "data" => (&customer, false),
            "preview" => (&buyer.client, false),
            _ => (&seller.client, true),
        };
        let before = buyer.balance().await;
        let answer = client.get(&url).await.expect(200);
        let after = buyer.balance().await;
        assert_eq!(json!(before - after), way["credits_per_request"], "{way}");
        client.get(&path).await.expect(200);
        match name.as_str() {
            "url" => assert_eq!(answer.at("/data/slug"), &json!(slug)),
            "test" => assert!(answer.at("/data").is_object(), "{}", answer.body),
            _ => assert!(
                answer.at("/data/response/data/0/team").is_string(),
                "{name}: {}",
                answer.body
            ),
        }
        if is_sellers {
            buyer
                .client
                .get(&url)
                .await
                .expect_error(403, "COMPANY_ACCESS_DENIED");
        }
    }
    // The seller's own key reads the data too, at no charge.
    let data = ways[0]["url"].as_str().expect("a URL");
    let own = seller.client.get(data).await.expect(200);
    assert_eq!(own.at("/data/service/billing/reason"), "owner");
}

/// A price that comes with a publication holds from then on: what was priced while the test ran is the price before, also of what was run meanwhile.
#[tokio::test]
async fn a_price_holds_from_its_publication() {
    let league = league().await;
    let seller = &league.seller;
    let cluster = PgCluster::shared().await;
    let source = cluster.client(&league.database).await;
    let slow = format!("CREATE VIEW slow AS SELECT id FROM matches, {GATED}");
    source.batch_execute(&slow).await.expect("a view");
    let endpoint = seller
        .endpoint(
            &league.connection,
            json!({"slug": unique("slow"), "source": {"schema": "public", "table": "slow"}, "fields": [{"name": "id"}], "order_by": ["id"], "timeout_ms": 30000}),
        )
        .await;
    let one = seller.path(&format!("/endpoints/{endpoint}"));
    let (publish, prices) = (format!("{one}/publish"), format!("{one}/prices"));
    let gate = Gate::shut(cluster, &league.database).await;
    let meanwhile = async {
        gate.is_reached().await;
        let price = seller.client.post(&prices, json!({"price_credits": 2}));
        price.await.expect(201);
        gate.open().await;
    };
    let published = seller.client.post(&publish, json!({"price_credits": 3}));
    let (published, ()) = tokio::join!(published, meanwhile);
    assert_eq!(published.expect(200).at("/data/price_credits"), 3);
    let active = seller.client.get(&format!("{prices}/active")).await;
    assert_eq!(active.expect(200).at("/data/price_credits"), 3);
}

/// Publishing needs a price and a query that works.
#[tokio::test]
async fn publishing_needs_a_price_and_a_passing_test() {
    let league = league().await;
    let seller = &league.seller;
    let unpriced = seller.endpoint(&league.connection, json!({"slug": unique("unpriced"), "source": {"schema": "public", "table": "matches"}, "fields": [{"name": "id"}]})).await;
    let refusal = seller
        .client
        .post(
            &seller.path(&format!("/endpoints/{unpriced}/publish")),
            json!({}),
        )
        .await;
    assert_eq!(refusal.status.as_u16(), 409, "{}", refusal.body);
    // Which may come with the request.
    let one = seller.path(&format!("/endpoints/{unpriced}"));
    let publish = format!("{one}/publish");
    let published = seller.client.post(&publish, json!({"price_credits": 3}));
    assert_eq!(published.await.expect(200).at("/data/status"), "published");
    let active = format!("{one}/prices/active");
    let active = seller.client.get(&active).await.expect(200);
    assert_eq!(active.at("/data/price_credits"), 3);

    let broken = seller
        .asset(
            &league.connection,
            json!({"slug": unique("broken"), "sql_logic": "SELECT goals FROM no_such_table"}),
        )
        .await;
    seller
        .client
        .post(
            &seller.path(&format!("/assets/{broken}/prices")),
            json!({"price_credits": 1}),
        )
        .await
        .expect(201);
    let refusal = seller
        .client
        .post(
            &seller.path(&format!("/assets/{broken}/publish")),
            json!({}),
        )
        .await;
    assert_eq!(refusal.status.as_u16(), 409, "{}", refusal.body);
}

/// A table that is not there is told as such, and not as one without a key.
#[tokio::test]
async fn a_table_that_is_not_there_is_named() {
    let league = league().await;
    let seller = &league.seller;
    for (source, name) in [
        (json!({"table": "match"}), "match"),
        (
            json!({"schema": "elsewhere", "table": "matches"}),
            "elsewhere.matches",
        ),
    ] {
        let body = json!({"slug": unique("missing"), "source": source, "fields": [{"name": "id"}]});
        let endpoint = seller.endpoint(&league.connection, body).await;
        let test = seller.path(&format!("/endpoints/{endpoint}/test"));
        let refused = seller.client.get(&test).await;
        let message = refused.text("/error/message");
        let expected =
            format!("the source's catalog shows the connection's user no table \"{name}\": ");
        assert!(message.starts_with(&expected), "{message}");
        refused.expect_error(409, "INVALID_STATE");
    }
}

/// What is archived keeps its slug, and a seller who wants it again is told what has it: lists leave it out.
#[tokio::test]
async fn an_archived_endpoint_keeps_its_slug() {
    let league = league().await;
    let seller = &league.seller;
    let slug = unique("kept");
    let body = |slug: &str| {
        json!({"connection_id": league.connection, "name": "matches", "slug": slug,
            "source": {"schema": "public", "table": "matches"}, "fields": [{"name": "id"}]})
    };
    let endpoint = seller.endpoint(&league.connection, body(&slug)).await;
    let create = async || {
        let path = seller.path("/endpoints");
        let refused = seller.client.post(&path, body(&slug)).await;
        let refused = refused.expect_error(409, "SLUG_TAKEN");
        refused.text("/error/message")
    };
    let taken = format!("the company has an endpoint with the slug \"{slug}\"; choose another");
    assert_eq!(create().await, taken);
    let path = seller.path(&format!("/endpoints/{endpoint}"));
    seller.client.delete(&path).await.expect(204);
    let kept = format!("an archived endpoint has the slug \"{slug}\" and keeps it; choose another");
    assert_eq!(create().await, kept);
    let other = seller
        .endpoint(&league.connection, body(&unique("other")))
        .await;
    let path = seller.path(&format!("/endpoints/{other}"));
    let renamed = seller.client.patch(&path, json!({"slug": slug})).await;
    let refused = renamed.expect_error(409, "SLUG_TAKEN");
    assert_eq!(refused.text("/error/message"), kept);
}
