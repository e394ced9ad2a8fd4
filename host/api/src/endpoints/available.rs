use crate::data::url;
use crate::products::find;
use crate::words;
use crate::{All, ApiState, Caller, Operation, Path, Problem};
use axum::extract::State;
use serde::Serialize;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_store::prices;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get(
    "list_available_endpoints",
    "/companies/{company_id}/endpoints/{endpoint_id}/available-endpoints",
)
.about("Endpoints", "The callable routes of an endpoint")
.notes("Of the company's own endpoint. What was bought is called at `/endpoints/v1/{company_handle}/{endpoint_slug}`, with what the product says.");

#[derive(Serialize, ToSchema)]
pub struct AvailableEndpoint {
    #[schema(value_type = words::CallableRoute)]
    pub name: &'static str,
    #[schema(value_type = words::Method)]
    pub method: &'static str,
    pub path: String,
    pub url: String,
    /// Which key it takes.
    pub auth: &'static str,
    pub description: &'static str,
    #[schema(minimum = 0)]
    pub credits_per_request: i64,
}

/// Lists the routes that an endpoint can be called by.
pub async fn list_available_endpoints(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
) -> Result<All<AvailableEndpoint>, Problem> {
    let mut read = api.db().read().await?;
    let endpoint = find(&mut read, caller.company(), &id).await?;
    let price = prices::active(&mut read, id.as_str(), caller.now()).await?;
    let base_url = &api.settings().base_url;
    let managed = |name, path: String, auth, description| AvailableEndpoint {
        name,
        method: "GET",
        url: format!("{base_url}{path}"),
        path,
        auth,
        description,
        credits_per_request: 0,
    };
    let own = format!("/companies/{}/endpoints/{id}", caller.company());
    let data = AvailableEndpoint {
        name: "data",
        method: "GET",
        path: format!("/endpoints/v1/{}", endpoint.written.slug),
        url: url(
            api.settings(),
            &endpoint.company_handle,
            &endpoint.written.slug,
        ),
        auth: "endpoint key, or the seller's analytics key at no charge",
        description: "A page of rows; next_url leads to the next one.",
        credits_per_request: price.map_or(0, |price| price.credits.get()),
    };
    let preview = format!("/marketplace/products/{id}/preview");
    Ok(All(vec![
        data,
        managed(
            "preview",
            preview,
            "analytics key",
            "The same three sample rows for everybody, once it is published.",
        ),
        managed(
            "execute",
            format!("{own}/execute"),
            "the seller's analytics key",
            "A page of rows as the owner.",
        ),
        managed(
            "test",
            format!("{own}/test"),
            "the seller's analytics key, role 2",
            "The first rows, also before it is published.",
        ),
        managed(
            "url",
            format!("{own}/url"),
            "the seller's analytics key",
            "Where buyers fetch it.",
        ),
    ]))
}
