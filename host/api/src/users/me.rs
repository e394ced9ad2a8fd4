use crate::companies::shape::{CompanyOut, UserOut};
use crate::cookies;
use crate::refusals::COMPANY_NOT_FOUND;
use crate::sessions::shape::CurrentSession;
use crate::words;
use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use http::HeaderMap;
use serde::Serialize;
use souk_domain::ids::KeyId;
use souk_store::{companies, ledger, users};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("current_user", "/users/me")
    .about("Users", "Show who makes this request, and what they may do")
    .refuses(&[COMPANY_NOT_FOUND]);

#[derive(Serialize, ToSchema)]
pub struct CurrentUser {
    /// Who is signed in, or whose key it is; `null` for a key that belongs to nobody.
    user: Option<UserOut>,
    company: CompanyOut,
    /// What this request may do, which for a key may be less than its user's role.
    role_id: u8,
    #[schema(value_type = Vec<words::Permission>)]
    permissions: Vec<&'static str>,
    /// The key that makes this request.
    #[schema(value_type = Option<String>)]
    api_key_id: Option<KeyId>,
    /// The session in which this request is made.
    session: Option<CurrentSession>,
}

/// Shows who calls.
pub async fn current_user(
    State(api): State<ApiState>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Data<CurrentUser>, Problem> {
    let mut read = api.db().read().await?;
    let company = companies::get(&mut read, caller.company()).await?;
    let company =
        company.ok_or_else(|| Problem::not_found("company", caller.company().as_str()))?;
    let user = match caller.user() {
        Some(id) => users::get(&mut read, caller.company(), id).await?,
        None => None,
    };
    let low_at = ledger::low_at(&mut read, &company.id).await?;
    Ok(Data(CurrentUser {
        user: user.as_ref().map(UserOut::from),
        company: CompanyOut::of(&company, low_at),
        role_id: caller.role().level(),
        permissions: caller.grant().permissions.names(),
        session: current(&caller, &headers),
        api_key_id: caller.key().map(|key| key.id.clone()),
    }))
}

fn current(caller: &Caller, headers: &HeaderMap) -> Option<CurrentSession> {
    let token = cookies::session(headers)?.ok()?;
    Some(CurrentSession::of(caller.session()?, &token))
}
