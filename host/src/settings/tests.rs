//! Which settings make a host that starts, and what is said of those that do not.

use super::services::GOOGLE;
use super::*;

#[test]
fn defaults_make_a_host_that_starts() {
    let settings = Settings::resolve(Options::default(), &SERVE).unwrap();
    assert_eq!(settings.listen, LISTEN);
    assert_eq!(settings.database_url, "sqlite:souk-data/souk.db");
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        "workers = 3\ndrain_seconds = 9\nbase_url = 'https://a.example/'",
    )
    .unwrap();
    let given = Options {
        config: Some(file.path().into()),
        workers: Some(5),
        ..Options::default()
    };
    let settings = Settings::resolve(given, &SERVE).unwrap();
    assert_eq!(
        (settings.workers, settings.drain),
        (5, Duration::from_secs(9))
    );
    assert_eq!(settings.base_url.as_deref(), Some("https://a.example"));
}

/// Play money is for the demo; Stripe takes both of its secrets or none.
#[test]
fn money_is_collected_by_whom_the_operator_named() {
    let resolve = |given: Options, defaults| Settings::resolve(given, defaults);
    assert_eq!(
        resolve(Options::default(), &SERVE)
            .unwrap()
            .payment_provider,
        PaymentProvider::Manual
    );
    assert_eq!(
        resolve(Options::default(), &DEMO).unwrap().payment_provider,
        PaymentProvider::Instant
    );
    let instant = || Options {
        payment_provider: Some(PaymentProvider::Instant),
        ..Options::default()
    };
    assert!(resolve(instant(), &SERVE).is_err());
    let stripe = |webhook_secret: Option<&str>| Options {
        payment_provider: Some(PaymentProvider::Stripe),
        stripe_secret_key: Some("sk_test".to_owned()),
        stripe_webhook_secret: webhook_secret.map(str::to_owned),
        ..Options::default()
    };
    assert!(resolve(stripe(None), &SERVE).is_err());
    let settings = resolve(stripe(Some("whsec_test")), &SERVE).unwrap();
    assert!(!format!("{settings:?}").contains("_test"));
}

/// Google by its client id alone; a secret is read from its file, and shown nowhere.
#[test]
fn people_sign_in_where_the_operator_says() {
    let resolve = |file: &str| Settings::resolve(toml::from_str(file).unwrap(), &SERVE);
    assert!(resolve("").unwrap().identity.is_none());
    let google = resolve("oidc_client_id = 'souk'")
        .unwrap()
        .identity
        .unwrap()
        .0;
    assert_eq!((&*google.name, &*google.issuer), ("google", GOOGLE));
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "hush\n").unwrap();
    let own = format!(
        "oidc_client_id = 'souk'\noidc_issuer = 'https://id.example/realm/'\noidc_client_secret_file = '{}'",
        secret.path().display()
    );
    let settings = resolve(&own).unwrap();
    assert!(!format!("{settings:?}").contains("hush"));
    let own = settings.identity.unwrap().0;
    assert_eq!(
        (&*own.name, &*own.issuer),
        ("oidc", "https://id.example/realm")
    );
    assert_eq!(own.client_secret.as_deref(), Some("hush"));
    for (wrong, flag) in [
        ("oidc_issuer = 'https://id.example'", "--oidc-client-id"),
        ("oidc_client_id = ''", "--oidc-client-id"),
        ("smtp_url = 'smtp://localhost'", "--mail-from"),
        (
            "oidc_client_id = 'a'\noidc_issuer = 'id.example'",
            "--oidc-issuer",
        ),
        (
            "oidc_client_id = 'a'\noidc_name = 'invitation'",
            "--oidc-name",
        ),
        (
            "oidc_client_id = 'a'\noidc_client_secret = 'b'\noidc_client_secret_file = 'c'",
            "exclude",
        ),
        (
            "oidc_client_id = 'a'\noidc_client_secret_file = '/nonexistent'",
            "--oidc-client-secret-file",
        ),
    ] {
        let error = format!("{:#}", resolve(wrong).unwrap_err());
        assert!(error.contains(flag), "{error}");
    }
}

/// Who lets a company have more requests in flight lets it have as many connections, unless they say how many; and nobody has fewer for having fewer
/// requests.
#[test]
fn connections_to_sources_follow_requests() {
    let sockets = |file: &str| {
        let options = toml::from_str(file).unwrap();
        Settings::resolve(options, &SERVE).unwrap().quota.sockets
    };
    assert_eq!(sockets(""), 640);
    assert_eq!(sockets("company_calls = 2000"), 2_500);
    assert_eq!(sockets("company_calls = 100"), 640);
    assert_eq!(sockets("company_calls = 1000000"), 1_000_000);
    assert_eq!(sockets("company_calls = 2000\ncompany_sockets = 7"), 7);
}

#[test]
fn a_wrong_setting_is_named() {
    for (file, flag) in [
        ("workers = 0", "--workers"),
        ("busy_poll_us = 1001", "--busy-poll-us"),
        ("drain_delay_seconds = 3601", "--drain-delay-seconds"),
        ("company_kept_answers_mib = 0", "--company-kept-answers-mib"),
        ("payable_after_seconds = 0", "--payable-after-seconds"),
        ("uploads_mib = 0", "--uploads-mib"),
        ("files_cache_mib = 1023", "--files-cache-mib"),
        ("files_url = 'minio:9000'", "--files-url"),
        ("files_access_key_id = 'a'", "--files-secret-access-key"),
        (
            "files_access_key_id = 'a'\nfiles_secret_access_key = 'b'",
            "--files-url",
        ),
        (
            "connections_per_address_max = 0",
            "--connections-per-address-max",
        ),
        ("base_url = 'example.com'", "--base-url"),
        ("company_sessions = 0", "--company-sessions"),
        ("guest_memory_mib = 0", "--guest-memory-mib"),
        ("company_connections = 0", "--company-connections"),
        ("company_connector_mib = 1000001", "--company-connector-mib"),
    ] {
        let error = Settings::resolve(toml::from_str(file).unwrap(), &SERVE).unwrap_err();
        assert!(error.to_string().contains(flag), "{error}");
    }
}
