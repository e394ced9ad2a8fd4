use super::{ConnectorOut, refusal};
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Param, ParamKind, Problem, Query,
    Shape, schema,
};
use axum::extract::State;
use souk_app::connectors;

const STATUS: Param = Param {
    name: "status",
    kind: ParamKind::OneOf(&["staged", "active", "draining", "retired", "rejected"]),
    about: "Versions with this status only.",
};

pub const OPERATION: Operation = Operation::get("list_connectors", "/connectors")
    .about("Connectors", "List the versions of all connectors")
    .notes("The platform's, and the company's own.")
    .query(&[PAGE, PER_PAGE, STATUS])
    .returns(200, Shape::List(schema::<ConnectorOut>));

pub async fn list_connectors(
    State(api): State<ApiState>,
    caller: Caller,
    query: Query,
) -> Result<List<ConnectorOut>, Problem> {
    let page = Page::of(&query);
    let engines = connectors::Engines::load(api.app(), caller.company())
        .await
        .map_err(refusal(""))?;
    let visible = connectors::visible(api.app(), caller.company(), caller.is_staff())
        .await
        .map_err(refusal(""))?;
    let rows = visible
        .into_iter()
        .map(|info| ConnectorOut::new(info, &engines));
    let rows: Vec<ConnectorOut> = match query.text("status") {
        Some(status) => rows.filter(|row| row.status == status).collect(),
        None => rows.collect(),
    };
    let total = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let start = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let count = usize::try_from(page.limit()).unwrap_or_default();
    Ok(List {
        data: rows.into_iter().skip(start).take(count).collect(),
        total,
        page,
    })
}
