//! Signing in while somebody else has the company for themselves.

use super::AT_ONCE;
use crate::browser::token;
use crate::provider::Provider;
use crate::world::World;
use serde_json::json;
use souk_domain::ids::CompanyId;
use souk_store::{StoreError, companies};
use sqlx::Row;
use std::time::Duration;
use tokio::sync::oneshot;

impl World {
    /// Until somebody waits for what a transaction has locked. Where only one writes at a time everybody else waits anyhow.
    async fn is_waited(&self) {
        while self.db.is_shared() {
            let mut read = self.db.read().await.unwrap();
            let waiting = sqlx::query(
                "SELECT COUNT(*) AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            );
            let waiting = waiting.fetch_one(&mut *read).await.unwrap();
            if waiting.get::<i64, _>("waiting") > 0 {
                return;
            }
            drop(read);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Whoever is disabled or removed while they sign in does not come in by that, and stays disabled or removed.
#[tokio::test]
async fn nobody_comes_in_who_goes_meanwhile() {
    for (change, code) in [
        (
            "UPDATE users SET status = 'disabled' WHERE id = $1",
            "USER_DISABLED",
        ),
        (
            "UPDATE users SET status = 'disabled', email = NULL, auth_provider = NULL, auth_subject = NULL, deleted_at = created_at WHERE id = $1",
            "NOT_INVITED",
        ),
    ] {
        let provider = Provider::start().await;
        let (world, acme) = World::of_provider(&provider, AT_ONCE).await;
        let [first, second] = [(); 2].map(|()| provider.token(json!({})));
        let user = world.with_token(&first).await.expect(200);
        let user = user.text("/data/user/id");
        let company = CompanyId::parse(&acme.id).unwrap();
        let (begin, begun) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let going = world.db.write(async |write| -> Result<(), StoreError> {
            companies::lock(write, &company).await?;
            let query = sqlx::query(change).bind(&user);
            query.execute(&mut **write).await.unwrap();
            begin.send(()).unwrap();
            ended.await.unwrap();
            Ok(())
        });
        let signing_in = async {
            begun.await.unwrap();
            let driven = async {
                world.is_waited().await;
                end.send(()).unwrap();
            };
            tokio::join!(world.with_token(&second), driven).0
        };
        let (gone, refused) = tokio::join!(going, signing_in);
        gone.unwrap();
        refused.expect_error(403, code);
        let mut read = world.db.read().await.unwrap();
        let left = sqlx::query("SELECT status FROM users WHERE id = $1").bind(&user);
        let left = left.fetch_one(&mut *read).await.unwrap();
        assert_eq!(left.get::<String, _>("status"), "disabled", "{code}");
    }
}

/// An invitation that is made void while somebody accepts it lets nobody in.
#[tokio::test]
async fn nobody_comes_in_by_what_is_void_meanwhile() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let ann = json!({"email": "ann@example.org", "name": "Ann", "role_id": 4});
    let ann = world.invite(&acme, ann).await.expect(201);
    let (user, token) = (ann.text("/data/id"), token(&ann));
    let company = CompanyId::parse(&acme.id).unwrap();
    let (begin, begun) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    let voiding = world.db.write(async |write| -> Result<(), StoreError> {
        companies::lock(write, &company).await?;
        let query = sqlx::query("DELETE FROM invitations WHERE user_id = $1").bind(&user);
        query.execute(&mut **write).await.unwrap();
        begin.send(()).unwrap();
        ended.await.unwrap();
        Ok(())
    });
    let accepting = async {
        begun.await.unwrap();
        let driven = async {
            world.is_waited().await;
            end.send(()).unwrap();
        };
        tokio::join!(world.accept(&token), driven).0
    };
    let (void, refused) = tokio::join!(voiding, accepting);
    void.unwrap();
    refused.expect_error(404, "INVITATION_NOT_FOUND");
    let user = acme.path(&format!("/users/{user}"));
    let user = world.get(&acme.key, &user).await.expect(200);
    assert_eq!(user.at("/data/status"), "invited");
}
