//! Posts at integrations, as their company sees them: publishers in the sandbox speak to servers that behave as WordPress, Ghost, Slack and a
//! receiver of signed requests do, and to some that do not.

mod integrations;
mod platforms;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::platforms::{SLACK_PATH, WEBHOOK_SECRET, WORDPRESS_PASSWORD, WORDPRESS_USER};
use souk_tests::{Answer, Company, Platform};

use crate::{host, unique};

/// A publication ends within moments. On a loaded machine an attempt may fail that should not, and the next but one comes a minute later.
const ENDS_WITHIN: Duration = Duration::from_secs(180);

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
