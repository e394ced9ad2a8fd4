//! WordPress's REST interface, with an application password: `POST /wp-json/wp/v2/posts`.
//!
//! A post is made once, whatever becomes of answers: it carries a comment with our id, and whoever makes one looks for it
//! first. A post that an editor has deleted for good is made anew.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use souk_sdk::publisher::{Check, Post, Publication, Visibility};
use souk_sdk::{Error, Http, HttpResponse, Published, Settings, http::Request};

use crate::answers::{bad_answer, refusal, remote_id, url};
use crate::markup::escaped;

const POSTS: &str = "/wp-json/wp/v2/posts";
const TAGS: &str = "/wp-json/wp/v2/tags";
/// A page of found posts with their text.
const RESPONSE_BYTES_MAX: u64 = 4 << 20;
/// Posts that may hold our id: one, unless somebody has copied it.
const FOUND_MAX: usize = 5;

pub struct WordPress {
    access: Access,
    /// `user:password` in base64.
    basic: String,
    http: Http,
}

#[derive(Deserialize)]
struct Access {
    username: String,
    application_password: String,
}

impl WordPress {
    pub fn open(settings: &Settings, http: Http) -> Result<WordPress, Error> {
        let access: Access = settings.parse()?;
        if access.username.contains(':') {
            return Err(Error::configuration(
                "invalid_settings",
                "the username must not hold a colon",
            ));
        }
        let basic = STANDARD.encode(format!(
            "{}:{}",
            access.username, access.application_password
        ));
        Ok(WordPress {
            access,
            basic,
            http,
        })
    }

    pub async fn publish(&self, publication: &Publication) -> Result<Published, Error> {
        let mut tags = Vec::with_capacity(publication.post.tags.len());
        for tag in &publication.post.tags {
            tags.push(self.tag(tag).await?);
        }
        let body = body(&publication.post, &tags).to_string();
        if let Some(known) = publication
            .remote_id
            .as_deref()
            .and_then(|id| id.parse::<u64>().ok())
        {
            let response = self
                .send(
                    "POST",
                    format!("{POSTS}/{known}?_fields=id,link"),
                    body.clone(),
                )
                .await?;
            if response.status != 404 {
                return self.published(&response);
            }
        }
        let path = match self.find(&publication.post).await? {
            Some(id) => format!("{POSTS}/{id}?_fields=id,link"),
            None => format!("{POSTS}?_fields=id,link"),
        };
        self.published(&self.send("POST", path, body).await?)
    }

    pub async fn check(&self, _: &Check) -> Result<Option<String>, Error> {
        let path = "/wp-json/wp/v2/users/me?context=edit&_fields=name,capabilities";
        let response = self.send("GET", path.to_owned(), String::new()).await?;
        let user = self.success(&response)?;
        if user["capabilities"]["edit_posts"] == Value::Bool(false) {
            return Err(Error::permission(
                "not_allowed",
                "this user may not write posts at the platform",
            ));
        }
        Ok(user["name"].as_str().map(str::to_owned))
    }

    /// What WordPress has made of this post before.
    async fn find(&self, post: &Post) -> Result<Option<u64>, Error> {
        let query = format!(
            "{POSTS}?context=edit&status=publish,future,draft,pending,private&per_page={FOUND_MAX}&_fields=id,content&search={}",
            post.id
        );
        let response = self.send("GET", query, String::new()).await?;
        let found = self.success(&response)?;
        let marked = marker(post);
        let is_it = |one: &&Value| {
            one["content"]["raw"]
                .as_str()
                .is_some_and(|raw| raw.contains(&marked))
        };
        Ok(found
            .as_array()
            .into_iter()
            .flatten()
            .find(is_it)
            .and_then(|one| one["id"].as_u64()))
    }

    /// A tag's number. One that is there already is named in the refusal to make it.
    async fn tag(&self, name: &str) -> Result<u64, Error> {
        let body = json!({"name": name}).to_string();
        let response = self
            .send("POST", format!("{TAGS}?_fields=id"), body)
            .await?;
        let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let id = match response.status {
            200..300 => &answer["id"],
            400 if answer["code"] == "term_exists" => &answer["data"]["term_id"],
            _ => return Err(self.refusal(&response)),
        };
        id.as_u64().ok_or_else(|| bad_answer("a tag's id"))
    }

    fn published(&self, response: &HttpResponse) -> Result<Published, Error> {
        let post = self.success(response)?;
        if !post["id"].is_u64() {
            return Err(bad_answer("the post's id"));
        }
        Ok(Published {
            remote_id: remote_id(&post["id"]),
            url: url(&post["link"]),
        })
    }

    fn success(&self, response: &HttpResponse) -> Result<Value, Error> {
        match response.status {
            200..300 => serde_json::from_slice(&response.body).map_err(|_| bad_answer("JSON")),
            _ => Err(self.refusal(response)),
        }
    }

    fn refusal(&self, response: &HttpResponse) -> Error {
        refusal(response, &[&self.basic, &self.access.application_password])
    }

    async fn send(&self, method: &str, path: String, body: String) -> Result<HttpResponse, Error> {
        let request = Request::new(method, path)
            .header("authorization", format!("Basic {}", self.basic))
            .header("accept", "application/json")
            .response_bytes_max(RESPONSE_BYTES_MAX);
        let request = match body.is_empty() {
            true => request,
            false => request.json(body),
        };
        Ok(self.http.send(request).await?)
    }
}

/// WordPress takes HTML for all of them, in the title too, and lets whoever may write any HTML there, such as an editor, write scripts.
fn body(post: &Post, tags: &[u64]) -> Value {
    json!({
        "title": escaped(&post.title),
        "slug": post.slug,
        "status": match post.visibility { Visibility::Draft => "draft", Visibility::Published => "publish" },
        "content": format!("{}\n{}", without_shortcodes(&post.html), marker(post)),
        "excerpt": escaped(&post.summary),
        "tags": tags,
    })
}

/// Between brackets WordPress and its plugins look for names of things to run. In HTML a bracket stands in text and in values only, where it may be
/// written as a reference.
fn without_shortcodes(html: &str) -> String {
    html.replace('[', "&#91;")
}

/// Not seen by readers, and found by WordPress's search.
fn marker(post: &Post) -> String {
    format!("<!-- {} -->", post.id)
}
