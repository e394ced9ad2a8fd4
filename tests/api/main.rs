//! The REST API as its clients see it: a real host, a real PostgreSQL, real files, a real seller API.

mod alerts;
mod audit;
mod bigquery_source;
mod bounds;
mod breadth;
mod changes;
mod changes_on_the_market;
mod charges;
mod clickhouse_recorded;
mod clickhouse_source;
mod clocks;
mod columns;
mod companies;
mod comparable;
mod connections;
mod connectors;
mod conversations;
mod cut_commits;
mod data_route;
mod databricks_source;
mod declared;
mod duckdb_source;
mod endpoints;
mod ends_of_time;
mod envelope;
mod events;
mod exact;
mod executions;
mod exports;
mod faults;
mod feeds;
mod files;
mod files_source;
mod formats;
mod hostile;
mod hostile_platforms;
mod hosts;
mod large;
mod league;
mod limits;
mod mariadb_source;
mod maturity;
mod numbers;
mod operators;
mod pages;
mod paid_faults;
mod postgres_source;
mod predictions;
mod previews;
mod publishing;
mod readme;
mod retries;
mod roles;
mod scans;
mod seller_functions;
mod seller_tls;
mod shares;
mod shown;
mod snowflake_source;
mod speed;
mod sql;
mod sqlite_source;
mod sqlserver_source;
mod swallowed;
mod top_ups;
mod torn_exports;
mod torn_tls;
mod tpch;
mod trino_source;
mod users;
mod voids;
mod webhooks;

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use souk_tests::{Company, PgCluster, TestHost};
use tokio::sync::OnceCell;

/// One host for the whole test binary; every test makes companies of its own.
pub async fn host() -> &'static TestHost {
    static HOST: OnceCell<TestHost> = OnceCell::const_new();
    static KEEPS: Once = Once::new();
    let host = HOST
        .get_or_init(|| async {
            // The tests of key creation alone would use up the default limits of one address.
            TestHost::builder()
                .env("SOUK_IP_RATE_LIMIT", "1000000")
                .start()
                .await
        })
        .await;
    KEEPS.call_once(|| host.keep_compiled());
    host
}

/// A name that no other test of this run uses.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Matches of a small league.
pub const LEAGUE: &str = "
    CREATE TABLE matches (id bigint PRIMARY KEY, team text NOT NULL, goals integer NOT NULL, secret text, played_on date NOT NULL);
    INSERT INTO matches
    SELECT i, CASE i % 3 WHEN 0 THEN 'Ajax' WHEN 1 THEN 'Benfica' ELSE 'Celtic' END, i % 5, 'hidden ' || i, DATE '2026-01-01' + i
    FROM generate_series(1, 250) AS i;";

/// A seller with `LEAGUE` in a PostgreSQL database of its own.
pub struct League {
    pub seller: Company,
    pub connection: String,
    pub database: String,
}

pub async fn league() -> League {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let seller = host().await.company(&unique("league")).await;
    let connection = seller.postgres(cluster, &database).await;
    League {
        seller,
        connection,
        database,
    }
}

impl League {
    /// `SELECT sum(goals) …` with a bound team, published at `credits`.
    pub async fn total_goals(&self, credits: u64) -> String {
        let asset = self
            .seller
            .asset(
                &self.connection,
                serde_json::json!({"name": "Total goals", "slug": unique("total-goals"),
                    "sql_logic": "SELECT sum(goals) AS goals FROM matches WHERE team = :team",
                    "parameters": [{"name": "team", "type": "string", "default": "Ajax"}]}),
            )
            .await;
        self.seller.publish(&asset, credits).await;
        asset
    }

    /// The table as an endpoint without its secret column, published at `credits`. Returns id and slug.
    pub async fn matches(&self, credits: u64) -> (String, String) {
        let slug = unique("matches");
        let endpoint = self
            .seller
            .endpoint(
                &self.connection,
                serde_json::json!({"name": "Matches", "slug": slug, "source": {"schema": "public", "table": "matches"},
                    "fields": [{"name": "id"}, {"name": "team"}, {"name": "goals", "alias": "scored"}, {"name": "played_on"}],
                    "order_by": ["id"], "filters": ["team", "id"]}),
            )
            .await;
        self.seller.publish(&endpoint, credits).await;
        (endpoint, slug)
    }
}
