//! What the sandbox promises about wires, with the bundled connectors and real servers.

mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use common::*;
use souk_outbound::TlsMode;
use souk_sandbox::{
    Blame, Call, Fault, FaultKind, Grant, Limits, PoolLimits, Request, Route, Sandbox,
    SchemaFilter, Scope, Source, Value,
};
use souk_tests::{PgCluster, seller_api::SellerApi};

fn postgres(cluster: &PgCluster, host: &str, mode: TlsMode, ca_pem: Option<&str>) -> Source {
    let name = match mode {
        TlsMode::Disable => "disable",
        TlsMode::Require => "require",
        TlsMode::VerifyCa => "verify-ca",
        TlsMode::VerifyFull => "verify-full",
    };
    Source {
        company: "com_1".into(),
        connection: format!(
            "con_{host}_{}_{name}_{}",
            cluster.port,
            ca_pem.map_or(0, str::len)
        ),
        revision: 1,
        engine: "postgres".into(),
        settings_json: format!(
            r#"{{"database":"postgres","username":"{}","password":"{}","ssl_mode":"{name}"}}"#,
            cluster.user, cluster.password
        ),
        grant: Grant::Tcp {
            host: host.into(),
            port: cluster.port,
            tls: mode,
            ca_pem: ca_pem.map(String::from),
        },
        limits: PoolLimits::default(),
    }
}

async fn ask(sandbox: &Sandbox, source: Source) -> Result<String, Fault> {
    run(sandbox, &Arc::new(source), "SELECT 1 AS one")
        .await
        .map(|output| rows(&output))
}

/// The certificate is checked as `ssl_mode` says, against the authority that was given.
#[tokio::test]
async fn tls_is_what_ssl_mode_says() {
    let cluster = PgCluster::start(&[]).await;
    let sandbox = with_guest(bundled("postgres")).await;
    let ca = Some(cluster.ca_pem.as_str());
    let one = r#"[{"one":1}]"#;
    for (host, mode, ca_pem) in [
        ("127.0.0.1", TlsMode::Disable, None),
        ("127.0.0.1", TlsMode::Require, None),
        ("127.0.0.1", TlsMode::VerifyCa, ca),
        ("127.0.0.1", TlsMode::VerifyFull, ca),
        ("localhost", TlsMode::VerifyFull, ca),
    ] {
        assert_eq!(
            ask(&sandbox, postgres(&cluster, host, mode, ca_pem))
                .await
                .unwrap(),
            one,
            "{host} {mode:?}"
        );
    }
    for mode in [TlsMode::VerifyCa, TlsMode::VerifyFull] {
        let fault = ask(&sandbox, postgres(&cluster, "127.0.0.1", mode, None))
            .await
            .unwrap_err();
        assert_eq!(
            (fault.blame, fault.kind),
            (Blame::Source, FaultKind::Tls),
            "{mode:?}: {fault:?}"
        );
    }
    let broken = ask(
        &sandbox,
        postgres(&cluster, "127.0.0.1", TlsMode::VerifyFull, Some("no PEM")),
    )
    .await
    .unwrap_err();
    assert_eq!(broken.kind, FaultKind::Configuration, "{broken:?}");
    let plain = PgCluster::start(&["ssl=off"]).await;
    let fault = ask(
        &sandbox,
        postgres(&plain, "127.0.0.1", TlsMode::Require, None),
    )
    .await
    .unwrap_err();
    assert_eq!(fault.blame, Blame::Source, "{fault:?}");
}

/// Every way of not reaching a source has its own kind.
#[tokio::test]
async fn unreachable_sources_are_told_apart() {
    let cluster = PgCluster::start(&[]).await;
    let sandbox = with_guest(bundled("postgres")).await;
    let with = |change: fn(&mut Source)| {
        let mut source = postgres(&cluster, "127.0.0.1", TlsMode::Disable, None);
        source.connection = format!("con_{change:p}");
        change(&mut source);
        source
    };
    let kind = async |source: Source| ask(&sandbox, source).await.unwrap_err().kind;
    fn to(source: &mut Source, to_host: &str, to_port: Option<u16>) {
        let Grant::Tcp { host, port, .. } = &mut source.grant else {
            unreachable!()
        };
        *host = to_host.into();
        *port = to_port.unwrap_or(*port);
    }
    assert_eq!(
        kind(with(|source| to(source, "127.0.0.1", Some(1)))).await,
        FaultKind::Refused
    );
    assert_eq!(
        kind(with(|source| to(source, "10.0.0.1", None))).await,
        FaultKind::EgressRefused
    );
    assert_eq!(
        kind(with(|source| to(source, "::ffff:169.254.169.254", None))).await,
        FaultKind::EgressRefused
    );
    assert_eq!(
        kind(with(|source| to(source, "no-such-host.invalid", None))).await,
        FaultKind::Unreachable
    );
    let wrong = with(|source| {
        source.settings_json = source.settings_json.replace("correct horse", "wrong")
    });
    assert_eq!(kind(wrong).await, FaultKind::Authentication);
    // Nothing of that is left behind.
    assert!(ask(&sandbox, with(|_| {})).await.is_ok());
}

