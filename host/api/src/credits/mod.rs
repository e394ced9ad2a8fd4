//! Credits (specification 4.6): what a company has and used, and what the platform gives.

pub mod get;
pub mod grant;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(get::OPERATION, get::get_credits)
        .add(grant::OPERATION, grant::grant_credits)
}
