//! A marketplace to measure: one host, a seller whose products answer the queries, a buyer who pays for them.

use std::path::PathBuf;

use serde_json::json;
use souk_tests::{Company, TestHost};

use crate::servers::{REAL, SOURCES, Server};
use crate::{generator, queries};

/// What is measured of each source. What begins with `file: ` reads a SQLite file, with `mariadb: ` a MariaDB, and so on; what has no name before
/// it reads PostgreSQL.
const OF_A_SOURCE: [&str; 5] = ["single row", "aggregate", GROUP_BY, "50 rows", "1,000 rows"];
/// Of real servers only: what one that stands for an engine takes to group rows says nothing of that engine.
pub const GROUP_BY: &str = "group-by";
/// Reads nothing, so that what is left is the host, the sandbox and the ledger.
pub const NO_DATABASE: &str = "no database";

/// All queries, each with its source's name before it.
pub fn queries() -> impl Iterator<Item = String> {
    let of = |source: &'static str| {
        let is_measured = move |query: &&str| *query != GROUP_BY || REAL.contains(&source);
        let measured = OF_A_SOURCE.into_iter().filter(is_measured);
        measured.map(move |query| match source {
            "" => query.to_owned(),
            source => format!("{source}: {query}"),
        })
    };
    std::iter::once(NO_DATABASE.to_owned()).chain(SOURCES.into_iter().flat_map(of))
}

/// Which source a query is for, and what it is there.
pub fn parts(query: &str) -> (&str, &str) {
    query.split_once(": ").unwrap_or(("", query))
}

pub struct Market {
    pub address: String,
    /// The host.
    pub process: u32,
    seller: String,
    owner_key: String,
    buyer_key: String,
    /// By their sources.
    products: Vec<(&'static str, Products)>,
    label: String,
    /// The host, where nobody else keeps it running.
    host: Option<TestHost>,
}

/// What is published of one source: an aggregate, a feed and, of a real server, a chart.
struct Products {
    asset: String,
    /// With the groups.
    chart: Option<String>,
    /// Where the owner reads the feed.
    page: String,
    /// Where the buyer does, and with what.
    feed: String,
    feed_key: String,
}

impl Market {
    /// On a host of its own; `guest` is the component `fixed`, which `no database` asks.
    pub async fn open(binary: PathBuf, guest: Vec<u8>, servers: &[Server]) -> Market {
        let host = TestHost::builder().binary(binary).start().await;
        let mut market = Market::on(&host, guest, servers).await;
        market.host = Some(host);
        market
    }

    /// Ends its own host as an operator does, so that it writes down what it counted (`deploy/profiled`).
    pub async fn close(mut self) {
        if let Some(host) = &mut self.host {
            host.stop().await;
        }
    }

    /// On a host that runs for as long as it is measured. What it has no engine for is not sold: it may be an older build.
    pub async fn on(host: &TestHost, guest: Vec<u8>, servers: &[Server]) -> Market {
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
        let engines = seller.client.get("/storage-engines").await.expect(200);
        let mut products = Vec::new();
        for server in servers {
            let mut engines = engines.at("/data").as_array().into_iter().flatten();
            // A host names engines that it has no connector for, too.
            if engines.any(|engine| engine["slug"] == server.engine() && engine["usable"] == true) {
                products.push((server.source(), publish(server, &seller, &buyer).await));
            }
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
            products,
            label,
            host: None,
        }
    }

    /// The owner's requests, one after the other: free. None of a source that is not there.
    pub fn owner(&self, query: &str) -> Vec<Vec<u8>> {
        let page = |products: &Products| (products.page.clone(), self.owner_key.clone());
        self.requests(query, &self.owner_key, page)
    }

    /// The buyer's, each of which is charged: a page of the feed where customers fetch it, with an endpoint key.
    pub fn charged(&self, query: &str) -> Vec<Vec<u8>> {
        let page = |products: &Products| (products.feed.clone(), products.feed_key.clone());
        self.requests(query, &self.buyer_key, page)
    }

