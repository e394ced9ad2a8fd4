//! Products in the store, on SQLite and on PostgreSQL.

mod support;

use souk_domain::ids::{AssetId, CompanyId, ConnectionId, EndpointId, UserId};
use souk_domain::money::{Credits, UsdCents};
use souk_domain::prices::Validity;
use souk_domain::products::{AssetType, Product, ProductStatus, ResultType, SourceKind};
use souk_domain::time::Timestamp;
use souk_store::lists::OFFSET_MAX;
use souk_store::prices::{self, NewPrice};
use souk_store::products::{
    self, AssetDetails, EndpointDetails, Filter, Kept, Kind, Sort, Tested, Written, learned,
};
use souk_store::{Db, Part, StoreError, connections, marketplace};
use sqlx::{AssertSqlSafe, Executor};
use std::time::{Duration, Instant};
use support::{asset, endpoint, open, roll_back, stores};

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// The preview, and nothing of the source.
const KEPT: Kept<'static> = Kept {
    sample: true,
    learned: None,
};

fn after(micros: i64) -> Timestamp {
    Timestamp::from_micros(NOW.micros() + micros)
}

async fn company(db: &Db, handle: &str) -> CompanyId {
    let id = CompanyId::generate();
    db.write(async |tx| -> Result<_, StoreError> {
        sqlx::query("INSERT INTO companies (id, handle, name, status, is_platform, created_at, updated_at) VALUES ($1, $2, $2, 'active', 0, 0, 0)")
            .bind(id.as_str())
            .bind(handle)
            .execute(&mut **tx)
            .await
            .unwrap();
        Ok(())
    }).await.unwrap();
    id
}

/// Adds an asset and an endpoint of this name.
async fn both(db: &Db, owner: &CompanyId, name: &str, slug: &str, at: Timestamp) -> Both {
    let (a, e, user) = (
        AssetId::generate(),
        EndpointId::generate(),
        UserId::generate(),
    );
    db.write(async |tx| {
        products::insert(tx, &a, owner, &user, &asset(name, slug), at).await?;
        products::insert(tx, &e, owner, &user, &endpoint(name, slug), at).await?;
        Ok::<_, StoreError>(())
    })
    .await
    .unwrap();
    (a, e)
}

type Both = (AssetId, EndpointId);

/// What is told to whoever saves an endpoint `id` of this company that is so written.
async fn learned_for(
    db: &Db,
    company: &CompanyId,
    id: &EndpointId,
    written: &Written<EndpointDetails>,
) -> Vec<String> {
    let mut read = db.read().await.unwrap();
    let (connection, details) = (&written.connection_id, &written.details);
    let learned = learned::of_others(&mut read, company, id, connection, details).await;
    learned.unwrap()
}

/// What a test has learnt is told to those who save another endpoint of the same source and company, until the endpoint is changed without it or archived.
#[tokio::test]
async fn what_was_learnt_is_told_to_endpoints_of_the_same_source() {
    for store in stores().await {
        let db = &store.db;
        let (owner, stranger) = (company(db, "acme").await, company(db, "other").await);
        let (_, id) = both(db, &owner, "One", "one", NOW).await;
        // The second test saw what is not there any more.
        for (text, read_at) in [("first", NOW), ("late", after(1))] {
            let kept = db.write(async |tx| learned::keep(tx, &id, read_at, text).await);
            kept.await.unwrap();
        }
        let mut read = db.read().await.unwrap();
        let one = products::get(&mut read, &owner, &id)
            .await
            .unwrap()
            .unwrap();
        drop(read);
        assert_eq!(one.learned.as_deref(), Some("first"), "{}", store.name);
        let (same, new) = (one.written, EndpointId::generate());
        assert_eq!(learned_for(db, &owner, &new, &same).await, ["first"]);
        assert!(learned_for(db, &owner, &id, &same).await.is_empty());
        assert!(learned_for(db, &stranger, &new, &same).await.is_empty());
        let mut others = [same.clone(), same.clone(), same.clone()];
        others[0].details.source_table = Some("u".into());
        others[1].details.source_schema = Some("s".into());
        others[2].connection_id = ConnectionId::generate();
        for other in &others {
            let told = learned_for(db, &owner, &new, other).await;
            assert!(told.is_empty(), "{}: {other:?}", store.name);
        }

        let kept = Kept {
            sample: false,
            learned: Some("still"),
        };
        let changed = db
            .write(async |tx| products::update(tx, &owner, &id, NOW, &same, kept, after(1)).await);
        assert!(changed.await.unwrap());
        assert_eq!(learned_for(db, &owner, &new, &same).await, ["still"]);
        let archived = db.write(async |tx| {
            products::set_status(tx, &owner, &id, ProductStatus::Archived, after(2)).await
        });
        assert!(archived.await.unwrap());
        assert!(learned_for(db, &owner, &new, &same).await.is_empty());
    }
}

