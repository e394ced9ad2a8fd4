//! Liveness and readiness, for supervisors and balancers.

use crate::words;
use crate::{Access, ApiState, Data, Operation, Problem};
use axum::extract::State;
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

pub const HEALTHZ: Operation = Operation::get("healthz", "/healthz")
    .about("System", "Whether the process runs")
    .access(Access::Public);

pub const READYZ: Operation = Operation::get("readyz", "/readyz")
    .about("System", "Whether the host can serve: its store answers, and takes what is written")
    .notes("503 `SERVICE_UNAVAILABLE` when it cannot, while it starts, and when it is about to stop: then requests are still served for a while, but no new clients should be sent here.")
    .access(Access::Public);

/// Shorter than the patience of every balancer.
const STORE_ANSWERS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Serialize, ToSchema)]
pub struct Health {
    #[schema(value_type = words::HealthStatus)]
    pub status: &'static str,
    pub version: &'static str,
}

const OK: Health = Health {
    status: "ok",
    version: env!("CARGO_PKG_VERSION"),
};

pub async fn healthz() -> Data<Health> {
    Data(OK)
}

pub async fn readyz(State(api): State<ApiState>) -> Result<Data<Health>, Problem> {
    if let Some(why) = api.withheld() {
        return Err(Problem::unavailable(why));
    }
    match tokio::time::timeout(STORE_ANSWERS_WITHIN, api.store_answers()).await {
        Ok(Ok(true)) => Ok(Data(OK)),
        Ok(Ok(false)) => {
            tracing::warn!(
                "not ready: PostgreSQL takes no writes; it is a standby, or default_transaction_read_only is on"
            );
            Err(Problem::unavailable("the store takes no writes"))
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready");
            Err(Problem::unavailable("the store does not answer"))
        }
        Err(_) => Err(Problem::unavailable("the store does not answer in time")),
    }
}
