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

/// What names events, wherever it stands and whatever it is called, is told to be no `event_types` where there are none, and not ignored: the webhook
/// would be told of everything.
#[tokio::test]
async fn events_that_are_named_elsewhere_are_refused() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let hooks = acme.path("/webhooks");
    let url = "https://93.184.216.34/souk";
    let made = json!({"url": url, "event_types": ["credits.low"], "triggers": ["payout.paid"]});
    let made = world.post(&acme.key, &hooks, made).await.expect(201);
    let hook = format!("{hooks}/{}", made.text("/data/id"));
    for (name, value, field) in [
        ("triggers", json!(["credits.low"]), "triggers"),
        ("triggers", json!({"alert": true}), "triggers"),
        ("on", json!("credits.low"), "on"),
        ("filter", json!({"events": []}), "filter.events"),
        ("filter", json!({"on": ["credits.low"]}), "filter.on"),
        (
            "options",
            json!([{"retries": 3}, {"only": {"of": ["x", "payout.paid"]}}]),
            "options[1].only.of",
        ),
    ] {
        let made = json!({"url": url, name: value});
        let made = world.post(&acme.key, &hooks, made).await;
        let changed = world.patch(&acme.key, &hook, json!({name: value})).await;
        for refused in [made, changed] {
            let refused = refused.expect_error(400, "VALIDATION_ERROR");
            assert_eq!(refused.fields(), [field], "{}", refused.body);
            let told = refused.text("/error/details/errors/0/message");
            assert!(told.contains("event_types"), "{told}");
        }
    }
    let shown = world.get(&acme.key, &hook).await.expect(200);
    assert_eq!(shown.at("/data/event_types"), &json!(["credits.low"]));
    // All else that nobody knows is ignored.
    let other = json!({"url": url, "description": "credits.low", "metadata": {"type": "crm", "tags": ["x"]}});
    world.post(&acme.key, &hooks, other).await.expect(201);
}

/// Two who change a webhook at the same moment both have what they were answered with: an address that was changed is not changed back by whoever
/// writes a description.
#[tokio::test]
async fn changes_at_once_are_both_kept() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let url = |round: u32| format!("https://93.184.216.34/souk/{round}");
    let made = json!({"url": url(0)});
    let made = world.post(&acme.key, &acme.path("/webhooks"), made).await;
    let hook = made.expect(201).text("/data/id");
    let path = acme.path(&format!("/webhooks/{hook}"));
    for round in 1..=20 {
        let description = format!("round {round}");
        let changes = [
            json!({"url": url(round)}),
            json!({"description": description}),
        ];
        world.patch_both(&acme.key, &path, changes).await;
        let shown = world.get(&acme.key, &path).await.expect(200);
        assert_eq!(shown.text("/data/url"), url(round));
        assert_eq!(shown.text("/data/description"), description);
    }
}
