use super::find;
use super::shape::DeliveryOut;
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Param, ParamKind, Path, Problem,
    Query, Shape, schema,
};
use axum::extract::State;
use souk_domain::ids::{CompanyId, WebhookId};
use souk_domain::webhooks::EventType;
use souk_store::deliveries::{self, DeliveryStatus};

const STATUS: Param = Param {
    name: "status",
    kind: ParamKind::OneOf(&["pending", "delivered", "failed"]),
    about: "Only deliveries in this state.",
};
const EVENT_TYPES: [&str; EventType::ALL.len()] = {
    let mut names = [""; EventType::ALL.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = EventType::ALL[place].as_str();
        place += 1;
    }
    names
};
const EVENT_TYPE: Param = Param {
    name: "event_type",
    kind: ParamKind::OneOf(&EVENT_TYPES),
    about: "Only deliveries of this type.",
};

pub const OPERATION: Operation = Operation::get(
    "list_deliveries",
    "/companies/{company_id}/webhooks/{webhook_id}/deliveries",
)
.about("Webhooks", "List what was sent to a webhook, newest first")
.notes("Finished deliveries are kept for 30 days, of each webhook the newest 1000.")
.query(&[PAGE, PER_PAGE, STATUS, EVENT_TYPE])
.returns(200, Shape::List(schema::<DeliveryOut>));

/// Lists a webhook's deliveries.
pub async fn list_deliveries(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, WebhookId)>,
    query: Query,
) -> Result<List<DeliveryOut>, Problem> {
    let page = Page::of(&query);
    let mut read = api.db().read().await?;
    find(&mut read, &caller, &id).await?;
    let (found, total) = deliveries::list(
        &mut read,
        &id,
        query.text("status").and_then(DeliveryStatus::parse),
        query.text("event_type").and_then(EventType::parse),
        page.offset(),
        page.limit(),
    )
    .await?;
    Ok(List {
        data: found.into_iter().map(DeliveryOut::from).collect(),
        total,
        page,
    })
}
