//! A service principal's token: fetched once for all, kept for as long as it is good, fetched anew where it is refused.

mod common;

use common::{
    ID, NOW, Reply, STATEMENTS, Talk, class_and_code, described, header, is, numbers, query, raw,
    reply,
};
use serde_json::{Value as Json, json};
use souk_sdk::{ErrorClass, WireFault};
use souk_tests::wire::LIMITS;

const TOKEN: &str = "/oidc/v1/token";

fn login() -> Json {
    json!({"username": "3f1c", "password": "dose"})
}

fn granted(good_for: u64, text: &str) -> Reply {
    reply(json!({"access_token": text, "token_type": "Bearer", "expires_in": good_for}))
}

/// A session that was let in with the token `one`.
fn let_in(good_for: u64) -> Talk {
    let mut talk = Talk::open(login()).unwrap();
    talk.hears(0, granted(good_for, "one")).unwrap();
    talk
}

/// One whose statement runs.
fn running() -> (Talk, u32) {
    let mut talk = let_in(3_600);
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, described(&[("n", "bigint")])).unwrap();
    talk.hears(0, is("RUNNING")).unwrap();
    talk.wakes();
    (talk, id)
}

fn shows(talk: &Talk, place: usize) -> &str {
    header(&talk.asked[place], "authorization").unwrap_or_default()
}

/// A service principal is let in before anything else, and its token is good until shortly before its end.
#[test]
fn a_service_principal_shows_a_token() {
    let mut talk = Talk::open(login()).unwrap();
    assert!(!talk.is_ready());
    let asked = talk.asked[0].clone();
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        ("POST", "/oidc/v1/token")
    );
    assert_eq!(header(&asked, "authorization"), Some("Basic M2YxYzpkb3Nl"));
    assert_eq!(asked.body, b"grant_type=client_credentials&scope=all-apis");
    talk.hears(0, granted(3_600, "one")).unwrap();
    assert!(talk.is_ready());
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    assert_eq!(header(&talk.asked[0], "authorization"), Some("Bearer one"));
    talk.hears(0, described(&[("n", "bigint")])).unwrap();
    talk.hears(0, numbers(1)).unwrap();
    talk.ended(id).unwrap().ok();
    // Shortly before its end a new one is fetched.
    talk.now = NOW + 3_480;
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    assert_eq!(talk.asked[0].path, "/oidc/v1/token");
    assert_eq!(
        header(&talk.asked[0], "authorization"),
        Some("Basic M2YxYzpkb3Nl")
    );
    talk.hears(0, granted(3_600, "two")).unwrap();
    assert_eq!(header(&talk.asked[0], "authorization"), Some("Bearer two"));
    talk.hears(0, described(&[("n", "bigint")])).unwrap();
    assert_eq!(header(&talk.asked[0], "authorization"), Some("Bearer two"));
    talk.hears(0, numbers(1)).unwrap();
    talk.ended(id).unwrap().ok();
    // A wrong secret ends the session.
    let mut talk = Talk::open(login()).unwrap();
    let refused = raw(401, &[], r#"{"error":"invalid_client"}"#);
    let error = talk.hears(0, refused).unwrap_err();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Authentication, "credentials_refused")
    );
}

/// One that is good for no time is used for what it was fetched for, and fetched for each statement: never on and on.
#[test]
fn a_token_of_no_time_is_used_once() {
    let mut talk = let_in(0);
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    for (token, answer) in [
        ("two", described(&[("n", "bigint")])),
        ("three", numbers(1)),
    ] {
        assert_eq!((talk.asked.len(), talk.asked[0].path.as_str()), (1, TOKEN));
        talk.hears(0, granted(0, token)).unwrap();
        assert_eq!(talk.asked[0].path, STATEMENTS);
        assert_eq!(shows(&talk, 0), format!("Bearer {token}"));
        talk.hears(0, answer).unwrap();
    }
    assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
    assert!(talk.asked.is_empty());
}

/// Where a token is refused the same is asked again with another one, once; a statement that runs is stopped then.
#[test]
fn a_refused_token_is_fetched_anew() {
    let (mut talk, id) = running();
    talk.hears(0, raw(401, &[], "{}")).unwrap();
    assert_eq!((talk.asked.len(), talk.asked[0].path.as_str()), (1, TOKEN));
    talk.hears(0, granted(3_600, "two")).unwrap();
    assert_eq!(talk.asked[0].path, format!("{STATEMENTS}/{ID}"));
    assert_eq!(shows(&talk, 0), "Bearer two");
    talk.hears(0, is("RUNNING")).unwrap();
    talk.wakes();
    // A while later it may happen again, and Databricks may say it in another way.
    let unknown = raw(
        403,
        &[],
        r#"{"error_code":403,"message":"Invalid access token."}"#,
    );
    talk.hears(0, unknown).unwrap();
    talk.hears(0, granted(3_600, "three")).unwrap();
    talk.hears(0, raw(401, &[], "{}")).unwrap();
    assert_eq!(talk.asked[0].path, TOKEN);
    talk.hears(0, granted(3_600, "four")).unwrap();
    assert_eq!(talk.asked[0].path, format!("{STATEMENTS}/{ID}/cancel"));
    assert_eq!(shows(&talk, 0), "Bearer four");
    talk.hears(0, reply(json!({}))).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Authentication, "credentials_refused")
    );
    assert!(talk.asked.is_empty());
}

