//! What the tests of bundled connectors have in common.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use souk_conformance::{Outcome, Place, Profile, Subject, options};
use souk_sandbox::{
    Blame, Compiler, Fault, FaultKind, Limits, Output, Query, Request, SchemaFilter,
};
use souk_tests::thousand_tables;

/// What a catalog of a thousand tables may take, though nothing of this host is optimised.
const CATALOG_WITHIN: Duration = Duration::from_secs(1);
/// Other tests take this machine's time as well: one of so many is read that quickly.
const CATALOGS_MAX: usize = 20;
/// So many are read however quick they are: the first one may have to find out what the others know.
const CATALOGS_MIN: usize = 3;

/// The bundled connector of this name.
pub async fn loaded(name: &str, profile: Profile) -> Subject {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let mut bundle = souk_plugins::bundle().iter();
    let (_, wasm) = bundle.find(|(known, _)| *known == name).expect(name);
    let options = options(&cache, Compiler::InProcess);
    Subject::load(*wasm, options, profile).await.unwrap()
}

/// The same with a source, if there is one.
pub async fn subject(name: &str, place: Option<Place>, settings: &Json) -> Subject {
    let profile = Profile {
        place,
        settings: settings.as_object().expect("settings").clone(),
        ..Profile::default()
    };
    loaded(name, profile).await
}

/// Settings with others in their place.
pub fn merged(mut settings: Json, more: Json) -> Json {
    for (name, value) in more.as_object().into_iter().flatten() {
        settings[name] = value.clone();
    }
    settings
}

pub async fn ask(subject: &Subject, request: Request) -> Result<Output, Fault> {
    let source = subject.source(subject.place.as_ref().unwrap());
    subject.ask(&source, request).await
}

/// Whoever is at this address is believed neither without an authority nor with that of a stranger.
pub async fn believes_no_stranger(subject: &Subject, base_url: &str, of_stranger: Option<String>) {
    for ca_pem in [None, of_stranger] {
        let source = subject.source(&Place::Http {
            base_url: base_url.to_owned(),
            ca_pem,
        });
        let fault = subject.ask(&source, query("SELECT 1")).await.unwrap_err();
        let told = (fault.blame, fault.kind);
        assert_eq!(told, (Blame::Source, FaultKind::Tls), "{fault:?}");
    }
}

pub fn query(text: &str) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters: Vec::new(),
        limits: Limits::new(1_000, 1 << 20),
    })
}

/// The catalog of a schema with a thousand tables is read within a second. `seen` looks at each that is read.
pub async fn reads_a_thousand_tables(
    subject: &Subject,
    schema: &str,
    mut seen: impl FnMut(&Output),
) {
    let source = subject.source(subject.place.as_ref().unwrap());
    let mut times: Vec<Duration> = Vec::new();
    while times.len() < CATALOGS_MIN || times.iter().all(|took| *took > CATALOG_WITHIN) {
        assert!(times.len() < CATALOGS_MAX, "{times:?}");
        let request = Request::Schema(SchemaFilter {
            schemas: vec![schema.to_owned()],
            tables: Vec::new(),
            include_fields: true,
            limits: Limits::new(100_000, 16 << 20),
        });
        let begun = Instant::now();
        let catalog = subject.ask(&source, request).await.unwrap();
        times.push(begun.elapsed());
        assert_eq!(catalog.rows, thousand_tables::FIELDS);
        seen(&catalog);
    }
    println!("{} fields in {times:?}", thousand_tables::FIELDS);
}

/// Without a source the kit tries what can be tried: settings, servers that lie, wires that break.
pub async fn conforms_without_a_source(name: &str, settings: &Json) {
    let subject = subject(name, None, settings).await;
    let report = souk_conformance::run(&subject).await.unwrap();
    subject.close().await;
    assert_eq!(report.checks(Outcome::Failed), [""; 0], "{report}");
    let hostile = report.finding("hostile.servers").unwrap();
    assert_eq!(hostile.outcome, Outcome::Passed, "{report}");
}

/// The whole kit over HTTP, by a profile as a seller writes one. Nothing fails, and nothing is left out but this, and within TLS what nobody sees there.
/// `table`: lines of the profile's `[table]`.
pub async fn conforms(
    name: &str,
    (base_url, ca_pem): (&str, Option<&str>),
    table: &str,
    settings: &Json,
    left_out: &[&str],
) {
    let mut profile = format!("[source]\nbase_url = '{base_url}'\n");
    let mut ca = tempfile::NamedTempFile::new().unwrap();
    if let Some(pem) = ca_pem {
        ca.write_all(pem.as_bytes()).unwrap();
        profile.push_str(&format!("ca_file = '{}'\n", ca.path().display()));
    }
    profile.push_str(&format!("[table]\n{table}\n[source.settings]\n"));
    for (name, value) in settings.as_object().expect("settings") {
        profile.push_str(&format!("{name} = {value}\n"));
    }
    let subject = loaded(name, Profile::parse(&profile, Path::new(".")).unwrap()).await;
    let report = souk_conformance::run(&subject).await.unwrap();
    subject.close().await;
    println!("{report}");
    assert!(report.is_conforming(), "{report}");
    assert_eq!(report.checks(Outcome::Warned), [""; 0], "{report}");
    let within_tls = ca_pem.map(|_| "wire.spoilt");
    let left_out: Vec<&str> = left_out.iter().copied().chain(within_tls).collect();
    assert_eq!(report.checks(Outcome::Skipped), left_out, "{report}");
}
