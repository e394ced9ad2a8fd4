use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query, Text, words};
use axum::extract::State;
use serde::Serialize;
use souk_domain::ids::{CompanyId, ExecutionId, RequestId};
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::failures::{self, FailedExecution, Filter};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get(
    "list_failed_executions",
    "/companies/{company_id}/failed-executions",
)
.about(
    "Companies",
    "List the failed runs of the company's own products, newest first",
)
.notes(
    "Whoever called them, with the request id that the caller was told, and with what the source or the connector said itself. None of them was \
     charged. The newest 1000 are kept, and written within a second; when hundreds fail in a second, some are only counted. Runs that were refused \
     before they began (no credits, a wrong parameter) are not among them, nor is one of which it is not known whether it was charged.",
)
.needs(Role::DataScientist, Permission::Read);

choices! {
    pub enum Blamed {
        Connector = "connector",
        Source = "source",
        Caller = "caller",
        Host = "host",
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Only runs of this asset or endpoint.
        product_id: Option<Text<0, 255>>,
        /// Only the run of this request.
        request_id: Option<Text<0, 255>>,
        /// Only runs that failed through this party's fault.
        blame: Option<Blamed>,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = FailedExecution)]
pub struct FailedOut {
    #[schema(value_type = String)]
    execution_id: ExecutionId,
    #[schema(value_type = String)]
    request_id: RequestId,
    #[schema(value_type = words::ProductType)]
    product_type: String,
    product_id: String,
    /// Whose call it was.
    #[schema(value_type = String)]
    company_id: CompanyId,
    #[schema(value_type = words::FailureClass)]
    class: String,
    #[schema(value_type = words::Blamed)]
    blame: String,
    /// The kind of fault, as `details.reason` of the answer; null where it was none of a source's or a connector's.
    reason: Option<String>,
    /// The connector's own stable word for it.
    fault_code: Option<String>,
    /// SQLSTATE or the like.
    source_code: Option<String>,
    /// As the caller was told.
    message: String,
    /// What the source or the connector said itself: never told to a buyer.
    source_message: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    #[schema(minimum = 0)]
    duration_ms: i64,
}

impl From<FailedExecution> for FailedOut {
    fn from(failed: FailedExecution) -> FailedOut {
        FailedOut {
            execution_id: failed.execution_id,
            request_id: failed.request_id,
            product_type: failed.product_type,
            product_id: failed.product_id,
            company_id: failed.company_id,
            class: failed.class,
            blame: failed.blame,
            reason: failed.reason,
            fault_code: failed.code,
            source_code: failed.source_code,
            message: failed.message,
            source_message: failed.detail,
            started_at: failed.started_at,
            duration_ms: failed.duration_us / 1_000,
        }
    }
}

pub async fn list_failed_executions(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<FailedOut>, Problem> {
    let page = query.paging.page();
    let filter = Filter {
        product: query.product_id.as_deref(),
        request: query.request_id.as_deref(),
        blame: query.blame.map(Blamed::as_str),
    };
    let mut read = api.db().read().await?;
    let listed = failures::list(&mut read, caller.company(), filter, page.part()).await?;
    Ok(List::of(page, listed, FailedOut::from))
}
