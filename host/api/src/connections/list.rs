use super::shape::ConnectionOut;
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Param, ParamKind, Problem, Query,
    Shape, schema,
};
use axum::extract::State;
use souk_store::connections::{self, Filter};

const ENGINE: Param = Param {
    name: "engine_id",
    kind: ParamKind::Integer {
        min: 1,
        max: i64::MAX,
    },
    about: "Connections of this storage engine only.",
};
const STATUS: Param = Param {
    name: "status",
    kind: ParamKind::OneOf(&["unverified", "active", "failed"]),
    about: "Connections with this status only.",
};

pub const OPERATION: Operation =
    Operation::get("list_connections", "/companies/{company_id}/connections")
        .about("Connections", "List connections, newest first")
        .query(&[PAGE, PER_PAGE, ENGINE, STATUS])
        .returns(200, Shape::List(schema::<ConnectionOut>));

pub async fn list_connections(
    State(api): State<ApiState>,
    caller: Caller,
    query: Query,
) -> Result<List<ConnectionOut>, Problem> {
    let page = Page::of(&query);
    let filter = Filter {
        engine_id: query.integer("engine_id"),
        status: query.text("status"),
    };
    let mut read = api.db().read().await?;
    let (rows, total) = connections::list(
        &mut read,
        caller.company(),
        &filter,
        page.limit(),
        page.offset(),
    )
    .await?;
    Ok(List {
        data: rows.into_iter().map(ConnectionOut::from).collect(),
        total,
        page,
    })
}
