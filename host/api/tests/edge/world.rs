//! A host without a listener: store, state and router; and clients that look at answers as clients do.

mod answer;
mod products;

pub use answer::Answer;
use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};

use souk_api::{ApiState, Router, Settings};
use souk_app::identity::IdentityProvider;
use souk_app::payments::Payments;
use souk_app::payments::manual::Manual;
use souk_app::{App, CompanyBounds, Parts};
use souk_domain::ids::{AssetId, CompanyId, ExecutionId, KeyId, RequestId};
use souk_domain::money::Credits;
use souk_domain::products::Product;
use souk_domain::time::{HOUR, Timestamp};
use souk_outbound::EgressPolicy;
use souk_sandbox::{Compiler, Sandbox};
use souk_store::executions::{Billing, Outcome, Run};
use souk_store::idempotency::{self, COMPANY_BYTES_MAX};
use souk_store::sealing::Sealer;
use souk_store::teller::{HoldRequest, Receipt, Teller};
use souk_store::{Db, OpenOptions, StoreError, companies, founding};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tower::ServiceExt;

pub struct World {
    pub router: Router,
    pub state: ApiState,
    pub db: Db,
    pub teller: Teller,
    /// A key of role 5.
    pub platform: String,
    _directory: TempDir,
}

pub struct Company {
    pub id: String,
    pub user_id: String,
    /// A key of role 4.
    pub key: String,
}

pub fn now() -> Timestamp {
    SystemTime::now().into()
}

impl World {
    pub async fn new() -> World {
        World::with_address_limit(6000).await
    }

    pub async fn with_address_limit(address_rate_limit: u32) -> World {
        let payments = Payments::new(Arc::new(Manual));
        World::build(address_rate_limit, COMPANY_BYTES_MAX, payments, None).await
    }

    pub async fn with_payments(payments: Payments) -> World {
        World::build(6000, COMPANY_BYTES_MAX, payments, None).await
    }

    /// Where people sign in by this provider.
    pub async fn with_identity(provider: IdentityProvider) -> World {
        let payments = Payments::new(Arc::new(Manual));
        World::build(6000, COMPANY_BYTES_MAX, payments, Some(provider)).await
    }

    /// Whose companies' kept answers may take this much.
    pub async fn with_kept_answers(bytes_max: i64) -> World {
        World::build(6000, bytes_max, Payments::new(Arc::new(Manual)), None).await
    }

    async fn build(
        address_rate_limit: u32,
        kept_answer_bytes_max: i64,
        payments: Payments,
        identity: Option<IdentityProvider>,
    ) -> World {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let url = match std::env::var("EDGE_POSTGRES_URL") {
            Ok(server) => database(&server).await,
            Err(_) => format!("sqlite:{}", path("souk.db").display()),
        };
        let options = OpenOptions {
            connections: 3,
            ..OpenOptions::new(url)
        };
        let db = Db::open(&options).await.unwrap();
        let platform = db
            .write(async |write| founding::found_platform(write, now()).await)
            .await
            .unwrap()
            .unwrap();
        let compiler = Compiler::Child {
            program: "/nonexistent".into(),
            args: Vec::new(),
        };
        let sandbox = Sandbox::new(souk_sandbox::Options::new(
            path("compiled"),
            EgressPolicy::public_only(),
            compiler,
        ))
        .unwrap();
        let teller = Teller::open(&db).await.unwrap();
        let sealer = Sealer::open(&path("master.key")).unwrap();
        let app = App::new(Parts {
            db: db.clone(),
            teller: teller.clone(),
            sandbox,
            egress: EgressPolicy::public_only(),
            sealer,
            shared_files: None,
            files_dir: path("files"),
            company_file_bytes_max: 4 << 20,
            payments,
            identity,
            mail: None,
            bounds: CompanyBounds::default(),
        });
        let settings = Settings {
            base_url: "http://souk.example".into(),
            endpoint_base_url: "http://souk.example".into(),
            address_rate_limit,
            shared_limits: None,
            kept_answer_bytes_max,
            trust_proxy: Vec::new(),
            company_reads_at_once: 2,
            unread_bytes_max: 1 << 20,
            company_calls_max: 512,
            company_upload_bytes_max: 4 << 20,
            upload_bytes_max: 8 << 20,
            recorder: None,
        };
        let state = souk_api::state(app, settings);
        World {
            router: souk_api::router(state.clone()),
            state,
            db,
            teller,
            platform: platform.secret.expose().to_owned(),
            _directory: directory,
        }
    }

