//! What must stay true of the tree itself: the frozen contract, which way the arrows run, and that no circle of files grows.

#[path = "tidy/modules.rs"]
mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use modules::Modules;
use sha2::{Digest, Sha256};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The released contracts are frozen: connectors and publishers in the field were built against them. A change of meaning is a new
/// folder; a change of words is a new hash here, made on purpose.
#[test]
fn the_released_contracts_are_frozen() {
    for (file, frozen) in [
        (
            "wit/v1/connector.wit",
            "d6c66923fe29e4a118d55eabfa027bc65e707a7d3dd514a5290f5cf8f00e82fc",
        ),
        (
            "wit/publisher-v1/publisher.wit",
            "18b199ff5e7912b2cf8b099d49eaa014d8b60e11cd426a33018288d619fac041",
        ),
    ] {
        let text = std::fs::read(root().join(file)).expect("the contract");
        let hash = hex::encode(Sha256::digest(text));
        assert_eq!(hash, frozen, "{file} was changed");
        // A package is whatever stands in its folder.
        let folder = root().join(file).with_file_name("");
        let files = std::fs::read_dir(folder).expect("a folder").count();
        assert_eq!(files, 1, "beside {file} there is another one");
    }
}

/// Connectors of engines, by their folders. What only speaks somebody's API, publishes or helps others has no catalog.
fn engines() -> BTreeSet<String> {
    let plugins = std::fs::read_dir(root().join("plugins")).expect("plugins");
    let plugins = plugins.map(|plugin| plugin.expect("a plugin").path());
    let engines = plugins.filter(|plugin| plugin.join("src/catalog.rs").is_file());
    let names =
        engines.filter_map(|engine| Some(engine.file_name()?.to_string_lossy().into_owned()));
    names.collect()
}

/// Whoever knows one engine's connector finds the same things in the same files of another's.
#[test]
fn connectors_of_engines_have_the_same_files() {
    let engines = engines();
    for engine in &engines {
        let source = root().join("plugins").join(engine).join("src");
        let has = |name: &str| source.join(name).is_file();
        for name in ["lib.rs", "settings.rs", "types.rs", "errors.rs"] {
            assert!(has(name), "{engine} has no {name}");
        }
        // How an engine is spoken to; one that is a library is not.
        let is_library = has("database.rs") || has("engine.rs");
        let speaks = has("protocol.rs") || has("api.rs");
        assert!(is_library || speaks, "{engine}");
    }
    assert!(engines.len() >= 11, "{engines:?}");
}

/// The keys of the files that the tests named in a text of `docs/engines-evidence.md` are in.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.match_indices("`][");
    ends.map(move |(at, _)| text[at + 3..].split(']').next().unwrap_or_default())
}

/// What `docs/engines-evidence.md` says is there: each test in its file, something of each engine for each requirement, and a mark where that is of the
/// connector alone.
#[test]
fn the_evidence_of_engines_is_there() {
    let text = std::fs::read_to_string(root().join("docs/engines-evidence.md"));
    let text = text.expect("the evidence");
    // `[pg values]: ../plugins/postgres/tests/values.rs`
    let mut files = BTreeMap::new();
    let mut natively = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix('[')) {
        let (key, path) = line.split_once("]: ../").expect("a file");
        let source = std::fs::read_to_string(root().join(path));
        if path.starts_with("plugins/") {
            natively.insert(key);
        }
        files.insert(
            key,
            source.unwrap_or_else(|error| panic!("{path}: {error}")),
        );
    }
    let mut used = BTreeSet::new();
    for (at, _) in text.match_indices("`][") {
        let name = text[..at].rsplit('`').next().unwrap_or_default();
        let key = text[at + 3..].split(']').next().unwrap_or_default();
        let is_there = |source: &String| source.contains(&format!("fn {name}("));
        assert!(files.get(key).is_some_and(is_there), "{name} of {key}");
        used.insert(key);
    }
    assert!(files.keys().all(|key| used.contains(key)), "{used:?}");

    let mut tables: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells[0] {
            "" => tables.push((cells[1..].to_vec(), Vec::new())),
            requirement => {
                let (engines, requirements) = tables.last_mut().expect("a head");
                assert_eq!(cells.len(), engines.len() + 1, "{requirement}");
                assert!(!cells.contains(&""), "{requirement}");
                for cell in &cells {
                    let mut keys = keys(cell).peekable();
                    let is_alone = keys.peek().is_some() && keys.all(|key| natively.contains(key));
                    assert_eq!(is_alone, cell.ends_with('°'), "{requirement}: {cell}");
                }
                requirements.push(requirement);
            }
        }
    }
    let told = tables.iter().flat_map(|(engines, _)| engines);
    let told = told.map(|name| name.trim_matches('`').to_owned());
    assert_eq!(told.collect::<BTreeSet<String>>(), engines());
    let first = &tables[0].1;
    assert!(tables.iter().all(|(_, requirements)| requirements == first));
}

