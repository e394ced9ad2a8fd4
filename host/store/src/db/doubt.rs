//! A transaction whose commit was not answered, because the connection ended in the middle of it: whether it went through.

use souk_domain::ids::AuditId;
use sqlx::any::AnyRow;

use super::{Db, Purpose, Write, in_time, postgres};
use crate::audit;
use crate::error::StoreError;
use crate::fields::Fields;

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    /// Or so long ago that the server has forgotten it.
    Undone,
    Open,
}

/// By what a server knows this transaction. `None`: the store is this host's own, whose commits are always answered.
pub(crate) async fn number_of(write: &mut Write) -> Result<Option<String>, StoreError> {
    if !write.is_shared() {
        return Ok(None);
    }
    let row = sqlx::query("SELECT CAST(pg_current_xact_id() AS TEXT) AS number")
        .fetch_one(&mut **write)
        .await?;
    row.text("number").map(Some)
}

impl Db {
    /// What became of the transaction that a server knows by this [number](number_of): for work that leaves no lines. One that is open is not waited for.
    pub(crate) async fn outcome(&self, number: &str) -> Result<Outcome, StoreError> {
        let asked = async {
            let mut read = self.read().await?;
            let status =
                sqlx::query("SELECT pg_xact_status(CAST(CAST($1 AS TEXT) AS xid8)) AS status")
                    .bind(number);
            Ok::<AnyRow, StoreError>(status.fetch_one(&mut *read).await?)
        };
        let row = self.answered(postgres::ANSWERED_WITHIN, asked).await?;
        Ok(match row.text_opt("status")?.as_deref() {
            Some("committed") => Outcome::Committed,
            Some("in progress") => Outcome::Open,
            _ => Outcome::Undone,
        })
    }

    /// Whether it went through, by the lines that it has left in the audit log. False where it has left none, and where nobody knows.
    pub(super) async fn is_committed(&self, act: Option<&AuditId>, failure: &StoreError) -> bool {
        // A store of this host's own is no connection away; and what was refused is not there.
        let Some(act) = act.filter(|_| self.is_shared() && !failure.is_refusal()) else {
            return false;
        };
        match self.has_lines(act).await {
            Ok(is_committed) => is_committed,
            Err(error) => {
                tracing::warn!(%error, "it is not known whether a transaction was committed");
                false
            }
        }
    }

    async fn has_lines(&self, act: &AuditId) -> Result<bool, StoreError> {
        // Nothing of it is committed.
        let mut write = self.begin(Purpose::Any).await?;
        let limit = write.limit(postgres::ANSWERED_WITHIN);
        let found = in_time(limit, audit::has_lines(&mut write, act)).await;
        write.answered(found)
    }
}