    pub async fn company(&self, handle: &str) -> Company {
        let made = self
            .post(
                &self.platform,
                "/admin/companies",
                json!({"name": handle, "handle": handle}),
            )
            .await
            .expect(201);
        Company {
            id: made.text("/data/company/id"),
            user_id: made.text("/data/user/id"),
            key: made.text("/data/api_key/key"),
        }
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.unwrap();
        Answer::checked(&method, &path, response).await
    }

    pub async fn get(&self, key: &str, path: &str) -> Answer {
        self.send(request(Method::GET, key, path).body(Body::empty()).unwrap())
            .await
    }

    pub async fn delete(&self, key: &str, path: &str) -> Answer {
        self.send(
            request(Method::DELETE, key, path)
                .body(Body::empty())
                .unwrap(),
        )
        .await
    }

    pub async fn post(&self, key: &str, path: &str, body: Value) -> Answer {
        self.with_json(Method::POST, key, path, body).await
    }

    pub async fn patch(&self, key: &str, path: &str, body: Value) -> Answer {
        self.with_json(Method::PATCH, key, path, body).await
    }

    /// Asks for both changes at the same time: each is done.
    pub async fn patch_both(&self, key: &str, path: &str, [one, other]: [Value; 2]) {
        let (one, other) = tokio::join!(self.patch(key, path, one), self.patch(key, path, other));
        one.expect(200);
        other.expect(200);
    }

    pub async fn put(&self, key: &str, path: &str, body: Value) -> Answer {
        self.with_json(Method::PUT, key, path, body).await
    }

    /// With an `Idempotency-Key`.
    pub async fn post_keyed(
        &self,
        key: &str,
        path: &str,
        idempotency: &str,
        body: Value,
    ) -> Answer {
        let request = request(Method::POST, key, path)
            .header("content-type", "application/json")
            .header("idempotency-key", idempotency);
        self.send(request.body(Body::from(body.to_string())).unwrap())
            .await
    }

    /// The books balance, to the cent.
    pub async fn assert_books(&self) {
        let books = self
            .get(&self.platform, "/admin/ledger/reconciliation")
            .await
            .expect(200);
        assert_eq!(
            (
                books.at("/data/balanced"),
                books.at("/data/sum_all_accounts")
            ),
            (&json!(true), &json!(0)),
            "{}",
            books.body
        );
    }

    pub async fn balance(&self, company: &Company) -> i64 {
        let credits = self.get(&company.key, &company.path("/credits")).await;
        credits
            .expect(200)
            .at("/data/balance_credits")
            .as_i64()
            .unwrap()
    }

