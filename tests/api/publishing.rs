//! Posts at integrations, as their company sees them: publishers in the sandbox speak to servers that behave as WordPress, Ghost, Slack and a
//! receiver of signed requests do, and to some that do not.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::platforms::{
    GHOST_KEY, SLACK_PATH, WEBHOOK_SECRET, WORDPRESS_PASSWORD, WORDPRESS_USER,
};
use souk_tests::{Answer, Company, Instead, Platform, Raw, RawServer, guests};

use crate::{host, unique};

/// A publication ends within moments. On a loaded machine an attempt may fail that should not, and the next but one comes a minute later.
const ENDS_WITHIN: Duration = Duration::from_secs(180);
/// What must not happen gets this long to happen all the same.
const QUIET: Duration = Duration::from_secs(3);

/// A company with one post, which is published.
pub struct Author {
    pub company: Company,
    pub post: String,
}

impl Author {
    pub async fn new(name: &str) -> Author {
        let company = host().await.company(&unique(name)).await;
        let body = json!({
            "title": "Goals & <more>", "slug": unique("goals"), "summary": "About goals", "tags": ["goals"],
            "body_markdown": "# Goals\n\n**Many** <script>goals</script>."
        });
        let made = company.client.post(&company.path("/posts"), body).await;
        let post = company.path(&format!("/posts/{}", made.expect(201).text("/data/id")));
        let publish = format!("{post}/publish");
        company.client.post(&publish, json!({})).await.expect(200);
        Author { company, post }
    }

    pub fn integrations(&self) -> String {
        self.company.path("/postgen_integrations")
    }

    pub async fn integration(&self, body: Value) -> String {
        let made = self.company.client.post(&self.integrations(), body).await;
        made.expect(201).text("/data/id")
    }

    pub async fn wordpress(&self, base_url: &str) -> String {
        self.integration(json!({
            "platform": "wordpress", "name": "blog", "config": {"base_url": base_url},
            "credentials": {"username": WORDPRESS_USER, "application_password": WORDPRESS_PASSWORD}
        }))
        .await
    }

    pub async fn slack(&self, base_url: &str) -> String {
        self.integration(json!({
            "platform": "slack", "name": "chat", "config": {"base_url": base_url, "link": "https://blog.example.com/{slug}"},
            "credentials": {"path": SLACK_PATH}
        }))
        .await
    }

    pub async fn webhook(&self, base_url: &str) -> String {
        self.integration(json!({
            "platform": "webhook", "name": "hook", "config": {"base_url": base_url, "path": "/hooks"},
            "credentials": {"secret": WEBHOOK_SECRET}
        }))
        .await
    }

    pub async fn publish(&self, integration: &str) -> Answer {
        let path = format!("{}/publish/{integration}", self.post);
        self.company.client.post(&path, json!({})).await.expect(202)
    }

    pub async fn publication(&self, integration: &str) -> Value {
        let path = format!("{}/publications", self.post);
        let listed = self.company.client.get(&path).await.expect(200);
        let all = listed.at("/data").as_array().expect("publications").clone();
        let mut mine = all
            .into_iter()
            .filter(|one| one["integration_id"] == integration);
        mine.next().expect("a publication")
    }