/// A change is lost rather than overwritten: what was read must still be what is there.
#[tokio::test]
async fn a_product_is_changed_and_published_only_as_it_was_read() {
    for store in stores().await {
        let (db, owner) = (&store.db, company(&store.db, "acme").await);
        let (id, _) = both(db, &owner, "One", "one", NOW).await;
        let tested = Tested {
            sample: Some("{}".into()),
            learned: None,
            allow_ai_training: false,
        };
        let (second, third) = (asset("Two", "two"), asset("Three", "three"));
        let done = db.write(async |tx| {
            Ok::<_, StoreError>([
                products::update(tx, &owner, &id, NOW, &second, KEPT, after(1)).await?,
                products::update(tx, &owner, &id, NOW, &third, KEPT, after(2)).await?,
                products::publish(tx, &owner, &id, NOW, &tested, after(2)).await?,
                products::publish(tx, &owner, &id, after(1), &tested, after(2)).await?,
            ])
        });
        assert_eq!(done.await.unwrap(), [true, false, false, true]);

        let mut db = db.read().await.unwrap();
        let stored = products::get(&mut db, &owner, &id).await.unwrap().unwrap();
        assert_eq!(
            (stored.written.name.as_str(), stored.company_handle.as_str()),
            ("Two", "acme"),
            "{}",
            store.name
        );
        assert_eq!(stored.written.details, second.details);
        assert_eq!(
            (stored.status, stored.published_at),
            (ProductStatus::Published, Some(after(2)))
        );
        assert!(!stored.written.allow_ai_training);
        let stranger = CompanyId::generate();
        let of_stranger = products::get(&mut db, &stranger, &id).await.unwrap();
        assert!(of_stranger.is_none());
        let found = products::id_by_slug(&mut db, &owner, "two").await.unwrap();
        assert_eq!(found, Some(id.clone()));
        // Of one kind only.
        let other = products::id_by_slug::<EndpointId>(&mut db, &owner, "two").await;
        assert_eq!(other.unwrap(), None);
        let status = products::status(&mut db, &id.product()).await.unwrap();
        assert_eq!(status, Some((owner, ProductStatus::Published)));
        let other = Product::Endpoint(EndpointId::parse(id.as_str()).unwrap());
        assert_eq!(products::status(&mut db, &other).await.unwrap(), None);
    }
}

/// A product may be published without a preview. What it showed before goes, and when that was taken.
#[tokio::test]
async fn a_product_is_published_without_a_sample() {
    for store in stores().await {
        let (db, owner) = (&store.db, company(&store.db, "acme").await);
        let (id, _) = both(db, &owner, "One", "one", NOW).await;
        let tested = |sample: Option<&str>| Tested {
            sample: sample.map(str::to_owned),
            learned: None,
            allow_ai_training: false,
        };
        let (with, without) = (tested(Some("{}")), tested(None));
        let done = db.write(async |tx| {
            Ok::<_, StoreError>([
                products::publish(tx, &owner, &id, NOW, &with, after(1)).await?,
                products::publish(tx, &owner, &id, after(1), &without, after(2)).await?,
            ])
        });
        assert_eq!(done.await.unwrap(), [true, true]);
        let mut db = db.read().await.unwrap();
        let stored = products::get(&mut db, &owner, &id).await.unwrap().unwrap();
        assert_eq!(
            (stored.sample, stored.sampled_at, stored.published_at),
            (None, None, Some(after(2))),
            "{}",
            store.name
        );
    }
}

