//! Connections as far as they need no connector: what is wrong with one.

use crate::world::World;
use serde_json::json;

/// Whatever its engine is, or is not: all that is wrong with a connection is said at once, the user and the probe included.
#[tokio::test]
async fn everything_wrong_with_a_connection_is_named() {
    let world = World::new().await;
    let company = world.company("acme").await;
    let path = company.path("/connections");
    let body = json!({"user_id": "usr_unknown", "name": "", "statement_timeout_ms": 1});
    let refused = world.post(&company.key, &path, body).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        refused.fields(),
        [
            "user_id",
            "engine_id",
            "credentials",
            "name",
            "credential_type",
            "statement_timeout_ms"
        ]
    );
    let body = json!({"engine_id": 9999, "name": "x", "credentials": "[]"});
    let refused = world.post(&company.key, &path, body).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        refused.fields(),
        ["engine_id", "credentials", "credential_type"]
    );

    let body = json!({"function_id": "", "path": "relative", "name": ""});
    let path = company.path("/connections/test");
    let refused = world.post(&company.key, &path, body).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        refused.fields(),
        [
            "function_id",
            "path",
            "engine_id",
            "credentials",
            "name",
            "credential_type"
        ]
    );
}

/// An object is what most clients try first.
#[tokio::test]
async fn credentials_are_json_as_text_and_an_example_says_so() {
    let world = World::new().await;
    let company = world.company("acme").await;
    let body = json!({"engine_id": 1, "name": "x", "credential_type": "PASSWORD", "credentials": {"username": "reader"}});
    let refused = world
        .post(&company.key, &company.path("/connections"), body)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        refused.at("/error/message"),
        r#"credentials: must be JSON as text, such as "{\"username\": \"reader\", \"password\": \"…\"}""#
    );
}
