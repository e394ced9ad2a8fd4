//! Ghost's Admin API, with a key of a custom integration: `POST /ghost/api/admin/posts/?source=html`, each request with
//! a token of its own, signed for the time that the host says it is.
//!
//! A post is made once, whatever becomes of answers: it carries a comment with our id, and whoever makes one looks first
//! whether the slug is taken by it. An update names the version that it replaces, so that nobody's is overwritten unseen.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};
use souk_sdk::publisher::{Check, Post, Publication, Visibility};
use souk_sdk::{Error, Http, HttpResponse, Published, Settings, http::Request};

use crate::answers::{bad_answer, refusal, remote_id, url};
use crate::signing::hmac_sha256;

const POSTS: &str = "/ghost/api/admin/posts/";
/// A post with its text, in several forms.
const RESPONSE_BYTES_MAX: u64 = 4 << 20;
/// Ghost takes tokens of up to five minutes; clocks differ.
const TOKEN_S: i64 = 240;
/// The lengths that Ghost takes.
const TITLE_CHARS_MAX: usize = 255;
const EXCERPT_CHARS_MAX: usize = 300;

pub struct Ghost {
    key_id: String,
    /// As it is written: in hexadecimal.
    secret: String,
    key: Vec<u8>,
    http: Http,
}

#[derive(Deserialize)]
struct Access {
    admin_api_key: String,
}

impl Ghost {
    pub fn open(settings: &Settings, http: Http) -> Result<Ghost, Error> {
        let access: Access = settings.parse()?;
        let wrong = || {
            Error::configuration(
                "invalid_settings",
                "the Admin API key must be an id, a colon and a secret in hexadecimal",
            )
        };
        let (key_id, secret) = access
            .admin_api_key
            .trim()
            .split_once(':')
            .ok_or_else(wrong)?;
        let is_id = !key_id.is_empty() && key_id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let key = hex::decode(secret)
            .ok()
            .filter(|key| is_id && !key.is_empty());
        Ok(Ghost {
            key: key.ok_or_else(wrong)?,
            key_id: key_id.to_owned(),
            secret: secret.to_owned(),
            http,
        })
    }

    pub async fn publish(&self, publication: &Publication) -> Result<Published, Error> {
        let (post, now) = (&publication.post, publication.now);
        let response = match self.known(publication).await? {
            Some((id, updated_at)) => {
                let body = body(post, Some(&updated_at));
                self.send("PUT", &format!("{POSTS}{id}/?source=html"), Some(body), now)
                    .await?
            }
            None => {
                self.send(
                    "POST",
                    &format!("{POSTS}?source=html"),
                    Some(body(post, None)),
                    now,
                )
                .await?
            }
        };
        let saved = self.first(&response)?;
        Ok(Published {
            remote_id: Some(remote_id(&saved["id"]).ok_or_else(|| bad_answer("the post's id"))?),
            url: url(&saved["url"]),
        })
    }

    pub async fn check(&self, check: &Check) -> Result<Option<String>, Error> {
        let response = self
            .send(
                "GET",
                &format!("{POSTS}?limit=1&fields=id"),
                None,
                check.now,
            )
            .await?;
        let answer = self.success(&response)?;
        match answer["posts"].is_array() {
            true => Ok(None),
            false => Err(bad_answer("posts")),
        }
    }

    /// What Ghost has of this post: its id, and the version to replace.
    async fn known(&self, publication: &Publication) -> Result<Option<(String, String)>, Error> {
        let (post, now) = (&publication.post, publication.now);
        if let Some(id) = publication.remote_id.as_deref().filter(|id| is_plain(id))
            && let Some(found) = self
                .get(&format!("{POSTS}{id}/?fields=id,updated_at"), now)
                .await?
        {
            return version(&found).map(Some);
        }
        let by_slug = format!(
            "{POSTS}slug/{}/?fields=id,updated_at,codeinjection_foot",
            post.slug
        );
        match self.get(&by_slug, now).await? {
            Some(found)
                if found["codeinjection_foot"]
                    .as_str()
                    .is_some_and(|text| text.contains(&marker(post))) =>
            {
                version(&found).map(Some)
            }
            // None, or somebody else's: Ghost gives ours another slug.
            _ => Ok(None),
        }
    }

    async fn get(&self, path: &str, now: i64) -> Result<Option<Value>, Error> {
        let response = self.send("GET", path, None, now).await?;
        match response.status {
            404 => Ok(None),
            _ => self.first(&response).map(Some),
        }
    }

    fn first(&self, response: &HttpResponse) -> Result<Value, Error> {
        let mut answer = self.success(response)?;
        match answer.pointer_mut("/posts/0").map(Value::take) {
            Some(post) if post.is_object() => Ok(post),
            _ => Err(bad_answer("the post")),
        }
    }

    fn success(&self, response: &HttpResponse) -> Result<Value, Error> {
        match response.status {
            200..300 => serde_json::from_slice(&response.body).map_err(|_| bad_answer("JSON")),
            _ => Err(refusal(response, &[&self.secret])),
        }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        now: i64,
    ) -> Result<HttpResponse, Error> {
        let request = Request::new(method, path)
            .header("authorization", format!("Ghost {}", self.token(now)))
            .header("accept", "application/json")
            .header("accept-version", "v5.0")
            .response_bytes_max(RESPONSE_BYTES_MAX);
        let request = match body {
            Some(body) => request.json(body.to_string()),
            None => request,
        };
        Ok(self.http.send(request).await?)
    }

    /// A JWT for some minutes from now, signed with HS256.
    fn token(&self, now: i64) -> String {
        let issued = now.div_euclid(1_000_000);
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(json!({"alg": "HS256", "kid": self.key_id, "typ": "JWT"}));
        let claims = part(json!({"iat": issued, "exp": issued + TOKEN_S, "aud": "/admin/"}));
        let signed = format!("{head}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(hmac_sha256(&self.key, signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

fn version(found: &Value) -> Result<(String, String), Error> {
    let id = found["id"].as_str().filter(|id| is_plain(id));
    let updated_at = found["updated_at"].as_str();
    match (id, updated_at) {
        (Some(id), Some(updated_at)) => Ok((id.to_owned(), updated_at.to_owned())),
        _ => Err(bad_answer("the post's id and version")),
    }
}

/// What may stand in a path.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn body(post: &Post, updated_at: Option<&str>) -> Value {
    let cut = |text: &str, chars: usize| text.chars().take(chars).collect::<String>();
    let mut body = json!({
        "title": cut(&post.title, TITLE_CHARS_MAX),
        "slug": post.slug,
        "html": post.html,
        "status": match post.visibility { Visibility::Draft => "draft", Visibility::Published => "published" },
        "custom_excerpt": (!post.summary.is_empty()).then(|| cut(&post.summary, EXCERPT_CHARS_MAX)),
        "feature_image": post.cover_image_url,
        "tags": post.tags.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "codeinjection_foot": marker(post),
    });
    if let Some(updated_at) = updated_at {
        body["updated_at"] = updated_at.into();
    }
    json!({"posts": [body]})
}

fn marker(post: &Post) -> String {
    format!("<!-- {} -->", post.id)
}