/// What the manifest of `directory` names under `[dependencies]`.
fn dependencies(directory: &str) -> BTreeSet<String> {
    let manifest =
        std::fs::read_to_string(root().join(directory).join("Cargo.toml")).expect("a manifest");
    let mut section = "";
    let mut found = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]" && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            found.insert(name.to_owned());
        }
    }
    found
}

/// A room knows only the rooms that `host/ARCHITECTURE.md` lets it know. Above all: nothing links a
/// connector's Rust code, the sandbox does not know the store, and the API does not know the sandbox.
#[test]
fn the_arrows_run_one_way() {
    let allowed: [(&str, &[&str]); 25] = [
        ("host/domain", &[]),
        ("host/store", &["souk-domain"]),
        ("host/outbound", &[]),
        ("host/sandbox", &["souk-domain", "souk-outbound"]),
        (
            "host/app",
            &["souk-domain", "souk-store", "souk-outbound", "souk-sandbox"],
        ),
        ("host/api", &["souk-domain", "souk-store", "souk-app"]),
        (
            "host/conformance",
            &["souk-domain", "souk-outbound", "souk-sandbox"],
        ),
        ("sdk", &[]),
        ("sdk/templates", &[]),
        ("plugins", &[]),
        ("plugins/postgres", &["souk-sdk"]),
        ("plugins/bigquery", &["souk-sdk", "souk-signing"]),
        ("plugins/clickhouse", &["souk-sdk"]),
        ("plugins/databricks", &["souk-sdk"]),
        ("plugins/duckdb", &["souk-sdk"]),
        ("plugins/files", &["souk-sdk"]),
        ("plugins/mysql", &["souk-sdk"]),
        ("plugins/sqlite", &["souk-sdk"]),
        ("plugins/publishers", &["souk-sdk"]),
        ("plugins/seller-api", &["souk-sdk"]),
        ("plugins/signing", &[]),
        ("plugins/snowflake", &["souk-sdk", "souk-signing"]),
        ("plugins/sqlserver", &["souk-sdk"]),
        ("plugins/trino", &["souk-sdk"]),
        // The harness sees the host as its users do; it plays the host for connectors.
        ("tests", &["souk-sdk"]),
    ];
    for (directory, allowed) in allowed {
        let rooms = dependencies(directory)
            .into_iter()
            .filter(|name| name.starts_with("souk-"));
        let extra: Vec<String> = rooms
            .filter(|name| !allowed.contains(&name.as_str()))
            .collect();
        assert!(extra.is_empty(), "{directory} must not depend on {extra:?}");
    }
    let host = dependencies("host");
    assert!(
        host.iter().all(|name| !name.starts_with("souk-connector")),
        "the host links a connector: {host:?}"
    );
}

/// The crates that a room's "never" forbids are not in its manifest: only the sandbox has wasmtime, only the store has SQL (and the demo,
/// which makes a seller's database), only the API and the binary serve HTTP.
#[test]
fn what_a_room_refuses_to_know_it_does_not_link() {
    let never: [(&str, &[&str]); 8] = [
        (
            "host/domain",
            &[
                "tokio",
                "sqlx",
                "axum",
                "http",
                "hyper",
                "wasmtime",
                "serde_json",
            ],
        ),
        ("host/store", &["axum", "http", "hyper", "wasmtime"]),
        ("host/outbound", &["axum", "sqlx", "wasmtime"]),
        ("host/sandbox", &["axum", "sqlx"]),
        ("host/conformance", &["sqlx", "wasmtime"]),
        ("host/app", &["axum", "sqlx", "wasmtime"]),
        ("host/api", &["sqlx", "wasmtime"]),
        ("host", &["wasmtime"]),
    ];
    for (directory, never) in never {
        let dependencies = dependencies(directory);
        for name in never {
            assert!(
                !dependencies.contains(*name),
                "{directory} must not know {name}"
            );
        }
    }
}

/// What a manifest cannot say, file by file: the words that `host/ARCHITECTURE.md` keeps out of a room, and the files that may have them.
#[test]
fn what_a_room_refuses_to_know_it_does_not_name() {
    type Rule = (
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
    );
    let rules: [Rule; 5] = [
        // Callers pass `now`.
        ("host/domain/src", &["SystemTime::now", "Instant::now"], &[]),
        // A flow speaks HTTP to others, and does not know how it was asked itself.
        (
            "host/app/src",
            &["http::"],
            &["payments/", "webhooks/", "identity/", "files/objects/"],
        ),
        ("host/api/src", &[".sandbox", "AnyConnection::"], &[]),
        ("host/src", &["sqlx::"], &["demo/"]),
        // Which backend runs.
        (
            "host/store/src",
            &["Backend::"],
            &["db.rs", "opening.rs", "db/"],
        ),
    ];
    for (directory, words, places) in rules {
        let directory = root().join(directory);
        for (file, text) in modules::sources(&directory) {
            if places.iter().any(|place| file.starts_with(place)) {
                continue;
            }
            for word in words {
                assert!(
                    !text.contains(word),
                    "{}: {file} must not name {word}",
                    directory.display()
                );
            }
        }
    }
}

