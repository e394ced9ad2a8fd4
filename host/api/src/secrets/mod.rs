//! The sealed secrets of all companies, for whoever replaces the master key.

pub mod reseal;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new().add(reseal::OPERATION, reseal::reseal_secrets)
}
