//! A company as it describes itself.

use serde_json::json;

use crate::{host, unique};

/// An administrator changes what the company tells about itself, field by field; `null` clears; what is wrong is named and changes nothing.
#[tokio::test]
async fn a_company_describes_itself() {
    let company = host().await.company(&unique("described")).await;
    let path = company.path("");
    let first = company.client.get(&path).await.expect(200);
    assert_eq!(
        first.at("/data/contact_email"),
        &json!(format!("{}@example.com", company.handle))
    );
    assert_eq!(first.at("/data/credits_low_threshold"), 100);

    let full = json!({"name": "New Ltd", "description": "d", "website": "https://new.example", "logo_url": "https://new.example/logo.png",
        "industry_id": 711, "country": "de", "contact_email": "a@new.example", "credits_low_threshold": 7});
    let changed = company.client.patch(&path, full).await.expect(200);
    for (member, value) in [
        ("name", json!("New Ltd")),
        ("website", json!("https://new.example")),
        ("logo_url", json!("https://new.example/logo.png")),
        ("industry_id", json!(711)),
        ("country", json!("DE")),
        ("contact_email", json!("a@new.example")),
        ("credits_low_threshold", json!(7)),
        ("handle", json!(company.handle)),
    ] {
        assert_eq!(changed.at(&format!("/data/{member}")), &value, "{member}");
    }
    let read = company.client.get("/companies/me").await.expect(200);
    assert_eq!(read.at("/data"), changed.at("/data"));

    for (field, value) in [
        ("website", json!("javascript:alert(1)")),
        ("logo_url", json!("https://")),
        ("industry_id", json!(3)),
        ("country", json!("DEU")),
        ("contact_email", json!("nobody")),
        ("credits_low_threshold", json!(-1)),
        ("name", json!("")),
        ("handle", json!("No Label")),
    ] {
        let mut body = json!({"description": "not this"});
        body[field] = value;
        let refused = company.client.patch(&path, body).await;
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.at("/error/details/errors/0/field"), field);
    }
    let cleared = json!({"website": null, "industry_id": null, "credits_low_threshold": null});
    let cleared = company.client.patch(&path, cleared).await.expect(200);
    assert_eq!(cleared.at("/data/website"), &json!(null));
    assert_eq!(cleared.at("/data/credits_low_threshold"), 100);
    assert_eq!(cleared.at("/data/description"), "d");
}

/// A handle is one company's: another one's is refused, a new one is taken, and going back to the former one is allowed. Others may not
/// change a company, nor may roles below the administrator.
#[tokio::test]
async fn a_handle_belongs_to_one_company() {
    let host = host().await;
    let (one, other) = (
        host.company(&unique("named")).await,
        host.company(&unique("taken")).await,
    );
    let path = one.path("");
    one.client
        .patch(&path, json!({"handle": other.handle}))
        .await
        .expect_error(409, "SLUG_TAKEN");
    let third = json!({"name": "Again", "handle": other.handle, "contact_email": "a@example.com"});
    let refused = host.platform().post("/admin/companies", third).await;
    refused.expect_error(409, "SLUG_TAKEN");
    let new = unique("renamed");
    let renamed = one.client.patch(&path, json!({"handle": new})).await;
    assert_eq!(renamed.expect(200).at("/data/handle"), &json!(new));
    other
        .client
        .patch(&other.path(""), json!({"handle": one.handle}))
        .await
        .expect_error(409, "SLUG_TAKEN");
    one.client
        .patch(&path, json!({"handle": one.handle}))
        .await
        .expect(200);
    other
        .client
        .patch(&path, json!({"name": "x"}))
        .await
        .expect_error(403, "COMPANY_ACCESS_DENIED");
    let engineer = json!({"name": "engineer", "role_id": 3});
    let engineer = one.client.post(&one.path("/api-keys"), engineer).await;
    let engineer = host.client(&engineer.expect(201).text("/data/key"));
    engineer
        .patch(&path, json!({"name": "x"}))
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
}
