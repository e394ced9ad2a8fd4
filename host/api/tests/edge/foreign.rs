//! Things of another company under one's own path, by enumeration: whatever its id is, it answers as one that does not exist, and nothing becomes
//! of it.

use crate::world::{Answer, Company, World, now, request};
use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use souk_api::openapi::document;
use souk_app::earnings;
use souk_domain::connections::Target;
use souk_domain::ids::{CompanyId, ConnectionId, IntegrationId, UserId};
use souk_store::integrations::{self, Integration, TestStatus};
use souk_store::{StoreError, connections};
use std::collections::BTreeMap;
use std::time::Duration;

type Ids = BTreeMap<&'static str, String>;

/// Operations that find another company's product, since it is on sale. (Those that run it do, too, where it has a source.)
const BUYERS: &[&str] = &[
    "active_endpoint_price",
    "active_price",
    "get_asset",
    "list_asset_alerts",
];

/// An operation under a company that names a thing in its path.
struct Naming {
    id: String,
    method: Method,
    path: String,
    query: String,
    body: Value,
}

fn operations() -> Vec<Naming> {
    let document = document(&souk_api::all());
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(rest) = path.strip_prefix("/companies/{company_id}/") else {
            continue;
        };
        if !rest.contains("_id}") {
            continue;
        }
        for (verb, operation) in item.as_object().unwrap() {
            let content = &operation["requestBody"]["content"]["application/json"];
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let required = parameters.filter(|one| one["in"] == "query" && one["required"] == true);
            let query = required.map(|one| {
                let value = one["schema"]["examples"][0].as_str().unwrap_or("1");
                format!("{}={value}", one["name"].as_str().unwrap())
            });
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let mut query = query.collect::<Vec<_>>();
            if id == "check_favorite" {
                // Of two members it needs one.
                query.push("asset_id=ast_0123456789abcdefghijkl".to_owned());
            }
            all.push(Naming {
                id,
                method: verb.to_ascii_uppercase().parse().unwrap(),
                path: path.clone(),
                query: query.join("&"),
                body: content["example"].clone(),
            });
        }
    }
    all
}

/// The names in a path that stand for ids, but for the company's.
fn names(path: &str) -> Vec<&str> {
    let names = path.split('/').filter_map(|part| {
        part.strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'))
    });
    names
        .filter(|name| *name != "company_id" && name.ends_with("_id"))
        .collect()
}

