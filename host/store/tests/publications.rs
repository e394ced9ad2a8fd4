//! Publications in the store, on SQLite and on PostgreSQL: one row of a post at an integration, which whoever claims it has alone.

mod support;

use futures_util::future::join_all;
use souk_domain::ids::{CompanyId, IntegrationId, PostId, UserId};
use souk_domain::integrations::{INTEGRATIONS_MAX, Texts};
use souk_domain::publications::{State, WAITING_MAX};
use souk_domain::time::Timestamp;
use souk_store::companies::{self, CompanyStatus};
use souk_store::integrations::{self, Integration, TestStatus};
use souk_store::leases::Claim;
use souk_store::posts::{self, Written};
use souk_store::publications::{self, Attempted, Publication};
use souk_store::{Db, Part, StoreError, db};
use std::path::Path;
use std::time::Duration;
use support::{Store, company, sqlite, stores};

const LEASE: Duration = Duration::from_secs(60);

struct Blog {
    company: CompanyId,
    user: UserId,
    integration: Integration,
}

impl Blog {
    async fn new(store: &Store, handle: &str) -> Blog {
        let founded = company(&store.db, handle).await;
        let (company, user) = (founded.company.id, founded.user.id);
        let integration = integration(&company, &user);
        assert!(insert(&store.db, &integration).await);
        Blog {
            company,
            user,
            integration,
        }
    }

    async fn post(&self, db: &Db) -> PostId {
        let id = PostId::generate();
        let written = Written {
            title: "t".into(),
            slug: id.as_str().to_lowercase().replace('_', "-"),
            summary: String::new(),
            body_markdown: "x".into(),
            cover_image_url: None,
            tags: Vec::new(),
            asset_ids: Vec::new(),
        };
        db.write(async |write| {
            posts::insert(write, &id, &self.company, &self.user, &written, db::now()).await
        })
        .await
        .unwrap();
        id
    }

    async fn request(&self, db: &Db, post: &PostId, now: Timestamp) -> Option<Publication> {
        let requested = db.write(async |write| {
            publications::request(write, post, &self.integration, &self.user, now).await
        });
        requested.await.unwrap()
    }
}

fn integration(company: &CompanyId, user: &UserId) -> Integration {
    let now = db::now();
    Integration {
        id: IntegrationId::generate(),
        company_id: company.clone(),
        user_id: user.clone(),
        platform: "wordpress".into(),
        scope: "platform".into(),
        name: "blog".into(),
        base_url: "https://blog.example.com".into(),
        config: Texts::from([("path".to_owned(), "/x".to_owned())]),
        credentials: vec![1, 2, 3],
        revision: 1,
        status: TestStatus::Untested,
        last_tested_at: None,
        last_error: None,
        created_at: now,
        updated_at: now,
    }
}

async fn insert(db: &Db, integration: &Integration) -> bool {
    let inserted = db.write(async |write| integrations::insert(write, integration).await);
    inserted.await.unwrap()
}

async fn claim(
    db: &Db,
    publication: &Publication,
    by: &str,
    now: Timestamp,
) -> Option<Publication> {
    let id = &publication.id;
    let until = now.after(LEASE);
    let claim = Claim { by, now, until };
    let claimed = db.write(async |write| publications::claim(write, id, &claim).await);
    claimed.await.unwrap()
}

async fn record(db: &Db, publication: &Publication, by: &str, attempted: Attempted) -> bool {
    let recorded = db.write(async |write| {
        publications::record(write, publication, by, &attempted, db::now()).await
    });
    recorded.await.unwrap()
}

async fn only(db: &Db, post: &PostId) -> Publication {
    let mut read = db.read().await.unwrap();
    let (mut rows, total) = publications::list(&mut read, post, Part::first(10))
        .await
        .unwrap();
    assert_eq!(total, 1);
    rows.remove(0)
}

