//! The index is that of the products, whatever was changed, and learns new words in time.

use crate::support::stores;
use crate::{Names, Seller, seller};
use souk_domain::ids::AssetId;
use souk_domain::products::ProductStatus;
use souk_store::products::{self, AssetDetails, Kept, Written};
use souk_store::search::{self, Order, Wanted};
use souk_store::{Db, Fields, StoreError, companies, db};
use std::collections::BTreeSet;

type Rows = BTreeSet<Vec<String>>;

async fn index(db: &Db) -> [Rows; 3] {
    let mut read = db.read().await.unwrap();
    let mut all = Vec::new();
    for (sql, columns) in [
        (
            "SELECT product_id, company_id, name_key, COALESCE(category, '-') AS category, COALESCE(sport, '-') AS sport,
                    CAST(is_published AS TEXT) AS published, CAST(listed_at AS TEXT) AS listed
             FROM search_products",
            &["product_id", "company_id", "name_key", "category", "sport", "published", "listed"][..],
        ),
        (
            "SELECT term, subject_id, CAST(weight AS TEXT) AS weight FROM search_terms",
            &["term", "subject_id", "weight"],
        ),
        ("SELECT variant, term FROM search_variants", &["variant", "term"]),
    ] {
        let rows = sqlx::query(sql).fetch_all(&mut *read).await.unwrap();
        let row = |row: &sqlx::any::AnyRow| {
            let columns = columns.iter();
            columns.map(|column| row.text(column).unwrap()).collect()
        };
        all.push(rows.iter().map(row).collect::<Rows>());
    }
    all.try_into().unwrap()
}

/// Whatever was changed in whatever order, the index is the one that is made anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_is_that_of_the_products() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let sellers = [seller(db, "acme").await, seller(db, "other").await];
        let words = ["goals", "match", "per", "team", "season", "odds", "cards"];
        let mut assets: Vec<(AssetId, usize)> = Vec::new();
        for step in 0..60_usize {
            let text = |n: usize| format!("{} {}", words[n % 7], words[n / 2 % 7]);
            if step % 3 == 0 {
                let of = step % 2;
                let change = |asset: &mut Written<AssetDetails>| {
                    asset.description = text(step * 5);
                    asset.labels = format!(
                        r#"{{"industry_ids":[{step}],"tags":["{}"]}}"#,
                        words[step % 5]
                    );
                };
                let id = names.asset(db, &sellers[of], &text(step), change).await;
                assets.push((id, of));
                continue;
            }
            let (id, of) = assets[step * 7 % assets.len()].clone();
            let seller = &sellers[of];
            let changed = db.write(async |write| -> Result<(), StoreError> {
                let now = db::now();
                match step % 4 {
                    0 => {
                        let mut company = companies::get(write, &seller.company).await?.unwrap();
                        company.name = text(step * 3);
                        companies::update(write, &company, now).await
                    }
                    1 if step % 8 == 1 => {
                        let archived = ProductStatus::Archived;
                        products::set_status(write, &seller.company, &id, archived, now).await?;
                        Ok(())
                    }
                    1 => {
                        let unpublished = ProductStatus::Unpublished;
                        products::set_status(write, &seller.company, &id, unpublished, now).await?;
                        Ok(())
                    }
                    _ => {
                        let Some(row) = products::get(write, &seller.company, &id).await? else {
                            return Ok(());
                        };
                        let mut written = row.written;
                        written.name = text(step * 11);
                        let read_at = row.updated_at;
                        let company = &seller.company;
                        products::update(
                            write,
                            company,
                            &id,
                            read_at,
                            &written,
                            Kept::default(),
                            now,
                        )
                        .await?;
                        Ok(())
                    }
                }
            });
            changed.await.unwrap();
        }
        search::learn(db).await.unwrap();
        let kept = index(db).await;
        let emptied = db.write(async |write| -> Result<(), StoreError> {
            for table in ["search_products", "search_terms", "search_variants"] {
                let sql = sqlx::AssertSqlSafe(format!("DELETE FROM {table}"));
                sqlx::query(sql).execute(&mut **write).await?;
            }
            Ok(())
        });
        emptied.await.unwrap();
        search::catch_up(db).await.unwrap();
        search::learn(db).await.unwrap();
        let anew = index(db).await;
        for (kept, anew) in kept.iter().zip(&anew) {
            assert!(!kept.is_empty(), "{}", store.name);
            let differing: Vec<_> = kept.symmetric_difference(anew).collect();
            assert!(differing.is_empty(), "{} {differing:?}", store.name);
        }
    }
}