    /// `page`: where a page is read, and with which key.
    fn requests(
        &self,
        query: &str,
        key: &str,
        page: impl Fn(&Products) -> (String, String),
    ) -> Vec<Vec<u8>> {
        let execute = |asset: &str| {
            let path = format!("/companies/{}/assets/{asset}/execute", self.seller);
            generator::request("POST", &path, &[("x-api-key", key)], "")
        };
        if query == NO_DATABASE {
            return vec![execute(&self.label)];
        }
        let (source, what) = parts(query);
        let mut products = self.products.iter();
        let Some((_, products)) = products.find(|(name, _)| *name == source) else {
            return Vec::new();
        };
        let (page, page_key) = page(products);
        let page = |filter: &str| {
            let path = format!("{page}?{filter}");
            generator::request("GET", &path, &[("x-api-key", page_key.as_str())], "")
        };
        match what {
            "single row" => queries::ids()
                .map(|id| page(&format!("id={id}&limit=1")))
                .collect(),
            "50 rows" => vec![page("limit=50")],
            "1,000 rows" => vec![page("limit=1000")],
            GROUP_BY => products.chart.as_deref().map(execute).into_iter().collect(),
            _ => vec![execute(&products.asset)],
        }
    }
}

/// Puts an aggregate and a feed of a source up for sale, which the buyer buys.
async fn publish(server: &Server, seller: &Company, buyer: &Company) -> Products {
    let name = server.engine();
    let (connection, table) = server.connect(seller).await;
    let fields = queries::FIELDS.map(|name| json!({"name": name}));
    let asset = json!({"name": name, "slug": format!("{name}-goals"), "sql_logic": queries::ASSET_SQL,
                       "parameters": [{"name": "team", "type": "string", "default": queries::TEAM}]});
    let asset = seller.asset(&connection, asset).await;
    let endpoint = json!({"name": name, "slug": format!("{name}-players"), "source": table, "fields": fields,
                          "order_by": ["id"], "filters": ["id"], "max_limit": 1000});
    let endpoint = seller.endpoint(&connection, endpoint).await;
    let chart = match REAL.contains(&server.source()) {
        true => Some(chart(server, seller, &connection).await),
        false => None,
    };
    seller.publish(&asset, 1).await;
    seller.publish(&endpoint, 1).await;
    let purchase = buyer.buy(&endpoint).await;
    unlimit(buyer, &purchase.text("/data/endpoint_key/id")).await;
    Products {
        asset,
        chart,
        page: format!("/companies/{}/endpoints/{endpoint}/execute", seller.id),
        feed: format!("/endpoints/v1/{}/{name}-players", seller.handle),
        feed_key: purchase.text("/data/endpoint_key/key"),
    }
}

/// Puts the groups of a team up for sale: of an asset that takes a parameter a chart is what has rows.
async fn chart(server: &Server, seller: &Company, connection: &str) -> String {
    let name = server.engine();
    let drawn = json!({"mark": "bar", "x": "shirt", "y": "goals", "series": "active"});
    let chart = json!({"asset_type": "VISUALIZATION", "result_type": "chart", "name": name, "slug": format!("{name}-shirts"),
                       "sql_logic": queries::GROUPS.replace("$1", ":team"), "visualization": drawn,
                       "parameters": [{"name": "team", "type": "string", "default": queries::TEAM}]});
    let chart = seller.asset(connection, chart).await;
    seller.publish(&chart, 1).await;
    chart
}

/// A key's default limit is 1,000 requests an hour.
pub async fn unlimit(company: &Company, key: &str) {
    let path = company.path(&format!("/api-keys/{key}"));
    let limit = json!({"rate_limit": 1_000_000_000});
    company.client.patch(&path, limit).await.expect(200);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_asked_of_real_servers() {
        let all: Vec<String> = queries().collect();
        let groups = all.iter().filter(|query| parts(query).1 == GROUP_BY);
        let groups: Vec<&str> = groups.map(String::as_str).collect();
        assert_eq!(groups, ["group-by", "file: group-by", "mariadb: group-by"]);
        // What else is asked is asked of all.
        assert_eq!(all.len(), 1 + 4 * SOURCES.len() + REAL.len());
    }
}
