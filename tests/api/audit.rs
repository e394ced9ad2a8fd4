//! The audit log of what needs connectors and sources. The rest, and what a line tells: `host/api/tests/edge/audit.rs`.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use souk_tests::audited::BY_HOSTS;
use souk_tests::platforms::WEBHOOK_SECRET;
use souk_tests::{Answer, Client, Company, PgCluster, Platform, TestHost, guests};

use crate::LEAGUE;

/// Demands a line of every change, as a role 4 of the company reads it.
struct Auditor {
    platform: Client,
    company: Company,
    seen: RefCell<BTreeSet<String>>,
}

impl Auditor {
    async fn see(&self, answer: Answer) -> Answer {
        assert!(answer.status.is_success(), "{}", answer.body);
        let request = answer.header("x-request-id").to_owned();
        let path = self
            .company
            .path(&format!("/audit-log?request_id={request}"));
        let mut lines = self.company.client.get(&path).await.expect(200);
        if lines.at("/meta/total") == 0 {
            // The platform's own.
            let own = self.platform.get("/companies/me").await.expect(200);
            let path = format!(
                "/companies/{}/audit-log?request_id={request}",
                own.text("/data/id")
            );
            lines = self.platform.get(&path).await.expect(200);
        }
        let lines = lines.at("/data").as_array().expect("lines");
        assert!(!lines.is_empty(), "no line of {}", answer.body);
        let text = Value::from(lines.clone()).to_string();
        assert!(!text.contains("hunter2"), "{text}");
        let operations = lines.iter().map(|line| line["operation"].as_str());
        let operations = operations.map(|operation| operation.expect("an id").to_owned());
        self.seen.borrow_mut().extend(operations);
        answer
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        let path = self.company.path(path);
        self.see(self.company.client.post(&path, body).await).await
    }

    async fn patch(&self, path: &str, body: Value) {
        let path = self.company.path(path);
        self.see(self.company.client.patch(&path, body).await).await;
    }

    async fn delete(&self, path: &str) {
        let path = self.company.path(path);
        self.see(self.company.client.delete(&path).await).await;
    }

    /// From creation to deletion.
    async fn product(&self, kind: &str, new: Value) {
        let made = self.post(&format!("/{kind}"), new).await;
        let one = format!("/{kind}/{}", made.text("/data/id"));
        self.patch(&one, json!({"description": "all of them"}))
            .await;
        self.post(&format!("{one}/prices"), json!({"price_credits": 2}))
            .await;
        self.post(&format!("{one}/publish"), json!({})).await;
        self.post(&format!("{one}/unpublish"), json!({})).await;
        self.delete(&one).await;
    }

    /// Two versions, there and back. `path` of the connector's versions.
    async fn connector(&self, client: &Client, path: &str) {
        let upload = async |wasm: &[u8]| client.post_wasm(path, wasm.to_vec()).await;
        for wasm in [guests::FIXED_ROWS, guests::FIXED_ROWS_NEXT] {
            self.see(upload(wasm).await).await;
        }
        let one = format!("{path}/fixed-rows");
        for version in ["1.0.0", "2.0.0"] {
            let body = json!({"version": version});
            let activated = client.post(&format!("{one}/activate"), body).await;
            self.see(activated).await;
        }
        self.see(client.post(&format!("{one}/rollback"), json!({})).await)
            .await;
        let off = client.post(&format!("{one}/deactivate"), json!({})).await;
        self.see(off).await;
        self.see(client.delete(&format!("{one}/versions/2.0.0")).await)
            .await;
    }
}

/// Connections, products and connectors: every change of them leaves a line, and none a password.
#[tokio::test]
async fn every_change_leaves_a_line() {
    let host = TestHost::builder().start().await;
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let auditor = Auditor {
        platform: host.platform(),
        company: host.company("audited").await,
        seen: RefCell::default(),
    };
    let connection = auditor.company.postgres(cluster, &database).await;
    let path = format!("/connections/{connection}");
    auditor.post(&format!("{path}/test"), json!({})).await;
    auditor.patch(&path, json!({"name": "renamed"})).await;
    let asset = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "goals", "result_type": "number",
                       "sql_logic": "SELECT sum(goals) FROM matches"});
    auditor.product("assets", asset).await;
    let endpoint = json!({"connection_id": connection, "name": "matches", "source": {"schema": "public", "table": "matches"},
                          "fields": [{"name": "id"}, {"name": "team"}]});
    auditor.product("endpoints", endpoint).await;
    let engine = souk_tests::world::engine_id(&auditor.company.client, "postgres").await;
    let credentials = json!({"username": "nobody", "password": "hunter2"}).to_string();
    let second = json!({"engine_id": engine, "name": "second", "credential_type": "PASSWORD", "credentials": credentials,
                        "host": "127.0.0.1", "port": 1, "database": "d", "ssl_mode": "disable"});
    let second = auditor.post("/connections", second).await;
    let second = format!("/connections/{}", second.text("/data/connection_id"));
    auditor.delete(&second).await;
    auditor.connector(&auditor.platform, "/connectors").await;
    host_alone(&auditor).await;
    integrations(&auditor).await;

    let mut seen = auditor.seen.into_inner();
    // Of the edge's test.
    seen.remove("create_price");
    let expected: BTreeSet<String> = BY_HOSTS.iter().map(|id| id.to_string()).collect();
    assert_eq!(seen, expected);
}

/// From creation to deletion, with what is published there.
async fn integrations(auditor: &Auditor) {
    let platform = Platform::webhook().await;
    let new = json!({"platform": "webhook", "name": "hook", "config": {"base_url": platform.base_url()},
                     "credentials": {"secret": WEBHOOK_SECRET}});
    let made = auditor.post("/postgen_integrations", new).await;
    let id = made.text("/data/id");
    let one = format!("/postgen_integrations/{id}");
    auditor.patch(&one, json!({"name": "renamed"})).await;
    let tested = json!({"integration_id": id});
    auditor
        .post("/postgen_integrations/test", tested.clone())
        .await;
    let company = &auditor.company;
    let body = json!({"title": "Goals", "body_markdown": "Many."});
    let post = company.client.post(&company.path("/posts"), body).await;
    let post = format!("/posts/{}", post.expect(201).text("/data/id"));
    auditor.post(&format!("{post}/publications"), tested).await;
    auditor
        .post(&format!("{post}/publish/{id}"), json!({}))
        .await;
    auditor.delete(&one).await;
}

/// A company's own connector must not have an engine that the platform has: a host of its own would do as well.
async fn host_alone(auditor: &Auditor) {
    let host = TestHost::builder().start().await;
    let own = Auditor {
        platform: host.platform(),
        company: host.company("private").await,
        seen: RefCell::default(),
    };
    let path = own.company.path("/connectors");
    own.connector(&own.company.client, &path).await;
    auditor.seen.borrow_mut().extend(own.seen.into_inner());
}
