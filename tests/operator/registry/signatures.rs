//! Whose word stands for a connector: the signatures of cosign's scheme, made and verified by others too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use souk_tests::registry::MANIFEST;
use souk_tests::{Registry, TestHost, guests};

use super::{Desk, add, push, text, versions};

const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// What no trusted key has signed is not taken, and nothing of it reaches the host; who wants it all the same has to say so.
#[tokio::test]
async fn what_no_trusted_key_has_signed_is_refused() {
    let registry = Registry::start().await;
    let host = TestHost::builder().start().await;
    let desk = Desk::new();
    let (stranger, _) = desk.keys("stranger");
    let (second, trusted_too) = desk.keys("second");
    let (_, trusted) = desk.keys("trusted");
    let file = desk.file("fixed.wasm", guests::FIXED_ROWS);
    let tag = registry.reference("fixed:1.0");
    let keys = ["--trusted-key", &trusted, "--trusted-key", &trusted_too];

    push(&file, &tag, &[]).await;
    let unsigned = add(&host, &tag, &keys).await;
    assert_eq!(unsigned.code, Some(2));
    unsigned.refused("is signed by none of the trusted keys");
    push(&file, &tag, &["--sign-key", &stranger]).await;
    add(&host, &tag, &keys)
        .await
        .refused("is signed by none of the trusted keys");
    add(&host, &tag, &[])
        .await
        .refused("name a public key with --trusted-key");
    let none = add(&host, &tag, &["--trusted-key", &stranger]).await;
    none.refused("this is no public key in PEM");
    assert_eq!(versions(&host, "fixed-rows").await, [""; 0]);

    // Beside the stranger's, one that is believed: the second of the two keys.
    push(&file, &tag, &["--sign-key", &second]).await;
    add(&host, &tag, &keys).await.ok();
    assert_eq!(versions(&host, "fixed-rows").await, ["1.0.0 staged"]);

    let moody = desk.file("moody.wasm", guests::MOODY);
    let tag = registry.reference("moody:1.0");
    push(&moody, &tag, &[]).await;
    let taken = add(&host, &tag, &[&keys[..], &["--allow-unsigned"]].concat()).await;
    assert!(taken.ok().err.contains("no trusted key has signed"));
}

/// Our signatures are those of cosign's scheme: openssl verifies one that `push` made, and one that openssl made, in a payload with other blanks and
/// members, is believed; for another manifest the same signature is worth nothing.
#[tokio::test]
async fn signatures_are_what_others_make_and_verify() {
    let registry = Registry::start().await;
    let host = TestHost::builder().start().await;
    let desk = Desk::new();
    let (private, public) = desk.keys("author");
    let file = desk.file("fixed.wasm", guests::FIXED_ROWS);
    let pushed = push(
        &file,
        &registry.reference("ours:1.0"),
        &["--sign-key", &private],
    )
    .await;
    let der = [
        "pkey",
        "-pubin",
        "-in",
        "author.pub",
        "-outform",
        "DER",
        "-out",
        "author.der",
    ];
    desk.openssl(&der);
    let fingerprint = desk.openssl(&["dgst", "-sha256", "-r", "author.der"]);
    let fingerprint = fingerprint.split(' ').next().expect("a digest");
    assert_eq!(pushed["signed_by"], format!("sha256:{fingerprint}"));

    let beside = |pushed: &Value| format!("{}.sig", text(pushed, "digest").replace(':', "-"));
    let signatures = registry.manifest("ours", &beside(&pushed)).await;
    let layer = &signatures["layers"][0];
    assert_eq!(layer["mediaType"], PAYLOAD);
    let payload = registry.blob("ours", &text(layer, "digest")).await;
    let said: Value = serde_json::from_slice(&payload).expect("JSON");
    assert_eq!(
        said["critical"]["image"]["docker-manifest-digest"],
        pushed["digest"]
    );
    desk.file("payload", &payload);
    let signature = STANDARD.decode(text(&layer["annotations"], SIGNATURE));
    desk.file("signature", &signature.expect("base64"));
    let verify = [
        "dgst",
        "-sha256",
        "-verify",
        "author.pub",
        "-signature",
        "signature",
        "payload",
    ];
    assert_eq!(desk.openssl(&verify), "Verified OK\n");

    // Somebody else's, for what nobody has signed yet.
    let pushed = push(&file, &registry.reference("theirs:1.0"), &[]).await;
    let trusted = ["--trusted-key", public.as_str()];
    let sign = async |digest: &str| {
        let payload = format!(
            r#"{{ "optional": {{"by": "a test"}}, "critical": {{"type": "cosign container image signature", "image": {{"docker-manifest-digest": "{digest}"}}, "identity": {{"docker-reference": "elsewhere/theirs"}}}} }}"#
        );
        desk.file("payload", payload.as_bytes());
        desk.openssl(&[
            "dgst",
            "-sha256",
            "-sign",
            "author.pem",
            "-out",
            "signature",
            "payload",
        ]);
        let signature = std::fs::read(desk.path("signature")).expect("a signature");
        let mut layer = registry
            .put_blob("theirs", PAYLOAD, payload.as_bytes())
            .await;
        layer["annotations"] = json!({SIGNATURE: STANDARD.encode(signature)});
        let config = "application/vnd.oci.image.config.v1+json";
        let config = registry.put_blob("theirs", config, b"{}").await;
        let manifest =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
        let tag = beside(&pushed);
        registry.put_manifest("theirs", &tag, &manifest).await;
    };
    let theirs = registry.reference("theirs:1.0");
    sign(&format!("sha256:{}", "0".repeat(64))).await;
    let refused = add(&host, &theirs, &trusted).await;
    refused.refused("is signed by none of the trusted keys");
    sign(&text(&pushed, "digest")).await;
    add(&host, &theirs, &trusted).await.ok();
}
