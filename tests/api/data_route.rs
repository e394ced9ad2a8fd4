//! The customer data route: by path and by Host, with endpoint keys and what they may not do.

use std::net::IpAddr;

use reqwest::Method;
use serde_json::json;
use souk_tests::{Answer, PgCluster, TestHost};

use crate::{LEAGUE, host, league, unique};

async fn endpoint_key(league: &crate::League, endpoint: &str) -> String {
    let path = league.seller.path(&format!("/endpoints/{endpoint}/keys"));
    league
        .seller
        .client
        .post(&path, json!({"name": "a customer"}))
        .await
        .expect(201)
        .text("/data/key")
}

/// A key that the seller minted fetches its endpoint free of charge, by its slug and by the seller's handle.
#[tokio::test]
async fn an_endpoint_key_fetches_its_endpoint_by_every_spelling() {
    let league = league().await;
    let (endpoint, slug) = league.matches(2).await;
    let key = endpoint_key(&league, &endpoint).await;
    assert!(key.starts_with("ep_"), "{key}");
    let client = host().await.client(&key);
    let handle = &league.seller.handle;

    let by_slug = client
        .get(&format!("/endpoints/v1/{slug}?limit=2"))
        .await
        .expect(200);
    let by_handle = client
        .get(&format!("/endpoints/v1/{handle}/{slug}?limit=2"))
        .await
        .expect(200);
    assert_eq!(
        by_slug.at("/data/response/data"),
        by_handle.at("/data/response/data")
    );
    assert_eq!(by_slug.at("/data/service/billing/reason"), "owner");
    assert_eq!(by_slug.at("/data/service/endpoint_slug"), &json!(slug));
    assert_eq!(by_slug.at("/data/service/pagination/has_more"), true);
}

/// A seller is named by the host that its client called: by `Host`, or by what a trusted proxy says in its place. Nobody else is
/// believed.
#[tokio::test]
async fn the_host_names_the_seller() {
    let host = TestHost::builder()
        .arg("--endpoint-base-url", "http://data.example.com")
        .arg("--trust-proxy", "127.0.0.2/32")
        .start()
        .await;
    let cluster = PgCluster::shared().await;
    let seller = host.company("acme").await;
    let database = cluster.database(LEAGUE).await;
    let connection = seller.postgres(cluster, &database).await;
    let fields = json!({"slug": "matches", "source": {"schema": "public", "table": "matches"},
        "fields": [{"name": "id"}], "order_by": ["id"]});
    let endpoint = seller.endpoint(&connection, fields).await;
    seller.publish(&endpoint, 1).await;
    let address = seller.path(&format!("/endpoints/{endpoint}/url"));
    let address = seller.client.get(&address).await.expect(200);
    let published = "http://acme.data.example.com/endpoints/v1/matches";
    assert_eq!(address.at("/data/url"), published);

    let fetch = async |from: [u8; 4], headers: &[(&str, &str)]| {
        let http = reqwest::Client::builder()
            .local_address(IpAddr::from(from))
            .build()
            .expect("a client");
        let path = "/endpoints/v1/matches?limit=2";
        let mut request = http
            .get(format!("{}{path}", host.base_url))
            .header("x-api-key", &seller.key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request).await
    };
    let (proxy, anybody) = ([127, 0, 0, 2], [127, 0, 0, 1]);
    let (acme, other) = ("acme.data.example.com", "other.data.example.com");
    let next = format!("{published}?cursor=");
    for (from, headers) in [
        (anybody, &[("host", acme)][..]),
        (anybody, &[("host", acme), ("x-forwarded-host", other)]),
        (proxy, &[("host", acme)]),
        (proxy, &[("host", "souk"), ("x-forwarded-host", acme)]),
    ] {
        let page = fetch(from, headers).await.expect(200);
        let link = page.text("/data/service/pagination/next_url");
        assert!(
            link.starts_with(&next) && link.ends_with("&limit=2"),
            "{link} {headers:?}"
        );
    }
    for (from, headers) in [
        (anybody, &[("host", other)][..]),
        (proxy, &[("host", acme), ("x-forwarded-host", other)]),
    ] {
        fetch(from, headers)
            .await
            .expect_error(403, "COMPANY_ACCESS_DENIED");
    }

    // A customer's key leads there too, and its company pays.
    let buyer = host.buyer("fan", 10).await;
    let bought = buyer.buy(&endpoint).await;
    let customer = buyer
        .client
        .with_key(&bought.text("/data/endpoint_key/key"));
    let page = customer.request(Method::GET, "/endpoints/v1/matches?limit=2");
    let page = Answer::of(page.header("host", acme)).await.expect(200);
    assert_eq!(
        page.at("/data/response/data"),
        &json!([{"id": 1}, {"id": 2}])
    );
    assert_eq!(buyer.balance().await, 9);
}

