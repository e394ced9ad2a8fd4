//! Companies: who is in them, what they are called, and how much they have.

use crate::support::{company, later, roll_back, stores};
use souk_domain::connections::Target;
use souk_domain::ids::{CompanyId, ConnectionId, FileId};
use souk_domain::roles::Role;
use souk_domain::sessions::Token;
use souk_domain::time::Timestamp;
use souk_store::connections::{self, Written};
use souk_store::connectors::{self, PLATFORM, StoredConnector};
use souk_store::files::{self, File};
use souk_store::sessions::{self, NewSession};
use souk_store::shares::{self, Taken};
use souk_store::users::{self, UserStatus};
use souk_store::{StoreError, companies, db};

/// An address is once in a company, and once in all companies among those of whom it was shown that it is theirs.
#[tokio::test]
async fn an_address_is_proven_once() {
    for store in stores().await {
        let now = db::now();
        let one = company(&store.db, "one").await.company.id;
        let two = company(&store.db, "two").await.company.id;
        let add = async |company: &CompanyId| {
            let new = users::NewUser {
                company_id: company,
                email: Some("Ann@example.org"),
                name: "Ann",
                role: Role::Analyst,
                job_function_id: None,
                status: UserStatus::Invited,
            };
            let added = store
                .db
                .write(async |write| users::insert(write, &new, now).await);
            added.await
        };
        let arrive = async |user: &users::User, email_verified: bool| {
            let arrival = users::Arrival {
                identity: None,
                email_verified,
            };
            let arrived = store
                .db
                .write(async |write| users::arrive(write, user, &arrival, now).await);
            arrived.await
        };
        let first = add(&one).await.unwrap();
        let second = add(&two).await.unwrap();
        let again = add(&one).await;
        assert!(matches!(again, Err(StoreError::Conflict)), "{}", store.name);
        arrive(&first, false).await.unwrap();
        arrive(&second, true).await.unwrap();
        let late = arrive(&first, true).await;
        assert!(matches!(late, Err(StoreError::Conflict)), "{}", store.name);
        let proven = async || {
            let mut read = store.db.read().await.unwrap();
            let proven = users::by_proven_email(&mut read, "ann@example.org").await;
            proven.unwrap().map(|user| user.id)
        };
        assert_eq!(proven().await.as_ref(), Some(&second.id), "{}", store.name);
        store
            .db
            .write(async |write| users::remove(write, &second, now).await)
            .await
            .unwrap();
        // Whoever was read before that does not come in any more.
        let late = arrive(&second, true).await;
        assert!(matches!(late, Err(StoreError::NotFound)), "{}", store.name);
        arrive(&first, true).await.unwrap();
        assert_eq!(proven().await.as_ref(), Some(&first.id), "{}", store.name);
    }
}

/// Whoever was removed has no session, whatever was written of them since.
#[tokio::test]
async fn a_removed_user_has_no_session() {
    for store in stores().await {
        let now = db::now();
        let founded = company(&store.db, "acme").await;
        let (user, digest) = (&founded.user, Token::generate().digest());
        let new = NewSession {
            company_id: &founded.company.id,
            user_id: &user.id,
            auth_provider: "google",
            address: "192.0.2.1",
            user_agent: None,
        };
        roll_back(&store.db, async |write| {
            let session = sessions::insert(write, &new, &digest, now).await.unwrap();
            let company = &session.company_id;
            let known = sessions::known(write, company, &session.id).await.unwrap();
            assert_eq!(known.map(|known| known.session).as_ref(), Some(&session));
            users::remove(write, user, now).await.unwrap();
            let known = sessions::known(write, company, &session.id).await.unwrap();
            assert!(known.is_none(), "{}", store.name);
            let found = sessions::by_digest(write, &digest).await.unwrap();
            assert!(found.is_none(), "{}", store.name);
        })
        .await;
    }
}

/// A handle that was given up keeps routing, and nobody else can take it meanwhile.
#[tokio::test]
async fn retired_handles_keep_routing() {
    for store in stores().await {
        let now = db::now();
        let founded = company(&store.db, "old").await;
        roll_back(&store.db, async |write| {
            let renamed = companies::Company {
                handle: "new".into(),
                ..founded.company.clone()
            };
            companies::update(write, &renamed, now).await.unwrap();
            for handle in ["old", "new"] {
                let found = companies::by_handle(write, handle, now)
                    .await
                    .unwrap()
                    .expect("routes");
                assert_eq!(found.id, founded.company.id, "{}", store.name);
            }
            let thief = companies::NewCompany {
                handle: "old",
                name: "x",
                description: None,
                is_platform: false,
            };
            assert!(matches!(
                companies::insert(write, &thief, now).await,
                Err(StoreError::Conflict)
            ));
            let late = later(now, 91 * 86_400);
            assert!(
                companies::by_handle(write, "old", late)
                    .await
                    .unwrap()
                    .is_none()
            );
        })
        .await;
    }
}

