//! What must stay true of the tree itself: the frozen contract, and which way the arrows run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `wit/v1` is frozen: connectors in the field were built against it. A change of meaning is a new
/// folder; a change of words is a new hash here, made on purpose.
#[test]
fn the_released_contract_is_frozen() {
    let text = std::fs::read(root().join("wit/v1/connector.wit")).expect("the contract");
    let hash = hex::encode(Sha256::digest(text));
    assert_eq!(
        hash, "2f4e8ef901d8b7f28745ad965608a3e4e01e1531fd19577a6c90ccd55a87cc22",
        "wit/v1/connector.wit was changed"
    );
}

/// The members of the workspace that the manifest of `directory` depends on.
fn arrows(directory: &str) -> BTreeSet<String> {
    let manifest =
        std::fs::read_to_string(root().join(directory).join("Cargo.toml")).expect("a manifest");
    let mut section = "";
    let mut found = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]" && line.starts_with("souk-") {
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
    let allowed: [(&str, &[&str]); 11] = [
        ("host/domain", &[]),
        ("host/store", &["souk-domain"]),
        ("host/outbound", &[]),
        ("host/sandbox", &["souk-domain", "souk-outbound"]),
        (
            "host/app",
            &["souk-domain", "souk-store", "souk-outbound", "souk-sandbox"],
        ),
        ("host/api", &["souk-domain", "souk-store", "souk-app"]),
        ("sdk", &[]),
        ("plugins", &[]),
        ("plugins/postgres", &["souk-sdk"]),
        ("plugins/sqlite", &["souk-sdk"]),
        ("plugins/seller-api", &["souk-sdk"]),
    ];
    for (directory, allowed) in allowed {
        let allowed: BTreeSet<String> = allowed.iter().map(|name| name.to_string()).collect();
        let extra: Vec<String> = arrows(directory).difference(&allowed).cloned().collect();
        assert!(extra.is_empty(), "{directory} must not depend on {extra:?}");
    }
    let host = arrows("host");
    assert!(
        host.iter().all(|name| !name.starts_with("souk-connector")),
        "the host links a connector: {host:?}"
    );
}
