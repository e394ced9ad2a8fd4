//! Through PgBouncer in transaction mode: what holds with a backend of one's own holds with anybody's, and what a pooler is told apart by.

mod common;
#[allow(clippy::duplicate_mod)] // Each is a test of its own, too, with a server of its own.
#[path = "server.rs"]
mod server;
#[allow(clippy::duplicate_mod)]
#[path = "values.rs"]
mod values;

use common::{Cluster, Wire};
use souk_sdk::{ErrorClass, Machine, Request, Settings, Value};
use souk_tests::wire::LIMITS;
use std::time::{Duration, Instant};

/// What souk sets at login, which no pooler keeps for its clients.
const IGNORED: &str = "ignore_startup_parameters = default_transaction_read_only, statement_timeout, IntervalStyle, bytea_output, client_min_messages";

/// Settings that do not speak of a pooler.
fn unaware(cluster: &Cluster, user: &str, password: &str) -> Settings {
    let mut settings = cluster.settings(user, password);
    settings.json = settings
        .json
        .replace(r#""pooler":true"#, r#""pooler":false"#);
    settings
}

/// Who is not told of a pooler that refuses settings at login is told what to write.
#[test]
fn a_pooler_that_refuses_settings_is_named() {
    let cluster = Cluster::get();
    let error = Wire::open(cluster.port, unaware(cluster, "reader", "readerpw"))
        .err()
        .unwrap();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Configuration, "login_settings"),
        "{error:?}"
    );
    assert!(error.message.contains("`pooler`"), "{error:?}");
}

/// A pooler has words of its own for who is not let in.
#[test]
fn a_pooler_refuses_strangers() {
    let cluster = Cluster::get();
    let settings = |user: &str, password: &str, database: &str| {
        let mut settings = cluster.settings(user, password);
        let told = format!(r#""database":"{database}""#);
        settings.json = settings.json.replace(r#""database":"postgres""#, &told);
        settings
    };
    for (settings, class) in [
        (
            settings("reader", "wrong", "postgres"),
            ErrorClass::Authentication,
        ),
        (
            settings("nobody", "wrong", "postgres"),
            ErrorClass::Authentication,
        ),
        (
            settings("reader", "readerpw", "nowhere"),
            ErrorClass::Configuration,
        ),
    ] {
        let opened =
            Wire::open(cluster.port, settings).map(|mut wire| wire.query("SELECT 1", vec![]));
        let error = opened
            .map(|answer| answer.error())
            .unwrap_or_else(|error| error);
        assert_eq!(error.class, class, "{error:?}");
    }
}

/// One that passes over them is found out before a statement runs: read-only and the time limit hold all the same, without a setting.
#[test]
fn a_pooler_that_ignores_settings_is_found_out() {
    let cluster = Cluster::get();
    // Whoever looks at the settings only would take it for a backend of one's own.
    cluster.admin("ALTER ROLE md5er SET default_transaction_read_only = on");
    let pooler = cluster.pooler(&[IGNORED]);
    for (user, password) in [("reader", "readerpw"), ("md5er", "md5pw")] {
        let mut wire = Wire::open(pooler.port, unaware(cluster, user, password)).unwrap();
        let ping = wire.submit(Request::Ping(LIMITS));
        assert_eq!(wire.wait(ping).unwrap().ok().cell(1, 0), "true", "{user}");
        let seen = "SELECT current_setting('transaction_read_only') || current_setting('statement_timeout') || current_setting('TimeZone')";
        assert_eq!(wire.scalar(seen), "on5sUTC", "{user}");
        assert_eq!(
            wire.scalar("SELECT count(*) FROM pg_prepared_statements"),
            "0",
            "{user}"
        );
    }
    let mut wire = Wire::open(pooler.port, unaware(cluster, "reader", "readerpw")).unwrap();
    let error = wire.query("SELECT shop.write()", vec![]).error();
    assert_eq!(error.source_code.as_deref(), Some("25006"));
}

/// One that allows no transactions is named, with what to set: without one nothing would hold read-only.
#[test]
fn a_pooler_of_single_statements_is_refused() {
    let cluster = Cluster::get();
    let pooler = cluster.pooler(&["pool_mode = statement"]);
    let settings = cluster.settings("reader", "readerpw");
    let mut wire = Wire::open(pooler.port, settings).unwrap();
    let asked = wire.ask("SELECT 1", vec![]);
    // It breaks the connection, too.
    let error = wire.wait(asked).err().unwrap();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Configuration, "statement_pooling"),
        "{error:?}"
    );
}

