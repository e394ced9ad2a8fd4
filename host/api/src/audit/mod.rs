//! The audit log: who changed what, when and from where. It is written by the store, for every operation that changes something.

pub mod list;
pub mod shape;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new().add(list::OPERATION, list::list_audit_log)
}
