//! Commands on a running host, and those that rescue a store without one.

use serde_json::{Value, json};
use souk_tests::{PgCluster, TestHost, souk};

/// What a command shows is what the host answered: a table for people, with a dash for nothing, and JSON for scripts.
#[tokio::test]
async fn a_running_host_is_operated_by_commands() {
    let host = TestHost::builder().start().await;
    let created = host.operate(&["companies", "create", "acme", "Acme Ltd", "--json"]);
    let created = created.await.ok().json();
    let id = created["company"]["id"].as_str().expect("an id").to_owned();
    let key = created["api_key"]["key"]
        .as_str()
        .expect("a key")
        .to_owned();

    let shown = host.ask(&key, &["companies", "show"]).await.ok().out;
    assert!(
        shown.contains("HANDLE") && shown.contains("acme"),
        "{shown}"
    );
    let listed = host
        .operate(&["companies", "list", "--search", "ACME l"])
        .await;
    let listed = listed.ok().out;
    assert!(
        listed.contains(&id) && !listed.contains("platform"),
        "{listed}"
    );
    let all = host
        .operate(&["companies", "list", "--json"])
        .await
        .ok()
        .json();
    assert!(all.as_array().is_some_and(|all| all.len() == 2), "{all}");
    let refused = host.ask(&key, &["companies", "list"]).await;
    refused.refused("role");
    let plan = ["companies", "plan", "growth", "--company", &id, "--json"];
    let plan = host.operate(&plan).await.ok().json();
    assert_eq!(plan["plan"], "growth");

    // Repeated with the same key, nothing is granted again.
    for _ in 0..2 {
        let grant = ["credits", "grant", "500", "a test", "--company", &id];
        let once = ["--idempotency-key", "one"];
        host.operate(&[&grant[..], &once[..]].concat()).await.ok();
    }
    let balance = host.ask(&key, &["credits", "show", "--json"]).await.ok();
    assert_eq!(balance.json()["balance_credits"], 500);
    let booked = host.ask(&key, &["credits", "transactions"]).await.ok().out;
    assert_eq!(booked.lines().count(), 2, "{booked}");
    assert!(
        booked.starts_with("ID ") && booked.contains("grant"),
        "{booked}"
    );
    let path = format!("/companies/{id}/credits/top-ups");
    let once = [("idempotency-key", "top-up")];
    let begun = host.client(&key);
    let begun = begun.post_with(&path, &once, json!({"credits": 40})).await;
    begun.expect(201);
    let waiting = ["credits", "top-ups", "--status", "pending", "--json"];
    let waiting = host.operate(&waiting).await.ok().json();
    assert_eq!(waiting[0]["company_id"], *id, "{waiting}");
    let top_up = waiting[0]["id"].as_str().expect("an id");
    let settle = ["credits", "settle", top_up, "statement 7, line 3"];
    let settled = host.operate(&settle).await.ok().out;
    assert!(settled.contains("settled"), "{settled}");
    let books = host.operate(&["reconcile", "--json"]).await.ok().json();
    assert_eq!(books["balanced"], true);

    let made = host.ask(
        &key,
        &[
            "keys",
            "create",
            "ci",
            "--role",
            "2",
            "--rate-limit",
            "7",
            "--json",
        ],
    );
    let made = made.await.ok().json();
    assert_eq!(
        (&made["role_id"], &made["rate_limit"]),
        (&json!(2), &json!(7))
    );
    let revoke = ["keys", "revoke", made["id"].as_str().expect("an id")];
    let why = ["--reason", "a test", "--reason-code", "unused", "--json"];
    let revoked = host.ask(&key, &[&revoke[..], &why[..]].concat()).await;
    assert_eq!(revoked.ok().json()["status"], "deactivated");
    let keys = host
        .ask(&key, &["keys", "list", "--json"])
        .await
        .ok()
        .json();
    let names: Vec<&Value> = keys
        .as_array()
        .expect("a list")
        .iter()
        .map(|key| &key["name"])
        .collect();
    assert!(names.contains(&&json!("ci")), "{keys}");

    host.ask(&key, &["users", "invite", "a@example.com", "--role", "1"])
        .await
        .ok();
    let users = host.ask(&key, &["users", "list"]).await.ok().out;
    assert!(
        users.contains("a@example.com") && users.contains("invited"),
        "{users}"
    );

    let hook = [
        "webhooks",
        "create",
        "http://127.0.0.1:1/",
        "--events",
        "credits.low",
        "--json",
    ];
    let hook = host.ask(&key, &hook).await.ok().json();
    let hook = hook["id"].as_str().expect("an id");
    assert!(
        host.ask(&key, &["webhooks", "list"])
            .await
            .ok()
            .out
            .contains(hook)
    );
    host.ask(&key, &["webhooks", "deliveries", hook]).await.ok();
    host.ask(&key, &["webhooks", "delete", hook]).await.ok();
    assert!(
        !host
            .ask(&key, &["webhooks", "list"])
            .await
            .ok()
            .out
            .contains(hook)
    );
}

