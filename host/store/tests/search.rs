//! Products are found alike on every store: by words, their beginnings and with a typing error; the index is always that of the products.

mod support;

use souk_domain::actors::Actor;
use souk_domain::ids::{AssetId, CompanyId, EndpointId, ExecutionId, KeyId, RequestId, UserId};
use souk_domain::money::{Credits, UsdCents};
use souk_domain::prices::Validity;
use souk_domain::products::{Product, ProductStatus, ProductType};
use souk_domain::time::{DAY, Timestamp};
use souk_store::executions::{Billing, Outcome, Run};
use souk_store::prices::{self, NewPrice};
use souk_store::products::{self, AssetDetails, Kept, Kind, Written};
use souk_store::search::comparables;
use souk_store::search::{self, Order, Wanted};
use souk_store::teller::Teller;
use souk_store::{Db, Fields, Part, StoreError, companies, db};
use sqlx::Row;
use std::collections::{BTreeMap, BTreeSet};
use support::stores;

struct Seller {
    company: CompanyId,
    user: UserId,
}

async fn seller(db: &Db, handle: &str) -> Seller {
    let founded = support::company(db, handle).await;
    Seller {
        company: founded.company.id,
        user: founded.user.id,
    }
}

/// Names are ids, as far as a test can read.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    async fn insert<K: Kind>(
        &mut self,
        db: &Db,
        seller: &Seller,
        id: &K,
        written: &Written<K::Details>,
        status: Option<ProductStatus>,
    ) {
        let at = db::now();
        let inserted = db.write(async |write| -> Result<(), StoreError> {
            products::insert(write, id, &seller.company, &seller.user, written, at).await?;
            if let Some(status) = status {
                products::set_status(write, &seller.company, id, status, at).await?;
            }
            Ok(())
        });
        inserted.await.unwrap();
        self.0.insert(id.as_ref().to_owned(), written.name.clone());
    }

    async fn asset(
        &mut self,
        db: &Db,
        seller: &Seller,
        name: &str,
        change: impl FnOnce(&mut Written<AssetDetails>),
    ) -> AssetId {
        let id = AssetId::generate();
        let mut written = support::asset(name, &id.as_str().to_lowercase().replace('_', "-"));
        written.category = None;
        change(&mut written);
        self.insert(db, seller, &id, &written, Some(ProductStatus::Published))
            .await;
        id
    }

    /// What is found when all words are learnt, by name, and how many there are.
    async fn found(&self, db: &Db, wanted: &Wanted<'_>, order: Order) -> Vec<&str> {
        search::learn(db).await.unwrap();
        self.found_now(db, wanted, order).await
    }

    async fn found_now(&self, db: &Db, wanted: &Wanted<'_>, order: Order) -> Vec<&str> {
        let mut read = db.read().await.unwrap();
        let listed = search::find(&mut read, wanted, order, db::now(), Part::first(100)).await;
        let (ids, total) = listed.unwrap();
        assert_eq!(total, ids.len() as i64, "{wanted:?}");
        ids.iter().map(|id| self.0[id].as_str()).collect()
    }

    async fn by_words<'a>(&'a self, db: &Db, text: &str) -> Vec<&'a str> {
        let wanted = Wanted {
            text: Some(text),
            ..Wanted::default()
        };
        self.found(db, &wanted, Order::Relevance).await
    }
}

/// A beginning that more than 10,000 words have is not gone through to its end: by it those are found that are on products which are run much, and all
/// others by more letters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowded_beginning_is_not_gone_through_to_its_end() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let acme = seller(db, "acme").await;
        names.asset(db, &acme, "Goals", |_| {}).await;
        let id = AssetId::generate();
        let mut draft = support::asset("Gozo", "gozo");
        draft.category = None;
        names.insert(db, &acme, &id, &draft, None).await;
        let by = |text| Wanted {
            text: Some(text),
            own: Some(&acme.company),
            ..Wanted::default()
        };
        let both = names.found(db, &by("go"), Order::Name).await;
        assert_eq!(both, ["Goals", "Gozo"]);

        let crowded = db.write(async |write| -> Result<_, StoreError> {
            sqlx::query(
                "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 10001)
                 INSERT INTO search_variants (variant, term) SELECT '>go', 'go0' || i FROM n",
            )
            .execute(&mut **write)
            .await?;
            Ok(())
        });
        crowded.await.unwrap();
        for (typed, expected) in [
            ("go", "Goals"),
            ("goal", "Goals"),
            ("goz", "Gozo"),
            ("gozo", "Gozo"),
        ] {
            let found = names.found(db, &by(typed), Order::Relevance).await;
            assert_eq!(found, [expected], "{typed}");
        }
    }
}