    async fn with_json(&self, method: Method, key: &str, path: &str, body: Value) -> Answer {
        let request = request(method, key, path).header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap())
            .await
    }

    /// Credits out of the platform's pocket.
    pub async fn grant(&self, company: &Company, credits: i64) {
        let path = format!("/admin/companies/{}/credits/grants", company.id);
        let body = json!({"credits": credits, "reason": "test"});
        self.post(&self.platform, &path, body).await.expect(201);
    }

    /// A charged run that succeeded, without running anything: the transaction's id.
    pub async fn charge(
        &self,
        buyer: &Company,
        seller: &Company,
        asset: &str,
        credits: i64,
    ) -> String {
        self.charge_at(buyer, seller, asset, credits, now()).await
    }

    /// The same for a run that began at an instant.
    pub async fn charge_at(
        &self,
        buyer: &Company,
        seller: &Company,
        asset: &str,
        credits: i64,
        at: Timestamp,
    ) -> String {
        let buyer = CompanyId::parse(&buyer.id).unwrap();
        let run = Run {
            id: ExecutionId::generate_at(at),
            company: buyer.clone(),
            seller: CompanyId::parse(&seller.id).unwrap(),
            product: Product::Asset(AssetId::parse(asset).unwrap()),
            purchase: None,
            price: None,
            actor: KeyId::generate().into(),
            request: RequestId::generate_at(at),
            outcome: Outcome::Succeeded,
            billing: Billing::Charged,
            rows: 1,
            bytes: 10,
            started_at: at,
            duration_us: 2_000,
        };
        let request = HoldRequest {
            execution: run.id.clone(),
            buyer,
            amount: Credits::new(credits).unwrap(),
            expires_at: now().after(HOUR),
        };
        let hold = self.teller.hold(request).await.unwrap();
        let receipt = Receipt {
            run,
            idempotency: None,
        };
        let posted = self.teller.post(hold, receipt).await.unwrap();
        posted.transaction.unwrap().to_string()
    }

    /// From here on the store takes claims, but cannot keep an answer: what is done and not answered is as after a crash.
    pub async fn break_answers(&self) {
        self.rename_body("body", "gone").await;
    }

    /// The store is well again, and claims in flight are given up, as by a start.
    pub async fn mend_answers(&self) {
        self.rename_body("gone", "body").await;
        self.db
            .write(async |write| idempotency::release_all(write).await)
            .await
            .unwrap();
    }

    async fn rename_body(&self, from: &str, to: &str) {
        self.db
            .write(async |write| -> Result<_, StoreError> {
                let sql = format!("ALTER TABLE idempotency RENAME COLUMN {from} TO {to}");
                sqlx::query(sqlx::AssertSqlSafe(sql))
                    .execute(&mut **write)
                    .await
                    .unwrap();
                Ok(())
            })
            .await
            .unwrap();
    }

    /// Sends requests whose clients leave while they wait for whoever writes. Of PostgreSQL several may write: there they are done by then.
    pub async fn hang_up(&self, requests: Vec<Request<Body>>) {
        let (begin, begun) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let writing = self.db.write(async |_| -> Result<(), StoreError> {
            begin.send(()).unwrap();
            ended.await.unwrap();
            Ok(())
        });
        let leaving = async {
            begun.await.unwrap();
            let requests = requests
                .into_iter()
                .map(|request| self.router.clone().oneshot(request));
            let all = futures_util::future::join_all(requests);
            // Long enough for a loaded machine to come to where it is waited.
            let _ = tokio::time::timeout(Duration::from_secs(3), all).await;
            end.send(()).unwrap();
        };
        let (written, ()) = tokio::join!(writing, leaving);
        written.unwrap();
    }

    pub async fn suspend(&self, company: &Company) {
        self.db
            .write(async |write| -> Result<_, StoreError> {
                let id = CompanyId::parse(&company.id).unwrap();
                let company = companies::get(write, &id).await.unwrap();
                let mut company = company.unwrap();
                company.status = companies::CompanyStatus::Suspended;
                companies::update(write, &company, now()).await.unwrap();
                Ok(())
            })
            .await
            .unwrap();
    }
}

/// A new database on a PostgreSQL server, for `EDGE_POSTGRES_URL=postgres://user:password@host:port cargo test -p souk-api`.
async fn database(server: &str) -> String {
    sqlx::any::install_default_drivers();
    let name = CompanyId::generate().as_str().to_lowercase();
    let mut connection =
        <sqlx::AnyConnection as sqlx::Connection>::connect(&format!("{server}/postgres"))
            .await
            .unwrap();
    sqlx::query(sqlx::AssertSqlSafe(format!(
        "CREATE DATABASE {name}_{}",
        std::process::id()
    )))
    .execute(&mut connection)
    .await
    .unwrap();
    format!("{server}/{name}_{}", std::process::id())
}

impl Company {
    pub fn path(&self, rest: &str) -> String {
        format!("/companies/{}{rest}", self.id)
    }
}

pub fn request(method: Method, key: &str, path: &str) -> http::request::Builder {
    let request = Request::builder().method(method).uri(path);
    if key.is_empty() {
        request
    } else {
        request.header("x-api-key", key)
    }
}
