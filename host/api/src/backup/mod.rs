//! Backups of the whole host, for whoever operates it.

pub mod take;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new().add(take::OPERATION, take::take_backup)
}
