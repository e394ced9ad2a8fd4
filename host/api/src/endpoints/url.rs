use crate::data::{path_url, url};
use crate::products::find;
use crate::words;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use serde::Serialize;
use souk_domain::ids::{CompanyId, EndpointId};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get(
    "get_endpoint_url",
    "/companies/{company_id}/endpoints/{endpoint_id}/url",
)
.about("Endpoints", "Where buyers fetch an endpoint");

#[derive(Serialize, ToSchema)]
pub struct EndpointUrl {
    /// With the seller's handle as the subdomain, where the service is reached by name.
    pub url: String,
    /// With the handle in the path: works without a subdomain.
    pub path_url: String,
    pub slug: String,
    pub company_handle: String,
    #[schema(value_type = words::Method)]
    pub method: &'static str,
    #[schema(value_type = words::Version)]
    pub version: &'static str,
    pub example_curl: String,
}

/// Says where buyers fetch an endpoint.
pub async fn get_endpoint_url(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
) -> Result<Data<EndpointUrl>, Problem> {
    let endpoint = find(&mut *api.db().read().await?, caller.company(), &id).await?;
    let (handle, slug) = (endpoint.company_handle, endpoint.written.slug);
    let url = url(api.settings(), &handle, &slug);
    Ok(Data(EndpointUrl {
        example_curl: format!("curl -H 'x-api-key: <ENDPOINT_KEY>' '{url}?start=0&limit=10'"),
        path_url: path_url(api.settings(), &handle, &slug),
        url,
        slug,
        company_handle: handle,
        method: "GET",
        version: "v1",
    }))
}
