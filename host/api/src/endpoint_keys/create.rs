use crate::keys::shape::KeyOut;
use crate::keys::{check_future, check_rate_limit, check_room, invalid};
use crate::products::find;
use crate::refusals::CONFLICT;
use crate::{ApiState, Body, Caller, CreatedOnce, Operation, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::keys::{KeySecret, KeyType};
use souk_domain::limits::KEY_LIMIT_DEFAULT;
use souk_domain::roles::{Grant, Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::keys::{self, NewKey};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("create_endpoint_key", "/companies/{company_id}/endpoints/{endpoint_id}/keys")
    .about("Endpoint keys", "Mint a key that reads this endpoint")
    .notes("The full key is in this answer only. It works on the customer data route only, and is free: it belongs to the seller. A company has at most 1,000 keys that work, and gets at most 2,000 within a day (409).")
    .needs(Role::DataEngineer, Permission::Write)
    .hourly(10)
    .refuses(&[CONFLICT]);

#[derive(Deserialize, ToSchema)]
pub struct EndpointKeyIn {
    #[schema(value_type = String, min_length = 1, max_length = 255)]
    name: Text<1, 255>,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// Requests an hour, 1 to 1000000000. Default 1000.
    #[schema(minimum = 1, maximum = 1000000000)]
    rate_limit: Option<i64>,
    #[schema(value_type = Option<String>, max_length = 1000)]
    description: Option<Text<0, 1000>>,
}

/// Mints an endpoint key. The secret appears in this response only.
pub async fn create_endpoint_key(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, endpoint)): Path<(CompanyId, EndpointId)>,
    Body(body): Body<EndpointKeyIn>,
) -> Result<CreatedOnce<KeyOut>, Problem> {
    let now = caller.now();
    let mut errors = FieldErrors::default();
    let expires_at = body
        .expires_at
        .map(|at| check_future("expires_at", at, now, &mut errors));
    let rate_limit = check_rate_limit(body.rate_limit.unwrap_or(KEY_LIMIT_DEFAULT), &mut errors);
    errors.or(()).map_err(invalid)?;

    api.db()
        .write(async |write| {
            find(write, caller.company(), &endpoint).await?;
            check_room(write, &caller).await?;
            let secret = KeySecret::generate(KeyType::Endpoint);
            let new = NewKey {
                company_id: caller.company(),
                user_id: caller.user().filter(|_| caller.company() == caller.payer()),
                endpoint_id: Some(&endpoint),
                purchase_id: None,
                name: &body.name,
                description: body.description.as_deref(),
                grant: Grant::ENDPOINT,
                rate_limit,
                created_by: Some(caller.named()),
                expires_at,
            };
            let key = keys::insert(write, &new, &secret, now).await?;
            Ok(CreatedOnce {
                location: format!(
                    "/companies/{}/endpoints/{endpoint}/keys/{}",
                    caller.company(),
                    key.id
                ),
                data: KeyOut::once(&key, &secret, now),
                kept: KeyOut::masked(&key, now),
            })
        })
        .await
}