    /// The publication, once it is as it should be.
    pub async fn until(&self, integration: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let found = self.publication(integration).await;
            if is_so(&found) {
                return found;
            }
            assert!(since.elapsed() < ENDS_WITHIN, "{found}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn becomes(&self, integration: &str, status: &str) -> Value {
        self.until(integration, |publication| publication["status"] == status)
            .await
    }

    pub async fn test(&self, body: Value) -> (bool, String) {
        let path = format!("{}/test", self.integrations());
        let tested = self.company.client.post(&path, body).await.expect(200);
        (
            tested.at("/data/success") == true,
            tested.text("/data/message"),
        )
    }

    async fn change_title(&self, title: &str) {
        let changed = self
            .company
            .client
            .patch(&self.post, json!({"title": title}));
        changed.await.expect(200);
    }
}

/// A post reaches a receiver signed, in time, as HTML that runs nothing; published again it is sent with what the receiver calls it. The
/// secret is shown nowhere, stands nowhere on the disk, and is gone with its integration.
#[tokio::test]
async fn a_signed_request_brings_a_post() {
    let (author, platform) = (Author::new("signs").await, Platform::webhook().await);
    let id = author.webhook(&platform.base_url()).await;
    let (works, message) = author.test(json!({"integration_id": id})).await;
    assert!(works, "{message}");
    assert_eq!(platform.asked()[0].body["type"], "ping");
    let one = format!("{}/{id}", author.integrations());
    let client = &author.company.client;
    let shown = client.get(&one).await.expect(200);
    assert_eq!(
        (
            shown.at("/data/status"),
            shown.at("/data/has_credentials"),
            shown.at("/data/config")
        ),
        (
            &json!("active"),
            &json!(true),
            &json!({"base_url": platform.base_url(), "path": "/hooks"})
        )
    );
    assert!(shown.at("/data/last_tested_at").is_string());

    let asked = author.publish(&id).await;
    assert_eq!(asked.at("/data/status"), "pending");
    let there = author.becomes(&id, "published").await;
    assert_eq!(
        (
            &there["external_id"],
            &there["external_url"],
            &there["attempts"],
            &there["error"]
        ),
        (
            &json!("7"),
            &json!("https://example.com/7"),
            &json!(1),
            &Value::Null
        )
    );
    assert!(
        there["published_at"].is_string() && there["next_attempt_at"].is_null(),
        "{there}"
    );
    let sent = platform.asked().remove(1);
    assert_eq!(
        (sent.method.as_str(), sent.path.as_str()),
        ("POST", "/hooks")
    );
    assert_eq!(sent.body["type"], "post.published");
    let post = &sent.body["data"]["post"];
    assert_eq!(
        (&post["title"], &post["status"]),
        (&json!("Goals & <more>"), &json!("published"))
    );
    assert_eq!(
        post["body_html"],
        "<h1>Goals</h1>\n<p><strong>Many</strong> &lt;script&gt;goals&lt;/script&gt;.</p>\n"
    );
    assert_eq!(sent.body["data"]["remote_id"], Value::Null);

    author.change_title("Anew").await;
    let path = format!("{}/publications", author.post);
    let again = client
        .post(&path, json!({"integration_id": id}))
        .await
        .expect(202);
    assert_eq!(again.at("/data/id"), &there["id"]);
    let sent_again = platform.wait_for(3).await.remove(2);
    assert_eq!(sent_again.body["data"]["remote_id"], "7");
    assert_eq!(sent_again.body["data"]["post"]["title"], "Anew");
    assert_ne!(sent_again.header("webhook-id"), sent.header("webhook-id"));
    author.becomes(&id, "published").await;
    let summary = client.get(&author.company.path("/posts/summary")).await;
    assert_eq!(summary.expect(200).at("/data/publications"), 1);

    for path in [
        author.integrations(),
        one.clone(),
        path.clone(),
        author.company.path("/audit-log"),
    ] {
        let shown = client.get(&path).await.expect(200);
        assert!(
            !shown.body.to_string().contains("hunter2"),
            "{}",
            shown.body
        );
    }
    let data_dir = &host().await.data_dir;
    let in_hex: String = WEBHOOK_SECRET
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    for plain in [WEBHOOK_SECRET, &in_hex] {
        let search = || {
            let found = std::process::Command::new("grep")
                .args(["-rqaF", "--", plain])
                .arg(data_dir)
                .status();
            found.expect("grep").code()
        };
        // A file that goes away meanwhile is an error to grep.
        let mut tries = std::iter::repeat_with(search).take(20);
        let found = tries.find(|code| *code != Some(2));
        assert_eq!(
            found,
            Some(Some(1)),
            "the secret is on the disk in the open"
        );
    }

    client.delete(&one).await.expect(204);
    client
        .get(&one)
        .await
        .expect_error(404, "INTEGRATION_NOT_FOUND");
    let to = format!("{}/publish/{id}", author.post);
    client
        .post(&to, json!({}))
        .await
        .expect_error(404, "INTEGRATION_NOT_FOUND");
    assert_eq!(author.publication(&id).await["external_id"], "7");
    client.delete(&author.post).await.expect(204);
    client.get(&path).await.expect_error(404, "POST_NOT_FOUND");
}

/// WordPress gets a post once, though the answer to its making is lost; a change updates it; what an editor has deleted is made anew.
#[tokio::test]
async fn wordpress_has_a_post_once() {
    let (author, blog) = (Author::new("wordpress").await, Platform::wordpress().await);
    let id = author.wordpress(&blog.base_url()).await;
    let (works, message) = author.test(json!({"integration_id": id})).await;
    assert!(works && message.contains("Ann"), "{message}");
    // The tag and the search are answered, the post is made, and nobody hears of it.
    let wait = || Instead::Answer(201, None, r#"{"id": 3}"#.to_owned());
    blog.next([
        wait(),
        Instead::Answer(200, None, "[]".to_owned()),
        Instead::LoseTheAnswer,
    ]);
    author.publish(&id).await;
    let there = author.becomes(&id, "published").await;
    assert_eq!(
        (&there["external_id"], &there["attempts"]),
        (&json!("1"), &json!(2))
    );
    assert_eq!(there["external_url"], "https://blog.example.com/?p=1");
    let posts = blog.posts();
    assert_eq!(posts.len(), 1, "{posts:#?}");
    assert_eq!(
        (&posts[0]["title"], &posts[0]["status"], &posts[0]["tags"]),
        (
            &json!("Goals &amp; &lt;more&gt;"),
            &json!("publish"),
            &json!([3])
        )
    );

    author.change_title("Anew").await;
    let unpublish = format!("{}/unpublish", author.post);
    author
        .company
        .client
        .post(&unpublish, json!({}))
        .await
        .expect(200);
    author.publish(&id).await;
    author
        .until(&id, |one| {
            one["status"] == "published" && one["published_at"] != there["published_at"]
        })
        .await;
    let posts = blog.posts();
    assert_eq!(
        (posts.len(), &posts[0]["title"], &posts[0]["status"]),
        (1, &json!("Anew"), &json!("draft"))
    );
}

/// Ghost gets a post once, under tokens that it checks, and in the version that is there.
#[tokio::test]
async fn ghost_has_a_post_once() {
    let (author, blog) = (Author::new("ghost").await, Platform::ghost().await);
    let body = json!({"platform": "ghost", "name": "blog", "config": {"base_url": blog.base_url()}, "credentials": {"admin_api_key": GHOST_KEY}});
    let (works, message) = author.test(body.clone()).await;
    assert!(works, "{message}");
    let id = author.integration(body).await;
    blog.next([
        Instead::Answer(404, None, "{}".to_owned()),
        Instead::LoseTheAnswer,
    ]);
    author.publish(&id).await;
    let there = author.becomes(&id, "published").await;
    assert_eq!((&there["attempts"], blog.posts().len()), (&json!(2), 1));
    assert!(
        there["external_url"]
            .as_str()
            .unwrap()
            .starts_with("https://ghost.example.com/goals-"),
        "{there}"
    );
    author.change_title("Anew").await;
    author.publish(&id).await;
    author
        .until(&id, |one| {
            one["status"] == "published" && one["published_at"] != there["published_at"]
        })
        .await;
    let posts = blog.posts();
    assert_eq!((posts.len(), &posts[0]["title"]), (1, &json!("Anew")));
    assert!(
        posts[0]["html"]
            .as_str()
            .unwrap()
            .starts_with("<h1>Goals</h1>")
    );

    let wrong = GHOST_KEY.replace("00", "ff");
    let body = json!({"platform": "ghost", "name": "x", "config": {"base_url": blog.base_url()}, "credentials": {"admin_api_key": wrong}});
    let (works, message) = author.test(body).await;
    assert!(
        !works && message.contains("the signature is wrong"),
        "{message}"
    );
}

/// A failed publication is tried again when the platform wants it, and shown meanwhile; one that the platform refuses waits until somebody has
/// mended it and asks anew. No word of a platform brings the credential to light.
#[tokio::test]
async fn what_fails_is_tried_again_and_shown() {
    let (author, chat) = (Author::new("chats").await, Platform::slack().await);
    let id = author.slack(&chat.base_url()).await;
    let down = format!("upstream of {SLACK_PATH} is down");
    chat.next([Instead::Answer(503, Some(("retry-after", "7")), down)]);
    author.publish(&id).await;
    let waits = author.becomes(&id, "retrying").await;
    let error = waits["error"].as_str().unwrap();
    assert!(
        error.contains("503") && error.contains("is down") && !error.contains("hunter2"),
        "{error}"
    );
    let micros = |value: &Value| {
        let time: jiff::Timestamp = value.as_str().expect("a time").parse().expect("a time");
        time.as_microsecond()
    };
    let pause =
        (micros(&waits["next_attempt_at"]) - micros(&waits["last_attempt_at"])) as f64 / 1e6;
    assert!((7.0..20.0).contains(&pause), "{pause}");
    let there = author.becomes(&id, "published").await;
    assert_eq!(
        (&there["attempts"], &there["error"]),
        (&json!(2), &Value::Null)
    );
    let said = chat.asked().pop().unwrap();
    let text = said.body["text"].as_str().unwrap();
    assert!(
        text.starts_with("*<https://blog.example.com/goals-")
            && text.contains("Goals &amp; &lt;more&gt;"),
        "{text}"
    );

    chat.next([Instead::Answer(403, None, "invalid_token".to_owned())]);
    author.publish(&id).await;
    let refused = author.becomes(&id, "failed").await;
    assert_eq!(
        (&refused["next_attempt_at"], &refused["attempts"]),
        (&Value::Null, &json!(1))
    );
    assert!(
        refused["error"].as_str().unwrap().contains("invalid_token"),
        "{refused}"
    );
    let asked = chat.asked().len();
    tokio::time::sleep(QUIET).await;
    assert_eq!(chat.asked().len(), asked);
    author.publish(&id).await;
    author.becomes(&id, "published").await;

    // A chat has no drafts.
    let unpublish = format!("{}/unpublish", author.post);
    author
        .company
        .client
        .post(&unpublish, json!({}))
        .await
        .expect(200);
    author.publish(&id).await;
    let refused = author.becomes(&id, "failed").await;
    assert!(
        refused["error"].as_str().unwrap().contains("draft"),
        "{refused}"
    );
}

/// Servers that are away, hang, never end, speak nonsense, lie or send elsewhere: each is told apart in words, none is followed, and another
/// integration is served all the while.
#[tokio::test]
async fn a_platform_may_do_its_worst() {
    let author = Author::new("worst").await;
    let (elsewhere, fine) = (Platform::webhook().await, Platform::webhook().await);
    let redirecting = Platform::webhook().await;
    redirecting
        .next((0..9).map(|_| Instead::RedirectTo(format!("{}/hooks", elsewhere.base_url()))));
    let silent = Platform::webhook().await;
    silent.next((0..9).map(|_| Instead::Silence));
    let lying = Platform::wordpress().await;
    lying.next((0..9).map(|_| {
        Instead::Answer(
            200,
            None,
            r#"{"id":{},"link":"javascript:alert(1)"}"#.to_owned(),
        )
    }));
    let gone = RawServer::start(Raw::Closes).await;
    let gone_url = gone.base_url();
    drop(gone);
    let mut raws = Vec::new();
    for raw in [
        Raw::Endless,
        Raw::EndlessHead,
        Raw::Garbage,
        Raw::Closes,
        Raw::Drips,
    ] {
        raws.push(RawServer::start(raw).await);
    }
    let mut bad = vec![
        (
            author.webhook(&redirecting.base_url()).await,
            "failed",
            "redirects",
        ),
        (
            author.wordpress(&lying.base_url()).await,
            "retrying",
            "answered without",
        ),
        (
            author.webhook(&gone_url).await,
            "retrying",
            "refused the connection",
        ),
    ];
    for (raw, says) in raws.iter().zip(["too long", "", "", "", ""]) {
        let id = author.webhook(&raw.base_url()).await;
        // The last one drips until its time is over.
        if raw.address != raws[4].address {
            bad.push((id, "retrying", says));
        } else {
            author.publish(&id).await;
        }
    }
    let hangs = author.webhook(&silent.base_url()).await;
    author.publish(&hangs).await;
    for (id, _, _) in &bad {
        author.publish(id).await;
    }
    let well = author.webhook(&fine.base_url()).await;
    author.publish(&well).await;
    for (id, status, says) in &bad {
        let found = author.until(id, |one| one["error"].is_string()).await;
        let error = found["error"].as_str().unwrap();
        assert!(error.contains(says), "{says}: {error}");
        assert_eq!(found["status"], *status, "{found}");
        assert!(
            !error.contains("hunter2") && !error.contains("bbbb"),
            "{error}"
        );
        assert_eq!(
            (&found["external_id"], &found["external_url"]),
            (&Value::Null, &Value::Null)
        );
    }
    author.becomes(&well, "published").await;
    assert_eq!(elsewhere.asked().len(), 0, "a redirect was followed");
    assert_eq!(author.publication(&hangs).await["status"], "pending");
}

/// All that is wrong with an integration is named; addresses that nothing is sent to are refused; a new address needs the credentials again;
/// who may only read may not write, and another company's is not there.
#[tokio::test]
async fn what_is_no_integration_is_refused() {
    let (author, platform) = (Author::new("wrong").await, Platform::webhook().await);
    let (client, path) = (&author.company.client, author.integrations());
    let fields = |answer: &Answer| -> Vec<String> {
        let errors = answer
            .at("/error/details/errors")
            .as_array()
            .expect("errors");
        errors
            .iter()
            .map(|error| error["field"].as_str().expect("a field").to_owned())
            .collect()
    };
    let empty = client
        .post(&path, json!({}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(fields(&empty), ["platform", "name", "config"]);
    let wrong = json!({
        "platform": "wordpress", "name": "", "user_id": "no id", "config": {"base_url": "ftp://x", "username": "ann", "depth": 7},
        "credentials": {"application_password": "short", "other": "x"}
    });
    let wrong = client
        .post(&path, wrong)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        fields(&wrong),
        [
            "user_id",
            "config.depth",
            "name",
            "config.username",
            "credentials.application_password",
            "credentials.username",
            "credentials.other",
            "config.base_url"
        ]
    );
    let unknown = json!({"platform": "postgres", "name": "x", "config": {}, "credentials": {}});
    let unknown = client
        .post(&path, unknown)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(fields(&unknown), ["platform"]);
    let at = |base_url: &str| json!({"platform": "webhook", "name": "x", "config": {"base_url": base_url}, "credentials": {"secret": WEBHOOK_SECRET}});
    for unsafe_url in [
        "https://10.0.0.1",
        "http://example.com",
        "https://169.254.169.254/latest",
        "https://[::1]:1",
        "https://0x0a.1",
    ] {
        let refused = client
            .post(&path, at(unsafe_url))
            .await
            .expect_error(400, "UNSAFE_URL");
        assert_eq!(fields(&refused), ["config.base_url"], "{unsafe_url}");
        let tested = client.post(&format!("{path}/test"), at(unsafe_url)).await;
        tested.expect_error(400, "UNSAFE_URL");
    }

    let id = author.webhook(&platform.base_url()).await;
    let one = format!("{path}/{id}");
    let other = Platform::webhook().await;
    let moved = json!({"config": {"base_url": other.base_url()}});
    let refused = client
        .patch(&one, moved)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(fields(&refused), ["credentials"]);
    let platform_changed = client.patch(&one, json!({"platform": "ghost"})).await;
    assert_eq!(
        fields(&platform_changed.expect_error(400, "VALIDATION_ERROR")),
        ["platform"]
    );
    let renamed = client
        .patch(&one, json!({"name": "other name"}))
        .await
        .expect(200);
    assert_eq!(renamed.at("/data/name"), "other name");
    let moved = json!({"config": {"base_url": other.base_url()}, "credentials": {"secret": WEBHOOK_SECRET}});
    client.patch(&one, moved).await.expect(200);
    author.publish(&id).await;
    author.becomes(&id, "published").await;
    assert_eq!((platform.asked().len(), other.asked().len()), (0, 1));
    let wrong_secret = json!({"credentials": {"secret": "another secret of mine"}});
    client.patch(&one, wrong_secret).await.expect(200);
    let (works, message) = author.test(json!({"integration_id": id})).await;
    assert!(
        !works && message.contains("the signature is wrong"),
        "{message}"
    );
    let shown = client.get(&one).await.expect(200);
    assert_eq!(shown.at("/data/status"), "failed");
    assert!(shown.at("/data/last_error").is_string());

    let keys = author.company.path("/api-keys");
    let reader = client
        .post(&keys, json!({"name": "reader", "role_id": 2}))
        .await
        .expect(201);
    let reader = host().await.client(&reader.text("/data/key"));
    reader.get(&path).await.expect(200);
    reader
        .post(&path, json!({}))
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    reader
        .delete(&one)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    let stranger = Author::new("stranger").await;
    let foreign = format!("{}/publish/{id}", stranger.post);
    let refused = stranger.company.client.post(&foreign, json!({})).await;
    refused.expect_error(404, "INTEGRATION_NOT_FOUND");
    let theirs = stranger
        .company
        .path(&format!("/postgen_integrations/{id}"));
    for answer in [
        stranger.company.client.get(&theirs).await,
        stranger
            .company
            .client
            .patch(&theirs, json!({"name": "x"}))
            .await,
        stranger.company.client.delete(&theirs).await,
    ] {
        answer.expect_error(404, "INTEGRATION_NOT_FOUND");
    }
    let tested = json!({"integration_id": id});
    let tested = stranger
        .company
        .client
        .post(&stranger.company.path("/postgen_integrations/test"), tested)
        .await;
    tested.expect_error(404, "INTEGRATION_NOT_FOUND");
    // The platforms of publishers are no engines of connections.
    let engines = client.get("/storage-engines").await.expect(200);
    assert!(
        !engines.body.to_string().contains("wordpress"),
        "{}",
        engines.body
    );
}

/// A company's own publisher serves its integrations and nobody else's; what it does wrong fails one attempt, and what it says is looked at.
#[tokio::test]
async fn a_company_brings_its_own_publisher() {
    let (author, stranger) = (Author::new("own").await, Author::new("without").await);
    let platform = Platform::webhook().await;
    let client = &author.company.client;
    let body = || json!({"platform": "acme-notes", "name": "notes", "config": {"base_url": platform.base_url()}});
    let unknown = client.post(&author.integrations(), body()).await;
    unknown.expect_error(400, "VALIDATION_ERROR");
    let upload = author.company.path("/connectors?activate=true");
    let uploaded = client
        .post_wasm(&upload, guests::NOTES_PUBLISHER.to_vec())
        .await;
    assert_eq!(uploaded.expect(201).at("/data/status"), "active");
    let id = author.integration(body()).await;
    let foreign = stranger
        .company
        .client
        .post(&stranger.integrations(), body())
        .await;
    foreign.expect_error(400, "VALIDATION_ERROR");
    let ok = || Instead::Answer(200, None, String::new());
    platform.next([ok(), ok()]);
    let (works, message) = author.test(json!({"integration_id": id})).await;
    assert!(works, "{message}");
    author.publish(&id).await;
    let there = author.becomes(&id, "published").await;
    let post = author.post.rsplit('/').next().unwrap();
    assert_eq!(
        (&there["external_id"], &there["external_url"]),
        (&json!(post), &Value::Null)
    );
    let put = platform.asked().pop().unwrap();
    assert_eq!(
        (put.method, put.path),
        ("PUT".to_owned(), format!("/notes/{post}"))
    );
    assert!(put.text.starts_with("<h1>Goals</h1>"), "{}", put.text);

    let asked = platform.asked().len();
    for title in ["crash", "loop", "escape"] {
        author.change_title(title).await;
        author.publish(&id).await;
        let fails = author.until(&id, |one| one["error"].is_string()).await;
        assert_eq!(fails["status"], "retrying", "{title}: {fails}");
        assert!(
            !fails["error"].as_str().unwrap().contains("wasm"),
            "{fails}"
        );
    }
    assert_eq!(platform.asked().len(), asked);
}
