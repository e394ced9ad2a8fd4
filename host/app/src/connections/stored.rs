//! A connection as it is stored, and its credentials, unsealed.

use serde_json::{Map, Value};
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_domain::products::ProductStatus;
use souk_store::connections::{self, Connection};
use souk_store::sealing::{Owner, SealError};

use super::error::ConnectionError;
use crate::App;

pub async fn get(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<Connection, ConnectionError> {
    let found = connections::get(&mut *app.db.read().await?, company, id).await?;
    found.ok_or(ConnectionError::NotFound)
}

/// The assets and endpoints on the market that run on a connection.
pub async fn published(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<(i64, i64), ConnectionError> {
    let on_market = Some(ProductStatus::Published);
    let mut read = app.db.read().await?;
    let counted = connections::dependants(&mut read, company, id, on_market).await?;
    Ok(counted)
}

/// The credentials of a stored connection, unsealed.
pub(super) fn credentials(
    app: &App,
    connection: &Connection,
) -> Result<Map<String, Value>, ConnectionError> {
    let owner = Owner::of(&connection.company_id, connection.id.as_str());
    let plain = app.sealer.unseal(owner, &connection.credentials)?;
    match serde_json::from_slice(&plain) {
        Ok(Value::Object(credentials)) => Ok(credentials),
        _ => Err(SealError::Damaged.into()),
    }
}