/// Words, beginnings and typing errors; the better match first; each word has to mean something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_find_products() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let acme = seller(db, "acme").await;
        names.asset(db, &acme, "Goals per match", |_| {}).await;
        names.asset(db, &acme, "Goalkeepers", |_| {}).await;
        names
            .asset(db, &acme, "Attendance", |asset| {
                asset.description = "Spectators for each match, and the goals they saw".into();
            })
            .await;
        names
            .asset(db, &acme, "Coals", |asset| {
                asset.details.sport = Some("Curling".into())
            })
            .await;
        names
            .asset(db, &acme, "Zürich ÉTÉ", |asset| {
                asset.labels = r#"{"tags":["summer heat"]}"#.into();
                asset.category = Some("Weather".into());
            })
            .await;
        for (typed, expected) in [
            // In the name, at its beginning, in the description, with an error.
            ("goals", vec!["Goals per match", "Attendance", "Coals"]),
            ("GOALS", vec!["Goals per match", "Attendance", "Coals"]),
            ("goal", vec!["Goalkeepers", "Goals per match", "Attendance"]),
            ("gaols", vec!["Goals per match", "Attendance"]),
            ("golas", vec!["Goals per match", "Attendance"]),
            ("goalss", vec!["Goals per match", "Attendance"]),
            ("goalkepers", vec!["Goalkeepers"]),
            ("matches", vec![]),
            ("matchs goals", vec!["Goals per match", "Attendance"]),
            ("match, goals!", vec!["Goals per match", "Attendance"]),
            ("match weather", vec![]),
            ("curl", vec!["Coals"]),
            ("zürich", vec!["Zürich ÉTÉ"]),
            ("züric été", vec!["Zürich ÉTÉ"]),
            ("heat", vec!["Zürich ÉTÉ"]),
            ("weathr summer", vec!["Zürich ÉTÉ"]),
            ("nothing", vec![]),
            ("%", vec![]),
            ("goals nothing", vec![]),
        ] {
            let mut found = names.by_words(db, typed).await;
            if typed == "goal" {
                // Both begin with it, in their names.
                found[..2].sort_unstable();
            }
            assert_eq!(found, expected, "{} {typed}", store.name);
        }
        // What the seller is called finds all of its products, under its name of today.
        assert_eq!(names.by_words(db, "acm").await.len(), 5, "{}", store.name);
        let renamed = db.write(async |write| -> Result<(), StoreError> {
            let mut company = companies::get(write, &acme.company).await?.unwrap();
            company.name = "Umbrella".into();
            companies::update(write, &company, db::now()).await
        });
        renamed.await.unwrap();
        assert_eq!(names.by_words(db, "acme").await, [""; 0], "{}", store.name);
        assert_eq!(
            names.by_words(db, "umbrela goals").await.len(),
            3,
            "{}",
            store.name
        );
    }
}

