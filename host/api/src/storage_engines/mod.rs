//! What a connection can lead to, and what it takes to say where.

pub mod list;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new().add(list::OPERATION, list::list_storage_engines)
}
