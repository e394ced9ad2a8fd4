//! Endpoints: pages of rows, billed per request.

pub mod available;
pub mod create;
pub mod delete;
pub mod execute;
pub mod get;
pub mod list;
mod price;
pub mod publish;
pub mod shape;
pub mod test;
pub mod unpublish;
pub mod update;
pub mod url;

use crate::refusals::{CONFLICT, SLUG_TAKEN};
use crate::{Problem, Routes};
use souk_domain::ids::{CompanyId, EndpointId};
use souk_store::AnyConnection;
use souk_store::endpoints::{self, Endpoint};

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_endpoints)
        .add(create::OPERATION, create::create_endpoint)
        .add(get::OPERATION, get::get_endpoint)
        .add(update::OPERATION, update::update_endpoint)
        .add(delete::OPERATION, delete::delete_endpoint)
        .add(publish::OPERATION, publish::publish_endpoint)
        .add(unpublish::OPERATION, unpublish::unpublish_endpoint)
        .add(execute::OPERATION, execute::execute_endpoint)
        .add(test::OPERATION, test::test_endpoint)
        .add(url::OPERATION, url::get_endpoint_url)
        .add(available::OPERATION, available::list_available_endpoints)
}

/// An endpoint of this company that is not archived.
pub async fn find(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &EndpointId,
) -> Result<Endpoint, Problem> {
    endpoints::get(db, company, id)
        .await?
        .ok_or_else(|| not_found(id))
}

pub fn not_found(id: &EndpointId) -> Problem {
    Problem::not_found("endpoint", id.as_str())
}

fn slug_taken(slug: &str) -> Problem {
    Problem::of(
        SLUG_TAKEN,
        format!("the company has an endpoint with the slug \"{slug}\"; choose another"),
    )
}

fn changed() -> Problem {
    Problem::of(
        CONFLICT,
        "the endpoint was changed at the same time; read it again and repeat the change",
    )
}
