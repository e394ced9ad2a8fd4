use super::shape::KeyOut;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query};
use axum::extract::State;
use souk_domain::keys::{KeyState, KeyType};
use souk_store::keys::{self, KeyFilter};

choices! {
    impl KeyState {
        Active = "active",
        Expired = "expired",
        Deactivated = "deactivated",
    }
}

choices! {
    impl KeyType {
        Analytics = "analytics",
        Endpoint = "endpoint",
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Only keys in this state.
        status: Option<KeyState>,
        /// Only keys of this type.
        key_type: Option<KeyType>,
    }
}

pub const OPERATION: Operation = Operation::get("list_keys", "/companies/{company_id}/api-keys")
    .alias("/companies/{company_id}/api_keys", "list_api_keys")
    .about("API keys", "List a company's keys, newest first")
    .hourly(100);

/// Lists a company's keys, masked.
pub async fn list_keys(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<KeyOut>, Problem> {
    let page = query.paging.page();
    let filter = KeyFilter {
        key_type: query.key_type,
        state: query.status,
        ..KeyFilter::default()
    };
    let mut read = api.db().read().await?;
    let listed = keys::list(
        &mut read,
        caller.company(),
        &filter,
        caller.now(),
        page.part(),
    )
    .await?;
    Ok(List::of(page, listed, |key| {
        KeyOut::masked(&key, caller.now())
    }))
}