/// Filters and orders; drafts are their owner's, and what a suspended company sells is nobody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_and_orders() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let (acme, other) = (seller(db, "acme").await, seller(db, "other").await);
        let sports = |sport: &'static str| {
            move |asset: &mut Written<AssetDetails>| asset.details.sport = Some(sport.into())
        };
        names.asset(db, &acme, "b", sports("golf")).await;
        names.asset(db, &acme, "Ä", sports("polo")).await;
        names
            .asset(db, &other, "a", |asset| {
                asset.category = Some("results".into())
            })
            .await;
        let draft = AssetId::generate();
        let written = support::asset("draft", "draft");
        names.insert(db, &acme, &draft, &written, None).await;
        let gone = AssetId::generate();
        let written = support::asset("gone", "gone");
        names
            .insert(db, &acme, &gone, &written, Some(ProductStatus::Archived))
            .await;
        let feed = EndpointId::generate();
        let written = support::endpoint("C", "c");
        names
            .insert(db, &other, &feed, &written, Some(ProductStatus::Published))
            .await;

        let wanted = Wanted::default();
        let expected = ["a", "b", "C", "Ä"];
        assert_eq!(
            names.found(db, &wanted, Order::Name).await,
            expected,
            "{}",
            store.name
        );
        let newest = ["C", "a", "Ä", "b"];
        assert_eq!(
            names.found(db, &wanted, Order::Recent).await,
            newest,
            "{}",
            store.name
        );
        let own = Wanted {
            own: Some(&acme.company),
            product_type: Some(ProductType::Asset),
            ..Wanted::default()
        };
        let expected = ["a", "b", "draft", "Ä"];
        assert_eq!(
            names.found(db, &own, Order::Name).await,
            expected,
            "{}",
            store.name
        );
        let golf = Wanted {
            sport: Some("golf"),
            ..Wanted::default()
        };
        assert_eq!(
            names.found(db, &golf, Order::Popular).await,
            ["b"],
            "{}",
            store.name
        );
        let results = Wanted {
            category: Some("results"),
            text: Some("a"),
            ..Wanted::default()
        };
        assert_eq!(
            names.found(db, &results, Order::Trending).await,
            ["a"],
            "{}",
            store.name
        );
        // Every filter and order is valid SQL, together and by itself.
        for order in [
            Order::Relevance,
            Order::Recent,
            Order::Name,
            Order::Popular,
            Order::Trending,
            Order::Price,
        ] {
            for text in [None, Some("a b c")] {
                let all = Wanted {
                    text,
                    own: Some(&acme.company),
                    product_type: Some(ProductType::Asset),
                    category: Some("x"),
                    sport: Some("x"),
                    result_type: Some(souk_domain::products::ResultType::Number),
                    engine: Some(1),
                    industry: Some(1),
                    use_case: Some(1),
                    price_min: Some(1),
                    price_max: Some(2),
                    ai_training_allowed: Some(true),
                    sampled_since: Some(db::now()),
                };
                assert_eq!(
                    names.found(db, &all, order).await,
                    [""; 0],
                    "{}",
                    store.name
                );
            }
        }
        let suspended = db.write(async |write| -> Result<(), StoreError> {
            let mut company = companies::get(write, &other.company).await?.unwrap();
            company.status = companies::CompanyStatus::Suspended;
            companies::update(write, &company, db::now()).await
        });
        suspended.await.unwrap();
        assert_eq!(
            names.found(db, &wanted, Order::Name).await,
            ["b", "Ä"],
            "{}",
            store.name
        );
    }
}

/// Labels filter, by themselves and together, and are no words; what an older version indexed without them is indexed again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_filter() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let acme = seller(db, "acme").await;
        let labels = |labels: &'static str| {
            move |asset: &mut Written<AssetDetails>| asset.labels = labels.into()
        };
        let both = r#"{"industry_ids":[7,71],"use_case_ids":[1],"tags":["i7"]}"#;
        names.asset(db, &acme, "both", labels(both)).await;
        let one = r#"{"industry_ids":[71],"use_case_ids":[7],"tags":[]}"#;
        names.asset(db, &acme, "one", labels(one)).await;
        names.asset(db, &acme, "none", labels("{}")).await;
        for round in ["written", "indexed again"] {
            for (industry, use_case, text, expected) in [
                (Some(7), None, None, vec!["both"]),
                (Some(71), None, None, vec!["both", "one"]),
                (None, Some(7), None, vec!["one"]),
                (Some(71), Some(1), None, vec!["both"]),
                (Some(7), Some(7), None, vec![]),
                (Some(1), None, None, vec![]),
                (None, None, Some("i7"), vec!["both"]),
                (None, None, Some("i71"), vec![]),
                (None, None, Some("#i71"), vec![]),
                (Some(71), None, Some("one"), vec!["one"]),
            ] {
                let wanted = Wanted {
                    industry,
                    use_case,
                    text,
                    ..Wanted::default()
                };
                assert_eq!(
                    names.found(db, &wanted, Order::Name).await,
                    expected,
                    "{} {round} {industry:?} {use_case:?} {text:?}",
                    store.name
                );
            }
            let older = db.write(async |write| -> Result<(), StoreError> {
                for sql in [
                    "DELETE FROM search_terms WHERE term LIKE '#%'",
                    "UPDATE search_products SET version = 0",
                ] {
                    sqlx::query(sql).execute(&mut **write).await?;
                }
                Ok(())
            });
            older.await.unwrap();
            search::catch_up(db).await.unwrap();
        }
    }
}

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

