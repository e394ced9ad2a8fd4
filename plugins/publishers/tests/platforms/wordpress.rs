//! WordPress: posts, their tags and states, by an application password.

use crate::{check, header, json_of, publication, publish};
use serde_json::{Value, json};
use souk_sdk::publisher::Visibility;
use souk_sdk::{ErrorClass, HttpRequest};

/// As much of WordPress as matters.
#[derive(Default)]
struct WordPress {
    posts: Vec<Value>,
    asked: Vec<String>,
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

const WORDPRESS: &str = "Basic YW5uOmFhYWEgYmJiYiBjY2Nj";

fn wordpress() -> Value {
    json!({"username": "ann", "application_password": "aaaa bbbb cccc"})
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
