//! Companies: made by platform staff, seen by themselves.

pub mod create;
pub mod get;
pub mod shape;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(create::OPERATION, create::create_company)
        .add(get::ME, get::my_company)
        .add(get::OPERATION, get::get_company)
}
