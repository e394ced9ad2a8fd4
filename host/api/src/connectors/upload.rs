use super::{ConnectorOut, refusal, scope};
use crate::query::parameters;
use crate::refusals::{
    COMPILE_TIME_EXCEEDED, CONCURRENCY_LIMIT_EXCEEDED, CONFLICT, CONNECTOR_BLOCKED,
    CONNECTOR_INVALID, CONNECTOR_QUOTA_EXCEEDED, CONNECTOR_UNHEALTHY, ENGINE_RESERVED, Refusal,
    UNSUPPORTED_MEDIA_TYPE,
};
use crate::{ApiState, Caller, Created, Media, Operation, Problem, Query, Upload};
use axum::extract::State;
use http::{HeaderMap, header};
use souk_app::connectors::{self, COMPONENT_BYTES_MAX, Scope};
use souk_domain::roles::{Permission, Role};

const NOTES: &str = "The body is a WebAssembly component, at most 64 MiB, `application/wasm`. It is compiled and checked before \
anything else: 400 `CONNECTOR_INVALID` says what is wrong with it, 409 `CONFLICT` that this version exists with another digest, 409 \
`CONNECTOR_UNHEALTHY` that it is stored but could not be activated. The version that ran before goes on in each case.";
const COMPANY_NOTES: &str = "As for the platform's, within what a company may use: 409 `ENGINE_RESERVED` names an engine that is the platform's and \
needs a slug of your own, 409 `CONNECTOR_QUOTA_EXCEEDED` says that versions must be deleted first, 429 `COMPILE_TIME_EXCEEDED` that compiling \
has taken its share of the hour. The body is a WebAssembly component, at most 64 MiB, `application/wasm`; 400 `CONNECTOR_INVALID` says what is \
wrong with it, 409 `CONFLICT` that this version exists with another digest, 409 `CONNECTOR_UNHEALTHY` that it is stored but could not be \
activated. The version that ran before goes on in each case.";

parameters! {
    pub struct Wanted {
        /// Put the version to work at once. Otherwise it is staged.
        activate: bool = false,
    }
}

/// What puts a version to work, and a body of another type.
const REFUSALS: &[Refusal] = &[
    CONNECTOR_INVALID,
    CONNECTOR_BLOCKED,
    CONNECTOR_UNHEALTHY,
    CONFLICT,
    ENGINE_RESERVED,
    CONNECTOR_QUOTA_EXCEEDED,
    COMPILE_TIME_EXCEEDED,
    CONCURRENCY_LIMIT_EXCEEDED,
    UNSUPPORTED_MEDIA_TYPE,
];

pub const PLATFORM: Operation = Operation::post("upload_connector", "/connectors")
    .about("Connectors", "Upload a connector for all companies")
    .notes(NOTES)
    .needs(Role::SuperAdmin, Permission::Write)
    .refuses(REFUSALS);

pub const COMPANY: Operation = Operation::post(
    "upload_company_connector",
    "/companies/{company_id}/connectors",
)
.about(
    "Connectors",
    "Upload a connector that is private to the company",
)
.notes(COMPANY_NOTES)
.needs(Role::DataEngineer, Permission::Write)
.refuses(REFUSALS);

/// A connector.
pub struct Component;

impl Media for Component {
    const CONTENT_TYPE: &'static str = "application/wasm";
    const MEMORY_BYTES_MAX: u64 = COMPONENT_BYTES_MAX as u64;
}

/// Checks, keeps and stages a component, and puts it to work if asked to.
pub async fn upload_connector(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
    headers: HeaderMap,
    upload: Upload<Component>,
) -> Result<Created<ConnectorOut>, Problem> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    if kind.split(';').next().unwrap_or_default().trim() != Component::CONTENT_TYPE {
        return Err(Problem::unsupported_media_type(Component::CONTENT_TYPE));
    }
    let scope = scope(&caller);
    let activate = query.activate;
    let (body, lost) = (upload.body.into_data_stream(), upload.lost);
    let info = connectors::upload(
        api.app(),
        &scope,
        (caller.named(), caller.is_staff()),
        body,
        activate,
        // Its place among uploads, and a host that stops waits for it.
        (caller.clone(), api.detach()),
    )
    .await
    .map_err(|error| lost.or(refusal("")(error)))?;
    let engines = connectors::Engines::load(api.app(), caller.company())
        .await
        .map_err(refusal(""))?;
    let base = match &scope {
        Scope::Platform => String::new(),
        Scope::Company(company) => format!("/companies/{company}"),
    };
    Ok(Created {
        location: format!("{base}/connectors/{}", info.name),
        data: ConnectorOut::new(info, &engines),
    })
}
