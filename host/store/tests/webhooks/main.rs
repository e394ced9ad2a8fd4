//! Webhooks in the store, on SQLite and on PostgreSQL: events exist exactly when what caused them does, and whoever claims one has it alone.

#[path = "../support/mod.rs"]
mod support;

mod attempts;
mod bounds;
mod events;

use souk_domain::ids::{AssetId, CompanyId, KeyId, TopUpId, WebhookId};
use souk_domain::products::Product;
use souk_domain::time::Timestamp;
use souk_domain::webhooks::EventType;
use souk_store::deliveries::{self, Delivery};
use souk_store::top_ups::{self, NewTopUp};
use souk_store::webhooks::{self, Webhook};
use souk_store::{Db, Part, StoreError, Write, db};
use support::{Market, Store, company, credits, grant};

/// A buyer with credits and a webhook for these types, and somebody who sells to it.
async fn market(store: &Store, buyer_credits: i64, types: &[EventType]) -> (Market, WebhookId) {
    let buyer = company(&store.db, "buyer").await.company.id;
    let seller = company(&store.db, "seller").await.company.id;
    if buyer_credits > 0 {
        grant(&store.db, &buyer, buyer_credits).await;
    }
    let hook = webhook(&store.db, &buyer, types).await;
    let product = Product::Asset(AssetId::generate());
    let actor = KeyId::generate().into();
    let market = Market {
        buyer,
        seller,
        product,
        actor,
    };
    (market, hook)
}

async fn webhook(db: &Db, company: &CompanyId, types: &[EventType]) -> WebhookId {
    let now = db::now();
    let webhook = Webhook {
        id: WebhookId::generate(),
        company_id: company.clone(),
        url: "https://example.com/".into(),
        description: None,
        event_types: types.to_vec(),
        sealed_secret: vec![1],
        former_secret: None,
        failing_since: None,
        disabled: None,
        created_at: now,
        updated_at: now,
    };
    db.write(async |write| -> Result<_, StoreError> {
        assert!(webhooks::insert(write, &webhook).await.unwrap());
        Ok(())
    })
    .await
    .unwrap();
    webhook.id
}

async fn written(db: &Db, webhook: &WebhookId) -> Vec<Delivery> {
    let mut read = db.read().await.unwrap();
    let (found, _) = deliveries::list(&mut read, webhook, None, None, Part::first(100))
        .await
        .unwrap();
    found
}

fn data(delivery: &Delivery) -> serde_json::Value {
    let body: serde_json::Value = serde_json::from_str(&delivery.body).unwrap();
    assert_eq!(body["type"], delivery.event_type);
    body["data"].clone()
}

/// One top-up that has begun.
async fn top_up(db: &Db, market: &Market) -> TopUpId {
    let id = TopUpId::generate();
    let new = NewTopUp {
        id: &id,
        company: &market.buyer,
        credits: credits(7),
        provider: "manual",
        payment_method: None,
        actor: &market.actor,
        idempotency_key: None,
    };
    db.write(async |write| top_ups::insert(write, &new, db::now()).await)
        .await
        .unwrap();
    id
}

/// So many deliveries wait for a webhook, each a microsecond younger than the last.
async fn waiting(
    write: &mut Write,
    webhook: &WebhookId,
    count: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let filled = sqlx::query(
        "INSERT INTO webhook_deliveries (id, webhook_id, event_type, body, status, attempts, next_attempt_at, created_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $3)
         SELECT 'dlv_' || n || $4, $1, 'payout.paid', '{}', 'pending', 0, $2, $2 + n FROM numbers",
    );
    filled
        .bind(webhook.as_str())
        .bind(now.micros())
        .bind(count)
        .bind(&webhook.as_str()[4..])
        .execute(&mut **write)
        .await?;
    Ok(())
}
