//! A company's own publisher: puts a post at `/notes/{id}`. By the title it can be made to crash, to loop and to ask for what it may not have.

use souk_sdk::publisher::{Check, Publication};
use souk_sdk::{Descriptor, Error, Http, Io, Need, Published, Publisher, Settings, http::Request};

struct Notes {
    http: Http,
}

impl Publisher for Notes {
    fn describe() -> Descriptor {
        Descriptor::new("notes", "1.0.0", Need::Http)
            .engine("acme-notes", "Notes", "none", &["NONE"])
            .settings_schema(r#"{"type":"object","required":["base_url"],"properties":{"base_url":{"type":"string"}}}"#)
    }

    async fn open(_: Settings, io: Io) -> Result<Notes, Error> {
        Ok(Notes { http: io.http() })
    }

    async fn publish(&self, publication: Publication) -> Result<Published, Error> {
        let post = publication.post;
        let mut path = format!("/notes/{}", post.id);
        match post.title.as_str() {
            "crash" => panic!("as the test wants it"),
            "loop" => loop {
                std::hint::black_box(&path);
            },
            "escape" => path = "/../admin".to_owned(),
            _ => {}
        }
        let request = Request::new("PUT", path).body(post.html);
        self.http.send(request).await?.success()?;
        Ok(Published {
            remote_id: Some(post.id),
            url: Some("javascript:alert(1)".to_owned()),
        })
    }

    async fn check(&self, _: Check) -> Result<Option<String>, Error> {
        self.http.send(Request::get("/")).await?.success()?;
        Ok(None)
    }
}

souk_sdk::export_publisher!(Notes);
