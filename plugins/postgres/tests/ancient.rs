//! A server of version 8.0.2, as Redshift gives itself out for one: md5, few settings, an old catalog.

mod common;

use common::{Cluster, Wire};
use souk_sdk::{ErrorClass, Request, SchemaFilter, Settings, Value};
use souk_tests::ancient_postgres::ancient_postgres;
use souk_tests::wire::LIMITS;

fn settings(cluster: &Cluster, pooler: bool) -> Settings {
    let mut settings = cluster.settings("reader", "readerpw");
    let told = format!(r#""pooler":{pooler}"#);
    settings.json = settings.json.replace(r#""pooler":false"#, &told);
    settings
}

fn wire(cluster: &Cluster) -> Wire {
    let port = ancient_postgres(cluster.port);
    Wire::open(port, settings(cluster, true)).unwrap()
}

/// All passwords are kept as md5, as on a cluster of Redshift's of some age.
fn cluster() -> &'static Cluster {
    static CLUSTER: std::sync::OnceLock<Cluster> = std::sync::OnceLock::new();
    CLUSTER.get_or_init(Cluster::start_md5)
}

/// A login with the settings of a newer server is refused there, and the seller is told what to write.
#[test]
fn settings_at_login_are_refused() {
    let cluster = cluster();
    assert!(
        cluster
            .admin("SELECT rolpassword FROM pg_authid WHERE rolname = 'reader'")
            .starts_with("md5")
    );
    let port = ancient_postgres(cluster.port);
    let error = Wire::open(port, settings(cluster, false)).err().unwrap();
    assert_eq!(
        (
            error.class,
            error.code.as_str(),
            error.source_code.as_deref()
        ),
        (ErrorClass::Configuration, "login_settings", Some("42704")),
    );
    let mut wrong = settings(cluster, true);
    wrong.json = wrong.json.replace("readerpw", "wrong");
    let error = Wire::open(port, wrong).err().unwrap();
    assert_eq!(error.class, ErrorClass::Authentication);
}

/// Values are exact, parameters bound, types named; writes are refused, and slow statements ended, by the server.
#[test]
fn statements_run_on_an_old_server() {
    let mut wire = wire(cluster());
    let ping = wire.submit(Request::Ping(LIMITS));
    let answer = wire.wait(ping).unwrap().ok();
    assert_eq!(
        (answer.cell(0, 0), answer.cell(1, 0)),
        ("8.0.2".into(), "true".into())
    );
    let sql = "SELECT 9007199254740993::int8, 12345678901234567890.1234567890::numeric, 0.1::float4, DATE '2026-02-28', \
        TIMESTAMP '2026-01-01 00:00:00.000001', 'ä'::varchar, true, NULL::int4, $1::int8 + 1, 'sad'::shop.mood";
    for _ in 0..2 {
        let answer = wire.query(sql, vec![Value::Int64(41)]).ok();
        let cells: Vec<String> = (0..10).map(|column| answer.cell(column, 0)).collect();
        assert_eq!(
            cells,
            [
                "9007199254740993",
                "12345678901234567890.1234567890",
                "0.1",
                "20512",
                "1767225600000001",
                "ä",
                "true",
                "NULL",
                "42",
                "sad"
            ]
        );
        assert_eq!(answer.columns[9].native, "shop.mood");
    }
    for write in [
        "SELECT shop.write()",
        "WITH w AS (INSERT INTO shop.victims VALUES (1) RETURNING n) SELECT n FROM w",
    ] {
        assert_eq!(
            wire.query(write, vec![]).error().source_code.as_deref(),
            Some("25006")
        );
    }
    assert_eq!(
        wire.query("SELECT pg_sleep(60)", vec![]).error().code,
        "statement_timeout"
    );
    assert_eq!(wire.scalar("SELECT current_setting('TimeZone')"), "UTC");
}

/// The schema, without what such a server does not tell.
#[test]
fn the_schema_comes_from_an_old_catalog() {
    let mut wire = wire(cluster());
    let mut ask = |schemas: &[&str], tables: &[&str], include_fields| {
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let id = wire.submit(Request::Schema(SchemaFilter {
            schemas: owned(schemas),
            tables: owned(tables),
            include_fields,
            limits: LIMITS,
        }));
        let answer = wire.wait(id).unwrap().ok();
        let row = |row| {
            (0..8)
                .map(|column| answer.cell(column, row))
                .collect::<Vec<_>>()
                .join(" ")
        };
        (0..answer.rows as usize).map(row).collect::<Vec<String>>()
    };
    assert_eq!(
        ask(&["shop"], &["items", "dear"], true),
        [
            "shop dear view NULL id integer true false",
            "shop dear view NULL price numeric(10,2) true false",
            "shop items table NULL id integer false false",
            "shop items table NULL name character varying(20) false false",
            "shop items table NULL price numeric(10,2) true false",
            "shop items table NULL moods shop.mood[] true false",
        ]
    );
    assert_eq!(
        ask(&[], &["items"], false),
        ["shop items table NULL NULL NULL NULL NULL"]
    );
    assert_eq!(ask(&["no'where"], &[], true), [""; 0]);
    assert!(ask(&[], &[], true).len() >= 6);
}
