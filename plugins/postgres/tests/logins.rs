//! Who is let in, and what a server says to that.

mod common;

use common::{Cluster, Wire};
use souk_sdk::ErrorClass;

/// SCRAM and md5 let in; a wrong password, an unknown database and cleartext without TLS do not.
#[test]
fn logins() {
    let cluster = Cluster::get();
    for (user, password) in [("reader", "readerpw"), ("md5er", "md5pw")] {
        let mut wire = Wire::open(cluster.port, cluster.settings(user, password)).unwrap();
        assert_eq!(wire.scalar("SELECT current_user"), user);
    }
    let fails = |user: &str, password: &str| {
        Wire::open(cluster.port, cluster.settings(user, password))
            .err()
            .unwrap()
    };
    let error = fails("reader", "wrong");
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Authentication, "password_rejected")
    );
    assert_eq!(error.source_code.as_deref(), Some("28P01"));
    assert_eq!(fails("md5er", "wrong").class, ErrorClass::Authentication);
    assert_eq!(fails("clear", "clearpw").code, "cleartext_refused");
    let mut settings = cluster.settings("reader", "readerpw");
    settings.json = settings.json.replace(r#""postgres""#, r#""nowhere""#);
    let error = Wire::open(cluster.port, settings).err().unwrap();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Configuration, "unknown_database")
    );
    let mut settings = cluster.settings("reader", "readerpw");
    settings.json = settings.json.replace("disable", "require");
    let error = Wire::open(cluster.port, settings).err().unwrap();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Configuration, "tls_not_supported")
    );
}

/// Who is let in to no database, or finds no room, is told what to change, and nothing of a statement.
#[test]
fn a_login_that_is_refused_says_what_helps() {
    let cluster = Cluster::get();
    cluster.admin("CREATE DATABASE closed");
    cluster.admin("REVOKE CONNECT ON DATABASE closed FROM PUBLIC");
    cluster.admin("CREATE ROLE crowded LOGIN PASSWORD 'crowdedpw' CONNECTION LIMIT 0");
    let fails = |user: &str, database: &str| {
        let mut settings = cluster.settings(user, &format!("{user}pw"));
        let database = format!(r#""database":"{database}""#);
        settings.json = settings.json.replace(r#""database":"postgres""#, &database);
        Wire::open(cluster.port, settings).err().unwrap()
    };
    for (user, database, class, code, helps) in [
        (
            "reader",
            "closed",
            ErrorClass::Permission,
            "permission_denied",
            "GRANT CONNECT",
        ),
        (
            "crowded",
            "postgres",
            ErrorClass::Unavailable,
            "too_many_connections",
            "of this user",
        ),
        (
            "reader",
            "nowhere",
            ErrorClass::Configuration,
            "unknown_database",
            "`database`",
        ),
    ] {
        let error = fails(user, database);
        assert_eq!(
            (error.class, error.code.as_str()),
            (class, code),
            "{error:?}"
        );
        assert!(error.message.contains(helps), "{error:?}");
    }
}
