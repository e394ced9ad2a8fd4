//! The platform's staff in other companies: what those are told of who it was.

use crate::world::World;
use serde_json::json;

/// Whose keys, prices, purchases and credits staff has seen to is told that it was staff, and not by whose key: in what they read, and of what is
/// changed later.
#[tokio::test]
async fn a_company_is_told_of_staff_no_more_than_that() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let me = world.get(&world.platform, "/users/me").await.expect(200);
    let staff = [me.text("/data/user/id"), me.text("/data/api_key_id")];
    let by_staff = async |path: &str, body| {
        let done = world.post(&world.platform, path, body).await;
        assert!(matches!(done.status.as_u16(), 200 | 201), "{}", done.body);
        done
    };

    world.grant(&buyer, 50).await;
    let key = by_staff(&acme.path("/api-keys"), json!({"name": "by staff"})).await;
    assert_eq!(key.at("/data/created_by"), "staff");
    let key = acme.path(&format!("/api-keys/{}", key.text("/data/id")));
    let reason = json!({"reason": "seen in a log", "reason_code": "compromised"});
    let revoked = by_staff(&format!("{key}/revoke"), reason).await;
    assert_eq!(revoked.at("/data/revoked_by"), "staff");
    let (asset, endpoint) = (world.asset(&acme).await, world.endpoint(&acme).await);
    let prices = acme.path(&format!("/assets/{asset}/prices"));
    by_staff(&prices, json!({"price_credits": 2})).await;
    let body = json!({"product_id": endpoint, "accept_terms": true});
    let bought = by_staff(&buyer.path("/purchases"), body).await;
    assert_eq!(bought.at("/data/accepted_by"), "staff");
    let charge = world.charge(&buyer, &acme, &asset, 10).await;
    let refund = buyer.path(&format!("/credits/transactions/{charge}/refund"));
    by_staff(&refund, json!({"reason": "wrong"})).await;
    // All whose keys end with the endpoint are told of it.
    let archived = acme.path(&format!("/endpoints/{endpoint}?force=true"));
    let archived = world.delete(&world.platform, &archived).await;
    archived.expect(204);

    for (company, path) in [
        (&acme, key),
        (&acme, acme.path("/api-keys")),
        (&acme, prices),
        (&acme, acme.path("/credits/transactions")),
        (&acme, acme.path("/audit-log?per_page=100")),
        (&buyer, buyer.path("/api-keys")),
        (&buyer, buyer.path("/purchases")),
        (&buyer, buyer.path("/credits/transactions")),
        (&buyer, buyer.path("/audit-log?per_page=100")),
    ] {
        let read = world.get(&company.key, &path).await.expect(200);
        let text = read.body.to_string();
        let named = staff.iter().find(|id| text.contains(*id));
        assert_eq!(named, None, "{path}: {text}");
    }
    let ended = buyer.path("/api-keys?key_type=endpoint");
    let ended = world.get(&buyer.key, &ended).await.expect(200);
    assert_eq!(ended.at("/data/0/revoked_by"), "staff");
    let grant = buyer.path("/credits/transactions?type=grant");
    let grant = world.get(&buyer.key, &grant).await.expect(200);
    assert_eq!(grant.at("/data/0/api_key_id"), &json!(null));
    // What staff reads says who of them it was.
    let granted = buyer.path("/audit-log?operation=grant_credits");
    let granted = world.get(&world.platform, &granted).await.expect(200);
    assert_eq!(granted.text("/data/0/actor/api_key_id"), staff[1]);
}
