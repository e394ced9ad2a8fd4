use super::shape::KeyOut;
use super::{check_future, check_rate_limit, check_room, invalid, refuse, wrong_grant};
use crate::refusals::{CONFLICT, ROLE_ESCALATION};
use crate::words;
use crate::{ApiState, Body, Caller, CreatedOnce, Operation, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::fields::FieldErrors;
use souk_domain::ids::UserId;
use souk_domain::keys::{KeySecret, KeyType};
use souk_domain::limits::KEY_LIMIT_DEFAULT;
use souk_domain::roles::{Grant, Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::keys::{self, NewKey};
use souk_store::{AnyConnection, users};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("create_key", "/companies/{company_id}/api-keys")
    .alias("/companies/{company_id}/api_keys", "create_api_key")
    .about("API keys", "Create an API key")
    .notes(
        "The full key is in this answer only. Without `role_id`, `[read]` makes role 1 and `write` role 2; without `permissions`, role 1 \
         gets `[read]` and higher roles `[read, write]`. A key never gets more than its creator has (403 `ROLE_ESCALATION`). A \
         company has at most 1,000 keys that work, and gets at most 2,000 within a day (409).",
    )
    .needs(Role::DataScientist, Permission::Write)
    .hourly(10)
    .refuses(&[ROLE_ESCALATION, CONFLICT]);

#[derive(Deserialize, ToSchema)]
#[schema(as = ApiKeyIn)]
pub struct KeyIn {
    #[schema(value_type = String, min_length = 1, max_length = 255)]
    name: Text<1, 255>,
    /// In the future. Without it the key does not expire.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// The same as `expires_at`.
    #[schema(value_type = Option<String>, format = DateTime)]
    expiration_date_utc: Option<Timestamp>,
    /// Requests an hour over all routes, 1 to 1000000000. Default 1000.
    #[schema(minimum = 1, maximum = 1000000000)]
    rate_limit: Option<i64>,
    #[schema(value_type = Option<Vec<words::Permission>>)]
    permissions: Option<Vec<Permission>>,
    #[schema(value_type = Option<String>, max_length = 1000)]
    description: Option<Text<0, 1000>>,
    #[schema(minimum = 1, maximum = 5)]
    role_id: Option<i64>,
    #[schema(value_type = Option<words::AnalyticsKeyType>)]
    key_type: Option<String>,
}

/// Creates an API key. The secret appears in this response only.
pub async fn create_key(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<KeyIn>,
) -> Result<CreatedOnce<KeyOut>, Problem> {
    let now = caller.now();
    let mut errors = FieldErrors::default();
    let expires_at = expiry(&body, now, &mut errors);
    let rate_limit = check_rate_limit(body.rate_limit.unwrap_or(KEY_LIMIT_DEFAULT), &mut errors);
    let analytics = KeyType::Analytics.as_str();
    if body
        .key_type
        .as_deref()
        .is_some_and(|kind| kind != analytics)
    {
        let message = "must be analytics; endpoint keys are made under their endpoint";
        errors.add("key_type", "invalid", message);
    }
    let grant = Grant::requested(
        caller.grant(),
        body.role_id,
        body.permissions.map(|list| list.into_iter().collect()),
    );
    if let Err(error) = &grant
        && !error.is_escalation()
    {
        errors.push(wrong_grant(*error));
    }
    errors.or(()).map_err(invalid)?;
    let grant = grant.map_err(refuse)?;
    check_staff(&caller, grant)?;

    let secret = KeySecret::generate(KeyType::Analytics);
    api.db()
        .write(async |write| {
            check_room(write, &caller).await?;
            let user = owner(write, &caller).await?;
            let new = NewKey {
                company_id: caller.company(),
                user_id: user.as_ref(),
                endpoint_id: None,
                purchase_id: None,
                name: &body.name,
                description: body.description.as_deref(),
                grant,
                rate_limit,
                created_by: Some(caller.named()),
                expires_at,
            };
            let key = keys::insert(write, &new, &secret, now).await?;
            Ok(CreatedOnce {
                location: format!("/companies/{}/api-keys/{}", caller.company(), key.id),
                data: KeyOut::once(&key, &secret, now),
                kept: KeyOut::masked(&key, now),
            })
        })
        .await
}

fn expiry(body: &KeyIn, now: Timestamp, errors: &mut FieldErrors) -> Option<Timestamp> {
    match (body.expires_at, body.expiration_date_utc) {
        (Some(one), Some(other)) if one != other => {
            let message = "differs from expires_at; send one of them";
            errors.add("expiration_date_utc", "invalid", message);
            None
        }
        (Some(at), _) => Some(check_future("expires_at", at, now, errors)),
        (None, Some(at)) => Some(check_future("expiration_date_utc", at, now, errors)),
        (None, None) => None,
    }
}

/// Role 5 works in every company, so it is only handed out in the platform's own.
fn check_staff(caller: &Caller, grant: Grant) -> Result<(), Problem> {
    if grant.role == Role::SuperAdmin && caller.company() != caller.payer() {
        return Err(Problem::of(
            ROLE_ESCALATION,
            "keys with role 5 are made in the platform's own company",
        ));
    }
    Ok(())
}

/// A new key belongs to the user of the key that makes it; when staff make one in another company, to that company's first user.
async fn owner(db: &mut AnyConnection, caller: &Caller) -> Result<Option<UserId>, Problem> {
    if caller.company() == caller.payer() {
        return Ok(caller.user().cloned());
    }
    Ok(users::first(db, caller.company()).await?)
}