/// A refusal says what the host said, with the request id; a host that is not there is named, with what to do.
#[tokio::test]
async fn a_command_that_fails_says_why() {
    let host = TestHost::builder().start().await;
    let company = host.company("refused").await;
    let refused = host.ask(&company.key, &["reconcile"]).await;
    let refused = refused.refused("403 INSUFFICIENT_ROLE");
    assert!(refused.err.contains("request id req_"), "{}", refused.err);
    let many = host
        .operate(&["companies", "create", "Not A Label", ""])
        .await;
    many.refused("400 VALIDATION_ERROR");
    let gone = host.ask(&company.key, &["keys", "revoke", "../../x"]).await;
    assert!(!gone.succeeded && gone.err.contains("req_"), "{}", gone.err);

    let url = host.base_url.as_str();
    souk(&["keys", "list", "--url", url], &[])
        .await
        .refused("SOUK_API_KEY");
    souk(&["keys", "list", "--url", url], &[("SOUK_API_KEY", "")])
        .await
        .refused("SOUK_API_KEY");
    let nowhere = souk(
        &["keys", "list"],
        &[("SOUK_URL", "http://127.0.0.1:1"), ("SOUK_API_KEY", "k")],
    );
    nowhere
        .await
        .refused("http://127.0.0.1:1 cannot be reached: Connection refused");
    let wrong = souk(&["keys", "list", "--url", "example.com"], &[]).await;
    wrong.refused("--url must be an http:// or https:// address");
}

/// Shells learn every command.
#[tokio::test]
async fn shells_complete_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = souk(&["completions", shell], &[]).await.ok().out;
        for word in ["serve", "recover", "webhooks", "drain-seconds"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
}

/// Whoever owns the machine makes a new key of role 5 when the last one is lost: not while a host holds the store, and not unseen.
#[tokio::test]
async fn a_lost_platform_key_is_replaced_on_the_machine() {
    let mut host = TestHost::builder().start().await;
    let data = host.data_dir.to_string_lossy().into_owned();
    let recover = ["keys", "recover", "--json", "--data-dir", &data];
    let held = souk(&recover, &[]).await;
    held.refused("a running host holds")
        .refused("stop it for the moment");
    let nothing = tempfile::tempdir().expect("a directory");
    let nothing = nothing.path().to_string_lossy().into_owned();
    let wrong = souk(&["keys", "recover", "--data-dir", &nothing], &[]).await;
    wrong.refused("there is no store at");
    assert!(host.stop().await.success());
    let made = souk(&recover, &[]).await.ok().json();
    host.start_again().await;
    is_a_platform_key(&host, &made).await;
}

/// On PostgreSQL hosts may run meanwhile: the new key works at once.
#[tokio::test]
async fn a_lost_platform_key_is_replaced_beside_running_hosts() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let host = TestHost::builder()
        .arg("--database-url", &url)
        .start()
        .await;
    let environment = [("SOUK_DATABASE_URL", url.as_str())];
    let made = souk(&["keys", "recover", "--json"], &environment).await;
    is_a_platform_key(&host, &made.ok().json()).await;
}

async fn is_a_platform_key(host: &TestHost, made: &Value) {
    let key = made["key"].as_str().expect("a key");
    let books = host.ask(key, &["reconcile", "--json"]).await.ok().json();
    assert_eq!(books["balanced"], true);
    let company = made["company_id"].as_str().expect("an id");
    let log = format!("/companies/{company}/audit-log?operation=recover_key");
    let log = host.client(key).get(&log).await.expect(200);
    let line = log
        .at("/data")
        .as_array()
        .and_then(|lines| lines.iter().find(|line| line["subject_type"] == "api_key"))
        .unwrap_or_else(|| panic!("no line in {}", log.body));
    assert_eq!(line["subject_id"], made["id"]);
    assert_eq!(
        (&line["method"], &line["path"]),
        (&json!("COMMAND"), &json!("souk keys recover"))
    );
    assert!(!log.body.to_string().contains(key));
}
