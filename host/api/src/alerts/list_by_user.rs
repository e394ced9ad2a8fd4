use super::check_user;
use super::shape::{AlertOut, StateWanted};
use crate::query::parameters;
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query, Text};
use axum::extract::State;
use souk_domain::ids::{CompanyId, UserId};
use souk_store::alerts::{self, Wanted};

pub const OPERATION: Operation = Operation::get(
    "list_alerts",
    "/companies/{company_id}/users/{user_id}/alerts",
)
.about("Alerts", "List a user's alerts, newest first");

parameters! {
    pub struct AlertsQuery {
        ..paging: Paging,
        /// Only those that are active, or that are not.
        is_active: Option<bool>,
        /// Only those in this state.
        state: Option<StateWanted>,
        /// Only those on this asset.
        asset_id: Option<Text<0, 255>>,
    }
}

/// Lists a user's alerts.
pub async fn list_alerts(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, user)): Path<(CompanyId, UserId)>,
    Query(query): Query<AlertsQuery>,
) -> Result<List<AlertOut>, Problem> {
    let page = query.paging.page();
    let mut read = api.db().read().await?;
    check_user(&mut read, &caller, &user).await?;
    let is_paused = query.state == Some(StateWanted::Paused);
    if is_paused && query.is_active == Some(true) {
        return Ok(List::within(page, Vec::new()));
    }
    let wanted = Wanted {
        user: Some(&user),
        asset: query.asset_id.as_deref(),
        is_active: match is_paused {
            true => Some(false),
            false => query.is_active,
        },
        state: query.state.and_then(StateWanted::state),
    };
    let listed = alerts::list(&mut read, caller.company(), wanted, page.part()).await?;
    Ok(List::of(page, listed, |alert| {
        AlertOut::of(alert, caller.now())
    }))
}
