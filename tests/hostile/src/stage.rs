//! Sets a scenario up over REST, as the company would: connector, source, connection, product.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};
use souk_load::generator;
use souk_tests::{Answer, Company, TestHost};

use crate::bombs::Bomb;
use crate::components;
use crate::files::{self, Damage};
use crate::guests::{self, Guest};
use crate::scenarios::{Ask, Component, Outcome, Scenario, Source, Work};
use crate::servers::{Lie, Server};

/// A scenario that is ready.
pub struct Stage {
    pub scenario: Scenario,
    pub company: Company,
    pub connection: Option<String>,
    product: Option<String>,
    /// Components to upload, one after the other.
    uploads: Vec<Vec<u8>>,
    /// The requests that upload them.
    requests: OnceLock<Vec<Bytes>>,
    asked: AtomicU32,
    _server: Option<Server>,
}

/// No two things of a run have the same name.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The statement of guests: `deed` says whether they rest, as they must while a product is published.
const GUEST_SQL: &str = "SELECT id FROM t WHERE deed = :deed";
/// Different components for one run of uploads.
const UPLOADS: u32 = 24;

impl Stage {
    /// `company` has what the scenario needs afterwards, and nothing of it has run.
    pub async fn set(host: &TestHost, company: Company, scenario: Scenario) -> Stage {
        let mut stage = Stage {
            company,
            connection: None,
            product: None,
            uploads: Vec::new(),
            requests: OnceLock::new(),
            asked: AtomicU32::new(0),
            _server: None,
            scenario,
        };
        match stage.scenario.source {
            Source::Guest(guest, component, peer) => stage.guest(guest, component, peer).await,
            Source::Postgres(lie) => stage.postgres(lie).await,
            Source::SellerApi(lie) => stage.seller_api(lie).await,
            Source::File(damage) => stage.file(host, damage).await,
            Source::Bomb(bomb) => stage.bomb(bomb).await,
            Source::Work(work) => stage.work(work).await,
        }
        stage
    }

    async fn guest(&mut self, guest: Guest, component: Component, peer: Lie) {
        let engines = self
            .company
            .client
            .get("/storage-engines")
            .await
            .expect(200);
        let has = |engine: &Value| engine["slug"] == component.engine();
        if !engines
            .at("/data")
            .as_array()
            .is_some_and(|all| all.iter().any(has))
        {
            self.company.connector(component.wasm()).await;
        }
        let word = guest.name();
        let mut fields =
            json!({"credential_type": "NONE", "credentials": "{}", "name": unique("hostile")});
        let more = match component {
            Component::Tcp => {
                let port = self.serve(peer).address.port();
                json!({"host": "127.0.0.1", "port": port, "database": word, "ssl_mode": "disable"})
            }
            Component::Http => {
                let address = self.serve(peer).address;
                json!({"base_url": format!("http://{address}/{word}")})
            }
            Component::Files => {
                let name = format!("{word}.db");
                self.upload(&name, b"nothing to read".to_vec()).await;
                json!({"database": name})
            }
        };
        extend(&mut fields, more);
        let connection = self.company.connection(component.engine(), fields).await;
        self.product_on(
            &connection,
            json!({"sql_logic": GUEST_SQL, "parameters": [
            {"name": "deed", "type": "string", "default": "rest"}]}),
        )
        .await;
    }

    async fn postgres(&mut self, lie: Lie) {
        let port = self.serve(lie).address.port();
        let ssl_mode = match format!("{lie:?}").contains("Tls") {
            true => "require",
            false => "disable",
        };
        let credentials = json!({"username": "everybody", "password": "a secret"}).to_string();
        let fields = json!({"credential_type": "PASSWORD", "credentials": credentials, "host": "127.0.0.1", "port": port,
                            "database": "lies", "ssl_mode": ssl_mode, "name": unique("lies")});
        let connection = self.company.connection("postgres", fields).await;
        self.product_on(&connection, json!({"sql_logic": "SELECT id FROM t"}))
            .await;
    }

    async fn seller_api(&mut self, lie: Lie) {
        let address = self.serve(lie).address;
        let scheme = match format!("{lie:?}").contains("Tls") {
            true => "https",
            false => "http",
        };
        let credentials = json!({"api_key": "a-secret"}).to_string();
        let fields = json!({"credential_type": "API_KEY", "credentials": credentials, "name": unique("lies"),
                            "base_url": format!("{scheme}://{address}")});
        let connection = self.company.connection("seller-api", fields).await;
        self.product_on(&connection, json!({"function_id": "lies"}))
            .await;
    }

    async fn file(&mut self, host: &TestHost, damage: Damage) {
        let name = format!("{damage:?}.db").to_lowercase();
        self.upload(&name, damage.bytes()).await;
        let path = find(&host.data_dir, &name).expect("the uploaded file");
        let fields = json!({"credential_type": "NONE", "credentials": "{}", "database": name, "name": unique("file")});
        let connection = self.company.connection("sqlite", fields).await;
        self.product_on(&connection, json!({"sql_logic": damage.sql()}))
            .await;
        damage.afterwards(&path).expect("what happens to the file");
    }

