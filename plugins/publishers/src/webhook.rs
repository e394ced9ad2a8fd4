//! A signed request to whoever wants to be told: `{type, timestamp, data}`, signed as Standard Webhooks has it, with the time
//! of the attempt. The receiver may answer what it calls the post, and is told it again the next time.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use souk_sdk::publisher::{Check, Publication, Visibility};
use souk_sdk::time::{DAY_US, Date, TimeOfDay};
use souk_sdk::{Error, Http, Published, Settings, http::Request};

use crate::answers::{refusal, remote_id, url};
use crate::signing::hmac_sha256;

/// A receiver's answer holds an id and an address at most.
const RESPONSE_BYTES_MAX: u64 = 64 << 10;
/// What marks a secret that is written in base64.
const SECRET_PREFIX: &str = "whsec_";

pub struct Webhook {
    settings: Access,
    key: Vec<u8>,
    http: Http,
}

#[derive(Deserialize)]
struct Access {
    #[serde(default = "root")]
    path: String,
    secret: String,
}

fn root() -> String {
    "/".to_owned()
}

impl Webhook {
    pub fn open(settings: &Settings, http: Http) -> Result<Webhook, Error> {
        let settings: Access = settings.parse()?;
        let key = match settings.secret.strip_prefix(SECRET_PREFIX) {
            None => settings.secret.clone().into_bytes(),
            Some(text) => STANDARD.decode(text).map_err(|_| {
                Error::configuration("invalid_settings", "the secret is not whsec_ and base64")
            })?,
        };
        Ok(Webhook {
            settings,
            key,
            http,
        })
    }

    pub async fn publish(&self, publication: &Publication) -> Result<Published, Error> {
        let post = &publication.post;
        let data = json!({
            "remote_id": publication.remote_id,
            "attempt": publication.attempt,
            "post": {
                "id": post.id, "title": post.title, "slug": post.slug, "summary": post.summary, "body_markdown": post.markdown,
                "body_html": post.html, "tags": post.tags, "cover_image_url": post.cover_image_url,
                "status": match post.visibility { Visibility::Draft => "draft", Visibility::Published => "published" },
                "published_at": post.published_at.map(instant), "updated_at": instant(post.updated_at),
            },
        });
        let answer = self
            .send(
                "post.published",
                data,
                &publication.request_id,
                publication.now,
                publication.limits.timeout_ms,
            )
            .await?;
        Ok(Published {
            remote_id: remote_id(&answer["id"]).or_else(|| publication.remote_id.clone()),
            url: url(&answer["url"]),
        })
    }

    pub async fn check(&self, check: &Check) -> Result<Option<String>, Error> {
        self.send(
            "ping",
            json!({}),
            &check.request_id,
            check.now,
            check.limits.timeout_ms,
        )
        .await?;
        Ok(None)
    }

    /// What the receiver answered, if it was JSON.
    async fn send(
        &self,
        kind: &str,
        data: Value,
        id: &str,
        now: i64,
        timeout_ms: u32,
    ) -> Result<Value, Error> {
        let body = json!({"type": kind, "timestamp": instant(now), "data": data}).to_string();
        let seconds = now.div_euclid(1_000_000);
        let signature = sign(&self.key, &format!("{id}.{seconds}.{body}"));
        let request = Request::post(&self.settings.path)
            .json(body)
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", format!("v1,{signature}"))
            .timeout_ms(timeout_ms)
            .response_bytes_max(RESPONSE_BYTES_MAX);
        let response = self.http.send(request).await?;
        match response.status {
            200..300 => Ok(serde_json::from_slice(&response.body).unwrap_or_default()),
            _ => Err(refusal(&response, &[&self.settings.secret])),
        }
    }
}

fn sign(key: &[u8], signed: &str) -> String {
    STANDARD.encode(hmac_sha256(key, signed.as_bytes()))
}

/// Microseconds as RFC 3339 has it.
fn instant(micros: i64) -> String {
    let date = Date::from_days(micros.div_euclid(DAY_US));
    format!("{date}T{}Z", TimeOfDay::of(micros))
}
