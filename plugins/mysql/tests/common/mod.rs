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
    Wire::open(
        server.port,
        settings(&server.user, &server.password, database),
    )
    .unwrap()
}
