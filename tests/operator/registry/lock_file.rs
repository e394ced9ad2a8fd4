//! The lock file: the same connectors on every host, to the byte.

use souk_tests::command::Done;
use souk_tests::{Registry, TestHost, guests};

use super::{Desk, add, push, text, versions};

async fn sync(host: &TestHost, lock: &str, more: &[&str]) -> Done {
    let sync = [
        "connector",
        "sync",
        "--lock",
        lock,
        "--platform",
        "--plain-http",
    ];
    host.operate(&[&sync[..], more].concat()).await
}

/// What was put to work on one host is put to work on another to the byte, by the lock file alone; a host that has it all asks no registry.
#[tokio::test]
async fn a_lock_file_makes_two_hosts_alike() {
    let mut registry = Registry::start().await;
    let (one, other) = tokio::join!(TestHost::builder().start(), TestHost::builder().start());
    let desk = Desk::new();
    let (private, public) = desk.keys("author");
    let (_, stranger) = desk.keys("stranger");
    let sign = ["--sign-key", &private];
    let fixed = desk.file("fixed.wasm", guests::FIXED_ROWS);
    let next = desk.file("next.wasm", guests::FIXED_ROWS_NEXT);
    let moody = desk.file("moody.wasm", guests::MOODY);
    let (fixed_tag, moody_tag) = (registry.reference("fixed:1"), registry.reference("moody:1"));
    let pushed = push(&fixed, &fixed_tag, &sign).await;
    push(&moody, &moody_tag, &sign).await;

    let lock = desk.path("souk-connectors.lock");
    let keep = format!("--lock={lock}");
    let taken = ["--trusted-key", &public, "--activate", &keep];
    for tag in [&fixed_tag, &moody_tag] {
        add(&one, tag, &taken).await.ok();
    }
    let kept = desk.text("souk-connectors.lock");
    for member in ["digest", "component", "signed_by"] {
        let line = format!("{member} = \"{}\"", text(&pushed, member));
        assert!(kept.contains(&line), "{line} is not in {kept}");
    }

    // The tag goes elsewhere; the file does not.
    push(&next, &fixed_tag, &sign).await;
    let locked = ["--locked", "--trusted-key", &public];
    let mistrusted = ["--locked", "--trusted-key", &stranger];
    sync(&other, &lock, &mistrusted)
        .await
        .refused("is signed by none of the trusted keys");
    let brought = sync(&other, &lock, &locked).await.ok().out;
    assert!(
        brought.contains("moody") && brought.contains("active"),
        "{brought}"
    );
    for name in ["fixed-rows", "moody"] {
        assert_eq!(versions(&other, name).await, ["1.0.0 active"], "{name}");
        assert_eq!(versions(&one, name).await, ["1.0.0 active"], "{name}");
    }
    assert_eq!(desk.text("souk-connectors.lock"), kept);

    // Whoever changes a digest by hand gets nothing else for it.
    let changed = kept.replace(
        &text(&pushed, "component"),
        &format!("sha256:{}", "0".repeat(64)),
    );
    let changed = desk.file("changed.lock", changed.as_bytes());
    sync(&other, &changed, &locked)
        .await
        .refused("the host has another fixed-rows 1.0.0");

    registry.kill();
    sync(&other, &lock, &locked).await.ok();

    // What is tried out beside what the file names takes no calls from it any more.
    let later = desk.file("later.wasm", guests::FIXED_ROWS_LATER);
    add(&other, &later, &[]).await.ok();
    let canary = ["fixed-rows", "5.0.0", "--platform", "--share", "20"];
    let canary = [&["connector", "activate"][..], &canary[..]].concat();
    other.operate(&canary).await.ok();
    let tried = versions(&other, "fixed-rows").await;
    assert_eq!(tried, ["1.0.0 active", "5.0.0 canary"]);
    sync(&other, &lock, &locked).await.ok();
    let ended = versions(&other, "fixed-rows").await;
    assert!(
        ended[0] == "1.0.0 active" && ended[1] != "5.0.0 canary",
        "{ended:?}"
    );
}

/// An entry that somebody wrote by hand says where, and nothing else: `sync` finds out the rest and writes it down, `sync --locked` refuses it.
#[tokio::test]
async fn what_a_lock_file_does_not_say_is_found_out_once() {
    let registry = Registry::start().await;
    let host = TestHost::builder().start().await;
    let desk = Desk::new();
    let fixed = desk.file("fixed.wasm", guests::FIXED_ROWS);
    let wider = desk.file("wider.wasm", guests::FIXED_ROWS_WIDER);
    let tag = registry.reference("fixed:1");
    let pushed = push(&fixed, &tag, &[]).await;
    let entry = format!("version = 1\n\n[[connector]]\nreference = \"{tag}\"\n");
    let lock = desk.file("a.lock", entry.as_bytes());
    let unsigned = ["--allow-unsigned"];
    let locked = ["--allow-unsigned", "--locked"];

    sync(&host, &lock, &locked).await.refused("says no digest");
    assert_eq!(versions(&host, "fixed-rows").await, [""; 0]);
    sync(&host, &lock, &unsigned).await.ok();
    let kept = desk.text("a.lock");
    assert!(kept.contains(&text(&pushed, "digest")), "{kept}");
    assert!(kept.contains("name = \"fixed-rows\"") && !kept.contains("signed_by"));
    sync(&host, &lock, &locked).await.ok();

    // What is found out now may do more: nobody has agreed to that yet.
    push(&wider, &tag, &[]).await;
    let lock = desk.file("b.lock", entry.as_bytes());
    sync(&host, &lock, &unsigned)
        .await
        .refused("nobody has agreed");
    assert_eq!(desk.text("b.lock"), entry);
    let agreed = ["--allow-unsigned", "--accept-capabilities"];
    sync(&host, &lock, &agreed).await.ok();
    assert!(desk.text("b.lock").contains("version = \"5.0.0\""));
}
