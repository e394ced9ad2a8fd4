//! Connectors from an OCI registry: published, believed ([`signatures`]), agreed to, and the same on every host ([`lock_file`]).

mod lock_file;
mod signatures;

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use souk_tests::command::Done;
use souk_tests::tls::TestCa;
use souk_tests::{Registry, TestHost, guests, souk};
use tempfile::TempDir;

const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// A host takes 64 MiB.
const TOO_LARGE: u64 = 65 << 20;

/// Files of an author or an operator: components, keys, a lock file.
struct Desk {
    directory: TempDir,
}

impl Desk {
    fn new() -> Desk {
        let directory = tempfile::tempdir().expect("a directory");
        Desk { directory }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.directory.path().join(name), bytes).expect("a file");
        self.path(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).expect("a file")
    }

    /// A key pair of openssl's making: the private and the public one.
    fn keys(&self, name: &str) -> (String, String) {
        let (private, public) = (format!("{name}.pem"), format!("{name}.pub"));
        let kind = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
        self.openssl(&[&["genpkey", "-out", &private], &kind[..]].concat());
        self.openssl(&["pkey", "-in", &private, "-pubout", "-out", &public]);
        (self.path(&private), self.path(&public))
    }

    fn openssl(&self, arguments: &[&str]) -> String {
        let done = Command::new("openssl")
            .current_dir(self.directory.path())
            .args(arguments)
            .output();
        let done = done.expect("openssl");
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }
}

/// Pushes over http; the answer is what was pushed, as JSON.
async fn push(file: &str, reference: &str, more: &[&str]) -> Value {
    let push = [
        "connector",
        "push",
        file,
        reference,
        "--plain-http",
        "--json",
    ];
    souk(&[&push[..], more].concat(), &[]).await.ok().json()
}

async fn add(host: &TestHost, reference: &str, more: &[&str]) -> Done {
    let add = ["connector", "add", reference, "--platform", "--plain-http"];
    host.operate(&[&add[..], more].concat()).await
}

/// `version status` of each version of a connector of the platform; none where there is no such connector.
async fn versions(host: &TestHost, name: &str) -> Vec<String> {
    let answer = host.platform().get(&format!("/connectors/{name}")).await;
    let versions = answer.body["data"]["versions"].as_array();
    let told = |version: &Value| {
        let [version, status] = ["version", "status"].map(|name| version[name].as_str());
        format!("{} {}", version.expect("one"), status.expect("one"))
    };
    versions.into_iter().flatten().map(told).collect()
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().expect("text").to_owned()
}

/// A connector goes from its author to the platform of a host through a registry: by tag and by digest, signed by one whom the operator believes.
/// The same component again is the same artifact.
#[tokio::test]
async fn connectors_come_from_a_registry_by_tag_and_by_digest() {
    let registry = Registry::start().await;
    let host = TestHost::builder().start().await;
    let desk = Desk::new();
    let (private, public) = desk.keys("author");
    let first = desk.file("first.wasm", guests::FIXED_ROWS);
    let next = desk.file("next.wasm", guests::FIXED_ROWS_NEXT);
    let sign = ["--sign-key", &private];

    let tag = registry.reference("fixed:1.0");
    let pushed = push(&first, &tag, &sign).await;
    let again = push(&first, &tag, &sign).await;
    assert_eq!(pushed, again);
    let manifest = registry.manifest("fixed", "1.0").await;
    assert_eq!(
        (
            &manifest["config"]["mediaType"],
            &manifest["layers"][0]["mediaType"]
        ),
        (&json!(CONFIG), &json!("application/wasm"))
    );

    let trusted = ["--trusted-key", &public, "--activate"];
    let added = add(&host, &tag, &trusted).await.ok();
    assert_eq!(added.out, "fixed-rows 1.0.0 is at work\n");
    assert!(
        added.err.contains("fixed-rows 1.0.0 needs\n"),
        "{}",
        added.err
    );
    assert!(added.err.contains("+ engine fixed"), "{}", added.err);

    let pushed = push(&next, &registry.reference("fixed:2.0"), &sign).await;
    let pinned = registry.reference(&format!("fixed@{}", text(&pushed, "digest")));
    let added = add(&host, &pinned, &trusted).await.ok();
    assert!(
        added
            .err
            .contains("fixed-rows 2.0.0 needs what 1.0.0 at work needs"),
        "{}",
        added.err
    );
    assert_eq!(
        versions(&host, "fixed-rows").await,
        ["1.0.0 retired", "2.0.0 active"]
    );

    // A company takes its own from there, too.
    let company = host.company("acme").await;
    let moody = desk.file("moody.wasm", guests::MOODY);
    push(&moody, &registry.reference("moody:1.0"), &sign).await;
    let reference = registry.reference("moody:1.0");
    let own = [
        "connector",
        "add",
        &reference,
        "--plain-http",
        "--trusted-key",
        &public,
    ];
    let added = host
        .ask(&company.key, &[&own[..], &["--json"]].concat())
        .await;
    assert_eq!(added.ok().json()["company_id"], json!(company.id));

    let absent = add(&host, &registry.reference("fixed:3.0"), &trusted).await;
    assert_eq!(absent.code, Some(2));
    absent.refused("the registry knows no such tag or digest");
    let wrong = desk.file("wrong.wasm", guests::WRONG_WORLD);
    let wrong = ["connector", "push", &wrong, &tag, "--plain-http"];
    let wrong = souk(&wrong, &[]).await;
    assert_eq!(wrong.code, Some(1));
    wrong.refused("no host would take it, so it is not pushed");
}

