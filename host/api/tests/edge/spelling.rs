//! A misspelt member of an object within a body is told, and not ignored: what it was meant to say would not hold.

use crate::world::World;
use serde_json::{Value, json};
use souk_domain::ids::AlertId;

/// By the place where it stands, in every operation that takes objects; nothing is changed.
#[tokio::test]
async fn what_is_misspelt_in_an_object_is_named() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (asset, endpoint) = (world.asset(&acme).await, world.endpoint(&acme).await);
    let asset = acme.path(&format!("/assets/{asset}"));
    let endpoint = acme.path(&format!("/endpoints/{endpoint}"));
    let (assets, endpoints) = (acme.path("/assets"), acme.path("/endpoints"));
    let alerts = acme.path(&format!("/users/{}/alerts", acme.user_id));
    let alert = acme.path(&format!("/alerts/{}", AlertId::generate()));
    let schema = format!("{asset}/schema");
    let before = [
        world.get(&acme.key, &asset).await.expect(200),
        world.get(&acme.key, &endpoint).await.expect(200),
    ];
    let condition = json!({"condition": {"operator": "gt", "threshold": 1, "fields": "upper"}});
    let key = json!({"name": "id", "primaryKey": true});
    let table = json!({"name": "t", "fields": [{"name": "a"}, key]});
    for (verb, path, body, field) in [
        (
            "POST",
            &assets,
            json!({"parameters": [{"name": "n", "type": "integer", "require": false}]}),
            "parameters[0].require",
        ),
        (
            "POST",
            &assets,
            json!({"visualization": {"mark": "bar", "titles": "Goals"}}),
            "visualization.titles",
        ),
        (
            "PATCH",
            &asset,
            json!({"prediction": {"horizons": 3}}),
            "prediction.horizons",
        ),
        (
            "PATCH",
            &asset,
            json!({"privacy": {"minGroupSize": 5, "privacy_unit_column": "n"}}),
            "privacy.minGroupSize",
        ),
        (
            "POST",
            &endpoints,
            json!({"source": {"table": "t", "schemas": "s"}}),
            "source.schemas",
        ),
        (
            "PATCH",
            &endpoint,
            json!({"fields": [{"name": "one", "Alias": "two"}]}),
            "fields[0].Alias",
        ),
        (
            "PATCH",
            &endpoint,
            json!({"filters": ["one", {"field": "one", "operator": ["gte"]}]}),
            "filters[1].operator",
        ),
        (
            "PATCH",
            &endpoint,
            json!({"order_by": [{"field": "one", "directions": "desc"}]}),
            "order_by[0].directions",
        ),
        (
            "PATCH",
            &endpoint,
            json!({"sorts": [{"name": "s", "order_by": [{"field": "one", "isNullable": false}]}]}),
            "sorts[0].order_by[0].isNullable",
        ),
        ("POST", &alerts, condition.clone(), "condition.fields"),
        ("PATCH", &alert, condition, "condition.fields"),
        (
            "PUT",
            &schema,
            json!({"schema": {"tables": [table]}}),
            "schema.tables[0].fields[1].primaryKey",
        ),
    ] {
        let refused = match verb {
            "POST" => world.post(&acme.key, path, body).await,
            "PUT" => world.put(&acme.key, path, body).await,
            _ => world.patch(&acme.key, path, body).await,
        };
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        let errors = refused.at("/error/details/errors").as_array().cloned();
        let errors = errors.unwrap_or_default();
        let told = errors.iter().find(|error| error["field"] == field);
        assert_eq!(
            told.map(|error| &error["code"]),
            Some(&json!("unknown")),
            "{field}: {}",
            refused.body
        );
    }
    let after = [
        world.get(&acme.key, &asset).await.expect(200),
        world.get(&acme.key, &endpoint).await.expect(200),
    ];
    let shown = |answers: &[crate::world::Answer; 2]| -> Vec<Value> {
        answers
            .iter()
            .map(|answer| answer.body["data"].clone())
            .collect()
    };
    assert_eq!(shown(&before), shown(&after));
}

/// What an answer shows can be sent back, though not all of it can be written; and what looks like nothing that is known is ignored.
#[tokio::test]
async fn what_is_merely_unknown_is_ignored() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let asset = world.asset(&acme).await;
    let path = acme.path(&format!("/assets/{asset}/schema"));
    let field = json!({"name": "id", "type": "int8", "native": "bigint", "position": 1});
    let table = json!({"name": "t", "type": "table", "row_estimate": 7, "fields": [field]});
    let saved = json!({"schema": {"tables": [table], "fetched_at": "now"}, "schemas": {}});
    let saved = world.put(&acme.key, &path, saved).await.expect(200);
    assert_eq!(
        saved.at("/data/schema/tables/0/fields/0"),
        &json!({"name": "id", "type": "int8"})
    );
}
