//! The audit log: who changed what, when, from where, and what it was before and after, without secrets.
//!
//! Nothing writes it by hand that could be forgotten. Whoever answers for a request says so around its work ([`acting`]); each transaction
//! in there that is begun by [`Db::write`](crate::Db::write) carries it, and triggers on the audited tables ([`tables`]) write a line for each
//! row that is changed. What has no such trigger is noted beside its statement ([`note`]). Without an act nothing is written: background
//! work answers to nobody. [`kept`] forgets. Refuses to know who may read it. Start reading at [`acting`] and [`list`].

pub mod kept;
pub mod tables;
pub(crate) mod triggers;

use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::lists::{self, Listed, Part, Values};
use serde_json::{Map, Value};
use souk_domain::actors::Actor;
use souk_domain::ids::{AuditId, CompanyId, RequestId, UserId};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::SystemTime;
use tables::{Shown, TABLES};

/// What somebody is doing.
#[derive(Debug, Clone)]
pub struct Act {
    /// The company that is acted in. `None`: whose rows they are says each row.
    pub company: Option<CompanyId>,
    /// `None`: the operation asks for no key.
    pub by: Option<ActedBy>,
    pub address: IpAddr,
    pub operation: &'static str,
    pub method: &'static str,
    pub path: String,
    pub request: RequestId,
    /// It came by an operation that asks for no key: what it writes waits behind all such, in one line. What the host does itself does not.
    pub is_keyless: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActedBy {
    pub company: CompanyId,
    pub actor: Actor,
    pub user: Option<UserId>,
    pub role: u8,
}

impl Act {
    /// What whoever owns the machine does with a command of souk, without a key and without a host.
    pub fn command(operation: &'static str, path: &str) -> Arc<Act> {
        Arc::new(Act {
            company: None,
            by: None,
            address: Ipv4Addr::LOCALHOST.into(),
            operation,
            method: "COMMAND",
            path: path.to_owned(),
            request: RequestId::generate_at(SystemTime::now().into()),
            is_keyless: false,
        })
    }
}

tokio::task_local! {
    static ACT: Arc<Act>;
}

/// Whoever answers for what `work` changes.
pub async fn acting<T>(act: Arc<Act>, work: impl Future<Output = T>) -> T {
    ACT.scope(act, work).await
}

/// `work` on behalf of whoever is acting now: for work that is spawned.
pub fn on_behalf<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let act = ACT.try_with(Arc::clone).ok();
    async move {
        match act {
            Some(act) => acting(act, work).await,
            None => work.await,
        }
    }
}

/// What is being done, by its operation's name; nothing where nobody acts.
pub(crate) fn operation() -> Option<&'static str> {
    ACT.try_with(|act| act.operation).ok()
}

/// Whose changes wait behind each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Party {
    Company(CompanyId),
    /// All who are not signed in.
    Nobody,
}

/// Who is acting, if a company or somebody without a key is.
pub(crate) fn party() -> Option<Party> {
    let party = ACT.try_with(|act| match (&act.by, act.is_keyless) {
        (Some(by), _) => Some(Party::Company(by.company.clone())),
        (None, true) => Some(Party::Nobody),
        (None, false) => None,
    });
    party.ok().flatten()
}

/// Says in the transaction who is acting, if anybody is. Returns by what its lines are found.
pub(crate) async fn begin(write: &mut Write) -> Result<Option<AuditId>, StoreError> {
    let Ok(act) = ACT.try_with(Arc::clone) else {
        return Ok(None);
    };
    let now = Timestamp::from(SystemTime::now());
    let id = AuditId::generate_at(now);
    let by = act.by.as_ref();
    sqlx::query(
        "INSERT INTO audit_acting (act_id, at, company_id, actor_company_id, actor, user_id, role, address, operation, method, path,
                                   request_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(id.as_str())
    .bind(now.micros())
    .bind(act.company.as_ref().map(CompanyId::as_str))
    .bind(by.map(|by| by.company.as_str()))
    .bind(by.map(|by| by.actor.as_str()))
    .bind(by.and_then(|by| by.user.as_ref()).map(UserId::as_str))
    .bind(by.map(|by| i64::from(by.role)))
    .bind(act.address.to_string())
    .bind(act.operation)
    .bind(act.method)
    .bind(&act.path)
    .bind(act.request.as_str())
    .execute(&mut **write)
    .await?;
    Ok(Some(id))
}

/// Takes back what [`begin`] said, before the commit.
pub(crate) async fn end(write: &mut Write) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM audit_acting")
        .execute(&mut **write)
        .await?;
    Ok(())
}

