//! Functions of a seller's own API, section 4.7 of the specification.

use serde_json::{Value, json};
use souk_tests::seller_api::{API_KEY, AS, GATHERED, SECRET, SPOILT, SellerApi};
use souk_tests::{Answer, Company};

use crate::{host, unique};

struct Shop {
    seller: Company,
    buyer: Company,
    connection: String,
    api: SellerApi,
}

async fn shop() -> Shop {
    let api = SellerApi::start().await;
    let host = host().await;
    let seller = host.company(&unique("functions")).await;
    let connection = seller.seller_api(&api.base_url(), API_KEY).await;
    Shop {
        buyer: host.buyer(&unique("caller"), 100).await,
        seller,
        connection,
        api,
    }
}

impl Shop {
    async fn function(&self, name: &str, result_type: &str) -> String {
        let parameters = json!([{"name": "team", "type": "string", "required": false}]);
        let fields = json!({"name": name, "slug": unique("fn"), "function_id": name, "result_type": result_type, "parameters": parameters});
        self.seller.asset(&self.connection, fields).await
    }

    /// The owner's call: free, and with the details that only the owner sees.
    async fn call(&self, name: &str, params: Value) -> Answer {
        let asset = self.function(name, "number").await;
        self.seller.execute(&asset, params).await
    }
}

/// Function routing and direct routing give the seller's value; the buyer pays.
#[tokio::test]
async fn both_routings_return_the_sellers_value() {
    let shop = shop().await;
    let by_function = shop.function("sum_goals", "number").await;
    let by_path = shop
        .seller
        .asset(&shop.connection, json!({"name": "by path", "slug": unique("fn"), "path": "/sum_goals", "result_type": "number",
            "parameters": [{"name": "team", "type": "string", "default": "Ajax"}]}))
        .await;
    assert_eq!(
        shop.seller
            .execute(&by_function, json!({"team": "Ajax"}))
            .await
            .expect(200)
            .at("/data/answer_value"),
        21
    );
    shop.seller.publish(&by_path, 2).await;
    let paid = shop
        .buyer
        .execute(&by_path, json!({"team": "Ajax"}))
        .await
        .expect(200);
    assert_eq!(paid.at("/data/answer_value"), 21);
    assert_eq!(paid.at("/meta/credits_used"), 2);
    assert_eq!(shop.buyer.balance().await, 98);
}

/// A number leaves as the seller wrote it, digit for digit.
#[tokio::test]
async fn a_number_keeps_its_digits() {
    let shop = shop().await;
    let asset = shop.function("exact", "number").await;
    let path = shop.seller.path(&format!("/assets/{asset}/execute"));
    let response = shop
        .seller
        .client
        .request(reqwest::Method::POST, &path)
        .send()
        .await
        .expect("an answer");
    let text = response.text().await.expect("a body");
    assert!(text.contains("12345678901234567890.123456789"), "{text}");
}

/// Every way for a seller's API to be wrong has its own status and costs nothing.
#[tokio::test]
async fn every_fault_of_the_sellers_api_is_mapped() {
    let shop = shop().await;
    for (function, status) in [
        ("no_such_function", 502),
        ("wrong_echo", 502),
        ("no_answer", 502),
        ("bad_timestamp", 502),
        ("not_json", 502),
        ("fails", 502),
        ("teapot", 502),
        ("redirects", 502),
        ("huge", 502),
    ] {
        let answer = shop.call(function, json!({})).await;
        assert_eq!(
            answer.status.as_u16(),
            status,
            "{function}: {}",
            answer.body
        );
        assert_eq!(
            answer.at("/error/details/charged"),
            false,
            "{function}: {}",
            answer.body
        );
        assert_eq!(
            answer.at("/error/details/blame"),
            "source",
            "{function}: {}",
            answer.body
        );
    }
    // A missing parameter is the caller's.
    shop.call("sum_goals", json!({}))
        .await
        .expect_error(400, "INVALID_PARAMETER");
    // The next request succeeds.
    shop.call("sum_goals", json!({"team": "Ajax"}))
        .await
        .expect(200);
    assert!(shop.api.calls() > 10);
}

/// A seller that does not answer in time is a timeout, at the asset's own deadline.
#[tokio::test]
async fn a_slow_seller_is_a_timeout() {
    let shop = shop().await;
    let asset = shop.seller.asset(&shop.connection, json!({"name": "slow", "slug": unique("fn"), "function_id": "slow", "timeout_ms": 1000})).await;
    let started = std::time::Instant::now();
    shop.seller
        .execute(&asset, json!({}))
        .await
        .expect_error(504, "EXECUTION_TIMEOUT");
    assert!(started.elapsed() < std::time::Duration::from_secs(30));
}

/// However slow an API is, buyers do not wait for each other's calls, as long as no more are at it than a host has there at once.
#[tokio::test]
async fn many_calls_are_at_a_slow_api_at_once() {
    let shop = shop().await;
    let asset = shop
        .seller
        .asset(&shop.connection, json!({"name": "sum", "slug": unique("fn"), "function_id": "sum_goals", "result_type": "number", "timeout_ms": 30_000,
            "parameters": [{"name": "team", "type": "string", "default": "Ajax"}]}))
        .await;
    shop.seller.publish(&asset, 2).await;
    // None of them is answered before all have come.
    let params = json!({"team": format!("{AS}gathers")});
    let calls = (0..GATHERED).map(|_| shop.buyer.execute(&asset, params.clone()));
    for answer in futures_util::future::join_all(calls).await {
        let answer = answer.expect(200);
        assert_eq!(answer.at("/data/answer_value"), GATHERED);
        assert_eq!(answer.at("/meta/credits_used"), 2);
    }
    assert_eq!(shop.buyer.balance().await, 100 - 2 * GATHERED as i64);
}

