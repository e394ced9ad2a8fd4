//! Alerts: what a company watches of assets' answers, and what became of it. How an evaluation goes: `souk_app::alerts`.

pub mod create;
pub mod delete;
pub mod events;
pub mod get;
pub mod list_by_asset;
pub mod list_by_user;
pub mod shape;
pub mod test;
pub mod update;

use crate::refusals::{CONFLICT, VALIDATION_ERROR};
use crate::runs::refusal;
use crate::{Caller, Problem, Routes};
use souk_app::alerts::AlertError;
use souk_domain::ids::{AlertId, AssetId, UserId};
use souk_store::alerts::{self, Alert};
use souk_store::{AnyConnection, users};

pub fn routes() -> Routes {
    Routes::new()
        .add(list_by_user::OPERATION, list_by_user::list_alerts)
        .add(create::OPERATION, create::create_alert)
        .add(list_by_asset::OPERATION, list_by_asset::list_asset_alerts)
        .add(get::OPERATION, get::get_alert)
        .add(update::OPERATION, update::update_alert)
        .add(delete::OPERATION, delete::delete_alert)
        .add(test::OPERATION, test::test_alert)
        .add(events::OPERATION, events::list_alert_events)
}

/// 404 unless the user is one of the company's.
async fn check_user(db: &mut AnyConnection, caller: &Caller, user: &UserId) -> Result<(), Problem> {
    match users::get(db, caller.company(), user).await? {
        Some(_) => Ok(()),
        None => Err(Problem::not_found("user", user.as_str())),
    }
}

/// One of the company's alerts, or 404.
async fn find(db: &mut AnyConnection, caller: &Caller, id: &AlertId) -> Result<Alert, Problem> {
    alerts::get(db, caller.company(), id)
        .await?
        .ok_or_else(|| not_found(id))
}

fn not_found(id: &AlertId) -> Problem {
    Problem::not_found("alert", id.as_str())
}

fn refuse(asset: &AssetId) -> impl Fn(AlertError) -> Problem + '_ {
    move |error| match error {
        AlertError::Fields(errors) => Problem::fields(VALIDATION_ERROR, errors),
        AlertError::Asset(failure) => refusal("asset", asset.as_str())(failure),
        AlertError::TooMany => Problem::of(
            CONFLICT,
            "the company has as many alerts as it may have: delete one first",
        ),
        AlertError::Store(error) => error.into(),
    }
}
