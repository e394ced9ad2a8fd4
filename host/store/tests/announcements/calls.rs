//! A call of every function that changes what is cached.

use crate::Witness;
use crate::support;
use souk_domain::connections::Target;
use souk_domain::ids::{AssetId, CompanyId, ConnectionId, EndpointId, KeyId};
use souk_domain::keys::{KeySecret, KeyType};
use souk_domain::money::{Credits, UsdCents};
use souk_domain::prices::Validity;
use souk_domain::products::{Product, ProductStatus};
use souk_domain::roles::{Grant, Permissions, Role};
use souk_domain::sessions::{LIFE_MAX, Token};
use souk_domain::time::Timestamp;
use souk_store::companies::{Company, NewCompany};
use souk_store::connectors::canaries::{self, Canary};
use souk_store::connectors::{Choice, StoredConnector};
use souk_store::files::File;
use souk_store::keys::{Deactivation, Key, NewKey};
use souk_store::prices::{NewPrice, Price};
use souk_store::products::{self, Kept, Kind, Tested, Written, learned};
use souk_store::purchases::{NewPurchase, PurchaseStatus};
use souk_store::sessions::NewSession;
use souk_store::users::{Arrival, User, UserStatus};
use souk_store::{
    Write, companies, connections, connectors, files, keys, prices, purchases, sessions, users,
};
use std::time::Duration;

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn after(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

pub async fn all(witness: &mut Witness) {
    let (seller, user) = company(witness, "seller").await;
    let (buyer, _) = company(witness, "buyer").await;
    let moved = Company {
        handle: "moved".into(),
        ..seller.clone()
    };
    witness
        .of("companies::update", async |write| {
            companies::update(write, &moved, NOW).await
        })
        .await;
    let late = after(91 * 86_400);
    let forget = async |write: &mut Write| companies::sweep_handles(write, late).await;
    assert!(witness.of("companies::sweep_handles", forget).await);
    let retired = User {
        status: UserStatus::Disabled,
        ..user.clone()
    };
    witness
        .of("users::update", async |write| {
            users::update(write, &retired, NOW).await
        })
        .await;

    let connection = sources(witness, &seller.id, &user).await;
    let (asset, endpoint) = (AssetId::generate(), EndpointId::generate());
    product(witness, &seller.id, &user, &asset, |name| Written {
        connection_id: connection.clone(),
        ..support::asset(name, name)
    })
    .await;
    product(witness, &seller.id, &user, &endpoint, |name| Written {
        connection_id: connection.clone(),
        ..support::endpoint(name, name)
    })
    .await;
    // It was hidden last.
    let keep = async |write: &mut Write| learned::keep(write, &endpoint, after(3), "[]").await;
    witness.of("learned::keep", keep).await;
    prices(witness, &seller.id, &asset).await;
    let purchase = NewPurchase {
        buyer: &buyer.id,
        seller: &seller.id,
        product: &Product::Endpoint(endpoint.clone()),
        credits: Credits::ZERO,
        ai_training_allowed: false,
        accepted_by: "key_1",
    };
    purchases_and_keys(witness, &purchase, &endpoint, &user).await;
    presence(witness, &user).await;
    departure(witness, &user).await;
    let gone = async |write: &mut Write| {
        let id = &connection;
        connections::delete(write, &seller.id, id, NOW).await
    };
    assert!(witness.of("connections::delete", gone).await);
    connectors(witness, &seller.id).await;
}

async fn company(witness: &mut Witness, handle: &str) -> (Company, User) {
    let new = NewCompany {
        handle,
        name: handle,
        description: None,
        is_platform: false,
    };
    let company = witness
        .of("companies::insert", async |write| {
            companies::insert(write, &new, NOW).await
        })
        .await;
    let new = users::NewUser {
        company_id: &company.id,
        email: None,
        name: "x",
        role: Role::Admin,
        job_function_id: None,
        status: UserStatus::Active,
    };
    let user = witness
        .db
        .write(async |write| users::insert(write, &new, NOW).await)
        .await;
    (company, user.unwrap())
}

/// The user comes in, is seen, and signs out.
async fn presence(witness: &mut Witness, user: &User) {
    let arrival = Arrival {
        identity: Some(("google", "1")),
        email_verified: true,
    };
    let arrive = async |write: &mut Write| users::arrive(write, user, &arrival, NOW).await;
    witness.of("users::arrive", arrive).await;
    let new = NewSession {
        company_id: &user.company_id,
        user_id: &user.id,
        auth_provider: "google",
        address: "192.0.2.1",
        user_agent: None,
    };
    let mut begun = Vec::new();
    // The first of too many goes.
    for second in 0..=20 {
        let digest = Token::generate().digest();
        let at = after(second);
        let begin = async |write: &mut Write| sessions::insert(write, &new, &digest, at).await;
        begun.push(witness.of("sessions::insert", begin).await);
    }
    let ended = ("Key".to_owned(), begun[0].id.to_string());
    assert!(witness.announced.contains(&ended));
    let two = &begun[20];
    let end =
        async |write: &mut Write| sessions::end(write, &user.company_id, &user.id, &two.id).await;
    assert!(witness.of("sessions::end", end).await);
    let all = async |write: &mut Write| sessions::end_all(write, &user.id).await;
    witness.of("sessions::end_all", all).await;
    let insert = async |write: &mut Write| {
        sessions::insert(write, &new, &Token::generate().digest(), NOW).await
    };
    witness.of("sessions::insert", insert).await;
    let sweep = async |write: &mut Write| sessions::sweep(write, NOW.after(LIFE_MAX)).await;
    assert!(witness.of("sessions::sweep", sweep).await);
}

/// The user goes, and a key with it.
async fn departure(witness: &mut Witness, user: &User) {
    let own = NewKey {
        company_id: &user.company_id,
        user_id: Some(&user.id),
        endpoint_id: None,
        purchase_id: None,
        name: "own",
        description: None,
        grant: Grant {
            role: Role::Admin,
            permissions: Permissions::READ,
        },
        rate_limit: 1_000,
        created_by: None,
        expires_at: None,
    };
    let secret = KeySecret::generate(KeyType::Analytics);
    let insert = async |write: &mut Write| keys::insert(write, &own, &secret, NOW).await;
    witness.of("keys::insert", insert).await;
    let now = Deactivation {
        at: NOW,
        ..Deactivation::default()
    };
    let beyond = Some(Role::DataEngineer);
    let revoke =
        async |write: &mut Write| keys::deactivate_of_user(write, &user.id, beyond, &now).await;
    witness.of("keys::deactivate_of_user", revoke).await;
    let remove = async |write: &mut Write| users::remove(write, user, NOW).await;
    witness.of("users::remove", remove).await;
}

async fn sources(witness: &mut Witness, company: &CompanyId, user: &User) -> ConnectionId {
    /// The bundled `sqlite`.
    const ENGINE: i64 = 4;
    let id = ConnectionId::generate();
    let target = Target::File {
        name: "sales.db".into(),
    };
    let written = |name| connections::Written {
        name,
        credential_type: "NONE",
        credentials: b"sealed",
        target: &target,
        cloud_provider_id: None,
        verified_usage_ability: true,
        statement_timeout_ms: 10_000,
    };
    let insert = async |write: &mut Write| {
        let written = written("one");
        connections::insert(write, &id, company, &user.id, ENGINE, &written, NOW).await
    };
    witness.of("connections::insert", insert).await;
    let update = async |write: &mut Write| {
        connections::update(write, company, &id, 1, &written("two"), NOW).await
    };
    assert!(witness.of("connections::update", update).await);
    let relabel = async |write: &mut Write| {
        connections::relabel(write, company, &id, &written("three"), NOW).await
    };
    assert!(witness.of("connections::relabel", relabel).await);
    let file = File {
        name: "sales.db".into(),
        upload_id: "upl_1".into(),
        size_bytes: 7,
        sha256: "00".into(),
        created_at: NOW,
        updated_at: NOW,
    };
    let put = async |write: &mut Write| files::put(write, company, &file).await;
    let readers = witness.of("files::put", put).await;
    assert_eq!(readers, std::slice::from_ref(&id));
    id
}

async fn product<K: Kind>(
    witness: &mut Witness,
    company: &CompanyId,
    user: &User,
    id: &K,
    written: impl Fn(&str) -> Written<K::Details>,
) {
    let insert = async |write: &mut Write| {
        products::insert(write, id, company, &user.id, &written("one"), NOW).await
    };
    witness.of("products::insert", insert).await;
    let keep = async |write: &mut Write| products::keep_sample(write, id, NOW, "[]", NOW).await;
    witness.of("products::keep_sample", keep).await;
    let update = async |write: &mut Write| {
        products::update(
            write,
            company,
            id,
            NOW,
            &written("two"),
            Kept::default(),
            after(1),
        )
        .await
    };
    assert!(witness.of("products::update", update).await);
    let tested = Tested {
        sample: Some("[]".into()),
        learned: Some("{}".into()),
        allow_ai_training: true,
    };
    let publish = async |write: &mut Write| {
        products::publish(write, company, id, after(1), &tested, after(2)).await
    };
    assert!(witness.of("products::publish", publish).await);
    let hide = async |write: &mut Write| {
        products::set_status(write, company, id, ProductStatus::Unpublished, after(3)).await
    };
    assert!(witness.of("products::set_status", hide).await);
}

async fn prices(witness: &mut Witness, company: &CompanyId, asset: &AssetId) {
    let new = NewPrice {
        company,
        product: asset.as_str(),
        credits: Credits::ZERO,
        usd: UsdCents::ZERO,
        discount_percent: None,
        original_credits: None,
        validity: Validity {
            from: NOW,
            to: None,
        },
        created_by: "key_1",
    };
    let price = new.price(NOW);
    witness
        .of("prices::insert", async |write| {
            prices::insert(write, &price).await
        })
        .await;
    let dearer = Price {
        usd: UsdCents::new(50),
        ..price.clone()
    };
    witness
        .of("prices::update", async |write| {
            prices::update(write, &dearer, NOW).await
        })
        .await;
    let end = async |write: &mut Write| prices::end_at(write, &price, after(9), NOW).await;
    witness.of("prices::end_at", end).await;
    let ask = async |write: &mut Write| {
        prices::ask_end(write, asset.as_str(), &price.id, Some(after(19)), NOW).await
    };
    witness.of("prices::ask_end", ask).await;
    witness
        .of("prices::delete", async |write| {
            prices::delete(write, &price).await
        })
        .await;
}

async fn purchases_and_keys(
    witness: &mut Witness,
    new: &NewPurchase<'_>,
    endpoint: &EndpointId,
    user: &User,
) {
    let purchase = witness
        .of("purchases::implicit", async |write| {
            purchases::implicit(write, new, NOW).await
        })
        .await;
    let cancel = async |write: &mut Write| {
        let (from, to) = (PurchaseStatus::Active, PurchaseStatus::Cancelled);
        purchases::set_status(write, &purchase.id, from, to).await
    };
    assert!(witness.of("purchases::set_status", cancel).await);
    let renew = async |write: &mut Write| purchases::renew(write, &purchase.id, new, NOW).await;
    assert!(witness.of("purchases::renew", renew).await.is_some());
    let of_endpoint = NewKey {
        company_id: new.buyer,
        user_id: None,
        endpoint_id: Some(endpoint),
        purchase_id: Some(&purchase.id),
        name: "a key",
        description: None,
        grant: Grant {
            role: Role::Analyst,
            permissions: Permissions::READ_WRITE,
        },
        rate_limit: 1_000,
        created_by: None,
        expires_at: None,
    };
    let mut insert = async |new: &NewKey<'_>| -> Key {
        let secret = KeySecret::generate(KeyType::Endpoint);
        witness
            .of("keys::insert", async |write| {
                keys::insert(write, new, &secret, NOW).await
            })
            .await
    };
    let key = insert(&of_endpoint).await;
    let others = [insert(&of_endpoint).await, insert(&of_endpoint).await];
    let set: KeyId = key.id.clone();
    let set = async |write: &mut Write| purchases::set_key(write, &purchase.id, &set).await;
    witness.of("purchases::set_key", set).await;
    let renamed = Key {
        name: format!("of {}", user.name),
        ..key.clone()
    };
    witness
        .of("keys::update", async |write| {
            keys::update(write, &renamed, NOW).await
        })
        .await;
    let now = Deactivation {
        at: NOW,
        ..Deactivation::default()
    };
    let revoke =
        async |write: &mut Write| keys::deactivate(write, new.buyer, &key.id, &now, NOW).await;
    assert!(witness.of("keys::deactivate", revoke).await.is_some());
    let all = async |write: &mut Write| {
        keys::deactivate_of_purchase(write, new.buyer, &purchase.id, &now).await
    };
    witness.of("keys::deactivate_of_purchase", all).await;
    // From an earlier instant on, so that those that were just deactivated are deactivated anew.
    let before = Deactivation {
        at: Timestamp::from_micros(1),
        ..now
    };
    let all = async |write: &mut Write| {
        keys::deactivate_of_endpoint(write, new.seller, endpoint, &before).await
    };
    witness.of("keys::deactivate_of_endpoint", all).await;
    assert!(others.iter().all(|other| {
        witness
            .announced
            .contains(&("Key".into(), other.id.to_string()))
    }));
}