/// A word is found as it is at once, by its beginning and with an error once it is learnt; a product's transaction has few rows to write for it,
/// and what is given up before it is learnt leaves nothing to be done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_words_are_learnt_in_time() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let acme = seller(db, "acme").await;
        search::learn(db).await.unwrap();
        let before = counts(db).await;
        let fresh = |prefix: &str| -> String {
            let words = (0..250).map(|n| format!("{prefix}{n:03}nonesuch "));
            words.collect()
        };
        let described = |asset: &mut Written<AssetDetails>| asset.description = fresh("aa");
        let id = names.asset(db, &acme, "Goals", described).await;
        let wanted = |text| Wanted {
            text: Some(text),
            ..Wanted::default()
        };
        for (text, now) in [
            ("aa001nonesuch", true),
            ("goals", true),
            ("aa001none", false),
            ("aa001nonesuhc", false),
        ] {
            let found = names.found_now(db, &wanted(text), Order::Relevance).await;
            assert_eq!(!found.is_empty(), now, "{} {text}", store.name);
        }
        // One for each word, and the one that it is due.
        assert_eq!(counts(db).await, (before.0 + 250, 250), "{}", store.name);
        describe(db, &acme, &id, &fresh("bb")).await;
        assert_eq!(counts(db).await, (before.0 + 250, 250), "{}", store.name);
        for text in ["bb001none", "bb001nonesuhc"] {
            let found = names.found(db, &wanted(text), Order::Relevance).await;
            assert_eq!(found, ["Goals"], "{} {text}", store.name);
        }
        let learnt = counts(db).await;
        assert!(learnt.0 > before.0 + 20 * 250, "{learnt:?}");
        // What is given up is due to be forgotten, and is not if it has come back meanwhile.
        describe(db, &acme, &id, "").await;
        assert_eq!(counts(db).await, (learnt.0, 249), "{}", store.name);
        describe(db, &acme, &id, "bb001nonesuch").await;
        for (text, expected) in [("bb001none", vec!["Goals"]), ("bb002none", vec![])] {
            let found = names.found(db, &wanted(text), Order::Relevance).await;
            assert_eq!(found, expected, "{} {text}", store.name);
        }
        let left = counts(db).await;
        assert!(left.0 < before.0 + 60 && left.1 == 0, "{left:?}");
    }
}

/// How many rows there are for what words are looked up by, and how many words wait.
async fn counts(db: &Db) -> (i64, i64) {
    let mut read = db.read().await.unwrap();
    let row = sqlx::query(
        "SELECT (SELECT COUNT(*) FROM search_variants) AS variants, (SELECT COUNT(*) FROM search_words_due) AS due",
    );
    let row = row.fetch_one(&mut *read).await.unwrap();
    (row.number("variants").unwrap(), row.number("due").unwrap())
}

async fn describe(db: &Db, seller: &Seller, id: &AssetId, text: &str) {
    let company = &seller.company;
    let written = db.write(async |write| -> Result<(), StoreError> {
        let row = products::get(write, company, id).await?.unwrap();
        let (mut written, read_at) = (row.written, row.updated_at);
        written.description = text.into();
        products::update(
            write,
            company,
            id,
            read_at,
            &written,
            Kept::default(),
            db::now(),
        )
        .await?;
        Ok(())
    });
    written.await.unwrap();
}
