//! Sessions as clients see them, and the answers that give a browser its cookie or take it away.

use crate::answer::Data;
use crate::companies::shape::{CompanyOut, UserOut};
use crate::cookies;
use crate::describe::{Describe, Description};
use crate::problem::Problem;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::Serialize;
use souk_domain::ids::{SessionId, UserId};
use souk_domain::sessions::Token;
use souk_domain::time::Timestamp;
use souk_store::sessions::Session;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionOut {
    #[schema(value_type = String)]
    id: SessionId,
    #[schema(value_type = String)]
    user_id: UserId,
    /// What let the user in: `invitation`, or the name of an identity provider such as `google`.
    auth_provider: String,
    /// From where the user signed in.
    address: String,
    user_agent: Option<String>,
    /// It is the one that asks.
    is_current: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// To within five minutes.
    #[schema(value_type = String, format = DateTime)]
    last_seen_at: Timestamp,
    /// When it ends if it is not used again: 12 hours after its last use, and at `expires_at` in any case.
    #[schema(value_type = String, format = DateTime)]
    ends_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

impl SessionOut {
    pub fn of(session: Session, current: Option<&Session>) -> SessionOut {
        SessionOut {
            is_current: current.is_some_and(|current| current.id == session.id),
            ends_at: session.ends_at(),
            id: session.id,
            user_id: session.user_id,
            auth_provider: session.auth_provider,
            address: session.address,
            user_agent: session.user_agent,
            created_at: session.created_at,
            last_seen_at: session.last_seen_at,
            expires_at: session.expires_at,
        }
    }
}

/// What a page has to know of the session that it runs in.
#[derive(Serialize, ToSchema)]
pub struct CurrentSession {
    #[schema(value_type = String)]
    id: SessionId,
    /// At the latest.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// For the header `x-csrf-token` of whatever changes or costs something.
    csrf_token: String,
}

impl CurrentSession {
    pub fn of(session: &Session, token: &Token) -> CurrentSession {
        CurrentSession {
            id: session.id.clone(),
            expires_at: session.expires_at,
            csrf_token: token.csrf(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct SignedIn {
    pub user: UserOut,
    pub company: CompanyOut,
    pub session: CurrentSession,
    /// The user has not been in before.
    pub is_new_user: bool,
}

/// 200 with the cookie of a session.
pub struct Entered {
    pub token: Token,
    pub signed_in: SignedIn,
}

impl Describe for Entered {
    fn describe(into: &mut Description) {
        Data::<SignedIn>::describe(into);
    }
}

impl IntoResponse for Entered {
    fn into_response(self) -> Response {
        let mut response = Data(self.signed_in).into_response();
        match cookies::give(&self.token) {
            Ok(cookie) => {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
                // A success without a caller is otherwise public.
                let no_store = header::HeaderValue::from_static("no-store");
                response
                    .headers_mut()
                    .insert(header::CACHE_CONTROL, no_store);
                response
            }
            Err(error) => Problem::internal(error).into_response(),
        }
    }
}

/// 204, and the browser forgets its cookie.
pub struct Left;

impl Describe for Left {
    fn describe(into: &mut Description) {
        into.answer(204, None);
    }
}

impl IntoResponse for Left {
    fn into_response(self) -> Response {
        let mut response = StatusCode::NO_CONTENT.into_response();
        response
            .headers_mut()
            .insert(header::SET_COOKIE, cookies::FORGET);
        response
    }
}
