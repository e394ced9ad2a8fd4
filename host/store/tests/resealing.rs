//! No sealed column is left out when the master key is replaced, and what breaks off half way goes on.

mod support;

use souk_domain::ids::{CompanyId, WebhookId};
use souk_domain::webhooks::EventType;
use souk_store::audit::tables::{Shown, TABLES};
use souk_store::resealing::{Resealed, key_in_use, prove, reseal, sealed_columns};
use souk_store::sealing::{Owner, Sealer};
use souk_store::webhooks::{self, Webhook};
use souk_store::{Db, StoreError, db};
use std::collections::BTreeSet;
use support::{company, open, stores};

/// Secrets that are not sealed: digests, which no key opens, and an address that whoever may see it is shown.
const NOT_SEALED: &[(&str, &str)] = &[
    ("api_keys", "digest"),
    ("sessions", "digest"),
    ("invitations", "digest"),
    ("top_ups", "checkout_url"),
];

/// A secret column is sealed anew after a rotation, or is none that is sealed: whoever adds one decides.
#[test]
fn every_sealed_column_is_resealed() {
    let secret = TABLES.iter().flat_map(|table| {
        let columns = table.columns.iter();
        let columns = columns.filter(|(_, shown)| *shown == Shown::Secret);
        columns.map(|(column, _)| (table.name, *column))
    });
    let mut decided: BTreeSet<_> = sealed_columns().collect();
    // It is not shown at all, beside the one that follows it.
    decided.remove(&("webhooks", "former_secret"));
    decided.extend(NOT_SEALED);
    assert_eq!(secret.collect::<BTreeSet<_>>(), decided);
}

const FORMER: &str = "0000000000000000000000000000000000000000000000000000000000000001";
const CURRENT: &str = "0000000000000000000000000000000000000000000000000000000000000002";
const SECRETS: u64 = 5;

/// A webhook whose secret is its own id.
async fn secret(db: &Db, company: &CompanyId, sealer: &Sealer) -> WebhookId {
    let (id, now) = (WebhookId::generate(), db::now());
    let plain = id.to_string();
    let owner = Owner::of(company, &plain);
    let webhook = Webhook {
        id: id.clone(),
        company_id: company.clone(),
        url: "https://example.com/".into(),
        description: None,
        event_types: EventType::ALL.to_vec(),
        sealed_secret: sealer.seal(owner, plain.as_bytes()).unwrap(),
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
    id
}

/// How many secrets of webhooks were sealed anew, and how many are left.
fn webhooks_of(done: &Resealed) -> (u64, u64) {
    let mut kinds = done.kinds.iter();
    let kind = kinds.find(|kind| kind.kind == "secrets of webhooks");
    let kind = kind.unwrap();
    assert_eq!(kind.unreadable, 0, "{kind:?}");
    (kind.resealed, kind.remaining)
}

/// One secret at a time, with an end of the host in between: what is left counts down, nothing is done twice, every secret opens at every moment
/// with both keys, and the former key may go when a look at everything has found nothing.
#[tokio::test]
async fn resealing_goes_on_where_it_broke_off() {
    let former = Sealer::new(FORMER, &[]).unwrap();
    let both = Sealer::new(CURRENT, &[FORMER]).unwrap();
    for mut store in stores().await {
        let company = company(&store.db, "secretive").await.company.id;
        prove(&store.db, &former).await.unwrap();
        let mut hooks = Vec::new();
        for _ in 0..SECRETS {
            hooks.push(secret(&store.db, &company, &former).await);
        }
        for left in (0..SECRETS).rev() {
            let done = reseal(&store.db, &both, 1).await.unwrap();
            assert_eq!(webhooks_of(&done), (1, left), "{}", store.name);
            assert!(!done.is_complete);
            let in_use = key_in_use(&mut store.db.read().await.unwrap()).await;
            assert_eq!(in_use.unwrap(), Some(former.key_id()));
            if left == SECRETS / 2 {
                store.db.close().await;
                store.db = open(&store.url).await;
            }
        }
        let done = reseal(&store.db, &both, 1).await.unwrap();
        assert!(done.is_complete && webhooks_of(&done) == (0, 0), "{done:?}");
        // Without the former key.
        let current = Sealer::new(CURRENT, &[]).unwrap();
        prove(&store.db, &current).await.unwrap();
        for id in &hooks {
            let mut read = store.db.read().await.unwrap();
            let hook = webhooks::get(&mut read, &company, id).await.unwrap();
            let hook = hook.unwrap();
            let text = id.to_string();
            let plain = current.unseal(Owner::of(&company, &text), &hook.sealed_secret);
            assert_eq!(plain.unwrap(), text.as_bytes(), "{}", store.name);
        }
    }
}