/// A slug is unique in its company and kind, and two companies may use the same one.
#[tokio::test]
async fn slugs_are_unique_per_company_and_kind() {
    for store in stores().await {
        let (one, other) = (
            company(&store.db, "one").await,
            company(&store.db, "other").await,
        );
        for owner in [&one, &other] {
            both(&store.db, owner, "A", "same", NOW).await;
        }
        let user = UserId::generate();
        let (a, e) = (AssetId::generate(), EndpointId::generate());
        roll_back(&store.db, async |tx| {
            let again = products::insert(tx, &a, &one, &user, &asset("A", "same"), NOW).await;
            assert!(
                matches!(again, Err(StoreError::Conflict)),
                "{}: {again:?}",
                store.name
            );
        })
        .await;
        roll_back(&store.db, async |tx| {
            let again = products::insert(tx, &e, &one, &user, &endpoint("E", "same"), NOW).await;
            assert!(
                matches!(again, Err(StoreError::Conflict)),
                "{}: {again:?}",
                store.name
            );
        })
        .await;
    }
}

/// Lists hide what is archived unless asked for, count what they filter, and take `%` and `_` literally.
#[tokio::test]
async fn lists_filter_sort_and_count() {
    for store in stores().await {
        let owner = company(&store.db, "acme").await;
        let mut ids = Vec::new();
        for (place, name) in ["Goals 100%", "assists_all", "Goals"]
            .into_iter()
            .enumerate()
        {
            let (slug, at) = (format!("s{place}"), after(place as i64));
            ids.push(both(&store.db, &owner, name, &slug, at).await);
        }
        let archived = ProductStatus::Archived;
        let done = store.db.write(async |tx| {
            Ok::<_, StoreError>([
                products::set_status(tx, &owner, &ids[2].0, archived, after(9)).await?,
                products::set_status(tx, &owner, &ids[2].0, archived, after(9)).await?,
            ])
        });
        assert_eq!(done.await.unwrap(), [true, false]);

        let mut db = store.db.read().await.unwrap();
        for (sort, descending, first) in [
            (Sort::Name, false, "Goals 100%"),
            (Sort::CreatedAt, true, "assists_all"),
            (Sort::UpdatedAt, false, "Goals 100%"),
        ] {
            let all = Filter::default();
            let listed =
                products::list::<AssetId>(&mut db, &owner, &all, sort, descending, Part::first(1))
                    .await;
            let (list, total) = listed.unwrap();
            // Backends sort letters of different case differently; both put one of these two first.
            let names = ["Goals 100%", "assists_all"];
            assert!(
                (sort == Sort::Name && names.contains(&list[0].written.name.as_str()))
                    || list[0].written.name == first,
                "{}",
                store.name
            );
            assert_eq!((list.len(), total), (1, 2), "{}", store.name);
        }
        for (filter, expected) in [
            (Some(archived), AssetType::Calculation, 1),
            (None, AssetType::Calculation, 2),
            (None, AssetType::Prediction, 0),
        ]
        .map(|(status, subtype, expected)| {
            let filter = Filter {
                status,
                category: Some("results"),
                subtype: Some(subtype.as_str()),
                ..Filter::default()
            };
            (filter, expected)
        }) {
            let sort = Sort::Name;
            let listed =
                products::list::<AssetId>(&mut db, &owner, &filter, sort, true, Part::first(10))
                    .await;
            assert_eq!(listed.unwrap().1, expected, "{} {filter:?}", store.name);
        }
        for (q, expected) in [
            ("goals", 2),
            ("100%", 1),
            ("s_a", 1),
            ("%", 1),
            ("nothing", 0),
        ] {
            let filter = Filter {
                q: Some(q),
                ..Filter::default()
            };
            let sort = Sort::Requests;
            let listed =
                products::list::<EndpointId>(&mut db, &owner, &filter, sort, true, Part::first(10))
                    .await;
            assert_eq!(listed.unwrap().1, expected, "{} {q}", store.name);
        }
    }
}

/// Pages neither overlap nor leave a product out, however many have the same name, and the last is followed by none.
#[tokio::test]
async fn pages_are_all_there_is() {
    for store in stores().await {
        let owner = company(&store.db, "acme").await;
        for place in 0..5 {
            both(&store.db, &owner, "Same", &format!("s{place}"), NOW).await;
        }
        let mut db = store.db.read().await.unwrap();
        for sort in [Sort::Name, Sort::CreatedAt, Sort::Requests] {
            let mut seen = std::collections::BTreeSet::new();
            for offset in [0, 2, 4, 6, OFFSET_MAX + 1] {
                let (all, part) = (Filter::default(), Part::new(2, offset));
                let listed = products::list(&mut db, &owner, &all, sort, true, part).await;
                let (rows, total): (Vec<products::Row<AssetId>>, i64) = listed.unwrap();
                let expected = usize::try_from((5 - offset).clamp(0, 2)).unwrap();
                assert_eq!(
                    (rows.len(), total),
                    (expected, 5),
                    "{} {sort:?}",
                    store.name
                );
                seen.extend(rows.into_iter().map(|row| row.id.to_string()));
            }
            assert_eq!(seen.len(), 5, "{} {sort:?}", store.name);
        }
    }
}