/// What is popular and what is trending are the sums of recorded runs by others, and end with their dates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_are_the_sums_of_runs() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let seller = seller(db, "acme").await;
        let teller = Teller::open(db).await.unwrap();
        let (today, buyer) = (db::now().day_start(), CompanyId::generate());
        let mut assets = Vec::new();
        for name in ["a", "b", "c", "d"] {
            assets.push(names.asset(db, &seller, name, |_| {}).await);
        }
        for number in 0..200_u32 {
            if number % 100 == 99 {
                // A seller has so many of a flush.
                teller.flush().await;
            }
            let started_at = today.before(DAY * (number * 13 % 45));
            let is_own = number % 11 == 0;
            let has_failed = number % 7 == 0;
            teller.record(&Run {
                id: ExecutionId::generate_at(started_at),
                company: if is_own {
                    seller.company.clone()
                } else {
                    buyer.clone()
                },
                seller: seller.company.clone(),
                product: Product::Asset(assets[(number % 3) as usize].clone()),
                purchase: None,
                price: None,
                actor: Actor::Key(KeyId::generate()),
                request: RequestId::generate_at(started_at),
                outcome: match has_failed {
                    false => Outcome::Succeeded,
                    true => Outcome::Failed {
                        code: "source".into(),
                        blame: "source".into(),
                    },
                },
                billing: if has_failed {
                    Billing::Failed
                } else {
                    Billing::FreeProduct
                },
                rows: 1,
                bytes: 1,
                started_at,
                duration_us: 1,
            });
        }
        teller.flush().await;
        for later in [0, 1, 9, 40] {
            let now = today.after(DAY * later);
            search::ranks::rank(db, now).await.unwrap();
            let mut expected = BTreeMap::new();
            let mut read = db.read().await.unwrap();
            for asset in &assets {
                let rows = sqlx::query(
                    "SELECT started_at FROM executions WHERE product_id = $1 AND status = 'succeeded' AND company_id <> seller_id",
                );
                let rows = rows
                    .bind(asset.as_str())
                    .fetch_all(&mut *read)
                    .await
                    .unwrap();
                let mut ranks = (0, 0);
                for row in rows {
                    let at: Timestamp = row.time("started_at").unwrap();
                    // How many dates ago, today being none.
                    match now.since(at.day_start()).as_secs() / 86_400 {
                        0..7 => ranks = (ranks.0 + 1, ranks.1 + 1),
                        7..14 => ranks = (ranks.0 + 1, ranks.1 - 1),
                        14..30 => ranks.0 += 1,
                        _ => {}
                    }
                }
                expected.insert(asset.to_string(), ranks);
            }
            let rows = sqlx::query("SELECT product_id, popular, trending FROM search_products");
            let rows = rows.fetch_all(&mut *read).await.unwrap();
            drop(read);
            let ranked: BTreeMap<String, (i64, i64)> = rows
                .iter()
                .map(|row| {
                    let ranks = (
                        row.number("popular").unwrap(),
                        row.number("trending").unwrap(),
                    );
                    (row.text("product_id").unwrap(), ranks)
                })
                .collect();
            assert_eq!(ranked, expected, "{} {later}", store.name);
            if later == 0 {
                assert!(expected.values().any(|ranks| ranks.1 != 0 && ranks.0 > 10));
                let by_use = |of: fn(&(i64, i64)) -> i64| {
                    let mut ids: Vec<_> = expected.iter().collect();
                    ids.sort_by_key(|(id, ranks)| std::cmp::Reverse((of(ranks), *id)));
                    ids.iter()
                        .map(|(id, _)| names.0[*id].as_str())
                        .collect::<Vec<_>>()
                };
                let wanted = Wanted::default();
                let popular = names.found(db, &wanted, Order::Popular).await;
                let trending = names.found(db, &wanted, Order::Trending).await;
                assert_eq!(popular[0], by_use(|ranks| ranks.0)[0], "{}", store.name);
                assert_eq!(trending[0], by_use(|ranks| ranks.1)[0], "{}", store.name);
            }
        }
    }
}