/// An integration is kept as it was written; its change is refused to whoever read an older one; what a test of an older one found is not
/// written down; deleted, nothing is left of its credentials.
#[tokio::test]
async fn an_integration_is_kept() {
    for store in stores().await {
        let blog = Blog::new(&store, "acme").await;
        let (db, company, id) = (&store.db, &blog.company, &blog.integration.id);
        let get = async || {
            let mut read = db.read().await.unwrap();
            integrations::get(&mut read, company, id).await.unwrap()
        };
        assert_eq!(get().await.unwrap(), blog.integration);
        let changed = Integration {
            base_url: "https://other.example.com".into(),
            credentials: vec![4],
            ..blog.integration.clone()
        };
        let update = async |one: &Integration| {
            let updated = db.write(async |write| integrations::update(write, one, db::now()).await);
            updated.await.unwrap()
        };
        assert!(update(&changed).await);
        assert!(!update(&changed).await, "an older one overwrote a newer");
        let test = async |one: &Integration, error| {
            let tested = db.write(async |write| -> Result<(), StoreError> {
                integrations::record_test(write, one, error, db::now()).await
            });
            tested.await.unwrap();
        };
        test(&changed, Some("too late")).await;
        assert_eq!(get().await.unwrap().status, TestStatus::Untested);
        let now = get().await.unwrap();
        test(&now, None).await;
        let tested = get().await.unwrap();
        assert_eq!((tested.status, tested.revision), (TestStatus::Active, 2));
        assert_eq!(tested.credentials, [4]);

        for number in 1..INTEGRATIONS_MAX {
            let another = integration(company, &blog.user);
            assert!(insert(db, &another).await, "{number}");
        }
        assert!(!insert(db, &integration(company, &blog.user)).await);
        let delete = async |company: &CompanyId| {
            let now = db::now();
            let deleted =
                db.write(async |write| integrations::delete(write, company, id, now).await);
            deleted.await.unwrap()
        };
        assert!(!delete(&CompanyId::generate()).await);
        assert!(delete(company).await);
        assert_eq!(get().await, None);
        assert!(insert(db, &integration(company, &blog.user)).await);
    }
}

/// A publication is claimed by one, tried again when it is due, published, and asked for anew in the same row, with what the platform calls
/// it.
#[tokio::test]
async fn a_publication_lives() {
    for store in stores().await {
        let blog = Blog::new(&store, "acme").await;
        let (db, now) = (&store.db, db::now());
        let post = blog.post(db).await;
        let asked = blog.request(db, &post, now).await.unwrap();
        assert_eq!(
            (asked.state, asked.attempts, asked.requests),
            (State::Pending, 0, 1)
        );
        let names = ["a", "b", "c", "d"];
        let claims = join_all(names.map(|by| claim(db, &asked, by, now))).await;
        let claimed: Vec<_> = claims
            .into_iter()
            .zip(names)
            .filter(|(claim, _)| claim.is_some())
            .collect();
        let [(Some(first), by)] = claimed.as_slice() else {
            panic!("{claimed:?}")
        };
        assert_eq!(first.attempts, 1);
        // Whoever has it may not know, where the commit of its claim was not answered.
        let again = claim(db, &asked, by, now).await.unwrap();
        assert_eq!(again.attempts, 1);
        assert!(!record(db, first, "somebody else", Attempted::GivenUp("x".into())).await);
        let later = now.after(Duration::from_secs(5));
        assert!(record(db, first, by, Attempted::Again(later, "down".into())).await);
        let waits = only(db, &post).await;
        assert_eq!(
            (waits.state, waits.last_error.as_deref()),
            (State::Retrying, Some("down"))
        );
        assert_eq!(claim(db, &waits, "a", now).await, None, "it is not due");
        let second = claim(db, &waits, "a", later).await.unwrap();
        assert_eq!(second.attempts, 2);
        // A host died: another one goes on when the lease has ended.
        assert_eq!(claim(db, &waits, "b", later).await, None);
        let third = claim(db, &waits, "b", later.after(LEASE)).await.unwrap();
        let done = || Attempted::Published {
            base_url: blog.integration.base_url.clone(),
            remote_id: Some("7".into()),
            url: Some("https://blog.example.com/7".into()),
        };
        assert!(
            !record(db, &second, "a", done()).await,
            "its lease had ended"
        );
        assert!(record(db, &third, "b", done()).await);
        let there = only(db, &post).await;
        assert_eq!(
            (there.state, there.next_attempt_at, &there.last_error),
            (State::Published, None, &None)
        );
        assert_eq!((there.remote_id.as_deref(), there.attempts), (Some("7"), 3));
        assert!(there.published_at.is_some());

        let anew = blog.request(db, &post, now).await.unwrap();
        assert_eq!((&anew.id, anew.requests, anew.attempts), (&there.id, 2, 0));
        assert_eq!(
            (anew.state, anew.remote_id.as_deref()),
            (State::Pending, Some("7"))
        );
        let claimed = claim(db, &anew, "a", now).await.unwrap();
        // Somebody asks while it is in flight: the attempt does not end what was asked for after it had begun.
        blog.request(db, &post, now).await.unwrap();
        assert!(record(db, &claimed, "a", Attempted::Failed("refused".into())).await);
        let again = only(db, &post).await;
        assert_eq!((again.state, &again.last_error), (State::Pending, &None));
        let claimed = claim(db, &again, "a", now).await.unwrap();
        assert!(record(db, &claimed, "a", Attempted::Failed("refused".into())).await);
        let refused = only(db, &post).await;
        assert_eq!(
            (refused.state, refused.remote_id.as_deref()),
            (State::Failed, Some("7"))
        );
        let mut read = db.read().await.unwrap();
        let counted = posts::summary(&mut read, &blog.company).await.unwrap();
        assert_eq!(counted.publications, 1);
    }
}

