//! Who asks, where the host does not say it: a service principal, which the workspace gives a token for its id and secret (OAuth,
//! machine-to-machine). It is kept until shortly before it ends.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use souk_sdk::http::Request;
use souk_sdk::{Error, HttpResponse};

use crate::errors::principal_refused;
use crate::settings::Principal;

const PATH: &str = "/oidc/v1/token";
const GRANT: &str = "grant_type=client_credentials&scope=all-apis";
const RESPONSE_BYTES: u64 = 64 << 10;
/// A token is not used any more when it has so long left: no request that goes with it takes two minutes. Of one that is good for less
/// than twice as long, it is half of that.
const LEFT_S: u64 = 120;
/// What a token is good for that does not say.
const USUAL_S: u64 = 3_600;
/// A header has room for a little more.
const TOKEN_BYTES_MAX: usize = 8_192;

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: Option<u64>,
}

/// A token, and the times between which it is used.
pub struct Token {
    text: String,
    from: u64,
    until: u64,
}

impl Token {
    /// What the workspace granted at `now`.
    pub fn granted(response: HttpResponse, now: u64) -> Result<Token, Error> {
        if response.status != 200 {
            return Err(principal_refused(response));
        }
        let granted: Option<Granted> = serde_json::from_slice(&response.body).ok();
        // A header has visible ASCII.
        let is_token = |granted: &Granted| {
            let text = granted.access_token.as_bytes();
            (1..=TOKEN_BYTES_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
        };
        let Some(granted) = granted.filter(is_token) else {
            return Err(Error::source_failed(
                "malformed_token",
                "what answers at the connection's address grants no tokens as Databricks does",
            ));
        };
        let good_for = granted.expires_in.unwrap_or(USUAL_S);
        Ok(Token {
            text: granted.access_token,
            from: now,
            until: now.saturating_add(good_for - LEFT_S.min(good_for / 2)),
        })
    }

    /// Whether it is good. The host's clock may fall: one of the future is asked for anew.
    pub fn is_good(&self, now: u64) -> bool {
        (self.from..self.until).contains(&now)
    }

    /// What `Authorization` says.
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.text)
    }
}

/// Asks for a token.
pub fn request(principal: &Principal, timeout_ms: u32) -> Request {
    let login = format!("{}:{}", principal.client_id, principal.client_secret);
    Request::post(PATH)
        .header("authorization", format!("Basic {}", STANDARD.encode(login)))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(GRANT)
        .timeout_ms(timeout_ms)
        .response_bytes_max(RESPONSE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::ErrorClass;

    fn granted(status: u16, body: &str) -> Result<Token, Error> {
        let response = HttpResponse {
            id: 1,
            status,
            headers: Vec::new(),
            body: body.into(),
        };
        Token::granted(response, 1_000)
    }

    #[test]
    fn a_token_is_kept_until_shortly_before_it_ends() {
        let token = granted(200, r#"{"access_token":"t","expires_in":3600}"#).ok();
        let token = token.unwrap();
        assert_eq!(token.authorization(), "Bearer t");
        for (now, wanted) in [(999, false), (1_000, true), (4_479, true), (4_480, false)] {
            assert_eq!(token.is_good(now), wanted, "{now}");
        }
        let short = granted(200, r#"{"access_token":"t","expires_in":60}"#).ok();
        let short = short.unwrap();
        assert!(short.is_good(1_029) && !short.is_good(1_030));
        let silent = granted(200, r#"{"access_token":"t"}"#).ok();
        assert!(silent.unwrap().is_good(4_479));
        let endless = format!(r#"{{"access_token":"t","expires_in":{}}}"#, u64::MAX);
        assert!(granted(200, &endless).ok().unwrap().is_good(u64::MAX - 1));
    }

    #[test]
    fn what_is_no_token_is_none() {
        for (status, body, class) in [
            (
                401,
                r#"{"error":"invalid_client"}"#,
                ErrorClass::Authentication,
            ),
            (
                400,
                r#"{"error":"invalid_request"}"#,
                ErrorClass::Authentication,
            ),
            (422, "", ErrorClass::Authentication),
            (404, "", ErrorClass::Configuration),
            (503, "", ErrorClass::Unavailable),
            (200, "<html>", ErrorClass::Source),
            (200, r#"{"access_token":""}"#, ErrorClass::Source),
            (200, r#"{"access_token":"a\r\nb"}"#, ErrorClass::Source),
            (200, r#"{"access_token":7}"#, ErrorClass::Source),
        ] {
            let error = granted(status, body).err().unwrap();
            assert_eq!(error.class, class, "{status} {body}");
        }
        let long = format!(
            r#"{{"access_token":"{}"}}"#,
            "t".repeat(TOKEN_BYTES_MAX + 1)
        );
        assert!(granted(200, &long).is_err());
    }
}