/// Where there are many products, a filter that few of them pass goes along its own index, also on connections that were open before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_products_are_found_by_what_few_have() {
    for store in stores().await {
        let db = &store.db;
        db.write(async |write| {
            sqlx::query(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
                 INSERT INTO search_products (product_id, product_type, company_id, is_published, name_key, sport, allow_ai_training,
                                              listed_at, popular, trending)
                 SELECT 'ast_' || i, 'asset', 'cmp_1', 1, '61', 'sport ' || (i % 100), 0, i, 0, 0
                 FROM n",
            )
            .execute(&mut **write)
            .await?;
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
        let mut before = db.read().await.unwrap();
        search::ranks::rank(db, db::now()).await.unwrap();
        if store.name != "sqlite" {
            continue;
        }
        // A connection hears of it with the next statement that it carries out.
        let any = sqlx::query("SELECT product_id FROM search_products LIMIT 1");
        any.fetch_one(&mut *before).await.unwrap();
        let plan = "EXPLAIN QUERY PLAN SELECT COUNT(*) FROM search_products s \
                    WHERE s.is_published = 1 AND s.product_type = 'asset' AND s.sport = 'sport 7'";
        let rows = sqlx::query(plan).fetch_all(&mut *before).await.unwrap();
        let detail: String = rows[0].try_get("detail").unwrap();
        assert!(detail.contains("search_products_by_sport"), "{detail}");
    }
}

/// Comparables are others' published products that have one of the twenty words that say most; a company's own are not even looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn comparables_share_the_words_that_say_most() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let (acme, other) = (seller(db, "acme").await, seller(db, "other").await);
        // Twenty words of eight letters, and short ones behind them.
        let long: Vec<String> = ('a'..='t')
            .map(|letter| format!("{letter}bcdefgh"))
            .collect();
        let name = format!("xy {} xz", long.join(" "));
        let tagged = |asset: &mut Written<AssetDetails>| {
            asset.labels = r#"{"tags":["labelledatlength"]}"#.into();
        };
        let own = names.asset(db, &acme, &name, tagged).await;
        let shared = names.asset(db, &other, "abcdefgh", |_| {}).await;
        let last = names.asset(db, &other, "tbcdefgh other", |_| {}).await;
        let short = names.asset(db, &other, "xy xz", |_| {}).await;
        let label = names.asset(db, &other, "labelledatlength", |_| {}).await;
        let own_too = names.asset(db, &acme, &name, |_| {}).await;
        let unpublished = names.asset(db, &other, &name, |_| {}).await;
        let (at, to) = (db::now(), ProductStatus::Unpublished);
        let priced = db.write(async |write| -> Result<(), StoreError> {
            products::set_status(write, &other.company, &unpublished, to, at).await?;
            for asset in [&shared, &last, &short, &label, &own_too, &unpublished] {
                let new = NewPrice {
                    company: &other.company,
                    product: asset.as_str(),
                    credits: Credits::ZERO,
                    usd: UsdCents::ZERO,
                    discount_percent: None,
                    original_credits: None,
                    validity: Validity { from: at, to: None },
                    created_by: "key_1",
                };
                prices::insert(write, &new, at).await?;
            }
            Ok(())
        });
        priced.await.unwrap();
        let mut read = db.read().await.unwrap();
        let candidates = comparables::candidates(&mut read, &acme.company, &own, db::now()).await;
        let found: BTreeSet<String> = candidates.unwrap().into_iter().map(|one| one.id).collect();
        let expected = [shared, last].map(|id| id.to_string());
        assert_eq!(found, BTreeSet::from(expected), "{}", store.name);
    }
}