/// Slugs that are no engine's alone: the contract's words for dialects, which the host has to have, and what companies upload.
const SHARED_WORDS: [&str; 6] = [
    "postgres",
    "mysql",
    "sqlite",
    "clickhouse",
    "bigquery",
    "files",
];

/// Whether the host names an engine there: by a text that is its slug and nothing else, or in a name of the source's own.
fn names_engine(word: &str, slug: &str) -> bool {
    let text = word.strip_prefix('"');
    let text = text.and_then(|rest| rest.strip_suffix('"'));
    let is_name = !SHARED_WORDS.contains(&slug) && !word.contains('"');
    text == Some(slug) || (is_name && word.to_lowercase().contains(slug))
}

/// What an engine needs comes from what its connector says of itself: of those that are bundled none is named where the host decides something.
#[test]
fn the_host_names_no_engine() {
    let known: [(&str, &[&str]); 8] = [
        // The words of dialects: which there are, and what each is.
        (
            "domain/src/sql.rs",
            &["bigquery", "clickhouse", "mysql", "postgres", "sqlite"],
        ),
        (
            "sandbox/src/load.rs",
            &["bigquery", "clickhouse", "mysql", "postgres", "sqlite"],
        ),
        // The host's own two stores.
        ("app/src/backup.rs", &["postgres", "sqlite"]),
        // Specification 4.7 has both routings of this one compared.
        ("app/src/connections/check.rs", &["seller-api"]),
        // What companies upload.
        ("app/src/files/shared.rs", &["files"]),
        ("api/src/companies/objects.rs", &["files"]),
        // Examples of the description.
        ("api/src/openapi/parameters.rs", &["files", "postgres"]),
        ("api/src/openapi/values.rs", &["files", "postgres"]),
    ];
    let mut slugs = engines();
    slugs.insert("seller-api".to_owned());
    let mut found = BTreeMap::new();
    for room in ["app", "domain", "api", "sandbox"] {
        for (file, text) in modules::sources(&root().join("host").join(room).join("src")) {
            let words = modules::words(&text);
            let is_named = |slug: &&String| words.iter().any(|word| names_engine(word, slug));
            let named: BTreeSet<String> = slugs.iter().filter(is_named).cloned().collect();
            if !named.is_empty() {
                found.insert(format!("{room}/src/{file}"), named);
            }
        }
    }
    let known = known.iter().map(|(file, slugs)| {
        let slugs = slugs.iter().map(|slug| (*slug).to_owned());
        ((*file).to_owned(), slugs.collect::<BTreeSet<String>>())
    });
    let known: BTreeMap<String, BTreeSet<String>> = known.collect();
    assert_eq!(found, known);
}

/// An engine is seen by its slug and in names; in comments and what only tests compile it may stand.
#[test]
fn names_of_engines_are_seen() {
    let names = |source: &str| {
        let words = modules::words(source);
        words.iter().any(|word| names_engine(word, "duckdb"))
    };
    assert!(names("fn f(slug: &str) -> bool { slug == \"duckdb\" }"));
    assert!(names("fn is_of_duckdb() {} fn g() {}"));
    assert!(!names(
        "/// duckdb\nfn f() {} // duckdb\n#[cfg(test)] mod tests { const OF: &str = \"duckdb\"; }"
    ));
}

/// Of more than two files none needs all the others to be understood: who reads one of them can begin somewhere.
#[test]
fn no_circle_of_more_than_two_files() {
    for (room, by_folder) in [
        ("store", false),
        ("outbound", false),
        ("sandbox", false),
        ("app", false),
        ("domain", true),
        ("api", true),
    ] {
        let modules = Modules::read(&root().join("host").join(room).join("src"));
        let modules = match by_folder {
            true => modules.folders(),
            false => modules,
        };
        assert!(modules.len() > 3, "{room} has more files than were found");
        let circles = modules.circles();
        let large: Vec<_> = circles.iter().filter(|circle| circle.len() > 2).collect();
        assert!(large.is_empty(), "{room}: {large:#?}");
    }
}

/// The check of circles sees through lists, re-exports and `super`, and leaves tests out.
#[test]
fn circles_are_seen() {
    let circles = |files: &[(&str, &str)]| {
        let files = files.iter();
        let files = files.map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        Modules::of(files).circles()
    };
    let found = circles(&[
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ("a/mod.rs", "mod inner; pub use inner::Inner; pub struct A;"),
        (
            "a/inner.rs",
            "use crate::{c::{self, C}, std::X}; pub struct Inner;",
        ),
        ("b.rs", "use crate::a::{Inner as Other}; pub struct B;"),
        ("c.rs", "fn c() { super::b::make::<u8>() }"),
    ]);
    assert_eq!(found, [["a::inner", "b", "c"]]);
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        (
            "b.rs",
            "pub struct B; #[cfg(test)] mod tests { use crate::a::A; } #[cfg(test)] #[path = \"x\"] mod more; fn b() -> crate::a::A { crate::a::A }",
        ),
    ]);
    assert_eq!(found, [["a", "b"]]);
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        (
            "b.rs",
            "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
        ),
    ]);
    assert_eq!(found, Vec::<Vec<String>>::new());
}
