use super::shape::{CurrentSession, Entered, SignedIn};
use super::{Client, SIGN_INS_HOURLY, begin, taken};
use crate::companies::shape::{CompanyOut, UserOut};
use crate::refusals::{COMPANY_NOT_FOUND, EMAIL_TAKEN, INVITATION_NOT_FOUND};
use crate::{Access, ApiState, Body, Operation, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::keys::KeyDigest;
use souk_domain::sessions::Token;
use souk_domain::time::Timestamp;
use souk_store::invitations::{self, Invitation};
use souk_store::users::{self, Arrival, UserStatus};
use souk_store::{AnyConnection, StoreError, companies, ledger};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("accept_invitation", "/users/invitations/accept")
    .about("Users", "Come in by an invitation")
    .notes(
        "Once: the user becomes `active` and is signed in with a session's cookie. `token` is what stands behind the `#` of the invitation's link. \
         Whoever comes in by a mailed one has shown that the address is theirs; if a user of another company has before, 409 `EMAIL_TAKEN`. \
         At most 20 times an hour and address, signing in included.",
    )
    .access(Access::Public)
    .signed()
    .hourly(SIGN_INS_HOURLY)
    .refuses(&[INVITATION_NOT_FOUND, COMPANY_NOT_FOUND, EMAIL_TAKEN]);

#[derive(Deserialize, ToSchema)]
pub struct AcceptIn {
    #[schema(min_length = 1, max_length = 255)]
    token: String,
}

/// Lets an invited user in.
pub async fn accept_invitation(
    State(api): State<ApiState>,
    client: Client,
    Body(body): Body<AcceptIn>,
) -> Result<Entered, Problem> {
    let digest = Token::parse(&body.token).map_err(|_| unknown())?.digest();
    let token = Token::generate();
    api.db()
        .write(async |write| {
            let found = holding(write, &digest, client.now).await?;
            companies::lock(write, &found.company_id).await?;
            // Whoever had the company for themselves meanwhile may have invited anew, which makes this one void.
            let invitation = holding(write, &digest, client.now).await?;
            let user = users::get(write, &invitation.company_id, &invitation.user_id)
                .await?
                .filter(|user| user.status == UserStatus::Invited)
                .ok_or_else(unknown)?;
            let arrival = Arrival {
                identity: None,
                email_verified: invitation.is_mailed,
            };
            let user = match users::arrive(write, &user, &arrival, client.now).await {
                Err(StoreError::Conflict) => return Err(taken(&user)),
                arrived => arrived?,
            };
            invitations::remove(write, &user.id).await?;
            let session = begin(write, &user, "invitation", &client, &token).await?;
            let signed_in = SignedIn {
                company: company(write, &user).await?,
                user: UserOut::from(&user),
                session: CurrentSession::of(&session, &token),
                is_new_user: true,
            };
            Ok(Entered {
                token: token.clone(),
                signed_in,
            })
        })
        .await
}

/// The invitation whose token has this digest, as long as it holds.
async fn holding(
    db: &mut AnyConnection,
    digest: &KeyDigest,
    now: Timestamp,
) -> Result<Invitation, Problem> {
    let found = invitations::by_digest(db, digest).await?;
    let found = found.filter(|invitation| invitation.expires_at > now);
    found.ok_or_else(unknown)
}

fn unknown() -> Problem {
    Problem::of(
        INVITATION_NOT_FOUND,
        "this invitation is not known here, was accepted, or has expired; ask for another one",
    )
}

/// The company of a user who comes in.
pub(super) async fn company(
    db: &mut AnyConnection,
    user: &users::User,
) -> Result<CompanyOut, Problem> {
    let company = companies::get(db, &user.company_id).await?;
    let company = company.ok_or_else(|| Problem::not_found("company", user.company_id.as_str()))?;
    let low_at = ledger::low_at(db, &company.id).await?;
    Ok(CompanyOut::of(&company, low_at))
}
