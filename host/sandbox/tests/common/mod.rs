//! What the sandbox's tests share: a sandbox in a temporary directory and sources for the guests.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod nobody;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use souk_outbound::EgressPolicy;
use souk_sandbox::{
    Compiler, Fault, Grant, Limits, Options, Output, PoolLimits, Query, Request, Sandbox, Scope,
    Source, Value,
};
use tempfile::TempDir;

pub struct TestSandbox {
    pub sandbox: Sandbox,
    pub directory: TempDir,
}

impl std::ops::Deref for TestSandbox {
    type Target = Sandbox;
    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

pub fn options(directory: &TempDir) -> Options {
    let egress = EgressPolicy::public_only().allow_network("127.0.0.0/8".parse().unwrap());
    let mut options = Options::new(directory.path().join("cache"), egress, Compiler::InProcess);
    // Tests run side by side in one address space.
    options.limits.sessions_total = 32;
    options
}

pub fn sandbox() -> TestSandbox {
    let directory = TempDir::new().unwrap();
    let sandbox = Sandbox::new(options(&directory)).unwrap();
    TestSandbox { sandbox, directory }
}

/// A sandbox in which this component is active.
pub async fn with_guest(wasm: &'static [u8]) -> TestSandbox {
    let sandbox = sandbox();
    activate(&sandbox, wasm).await;
    sandbox
}

/// A connector that hosts have.
pub fn bundled(name: &str) -> &'static [u8] {
    souk_plugins::bundle()
        .iter()
        .find(|(found, _)| *found == name)
        .unwrap_or_else(|| panic!("no connector {name}"))
        .1
}

pub async fn activate(sandbox: &Sandbox, wasm: impl Into<Bytes>) {
    let info = sandbox.load(wasm, Scope::Platform).await.unwrap();
    sandbox
        .activate(&Scope::Platform, &info.name, &info.version)
        .await
        .unwrap();
}

pub fn source(engine: &str) -> Arc<Source> {
    source_with(engine, "{}", PoolLimits::default())
}

pub fn source_with(engine: &str, settings_json: &str, limits: PoolLimits) -> Arc<Source> {
    Arc::new(Source {
        company: "com_1".into(),
        connection: "con_1".into(),
        revision: 1,
        engine: engine.into(),
        settings_json: settings_json.into(),
        grant: Grant::Http {
            base_url: "http://127.0.0.1:9".into(),
            attach: Vec::new(),
            ca_pem: None,
        },
        limits,
    })
}

pub fn query(text: &str) -> Request {
    query_with(text, Vec::new())
}

pub fn query_with(text: &str, parameters: Vec<Value>) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters,
        limits: Limits::new(10_000, 16 << 20),
    })
}

pub fn within(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

pub async fn wait_until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20), "waited too long");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub async fn run(sandbox: &Sandbox, source: &Arc<Source>, text: &str) -> Result<Output, Fault> {
    sandbox.run(source, query(text), within(20)).await
}

/// The rows as JSON text.
pub fn rows(output: &Output) -> String {
    let mut out = Vec::new();
    souk_sandbox::json::write_rows(
        &mut out,
        output,
        &souk_sandbox::json::Field::all(output),
        0..output.rows,
    );
    String::from_utf8(out).unwrap()
}
