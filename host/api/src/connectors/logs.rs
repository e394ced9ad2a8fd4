use super::{refusal, scope};
use crate::query::{Integer, parameters};
use crate::refusals::CONNECTOR_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Path, Problem, Query, Text};
use axum::extract::State;
use serde::Serialize;
use souk_app::connectors::{self, LogFilter, LogLine, Scope};
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use utoipa::ToSchema;

const NOTES: &str = "What the connector has printed on its standard output and error, and how it broke, by data connection, oldest first. Each host \
keeps the last lines in memory (64 KiB of a connector and 256 KiB of a company; 4 KiB of one call), and answers with its own. Values that the \
settings' schema calls secret (`writeOnly`, `format: password`) are left out. Without `after` these are the last lines; with `after`, the ones \
behind it: `next` of an answer is the `after` of the next request.";

pub const PLATFORM: Operation = Operation::get("connector_logs", "/connectors/{name}/logs")
    .about("Connectors", "Read what a connector of the platform says")
    .notes(NOTES)
    .needs(Role::SuperAdmin, Permission::Read)
    .refuses(&[CONNECTOR_NOT_FOUND]);

pub const COMPANY: Operation = Operation::get(
    "company_connector_logs",
    "/companies/{company_id}/connectors/{name}/logs",
)
.about(
    "Connectors",
    "Read what a connector says on the company's data connections",
)
.notes(NOTES)
.needs(Role::DataEngineer, Permission::Read)
.refuses(&[CONNECTOR_NOT_FOUND]);

/// Ids are numbers that JavaScript holds exactly, too.
const ID_MAX: i64 = (1 << 53) - 1;
/// Lines of one answer.
const LINES_MAX: i64 = 1_000;
const LINES_DEFAULT: i64 = 100;

parameters! {
    pub struct Wanted {
        /// Only lines behind this one.
        after: Option<Integer<0, ID_MAX>>,
        /// How many lines at most, 1 to 1000.
        limit: Integer<1, LINES_MAX> = Integer::of(LINES_DEFAULT),
        /// Only lines of this data connection.
        connection_id: Option<Text<0, 255>>,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ConnectorLog)]
pub struct LogOut {
    pub lines: Vec<LineOut>,
    /// Reads on behind these lines, as `after`; null when there never was one.
    pub next: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ConnectorLogLine)]
pub struct LineOut {
    pub id: u64,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    pub version: String,
    #[schema(value_type = crate::words::ConnectorScope)]
    pub scope: &'static str,
    /// Whose data connection it spoke for.
    pub company_id: String,
    pub connection_id: Option<String>,
    #[schema(value_type = crate::words::LogStream)]
    pub stream: &'static str,
    pub text: String,
}

impl From<LogLine> for LineOut {
    fn from(line: LogLine) -> LineOut {
        LineOut {
            id: line.id,
            at: Timestamp::from_micros(i64::try_from(line.id).unwrap_or(i64::MAX)),
            version: line.version.to_string(),
            scope: match line.scope {
                Scope::Platform => "platform",
                Scope::Company(_) => "company",
            },
            company_id: line.company.to_string(),
            connection_id: line.connection.map(|id| id.to_string()),
            stream: line.stream.as_str(),
            text: line.text,
        }
    }
}

pub async fn connector_logs(
    api: State<ApiState>,
    caller: Caller,
    Path(name): Path<String>,
    query: Query<Wanted>,
) -> Result<Data<LogOut>, Problem> {
    logs(api, caller, name, query).await
}

pub async fn company_connector_logs(
    api: State<ApiState>,
    caller: Caller,
    Path((_, name)): Path<(CompanyId, String)>,
    query: Query<Wanted>,
) -> Result<Data<LogOut>, Problem> {
    logs(api, caller, name, query).await
}

async fn logs(
    State(api): State<ApiState>,
    caller: Caller,
    name: String,
    Query(query): Query<Wanted>,
) -> Result<Data<LogOut>, Problem> {
    let visible = connectors::visible(api.app(), caller.company(), caller.is_staff())
        .await
        .map_err(refusal(&name))?;
    if !visible.iter().any(|info| info.name == name) {
        return Err(Problem::not_found("connector", &name));
    }
    let after = query.after.map(|after| after.get().unsigned_abs());
    let scope = scope(&caller);
    // The platform's connector speaks for everybody, which only staff sees; on its own connections a company hears every connector.
    let (company, scope) = match &scope {
        Scope::Platform => (None, Some(&scope)),
        Scope::Company(company) => (Some(company.as_str()), None),
    };
    let filter = LogFilter {
        company,
        scope,
        connector: &name,
        connection: query.connection_id.as_deref(),
        after,
        lines_max: query.limit.get() as usize,
    };
    let lines = connectors::log_lines(api.app(), &filter);
    let last = lines.last().map(|line| line.id).or(after);
    Ok(Data(LogOut {
        next: last,
        lines: lines.into_iter().map(LineOut::from).collect(),
    }))
}