/// Products of a store that was written when assets and endpoints had tables of their own are all there, under their ids, with all they had.
#[tokio::test]
async fn products_of_yesterdays_store_are_moved() {
    const YESTERDAY: [&str; 2] = [
        include_str!("../migrations/0004_products.sql"),
        include_str!("../migrations/0013_samples.sql"),
    ];
    const BACK: &str = "
        DROP TABLE products;
        DROP TABLE asset_details;
        DROP TABLE endpoint_details;
        DELETE FROM schema_migrations WHERE version IN (16, 30);";
    const WRITTEN: &str = r#"
        INSERT INTO assets (id, company_id, user_id, connection_id, asset_type, name, slug, description, category, sport, labels,
            source_kind, source, parameters, result_type, unit, visualization, prediction, privacy, freshness_column, timeout_ms,
            allow_ai_training, status, sample, saved_schema, created_at, updated_at, published_at)
        VALUES ('ast_1', $company, 'usr_1', 'con_1', 'CALCULATION', 'Goals', 'goals', 'All of them', 'results', 'football',
            '{"tags":["a"]}', 'path', '/goals', '[1]', 'number', 'goals', '{"v":1}', '{"p":1}', '{"s":1}', 'seen_at', 1234,
            0, 'published', '{"result":{}}', NULL, 11, 22, 33),
            ('ast_2', $company, 'usr_1', 'con_1', 'VISUALIZATION', 'Old', 'old', '', NULL, NULL, '{}',
            'sql', 'SELECT 1', '[]', 'chart', NULL, NULL, NULL, NULL, NULL, 10000, 1, 'archived', NULL, NULL, 1, 2, NULL);
        INSERT INTO endpoints (id, company_id, user_id, connection_id, name, slug, description, category, labels, source_schema,
            source_table, sql_logic, fields, order_by, filters, default_limit, max_limit, timeout_ms, allow_ai_training, status, learned,
            sample, sampled_at, created_at, updated_at, published_at)
        VALUES ('end_1', $company, 'usr_2', 'con_1', 'Rows', 'goals', 'Rows of it', 'results', '{"tags":["b"]}', 'public',
            'goals', NULL, '[{"name":"a"}]', '["a"]', '["b"]', 7, 77, 2345, 1, 'unpublished', '{"key":["a"]}', '[{}]', 44, 55, 66, 77)"#;
    for store in stores().await {
        let owner = company(&store.db, "acme").await;
        let written = WRITTEN.replace("$company", &format!("'{owner}'"));
        let write = store.db.write(async |tx| -> Result<_, StoreError> {
            for sql in [BACK, YESTERDAY[0], YESTERDAY[1], &written] {
                let run = (&mut **tx).execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned())));
                run.await.unwrap_or_else(|error| panic!("{error}: {sql}"));
            }
            Ok(())
        });
        write.await.unwrap();
        store.db.close().await;
        let db = open(&store.url).await;
        let mut read = db.read().await.unwrap();

        let id = AssetId::parse("ast_1").unwrap();
        let row = products::get(&mut read, &owner, &id)
            .await
            .unwrap()
            .unwrap();
        let text = |text: &str| Some(text.to_owned());
        let details = AssetDetails {
            asset_type: AssetType::Calculation,
            sport: text("football"),
            source_kind: SourceKind::Path,
            source: "/goals".into(),
            parameters: "[1]".into(),
            result_type: ResultType::Number,
            unit: text("goals"),
            visualization: text(r#"{"v":1}"#),
            prediction: text(r#"{"p":1}"#),
            privacy: text(r#"{"s":1}"#),
            freshness_column: text("seen_at"),
        };
        assert_eq!(row.written.details, details, "{}", store.name);
        assert_eq!(
            (row.user_id.as_str(), row.written.connection_id.as_str()),
            ("usr_1", "con_1")
        );
        let written = &row.written;
        assert_eq!(
            [&written.name, &written.slug, &written.description],
            ["Goals", "goals", "All of them"]
        );
        assert_eq!(
            (written.category.as_deref(), written.labels.as_str()),
            (Some("results"), r#"{"tags":["a"]}"#)
        );
        assert_eq!(
            (written.timeout_ms, written.allow_ai_training),
            (1234, false)
        );
        assert_eq!(row.status, ProductStatus::Published);
        assert_eq!(row.sample.as_deref(), Some(r#"{"result":{}}"#));
        let times = |row: (Timestamp, Timestamp, Option<Timestamp>)| {
            (row.0.micros(), row.1.micros(), row.2.map(Timestamp::micros))
        };
        assert_eq!(
            times((row.created_at, row.updated_at, row.published_at)),
            (11, 22, Some(33))
        );

        let id = AssetId::parse("ast_2").unwrap();
        let row = products::get_any(&mut read, &id).await.unwrap().unwrap();
        assert_eq!(row.status, ProductStatus::Archived);
        assert_eq!(row.written.details.result_type, ResultType::Chart);

        let id = EndpointId::parse("end_1").unwrap();
        let row = products::get(&mut read, &owner, &id)
            .await
            .unwrap()
            .unwrap();
        let details = EndpointDetails {
            source_schema: text("public"),
            source_table: text("goals"),
            sql_logic: None,
            fields: r#"[{"name":"a"}]"#.into(),
            order_by: r#"["a"]"#.into(),
            filters: r#"["b"]"#.into(),
            sorts: "[]".into(),
            default_limit: 7,
            max_limit: 77,
        };
        assert_eq!(row.written.details, details, "{}", store.name);
        assert_eq!(row.user_id.as_str(), "usr_2");
        assert_eq!(
            (row.written.timeout_ms, row.written.allow_ai_training),
            (2345, true)
        );
        assert_eq!(row.status, ProductStatus::Unpublished);
        assert_eq!(row.learned.as_deref(), Some(r#"{"key":["a"]}"#));
        assert_eq!(row.sample.as_deref(), Some("[{}]"));
        assert_eq!(row.sampled_at.map(Timestamp::micros), Some(44));
        assert_eq!(
            times((row.created_at, row.updated_at, row.published_at)),
            (55, 66, Some(77))
        );

        let connection = ConnectionId::parse("con_1").unwrap();
        let dependants = connections::dependants(&mut read, &owner, &connection).await;
        assert_eq!(dependants.unwrap(), (1, 1));
        let on_sale = marketplace::get(&mut read, &owner, "ast_1", NOW).await;
        assert_eq!(on_sale.unwrap().unwrap().sport.as_deref(), Some("football"));
    }
}

/// When the price of [`priced`] begins that is planned.
const PLANNED_IN: i64 = 1_000;

/// A product on sale of which so many prices have ended, the last of them now, and one is planned.
async fn priced(db: &Db, owner: &CompanyId, name: &str, ended: i64) -> AssetId {
    let (asset, _) = both(db, owner, name, name, NOW).await;
    let planned = NewPrice {
        company: owner,
        product: asset.as_str(),
        credits: Credits::ZERO,
        usd: UsdCents::ZERO,
        discount_percent: None,
        original_credits: None,
        validity: Validity {
            from: after(PLANNED_IN),
            to: None,
        },
        created_by: "key_1",
    };
    let made = db.write(async |tx| -> Result<(), StoreError> {
        products::set_status(tx, owner, &asset, ProductStatus::Published, NOW).await?;
        sqlx::query(
            "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $4)
             INSERT INTO prices (price_id, company_id, product_id, price_credits, price_cents, effective_from, effective_to, created_by,
                                 created_at, updated_at)
             SELECT CAST($1 AS TEXT) || '_' || i, CAST($2 AS TEXT), CAST($1 AS TEXT), 1, 50, $3 - i, $3 - i + 1, 'key_1', 0, 0 FROM n",
        )
        .bind(asset.as_str())
        .bind(owner.as_str())
        .bind(NOW.micros())
        .bind(ended)
        .execute(&mut **tx)
        .await?;
        prices::insert(tx, &planned, NOW).await?;
        Ok(())
    });
    made.await.unwrap();
    asset
}

/// How long it takes at best to be told this of a product that is [`priced`].
async fn fastest(db: &Db, question: &str, reader: &CompanyId, asset: &AssetId) -> Duration {
    let (id, mut fastest) = (asset.as_str(), Duration::MAX);
    let mut read = db.read().await.unwrap();
    for _ in 0..10 {
        let begun = Instant::now();
        match question {
            "active" => {
                let active = prices::active(&mut read, id, NOW).await.unwrap();
                assert_eq!(active, None);
            }
            "active of many" => {
                let active = prices::active_of(&mut read, std::iter::once(id), NOW).await;
                assert!(active.unwrap().is_empty());
            }
            "next change" => {
                let next = prices::next_change(&mut read, id, NOW).await.unwrap();
                assert_eq!(next, Some(after(PLANNED_IN)));
            }
            "holding from now" => {
                let holding = prices::holding_from(&mut read, id, NOW).await.unwrap();
                assert_eq!(holding.len(), 1);
            }
            _ => {
                let listing = marketplace::get(&mut read, reader, id, NOW).await;
                assert_eq!(listing.unwrap().unwrap().price, None);
            }
        }
        fastest = fastest.min(begun.elapsed());
    }
    fastest
}

/// Prices that have ended are passed over: of a product with very many of them everything is told about as fast as of one that has had a single
/// price. It took hundreds of times as long.
#[tokio::test]
async fn ended_prices_take_nobodys_time() {
    const ENDED: i64 = 50_000;
    const TIMES_MAX: u32 = 12;
    /// On a machine that does other things, too.
    const TRIES: usize = 5;
    for store in stores().await {
        let (db, owner) = (&store.db, company(&store.db, "acme").await);
        let many = priced(db, &owner, "many", ENDED).await;
        let few = priced(db, &owner, "few", 1).await;
        for question in [
            "active",
            "active of many",
            "next change",
            "holding from now",
            "on sale",
        ] {
            let mut seen = Vec::new();
            for _ in 0..TRIES {
                let of_few = fastest(db, question, &owner, &few).await;
                let of_many = fastest(db, question, &owner, &many).await;
                seen.push((of_many, of_few));
                if of_many < TIMES_MAX * of_few {
                    break;
                }
            }
            assert!(
                seen.len() < TRIES,
                "{} {question}: of many, and of few: {seen:?}",
                store.name
            );
        }
    }
}

/// What is planned holds when its time has come, and what has ended is counted from when it did.
#[tokio::test]
async fn prices_hold_when_it_is_their_time() {
    for store in stores().await {
        let (db, owner) = (&store.db, company(&store.db, "acme").await);
        let asset = priced(db, &owner, "asset", 20).await;
        let (id, mut read) = (asset.as_str(), db.read().await.unwrap());
        for (at, holds, next) in [
            (-15, Some(1), Some(-14)),
            (-1, Some(1), Some(0)),
            (0, None, Some(PLANNED_IN)),
            (PLANNED_IN - 1, None, Some(PLANNED_IN)),
            (PLANNED_IN, Some(0), None),
            (PLANNED_IN + 1, Some(0), None),
        ] {
            let (at, what) = (after(at), format!("{} {at}", store.name));
            let active = prices::active(&mut read, id, at).await.unwrap();
            let credits = active.as_ref().map(|price| price.credits.get());
            assert_eq!(credits, holds, "{what}");
            let all = prices::active_of(&mut read, [id, "ast_other"].into_iter(), at).await;
            assert_eq!(all.unwrap().remove(id), active, "{what}");
            let listing = marketplace::get(&mut read, &owner, id, at).await.unwrap();
            let (credits, usd) = listing.unwrap().price.unzip();
            let expected = active.as_ref().map(|price| (price.credits, price.usd));
            assert_eq!((credits, usd), expected.unzip(), "{what}");
            let changes = prices::next_change(&mut read, id, at).await.unwrap();
            assert_eq!(changes, next.map(after), "{what}");
        }
        for (since, now, expected) in [(-5, 0, 5), (-5, -1, 4), (-100, 0, 20), (0, 2_000, 0)] {
            let ended = prices::ended_since(&mut read, id, after(since), after(now)).await;
            assert_eq!(ended.unwrap(), expected, "{} {since} {now}", store.name);
        }
    }
}
