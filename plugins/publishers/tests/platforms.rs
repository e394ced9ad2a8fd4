//! Each publisher by hand against a platform that is a function: what it asks, and what it makes of the answers. Against real servers, in the
//! sandbox: `tests/api/publishing.rs`.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use souk_publishers::Publishers;
use souk_sdk::publisher::{Check, Post, Publication, Request, Visibility};
use souk_sdk::{
    Command, Error, ErrorClass, Event, HttpRequest, HttpResponse, Input, Limits, Machine,
    Published, PublisherDriver, Settings, Step,
};

const LIMITS: Limits = Limits {
    rows_max: 1,
    bytes_max: 1 << 16,
    timeout_ms: 1_000,
};
/// 2026-11-22T10:00:00Z
const NOW: i64 = 1_795_341_600_000_000;

fn publication() -> Publication {
    Publication {
        request_id: "pub_1-1".into(),
        attempt: 1,
        remote_id: None,
        post: Post {
            id: "pst_1".into(),
            title: "Goals & <more>".into(),
            slug: "goals".into(),
            summary: "About goals & <more>".into(),
            markdown: "# Goals".into(),
            html: "<h1>Goals</h1> [gallery]".into(),
            tags: vec!["goals".into(), "known".into()],
            cover_image_url: Some("https://example.com/i.png".into()),
            visibility: Visibility::Published,
            published_at: Some(NOW),
            updated_at: NOW,
        },
        now: NOW,
        limits: LIMITS,
    }
}

/// Asks the publisher, and answers its requests until it is done. The answer's row, as texts.
fn ask(
    platform: &str,
    settings: Value,
    request: Request,
    mut answer: impl FnMut(&HttpRequest) -> (u16, Value),
) -> Result<Vec<Option<String>>, Error> {
    let settings = Settings {
        engine: platform.into(),
        json: settings.to_string(),
    };
    let mut session = PublisherDriver::<Publishers>::open(settings)?;
    let mut step = Step::default();
    session.start(&mut step)?;
    assert_eq!(step.into_parts().1, [Event::Ready]);
    let mut step = Step::default();
    session.submit(1, request, &mut step)?;
    loop {
        let (commands, events) = step.into_parts();
        step = Step::default();
        match events.as_slice() {
            [] => {}
            [Event::Failed(failure)] => return Err(failure.error.clone()),
            [Event::Columns(_), Event::Batch(rows), Event::Done(1)] => {
                let cells = rows.batch.chunks.iter();
                return Ok(cells.map(text).collect());
            }
            other => panic!("{other:?}"),
        }
        let [Command::Request(request)] = commands.as_slice() else {
            panic!("{commands:?}")
        };
        let (status, body) = answer(request);
        let response = HttpResponse {
            id: request.id,
            status,
            headers: Vec::new(),
            body: match body {
                Value::String(text) => text.into_bytes(),
                body => body.to_string().into_bytes(),
            },
        };
        session.receive(Input::Response(response), &mut step)?;
    }
}

fn text(chunk: &souk_sdk::Chunk) -> Option<String> {
    let souk_sdk::ColumnData::VarLen(values) = &chunk.data else {
        panic!("{chunk:?}")
    };
    let is_null = chunk.validity.as_ref().is_some_and(|bits| bits[0] & 1 == 0);
    (!is_null).then(|| String::from_utf8(values.bytes.clone()).unwrap())
}

fn publish(
    platform: &str,
    settings: Value,
    publication: Publication,
    answer: impl FnMut(&HttpRequest) -> (u16, Value),
) -> Result<Published, Error> {
    let row = ask(platform, settings, Request::Publish(publication), answer)?;
    let [remote_id, url] = row.as_slice() else {
        panic!("{row:?}")
    };
    Ok(Published {
        remote_id: remote_id.clone(),
        url: url.clone(),
    })
}

fn check(
    platform: &str,
    settings: Value,
    answer: impl FnMut(&HttpRequest) -> (u16, Value),
) -> Result<Option<String>, Error> {
    let check = Check {
        request_id: "int_1".into(),
        now: NOW,
        limits: LIMITS,
    };
    Ok(ask(platform, settings, Request::Check(check), answer)?.remove(0))
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> &'a str {
    let found = request.headers.iter().find(|header| header.name == name);
    found.map_or("", |header| &header.value)
}

