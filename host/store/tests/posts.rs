//! Posts are found by any text in them at a cost that its length alone decides; their readers are forgotten some at a time.

mod support;

use souk_domain::ids::{CompanyId, PostId};
use souk_domain::time::{DAY, Timestamp};
use souk_store::founding::Founded;
use souk_store::posts::{self, Deletion, Filter, Saved, Written};
use souk_store::{Db, Fields, Part, StoreError, db};
use std::time::{Duration, Instant};
use support::{sqlite, stores};

async fn publish(db: &Db, by: &Founded, slug: &str, title: &str, summary: &str) -> PostId {
    let id = PostId::generate();
    let written = Written {
        title: title.into(),
        slug: slug.into(),
        summary: summary.into(),
        body_markdown: "x".into(),
        cover_image_url: None,
        tags: Vec::new(),
        asset_ids: Vec::new(),
    };
    let (company, user) = (&by.company.id, &by.user.id);
    let saved = db.write(async |write| -> Result<Saved, StoreError> {
        let saved = posts::insert(write, &id, company, user, &written, db::now()).await?;
        posts::set_published(write, &id, true, db::now()).await?;
        Ok(saved)
    });
    assert_eq!(saved.await.unwrap(), Saved::Done);
    id
}

async fn found(db: &Db, text: &str) -> i64 {
    let filter = Filter {
        text: Some(text),
        ..Filter::default()
    };
    let mut read = db.read().await.unwrap();
    let listed = posts::list_published(&mut read, None, filter, Part::first(10)).await;
    listed.unwrap().1
}

/// A text is taken literally, in any case, and nothing is everywhere.
#[tokio::test]
async fn texts_are_found_literally() {
    for store in stores().await {
        let acme = support::company(&store.db, "acme").await;
        publish(&store.db, &acme, "one", "Goals in 100%", "Of a_b!").await;
        publish(&store.db, &acme, "two", "Cards", "Of a-b").await;
        for (text, expected) in [
            ("", 2),
            ("goals", 1),
            ("OF A", 2),
            ("100%", 1),
            ("%", 1),
            ("a_b", 1),
            ("b!", 1),
            ("100% of", 1),
            ("cards of a-bc", 0),
        ] {
            assert_eq!(
                found(&store.db, text).await,
                expected,
                "{} {text}",
                store.name
            );
        }
    }
}

/// A tag is what was written, whole and in its own case.
#[tokio::test]
async fn a_tag_is_found_as_it_was_written() {
    for store in stores().await {
        let (db, acme) = (&store.db, support::company(&store.db, "acme").await);
        let id = publish(db, &acme, "one", "Goals", "").await;
        let written = Written {
            title: "Goals".into(),
            slug: "one".into(),
            summary: String::new(),
            body_markdown: "x".into(),
            cover_image_url: None,
            tags: vec!["goals".into(), "a \"b\"".into()],
            asset_ids: Vec::new(),
        };
        let tagged = db.write(async |write| posts::update(write, &id, &written, db::now()).await);
        assert_eq!(tagged.await.unwrap(), Saved::Done);
        for (tag, expected) in [
            ("goals", 1),
            ("a \"b\"", 1),
            ("Goals", 0),
            ("goal", 0),
            ("b", 0),
        ] {
            let filter = Filter {
                tag: Some(tag),
                ..Filter::default()
            };
            let mut read = db.read().await.unwrap();
            let listed = posts::list_published(&mut read, None, filter, Part::first(10)).await;
            assert_eq!(listed.unwrap().1, expected, "{} {tag}", store.name);
        }
    }
}

/// What nearly is in a text everywhere is looked for about as fast as what is nowhere in it: LIKE took some fifty times as long.
#[tokio::test]
async fn a_text_that_is_nearly_everywhere_is_no_dearer() {
    const TIMES_MAX: u32 = 25;
    let store = sqlite().await;
    let acme = support::company(&store.db, "acme").await;
    let (title, summary) = ("a".repeat(200), "a".repeat(1_000));
    for number in 0..100 {
        publish(
            &store.db,
            &acme,
            &format!("post-{number}"),
            &title,
            &summary,
        )
        .await;
    }
    let nearly = format!("{}b", "a".repeat(99));
    let fastest = async |text: &str| {
        let mut fastest = Duration::MAX;
        for _ in 0..30 {
            let begun = Instant::now();
            assert_eq!(found(&store.db, text).await, 0);
            fastest = fastest.min(begun.elapsed());
        }
        fastest
    };
    let (nowhere, everywhere) = (fastest("zzz").await, fastest(&nearly).await);
    assert!(
        everywhere < TIMES_MAX * nowhere,
        "{everywhere:?}, and {nowhere:?} for what is nowhere"
    );
}

async fn add_readers(db: &Db, post: &PostId, day: Timestamp, count: i64) {
    let added = db.write(async |write| -> Result<(), StoreError> {
        sqlx::query(
            "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $3)
             INSERT INTO post_views (post_id, viewed_on, reader)
             SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST(i AS TEXT) FROM n",
        )
        .bind(post.as_str())
        .bind(day.micros())
        .bind(count)
        .execute(&mut **write)
        .await?;
        Ok(())
    });
    added.await.unwrap();
}

async fn readers(db: &Db) -> i64 {
    let mut read = db.read().await.unwrap();
    let row = sqlx::query("SELECT COUNT(*) AS readers FROM post_views");
    let row = row.fetch_one(&mut *read).await.unwrap();
    row.number("readers").unwrap()
}

/// Of however many readers a post had, one transaction forgets five hundred.
#[tokio::test]
async fn readers_are_forgotten_some_at_a_time() {
    for store in stores().await {
        let (db, now) = (&store.db, db::now());
        let (today, yesterday) = (now.day_start(), now.day_start().before(DAY));
        let acme = support::company(db, "acme").await;
        let post = publish(db, &acme, "read", "Read", "").await;
        add_readers(db, &post, yesterday, 1_200).await;
        let mut left = Vec::new();
        for reader in ["a", "b", "c", "c"] {
            let counted =
                db.write(async |write| posts::count_view(write, &post, reader, now).await);
            counted.await.unwrap();
            left.push(readers(db).await);
        }
        assert_eq!(left, [701, 202, 3, 3], "{}", store.name);

        add_readers(db, &post, today, 1_200).await;
        let delete = async |company: &CompanyId| {
            let deleted = db.write(async |write| posts::delete(write, company, &post).await);
            let deleted = deleted.await.unwrap();
            (deleted, readers(db).await)
        };
        let company = &acme.company.id;
        let expected = [
            (&CompanyId::generate(), (Deletion::NoSuch, 1_203)),
            (company, (Deletion::Begun, 703)),
            (company, (Deletion::Begun, 203)),
            (company, (Deletion::Done, 0)),
            (company, (Deletion::NoSuch, 0)),
        ];
        for (company, expected) in expected {
            assert_eq!(delete(company).await, expected, "{}", store.name);
        }
    }
}
