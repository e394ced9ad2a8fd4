//! Filters, labels among them, and orders.

use crate::support::{self, stores};
use crate::{Names, seller};
use souk_domain::ids::{AssetId, EndpointId};
use souk_domain::products::{ProductStatus, ProductType};
use souk_store::products::{AssetDetails, Written};
use souk_store::search::{self, Order, Wanted};
use souk_store::{StoreError, companies, db};
use sqlx::Row;

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
