//! Where an invitation's link leads: a page that accepts it when its reader says so.

use crate::describe::{Describe, Description};
use crate::{Access, ApiState, Operation};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue, header};
use sha2::{Digest, Sha256};
use souk_domain::sessions::Token;
use std::sync::LazyLock;

pub const OPERATION: Operation = Operation::get("invitation_page", "/invitation")
    .about("Users", "The page that an invitation's link leads to")
    .notes("For a browser. The invitation's token stands behind the `#`, so that no server and no log along the way sees it.")
    .access(Access::Public);

/// The link of an invitation.
pub(crate) fn link(api: &ApiState, token: &Token) -> String {
    format!("{}/invitation#{}", api.settings().base_url, token.expose())
}

/// Only this script runs in the page, and it only asks this host.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let script = STANDARD.encode(Sha256::digest(SCRIPT));
    let policy = format!(
        "default-src 'none'; connect-src 'self'; script-src 'sha256-{script}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::from_maybe_shared(bytes::Bytes::from(policy))
        .unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

const SCRIPT: &str = r#"
const button = document.querySelector("button"), said = document.querySelector("p");
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
if (!token) { button.hidden = true; said.textContent = "This link is not complete: copy all of it."; }
button.onclick = async () => {
  button.disabled = true;
  try {
    const answer = await fetch("users/invitations/accept", {
      method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify({token}),
    });
    const body = await answer.json();
    said.textContent = answer.ok ? "Welcome to " + body.data.company.name + ", " + body.data.user.name + ". You are signed in." : body.error.message;
    button.hidden = answer.ok || answer.status === 404;
  } catch { said.textContent = "The service cannot be reached. Try again."; }
  button.disabled = false;
};
"#;

/// A page of HTML.
pub struct Page;

impl Describe for Page {
    fn describe(into: &mut Description) {
        into.answer(
            200,
            Some(("text/html", |_| serde_json::json!({"type": "string"}))),
        );
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        const REFERRER: HeaderName = HeaderName::from_static("referrer-policy");
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>Invitation</title>\n<style>body{{font:1.1rem system-ui;max-width:32rem;margin:4rem auto;padding:0 1rem}}button{{font:inherit;padding:.5rem 1rem}}</style>\n\
             <h1>You are invited</h1>\n<p>Whoever accepts is signed in with this browser.</p>\n<button>Accept the invitation</button>\n\
             <script>{SCRIPT}</script>\n</html>\n"
        );
        let headers = [
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static("text/html; charset=utf-8"),
            ),
            (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
            (REFERRER, HeaderValue::from_static("no-referrer")),
        ];
        (headers, html).into_response()
    }
}

/// Answers the page, which is the same for everybody.
pub async fn invitation_page() -> Page {
    Page
}