/// What a platform calls a post is forgotten when its integration gets another address, of an attempt in flight too, and kept when it gets other
/// credentials: there the number would be somebody else's post.
#[tokio::test]
async fn what_a_former_address_calls_a_post_is_forgotten() {
    for store in stores().await {
        let blog = Blog::new(&store, "acme").await;
        let (db, now) = (&store.db, db::now());
        let post = blog.post(db).await;
        let published_at = |base_url: &str| Attempted::Published {
            base_url: base_url.to_owned(),
            remote_id: Some("7".into()),
            url: Some(format!("{base_url}/7")),
        };
        let (former, other) = ("https://blog.example.com", "https://other.example.com");
        let publish = async |base_url: &str| {
            let asked = blog.request(db, &post, now).await.unwrap();
            let claimed = claim(db, &asked, "a", now).await.unwrap();
            assert!(record(db, &claimed, "a", published_at(base_url)).await);
        };
        let change = async |base_url: &str, revision: i64| {
            let changed = Integration {
                base_url: base_url.to_owned(),
                credentials: vec![4],
                revision,
                ..blog.integration.clone()
            };
            let updated =
                db.write(async |write| integrations::update(write, &changed, db::now()).await);
            updated.await.unwrap()
        };
        let known = async || {
            let shown = only(db, &post).await;
            let mut read = db.read().await.unwrap();
            let remote_id = publications::remote_id(&mut read, &shown.id).await;
            assert_eq!(remote_id.unwrap(), shown.remote_id, "{}", store.name);
            shown.remote_id
        };
        publish(former).await;
        assert!(change(former, 1).await);
        assert_eq!(known().await.as_deref(), Some("7"), "{}", store.name);
        assert!(!change(other, 1).await, "an older one overwrote a newer");
        assert_eq!(known().await.as_deref(), Some("7"), "{}", store.name);
        assert!(change(other, 2).await);
        assert_eq!(known().await, None, "{}", store.name);
        let shown = only(db, &post).await;
        assert_eq!(shown.state, State::Published);
        assert_eq!(shown.url, Some(format!("{former}/7")));

        // One that began at the address of before ends after the change.
        publish(former).await;
        assert_eq!(known().await, None, "{}", store.name);
        publish(other).await;
        assert_eq!(known().await.as_deref(), Some("7"), "{}", store.name);
    }
}

/// What a publisher says with a zero in it is written down without, on a server that would refuse it, too.
#[tokio::test]
async fn a_zero_in_a_text_refuses_nothing() {
    for store in stores().await {
        let blog = Blog::new(&store, "acme").await;
        let (db, now) = (&store.db, db::now());
        let post = blog.post(db).await;
        let asked = blog.request(db, &post, now).await.unwrap();
        let claimed = claim(db, &asked, "a", now).await.unwrap();
        let failed = Attempted::Again(now, "do\0wn".into());
        assert!(record(db, &claimed, "a", failed).await);
        assert_eq!(only(db, &post).await.last_error.as_deref(), Some("down"));
        let claimed = claim(db, &asked, "a", now).await.unwrap();
        let done = Attempted::Published {
            base_url: blog.integration.base_url.clone(),
            remote_id: Some("se\0ven".into()),
            url: Some("https://blog.example.com/\0seven".into()),
        };
        assert!(record(db, &claimed, "a", done).await);
        let there = only(db, &post).await;
        assert_eq!(
            (there.remote_id.as_deref(), there.url.as_deref()),
            (Some("seven"), Some("https://blog.example.com/seven"))
        );
    }
}