/// Former handles are counted while they route, but for the one that the company has again and the one that it wants to have again; then they are
/// forgotten.
#[tokio::test]
async fn retired_handles_are_counted_and_forgotten() {
    for store in stores().await {
        let now = db::now();
        let founded = company(&store.db, "first").await;
        let id = &founded.company.id;
        roll_back(&store.db, async |write| {
            for handle in ["second", "third", "first"] {
                let renamed = companies::Company {
                    handle: handle.into(),
                    ..founded.company.clone()
                };
                companies::update(write, &renamed, now).await.unwrap();
            }
            let mut count = async |wanted: &str, at: Timestamp| {
                companies::retired_handles(write, id, "first", wanted, at)
                    .await
                    .unwrap()
            };
            let late = later(now, 90 * 86_400);
            for (wanted, at, expected) in
                [("fourth", now, 2), ("second", now, 1), ("fourth", late, 0)]
            {
                assert_eq!(count(wanted, at).await, expected, "{} {wanted}", store.name);
            }
            for (at, expected) in [(now, false), (late, true), (late, false)] {
                let forgotten = companies::sweep_handles(write, at).await.unwrap();
                assert_eq!(forgotten, expected, "{}", store.name);
            }
        })
        .await;
    }
}

/// What companies have in the store is counted of all together and of the one that has most, without what is deleted and what is the platform's.
#[tokio::test]
async fn what_companies_have_is_counted() {
    for store in stores().await {
        let db = &store.db;
        let [small, large] = ["small", "large"].map(|handle| company(db, handle));
        let (small, large) = (small.await, large.await);
        let read = async || {
            let mut read = db.read().await.unwrap();
            [
                shares::connections(&mut read).await.unwrap(),
                shares::connector_bytes(&mut read).await.unwrap(),
                shares::file_bytes(&mut read).await.unwrap(),
            ]
        };
        assert_eq!(read().await, [Taken::default(); 3], "{}", store.name);

        let now = db::now();
        let target = Target::File {
            name: "a.db".into(),
        };
        let written = Written {
            name: "one",
            credential_type: "NONE",
            credentials: b"",
            target: &target,
            cloud_provider_id: None,
            verified_usage_ability: false,
            statement_timeout_ms: 10_000,
        };
        let connector = |scope: &str, version: &str, size_bytes| StoredConnector {
            scope: scope.to_owned(),
            name: "x".into(),
            version: version.to_owned(),
            digest: "digest".into(),
            size_bytes,
            uploaded_by: "key_1".into(),
            created_at: now,
            described: None,
            error: None,
        };
        let file = |name: &str, size_bytes| File {
            name: name.to_owned(),
            upload_id: FileId::generate().to_string(),
            size_bytes,
            sha256: String::new(),
            created_at: now,
            updated_at: now,
        };
        db.write(async |write| -> Result<_, StoreError> {
            for (owner, many) in [(&small, 1), (&large, 3)] {
                let (company, user) = (&owner.company.id, &owner.user.id);
                let sizes = [("a.db", 10), ("b.db", 20), ("c.db", 30)];
                for (name, size) in sizes.into_iter().take(many) {
                    files::put(write, company, &file(name, size)).await?;
                    let version = connector(company.as_str(), name, 2 * size);
                    connectors::insert(write, &version).await?;
                    let id = ConnectionId::generate();
                    connections::insert(write, &id, company, user, 4, &written, now).await?;
                }
                let id = ConnectionId::generate();
                connections::insert(write, &id, company, user, 4, &written, now).await?;
                connections::delete(write, company, &id, now).await?;
            }
            let platforms = connector(PLATFORM, "1.0.0", 1_000);
            connectors::insert(write, &platforms).await?;
            Ok(())
        })
        .await
        .unwrap();
        let taken = [(4, 3), (140, 120), (70, 60)];
        let taken = taken.map(|(in_all, by_largest)| Taken { in_all, by_largest });
        assert_eq!(read().await, taken, "{}", store.name);
    }
}
