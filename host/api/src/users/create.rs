use super::invite::{self, INVITATIONS_HOURLY, InvitationOut};
use super::{check_role, job_function, role};
use crate::companies::shape::UserOut;
use crate::outward::{self, Outward};
use crate::refusals::{CONFLICT, EMAIL_TAKEN, ROLE_ESCALATION, VALIDATION_ERROR};
use crate::standing;
use crate::{ApiState, Body, Caller, CreatedOnce, FieldError, Line, Operation, Problem, Text};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use souk_domain::emails::{EMAIL_CHARS_MAX, parse_email};
use souk_domain::roles::{Permission, Role};
use souk_domain::sessions::Token;
use souk_store::users::{self, NewUser, USERS_MAX, User, UserStatus};
use souk_store::{StoreError, companies, invitations};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("create_user", "/companies/{company_id}/users")
    .about("Users", "Invite a user")
    .notes(
        "The user is `invited` until it comes in by the invitation's link, which holds for 7 days; it is mailed, or, by a host without mail, shown in this \
         answer. An address has one user in a company (409 `EMAIL_TAKEN`), and one in all companies once somebody has shown that it is theirs, by \
         coming in by a mailed invitation or an identity provider; who invites is told nothing of other companies' users. Without `name` it is what \
         stands before the `@`; without `role_id` it is 1, and it is at most the caller's (403 `ROLE_ESCALATION`). A company has at most 1,000 \
         users, and 200 invitations an hour.",
    )
    .needs(Role::Admin, Permission::Write)
    .hourly(INVITATIONS_HOURLY)
    .refuses(&[ROLE_ESCALATION, EMAIL_TAKEN, CONFLICT]);

#[derive(Deserialize, ToSchema)]
pub struct UserIn {
    #[schema(value_type = String, min_length = 3, max_length = 254, pattern = "^[^@ ]+@[^@ ]+$")]
    email: Text<3, EMAIL_CHARS_MAX>,
    /// One line, without control characters.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255)]
    name: Option<Line<1, 255>>,
    #[schema(minimum = 1, maximum = 5)]
    role_id: Option<i64>,
    /// One of `GET /job-functions`.
    #[schema(minimum = 1)]
    job_function_id: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct InvitedUser {
    #[serde(flatten)]
    user: UserOut,
    invitation: InvitationOut,
}

/// Invites a user. The invitation's link appears in this response only.
pub async fn create_user(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<UserIn>,
) -> Result<CreatedOnce<InvitedUser>, Problem> {
    let mut errors = Vec::new();
    let email = parse_email(&body.email)
        .map_err(|error| errors.push(FieldError::new("email", "invalid", error.to_string())));
    let role_id = body.role_id.map(|level| role(level, &mut errors));
    let job_function_id = body
        .job_function_id
        .and_then(|id| job_function(id, &mut errors));
    let Some(email) = email.ok().filter(|_| errors.is_empty()) else {
        return Err(Problem::fields(VALIDATION_ERROR, errors));
    };
    let role = role_id.flatten().unwrap_or(Role::Analyst);
    check_role(&caller, role)?;
    let before_at = email.split('@').next().unwrap_or_default();
    let wanted = Wanted {
        name: body.name.as_deref().unwrap_or(before_at).to_owned(),
        email,
        role,
        job_function_id,
    };
    outward::spend(&api, &caller, Outward::Invitations).await?;
    let held = (api.clone(), caller.clone());
    // What is written down is mailed, although nobody waits for that: an hour's worth of a company's at most.
    let work = api.to_the_end(async move { invite_new(&held.0, &held.1, &wanted).await });
    let (user, invitation) = work.await?;
    let answer = |invitation| InvitedUser {
        user: (&user).into(),
        invitation,
    };
    Ok(CreatedOnce {
        location: format!("/companies/{}/users/{}", caller.company(), user.id),
        kept: answer(invitation.without_link()),
        data: answer(invitation),
    })
}

/// Who is to be invited.
struct Wanted {
    email: String,
    name: String,
    role: Role,
    job_function_id: Option<i64>,
}

async fn invite_new(
    api: &ApiState,
    caller: &Caller,
    wanted: &Wanted,
) -> Result<(User, InvitationOut), Problem> {
    let token = Token::generate();
    let user = NewUser {
        company_id: caller.company(),
        email: Some(&wanted.email),
        name: &wanted.name,
        role: wanted.role,
        job_function_id: wanted.job_function_id,
        status: UserStatus::Invited,
    };
    let (user, invitation) = api
        .db()
        .write(async |write| {
            companies::lock(write, caller.company()).await?;
            standing::in_write(write, caller).await?;
            if users::count(write, caller.company()).await? >= USERS_MAX {
                let message =
                    format!("a company has at most {USERS_MAX} users: remove one who left first");
                return Err(Problem::of(CONFLICT, message));
            }
            let user =
                users::insert(write, &user, caller.now())
                    .await
                    .map_err(|error| match error {
                        StoreError::Conflict => taken(&wanted.email),
                        other => other.into(),
                    })?;
            let invitation = invitations::put(write, &user, &token.digest(), caller.now()).await?;
            Ok((user, invitation))
        })
        .await?;
    let invitation = invite::deliver(api, &user, &invitation, &token).await;
    Ok((user, invitation))
}

fn taken(email: &str) -> Problem {
    Problem::of(
        EMAIL_TAKEN,
        format!("another user of this company has the address {email}"),
    )
}