    async fn bomb(&mut self, bomb: Bomb) {
        let name = format!("t.{}", bomb.extension());
        self.upload(&name, bomb.bytes()).await;
        let fields = json!({"credential_type": "NONE", "credentials": "{}", "database": name, "name": unique("file")});
        let connection = self.company.connection("files", fields).await;
        self.product_on(&connection, json!({"sql_logic": bomb.sql()}))
            .await;
    }

    async fn work(&mut self, work: Work) {
        let sql = match work {
            Work::Joins | Work::Forecasts => SALES.to_owned(),
            Work::Catalogues => (0..2_000)
                .map(|table| {
                    format!("CREATE TABLE t{table} (a INTEGER PRIMARY KEY, b TEXT, c REAL);")
                })
                .collect(),
            Work::Uploads => {
                let base = components::with_functions(guests::HOSTILE_HTTP, 4_000);
                let marks = 0..UPLOADS;
                self.uploads = marks
                    .map(|mark| components::marked(&base, "well", mark))
                    .collect();
                return;
            }
            Work::Requests | Work::UnknownKeys | Work::LargeBodies => return,
        };
        let name = format!("{}.db", unique("work"));
        self.upload(&name, files::database(&sql)).await;
        let fields = json!({"credential_type": "NONE", "credentials": "{}", "database": name, "name": unique("work")});
        let connection = self.company.connection("sqlite", fields).await;
        let product = match work {
            Work::Forecasts => json!({"asset_type": "PREDICTION", "result_type": "prediction",
                "sql_logic": "SELECT day, amount FROM series ORDER BY day",
                "prediction": {"time_column": "day", "value_column": "amount", "frequency": "day", "horizon": 30, "level": 0.9}}),
            _ => json!({"sql_logic": JOIN}),
        };
        self.product_on(&connection, product).await;
    }

    fn serve(&mut self, lie: Lie) -> &Server {
        self._server.insert(Server::start(lie).expect("a server"))
    }

    async fn upload(&self, name: &str, bytes: Vec<u8>) {
        let path = self.company.path(&format!("/files/{name}"));
        self.company
            .client
            .put_bytes(&path, bytes)
            .await
            .expect(201);
    }

    async fn product_on(&mut self, connection: &str, mut fields: Value) {
        self.connection = Some(connection.to_owned());
        let timeout_ms = self.scenario.timeout_ms;
        extend(
            &mut fields,
            json!({"name": unique("product"), "slug": unique("product"), "timeout_ms": timeout_ms}),
        );
        self.product = match self.scenario.ask {
            Ask::Asset => Some(self.company.asset(connection, fields).await),
            Ask::Page => {
                extend(
                    &mut fields,
                    json!({"sql_logic": "SELECT id FROM t", "order_by": ["id"], "fields": [{"name": "id"}]}),
                );
                if let Some(fields) = fields.as_object_mut() {
                    fields.remove("parameters");
                }
                Some(self.company.endpoint(connection, fields).await)
            }
            Ask::Catalogue | Ask::Itself => None,
        };
    }

    /// The request that brings it about: method, path, body.
    pub fn request(&self) -> (&'static str, String, String) {
        let (product, connection) = (
            self.product.as_deref().unwrap_or_default(),
            self.connection.as_deref().unwrap_or_default(),
        );
        match (self.scenario.ask, self.scenario.source) {
            (Ask::Asset, Source::Guest(..)) => {
                let path = self.company.path(&format!("/assets/{product}/execute"));
                ("POST", path, json!({"params": {"deed": "go"}}).to_string())
            }
            (Ask::Asset, _) => (
                "POST",
                self.company.path(&format!("/assets/{product}/execute")),
                "{}".to_owned(),
            ),
            (Ask::Page, _) => (
                "GET",
                self.company
                    .path(&format!("/endpoints/{product}/execute?limit=3")),
                String::new(),
            ),
            (Ask::Catalogue, _) => {
                let path = self.company.path(&format!(
                    "/connections/{connection}/schema?include_fields=true"
                ));
                ("GET", path, String::new())
            }
            (Ask::Itself, Source::Work(Work::LargeBodies)) => (
                "POST",
                self.company.path("/assets"),
                format!("{{\"name\": \"{}\"}}", "n".repeat(900 << 10)),
            ),
            (Ask::Itself, _) => (
                "GET",
                self.company.path("/assets?per_page=20"),
                String::new(),
            ),
        }
    }

    fn key(&self) -> &str {
        match self.scenario.source {
            // Well formed: the checksum of no key, so that it is looked for and not found.
            Source::Work(Work::UnknownKeys) => {
                "sk_service_0000000000000000000000000000000000000000000000000"
            }
            _ => &self.company.key,
        }
    }

