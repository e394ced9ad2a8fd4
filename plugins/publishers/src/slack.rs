//! An incoming webhook as Slack has them, and Mattermost, Rocket.Chat and Discord (below `/slack`) take them: a message
//! with the title, the summary and a link. A chat has no drafts and says nothing of what became of a message, so one
//! whose answer was lost is sent again.

use serde::Deserialize;
use serde_json::json;
use souk_sdk::publisher::{Check, Post, Publication, Visibility};
use souk_sdk::{Error, Http, HttpResponse, Published, Settings, http::Request};

use crate::answers::refusal;
use crate::markup::escaped;

/// `ok`, or an error's name.
const RESPONSE_BYTES_MAX: u64 = 64 << 10;

pub struct Slack {
    settings: Access,
    http: Http,
}

#[derive(Deserialize)]
struct Access {
    path: String,
    link: Option<String>,
}

impl Slack {
    pub fn open(settings: &Settings, http: Http) -> Result<Slack, Error> {
        let settings: Access = settings.parse()?;
        if !settings.path.starts_with('/') {
            return Err(Error::configuration(
                "invalid_settings",
                "the path must begin with /",
            ));
        }
        Ok(Slack { settings, http })
    }

    pub async fn publish(&self, publication: &Publication) -> Result<Published, Error> {
        let post = &publication.post;
        if post.visibility == Visibility::Draft {
            return Err(Error::unsupported("drafts: publish the post first"));
        }
        let link = self
            .settings
            .link
            .as_ref()
            .map(|link| link.replace("{slug}", &post.slug).replace("{id}", &post.id));
        let body = json!({"text": text(post, link.as_deref())}).to_string();
        let response = self.post(body, publication.limits.timeout_ms).await?;
        match response.status {
            200..300 => Ok(Published {
                remote_id: None,
                url: link,
            }),
            _ => Err(self.refusal(&response)),
        }
    }

    /// A message without anything in it is refused by a webhook that is there.
    pub async fn check(&self, check: &Check) -> Result<Option<String>, Error> {
        let response = self.post("{}".to_owned(), check.limits.timeout_ms).await?;
        match response.status {
            200..300 | 400 => Ok(None),
            _ => Err(self.refusal(&response)),
        }
    }

    async fn post(&self, body: String, timeout_ms: u32) -> Result<HttpResponse, Error> {
        let request = Request::post(&self.settings.path)
            .json(body)
            .timeout_ms(timeout_ms)
            .response_bytes_max(RESPONSE_BYTES_MAX);
        Ok(self.http.send(request).await?)
    }

    fn refusal(&self, response: &HttpResponse) -> Error {
        refusal(response, &[&self.settings.path])
    }
}

/// In Slack's own markup, in which a title cannot make links or call people.
fn text(post: &Post, link: Option<&str>) -> String {
    let title = escaped(&post.title);
    let title = match link {
        Some(link) => format!(
            "*<{}|{}>*",
            link.replace(['|', '>', '<'], ""),
            title.replace('|', "¦")
        ),
        None => format!("*{title}*"),
    };
    match post.summary.is_empty() {
        true => title,
        false => format!("{title}\n{}", escaped(&post.summary)),
    }
}
