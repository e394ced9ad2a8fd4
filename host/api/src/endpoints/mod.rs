//! Endpoints: pages of rows, billed per request.

pub mod available;
pub mod create;
pub mod delete;
pub mod execute;
pub mod get;
pub mod list;
pub mod parts;
pub mod publish;
pub mod shape;
pub mod stats;
pub mod test;
pub mod unpublish;
pub mod update;
pub mod url;

use crate::Routes;

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
        .add(stats::OPERATION, stats::endpoint_stats)
        .add(test::OPERATION, test::test_endpoint)
        .add(url::OPERATION, url::get_endpoint_url)
        .add(available::OPERATION, available::list_available_endpoints)
}
