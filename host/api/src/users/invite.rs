use super::{check_may_manage, find};
use crate::outward::{self, Outward};
use crate::refusals::INVALID_STATE;
use crate::sessions::page;
use crate::standing;
use crate::{ApiState, Caller, DataOnce, Operation, Path, Problem};
use axum::extract::State;
use serde::Serialize;
use souk_app::mail::quoted;
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::roles::{Permission, Role};
use souk_domain::sessions::Token;
use souk_domain::time::Timestamp;
use souk_store::invitations::{self, Invitation};
use souk_store::users::{User, UserStatus};
use souk_store::{StoreError, companies};
use utoipa::ToSchema;

/// More than anybody invites by hand; a stolen key sends no more mail than that.
pub const INVITATIONS_HOURLY: u32 = 100;

pub const OPERATION: Operation = Operation::post(
    "invite_user",
    "/companies/{company_id}/users/{user_id}/invitation",
)
.about("Users", "Invite a user again")
.notes(
    "Makes the invitation from before void. For a user who has not come in yet. A company has 200 invitations an hour, first ones included.",
)
.needs(Role::Admin, Permission::Write)
.hourly(INVITATIONS_HOURLY)
.refuses(&[INVALID_STATE]);

#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Invitation)]
pub struct InvitationOut {
    /// For the user, who comes in by it once. `null` when it was mailed, and in a replay: it is shown to nobody else and never again.
    url: Option<String>,
    /// The relay took it for the user's address. If not, whoever invited passes the link on.
    mail_sent: bool,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

impl InvitationOut {
    pub fn without_link(&self) -> InvitationOut {
        InvitationOut {
            url: None,
            ..self.clone()
        }
    }
}

/// Invites a user again. The invitation's link appears in this response only.
pub async fn invite_user(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, UserId)>,
) -> Result<DataOnce<InvitationOut>, Problem> {
    outward::spend(&api, &caller, Outward::Invitations).await?;
    let of_work = api.clone();
    // What is written down is mailed, although nobody waits for that: an hour's worth of a company's at most.
    let work = api.to_the_end(async move { invite_again(&of_work, &caller, &id).await });
    let data = work.await?;
    Ok(DataOnce {
        kept: data.without_link(),
        data,
    })
}

async fn invite_again(
    api: &ApiState,
    caller: &Caller,
    id: &UserId,
) -> Result<InvitationOut, Problem> {
    let token = Token::generate();
    let (user, invitation) = api
        .db()
        .write(async |write| {
            companies::lock(write, caller.company()).await?;
            standing::in_write(write, caller).await?;
            let user = find(write, caller, id).await?;
            check_may_manage(caller, &user)?;
            if user.status != UserStatus::Invited {
                let message = "this user has come in before";
                return Err(Problem::state(user.status.as_str(), message));
            }
            let invitation = invitations::put(write, &user, &token.digest(), caller.now()).await?;
            Ok((user, invitation))
        })
        .await?;
    Ok(deliver(api, &user, &invitation, &token).await)
}

/// Mails an invitation to whom it is for; if that cannot be done, whoever invited gets the link.
pub(super) async fn deliver(
    api: &ApiState,
    user: &User,
    invitation: &Invitation,
    token: &Token,
) -> InvitationOut {
    let url = page::link(api, token);
    let mail_sent = match mail(api, user, invitation, &url).await {
        Ok(sent) => sent,
        Err(error) => {
            tracing::warn!(error, user = %user.id, "an invitation could not be mailed");
            false
        }
    };
    if mail_sent {
        let digest = token.digest();
        let noted = api
            .db()
            .write(async |write| invitations::mailed(write, &digest).await);
        if let Err(error) = noted.await {
            tracing::warn!(%error, user = %user.id, "that an invitation was mailed could not be noted");
        }
    }
    InvitationOut {
        url: (!mail_sent).then_some(url),
        mail_sent,
        expires_at: invitation.expires_at,
    }
}

/// False: this host sends no mail.
async fn mail(
    api: &ApiState,
    user: &User,
    invitation: &Invitation,
    url: &str,
) -> Result<bool, String> {
    let (Some(mailer), Some(email)) = (&api.app().mail, &user.email) else {
        return Ok(false);
    };
    let failed = |error: StoreError| error.to_string();
    // Nobody may wait for the mail: this has an end of its own.
    let company = api
        .db()
        .ask(async |db| companies::get(db, &user.company_id).await);
    let company = company.await.map_err(failed)?;
    let name = company.map(|company| company.name).unwrap_or_default();
    let name = quoted(&name);
    let text = format!(
        "{name} invites you.\n\nOpen this link to come in. It holds once, until {}:\n\n{url}\n\nIf you do not know why you got this, ignore it.\n",
        invitation.expires_at
    );
    let subject = format!("Invitation to {name}");
    let sent = mailer.send(&user.company_id, email, &subject, text).await;
    sent.map(|()| true).map_err(|error| error.to_string())
}
