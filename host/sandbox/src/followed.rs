//! What is noted of a run for a call that is followed (`souk_outbound::spans`): which connector was asked for what, and how that ended. Nothing of
//! what was asked or answered.

use std::time::Instant;

use souk_outbound::spans::{Followed, Labels};

use crate::{columns::Output, fault::Fault, pool::Pool, request::Request};

/// From asking for a session until the answer is there, waiting included.
pub(crate) struct Part {
    name: String,
    labels: Labels,
}

impl Part {
    #[cold]
    pub fn of(pool: &Pool, request: &Request) -> Part {
        let (connector, source) = (&pool.connector, &pool.source);
        let asked = match request {
            Request::Query(_) => "query",
            Request::Schema(_) => "schema",
            Request::Call(_) => "call",
            Request::Ping(_) => "ping",
            Request::Errand(_) => "errand",
            Request::Publish(_) => "publish",
            Request::Check(_) => "check",
        };
        Part {
            name: format!("{asked} {}", connector.name),
            labels: vec![
                ("souk.request", asked.into()),
                ("souk.connector.name", connector.name.as_str().into()),
                ("souk.connector.version", connector.version.as_str().into()),
                ("souk.connector.digest", connector.digest.as_str().into()),
                ("souk.engine", source.engine.as_str().into()),
                ("souk.connection_id", source.connection.as_str().into()),
            ],
        }
    }

    /// A fault's words are its reader's; here is its code.
    #[cold]
    pub fn note(mut self, call: &Followed, began: Instant, answer: &Result<Output, Fault>) {
        let failure = match answer {
            Ok(output) => {
                let rows = i64::try_from(output.rows).unwrap_or(i64::MAX);
                self.labels.push(("souk.rows", rows.into()));
                None
            }
            Err(fault) => {
                let (blame, reason) = (fault.blame.as_str(), fault.kind.as_str());
                self.labels.push(("souk.blame", blame.into()));
                self.labels.push(("souk.reason", reason.into()));
                Some(fault.code.clone())
            }
        };
        call.note(self.name, began, self.labels, failure);
    }
}