fn json_of(request: &HttpRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}

fn hmac(key: &[u8], signed: &str) -> Vec<u8> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
    mac.update(signed.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// As much of WordPress as matters.
#[derive(Default)]
struct WordPress {
    posts: Vec<Value>,
    asked: Vec<String>,
}

const WORDPRESS: &str = "Basic YW5uOmFhYWEgYmJiYiBjY2Nj";

fn wordpress() -> Value {
    json!({"username": "ann", "application_password": "aaaa bbbb cccc"})
}

impl WordPress {
    fn answer(&mut self, request: &HttpRequest) -> (u16, Value) {
        self.asked
            .push(format!("{} {}", request.method, request.path));
        if header(request, "authorization") != WORDPRESS {
            return (401, json!({"code": "incorrect_password", "message": "no"}));
        }
        let path = request.path.split('?').next().unwrap_or_default();
        let rest = path.strip_prefix("/wp-json/wp/v2/").expect("its interface");
        match (request.method.as_str(), rest) {
            ("GET", "users/me") => (
                200,
                json!({"name": "Ann", "capabilities": {"edit_posts": true}}),
            ),
            ("GET", "posts") => (200, Value::from(self.posts.clone())),
            ("POST", "tags") if json_of(request)["name"] == "known" => {
                (400, json!({"code": "term_exists", "data": {"term_id": 9}}))
            }
            ("POST", "tags") => (201, json!({"id": 8})),
            ("POST", "posts") => {
                let id = self.posts.len() as u64 + 1;
                self.posts.push(Value::Null);
                self.write(id, request);
                (
                    201,
                    json!({"id": id, "link": format!("https://blog.example.com/{id}")}),
                )
            }
            ("POST", one) => {
                let id: u64 = one.strip_prefix("posts/").unwrap().parse().unwrap();
                if id > self.posts.len() as u64 {
                    return (404, json!({"code": "rest_post_invalid_id"}));
                }
                self.write(id, request);
                (
                    200,
                    json!({"id": id, "link": format!("https://blog.example.com/{id}")}),
                )
            }
            other => panic!("{other:?}"),
        }
    }

    fn write(&mut self, id: u64, request: &HttpRequest) {
        let mut post = json_of(request);
        post["content"] = json!({"raw": post["content"]});
        post["id"] = id.into();
        self.posts[id as usize - 1] = post;
    }
}

/// A post is made with its tags, updated by its id, found again when the answer was lost, and made anew when it was deleted.
#[test]
fn wordpress_has_a_post_once() {
    let mut blog = WordPress::default();
    let first = publish("wordpress", wordpress(), publication(), |request| {
        blog.answer(request)
    })
    .unwrap();
    assert_eq!(first.remote_id.as_deref(), Some("1"));
    assert_eq!(first.url.as_deref(), Some("https://blog.example.com/1"));
    let made = &blog.posts[0];
    assert_eq!(
        (
            &made["title"],
            &made["slug"],
            &made["status"],
            &made["excerpt"],
            &made["tags"]
        ),
        (
            &json!("Goals &amp; &lt;more&gt;"),
            &json!("goals"),
            &json!("publish"),
            &json!("About goals &amp; &lt;more&gt;"),
            &json!([8, 9])
        )
    );
    assert!(
        made["content"]["raw"]
            .as_str()
            .unwrap()
            .starts_with("<h1>Goals</h1> &#91;gallery]\n")
    );

    // The answer was lost: nobody knows the id.
    let again = publish("wordpress", wordpress(), publication(), |request| {
        blog.answer(request)
    })
    .unwrap();
    assert_eq!((again, blog.posts.len()), (first.clone(), 1));

    let mut changed = publication();
    changed.remote_id = first.remote_id.clone();
    changed.post.title = "New".into();
    changed.post.visibility = Visibility::Draft;
    let updated = publish("wordpress", wordpress(), changed.clone(), |request| {
        blog.answer(request)
    })
    .unwrap();
    assert_eq!((updated, blog.posts.len()), (first, 1));
    assert_eq!(
        (&blog.posts[0]["title"], &blog.posts[0]["status"]),
        (&json!("New"), &json!("draft"))
    );
    assert!(
        blog.asked
            .last()
            .unwrap()
            .starts_with("POST /wp-json/wp/v2/posts/1?")
    );

    changed.remote_id = Some("77".into());
    blog.posts = vec![json!({"id": 1, "content": {"raw": "somebody else's"}})];
    let anew = publish("wordpress", wordpress(), changed, |request| {
        blog.answer(request)
    })
    .unwrap();
    assert_eq!(anew.remote_id.as_deref(), Some("2"));
    assert_eq!(blog.posts[0]["content"]["raw"], "somebody else's");
}

/// Wrong credentials, a user who may not write, and nonsense are told apart.
#[test]
fn wordpress_says_what_is_wrong() {
    let mut blog = WordPress::default();
    let account = check("wordpress", wordpress(), |request| blog.answer(request)).unwrap();
    assert_eq!(account.as_deref(), Some("Ann"));
    let wrong = json!({"username": "ann", "application_password": "another one"});
    let error = check("wordpress", wrong, |request| blog.answer(request)).unwrap_err();
    assert_eq!(
        (error.class, error.source_code.as_deref()),
        (ErrorClass::Authentication, Some("401"))
    );
    let reader = |_: &HttpRequest| {
        (
            200,
            json!({"name": "x", "capabilities": {"edit_posts": false}}),
        )
    };
    let error = check("wordpress", wordpress(), reader).unwrap_err();
    assert_eq!(error.class, ErrorClass::Permission);
    for (status, body, class) in [
        (200, json!("<html>"), ErrorClass::Source),
        (200, json!({"id": "x"}), ErrorClass::Source),
        (200, json!([1, [], {"posts": 7}]), ErrorClass::Source),
        (302, json!(""), ErrorClass::Configuration),
        (503, json!("later"), ErrorClass::Unavailable),
        (
            403,
            json!({"message": "Sorry, Basic YW5uOmFhYWEgYmJiYiBjY2Nj"}),
            ErrorClass::Permission,
        ),
    ] {
        let error = publish("wordpress", wordpress(), publication(), |_| {
            (status, body.clone())
        })
        .unwrap_err();
        assert_eq!(error.class, class, "{status} {body}");
        assert!(!format!("{error:?}").contains("YW5uOmF"), "{error:?}");
    }
    let colon = json!({"username": "a:b", "application_password": "aaaa bbbb cccc"});
    let error = check("wordpress", colon, |_| unreachable!()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Configuration);
}

/// As much of Ghost as matters, which believes no token that it has not checked.
#[derive(Default)]
struct Ghost {
    posts: Vec<Value>,
    version: u64,
}

const GHOST_SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn ghost() -> Value {
    json!({"admin_api_key": format!("64fb1f:{GHOST_SECRET}")})
}

impl Ghost {
    fn answer(&mut self, request: &HttpRequest) -> (u16, Value) {
        check_token(request);
        let (path, query) = request.path.split_once('?').unwrap();
        let rest = path.strip_prefix("/ghost/api/admin/posts/").unwrap();
        let found =
            |is: &dyn Fn(&Value) -> bool, posts: &[Value]| match posts.iter().find(|post| is(post))
            {
                Some(post) => (200, json!({"posts": [post]})),
                None => (404, json!({"errors": [{"message": "Resource not found"}]})),
            };
        match (request.method.as_str(), rest) {
            ("GET", "") => (200, json!({"posts": []})),
            ("GET", rest) => match rest.strip_prefix("slug/") {
                Some(slug) => found(
                    &|post| slug == format!("{}/", post["slug"].as_str().unwrap()),
                    &self.posts,
                ),
                None => found(
                    &|post| rest == format!("{}/", post["id"].as_str().unwrap()),
                    &self.posts,
                ),
            },
            (method, rest) => {
                assert_eq!(query, "source=html");
                let mut post = json_of(request)["posts"][0].take();
                self.version += 1;
                let version = format!("2026-11-22T10:00:{:02}.000Z", self.version);
                let place = match method {
                    "POST" => {
                        let id = format!("aa{}", self.posts.len());
                        let taken = self.posts.iter().any(|other| other["slug"] == post["slug"]);
                        if taken {
                            post["slug"] = format!("{}-2", post["slug"].as_str().unwrap()).into();
                        }
                        post["id"] = id.into();
                        self.posts.push(Value::Null);
                        self.posts.len() - 1
                    }
                    "PUT" => {
                        let is_it =
                            |post: &Value| rest == format!("{}/", post["id"].as_str().unwrap());
                        let place = self.posts.iter().position(is_it).unwrap();
                        if self.posts[place]["updated_at"] != post["updated_at"] {
                            return (
                                409,
                                json!({"errors": [{"message": "Saving failed! Someone else is editing this post."}]}),
                            );
                        }
                        post["id"] = self.posts[place]["id"].clone();
                        place
                    }
                    other => panic!("{other}"),
                };
                post["updated_at"] = version.into();
                post["url"] = format!(
                    "https://ghost.example.com/{}/",
                    post["slug"].as_str().unwrap()
                )
                .into();
                self.posts[place] = post.clone();
                (200, json!({"posts": [post]}))
            }
        }
    }
}

fn check_token(request: &HttpRequest) {
    let token = header(request, "authorization")
        .strip_prefix("Ghost ")
        .unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let key = hex::decode(GHOST_SECRET).unwrap();
    assert_eq!(URL_SAFE_NO_PAD.encode(hmac(&key, signed)), signature);
    let (head, claims) = signed.split_once('.').unwrap();
    let read = |part: &str| {
        serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(
        read(head),
        json!({"alg": "HS256", "kid": "64fb1f", "typ": "JWT"})
    );
    let (claims, now) = (read(claims), NOW / 1_000_000);
    assert_eq!(
        (&claims["aud"], &claims["iat"]),
        (&json!("/admin/"), &json!(now))
    );
    let lives = claims["exp"].as_i64().unwrap() - now;
    assert!((1..=300).contains(&lives), "{claims}");
}

/// A post is made, updated in the version that is there, found again when the answer was lost; a slug of somebody else's is left alone.
#[test]
fn ghost_has_a_post_once() {
    let mut blog = Ghost {
        posts: vec![
            json!({"id": "bb", "slug": "other", "updated_at": "v", "codeinjection_foot": null}),
        ],
        version: 0,
    };
    let first = publish("ghost", ghost(), publication(), |request| {
        blog.answer(request)
    })
    .unwrap();
    assert_eq!(first.remote_id.as_deref(), Some("aa1"));
    assert_eq!(
        first.url.as_deref(),
        Some("https://ghost.example.com/goals/")
    );
    let made = &blog.posts[1];
    assert_eq!(
        (
            &made["html"],
            &made["status"],
            &made["custom_excerpt"],
            &made["tags"]
        ),
        (
            &json!("<h1>Goals</h1> [gallery]"),
            &json!("published"),
            &json!("About goals & <more>"),
            &json!([{"name": "goals"}, {"name": "known"}])
        )
    );
    let again = publish("ghost", ghost(), publication(), |request| {
        blog.answer(request)
    })
    .unwrap();
    assert_eq!((again, blog.posts.len()), (first.clone(), 2));
    let mut changed = publication();
    changed.remote_id = first.remote_id;
    changed.post.title = "New".into();
    publish("ghost", ghost(), changed, |request| blog.answer(request)).unwrap();
    assert_eq!(
        (&blog.posts[1]["title"], blog.posts.len()),
        (&json!("New"), 2)
    );

    let mut taken = publication();
    taken.post.slug = "other".into();
    taken.post.id = "pst_2".into();
    let other = publish("ghost", ghost(), taken, |request| blog.answer(request)).unwrap();
    assert_eq!(
        other.url.as_deref(),
        Some("https://ghost.example.com/other-2/")
    );
    assert_eq!(blog.posts[0]["id"], "bb");
    assert_eq!(
        check("ghost", ghost(), |request| blog.answer(request)).unwrap(),
        None
    );
}

/// A key that is none is refused before anything is sent; a lost race is tried again; nonsense is no success.
#[test]
fn ghost_says_what_is_wrong() {
    for key in ["", "64fb1f", "64fb1f:xyz", ":0011", "a/b:0011", "64fb1f:"] {
        let error = check("ghost", json!({"admin_api_key": key}), |_| unreachable!()).unwrap_err();
        assert_eq!(error.class, ErrorClass::Configuration, "{key}");
    }
    for (status, body, class) in [
        (
            409,
            json!({"errors": [{"message": "editing"}]}),
            ErrorClass::Source,
        ),
        (200, json!({"posts": 7}), ErrorClass::Source),
        (200, json!(7), ErrorClass::Source),
        (
            200,
            json!({"posts": [{"id": "../x", "updated_at": "v"}]}),
            ErrorClass::Source,
        ),
        (
            401,
            json!({"errors": [{"message": "Invalid token"}]}),
            ErrorClass::Authentication,
        ),
    ] {
        let mut known = publication();
        known.remote_id = Some("aa0".into());
        let error = publish("ghost", ghost(), known, |_| (status, body.clone())).unwrap_err();
        assert_eq!(error.class, class, "{status} {body}");
    }
}

/// A message has title, summary and link, in which nothing of the post makes links of its own; a draft is not told.
#[test]
fn slack_is_told() {
    let settings = json!({"path": "/services/T/B/x", "link": "https://blog.example.com/{slug}"});
    let mut sent = Vec::new();
    let told = publish("slack", settings.clone(), publication(), |request| {
        sent.push((request.path.clone(), json_of(request)));
        (200, json!("ok"))
    });
    let told = told.unwrap();
    assert_eq!(
        (told.remote_id, told.url.as_deref()),
        (None, Some("https://blog.example.com/goals"))
    );
    let text = "*<https://blog.example.com/goals|Goals &amp; &lt;more&gt;>*\nAbout goals &amp; &lt;more&gt;";
    assert_eq!(
        sent,
        [("/services/T/B/x".to_owned(), json!({"text": text}))]
    );
    let mut draft = publication();
    draft.post.visibility = Visibility::Draft;
    let error = publish("slack", settings.clone(), draft, |_| unreachable!()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Unsupported);
    assert!(check("slack", settings.clone(), |_| (400, json!("no_text"))).is_ok());
    let error = check("slack", settings, |_| {
        (404, json!("no_service /services/T/B/x"))
    })
    .unwrap_err();
    assert_eq!(
        (error.class, error.detail.as_deref()),
        (ErrorClass::NotFound, Some("no_service …"))
    );
}

/// A request is signed over its id, its time and its body; what the receiver calls the post is kept.
#[test]
fn a_webhook_is_signed() {
    for (secret, key) in [
        (
            "a secret of some length",
            b"a secret of some length".to_vec(),
        ),
        ("whsec_AAECAwQFBgcICQoLDA0ODw==", (0..16).collect()),
    ] {
        let settings = json!({"path": "/hooks", "secret": secret});
        let answered = publish("webhook", settings, publication(), |request| {
            let body = std::str::from_utf8(&request.body).unwrap();
            let (id, timestamp) = (
                header(request, "webhook-id"),
                header(request, "webhook-timestamp"),
            );
            assert_eq!((id, timestamp), ("pub_1-1", "1795341600"));
            let expected = STANDARD.encode(hmac(&key, &format!("{id}.{timestamp}.{body}")));
            assert_eq!(
                header(request, "webhook-signature"),
                format!("v1,{expected}")
            );
            let body = json_of(request);
            assert_eq!(
                (&body["type"], &body["timestamp"]),
                (
                    &json!("post.published"),
                    &json!("2026-11-22T10:00:00.000000Z")
                )
            );
            assert_eq!(
                body["data"]["post"]["body_html"],
                "<h1>Goals</h1> [gallery]"
            );
            (200, json!({"id": 7, "url": "https://example.com/7"}))
        });
        let answered = answered.unwrap();
        assert_eq!(
            (answered.remote_id.as_deref(), answered.url.as_deref()),
            (Some("7"), Some("https://example.com/7"))
        );
    }
    let settings = json!({"secret": "a secret of some length"});
    let silent = publish("webhook", settings.clone(), publication(), |request| {
        assert_eq!(request.path, "/");
        (204, json!(""))
    });
    assert_eq!(silent.unwrap(), Published::default());
    let error = publish("webhook", settings, publication(), |_| (410, json!("gone"))).unwrap_err();
    assert_eq!(error.class, ErrorClass::NotFound);
}