/// The path with these ids in it; other names are those of nothing.
fn filled(path: &str, company: &Company, ids: &Ids) -> String {
    let parts = path.split('/').map(|part| {
        let name = part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'));
        match name {
            Some("company_id") => company.id.as_str(),
            Some(name) => ids.get(name).map_or("unknown", String::as_str),
            None => part,
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// An id like this one that nobody has.
fn of_nobody(id: &str) -> String {
    format!("{}zzzzzz", &id[..id.len() - 6])
}

/// One of everything that a path can name. `partner` sells to it and buys from it.
async fn things(world: &World, company: &Company, partner: &Company) -> Ids {
    let key = company.key.as_str();
    let made = async |path: &str, body: Value| {
        let made = world.post(key, &company.path(path), body).await;
        made.expect(201).text("/data/id")
    };
    let (asset, endpoint) = (world.asset(company).await, world.endpoint(company).await);
    let later = json!({"price_credits": 2, "effective_from": "2099-01-01T00:00:00Z"});
    let mut ids = Ids::from([
        (
            "api_key_id",
            made(
                &format!("/endpoints/{endpoint}/keys"),
                json!({"name": "own"}),
            )
            .await,
        ),
        (
            "post_id",
            made("/posts", json!({"title": "x", "body_markdown": "x"})).await,
        ),
        (
            "webhook_id",
            made("/webhooks", json!({"url": "https://93.184.216.34/souk"})).await,
        ),
        (
            "price_id",
            made(&format!("/assets/{asset}/prices"), later).await,
        ),
    ]);
    let browser = world.browser(company, 3).await;
    let sessions = company.path(&format!("/users/{}/sessions", browser.user));
    let sessions = world.get(key, &sessions).await.expect(200);
    ids.insert("session_id", sessions.text("/data/0/id"));
    let numbers = world.sample(company, "{}").await;
    let of_user = format!("/users/{}", company.user_id);
    for (name, things, product) in [
        ("alert_id", "alerts", &numbers),
        ("favorite_id", "favorites", &asset),
    ] {
        let path = format!("{of_user}/{things}");
        ids.insert(name, made(&path, json!({"asset_id": product})).await);
    }
    ids.insert("user_id", company.user_id.clone());
    bought(world, company, partner, &mut ids).await;
    earned(world, company, partner, &asset, &mut ids).await;
    reached(world, company, &mut ids).await;
    ids.insert("asset_id", asset);
    ids.insert("endpoint_id", endpoint);
    ids
}

/// A purchase with the delivery that tells of it, and a top-up.
async fn bought(world: &World, company: &Company, seller: &Company, ids: &mut Ids) {
    let key = company.key.as_str();
    let product = world.asset(seller).await;
    let order = json!({"product_id": product, "accept_terms": true});
    let purchase = world.post(key, &company.path("/purchases"), order).await;
    ids.insert("purchase_id", purchase.expect(201).text("/data/id"));
    let deliveries = company.path(&format!("/webhooks/{}/deliveries", ids["webhook_id"]));
    let deliveries = world.get(key, &deliveries).await.expect(200);
    ids.insert("delivery_id", deliveries.text("/data/0/id"));
    let top_ups = company.path("/credits/top-ups");
    let order = world.post_keyed(key, &top_ups, &top_ups, json!({"credits": 5}));
    ids.insert("top_up_id", order.await.expect(201).text("/data/id"));
}

/// A payout of what `buyer` paid, and the transaction of it.
async fn earned(world: &World, company: &Company, buyer: &Company, asset: &str, ids: &mut Ids) {
    world.grant(buyer, 1_000).await;
    let charge = world.charge(buyer, company, asset, 100).await;
    ids.insert("transaction_id", charge);
    let later = now().after(Duration::from_secs(1));
    earnings::mature(&world.db, later, now()).await.unwrap();
    let method = json!({"type": "bank_account", "account_holder": "Seller Inc.", "destination": "DE89 3704 0044 0532 0130 00"});
    let path = company.path("/payout-method");
    world.put(&company.key, &path, method).await.expect(200);
    let path = company.path("/payouts");
    let payout = world
        .post_keyed(&company.key, &path, &path, json!({}))
        .await;
    ids.insert("payout_id", payout.expect(201).text("/data/id"));
}

/// A connection and an integration, straight in the store: nothing is asked through them.
async fn reached(world: &World, company: &Company, ids: &mut Ids) {
    let (owner, user) = (
        CompanyId::parse(&company.id).unwrap(),
        UserId::parse(&company.user_id).unwrap(),
    );
    let (connection, integration) = (ConnectionId::generate(), IntegrationId::generate());
    let target = Target::File {
        name: "a.db".into(),
    };
    let written = connections::Written {
        name: "one",
        credential_type: "NONE",
        credentials: b"",
        target: &target,
        cloud_provider_id: None,
        verified_usage_ability: false,
        statement_timeout_ms: 1_000,
    };
    let of_posts = Integration {
        id: integration.clone(),
        company_id: owner.clone(),
        user_id: user.clone(),
        platform: "wordpress".into(),
        scope: "platform".into(),
        name: "one".into(),
        base_url: "https://93.184.216.34".into(),
        config: Default::default(),
        credentials: Vec::new(),
        revision: 1,
        status: TestStatus::Untested,
        last_tested_at: None,
        last_error: None,
        created_at: now(),
        updated_at: now(),
    };
    const SQLITE: i64 = 4;
    let inserted = world.db.write(async |write| -> Result<_, StoreError> {
        connections::insert(write, &connection, &owner, &user, SQLITE, &written, now()).await?;
        integrations::insert(write, &of_posts).await
    });
    assert!(inserted.await.unwrap());
    ids.insert("connection_id", connection.to_string());
    ids.insert("integration_id", integration.to_string());
}

async fn send(world: &World, company: &Company, to: &Naming, path: &str) -> Answer {
    let path = match to.query.as_str() {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    let sent = request(to.method.clone(), &company.key, &path);
    let sent = match &to.body {
        Value::Null => sent.body(Body::empty()),
        body => sent
            .header("content-type", "application/json")
            .body(Body::from(body.to_string())),
    };
    world.send(sent.unwrap()).await
}

/// What is said of a thing, without its id.
fn said(answer: &Answer, id: &str) -> String {
    let mut error = answer.body["error"].clone();
    if let Some(details) = error["details"].as_object_mut() {
        details.remove("request_id");
    }
    let said = json!([
        answer.status.as_u16(),
        error["code"],
        error["message"],
        error["details"]
    ]);
    said.to_string().replace(id, "ID")
}

/// Each id of another company in each place of each path, with everything else one's own.
#[tokio::test]
async fn what_another_company_has_is_not_found_in_ones_own_path() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let third = world.company("third").await;
    let own = things(&world, &acme, &third).await;
    let foreign = things(&world, &other, &third).await;
    let audited = async || {
        let listed = world.get(&other.key, &other.path("/audit-log")).await;
        listed.expect(200).body["meta"]["total"].clone()
    };
    let before = audited().await;
    let (mut wrong, mut told) = (Vec::new(), 0);
    for operation in operations() {
        for name in names(&operation.path) {
            let Some((name, theirs)) = foreign.get_key_value(name) else {
                wrong.push(format!("{}: no {name} was made", operation.id));
                continue;
            };
            let ask = async |id: &str| {
                let mut ids = own.clone();
                ids.insert(*name, id.to_owned());
                let path = filled(&operation.path, &acme, &ids);
                said(&send(&world, &acme, &operation, &path).await, id)
            };
            let nobodys = of_nobody(theirs);
            let (of_theirs, of_nobodys) = (ask(theirs).await, ask(&nobodys).await);
            let is_on_sale = BUYERS.contains(&operation.id.as_str());
            if is_on_sale == (of_theirs == of_nobodys) || !of_nobodys.starts_with("[404") {
                wrong.push(format!("{} {name}: {of_theirs} {of_nobodys}", operation.id));
            }
            told += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(told > 100, "{told}");
    // Whatever is changed has an entry there, which another test holds every operation to.
    assert!(before.as_u64() > Some(5), "{before}");
    assert_eq!(audited().await, before);
}
