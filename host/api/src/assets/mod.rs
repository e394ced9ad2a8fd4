//! Assets: one insight per execution.

pub mod column_scan;
pub mod create;
pub mod delete;
pub mod execute;
pub mod get;
pub mod information_schema;
pub mod list;
mod parts;
pub mod predicted_price;
pub mod process;
pub mod public_statistics;
pub mod publish;
pub mod save_schema;
pub mod search;
pub mod shape;
pub mod statistics;
pub mod test;
pub mod unpublish;
pub mod update;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_assets)
        .add(create::OPERATION, create::create_asset)
        .add(search::OPERATION, search::search_assets)
        .add(get::OPERATION, get::get_asset)
        .add(update::OPERATION, update::update_asset)
        .add(delete::OPERATION, delete::delete_asset)
        .add(publish::OPERATION, publish::publish_asset)
        .add(unpublish::OPERATION, unpublish::unpublish_asset)
        .add(statistics::OPERATION, statistics::asset_statistics)
        .add(
            public_statistics::OPERATION,
            public_statistics::asset_public_statistics,
        )
        .add(
            information_schema::OPERATION,
            information_schema::asset_information_schema,
        )
        .add(save_schema::OPERATION, save_schema::save_asset_schema)
        .add(save_schema::POST_OPERATION, save_schema::save_asset_schema)
        .add(predicted_price::OPERATION, predicted_price::predict_price)
        .add(
            predicted_price::GET_OPERATION,
            predicted_price::predict_price_by_query,
        )
        .add(column_scan::OPERATION, column_scan::scan_asset_column)
        .add(test::OPERATION, test::test_asset)
        .add(test::GET_OPERATION, test::test_asset_defaults)
        .add(execute::OPERATION, execute::execute_asset)
        .add(process::OPERATION, execute::execute_asset)
        .add(process::GET_OPERATION, process::process_asset_by_query)
}
