//! Native tests: a session on an API of which is said what it answers.

use my_connector::MyConnector;
use souk_sdk::testing::{LIMITS, Origin, Session};
use souk_sdk::{Connector, ErrorClass, Request, Value};

const KEY: &str = r#"{"api_key": "secret"}"#;

#[test]
fn pages_follow_each_other() {
    let api = Origin::new()
        .get("/items", r#"{"items": [{"id": 1, "name": "pear", "price": "1.50", "at": "2026-01-01T00:00:00Z"}], "next": "/items?page=2"}"#)
        .get("/items?page=2", r#"{"items": [{"id": 2, "name": "fig", "price": null, "at": null}], "next": null}"#);
    let mut session = Session::<MyConnector>::http(KEY, api).unwrap();
    let answer = session.query("/items", []).unwrap();
    assert_eq!(
        answer.texts(),
        [
            ["1", "pear", "1.50", "2026-01-01T00:00:00.000000Z"],
            ["2", "fig", "NULL", "NULL"]
        ]
    );
    assert_eq!(session.requests()[1].headers[0].value, "Bearer secret");
}

#[test]
fn a_source_leads_to_its_own_paths() {
    let api = Origin::new().get("/items", r#"{"items": [], "next": "/items page=2"}"#);
    let mut session = Session::<MyConnector>::http(KEY, api).unwrap();
    let error = session.query("/items", []).unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Source, "bad_path"));
}

#[test]
fn a_parameter_is_one_value() {
    let none = r#"{"items": [], "next": null}"#;
    let api = Origin::new().get("/items?q=a%26b", none).get("/items", none);
    let mut session = Session::<MyConnector>::http(KEY, api).unwrap();
    let answer = session.query("/items", [Value::Text("a&b".into())]).unwrap();
    assert!(answer.rows.is_empty());
    // One that the caller has left out is none.
    assert!(session.query("/items", [Value::Null(None)]).unwrap().rows.is_empty());
    let error = session.query("/items", [Value::Int64(1)]).unwrap_err();
    assert_eq!((error.class, error.parameter), (ErrorClass::InvalidRequest, Some(0)));
}

#[test]
fn who_leaves_ends_what_he_asked_and_no_other() {
    let abilities = MyConnector::describe().abilities;
    assert!(abilities.iter().any(|ability| ability == "cancel"));
    let api = Origin::new().get("/items", r#"{"items": [], "next": null}"#);
    let mut session = Session::<MyConnector>::http(KEY, api).unwrap();
    let left = session.ask_and_cancel(Request::Ping(LIMITS)).unwrap_err();
    assert_eq!(left.code, "cancelled");
    // The source goes on with it, and answers nobody.
    assert!(session.query("/items", []).unwrap().rows.is_empty());
    assert_eq!(session.requests().len(), 2);
}

#[test]
fn refusals_have_classes() {
    let api = Origin::new().on("GET", "/items", 429, &[("retry-after", "3")], "");
    let mut session = Session::<MyConnector>::http(KEY, api).unwrap();
    let error = session.query("/items", []).unwrap_err();
    assert_eq!((error.class, error.retry_after_ms), (ErrorClass::RateLimited, Some(3_000)));
    assert_eq!(session.query("/else", []).unwrap_err().class, ErrorClass::NotFound);
    assert_eq!(session.query("else", []).unwrap_err().class, ErrorClass::InvalidRequest);
}