/// A function that fails cannot be published, so no buyer reaches it or its error text.
#[tokio::test]
async fn a_function_that_fails_cannot_be_published() {
    let shop = shop().await;
    let asset = shop.function("fails", "number").await;
    let answer = shop.seller.execute(&asset, json!({})).await.expect(502);
    assert!(answer.body.to_string().len() < 2_000);
    shop.seller
        .client
        .post(
            &shop.seller.path(&format!("/assets/{asset}/prices")),
            json!({"price_credits": 1}),
        )
        .await
        .expect(201);
    let refusal = shop
        .seller
        .client
        .post(
            &shop.seller.path(&format!("/assets/{asset}/publish")),
            json!({}),
        )
        .await;
    assert_eq!(refusal.status.as_u16(), 409, "{}", refusal.body);
}

/// When a published function fails, its words reach the owner who must mend it, and nobody else.
#[tokio::test]
async fn the_sellers_error_text_is_for_the_owner_only() {
    let shop = shop().await;
    let asset = shop
        .seller
        .asset(&shop.connection, json!({"name": "sum", "slug": unique("fn"), "function_id": "sum_goals", "result_type": "number",
            "parameters": [{"name": "team", "type": "string", "default": "Ajax"}]}))
        .await;
    shop.seller.publish(&asset, 2).await;
    for team in SPOILT {
        let params = json!({"team": team});
        let status = if team == "Refused" { 400 } else { 502 };
        let told = shop.seller.execute(&asset, params.clone()).await;
        let told = told.expect(status);
        let words = told.at("/error/details/source_message").to_string();
        assert!(words.contains(SECRET), "{team}: {}", told.body);

        let kept = shop.buyer.execute(&asset, params).await.expect(status);
        assert!(!kept.body.to_string().contains(SECRET), "{}", kept.body);
        assert!(
            !format!("{:?}", kept.headers).contains(SECRET),
            "{team}: {:?}",
            kept.headers
        );
        assert_eq!(kept.at("/error/code"), told.at("/error/code"), "{team}");
        assert_eq!(kept.at("/error/details/charged"), false, "{}", kept.body);
    }
    assert_eq!(shop.buyer.balance().await, 100);
}

/// The connection test proves that both routings answer alike, and says precisely where they do not.
#[tokio::test]
async fn the_connection_test_compares_both_routings() {
    let shop = shop().await;
    let path = format!("/connections/{}/test", shop.connection);
    let path = shop.seller.path(&path);
    let test = async |function: &str| {
        let probe = json!({"function_id": function, "params": {"team": "Ajax"}});
        let report = shop.seller.client.post(&path, probe).await.expect(200);
        let succeeded = report.at("/data/success").as_bool();
        let error = report.at("/data/error").as_str().map(str::to_owned);
        let warnings = report
            .at("/data/warnings")
            .as_array()
            .expect("a list")
            .iter();
        // The sample API is on loopback, without TLS.
        let warning = warnings
            .filter_map(|warning| warning.as_str())
            .find(|warning| !warning.contains("use https"));
        let said = error.or(warning.map(str::to_owned)).unwrap_or_default();
        (succeeded.expect("success"), said)
    };
    for function in ["sum_goals", "describe_team", "exact"] {
        assert_eq!(test(function).await, (true, String::new()), "{function}");
    }
    for (function, succeeds, says) in [
        (
            "differs",
            false,
            "the two routings answer differently: /answer_value is 1 and 2 (function routing (POST / with function_id \"differs\") first, \
             direct routing (POST /differs) second)",
        ),
        (
            "differs_a_little",
            false,
            "/answer_value is 9007199254740992 and 9007199254740993 ",
        ),
        (
            "by_path_only",
            false,
            "direct routing (POST /by_path_only) answers, but function routing (POST / with function_id \"by_path_only\") fails",
        ),
        ("fails", false, "both routings fail: function routing"),
        ("counts", true, "answers differently each time"),
    ] {
        let (succeeded, said) = test(function).await;
        assert_eq!(succeeded, succeeds, "{function}: {said}");
        assert!(said.contains(says), "{function}: {said}");
    }
}

/// A wrong key for the seller's API is told when the connection is tested.
#[tokio::test]
async fn a_wrong_key_is_told() {
    let api = SellerApi::start().await;
    let seller = host().await.company(&unique("wrongkey")).await;
    let connection = seller.seller_api(&api.base_url(), "wrong").await;
    let test = seller
        .client
        .post(
            &seller.path(&format!("/connections/{connection}/test")),
            json!({"function_id": "sum_goals", "params": {"team": "Ajax"}}),
        )
        .await
        .expect(200);
    assert_eq!(test.at("/data/success"), false, "{}", test.body);
    assert!(
        test.at("/data/error")
            .to_string()
            .to_lowercase()
            .contains("key"),
        "{}",
        test.body
    );
}