/// A statement that is to be stopped is stopped with another token, too.
#[test]
fn stopping_is_let_in_again() {
    let (mut talk, id) = running();
    talk.cancel(id);
    talk.asked.remove(0);
    talk.hears(0, raw(401, &[], "{}")).unwrap();
    talk.hears(0, granted(3_600, "two")).unwrap();
    assert_eq!(talk.asked[0].path, format!("{STATEMENTS}/{ID}/cancel"));
    assert_eq!(shows(&talk, 0), "Bearer two");
    talk.hears(0, reply(json!({}))).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
}

/// All who need a token wait for one; who is refused with an old one takes the new one.
#[test]
fn one_token_is_fetched_for_all() {
    let mut talk = let_in(3_600);
    let ids: Vec<u32> = (0..3)
        .map(|n| talk.submit(query(&format!("SELECT {n}"), vec![], LIMITS)))
        .collect();
    assert_eq!(talk.asked.len(), 3);
    talk.hears(0, raw(401, &[], "{}")).unwrap();
    talk.hears(0, raw(401, &[], "{}")).unwrap();
    let paths: Vec<_> = talk.asked.iter().map(|asked| &*asked.path).collect();
    assert_eq!(paths, [STATEMENTS, TOKEN]);
    talk.hears(1, granted(3_600, "two")).unwrap();
    assert_eq!(talk.asked.len(), 3);
    // It was asked with the first one: the second is not thrown away.
    talk.hears(0, raw(401, &[], "{}")).unwrap();
    assert_eq!(talk.asked.len(), 3);
    for place in 0..3 {
        assert_eq!(talk.asked[place].path, STATEMENTS);
        assert_eq!(shows(&talk, place), "Bearer two");
    }
    // Shortly before its end, all at once.
    talk.asked.clear();
    ids.into_iter().for_each(|id| talk.cancel(id));
    talk.now = NOW + 3_600;
    for n in 0..3 {
        talk.submit(query(&format!("SELECT {n}"), vec![], LIMITS));
    }
    assert_eq!((talk.asked.len(), talk.asked[0].path.as_str()), (1, TOKEN));
}

/// Who waits for a token may go, and is told why there is none.
#[test]
fn who_waits_for_a_token_is_told() {
    let wait = || {
        let mut talk = let_in(3_600);
        talk.now = NOW + 3_600;
        let ids = ["SELECT 1", "SELECT 2"].map(|text| talk.submit(query(text, vec![], LIMITS)));
        (talk, ids)
    };
    for (reply, class) in [
        (raw(401, &[], "{}"), ErrorClass::Authentication),
        (raw(200, &[], "{}"), ErrorClass::Source),
        (Err(WireFault::Refused), ErrorClass::Unavailable),
    ] {
        let (mut talk, ids) = wait();
        talk.hears(0, reply).unwrap();
        for id in ids {
            assert_eq!(talk.ended(id).unwrap().error().class, class);
        }
        // The next one tries anew.
        talk.submit(query("SELECT 1", vec![], LIMITS));
        assert_eq!((talk.asked.len(), talk.asked[0].path.as_str()), (1, TOKEN));
    }
    let (mut talk, [first, second]) = wait();
    talk.cancel(first);
    assert_eq!(talk.ended(first).unwrap().error().code, "cancelled");
    talk.hears(0, raw(503, &[], "")).unwrap();
    assert_eq!((talk.asked.len(), talk.wakes()), (0, 100));
    talk.hears(0, granted(3_600, "two")).unwrap();
    assert_eq!((talk.asked.len(), shows(&talk, 0)), (1, "Bearer two"));
    talk.cancel(second);
    // Where nobody waits any more, what comes late is not heard.
    let (mut talk, ids) = wait();
    ids.into_iter().for_each(|id| talk.cancel(id));
    let late = talk.asked.remove(0);
    talk.submit(query("SELECT 1", vec![], LIMITS));
    assert_eq!((talk.asked.len(), talk.asked[0].path.as_str()), (1, TOKEN));
    talk.asked.push(late);
    talk.hears(1, granted(3_600, "late")).unwrap();
    assert_eq!(talk.asked.len(), 1);
}
