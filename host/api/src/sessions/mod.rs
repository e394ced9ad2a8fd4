//! Sessions: how users come in, where they are signed in, and how they leave.
//!
//! A session begins in [`begin`] and nowhere else. What its cookie is, `cookies` knows; what it may do, the gate.

pub mod accept;
pub mod end;
pub mod list;
pub mod logout;
pub mod page;
pub mod shape;
pub mod sign_in;

use crate::describe::{Argument, Describe, Description, Incoming};
use crate::refusals::{EMAIL_TAKEN, INSUFFICIENT_ROLE};
use crate::settings::peer;
use crate::{Caller, Problem, Routes};
use http::header;
use souk_domain::ids::UserId;
use souk_domain::roles::Role;
use souk_domain::sessions::Token;
use souk_domain::time::Timestamp;
use souk_store::sessions::{self, NewSession, Session};
use souk_store::users::User;
use souk_store::{StoreError, Write};
use std::net::IpAddr;
use std::time::SystemTime;

/// Attempts to come in, an hour and address.
pub const SIGN_INS_HOURLY: u32 = 20;
/// Enough to tell one's browsers apart.
const AGENT_CHARS_MAX: usize = 255;

pub fn routes() -> Routes {
    Routes::new()
        .add(accept::OPERATION, accept::accept_invitation)
        .add(sign_in::OPERATION, sign_in::sign_in)
        .add(sign_in::OF_COMPANY, sign_in::sign_in_to_company)
        .add(page::OPERATION, page::invitation_page)
        .add(logout::OPERATION, logout::logout)
        .add(list::OPERATION, list::list_sessions)
        .add(end::OPERATION, end::end_session)
}

/// Who asks to come in, as far as that is known of somebody without credentials.
pub struct Client {
    pub address: IpAddr,
    pub agent: Option<String>,
    pub now: Timestamp,
}

impl Describe for Client {
    fn describe(_: &mut Description) {}
}

impl Argument for Client {
    async fn take(incoming: &mut Incoming) -> Result<Client, Problem> {
        let headers = &incoming.parts.headers;
        let agent = headers.get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok());
        Ok(Client {
            address: incoming
                .state
                .settings()
                .client(peer(&incoming.parts.extensions), headers),
            agent: agent.map(|agent| agent.chars().take(AGENT_CHARS_MAX).collect()),
            now: SystemTime::now().into(),
        })
    }
}

/// Signs a user in, who has shown who it is.
pub(crate) async fn begin(
    write: &mut Write,
    user: &User,
    provider: &str,
    client: &Client,
    token: &Token,
) -> Result<Session, StoreError> {
    let address = client.address.to_string();
    let new = NewSession {
        company_id: &user.company_id,
        user_id: &user.id,
        auth_provider: provider,
        address: &address,
        user_agent: client.agent.as_deref(),
    };
    sessions::insert(write, &new, &token.digest(), client.now).await
}

/// What somebody is told who has shown that an address is theirs, and cannot come in as this user of it.
fn taken(user: &User) -> Problem {
    let email = user.email.as_deref().unwrap_or_default();
    Problem::of(
        EMAIL_TAKEN,
        format!(
            "{email} belongs to a user of another company, and an address has one user: have that one removed there first, or be invited \
             under another address"
        ),
    )
}

/// Users see and end their own sessions, administrators those of all.
fn check_may_see(caller: &Caller, user: &UserId) -> Result<(), Problem> {
    let is_self = caller.company() == caller.payer() && caller.user() == Some(user);
    match is_self || caller.role() >= Role::Admin {
        true => Ok(()),
        false => Err(
            Problem::of(INSUFFICIENT_ROLE, "the sessions of others are for role 4")
                .detail("required_role", Role::Admin.level())
                .detail("role", caller.role().level()),
        ),
    }
}