/// Whether the transaction of this act has left lines. One whose commit is still on its way is waited for. Roll back: it writes one of its own.
pub(crate) async fn has_lines(write: &mut Write, act: &AuditId) -> Result<bool, StoreError> {
    // A row is not seen before its commit has ended; whoever inserts the same one waits for it.
    let inserted = sqlx::query(
        "INSERT INTO audit_log (act_id, line, at, address, operation, method, path, request_id, subject_type, subject_id, change)
         VALUES ($1, 1, 0, '', '', '', '', '', '', '', 'changed')
         ON CONFLICT (act_id, line) DO NOTHING",
    )
    .bind(act.as_str())
    .execute(&mut **write)
    .await?;
    Ok(inserted.rows_affected() == 0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Created,
    Changed,
    Deleted,
}

impl Change {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
        }
    }

    fn read(text: &str) -> Result<Self, StoreError> {
        [Self::Created, Self::Changed, Self::Deleted]
            .into_iter()
            .find(|change| change.as_str() == text)
            .ok_or_else(|| corrupt("change", format!("{text:?}")))
    }
}

/// Writes a line of what no trigger watches, if somebody is acting. `company`: whose it is, if not the company's that is acted in.
pub(crate) async fn note(
    write: &mut Write,
    company: Option<&CompanyId>,
    (subject, id): (&str, &str),
    change: Change,
    before: Option<Value>,
    after: Option<Value>,
) -> Result<(), StoreError> {
    if ACT.try_with(|_| ()).is_err() {
        return Ok(());
    }
    let (before, after) = (
        before.map(|value| value.to_string()),
        after.map(|value| value.to_string()),
    );
    let bytes = triggers::LINE_BYTES + bytes(&before, &after);
    sqlx::query(
        "INSERT INTO audit_log (act_id, line, at, company_id, actor_company_id, actor, user_id, role, address, operation, method, path,
                                request_id, subject_type, subject_id, change, before_values, after_values, bytes)
         SELECT a.act_id, (SELECT COALESCE(MAX(l.line), 0) + 1 FROM audit_log AS l WHERE l.act_id = a.act_id), a.at,
                COALESCE(CAST($1 AS TEXT), a.company_id), a.actor_company_id, a.actor, a.user_id, a.role, a.address, a.operation, a.method,
                a.path, a.request_id, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT),
                CAST($7 AS BIGINT)
         FROM audit_acting AS a",
    )
    .bind(company.map(CompanyId::as_str))
    .bind(subject)
    .bind(id)
    .bind(change.as_str())
    .bind(before)
    .bind(after)
    .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Of stored values.
fn bytes(before: &Option<String>, after: &Option<String>) -> usize {
    [before, after].into_iter().flatten().map(String::len).sum()
}

/// One line of the log. Its values are read when they are asked for: a page of long ones takes a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Of its transaction, and of the line therein.
    pub id: String,
    pub at: Timestamp,
    /// Whose row it is.
    pub company_id: Option<CompanyId>,
    pub by: Option<ActedBy>,
    pub address: String,
    pub operation: String,
    pub method: String,
    pub path: String,
    pub request_id: String,
    pub subject_type: String,
    pub subject_id: String,
    pub change: Change,
    before: Option<String>,
    after: Option<String>,
}

impl Entry {
    /// What is stored of its values.
    pub fn bytes(&self) -> usize {
        bytes(&self.before, &self.after)
    }

    /// The values before, as they are shown.
    pub fn before(&self) -> Result<Option<Map<String, Value>>, StoreError> {
        self.values("before_values", self.before.as_deref())
    }

    /// The values after, likewise.
    pub fn after(&self) -> Result<Option<Map<String, Value>>, StoreError> {
        self.values("after_values", self.after.as_deref())
    }

    fn values(
        &self,
        column: &str,
        text: Option<&str>,
    ) -> Result<Option<Map<String, Value>>, StoreError> {
        text.map(|text| shown(&self.subject_type, column, text))
            .transpose()
    }
}

/// Which lines to list. Empty fields match all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub operation: Option<String>,
    pub subject_type: Option<String>,
    pub subject_id: Option<String>,
    pub actor: Option<String>,
    pub request_id: Option<String>,
    pub from: Option<Timestamp>,
    /// Not included.
    pub to: Option<Timestamp>,
}

