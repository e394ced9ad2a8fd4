use super::shape::JobFunctionOut;
use crate::{Caller, Operation, Problem, Whole};
use souk_domain::reference::JOB_FUNCTIONS;

pub const OPERATION: Operation = Operation::get("list_job_functions", "/job-functions")
    .about("Reference data", "List job functions")
    .notes("For `job_function_id` of a user. The ids are stable.");

/// List job functions.
pub async fn list_job_functions(_: Caller) -> Result<Whole<JobFunctionOut>, Problem> {
    Ok(Whole(
        JOB_FUNCTIONS.iter().map(JobFunctionOut::from).collect(),
    ))
}