/// Statements that fail, time out or are abandoned leave the session in order for the next one, and a
/// timeout is told at the deadline.
#[tokio::test]
async fn a_session_outlives_what_goes_wrong_on_it() {
    let cluster = PgCluster::start(&[]).await;
    let sandbox = with_guest(bundled("postgres")).await;
    let mut source = postgres(&cluster, "127.0.0.1", TlsMode::Disable, None);
    source.limits.sessions_max = 1;
    let source = Arc::new(source);
    let one = async || rows(&run(&sandbox, &source, "SELECT 1 AS one").await.unwrap());
    one().await;
    let fault = run(&sandbox, &source, "SELECT nothing FROM nowhere")
        .await
        .unwrap_err();
    assert_eq!(
        (fault.blame, fault.source_code.as_deref()),
        (Blame::Source, Some("42P01")),
        "{fault:?}"
    );
    one().await;
    let begun = Instant::now();
    let fault = sandbox
        .run(
            &source,
            query("SELECT pg_sleep(20)"),
            begun + Duration::from_millis(300),
        )
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    one().await;
    let abandoned = sandbox.run(&source, query("SELECT pg_sleep(20)"), within(60));
    assert!(
        tokio::time::timeout(Duration::from_millis(200), abandoned)
            .await
            .is_err()
    );
    let begun = Instant::now();
    one().await;
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    let wide = Request::Query(souk_sandbox::Query {
        text: "SELECT * FROM generate_series(1, 100000)".into(),
        parameters: Vec::new(),
        limits: Limits::new(100, 1 << 20),
    });
    assert_eq!(
        sandbox
            .run(&source, wide, within(10))
            .await
            .unwrap_err()
            .kind,
        FaultKind::LimitExceeded
    );
    one().await;
    assert_eq!(sandbox.connectors()[0].traps_total, 0);
}

/// A server that restarts under open sessions costs nobody an answer.
#[tokio::test]
async fn a_closed_session_is_replaced_without_a_word() {
    let cluster = PgCluster::start(&[]).await;
    let sandbox = with_guest(bundled("postgres")).await;
    let source = Arc::new(postgres(&cluster, "127.0.0.1", TlsMode::Disable, None));
    let admin = cluster.client("postgres").await;
    for _ in 0..5 {
        assert!(run(&sandbox, &source, "SELECT 1 AS one").await.is_ok());
        admin
            .execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'", &[])
            .await
            .unwrap();
    }
    assert!(run(&sandbox, &source, "SELECT 1 AS one").await.is_ok());
}

