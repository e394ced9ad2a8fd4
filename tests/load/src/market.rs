//! A marketplace to measure: one host, a seller whose products answer the queries, a buyer who pays for them.

use crate::{generator, queries};
use serde_json::json;
use souk_tests::{Company, MariaDb, PgCluster, TestHost};
use std::path::{Path, PathBuf};

/// What is measured. What begins with `file: ` reads a SQLite file, with `mariadb: ` a MariaDB, the others PostgreSQL; `no database` reads
/// nothing, so that what is left is the host, the sandbox and the ledger.
pub const QUERIES: [&str; 13] = [
    "no database",
    "single row",
    "aggregate",
    "50 rows",
    "1,000 rows",
    "file: single row",
    "file: aggregate",
    "file: 50 rows",
    "file: 1,000 rows",
    "mariadb: single row",
    "mariadb: aggregate",
    "mariadb: 50 rows",
    "mariadb: 1,000 rows",
];

/// Which source a query is for, and what it is there.
pub fn parts(query: &str) -> (&str, &str) {
    query.split_once(": ").unwrap_or(("", query))
}

/// Where the dataset lies.
pub struct Sources<'a> {
    pub cluster: &'a PgCluster,
    pub database: &'a str,
    /// Of SQLite.
    pub file: &'a Path,
    /// A server and the database there, of a build that speaks to it.
    pub mariadb: Option<(&'a MariaDb, &'a str)>,
}

pub struct Market {
    pub address: String,
    /// The host.
    pub process: u32,
    seller: String,
    owner_key: String,
    buyer_key: String,
    database: Products,
    file: Products,
    mariadb: Option<Products>,
    label: String,
    /// The host, where nobody else keeps it running.
    _host: Option<TestHost>,
}

/// What is published of one source: an aggregate and a feed.
struct Products {
    asset: String,
    /// Where the owner reads the feed.
    page: String,
    /// Where the buyer does, and with what.
    feed: String,
    feed_key: String,
}

impl Market {
    /// On a host of its own; `guest` is the component `fixed`, which `no database` asks.
    pub async fn open(binary: PathBuf, guest: Vec<u8>, sources: &Sources<'_>) -> Market {
        let host = TestHost::builder().binary(binary).start().await;
        let mut market = Market::on(&host, guest, sources).await;
        market._host = Some(host);
        market
    }

    /// On a host that runs for as long as it is measured.
    pub async fn on(host: &TestHost, guest: Vec<u8>, sources: &Sources<'_>) -> Market {
        let seller = host.company("bench-seller").await;
        let buyer = host.buyer("bench-buyer", 100_000_000).await;
        for company in [&seller, &buyer] {
            let keys = company.client.get(&company.path("/api-keys")).await;
            unlimit(company, &keys.expect(200).text("/data/0/id")).await;
        }
        host.platform()
            .post_wasm("/connectors?activate=true", guest)
            .await
            .expect(201);

        let fields: Vec<_> = queries::FIELDS
            .iter()
            .map(|name| json!({"name": name}))
            .collect();
        let publish = async |connection: &str, name: &str, table: serde_json::Value| {
            let asset = json!({"name": name, "slug": format!("{name}-goals"), "sql_logic": queries::ASSET_SQL,
                               "parameters": [{"name": "team", "type": "string", "default": queries::TEAM}]});
            let asset = seller.asset(connection, asset).await;
            let endpoint = json!({"name": name, "slug": format!("{name}-players"), "source": table, "fields": fields,
                                  "order_by": ["id"], "filters": ["id"], "max_limit": 1000});
            let endpoint = seller.endpoint(connection, endpoint).await;
            seller.publish(&asset, 1).await;
            seller.publish(&endpoint, 1).await;
            let purchase = buyer.buy(&endpoint).await;
            unlimit(&buyer, &purchase.text("/data/endpoint_key/id")).await;
            Products {
                asset,
                page: format!("/companies/{}/endpoints/{endpoint}/execute", seller.id),
                feed: format!("/endpoints/v1/{}/{name}-players", seller.handle),
                feed_key: purchase.text("/data/endpoint_key/key"),
            }
        };
        let connection = seller.postgres(sources.cluster, sources.database).await;
        let of_database = publish(
            &connection,
            "database",
            json!({"schema": "public", "table": "players"}),
        )
        .await;
        let bytes = std::fs::read(sources.file).expect("the dataset");
        let connection = seller.sqlite("players.db", bytes).await;
        let of_file = publish(&connection, "file", json!({"table": "players"})).await;
        let mut of_mariadb = None;
        if let Some((server, schema)) = sources.mariadb {
            let connection = seller.mariadb(server, schema).await;
            let table = json!({"schema": schema, "table": "players"});
            of_mariadb = Some(publish(&connection, "mariadb", table).await);
        }
        let nothing = seller.nowhere("fixed").await;
        let label = json!({"name": "label", "slug": "label", "result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
        let label = seller.asset(&nothing, label).await;
        seller.publish(&label, 1).await;
        Market {
            process: host.pid(),
            address: host.base_url.trim_start_matches("http://").to_owned(),
            seller: seller.id.clone(),
            owner_key: seller.key.clone(),
            buyer_key: buyer.key.clone(),
            database: of_database,
            file: of_file,
            mariadb: of_mariadb,
            label,
            _host: None,
        }
    }

    /// The owner's requests, one after the other: free. None of a source that is not there.
    pub fn owner(&self, query: &str) -> Vec<Vec<u8>> {
        let Some(products) = self.products(query) else {
            return Vec::new();
        };
        let page = (&*products.page, &*self.owner_key);
        self.requests(query, products, &self.owner_key, page)
    }

    /// The buyer's, each of which is charged: a page of the feed where customers fetch it, with an endpoint key.
    pub fn charged(&self, query: &str) -> Vec<Vec<u8>> {
        let Some(products) = self.products(query) else {
            return Vec::new();
        };
        let page = (&*products.feed, &*products.feed_key);
        self.requests(query, products, &self.buyer_key, page)
    }

    fn products(&self, query: &str) -> Option<&Products> {
        match parts(query).0 {
            "file" => Some(&self.file),
            "mariadb" => self.mariadb.as_ref(),
            _ => Some(&self.database),
        }
    }

    fn requests(
        &self,
        query: &str,
        products: &Products,
        key: &str,
        (page, page_key): (&str, &str),
    ) -> Vec<Vec<u8>> {
        let page = |filter: &str| {
            let path = format!("{page}?{filter}");
            generator::request("GET", &path, &[("x-api-key", page_key)], "")
        };
        let execute = |asset: &str| {
            let path = format!("/companies/{}/assets/{asset}/execute", self.seller);
            generator::request("POST", &path, &[("x-api-key", key)], "")
        };
        match parts(query).1 {
            "single row" => queries::ids()
                .map(|id| page(&format!("id={id}&limit=1")))
                .collect(),
            "50 rows" => vec![page("limit=50")],
            "1,000 rows" => vec![page("limit=1000")],
            "aggregate" => vec![execute(&products.asset)],
            _ => vec![execute(&self.label)],
        }
    }
}

/// A key's default limit is 1,000 requests an hour.
pub async fn unlimit(company: &Company, key: &str) {
    let path = company.path(&format!("/api-keys/{key}"));
    let limit = json!({"rate_limit": 1_000_000_000});
    company.client.patch(&path, limit).await.expect(200);
}