    /// The next request of a flood, as bytes, which are made once: what a generator writes and copies for each request takes from company A
    /// as much as the host would.
    pub fn bytes(&self) -> Bytes {
        let requests = self.requests.get_or_init(|| {
            if self.uploads.is_empty() {
                let (method, path, body) = self.request();
                let key = [("x-api-key", self.key())];
                return vec![generator::request(method, &path, &key, &body).into()];
            }
            let uploads = self.uploads.iter();
            uploads.map(|wasm| self.upload_request(wasm)).collect()
        });
        let number = self.asked.fetch_add(1, Ordering::Relaxed) as usize;
        requests[number % requests.len()].clone()
    }

    fn upload_request(&self, wasm: &[u8]) -> Bytes {
        let path = self.company.path("/connectors");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {}\r\ncontent-type: application/wasm\r\ncontent-length: {}\r\n\r\n",
            self.company.key,
            wasm.len()
        );
        [head.as_bytes(), wasm].concat().into()
    }

    /// Asks once, by the company's own hand.
    pub async fn ask(&self) -> Answer {
        self.ask_as(&self.company).await
    }

    pub async fn ask_as(&self, company: &Company) -> Answer {
        if let Some(wasm) = self.uploads.first() {
            return company
                .client
                .post_wasm(&self.company.path("/connectors"), wasm.clone())
                .await;
        }
        let (method, path, body) = self.request();
        let own = self.company.path("");
        let path = path.replacen(&own, &company.path(""), 1);
        let client = match self.scenario.source {
            Source::Work(Work::UnknownKeys) => company.client.with_key(self.key()),
            _ => company.client.clone(),
        };
        let request = match method {
            "GET" => client.request(reqwest_method(method), &path),
            _ => client
                .request(reqwest_method(method), &path)
                .header("content-type", "application/json")
                .body(body),
        };
        Answer::of(request).await
    }

    /// Puts the product on the market; false for what does not even open.
    pub async fn publish(&self, credits: u64) -> bool {
        let sells =
            matches!(self.scenario.source, Source::Guest(..)) && self.scenario.ask == Ask::Asset;
        let opens = !["open", "start", "ready", "floods_requests_in"]
            .iter()
            .any(|word| self.scenario.name.contains(word));
        if let (true, true, Some(product)) = (sells, opens, &self.product) {
            self.company.publish(product, credits).await;
            return true;
        }
        false
    }

    pub fn product(&self) -> Option<&str> {
        self.product.as_deref()
    }

    /// Closes what the host keeps open for this scenario: a changed connection has no sessions.
    pub async fn strike(&self) {
        if let Some(product) = &self.product {
            let kind = if self.scenario.ask == Ask::Page {
                "endpoints"
            } else {
                "assets"
            };
            let path = self.company.path(&format!("/{kind}/{product}"));
            let _ = self.company.client.delete(&path).await;
        }
        if let Some(connection) = &self.connection {
            let path = self.company.path(&format!("/connections/{connection}"));
            let _ = self.company.client.delete(&path).await;
        }
    }
}

/// Whether an answer is one of these.
pub fn is_right(answer: &Answer, right: &[Outcome]) -> bool {
    let word = |pointer: &str| answer.at(pointer).as_str().unwrap_or_default().to_owned();
    let (code, blame) = (word("/error/code"), word("/error/details/blame"));
    right.iter().any(|outcome| {
        answer.status.as_u16() == outcome.status
            && (outcome.code.is_empty() || outcome.code == code)
            && (outcome.blame.is_empty() || outcome.blame == blame)
    })
}

/// Refused for a while because of what went before: by a breaker, a pace or a budget. Says when to come back.
pub fn is_held_off(answer: &Answer) -> bool {
    matches!(answer.status.as_u16(), 429 | 502 | 503) && !answer.header("retry-after").is_empty()
}

fn reqwest_method(method: &str) -> souk_tests::client::Method {
    method.parse().expect("a method")
}

/// A file of this name anywhere below `directory`.
fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    for entry in std::fs::read_dir(directory).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = find(&path, name) {
                return Some(found);
            }
        } else if path.file_name().is_some_and(|found| found == name) {
            return Some(path);
        }
    }
    None
}

fn extend(body: &mut Value, fields: Value) {
    if let (Value::Object(body), Value::Object(fields)) = (body, fields) {
        body.extend(fields);
    }
}

const SALES: &str = "
    CREATE TABLE sales (id INTEGER PRIMARY KEY, shop INTEGER NOT NULL, amount REAL NOT NULL);
    CREATE TABLE series (day TEXT PRIMARY KEY, amount REAL NOT NULL);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
    INSERT INTO sales SELECT i, i % 7, i * 0.5 FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
    INSERT INTO series SELECT date('2016-01-01', '+' || i || ' days'), 100 + i % 7 * 3 + i * 0.01 FROM n;";
/// About 60 ms of a processor on the machines of today.
const JOIN: &str =
    "SELECT count(*) FROM sales a, sales b WHERE a.amount + b.amount > 300 AND a.shop <> b.shop";
