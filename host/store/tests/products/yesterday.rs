//! Products of a store from before assets and endpoints had one table.

use crate::support::{open, stores};
use crate::{NOW, company};
use souk_domain::ids::{AssetId, ConnectionId, EndpointId};
use souk_domain::products::{AssetType, ProductStatus, ResultType, SourceKind};
use souk_domain::time::Timestamp;
use souk_store::products::{self, AssetDetails, EndpointDetails};
use souk_store::{StoreError, connections, marketplace};
use sqlx::{AssertSqlSafe, Executor};

/// Products of a store that was written when assets and endpoints had tables of their own are all there, under their ids, with all they had.
#[tokio::test]
async fn products_of_yesterdays_store_are_moved() {
    const YESTERDAY: [&str; 2] = [
        include_str!("../../migrations/0004_products.sql"),
        include_str!("../../migrations/0013_samples.sql"),
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
        let dependants = connections::dependants(&mut read, &owner, &connection, None).await;
        assert_eq!(dependants.unwrap(), (1, 1));
        let on_sale = marketplace::get(&mut read, &owner, "ast_1", NOW).await;
        assert_eq!(on_sale.unwrap().unwrap().sport.as_deref(), Some("football"));
    }
}
