//! A network swallows what a host asks its store, so that no answer ever comes: whoever waits for that is told so in time, and nobody waits for good.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::cut_commits::CommitWire;
use souk_tests::process::free_port;
use souk_tests::{Company, PgCluster, Receiver, TestHost, souk};

use crate::charges::slow_asset;
use crate::cut_commits::runs::execute;
use crate::cut_commits::{behind_a_wire, host};
use crate::unique;
use crate::webhooks::{Hook, revoke_a_key};

/// A host gives up what is not answered within half a minute; a loaded machine gets a multiple.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(90);

/// Waits until the next statement with this text has been swallowed.
async fn swallowed(wire: &CommitWire, statement: &'static str) {
    let before = wire.cuts();
    wire.swallow_question(statement);
    let begun = Instant::now();
    while wire.cuts() == before {
        assert!(begun.elapsed() < GIVEN_UP_WITHIN, "{statement}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whose question is swallowed is told to try again, in time: who is looked up, and who lists something. Others are answered meanwhile, and so is who asks
/// again.
#[tokio::test]
async fn a_question_that_is_swallowed_is_told_in_time() {
    let (wire, host) = host().await;
    let other = host.company(&unique("other")).await;
    let others = other.path("/webhooks");
    other.client.get(&others).await.expect(200);
    let asking = host.company(&unique("asking")).await;
    let path = asking.path("/webhooks");
    for statement in ["WHERE k.digest = $1", "FROM webhooks WHERE company_id = $1"] {
        let begun = Instant::now();
        let ask = async {
            // Once it is known what becomes of that.
            tokio::time::sleep(Duration::from_millis(100)).await;
            asking.client.get(&path).await
        };
        let meanwhile = async {
            swallowed(&wire, statement).await;
            other.client.get(&others).await.expect(200);
        };
        let (told, ()) = tokio::join!(ask, meanwhile);
        told.expect_error(503, "SERVICE_UNAVAILABLE");
        assert!(begun.elapsed() < GIVEN_UP_WITHIN, "{statement}");
        asking.client.get(&path).await.expect(200);
    }
}

/// What a host looks for by itself keeps nobody waiting for good, either: who reserves credits waits behind holds whose time is over, and a webhook behind
/// what is due.
#[tokio::test]
async fn what_a_host_asks_by_itself_keeps_nobody_waiting() {
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = slow_asset(&seller, PgCluster::shared().await, 3).await;
    let buyer = host.buyer(&unique("buyer"), 10).await;
    swallowed(&wire, "FROM holds WHERE expires_at").await;
    let begun = Instant::now();
    while execute(&buyer, &asset, None).await.status != 200 {
        assert!(begun.elapsed() < GIVEN_UP_WITHIN, "nothing is reserved");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let receiver = Receiver::start().await;
    Hook::new(&seller, &receiver, &["api_key.revoked"]).await;
    swallowed(&wire, "WITH receivers (webhook_id)").await;
    revoke_a_key(&seller).await;
    let begun = Instant::now();
    while receiver.received().is_empty() {
        assert!(begun.elapsed() < GIVEN_UP_WITHIN, "nothing is delivered");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Takes a connector off work that is not there: one at a time looks for it.
async fn take_off(company: &Company) {
    let path = company.path("/connectors/nothing/deactivate");
    let answer = company.client.post(&path, json!({}));
    let answer = tokio::time::timeout(GIVEN_UP_WITHIN, answer).await;
    answer.expect("its turn comes").expect(404);
}

/// What is shown of what was made is read before that is committed: a question that is swallowed behind the commit would be told as a failure, and whoever
/// asks again with the same key would have it made again.
#[tokio::test]
async fn a_product_is_made_once_whatever_is_swallowed_behind_it() {
    let (wire, host) = host().await;
    let seller = host.company(&unique("making")).await;
    let connection = seller.postgres(PgCluster::shared().await, "postgres").await;
    let (assets, endpoints) = (seller.path("/assets"), seller.path("/endpoints"));
    let asset = json!({
        "connection_id": connection, "asset_type": "CALCULATION", "result_type": "number",
        "name": "made once", "sql_logic": "SELECT 1",
    });
    let endpoint = json!({
        "connection_id": connection, "name": "made once",
        "sql_logic": "SELECT 1 AS one", "fields": [{"name": "one"}], "order_by": ["one"],
    });
    for (path, body) in [(&assets, asset), (&endpoints, endpoint)] {
        let make = async || {
            let header = [("idempotency-key", "once")];
            seller.client.post_with(path, &header, body.clone()).await
        };
        wire.swallow_question_alone("WHERE p.id = $1");
        let first = make().await;
        // Where there was none, one of what follows is none of those.
        wire.swallow_question_alone("there is none");
        let again = make().await.expect(201);
        let all = seller.client.get(path).await.expect(200);
        let all = all.at("/data").as_array().cloned().unwrap_or_default();
        let made = all.iter().filter(|one| one["name"] == "made once");
        assert_eq!(made.count(), 1, "{path}");
        assert_eq!(first.expect(201).body, again.body);
    }
}

/// What was done is not done again while a network swallows that its answer is kept: its claim does not lapse meanwhile, also where one of its renewals is
/// swallowed, too.
#[tokio::test]
async fn an_answer_that_is_being_kept_keeps_its_claim() {
    /// A claim is renewed every ten seconds, and a renewal given up after ten; what else is swallowed of a transaction, after two minutes.
    const RENEWED_WITHIN: Duration = Duration::from_secs(60);
    let cluster = PgCluster::shared().await;
    let wire = CommitWire::to(cluster.port).await;
    let database = cluster.database("SELECT 1").await;
    // What is said within TLS nobody else can read.
    let url = format!("{}?sslmode=disable", cluster.url_by(wire.port, &database));
    let host = TestHost::builder().arg("--database-url", url);
    let host = host.start().await;
    let company = host.company("making").await;
    let path = company.path("/api-keys");
    let make = async || {
        let header = [("idempotency-key", "once")];
        let body = json!({"name": "made once"});
        company.client.post_with(&path, &header, body).await
    };
    let first = async {
        // Once it is known what becomes of its answer.
        tokio::time::sleep(Duration::from_millis(100)).await;
        make().await
    };
    tokio::select! {
        answer = first => panic!("it was answered: {}", answer.body),
        () = swallowed(&wire, "SET status = $1, location") => {}
    }
    swallowed(&wire, "SET expires_at = $1").await;
    // As if it had been kept for a minute without a word of its host.
    let store = cluster.client(&database).await;
    let age =
        "UPDATE idempotency SET expires_at = 1 WHERE idempotency_key = 'once' AND status IS NULL";
    let aged = store.execute(age, &[]).await.expect("the claim");
    assert_eq!(aged, 1);
    let begun = Instant::now();
    let held = "SELECT expires_at > 1 FROM idempotency WHERE idempotency_key = 'once'";
    while !store
        .query_one(held, &[])
        .await
        .expect("it")
        .get::<_, bool>(0)
    {
        assert!(begun.elapsed() < RENEWED_WITHIN, "{}", host.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    make().await.expect_error(409, "IDEMPOTENCY_IN_PROGRESS");
    let all = company.client.get(&path).await.expect(200);
    let all = all.at("/data").as_array().cloned().unwrap_or_default();
    let made = all.iter().filter(|key| key["name"] == "made once");
    assert_eq!(made.count(), 1);
}

/// What goes on to its end when its client hangs up has one: who changes what runs is told in time of his question that is swallowed, and neither he nor
/// who hangs up meanwhile keeps others from changing something.
#[tokio::test]
async fn a_question_that_is_swallowed_holds_no_turn_for_good() {
    let (wire, host) = host().await;
    let asking = host.company(&unique("asking")).await;
    let other = host.company(&unique("other")).await;
    take_off(&asking).await;
    let path = asking.path("/connectors/nothing/deactivate");
    let asked = [
        ("FROM connector_choices WHERE scope = $1", true),
        ("FROM connectors WHERE CAST($1 AS TEXT) IS NULL", false),
    ];
    for (statement, hangs_up) in asked {
        let ask = async {
            // Once it is known what becomes of that.
            tokio::time::sleep(Duration::from_millis(100)).await;
            asking.client.post(&path, json!({})).await
        };
        let is_swallowed = swallowed(&wire, statement);
        if hangs_up {
            tokio::select! {
                answer = ask => panic!("it was answered: {}", answer.body),
                () = is_swallowed => {}
            }
        } else {
            let both = async { tokio::join!(ask, is_swallowed) };
            let both = tokio::time::timeout(GIVEN_UP_WITHIN, both).await;
            let (told, ()) = both.expect("it is told");
            told.expect_error(503, "SERVICE_UNAVAILABLE");
        }
        take_off(&other).await;
        take_off(&asking).await;
    }
}

/// A host whose question is swallowed while it starts ends and says why, so that whoever started it can do so again.
#[tokio::test]
async fn a_start_whose_question_is_swallowed_ends() {
    let asked = [
        // Whether there must be a master key.
        ("SELECT value FROM settings", "PostgreSQL does not answer"),
        (
            "FROM connectors ORDER BY created_at",
            "the connectors cannot start",
        ),
    ];
    for (statement, why) in asked {
        let cluster = PgCluster::shared().await;
        let wire = CommitWire::to(cluster.port).await;
        let database = cluster.database("SELECT 1").await;
        // What is said within TLS nobody else can read.
        let url = format!("{}?sslmode=disable", cluster.url_by(wire.port, &database));
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().to_string_lossy();
        wire.swallow_question_alone(statement);
        let serve = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            &data,
            "--database-url",
            &url,
        ];
        // It loads all connectors before the second one, which may have to be compiled.
        let ended = tokio::time::timeout(3 * GIVEN_UP_WITHIN, souk(&serve, &[])).await;
        let told = ended.expect("it ends").refused(why);
        assert_eq!(wire.cuts(), 1, "{}", told.err);
    }
}

/// Who invites somebody is not kept waiting for good by what is looked up for the mail: without it the link is in the answer.
#[tokio::test]
async fn an_invitation_whose_mail_cannot_be_written_is_answered() {
    let (wire, builder) = behind_a_wire().await;
    let host = builder
        .arg("--smtp-url", "smtp://127.0.0.1:1")
        .arg("--mail-from", "Souk <souk@example.org>")
        .start()
        .await;
    let company = host.company(&unique("inviting")).await;
    let invite = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let ann = json!({"email": "ann@example.org", "name": "Ann", "role_id": 3});
        company.client.post(&company.path("/users"), ann).await
    };
    let both = async { tokio::join!(invite, swallowed(&wire, "FROM companies WHERE id = $1")) };
    let both = tokio::time::timeout(GIVEN_UP_WITHIN, both).await;
    let (invited, ()) = both.expect("it is answered");
    let invited = invited.expect(201);
    assert_eq!(
        invited.at("/data/invitation/mail_sent"),
        &Value::Bool(false)
    );
    let url = invited.text("/data/invitation/url");
    assert!(url.contains("/invitation#"), "{url}");
}

/// Whoever scrapes a host whose store says nothing is told in time what the host itself knows, and that the rest is left out; that comes back with the store.
#[tokio::test]
async fn what_a_host_counts_is_told_while_its_store_is_silent() {
    /// A scraper waits for ten seconds, and the host for three; a loaded machine gets a multiple of that, and less than a question has.
    const SCRAPED_WITHIN: Duration = Duration::from_secs(20);
    /// What companies have is looked at beside the rest, and seldom.
    const OF_COMPANIES: (&str, &str) = (
        "COUNT(*) AS taken FROM connections",
        "souk_data_connections ",
    );
    const EACH_TIME: (&str, &str) = (
        "SELECT CAST(COALESCE(SUM(records), 0)",
        "souk_webhook_deliveries_waiting ",
    );
    let metrics = format!("127.0.0.1:{}", free_port());
    let (wire, builder) = behind_a_wire().await;
    let _host = builder.arg("--metrics-listen", &metrics).start().await;
    let scrape = async || {
        let answer = reqwest::get(format!("http://{metrics}/metrics")).await;
        answer.expect("an answer").text().await.expect("a text")
    };
    let has = |text: &str, line: &str| text.lines().any(|one| one.starts_with(line));
    for ((statement, figure), available) in [(OF_COMPANIES, 1), (EACH_TIME, 0)] {
        let before = wire.cuts();
        wire.swallow_question(statement);
        let begun = Instant::now();
        let text = scrape().await;
        assert!(begun.elapsed() < SCRAPED_WITHIN, "{statement}");
        assert_eq!(wire.cuts() - before, 1, "{statement}");
        assert!(has(&text, "souk_charges_total "), "{text}");
        let told = format!("souk_store_available {available}");
        assert!(has(&text, &told), "{statement}: {text}");
        assert!(!has(&text, figure), "{figure}: {text}");
    }
    let begun = Instant::now();
    loop {
        let text = scrape().await;
        if has(&text, OF_COMPANIES.1) && has(&text, EACH_TIME.1) {
            assert!(has(&text, "souk_store_available 1"), "{text}");
            return;
        }
        assert!(begun.elapsed() < GIVEN_UP_WITHIN, "{text}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
