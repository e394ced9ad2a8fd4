use super::check_email;
use super::shape::{CompanyOut, UserOut};
use crate::keys::shape::KeyOut;
use crate::problem::both;
use crate::refusals::SLUG_TAKEN;
use crate::{ApiState, Body, Caller, CreatedOnce, Line, Operation, Problem, Text};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use souk_domain::emails::EMAIL_CHARS_MAX;
use souk_domain::limits::KEY_LIMIT_DEFAULT;
use souk_domain::payments::CREDITS_LOW_DEFAULT;
use souk_domain::roles::{Permission, Role};
use souk_domain::slugs::check_handle;
use souk_store::StoreError;
use souk_store::companies::{self, NewCompany};
use souk_store::founding::{Founding, found};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("create_company", "/admin/companies")
    .about("Companies", "Create a company with its first administrator and key")
    .notes(
        "Platform staff only. The key of role 4 is in this answer only. `contact_email` becomes the administrator's address, of which nobody has \
         shown yet that it is theirs.",
    )
    .needs(Role::SuperAdmin, Permission::Write)
    .refuses(&[SLUG_TAKEN]);

#[derive(Deserialize, ToSchema)]
pub struct CompanyIn {
    /// One line, without control characters.
    #[schema(value_type = String, min_length = 1, max_length = 255)]
    name: Line<1, 255>,
    /// A DNS label: 1 to 63 characters of a-z, 0-9 and `-`.
    #[schema(
        min_length = 1,
        max_length = 63,
        pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
    )]
    handle: String,
    #[schema(value_type = Option<String>, max_length = 1000)]
    description: Option<Text<0, 1000>>,
    #[schema(value_type = Option<String>, min_length = 3, max_length = 254, pattern = "^[^@ ]+@[^@ ]+$")]
    contact_email: Option<Text<3, EMAIL_CHARS_MAX>>,
}

#[derive(Serialize, ToSchema)]
pub struct CompanyCreated {
    company: CompanyOut,
    /// The first administrator.
    user: UserOut,
    api_key: KeyOut,
}

/// Creates a company. The secret of its first key appears in this response only.
pub async fn create_company(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<CompanyIn>,
) -> Result<CreatedOnce<CompanyCreated>, Problem> {
    both(
        check_handle(&body.handle).map_err(|error| Problem::invalid("handle", error.to_string())),
        body.contact_email.as_deref().map(check_email).transpose(),
    )?;
    let now = caller.now();
    let founding = Founding {
        company: NewCompany {
            handle: &body.handle,
            name: &body.name,
            description: body.description.as_deref(),
            is_platform: false,
        },
        user_name: "Administrator",
        email: body.contact_email.as_deref(),
        role: Role::Admin,
        rate_limit: KEY_LIMIT_DEFAULT,
    };
    let founded = api
        .db()
        .write(async |write| -> Result<_, Problem> {
            if companies::by_handle(write, &body.handle, now)
                .await?
                .is_some()
            {
                return Err(handle_taken(&body.handle));
            }
            let founded = found(write, &founding, now).await;
            let mut founded = founded.map_err(|error| match error {
                StoreError::Conflict => handle_taken(&body.handle),
                other => other.into(),
            })?;
            if let Some(email) = &body.contact_email {
                founded.company.profile.contact_email = Some(email.to_string());
                companies::update(write, &founded.company, now).await?;
            }
            Ok(founded)
        })
        .await?;
    let answer = |api_key| CompanyCreated {
        company: CompanyOut::of(&founded.company, CREDITS_LOW_DEFAULT),
        user: (&founded.user).into(),
        api_key,
    };
    Ok(CreatedOnce {
        location: format!("/companies/{}", founded.company.id),
        data: answer(KeyOut::once(&founded.key, &founded.secret, now)),
        kept: answer(KeyOut::masked(&founded.key, now)),
    })
}

pub(super) fn handle_taken(handle: &str) -> Problem {
    Problem::of(
        SLUG_TAKEN,
        format!("the handle {handle:?} is taken, or was given up too recently; choose another one"),
    )
}