impl Filter {
    fn texts(&self) -> [(&'static str, Option<&str>); 5] {
        [
            ("operation =", self.operation.as_deref()),
            ("subject_type =", self.subject_type.as_deref()),
            ("subject_id =", self.subject_id.as_deref()),
            ("actor =", self.actor.as_deref()),
            ("request_id =", self.request_id.as_deref()),
        ]
    }

    fn times(&self) -> [(&'static str, Option<i64>); 2] {
        let micros = |time: Option<Timestamp>| time.map(Timestamp::micros);
        [("at >=", micros(self.from)), ("at <", micros(self.to))]
    }

    /// The keys of lines that match, and the number of parameters: what is not filtered by is not mentioned, so that lines are counted, and left
    /// out before a page, by indexes alone.
    fn keys(&self) -> (String, usize) {
        let texts = self.texts().map(|(is, text)| (is, text.is_some()));
        let times = self.times().map(|(is, time)| (is, time.is_some()));
        let (mut count, mut holds) = (1, String::new());
        for (is, is_wanted) in texts.into_iter().chain(times) {
            if is_wanted {
                count += 1;
                holds.push_str(&format!(" AND {is} ${count}"));
            }
        }
        // The second condition is its index's own. Lists that are in order are merged, so that a deep page takes no memory.
        let keys = format!(
            "SELECT at, act_id, line FROM audit_log WHERE company_id = $1{holds}
             UNION ALL
             SELECT at, act_id, line
             FROM audit_log
             WHERE actor_company_id = $1 AND (company_id IS NULL OR company_id <> actor_company_id){holds}"
        );
        (keys, count)
    }
}

/// What a page shows.
const COLUMNS: &str = "act_id, line, at, company_id, actor_company_id, actor, user_id, role, address, operation, method, path, request_id,
                       subject_type, subject_id, change, before_values, after_values";
/// By time first: texts of ids are sorted as the database's collation has it.
const ORDER: &str = "at DESC, act_id DESC, line DESC";

/// What was changed of a company's, and what its keys have changed elsewhere: newest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: &Filter,
    part: Part,
) -> Result<Listed<Entry>, StoreError> {
    let (keys, count) = filter.keys();
    let bind = |values: &mut Values| {
        values.text(Some(company.as_str()));
        for (_, text) in filter.texts() {
            if text.is_some() {
                values.text(text);
            }
        }
        for (_, time) in filter.times() {
            if time.is_some() {
                values.number(time);
            }
        }
    };
    let of = (COLUMNS, "audit_log", "at, act_id, line");
    lists::keys_joined(db, of, (&keys, ORDER), count, part, bind, from_row).await
}

fn from_row(row: &AnyRow) -> Result<Entry, StoreError> {
    let actor: Option<Actor> = row.id_opt("actor")?;
    let by = match actor.zip(row.id_opt("actor_company_id")?) {
        Some((actor, company)) => Some(ActedBy {
            company,
            actor,
            user: row.id_opt("user_id")?,
            role: u8::try_from(row.number("role")?).map_err(|error| corrupt("role", error))?,
        }),
        None => None,
    };
    Ok(Entry {
        id: format!("{}-{}", row.text("act_id")?, row.number("line")?),
        at: row.time("at")?,
        company_id: row.id_opt("company_id")?,
        by,
        address: row.text("address")?,
        operation: row.text("operation")?,
        method: row.text("method")?,
        path: row.text("path")?,
        request_id: row.text("request_id")?,
        subject_type: row.text("subject_type")?,
        subject_id: row.text("subject_id")?,
        change: Change::read(&row.text("change")?)?,
        before: row.text_opt("before_values")?,
        after: row.text_opt("after_values")?,
    })
}

/// Stored values as they are shown: instants, booleans and JSON instead of what columns hold.
fn shown(subject: &str, column: &str, text: &str) -> Result<Map<String, Value>, StoreError> {
    let mut values: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| corrupt(column, error))?;
    let table = TABLES.iter().find(|table| table.subject == subject);
    let columns = table.map_or(&[][..], |table| table.columns);
    for (name, kind) in columns {
        if let Some(value) = values.get_mut(*name) {
            *value = show(*kind, value.take());
        }
    }
    Ok(values)
}

fn show(kind: Shown, value: Value) -> Value {
    match (kind, &value) {
        (Shown::Time, Value::Number(micros)) => match micros.as_i64() {
            Some(micros) => Timestamp::from_micros(micros).to_string().into(),
            None => value,
        },
        (Shown::Flag, Value::Number(flag)) => (flag.as_i64() != Some(0)).into(),
        (Shown::Json, Value::String(text)) => serde_json::from_str(text).unwrap_or(value),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::Plans;

    /// However deep a page is, lines before it are left out by indexes alone, and nothing is sorted; so is what is of a period.
    #[tokio::test]
    async fn a_deep_page_is_found_by_indexes() {
        let plans = Plans::open().await;
        let of_period = Filter {
            from: Some(Timestamp::from_micros(0)),
            ..Filter::default()
        };
        for filter in [Filter::default(), of_period] {
            let (keys, count) = filter.keys();
            let (limit, offset) = (count + 1, count + 2);
            let page = format!("{keys} ORDER BY {ORDER} LIMIT ${limit} OFFSET ${offset}");
            let steps = plans.steps(&page).await;
            let searches = steps.iter().filter(|step| step.contains("audit_log"));
            let searches: Vec<&String> = searches.collect();
            let are_covered = searches
                .iter()
                .all(|step| step.contains("USING COVERING INDEX"));
            assert!(searches.len() == 2 && are_covered, "{steps:#?}");
            let is_sorted = steps.iter().any(|step| step.contains("TEMP B-TREE"));
            assert!(!is_sorted, "{steps:#?}");
        }
    }
}
