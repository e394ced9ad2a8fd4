//! A seller's API over https: whom the host trusts, and what happens when it cannot.

use serde_json::{Value, json};
use souk_tests::Company;
use souk_tests::seller_api::{API_KEY, SellerApi};
use souk_tests::tls::TestCa;

use crate::paid_faults::Sale;
use crate::{host, unique};

/// A connection to an API whose authority nobody else knows.
async fn connection(seller: &Company, base_url: &str, ca_pem: &str) -> String {
    let fields = json!({"credential_type": "API_KEY", "credentials": credentials(), "base_url": base_url, "ca_pem": ca_pem});
    seller.connection("seller-api", fields).await
}

fn credentials() -> String {
    json!({"api_key": API_KEY}).to_string()
}

fn function() -> Value {
    json!({"function_id": "sum_goals", "timeout_ms": 5000,
        "parameters": [{"name": "team", "type": "string", "default": "Ajax"}]})
}

/// An API over https with a certificate of the seller's own authority, for its name as for its address: tested without a word against
/// it, executed by its owner, paid for by a buyer.
#[tokio::test]
async fn an_https_api_is_trusted_by_its_own_authority() {
    let ca = TestCa::new("a seller's authority");
    let api = SellerApi::start_tls(&ca.server(&["localhost", "127.0.0.1"])).await;
    for name in ["127.0.0.1", "localhost"] {
        let seller = host().await.company(&unique("https")).await;
        let base_url = format!("https://{name}:{}", api.address.port());
        let connection = connection(&seller, &base_url, &ca.pem()).await;
        let test = seller.path(&format!("/connections/{connection}/test"));
        let probe = json!({"function_id": "sum_goals", "params": {"team": "Ajax"}});
        let report = seller.client.post(&test, probe).await.expect(200);
        assert_eq!(report.at("/data/success"), true, "{}", report.body);
        assert_eq!(report.at("/data/warnings"), &json!([]), "{}", report.body);

        let sale = Sale::of(seller, &connection, function()).await;
        let own = sale.seller.execute(&sale.asset, json!({})).await;
        assert_eq!(own.expect(200).at("/data/answer_value"), 21, "{name}");
        sale.assert_works(json!({})).await;
    }
}

/// An API that worked, and then cannot prove who it is: the buyer pays nothing, the key for the API does not leave, the seller is told
/// what is wrong and what to do, and once that is mended the next request succeeds.
#[tokio::test]
async fn an_api_that_cannot_prove_itself_costs_the_buyer_nothing() {
    let ca = TestCa::new("a seller's authority");
    let api = SellerApi::start_tls(&ca.server(&["127.0.0.1"])).await;
    let misnamed = SellerApi::start_tls(&ca.server(&["api.example.com", "127.0.0.2"])).await;
    let plain = SellerApi::start().await;
    let stranger = TestCa::new("somebody else").pem();
    // To another server a key goes only if it is given again.
    let at = |base_url: String| json!({"credential_type": "API_KEY", "credentials": credentials(), "base_url": base_url});
    let mut back = at(api.base_url());
    back["ca_pem"] = ca.pem().into();
    for (change, what) in [
        (json!({"ca_pem": null}), "UnknownIssuer"),
        (json!({"ca_pem": stranger}), "UnknownIssuer"),
        (at(misnamed.base_url()), "not valid for name"),
        (
            at(format!("https://{}", plain.address)),
            "InvalidContentType",
        ),
    ] {
        let seller = host().await.company(&unique("unproven")).await;
        let connection = connection(&seller, &api.base_url(), &ca.pem()).await;
        let sale = Sale::of(seller, &connection, function()).await;
        // A session is open, and a wire with it, before the connection changes.
        let own = sale.seller.execute(&sale.asset, json!({})).await;
        own.expect(200);
        let calls = api.calls();

        let changed = sale.change(&connection, change).await;
        let told = changed.text("/data/last_error");
        assert!(told.starts_with("TLS with https://127.0.0.1:"), "{told}");
        assert!(told.contains(what), "{told}");
        assert!(
            told.ends_with("; check the host name in base_url, and ca_pem"),
            "{told}"
        );

        let refusal = sale.buy(json!({})).await;
        let refusal = sale
            .assert_free(refusal, 502, "SELLER_API_ERROR", "source")
            .await;
        assert_eq!(refusal.at("/error/details/reason"), "tls", "{what}");
        let told = refusal.text("/error/message");
        assert!(
            told.ends_with("the seller's API cannot prove over TLS who it is: its seller must mend the certificate or the connection"),
            "{told}"
        );
        assert!(!refusal.body.to_string().contains(what), "{}", refusal.body);
        let own = sale.seller.execute(&sale.asset, json!({})).await;
        let own = own.expect_error(502, "SELLER_API_ERROR");
        let words = own.text("/error/details/source_message");
        assert!(words.contains(what), "{words}");
        // Nobody was sent the request, nor the key in it.
        let calls_now = (api.calls(), misnamed.calls(), plain.calls());
        assert_eq!(calls_now, (calls, 0, 0), "{what}");

        sale.change(&connection, back.clone()).await;
        sale.assert_works(json!({})).await;
    }
}

/// What stands in the frame of a certificate and is none is told as soon as it is saved over one that worked, and costs the buyer nothing.
#[tokio::test]
async fn an_authority_that_is_none_costs_the_buyer_nothing() {
    let ca = TestCa::new("a seller's authority");
    let api = SellerApi::start_tls(&ca.server(&["127.0.0.1"])).await;
    let seller = host().await.company(&unique("unframed")).await;
    let connection = connection(&seller, &api.base_url(), &ca.pem()).await;
    let sale = Sale::of(seller, &connection, function()).await;
    let junk = "-----BEGIN CERTIFICATE-----\nanVuaw==\n-----END CERTIFICATE-----\n";
    let changed = sale.change(&connection, json!({"ca_pem": junk})).await;
    let told = changed.text("/data/last_error");
    assert!(told.contains("the CA certificate cannot be used"), "{told}");
    let refusal = sale.buy(json!({})).await;
    let refusal = sale
        .assert_free(refusal, 502, "SELLER_API_ERROR", "source")
        .await;
    assert_eq!(refusal.at("/error/details/reason"), "configuration");
    sale.change(&connection, json!({"ca_pem": ca.pem()})).await;
    sale.assert_works(json!({})).await;
}
