use super::shape::EntryOut;
use crate::large::Large;
use crate::query::{Since, Until, parameters};
use crate::refusals::INVALID_PERIOD;
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query, Text};
use axum::extract::State;
use souk_domain::roles::{Permission, Role};
use souk_store::StoreError;
use souk_store::audit::{self, Entry, Filter};

pub const OPERATION: Operation =
    Operation::get("list_audit_log", "/companies/{company_id}/audit-log")
        .about("Audit log", "Who changed what, newest first")
        .notes(
            "One line for each thing that a request changed, written in the transaction that changed it and never changed itself; lines of one \
             request share its `request_id`. What changed nothing leaves no line. Executions are not here: they are in the statistics and in \
             the company's transactions. Kept for two years, of a company that has very many the newest 128 MiB. Values have the names and forms of the store; of a \
             longer one the first 1,000 characters are there, and an ellipsis.",
        )
        .needs(Role::Admin, Permission::Read)
        .refuses(&[INVALID_PERIOD]);

parameters! {
    pub struct AuditQuery {
        ..paging: Paging,
        /// Of this operation, by its id in this document.
        operation: Option<Text<0, 255>>,
        /// Of this kind of thing, such as `api_key`.
        subject_type: Option<Text<0, 255>>,
        /// Of this thing.
        subject_id: Option<Text<0, 255>>,
        /// What was done with this key.
        api_key_id: Option<Text<0, 255>>,
        /// What this request did.
        request_id: Option<Text<0, 255>>,
        /// From this date or instant on.
        start_date: Option<Since>,
        /// Up to this date, which is included, or instant.
        end_date: Option<Until>,
    }
}

/// Lists what was changed of the company's, and what its keys have changed elsewhere.
pub async fn list_audit_log(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<AuditQuery>,
) -> Result<Large<List<EntryOut>>, Problem> {
    let text = |given: Option<Text<0, 255>>| given.map(Text::into_string);
    let filter = Filter {
        operation: text(query.operation),
        subject_type: text(query.subject_type),
        subject_id: text(query.subject_id),
        actor: text(query.api_key_id),
        request_id: text(query.request_id),
        from: query.start_date.map(|from| from.0),
        to: query.end_date.map(|to| to.0),
    };
    if matches!((filter.from, filter.to), (Some(from), Some(to)) if to <= from) {
        return Err(Problem::of(
            INVALID_PERIOD,
            "end_date must be after start_date",
        ));
    }
    let page = query.paging.page();
    let mut read = api.db().read().await?;
    let listed = audit::list(&mut read, caller.company(), &filter, page.part()).await?;
    // Whoever waits for a turn to compute holds no reader.
    drop(read);
    let (entries, total) = listed;
    let reader = (!caller.is_staff()).then(|| caller.company().clone());
    let bytes = entries.iter().map(Entry::bytes).sum();
    let show = move || -> Result<_, Problem> {
        let shown = entries
            .into_iter()
            .map(|entry| EntryOut::of(entry, reader.as_ref()));
        let data = shown.collect::<Result<Vec<_>, StoreError>>()?;
        Ok(List { data, total, page })
    };
    Large::show(&api, &caller, bytes, show).await
}
