//! Ghost: posts by version and slug, with a token that is signed for each request.

use crate::{NOW, check, header, hmac, json_of, publication, publish};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use souk_sdk::{ErrorClass, HttpRequest};

/// As much of Ghost as matters, which believes no token that it has not checked.
#[derive(Default)]
struct Ghost {
    posts: Vec<Value>,
    version: u64,
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

const GHOST_SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn ghost() -> Value {
    json!({"admin_api_key": format!("64fb1f:{GHOST_SECRET}")})
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