/// Companies take turns, each within its bounds; what waits for a deleted integration is given up; a deleted post has no publications.
#[tokio::test]
async fn companies_take_turns() {
    for store in stores().await {
        let (busy, other) = (
            Blog::new(&store, "busy").await,
            Blog::new(&store, "other").await,
        );
        let (db, now) = (&store.db, db::now());
        let mut last = None;
        for _ in 0..WAITING_MAX {
            let post = busy.post(db).await;
            last = busy.request(db, &post, now).await;
            assert!(last.is_some());
        }
        let more = busy.post(db).await;
        assert_eq!(busy.request(db, &more, now).await, None);
        let last = last.unwrap();
        // What waits already may be asked for again.
        assert!(busy.request(db, &last.post_id, now).await.is_some());
        let theirs = other.post(db).await;
        let theirs = other
            .request(db, &theirs, now.after(Duration::from_secs(1)))
            .await
            .unwrap();
        let due = async |at: Timestamp| {
            let mut read = db.read().await.unwrap();
            publications::due(&mut read, at, 4, 10).await.unwrap()
        };
        let at = now.after(Duration::from_secs(2));
        let found = due(at).await;
        assert_eq!(found.len(), 5);
        assert!(
            found.iter().take(2).any(|one| one.id == theirs.id),
            "{found:?}"
        );
        assert!(claim(db, &theirs, "a", at).await.is_some());
        assert_eq!(due(at).await.len(), 4);
        db.write(async |write| -> Result<(), StoreError> {
            publications::release_all(write).await
        })
        .await
        .unwrap();
        assert_eq!(due(at).await.len(), 5);

        db.write(async |write| {
            integrations::delete(write, &busy.company, &busy.integration.id, now).await
        })
        .await
        .unwrap();
        assert_eq!(due(at).await.len(), 1);
        let given_up = only(db, &last.post_id).await;
        assert_eq!(given_up.state, State::GivenUp);
        assert_eq!(
            given_up.last_error.as_deref(),
            Some("the integration was deleted")
        );
        db.write(async |write| posts::delete(write, &busy.company, &last.post_id).await)
            .await
            .unwrap();
        let mut read = db.read().await.unwrap();
        let listed = publications::list(&mut read, &last.post_id, Part::first(1)).await;
        assert_eq!(listed.unwrap().1, 0);
    }
}

/// What a suspended company has asked for waits until it is active again.
#[tokio::test]
async fn a_suspended_company_publishes_nothing() {
    for store in stores().await {
        let blog = Blog::new(&store, "acme").await;
        let (db, now) = (&store.db, db::now());
        let post = blog.post(db).await;
        let asked = blog.request(db, &post, now).await.unwrap();
        let due = async || {
            let mut read = db.read().await.unwrap();
            publications::due(&mut read, now, 4, 10).await.unwrap()
        };
        for status in [CompanyStatus::Suspended, CompanyStatus::Active] {
            let set = db.write(async |write| -> Result<(), StoreError> {
                let company = companies::get(write, &blog.company).await?;
                let mut company = company.ok_or(StoreError::NotFound)?;
                company.status = status;
                companies::update(write, &company, now).await
            });
            set.await.unwrap();
            let found: Vec<_> = due().await.into_iter().map(|one| one.id).collect();
            let expected = match status {
                CompanyStatus::Active => vec![asked.id.clone()],
                CompanyStatus::Suspended => Vec::new(),
            };
            assert_eq!(found, expected, "{}", store.name);
        }
    }
}

/// Credentials are gone from the files with their integration, long ones too, and so are those that it had before.
#[tokio::test]
async fn deleted_credentials_are_in_no_file() {
    let store = sqlite().await;
    let (db, marks) = (
        &store.db,
        [IntegrationId::generate(), IntegrationId::generate()],
    );
    let blog = Blog::new(&store, "acme").await;
    let mut integration = integration(&blog.company, &blog.user);
    // So long that they have pages of their own.
    integration.credentials = marks[0].as_str().repeat(400).into_bytes();
    assert!(insert(db, &integration).await);
    integration.credentials = marks[1].as_str().as_bytes().to_vec();
    let updated =
        db.write(async |write| integrations::update(write, &integration, db::now()).await);
    assert!(updated.await.unwrap());
    let directory = Path::new(store.url.strip_prefix("sqlite:").unwrap());
    let directory = directory.parent().unwrap();
    let are_found = || {
        let files = std::fs::read_dir(directory).unwrap();
        let files = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        let texts: Vec<_> = files
            .map(|file| String::from_utf8_lossy(&file).into_owned())
            .collect();
        marks.each_ref().map(|mark| {
            let sealed = hex::encode(mark.as_str());
            texts
                .iter()
                .any(|text| text.contains(mark.as_str()) || text.contains(&sealed))
        })
    };
    assert_eq!(are_found(), [true, true]);
    let deleted = db.write(async |write| {
        integrations::delete(write, &blog.company, &integration.id, db::now()).await
    });
    assert!(deleted.await.unwrap());
    // Copies the log into the file, and removes it.
    db.close().await;
    assert_eq!(are_found(), [false, false]);
}
