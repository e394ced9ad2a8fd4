//! Predicted prices: an estimate that names what it was made from. Its arithmetic is tested where it is (`souk_domain::estimates`).

use crate::world::{Company, World};
use serde_json::{Value, json};

async fn priced(world: &World, seller: &Company, name: &str, credits: i64) -> String {
    let asset = world.asset_with(seller, |asset| {
        asset.name = name.into();
        asset.details.sport = Some("football".into());
        asset.category = Some("results".into());
    });
    let asset = asset.await;
    let prices = seller.path(&format!("/assets/{asset}/prices"));
    let price = json!({"price_credits": credits});
    world.post(&seller.key, &prices, price).await.expect(201);
    asset
}

/// The estimate follows the market: what is alike, what it costs, and how much of it is bought.
#[tokio::test]
async fn an_estimate_names_its_comparables() {
    let world = World::new().await;
    let (acme, seller, buyer) = (
        world.company("acme").await,
        world.company("seller").await,
        world.company("buyer").await,
    );
    let own = world.asset_with(&acme, |asset| {
        asset.name = "Goals per match".into();
        asset.details.sport = Some("football".into());
        asset.category = Some("results".into());
    });
    let own = own.await;
    let path = acme.path(&format!("/assets/{own}/predicted-price"));
    // Own products do not count, nor what has no price.
    priced(&world, &acme, "Goals per match", 50).await;
    world.asset(&seller).await;
    let none = world.post(&acme.key, &path, json!({})).await.expect(200);
    let data = &none.body["data"];
    assert_eq!(
        (
            &data["predicted_price_credits"],
            &data["predicted_price_usd"],
            &data["comparables"],
            &data["confidence"]
        ),
        (&Value::Null, &Value::Null, &json!([]), &json!(0.0))
    );

    let cheap = priced(&world, &seller, "Goals per match", 2).await;
    let one = world.get(&acme.key, &path).await.expect(200);
    let mut data = one.body["data"].clone();
    assert!(data["generated_at"].take().is_string());
    assert_eq!(
        data,
        json!({"asset_id": own, "target": "revenue", "predicted_price_credits": 2, "predicted_price_usd": 1, "low_credits": 2, "high_credits": 2,
               "confidence": 0.25, "comparables_used": 1,
               "comparables": [{"asset_id": cheap, "name": "Goals per match", "price_credits": 2, "executions_30d": 0, "similarity": 1.0, "weight": 1.0}],
               "factors": [{"name": "same_category", "weight": 0.2727}, {"name": "same_sport", "weight": 0.2727},
                           {"name": "shared_words", "weight": 0.3636}, {"name": "same_result_type", "weight": 0.0909}],
               "model_version": "weighted-median-1", "generated_at": null})
    );

    let dear = priced(&world, &seller, "Cards", 9).await;
    world.grant(&buyer, 9 * 40).await;
    for _ in 0..40 {
        world.charge(&buyer, &seller, &dear, 9).await;
    }
    // Nine credits are earned far more often: of what is run, the other still is a fifth, of what is earned it is less.
    for (target, low) in [("revenue", 9), ("volume", 2)] {
        let body = json!({"target": target});
        let by_body = world.post(&acme.key, &path, body).await.expect(200);
        let by_query = format!("{path}?target={target}");
        let by_query = world.get(&acme.key, &by_query).await.expect(200);
        for answer in [by_body, by_query] {
            let data = &answer.body["data"];
            assert_eq!(
                (&data["target"], &data["predicted_price_credits"]),
                (&json!(target), &json!(9))
            );
            assert_eq!(
                (&data["low_credits"], &data["high_credits"]),
                (&json!(low), &json!(9))
            );
            let first = &data["comparables"][0];
            assert_eq!(
                (&first["asset_id"], &first["executions_30d"]),
                (&json!(dear), &json!(40))
            );
        }
    }
    // Suspended sellers are no market.
    world.suspend(&seller).await;
    let none = world.get(&acme.key, &path).await.expect(200);
    assert_eq!(none.at("/data/predicted_price_credits"), &Value::Null);

    for (key, company, code) in [
        (&buyer.key, &buyer, "ASSET_NOT_FOUND"),
        (&buyer.key, &acme, "COMPANY_ACCESS_DENIED"),
    ] {
        let path = company.path(&format!("/assets/{own}/predicted-price"));
        let refused = world.get(key, &path).await;
        let status = refused.status.as_u16();
        refused.expect_error(status, code);
    }
    let wrong = world
        .post(&acme.key, &path, json!({"target": "luck"}))
        .await;
    wrong.expect_error(400, "VALIDATION_ERROR");
    let wrong = world.get(&acme.key, &format!("{path}?target=luck")).await;
    wrong.expect_error(400, "INVALID_PARAMETER");
}