async fn connectors(witness: &mut Witness, company: &CompanyId) {
    let version = |version: &str| StoredConnector {
        described: None,
        error: None,
        scope: company.to_string(),
        name: "x".into(),
        version: version.into(),
        digest: "00".into(),
        size_bytes: 1,
        uploaded_by: "key_1".into(),
        created_at: NOW,
    };
    for version in [version("1.0.0"), version("2.0.0")] {
        let insert = async |write: &mut Write| connectors::insert(write, &version).await;
        witness.of("connectors::insert", insert).await;
    }
    let choice = Choice {
        scope: company.to_string(),
        name: "x".into(),
        version: "2.0.0".into(),
        previous_version: Some("1.0.0".into()),
        activated_at: NOW,
        deactivated_at: None,
        blocked: false,
        reason: None,
    };
    witness
        .of("connectors::choose", async |write| {
            connectors::choose(write, &choice).await
        })
        .await;
    let (scope, name, old) = (company.as_str(), "x", "1.0.0");
    let refused = async |write: &mut Write| {
        connectors::note_error(write, (scope, name, old), Some("refused")).await
    };
    witness.of("connectors::note_error", refused).await;
    let delete = async |write: &mut Write| connectors::delete(write, scope, name, old).await;
    assert!(witness.of("connectors::delete", delete).await);
    let forget =
        async |write: &mut Write| connectors::forget_previous(write, scope, name, old).await;
    witness.of("connectors::forget_previous", forget).await;
    let canary = Canary {
        scope: company.to_string(),
        name: "x".into(),
        version: "3.0.0".into(),
        beside_version: "2.0.0".into(),
        share_percent: 10,
        since: NOW,
    };
    let begin = async |write: &mut Write| canaries::begin(write, &canary).await;
    witness.of("canaries::begin", begin).await;
    let end = async |write: &mut Write| canaries::end(write, scope, name).await;
    assert!(witness.of("canaries::end", end).await);
}
