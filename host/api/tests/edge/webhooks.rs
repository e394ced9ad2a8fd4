//! Webhooks of which much waits. How they are delivered is tested over real HTTP, in `tests/`.

use crate::world::{World, now};
use serde_json::json;
use souk_store::StoreError;

/// Whoever disables a webhook has given up all that waits when that is answered, also where it is more than one transaction gives up.
#[tokio::test]
async fn a_disabled_webhook_has_nothing_waiting() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let hook = json!({"url": "https://93.184.216.34/souk"});
    let hook = world.post(&acme.key, &acme.path("/webhooks"), hook).await;
    let hook = hook.expect(201).text("/data/id");
    let filled = world.db.write(async |write| -> Result<(), StoreError> {
        sqlx::query(
            "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
             INSERT INTO webhook_deliveries (id, webhook_id, event_type, body, status, attempts, next_attempt_at, created_at)
             SELECT 'dlv_' || i, CAST($1 AS TEXT), 'payout.paid', '{}', 'pending', 0, $2 + i, $2 + i FROM n",
        )
        .bind(&hook)
        .bind(now().micros())
        .execute(&mut **write)
        .await?;
        Ok(())
    });
    filled.await.unwrap();
    let path = acme.path(&format!("/webhooks/{hook}"));
    let off = json!({"is_active": false});
    world.patch(&acme.key, &path, off).await.expect(200);
    for (status, expected) in [("pending", 0), ("failed", 1_200)] {
        // How many they are: what is in these is no event.
        let listed = format!("{path}/deliveries?status={status}&page=100");
        let listed = world.get(&acme.key, &listed).await.expect(200);
        assert_eq!(listed.at("/meta/total"), expected, "{status}");
    }
}
