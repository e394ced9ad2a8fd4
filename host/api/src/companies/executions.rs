use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query, Text, words};
use axum::extract::State;
use serde::Serialize;
use souk_domain::ids::{CompanyId, ExecutionId, RequestId};
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::recent::{self, Filter, RecentExecution};
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::get("list_executions", "/companies/{company_id}/executions")
        .about(
            "Companies",
            "List the newest runs of the company's own products, newest first",
        )
        .notes(
            "Whoever called them, charged or not, with the request id that the caller was told; failed ones with the reason. Of those that \
             succeeded and of those that failed the newest 1000 are kept, and written within a second; where a company, or all of a host, \
             serves very many runs in a second, some of those that succeeded are left out here. Complete are the counts of sales and \
             dashboards, and the ledger.",
        )
        .needs(Role::DataScientist, Permission::Read);

choices! {
    pub enum Status {
        Succeeded = "succeeded",
        Failed = "failed",
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Only runs of this asset or endpoint.
        product_id: Option<Text<0, 255>>,
        /// Only the run of this request.
        request_id: Option<Text<0, 255>>,
        /// Only runs that ended so.
        status: Option<Status>,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Execution)]
pub struct ExecutionOut {
    #[schema(value_type = String)]
    execution_id: ExecutionId,
    #[schema(value_type = Option<String>)]
    request_id: Option<RequestId>,
    #[schema(value_type = words::ProductType)]
    product_type: String,
    product_id: String,
    /// Whose call it was.
    #[schema(value_type = String)]
    company_id: CompanyId,
    #[schema(value_type = words::ExecutionStatus)]
    status: String,
    /// Why it was charged, or why not.
    #[schema(value_type = words::ExecutionBilling)]
    billing: String,
    /// What the caller paid.
    #[schema(minimum = 0)]
    credits: i64,
    /// Rows of the answer.
    #[schema(minimum = 0)]
    rows: i64,
    /// Bytes of the rows.
    #[schema(minimum = 0)]
    bytes: i64,
    /// Null where it succeeded, like all that follows but the times.
    #[schema(value_type = Option<words::FailureClass>)]
    class: Option<String>,
    #[schema(value_type = Option<words::Blamed>)]
    blame: Option<String>,
    /// The kind of fault, as `details.reason` of the answer.
    reason: Option<String>,
    /// As the caller was told.
    message: Option<String>,
    /// What the source or the connector said itself: never told to a buyer.
    source_message: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    #[schema(minimum = 0)]
    duration_ms: i64,
}

impl From<RecentExecution> for ExecutionOut {
    fn from(recent: RecentExecution) -> ExecutionOut {
        let execution = recent.execution;
        ExecutionOut {
            execution_id: execution.id,
            request_id: execution.request_id,
            product_type: execution.product_type,
            product_id: execution.product_id,
            company_id: execution.company_id,
            status: execution.status,
            billing: execution.billing,
            credits: execution.credits,
            rows: execution.rows,
            bytes: execution.bytes,
            class: execution.error_code,
            blame: execution.blame,
            reason: recent.reason,
            message: recent.message,
            source_message: recent.detail,
            started_at: execution.started_at,
            duration_ms: execution.duration_us / 1_000,
        }
    }
}

pub async fn list_executions(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<ExecutionOut>, Problem> {
    let page = query.paging.page();
    let filter = Filter {
        product: query.product_id.as_deref(),
        request: query.request_id.as_deref(),
        status: query.status.map(Status::as_str),
    };
    let mut read = api.db().read().await?;
    let listed = recent::list(&mut read, caller.company(), filter, page.part()).await?;
    Ok(List::of(page, listed, ExecutionOut::from))
}