/// Bytes that are not those of the digest are refused, wherever they were changed; and a component that is too large is refused by what its manifest
/// says: nothing of it is asked for.
#[tokio::test]
async fn what_was_changed_or_is_too_large_is_refused() {
    let registry = Registry::start().await;
    let host = TestHost::builder().start().await;
    let desk = Desk::new();
    let file = desk.file("fixed.wasm", guests::FIXED_ROWS);
    let tag = registry.reference("fixed:1.0");
    let pushed = push(&file, &tag, &[]).await;
    let unsigned = ["--allow-unsigned"];

    let component = text(&pushed, "component");
    let change = |digest: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let file = registry.blob_file(digest);
        let whole = std::fs::read(&file).expect("a blob");
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&file, bytes).expect("a blob");
        (file, whole)
    };
    let back = |(file, whole): (PathBuf, Vec<u8>)| std::fs::write(file, whole).expect("a blob");
    let last = |bytes: &mut Vec<u8>| *bytes.last_mut().expect("a byte") ^= 1;

    let before = change(&component, &last);
    add(&host, &tag, &unsigned)
        .await
        .refused("cannot be used: Invalid digest");
    back(before);
    let before = change(&component, &|bytes| bytes.extend_from_slice(&[0; 1000]));
    add(&host, &tag, &unsigned)
        .await
        .refused("is longer than the");
    back(before);
    let manifest = text(&pushed, "digest");
    let before = change(&manifest, &|bytes| {
        let at = bytes.windows(5).position(|found| found == b"1.0.0");
        bytes[at.expect("the version")] = b'7';
    });
    let pinned = registry.reference(&format!("fixed@{manifest}"));
    add(&host, &pinned, &unsigned)
        .await
        .refused("is not what it was asked for");
    back(before);

    let mut large = registry.manifest("fixed", "1.0").await;
    large["layers"][0]["size"] = json!(TOO_LARGE);
    registry.put_manifest("fixed", "large", &large).await;
    std::fs::remove_file(registry.blob_file(&component)).expect("a blob");
    let refused = add(&host, &registry.reference("fixed:large"), &unsigned).await;
    refused
        .refused("has 68157440 bytes, and may have 67108864")
        .refused("nothing of it was read");
    assert_eq!(versions(&host, "fixed-rows").await, [""; 0]);
}

/// A version that may do more than the one at work waits for somebody's consent, whichever way it came; what was at work stays there until then.
#[tokio::test]
async fn more_than_before_needs_consent() {
    let host = TestHost::builder().start().await;
    let desk = Desk::new();
    let first = desk.file("first.wasm", guests::FIXED_ROWS);
    let wider = desk.file("wider.wasm", guests::FIXED_ROWS_WIDER);
    add(&host, &first, &["--activate"]).await.ok();
    let refused = add(&host, &wider, &["--activate"]).await;
    assert_eq!(refused.code, Some(2));
    let refused = refused
        .refused("wire tcp")
        .refused("(more than before)")
        .refused("souk connector activate fixed-rows 5.0.0 --accept-capabilities");
    assert!(refused.err.contains("- wire http"), "{}", refused.err);
    let activate = ["connector", "activate", "fixed-rows", "5.0.0", "--platform"];
    host.operate(&activate).await.refused("nobody has agreed");
    assert_eq!(
        versions(&host, "fixed-rows").await,
        ["1.0.0 active", "5.0.0 staged"]
    );
    let agreed = [&activate[..], &["--accept-capabilities"]].concat();
    host.operate(&agreed).await.ok();
    assert_eq!(
        versions(&host, "fixed-rows").await,
        ["1.0.0 retired", "5.0.0 active"]
    );
    // Back to what somebody has agreed to needs nobody.
    let back = ["connector", "rollback", "fixed-rows", "--platform"];
    host.operate(&back).await.ok();
}

/// A registry that speaks https and wants a login gets the one that `docker login` has kept for it, and no other registry does.
#[tokio::test]
async fn a_registry_is_spoken_to_with_its_own_login() {
    let registry = Registry::start_protected(&TestCa::new("a test")).await;
    let desk = Desk::new();
    let file = desk.file("fixed.wasm", guests::FIXED_ROWS);
    let tag = registry.reference("fixed:1.0");
    let push = ["connector", "push", &file, &tag];
    let (authority, login) = (registry.authority(), registry.login());
    let nobody = desk.path("nobody");
    let believed = ("SSL_CERT_FILE", authority.as_str());
    let as_nobody = ("DOCKER_CONFIG", nobody.as_str());
    let as_author = ("DOCKER_CONFIG", login.as_str());

    souk(&push, &[as_author])
        .await
        .refused("cannot be reached: invalid peer certificate");
    souk(&push, &[believed, as_nobody])
        .await
        .refused("lets nobody in without a login")
        .refused("docker login localhost:");
    souk(&push, &[believed, as_author]).await.ok();
    // It was kept for the other name.
    let elsewhere = tag.replace("localhost", "127.0.0.1");
    let elsewhere = ["connector", "push", &file, &elsewhere];
    let refused = souk(&elsewhere, &[believed, as_author]).await;
    refused.refused("lets nobody in without a login");
}
