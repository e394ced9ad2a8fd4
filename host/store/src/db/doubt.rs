//! A transaction whose commit was not answered, because the connection ended in the middle of it: whether it went through.

use souk_domain::ids::AuditId;

use super::{Db, Purpose, in_time, postgres};
use crate::audit;
use crate::error::StoreError;

impl Db {
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
