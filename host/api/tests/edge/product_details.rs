//! A product by itself: what a buyer has to know before it is called, and nothing of what its owner alone may see.

use crate::world::{Answer, Company, World, now};
use serde_json::{Value, json};
use souk_domain::time::HOUR;
use souk_store::StoreError;

async fn shown(world: &World, reader: &Company, product: &str) -> Answer {
    let path = format!("/marketplace/products/{product}");
    world.get(&reader.key, &path).await.expect(200)
}

/// An asset shows its parameters with all that bounds them, and the unit of its result; nothing of its source, and not what its seller wrote beside. Of an
/// `enum` from before it was held against the bounds it shows what a call may give.
#[tokio::test]
async fn an_asset_shows_how_it_is_called() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset_with(&acme, |asset| {
        let parameters = json!([
            {"name": "season", "type": "integer", "minimum": 1900, "maximum": 2100, "remark": "of our archive"},
            {"name": "club", "type": "string", "required": true, "default": "Ajax", "enum": ["Ajax", "PSV"]},
            {"name": "since", "type": "date", "required": false},
            {"name": "round", "type": "integer", "enum": [1, 2, 3], "maximum": 2},
        ]);
        asset.details.parameters = parameters.to_string();
        asset.details.unit = Some("goals".into());
        asset.details.source = "SELECT secret FROM vault".into();
    });
    let asset = asset.await;
    let told = shown(&world, &buyer, &asset).await;
    assert_eq!(
        told.at("/data/parameters"),
        &json!([
            {"name": "season", "type": "integer", "required": true, "default": null, "enum": null, "minimum": 1900, "maximum": 2100},
            {"name": "club", "type": "string", "required": false, "default": "Ajax", "enum": ["Ajax", "PSV"], "minimum": null, "maximum": null},
            {"name": "since", "type": "date", "required": false, "default": null, "enum": null, "minimum": null, "maximum": null},
            {"name": "round", "type": "integer", "required": true, "default": null, "enum": [1, 2], "minimum": null, "maximum": 2},
        ])
    );
    assert_eq!(told.at("/data/unit"), "goals");
    for of_endpoints in ["filters", "sorts", "order", "default_limit", "max_limit"] {
        let at = told.body["data"].get(of_endpoints);
        assert!(at.is_none(), "{of_endpoints}");
    }
    for private in ["secret", "archive", "con_"] {
        assert!(!told.body.to_string().contains(private), "{private}");
    }
    let listed = world.get(&buyer.key, "/marketplace/products").await;
    let listed = listed.expect(200);
    assert_eq!(listed.at("/data/0/id"), &json!(asset));
    assert!(listed.body["data"][0].get("parameters").is_none());
}

/// An endpoint shows its filters with types and operators, its orders and its limits. Columns have the names that callers use, and those that only sort
/// are nobody's business.
#[tokio::test]
async fn an_endpoint_shows_how_it_is_called() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let endpoint = world.endpoint_with(&acme, |endpoint| {
        let details = &mut endpoint.details;
        details.sql_logic = None;
        details.source_table = Some("vault".into());
        let fields = json!([{"name": "team"}, {"name": "goals", "alias": "scored"}, {"name": "id"}]);
        details.fields = fields.to_string();
        let filters = json!(["team", {"field": "goals", "operators": ["gte", "lt"]}, "league"]);
        details.filters = filters.to_string();
        let newest = json!([{"field": "loaded_at", "descending": true}, {"field": "goals", "descending": true}]);
        details.sorts = json!([{"name": "newest", "order_by": newest}]).to_string();
        details.order_by = json!([{"field": "team"}, {"field": "cost_2024"}]).to_string();
        (details.default_limit, details.max_limit) = (20, 500);
    });
    let endpoint = endpoint.await;
    let column = |name: &str, kind: &str| json!({"name": name, "type": kind, "native": kind});
    let learned = json!({"columns": [column("team", "text"), column("goals", "int64"), column("id", "int64")], "key": ["id"]});
    let learned = learned.to_string();
    world
        .db
        .write(async |write| -> Result<_, StoreError> {
            sqlx::query("UPDATE products SET learned = $1 WHERE id = $2")
                .bind(&learned)
                .bind(&endpoint)
                .execute(&mut **write)
                .await
                .unwrap();
            Ok(())
        })
        .await
        .unwrap();
    let told = shown(&world, &buyer, &endpoint).await;
    assert_eq!(
        told.at("/data/filters"),
        &json!([
            {"field": "team", "type": "text", "operators": ["eq"]},
            {"field": "goals", "type": "int64", "operators": ["gte", "lt"]},
            {"field": "league", "type": null, "operators": ["eq"]},
        ])
    );
    assert_eq!(
        told.at("/data/sorts"),
        &json!([{"name": "newest", "order_by": [{"field": "scored", "direction": "desc"}]}])
    );
    assert_eq!(
        told.at("/data/order"),
        &json!([{"field": "team", "direction": "asc"}, {"field": "id", "direction": "asc"}])
    );
    assert_eq!(
        (told.at("/data/default_limit"), told.at("/data/max_limit")),
        (&json!(20), &json!(500))
    );
    assert!(told.body["data"].get("parameters").is_none());
    for private in ["vault", "loaded_at", "cost_2024", "con_"] {
        assert!(!told.body.to_string().contains(private), "{private}");
    }
}

/// A discount is told with what it was made from and when it ends; a price without one, and without an end, says so by null.
#[tokio::test]
async fn a_discount_shows_until_when_it_holds() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset(&acme).await;
    let prices = acme.path(&format!("/assets/{asset}/prices"));
    let of_price = |told: &Answer| -> [Value; 4] {
        let members = [
            "price_credits",
            "original_price_credits",
            "discount_percent",
            "price_until",
        ];
        members.map(|member| told.body["data"][member].clone())
    };
    let unpriced = shown(&world, &buyer, &asset).await;
    assert_eq!(of_price(&unpriced), [(); 4].map(|()| Value::Null));
    world
        .post(&acme.key, &prices, json!({"price_credits": 10}))
        .await
        .expect(201);
    let told = shown(&world, &buyer, &asset).await;
    let full = [json!(10), Value::Null, Value::Null, Value::Null];
    assert_eq!(of_price(&told), full);
    let ends = now().after(HOUR).to_string();
    let discount = json!({"discount_percent": 20, "effective_to": ends});
    world
        .post(&acme.key, &format!("{prices}/discount"), discount)
        .await
        .expect(201);
    let told = shown(&world, &buyer, &asset).await;
    let discounted = [json!(8), json!(10), json!(20), json!(ends)];
    assert_eq!(of_price(&told), discounted);
}