/// An endpoint key opens nothing else: no other endpoint, no unknown slug, no management.
#[tokio::test]
async fn an_endpoint_key_opens_nothing_else() {
    let league = league().await;
    let (endpoint, slug) = league.matches(1).await;
    let (_, other) = league.matches(1).await;
    let client = host().await.client(&endpoint_key(&league, &endpoint).await);
    client
        .get(&format!("/endpoints/v1/{other}"))
        .await
        .expect_error(403, "ENDPOINT_SCOPE_MISMATCH");
    client
        .get("/endpoints/v1/no-such-endpoint")
        .await
        .expect_error(403, "ENDPOINT_SCOPE_MISMATCH");
    client
        .get(&format!("/endpoints/v1/somebody-else/{slug}"))
        .await
        .expect_error(403, "ENDPOINT_SCOPE_MISMATCH");
    client
        .get(&league.seller.path("/api-keys"))
        .await
        .expect_error(403, "ENDPOINT_KEY_NOT_ALLOWED");
    client
        .get(&league.seller.path(&format!("/endpoints/{endpoint}")))
        .await
        .expect_error(403, "ENDPOINT_KEY_NOT_ALLOWED");
}

/// The seller's analytics key reads its own endpoint without charge; a stranger's is refused.
#[tokio::test]
async fn an_analytics_key_reads_its_own_companys_endpoints_only() {
    let league = league().await;
    let (_, slug) = league.matches(1).await;
    let path = format!("/endpoints/v1/{}/{slug}", league.seller.handle);
    let own = league.seller.client.get(&path).await.expect(200);
    assert_eq!(own.at("/data/service/billing/credits_used"), 0);
    let stranger = host().await.buyer(&unique("stranger"), 10).await;
    let refusal = stranger.client.get(&path).await;
    assert_eq!(refusal.status.as_u16(), 403, "{}", refusal.body);
}

/// A page that is too large to be kept is charged once all the same: its repetition is told which run it was, and neither runs nor pays.
#[tokio::test]
async fn a_large_page_is_charged_once_and_known_by_its_run() {
    let league = league().await;
    let fields = json!({"slug": unique("wide"), "sql_logic": "SELECT id, repeat(team, 200) AS teams FROM matches",
        "fields": [{"name": "id"}, {"name": "teams"}], "order_by": ["id"]});
    let endpoint = league.seller.endpoint(&league.connection, fields).await;
    league.seller.publish(&endpoint, 3).await;
    let buyer = host().await.buyer(&unique("reader"), 100).await;
    let bought = buyer.buy(&endpoint).await;
    let reader = buyer
        .client
        .with_key(&bought.text("/data/endpoint_key/key"));
    let slug = league
        .seller
        .client
        .get(&league.seller.path(&format!("/endpoints/{endpoint}")))
        .await
        .expect(200)
        .text("/data/slug");
    let fetch = async |limit: u32, key: &str| {
        let path = format!("/endpoints/v1/{slug}?limit={limit}");
        let request = reader.request(Method::GET, &path);
        Answer::of(request.header("idempotency-key", key)).await
    };
    let large = fetch(200, "large").await.expect(200);
    assert!(large.body.to_string().len() > 65_536);
    for _ in 0..2 {
        let again = fetch(200, "large").await;
        let again = again.expect_error(409, "IDEMPOTENCY_ANSWER_TOO_LARGE");
        let execution = again.at("/error/details/execution_id");
        assert!(
            execution.as_str().is_some_and(|id| id.starts_with("exe_")),
            "{execution}"
        );
    }
    fetch(199, "large")
        .await
        .expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    let small = fetch(2, "small").await.expect(200);
    let again = fetch(2, "small").await.expect(200);
    assert_eq!(small.body, again.body);
    assert_eq!(again.header("idempotency-replayed"), "true");
    // What the first one said beside its body, too.
    for name in ["etag", "link"] {
        let first = small.header(name);
        assert!(!first.is_empty(), "{name}");
        assert_eq!(again.header(name), first);
    }
    assert_eq!(buyer.balance().await, 94);

    // The seller's own run is free, so its answer is not kept.
    let seller = &league.seller.client;
    for _ in 0..2 {
        let path = format!("/endpoints/v1/{slug}?limit=2");
        let request = seller.request(Method::GET, &path);
        let own = Answer::of(request.header("idempotency-key", "own")).await;
        assert_eq!(own.expect(200).header("idempotency-replayed"), "");
    }
}

/// Two sellers may use the same slug: an `Idempotency-Key` that was used at one is not answered with its rows at the other.
#[tokio::test]
async fn one_idempotency_key_does_not_confuse_two_sellers() {
    let (one, other) = (league().await, league().await);
    let slug = unique("same");
    let buyer = host().await.buyer(&unique("reader"), 100).await;
    let mut readers = Vec::new();
    for league in [&one, &other] {
        let fields = json!({"slug": slug, "source": {"schema": "public", "table": "matches"},
            "fields": [{"name": "id"}], "order_by": ["id"]});
        let endpoint = league.seller.endpoint(&league.connection, fields).await;
        league.seller.publish(&endpoint, 3).await;
        let bought = buyer.buy(&endpoint).await;
        let key = bought.text("/data/endpoint_key/key");
        readers.push(buyer.client.with_key(&key));
    }
    let fetch = async |reader: usize, key: &str| {
        let path = format!("/endpoints/v1/{slug}?limit=1");
        let request = readers[reader].request(Method::GET, &path);
        Answer::of(request.header("idempotency-key", key)).await
    };
    fetch(0, "k").await.expect(200);
    fetch(1, "k")
        .await
        .expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(buyer.balance().await, 97);
    let paid = fetch(1, "another").await.expect(200);
    assert_eq!(
        paid.at("/data/service/company_handle"),
        &json!(other.seller.handle)
    );
    assert_eq!(buyer.balance().await, 94);
}
