use super::*;

fn postgres() -> Engine {
    Engine {
        slug: "postgres".into(),
        need: Need::Tcp,
        credential_types: vec!["PASSWORD".into()],
        members: None,
        default_port: Some(5432),
    }
}

fn seller_api() -> Engine {
    Engine {
        slug: "seller-api".into(),
        need: Need::Http,
        credential_types: vec!["API_KEY".into()],
        members: None,
        default_port: None,
    }
}

fn draft() -> Draft {
    Draft {
        name: "sales".into(),
        credential_type: "PASSWORD".into(),
        host: Some("db.example.com".into()),
        database: Some("sales".into()),
        credentials: Some(
            [
                ("username".to_owned(), "u".to_owned()),
                ("password".to_owned(), "p".to_owned()),
            ]
            .into(),
        ),
        ..Draft::default()
    }
}

fn fields(errors: Vec<FieldError>) -> Vec<String> {
    errors.into_iter().map(|error| error.field).collect()
}

/// The engine's own port and TLS are what a client gets who says nothing.
#[test]
fn defaults_are_the_engines_port_tls_and_ten_seconds() {
    let checked = check(&postgres(), &draft()).unwrap();
    assert_eq!(checked.statement_timeout_ms, 10_000);
    let Target::Tcp { port, ssl_mode, .. } = checked.target else {
        panic!("not tcp")
    };
    assert_eq!((port, ssl_mode), (5432, SslMode::Require));
}

/// A word for TLS and a port that are none, and what is too long, are wrong for an engine too that has no use for them.
#[test]
fn members_are_such_whatever_the_engine() {
    let wrong = Draft {
        credential_type: "API_KEY".into(),
        credentials: Some([("api_key".to_owned(), "k".to_owned())].into()),
        base_url: Some("https://api.example.com".into()),
        ssl_mode: Some("sometimes".into()),
        port: Some(0),
        host: Some("h".repeat(HOST_CHARS_MAX + 1)),
        database: Some("d".repeat(DATABASE_CHARS_MAX + 1)),
        ..Draft::default()
    };
    let named = Draft {
        name: "api".into(),
        ..wrong
    };
    let faults = fields(check(&seller_api(), &named).unwrap_err());
    assert_eq!(faults, ["database", "host", "ssl_mode", "port"]);
}

/// Every broken member is reported at once.
#[test]
fn all_faults_are_reported_together() {
    let broken = Draft {
        name: " ".into(),
        host: Some("https://db.example.com".into()),
        port: Some(0),
        database: None,
        ssl_mode: Some("prefer".into()),
        ca_pem: Some("junk".into()),
        statement_timeout_ms: Some(60_001),
        credentials: Some(BTreeMap::new()),
        ..draft()
    };
    let faults = fields(check(&postgres(), &broken).unwrap_err());
    assert_eq!(
        faults,
        [
            "name",
            "credentials",
            "credentials",
            "statement_timeout_ms",
            "host",
            "port",
            "database",
            "ssl_mode",
            "ca_pem"
        ]
    );
}

#[test]
fn a_credential_type_of_another_engine_is_refused() {
    let faults = check(
        &postgres(),
        &Draft {
            credential_type: "API_KEY".into(),
            ..draft()
        },
    )
    .unwrap_err();
    assert_eq!(fields(faults), ["credential_type"]);
}

/// An API may have databases: where its connector reads one, it is kept, and none is needed.
#[test]
fn a_database_behind_an_api_is_optional() {
    let kept = |members: &[&str], database: &str| {
        let engine = Engine {
            members: Some(members.iter().map(|name| (*name).to_owned()).collect()),
            ..seller_api()
        };
        let checked = check(
            &engine,
            &Draft {
                name: "api".into(),
                credential_type: "API_KEY".into(),
                base_url: Some("https://api.example.com".into()),
                database: Some(database.into()),
                ..Draft::default()
            },
        );
        match checked.map_err(fields)?.target {
            Target::Http { database, .. } => Ok(database),
            other => panic!("{other:?}"),
        }
    };
    let reads = &["base_url", "database"];
    assert_eq!(kept(reads, "shop"), Ok(Some("shop".into())));
    assert_eq!(kept(reads, ""), Ok(None));
    assert_eq!(kept(&["base_url"], "shop"), Ok(None));
    assert_eq!(kept(reads, "a\nb"), Err(vec!["database".to_owned()]));
}

#[test]
fn base_urls_are_http_without_secrets_or_query() {
    let with = |url: &str| {
        let credentials = Some([("api_key".to_owned(), "k".to_owned())].into());
        check(
            &seller_api(),
            &Draft {
                name: "api".into(),
                credential_type: "API_KEY".into(),
                base_url: Some(url.into()),
                credentials,
                ..Draft::default()
            },
        )
    };
    let Target::Http { base_url, .. } = with("https://api.example.com/v1/").unwrap().target else {
        panic!("not http")
    };
    assert_eq!(base_url, "https://api.example.com/v1");
    for refused in [
        "",
        "api.example.com",
        "ftp://example.com",
        "https://u:p@example.com",
        "https://example.com/?q=1",
        "https://example.com/#x",
        "file:///etc/passwd",
    ] {
        assert_eq!(
            fields(with(refused).unwrap_err()),
            ["base_url"],
            "{refused}"
        );
    }
}

#[test]
fn file_names_are_one_plain_segment() {
    for name in ["a", "sales.db", "sales-2024_q1.sqlite3", "_x"] {
        assert!(is_file_name(name), "{name}");
    }
    for name in [
        "",
        ".",
        "..",
        ".hidden",
        "a/b",
        "a\\b",
        "a b",
        "a..b",
        "a.",
        "-a",
        "é",
        "a\0",
        &"x".repeat(129),
    ] {
        assert!(!is_file_name(name), "{name}");
    }
}

/// What an engine's connector does not read need not be given: a cache without users and databases is connected by its password.
#[test]
fn what_nobody_reads_is_not_required() {
    let cache = |members: &[&str]| Engine {
        slug: "cache".into(),
        need: Need::Tcp,
        credential_types: vec!["PASSWORD".into()],
        members: Some(members.iter().map(|member| (*member).to_owned()).collect()),
        default_port: None,
    };
    let draft = Draft {
        name: "cache".into(),
        credential_type: "PASSWORD".into(),
        host: Some("cache.example.com".into()),
        port: Some(6379),
        credentials: Some([("password".to_owned(), "p".to_owned())].into()),
        ..Draft::default()
    };
    let checked = check(&cache(&["password", "ssl_mode"]), &draft).unwrap();
    assert!(matches!(checked.target, Target::Tcp { database, .. } if database.is_empty()));
    let errors = check(&cache(&["username", "password", "database"]), &draft).unwrap_err();
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["credentials", "database"]);
}