/// Many sessions on few backends, each at any time at another: nobody meets what another one has set or prepared.
#[test]
fn sessions_that_share_backends_do_not_meet() {
    let cluster = Cluster::get();
    let mut wires: Vec<Wire> = (0..12).map(|_| cluster.wire()).collect();
    for round in 0..20 {
        let asked: Vec<(u32, u32)> = (0..)
            .zip(&mut wires)
            .map(|(n, wire)| {
                let set = format!("SELECT set_config('search_path', 'nowhere{n}', false), set_config('TimeZone', 'Asia/Tokyo', false), set_config('application_name', 'n{n}', false)");
                wire.ask(&set, vec![]);
                let sql = format!("SELECT $1::int8 * {n} AS n, current_setting('search_path') AS path, current_setting('TimeZone') AS zone");
                (n, wire.ask(&sql, vec![Value::Int64(round)]))
            })
            .collect();
        for ((n, id), wire) in asked.into_iter().zip(&mut wires) {
            let answer = wire.wait(id).unwrap().ok();
            assert_eq!(answer.cell(0, 0), (round * i64::from(n)).to_string());
            assert_eq!(answer.cell(1, 0), "\"$user\", public");
            assert_eq!(answer.cell(2, 0), "UTC");
        }
    }
    let backends = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND backend_type = 'client backend'";
    let backends: u32 = cluster.admin(backends).parse().unwrap();
    assert!((1..=4).contains(&backends), "{backends} backends");
    let idle = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND state LIKE 'idle in transaction%'";
    let since = Instant::now();
    while cluster.admin(idle) != "0" {
        assert!(
            since.elapsed() < Duration::from_secs(20),
            "a transaction stays open"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A table that changes between two runs of a statement is read as it is then: its columns, and what its parameters are.
#[test]
fn a_changed_table_is_read_as_it_is() {
    let cluster = Cluster::get();
    cluster.admin("CREATE TABLE shop.shifting (a int8, b text); INSERT INTO shop.shifting VALUES (7, 'x'); GRANT SELECT ON shop.shifting TO reader");
    let mut wire = cluster.wire();
    const SQL: &str = "SELECT a, b FROM shop.shifting WHERE a = $1";
    let ask = |wire: &mut Wire| wire.query(SQL, vec![Value::Int64(7)]).ok();
    assert_eq!(ask(&mut wire).cell(0, 0), "7");
    // Eight bytes each: taken for the other, the one would be a number that nobody wrote.
    cluster.admin("ALTER TABLE shop.shifting ALTER a TYPE float8");
    let answer = ask(&mut wire);
    assert_eq!(
        (answer.cell(0, 0), answer.cell(1, 0)),
        ("7.0".into(), "x".into())
    );
    cluster.admin("ALTER TABLE shop.shifting ALTER b TYPE int4 USING 5");
    assert_eq!(ask(&mut wire).cell(1, 0), "5");
    // A number is bound as one, and then compared with a text: whatever the server makes of its bytes.
    cluster.admin("ALTER TABLE shop.shifting ALTER a TYPE text USING '7'");
    assert_eq!(ask(&mut wire).cell(0, 0), "7");
    cluster.admin("ALTER TABLE shop.shifting RENAME b TO c");
    assert_eq!(
        wire.query(SQL, vec![Value::Int64(7)]).error().code,
        "unknown_column"
    );
    cluster.admin("DROP TABLE shop.shifting");
    assert_eq!(
        wire.query(SQL, vec![Value::Int64(7)]).error().code,
        "unknown_table"
    );
}

/// A failed statement leaves nothing behind for the next, whoever comes next at that backend; enumerations have their names.
#[test]
fn failures_end_their_transaction() {
    let mut wire = Cluster::get().wire();
    let ids: Vec<u32> = (0..50)
        .map(|i| match i % 2 {
            0 => wire.ask("SELECT 1 / 0 AS n", vec![]),
            _ => wire.ask(
                "SELECT id, 'sad'::shop.mood AS mood, moods FROM shop.items WHERE id = 3",
                vec![],
            ),
        })
        .collect();
    for (i, id) in ids.into_iter().enumerate() {
        let answer = wire.wait(id).unwrap();
        match i % 2 {
            0 => assert_eq!(answer.error().source_code.as_deref(), Some("22012")),
            _ => {
                let answer = answer.ok();
                assert_eq!(answer.columns[1].native, "shop.mood");
                assert_eq!(
                    (answer.cell(1, 0), answer.cell(2, 0)),
                    ("sad".into(), r#"["sad","happy"]"#.into())
                );
            }
        }
    }
}

/// A cancel goes through the pooler to the statement that it is for, and leaves no transaction open.
#[test]
fn a_cancel_finds_its_statement_behind_a_pooler() {
    let cluster = Cluster::get();
    let mut settings = cluster.settings("reader", "readerpw");
    settings.json = settings.json.replace("5000", "90000");
    let mut wire = Wire::open(cluster.port, settings).unwrap();
    const STRUCK: &str = "SELECT pg_sleep($1) AS halt";
    wire.query(STRUCK, vec![Value::Float64(0.0)]).ok();
    let running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep($1) AS h_lt'";
    let id = wire.ask(STRUCK, vec![Value::Float64(60.0)]);
    let since = Instant::now();
    while cluster.admin(running) != "1" {
        assert!(
            since.elapsed() < Duration::from_secs(50),
            "the statement does not run"
        );
        // It waits for the end of the transaction before it.
        if wire.socket_has_more() {
            wire.pump().unwrap();
        }
    }
    wire.step(|session, step| session.cancel(id, step)).unwrap();
    let error = wire.wait(id).unwrap().error();
    assert_eq!(error.code, "cancelled");
    assert_eq!(wire.asides, 1);
    assert_eq!(cluster.admin(running), "0");
    assert_eq!(wire.scalar("SELECT 1"), "1");
}

/// PgBouncer passes on what it has read, 4 KiB at a time, and takes a backend for idle when a transaction ends: requests of several such pieces,
/// many at once, stay whole and with their backend.
#[test]
fn long_requests_at_once_are_not_torn() {
    let cluster = Cluster::get();
    let filler = "x".repeat(6_000);
    let mut wires: Vec<Wire> = (0..6).map(|_| cluster.wire()).collect();
    for round in 0..30 {
        let asked: Vec<Vec<u32>> = wires
            .iter_mut()
            .map(|wire| {
                let text = |n| {
                    format!(
                        "SELECT {n} + length('{filler}'), current_setting('transaction_read_only')"
                    )
                };
                (0..8).map(|n| wire.ask(&text(n), vec![])).collect()
            })
            .collect();
        for (wire, ids) in wires.iter_mut().zip(asked) {
            for (n, id) in ids.into_iter().enumerate() {
                let answer = wire.wait(id).unwrap().ok();
                assert_eq!(
                    (answer.cell(0, 0), answer.cell(1, 0)),
                    ((6_000 + n).to_string(), "on".to_owned()),
                    "round {round}"
                );
            }
        }
    }
}
