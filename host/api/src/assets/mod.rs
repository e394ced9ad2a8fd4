//! Assets: one insight per execution.

pub mod create;
pub mod delete;
pub mod execute;
pub mod get;
pub mod list;
pub mod process;
pub mod publish;
pub mod shape;
pub mod test;
pub mod unpublish;
pub mod update;

use crate::refusals::{CONFLICT, SLUG_TAKEN};
use crate::{Problem, Routes};
use souk_domain::ids::{AssetId, CompanyId};
use souk_store::AnyConnection;
use souk_store::assets::{self, Asset};

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_assets)
        .add(create::OPERATION, create::create_asset)
        .add(get::OPERATION, get::get_asset)
        .add(update::OPERATION, update::update_asset)
        .add(delete::OPERATION, delete::delete_asset)
        .add(publish::OPERATION, publish::publish_asset)
        .add(unpublish::OPERATION, unpublish::unpublish_asset)
        .add(test::OPERATION, test::test_asset)
        .add(test::GET_OPERATION, test::test_asset_defaults)
        .add(execute::OPERATION, execute::execute_asset)
        .add(process::OPERATION, process::process_asset)
        .add(process::GET_OPERATION, process::process_asset_by_query)
}

/// An asset of this company that is not archived.
pub async fn find(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &AssetId,
) -> Result<Asset, Problem> {
    assets::get(db, company, id)
        .await?
        .ok_or_else(|| not_found(id))
}

pub fn not_found(id: &AssetId) -> Problem {
    Problem::not_found("asset", id.as_str())
}

fn slug_taken(slug: &str) -> Problem {
    Problem::of(
        SLUG_TAKEN,
        format!("the company has an asset with the slug \"{slug}\"; choose another"),
    )
}

fn changed() -> Problem {
    Problem::of(
        CONFLICT,
        "the asset was changed at the same time; read it again and repeat the change",
    )
}