/// Many requests share few sessions, and each gets its own answer.
#[tokio::test]
async fn answers_are_not_mixed_up() {
    let cluster = PgCluster::start(&[]).await;
    let sandbox = with_guest(bundled("postgres")).await;
    let source = Arc::new(postgres(&cluster, "127.0.0.1", TlsMode::Disable, None));
    let tasks: Vec<_> = (0..64i64)
        .map(|client| {
            let (sandbox, source) = (sandbox.sandbox.clone(), source.clone());
            tokio::spawn(async move {
                for round in 0..20 {
                    let number = client * 1000 + round;
                    let request = query_with("SELECT $1::bigint AS n", vec![Value::Int64(number)]);
                    let output = sandbox.run(&source, request, within(20)).await.unwrap();
                    assert_eq!(rows(&output), format!(r#"[{{"n":{number}}}]"#));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(sandbox.connectors()[0].sessions.open <= 8);
}

/// A session is not replaced for the statements of a wide endpoint's pages, however many there are: their columns are equal. Those that are altered at
/// the source are told, of each statement.
#[tokio::test]
async fn many_wide_statements_share_a_session() {
    let cluster = PgCluster::start(&[]).await;
    let sandbox = with_guest(bundled("postgres")).await;
    let mut source = postgres(&cluster, "127.0.0.1", TlsMode::Disable, None);
    source.limits.sessions_max = 1;
    let source = Arc::new(source);
    let fields: Vec<String> = (0..150)
        .map(|n| format!("{n} AS field_of_the_endpoint_{n}"))
        .collect();
    let mut first = None;
    for page in 0..100 {
        let text = format!(
            "SELECT pg_backend_pid() AS backend, {} WHERE {page} = {page}",
            fields.join(", ")
        );
        let output = run(&sandbox, &source, &text).await.unwrap();
        assert_eq!(output.columns.len(), 151);
        let backend = output.cell(0, 0).as_i64().unwrap();
        assert_eq!(*first.get_or_insert(backend), backend, "page {page}");
    }
    let admin = cluster.client("postgres").await;
    let change = async |sql: &str| admin.batch_execute(sql).await.unwrap();
    change("CREATE TABLE altered AS SELECT 1 AS n").await;
    for wanted in [r#"[{"n":1}]"#, r#"[{"n":"1"}]"#] {
        for page in 0..3 {
            let text = format!("SELECT * FROM altered WHERE {page} = {page}");
            let output = run(&sandbox, &source, &text).await.unwrap();
            assert_eq!(rows(&output), wanted, "page {page}");
        }
        change("ALTER TABLE altered ALTER n TYPE text").await;
    }
}

/// A computation without end, in SQLite's words.
const ENDLESS: &str =
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";

/// A SQLite file without tables.
fn empty_file(directory: &std::path::Path, limits: PoolLimits) -> Arc<Source> {
    std::fs::write(directory.join("empty.db"), b"").unwrap();
    Arc::new(Source {
        company: "com_1".into(),
        connection: "con_files".into(),
        revision: 1,
        engine: "sqlite".into(),
        settings_json: r#"{"database":"empty.db"}"#.into(),
        grant: Grant::Directory(directory.to_owned()),
        limits,
    })
}

/// A statement on a file whose caller has gone ends soon, and not with the time that it had: the one session that there is answers who comes next.
#[tokio::test]
async fn a_file_is_not_read_for_who_has_gone() {
    let sandbox = with_guest(bundled("sqlite")).await;
    let directory = tempfile::TempDir::new().unwrap();
    let limits = PoolLimits {
        sessions_max: 1,
        queue_max: 8,
    };
    let source = empty_file(directory.path(), limits);
    run(&sandbox, &source, "SELECT 1 AS one").await.unwrap();
    for _ in 0..3 {
        let asked = sandbox.run(&source, query(ENDLESS), within(600));
        let gone = tokio::time::timeout(Duration::from_millis(300), asked).await;
        assert!(gone.is_err(), "{gone:?}");
        let next = sandbox.run(&source, query("SELECT 1 AS one"), within(20));
        assert_eq!(rows(&next.await.unwrap()), r#"[{"one":1}]"#);
    }
    let traps = sandbox.connectors()[0].traps_total;
    assert_eq!(traps, 0, "what is stopped is no trap");
}

/// A file engine sees its directory and nothing else, and reads only.
#[tokio::test]
async fn a_directory_is_read_only_and_all_there_is() {
    let sandbox = with_guest(bundled("sqlite")).await;
    let directory = tempfile::TempDir::new().unwrap();
    let source = empty_file(directory.path(), PoolLimits::default());
    let output = run(&sandbox, &source, "SELECT 6 * 7 AS answer")
        .await
        .unwrap();
    assert_eq!(rows(&output), r#"[{"answer":42}]"#);
    assert!(run(&sandbox, &source, "CREATE TABLE t (a)").await.is_err());
    // A computation without end yields to others and stops at its deadline.
    let begun = Instant::now();
    let ticks = async {
        let mut ticks = 0;
        while begun.elapsed() < Duration::from_secs(1) {
            tokio::time::sleep(Duration::from_millis(5)).await;
            ticks += 1;
        }
        ticks
    };
    let (fault, ticks) = tokio::join!(
        sandbox.run(&source, query(ENDLESS), begun + Duration::from_secs(1)),
        ticks
    );
    assert_eq!(fault.unwrap_err().kind, FaultKind::Timeout);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert!(ticks > 5, "others ran {ticks} times");
    assert!(run(&sandbox, &source, "SELECT 1 AS one").await.is_ok());
}

/// A seller's API is called below its base URL, and only there.
#[tokio::test]
async fn a_seller_api_is_called() {
    let api = SellerApi::start().await;
    let sandbox = with_guest(bundled("seller-api")).await;
    let mut source = Source {
        company: "com_1".into(),
        connection: "con_api".into(),
        revision: 1,
        engine: "seller-api".into(),
        settings_json: format!(r#"{{"api_key":"{}"}}"#, souk_tests::seller_api::API_KEY),
        grant: Grant::Http {
            base_url: api.base_url(),
            attach: Vec::new(),
            ca_pem: None,
        },
        limits: PoolLimits::default(),
    };
    let call = |path: &str| {
        Request::Call(Call {
            route: Route::Path(path.into()),
            parameters: "{}".into(),
            asset_id: "ast_1".into(),
            request_id: "req_1".into(),
            execution_id: "exe_1".into(),
            limits: Limits::new(10, 1 << 20),
        })
    };
    let shared = Arc::new(source.clone());
    let before = api.calls();
    let answer = sandbox
        .run(&shared, call("/no-such-function"), within(10))
        .await;
    assert!(answer.is_err());
    assert!(api.calls() > before || answer.is_err_and(|fault| fault.blame == Blame::Source));
    let outside = sandbox
        .run(&shared, call("/../outside"), within(10))
        .await
        .unwrap_err();
    assert_ne!(outside.blame, Blame::Host, "{outside:?}");
    source.revision = 2;
    source.grant = Grant::Http {
        base_url: "http://10.1.2.3".into(),
        attach: Vec::new(),
        ca_pem: None,
    };
    let fault = sandbox
        .run(&Arc::new(source), call("/x"), within(10))
        .await
        .unwrap_err();
    assert_eq!(
        (fault.blame, fault.kind),
        (Blame::Source, FaultKind::EgressRefused),
        "{fault:?}"
    );
}

/// From a warm cache all bundled connectors are there in well under half a second.
#[tokio::test]
async fn a_warm_start_is_fast() {
    let directory = tempfile::TempDir::new().unwrap();
    drop({
        let cold = Sandbox::new(options(&directory)).unwrap();
        cold.load_all(souk_plugins::bundle()).await
    });
    let begun = Instant::now();
    let sandbox = Sandbox::new(options(&directory)).unwrap();
    for loaded in sandbox.load_all(souk_plugins::bundle()).await {
        assert_eq!(loaded.unwrap().compile_ms, 0);
    }
    println!("warm start: {:?}", begun.elapsed());
    // Debug builds on a busy machine have more; `tests/load/figures starts` holds an optimised one to what is wanted.
    let longest = match cfg!(debug_assertions) {
        true => Duration::from_secs(10),
        false => Duration::from_millis(100),
    };
    assert!(begun.elapsed() < longest, "{:?}", begun.elapsed());
    let schema = SchemaFilter {
        schemas: Vec::new(),
        tables: Vec::new(),
        include_fields: true,
        limits: Limits::new(10, 1000),
    };
    let source = source("fixed");
    assert!(
        sandbox
            .run(&source, Request::Schema(schema), within(1))
            .await
            .is_err()
    );
    assert_eq!(
        sandbox
            .connectors()
            .iter()
            .filter(|info| info.scope == "platform")
            .count(),
        souk_plugins::bundle().len()
    );
    assert!(
        sandbox
            .remove(&Scope::Platform, "postgres", "0.0.0")
            .is_err()
    );
}

/// A statement that was slow once gets a session to itself: fast ones do not wait behind it.
#[tokio::test]
async fn fast_statements_do_not_wait_behind_slow_ones() {
    let cluster = PgCluster::start(&[]).await;
    let sandbox = with_guest(bundled("postgres")).await;
    let source = Arc::new(postgres(&cluster, "127.0.0.1", TlsMode::Disable, None));
    let slow = |seconds| {
        let slow = query_with("SELECT pg_sleep($1)", vec![Value::Float64(seconds)]);
        sandbox.run(&source, slow, within(60))
    };
    slow(0.5).await.unwrap();
    run(&sandbox, &source, "SELECT 1 AS one").await.unwrap();
    // It may need a session of its own, which takes a busy machine its time.
    tokio::select! {
        biased;
        slow = slow(25.0) => panic!("it was waited for: {slow:?}"),
        fast = run(&sandbox, &source, "SELECT 1 AS one") => {
            fast.unwrap();
        }
    }
}
