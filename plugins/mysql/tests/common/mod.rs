//! A real MariaDB, and sessions with it.
#![allow(dead_code, reason = "each test file uses its part")]

use souk_connector_mysql::Session;
use souk_sdk::Settings;
use souk_tests::MariaDb;

pub type Wire = souk_tests::wire::Wire<Session>;

pub fn settings(user: &str, password: &str, database: &str) -> Settings {
    let json = format!(
        r#"{{"username":"{user}","password":"{password}","database":"{database}","ssl_mode":"disable","statement_timeout_ms":5000}}"#
    );
    Settings {
        engine: "mysql".into(),
        json,
    }
}

/// A session of the server's owner in this database.
pub fn wire(server: &MariaDb, database: &str) -> Wire {
    wire_within(server, database, 5_000)
}

/// The same where statements have so long.
pub fn wire_within(server: &MariaDb, database: &str, timeout_ms: u32) -> Wire {
    let mut settings = settings(&server.user, &server.password, database);
    let [usual, own] = [5_000, timeout_ms].map(|ms| format!(r#""statement_timeout_ms":{ms}"#));
    settings.json = settings.json.replace(&usual, &own);
    Wire::open(server.port, settings).unwrap()
}
