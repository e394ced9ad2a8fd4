//! A browser in which somebody is signed in, and the invitation by which it was let in.

use crate::world::{Answer, Company, World, now, request};
use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use souk_domain::ids::UserId;
use souk_domain::sessions::Token;
use souk_store::invitations;

/// A browser in which somebody is signed in.
pub struct Browser {
    pub cookie: String,
    pub csrf: String,
    pub session: String,
    pub user: String,
}

impl Browser {
    pub fn of(entered: &Answer) -> Browser {
        let cookie = entered.header("set-cookie");
        Browser {
            cookie: cookie.split(';').next().unwrap().to_owned(),
            csrf: entered.text("/data/session/csrf_token"),
            session: entered.text("/data/session/id"),
            user: entered.text("/data/user/id"),
        }
    }

    pub async fn ask(&self, world: &World, method: Method, path: &str, body: Value) -> Answer {
        let request = request(method, "", path)
            .header("cookie", &self.cookie)
            .header("x-csrf-token", &self.csrf)
            .header("content-type", "application/json");
        let body = match body {
            Value::Null => Body::empty(),
            body => Body::from(body.to_string()),
        };
        world.send(request.body(body).unwrap()).await
    }

    pub async fn get(&self, world: &World, path: &str) -> Answer {
        let request = request(Method::GET, "", path).header("cookie", &self.cookie);
        world.send(request.body(Body::empty()).unwrap()).await
    }
}

/// The token of the invitation that an answer shows.
pub fn token(invited: &Answer) -> String {
    let url = invited.text("/data/invitation/url");
    let (page, token) = url.split_once('#').unwrap();
    assert_eq!(page, "http://souk.example/invitation");
    token.to_owned()
}

impl World {
    pub async fn accept(&self, token: &str) -> Answer {
        let path = "/users/invitations/accept";
        self.post("", path, json!({"token": token})).await
    }

    /// As if the link with this token had been mailed, and shown to nobody.
    pub async fn mail(&self, token: &str) {
        let digest = Token::parse(token).unwrap().digest();
        let mailed = self
            .db
            .write(async |write| invitations::mailed(write, &digest).await);
        mailed.await.unwrap();
    }

    /// As if the invitation were a week old.
    pub async fn expire(&self, invited: &Answer) {
        let expired = self
            .db
            .write(async |write| -> Result<(), souk_store::StoreError> {
                let expire =
                    sqlx::query("UPDATE invitations SET expires_at = $2 WHERE user_id = $1");
                let expire = expire.bind(invited.text("/data/id")).bind(now().micros());
                expire.execute(&mut **write).await.unwrap();
                Ok(())
            });
        expired.await.unwrap();
    }

    /// Somebody with this role, who came in by invitation.
    pub async fn browser(&self, company: &Company, role: u8) -> Browser {
        let email = format!("{}@example.org", UserId::generate());
        let invited = json!({"email": email, "role_id": role});
        let invited = self.invite(company, invited).await.expect(201);
        Browser::of(&self.accept(&token(&invited)).await.expect(200))
    }
}
