//! An operation with its handler, in its place among the others.

use crate::describe::{Description, Erased};
use crate::observed::Counts;
use crate::operation::{CompanyRule, Operation};
use crate::problem::Problem;
use crate::state::ApiState;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use souk_store::db::READ_WITHIN;
use std::sync::Arc;

/// An operation in its place: what the gate needs beside the declaration.
pub struct Mounted {
    pub operation: Operation,
    pub description: Description,
    pub(crate) handler: Erased,
    /// Its bucket among those of a key, if it has a limit of its own.
    pub bucket: Option<usize>,
    /// What statistics call it: the first fixed segment of its path, the company's left out.
    pub prefix: &'static str,
    /// Its calls on this host.
    pub counts: Arc<Counts>,
}

impl Mounted {
    /// What its handler answers: 503 where the store does not answer what it reads.
    pub(crate) fn answer(
        &self,
        request: Request,
        state: ApiState,
    ) -> impl Future<Output = Response> + Send + use<> {
        let (store, handled) = (state.clone(), (self.handler)(request, state));
        async move {
            let db = store.db();
            // Nearly every request of a host with a store of its own comes by here.
            if !db.is_shared() {
                return handled.await;
            }
            let handled = async { Ok::<_, Problem>(handled.await) };
            let answered = Box::pin(db.answered(READ_WITHIN, handled)).await;
            answered.unwrap_or_else(Problem::into_response)
        }
    }

    /// The company that a path names, when the operation has one there: the raw second segment.
    pub(crate) fn path_company<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self.operation.company {
            CompanyRule::Own => path.strip_prefix("/companies/")?.split('/').next(),
            CompanyRule::Unchecked => None,
        }
    }
}
