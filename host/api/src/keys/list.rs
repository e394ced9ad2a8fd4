use super::shape::KeyOut;
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Param, ParamKind, Problem, Query,
    Shape, schema,
};
use axum::extract::State;
use souk_domain::keys::{KeyState, KeyType};
use souk_store::keys::{self, KeyFilter};

const STATUS: Param = Param {
    name: "status",
    kind: ParamKind::OneOf(&["active", "expired", "deactivated"]),
    about: "Only keys in this state.",
};
const KEY_TYPE: Param = Param {
    name: "key_type",
    kind: ParamKind::OneOf(&["analytics", "endpoint"]),
    about: "Only keys of this type.",
};

pub const OPERATION: Operation = Operation::get("list_keys", "/companies/{company_id}/api-keys")
    .aliases(&["/companies/{company_id}/api_keys"])
    .about("API keys", "List a company's keys, newest first")
    .hourly(100)
    .query(&[PAGE, PER_PAGE, STATUS, KEY_TYPE])
    .returns(200, Shape::List(schema::<KeyOut>));

/// Lists a company's keys, masked.
pub async fn list_keys(
    State(api): State<ApiState>,
    caller: Caller,
    query: Query,
) -> Result<List<KeyOut>, Problem> {
    let page = Page::of(&query);
    let filter = KeyFilter {
        key_type: query.text("key_type").and_then(KeyType::parse),
        state: query.text("status").and_then(KeyState::parse),
        ..KeyFilter::default()
    };
    let mut read = api.db().read().await?;
    let (keys, total) = keys::list(
        &mut read,
        caller.company(),
        &filter,
        caller.now(),
        page.offset(),
        page.limit(),
    )
    .await?;
    Ok(List {
        data: keys
            .iter()
            .map(|key| KeyOut::masked(key, caller.now()))
            .collect(),
        total,
        page,
    })
}
