//! Keys: found, counted, changed and deactivated.

use crate::support::{company, later, new_key, roll_back, stores};
use souk_domain::ids::{CompanyId, EndpointId, KeyId, UserId};
use souk_domain::keys::{KeyDigest, KeySecret, KeyState, KeyType};
use souk_store::keys::{self, Deactivation, KeyFilter, NewKey};
use souk_store::users::{self, UserFilter};
use souk_store::{Part, StoreError, db};
use std::time::Duration;

/// What counts against a company's room for keys: those that work, and all that are new.
#[tokio::test]
async fn keys_are_counted() {
    for store in stores().await {
        let now = db::now();
        let founded = company(&store.db, "acme").await;
        let (id, other) = (&founded.company.id, company(&store.db, "other").await);
        let hours = |count: u64| Duration::from_secs(3_600 * count);
        let counts = store
            .db
            .write(async |write| -> Result<_, StoreError> {
                for (company, made_at, expires_at, is_revoked) in [
                    (id, now, None, false),
                    (id, now, None, true),
                    (id, now.before(hours(30)), Some(now.after(hours(1))), false),
                    (id, now.before(hours(30)), Some(now.before(hours(1))), false),
                    (id, now.before(hours(31)), Some(now.before(hours(2))), false),
                    (id, now.before(hours(30)), None, true),
                    (&other.company.id, now, None, false),
                ] {
                    let key = NewKey {
                        expires_at,
                        ..new_key(company, None, None)
                    };
                    let secret = KeySecret::generate(KeyType::Analytics);
                    let key = keys::insert(write, &key, &secret, made_at).await?;
                    if is_revoked {
                        let deactivation = Deactivation {
                            at: now,
                            by: None,
                            reason: None,
                            reason_code: None,
                        };
                        keys::deactivate(write, company, &key.id, &deactivation, now).await?;
                    }
                }
                keys::counts(write, id, now).await
            })
            .await
            .unwrap();
        // The first key of a company is one of those that work, and new.
        assert_eq!((counts.live, counts.of_day), (3, 3), "{}", store.name);
    }
}

/// Keys are found by the digest of their secret, listed by state, changed, and deactivated once.
#[tokio::test]
async fn keys_live_and_die() {
    for store in stores().await {
        let now = db::now();
        let founded = company(&store.db, "acme").await;
        let id = &founded.company.id;
        let endpoint = EndpointId::generate();
        let (secret, key) = store
            .db
            .write(async |write| -> Result<_, StoreError> {
                let secret = KeySecret::generate(KeyType::Analytics);
                let key = keys::insert(
                    write,
                    &new_key(id, Some(&founded.user.id), None),
                    &secret,
                    now,
                )
                .await
                .unwrap();
                let endpoint_secret = KeySecret::generate(KeyType::Endpoint);
                keys::insert(
                    write,
                    &new_key(id, None, Some(&endpoint)),
                    &endpoint_secret,
                    now,
                )
                .await
                .unwrap();
                Ok((secret, key))
            })
            .await
            .unwrap();

        roll_back(&store.db, async |write| {
            let known = keys::by_digest(write, &secret.digest())
                .await
                .unwrap()
                .expect("known");
            assert_eq!(
                (
                    &known.key,
                    known.company_handle.as_str(),
                    known.user_is_active
                ),
                (&key, "acme", true)
            );
            assert_eq!(known.key.masked(), secret.masked());
            assert!(
                keys::by_digest(write, &KeyDigest::of("other"))
                    .await
                    .unwrap()
                    .is_none()
            );

            let renamed = keys::Key {
                name: "renamed".into(),
                expires_at: Some(later(now, 60)),
                ..key.clone()
            };
            keys::update(write, &renamed, now).await.unwrap();
            let grace = Deactivation {
                at: later(now, 30),
                by: Some("key_x"),
                reason: Some("rotated"),
                reason_code: Some("rotated"),
            };
            let dying = keys::deactivate(write, id, &key.id, &grace, now)
                .await
                .unwrap()
                .expect("found");
            assert_eq!(dying.state(now), KeyState::Active);
            assert_eq!(dying.state(later(now, 30)), KeyState::Deactivated);
            let at_once = Deactivation {
                at: now,
                reason: Some("leaked"),
                ..grace
            };
            keys::deactivate(write, id, &key.id, &at_once, now)
                .await
                .unwrap();
            let again = Deactivation {
                at: later(now, 5),
                reason: Some("again"),
                ..grace
            };
            let dead = keys::deactivate(write, id, &key.id, &again, now)
                .await
                .unwrap()
                .expect("found");
            assert_eq!(
                (dead.revocation_reason.as_deref(), dead.deactivated_at),
                (Some("leaked"), Some(now)),
                "{}",
                store.name
            );
            assert!(
                keys::deactivate(write, &CompanyId::generate(), &key.id, &again, now)
                    .await
                    .unwrap()
                    .is_none()
            );

            let count = async |write: &mut souk_store::Write, filter: KeyFilter| {
                keys::list(write, id, &filter, now, Part::first(50))
                    .await
                    .unwrap()
                    .1
            };
            assert_eq!(count(write, KeyFilter::default()).await, 3);
            assert_eq!(
                count(
                    write,
                    KeyFilter {
                        state: Some(KeyState::Deactivated),
                        ..KeyFilter::default()
                    }
                )
                .await,
                1
            );
            assert_eq!(
                count(
                    write,
                    KeyFilter {
                        state: Some(KeyState::Active),
                        ..KeyFilter::default()
                    }
                )
                .await,
                2
            );
            assert_eq!(
                count(
                    write,
                    KeyFilter {
                        key_type: Some(KeyType::Endpoint),
                        ..KeyFilter::default()
                    }
                )
                .await,
                1
            );
            let (page, total) = keys::list(
                write,
                id,
                &KeyFilter {
                    endpoint_id: Some(endpoint),
                    ..KeyFilter::default()
                },
                now,
                Part::first(1),
            )
            .await
            .unwrap();
            assert_eq!((page.len(), total), (1, 1));
            let (page, total) = keys::list(write, id, &KeyFilter::default(), now, Part::new(2, 2))
                .await
                .unwrap();
            assert_eq!((page.len(), total), (1, 3));
        })
        .await;
    }
}

/// A key id that does not exist is absent, not an error.
#[tokio::test]
async fn absent_is_not_an_error() {
    for store in stores().await {
        let founded = company(&store.db, "acme").await;
        let mut read = store.db.read().await.unwrap();
        assert!(
            keys::get(&mut read, &founded.company.id, &KeyId::generate())
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            users::get(&mut read, &founded.company.id, &UserId::generate())
                .await
                .unwrap()
                .is_none()
        );
        assert_eq!(
            users::list(
                &mut read,
                &founded.company.id,
                &UserFilter::default(),
                Part::first(10)
            )
            .await
            .unwrap()
            .1,
            1
        );
    }
}
