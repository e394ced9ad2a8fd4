//! The audit log: who changed what, when, from where, and what it was before and after, without secrets.
//!
//! Nothing writes it by hand that could be forgotten. Whoever answers for a request says so around its work ([`acting`]); each transaction
//! in there that is begun by [`Db::write`](crate::Db::write) carries it, and triggers on the audited tables ([`tables`]) write a line for each
//! row that is changed. What has no such trigger is noted beside its statement ([`note`]). Without an act nothing is written: background
//! work answers to nobody. Refuses to know who may read it. Start reading at [`acting`] and [`list`].

pub mod tables;
pub(crate) mod triggers;

use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use serde_json::{Map, Value};
use souk_domain::ids::{AuditId, CompanyId, KeyId, RequestId, UserId};
use souk_domain::time::{DAY, Timestamp};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tables::{Shown, TABLES};

/// Two years: longer than the disputes that it is read for.
pub const KEPT: Duration = Duration::from_secs(730 * DAY.as_secs());
/// A commit of so many holds nobody up.
const SWEPT_AT_ONCE: i64 = 500;

/// What somebody is doing.
#[derive(Debug, Clone)]
pub struct Act {
    /// The company that is acted in. `None`: whose rows they are says each row.
    pub company: Option<CompanyId>,
    /// `None`: the operation asks for no key.
    pub actor: Option<Actor>,
    pub address: IpAddr,
    pub operation: &'static str,
    pub method: &'static str,
    pub path: String,
    pub request: RequestId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub company: CompanyId,
    pub key: KeyId,
    pub user: Option<UserId>,
    pub role: u8,
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

/// Says in the transaction who is acting, if anybody is.
pub(crate) async fn begin(write: &mut Write) -> Result<bool, StoreError> {
    let Ok(act) = ACT.try_with(Arc::clone) else {
        return Ok(false);
    };
    let now = Timestamp::from(SystemTime::now());
    let actor = act.actor.as_ref();
    sqlx::query(
        "INSERT INTO audit_acting (act_id, at, company_id, actor_company_id, key_id, user_id, role, address, operation, method, path,
                                   request_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(AuditId::generate_at(now).as_str())
    .bind(now.micros())
    .bind(act.company.as_ref().map(CompanyId::as_str))
    .bind(actor.map(|actor| actor.company.as_str()))
    .bind(actor.map(|actor| actor.key.as_str()))
    .bind(actor.and_then(|actor| actor.user.as_ref()).map(UserId::as_str))
    .bind(actor.map(|actor| i64::from(actor.role)))
    .bind(act.address.to_string())
    .bind(act.operation)
    .bind(act.method)
    .bind(&act.path)
    .bind(act.request.as_str())
    .execute(&mut **write)
    .await?;
    Ok(true)
}

/// Takes back what [`begin`] said, before the commit.
pub(crate) async fn end(write: &mut Write) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM audit_acting")
        .execute(&mut **write)
        .await?;
    Ok(())
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
    sqlx::query(
        "INSERT INTO audit_log (act_id, line, at, company_id, actor_company_id, key_id, user_id, role, address, operation, method, path,
                                request_id, subject_type, subject_id, change, before_values, after_values)
         SELECT a.act_id, (SELECT COUNT(*) + 1 FROM audit_log AS l WHERE l.act_id = a.act_id), a.at,
                COALESCE(CAST($1 AS TEXT), a.company_id), a.actor_company_id, a.key_id, a.user_id, a.role, a.address, a.operation, a.method,
                a.path, a.request_id, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT)
         FROM audit_acting AS a",
    )
    .bind(company.map(CompanyId::as_str))
    .bind(subject)
    .bind(id)
    .bind(change.as_str())
    .bind(before.map(|value| value.to_string()))
    .bind(after.map(|value| value.to_string()))
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Of its transaction, and of the line therein.
    pub id: String,
    pub at: Timestamp,
    /// Whose row it is.
    pub company_id: Option<CompanyId>,
    pub actor: Option<Actor>,
    pub address: String,
    pub operation: String,
    pub method: String,
    pub path: String,
    pub request_id: String,
    pub subject_type: String,
    pub subject_id: String,
    pub change: Change,
    pub before: Option<Map<String, Value>>,
    pub after: Option<Map<String, Value>>,
}

/// Which lines to list. Empty fields match all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub operation: Option<String>,
    pub subject_type: Option<String>,
    pub subject_id: Option<String>,
    pub key_id: Option<String>,
    pub request_id: Option<String>,
    pub from: Option<Timestamp>,
    /// Not included.
    pub to: Option<Timestamp>,
}

macro_rules! matching {
    () => {
        " FROM audit_log
         WHERE (company_id = $1 OR actor_company_id = $1)
           AND ($2 = '' OR operation = $2)
           AND ($3 = '' OR subject_type = $3)
           AND ($4 = '' OR subject_id = $4)
           AND ($5 = '' OR key_id = $5)
           AND ($6 = '' OR request_id = $6)
           AND at >= $7 AND at < $8"
    };
}

/// What was changed of a company's, and what its keys have changed elsewhere: newest first, and how many match.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: &Filter,
    offset: i64,
    limit: i64,
) -> Result<(Vec<Entry>, i64), StoreError> {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    macro_rules! bound {
        ($sql:expr) => {
            sqlx::query($sql)
                .bind(company.as_str())
                .bind(text(&filter.operation))
                .bind(text(&filter.subject_type))
                .bind(text(&filter.subject_id))
                .bind(text(&filter.key_id))
                .bind(text(&filter.request_id))
                .bind(filter.from.map_or(i64::MIN, Timestamp::micros))
                .bind(filter.to.map_or(i64::MAX, Timestamp::micros))
        };
    }
    let total = bound!(concat!("SELECT COUNT(*) AS total", matching!()))
        .fetch_one(&mut *db)
        .await?
        .number("total")?;
    let rows = bound!(concat!(
        "SELECT act_id, line, at, company_id, actor_company_id, key_id, user_id, role, address, operation, method, path, request_id,
                subject_type, subject_id, change, before_values, after_values",
        matching!(),
        " ORDER BY act_id DESC, line DESC LIMIT $9 OFFSET $10"
    ))
    .bind(limit)
    .bind(offset)
    .fetch_all(db)
    .await?;
    let entries = rows.iter().map(from_row).collect::<Result<_, _>>()?;
    Ok((entries, total))
}

/// Forgets some of what is older than [`KEPT`]. `false`: there is nothing left of it.
pub async fn sweep(write: &mut Write, now: Timestamp) -> Result<bool, StoreError> {
    let swept = sqlx::query(
        "DELETE FROM audit_log
         WHERE (act_id, line) IN (SELECT act_id, line FROM audit_log WHERE at < $1 ORDER BY at LIMIT $2)",
    )
    .bind(now.before(KEPT).micros())
    .bind(SWEPT_AT_ONCE)
    .execute(&mut **write)
    .await?;
    Ok(swept.rows_affected() > 0)
}

fn from_row(row: &AnyRow) -> Result<Entry, StoreError> {
    let subject_type = row.text("subject_type")?;
    let values = |column| {
        let text = row.text_opt(column)?;
        text.map(|text| shown(&subject_type, column, &text))
            .transpose()
    };
    let (before, after) = (values("before_values")?, values("after_values")?);
    let key: Option<KeyId> = row.id_opt("key_id")?;
    let actor = match key.zip(row.id_opt("actor_company_id")?) {
        Some((key, company)) => Some(Actor {
            company,
            key,
            user: row.id_opt("user_id")?,
            role: u8::try_from(row.number("role")?).map_err(|error| corrupt("role", error))?,
        }),
        None => None,
    };
    Ok(Entry {
        id: format!("{}-{}", row.text("act_id")?, row.number("line")?),
        at: row.time("at")?,
        company_id: row.id_opt("company_id")?,
        actor,
        address: row.text("address")?,
        operation: row.text("operation")?,
        method: row.text("method")?,
        path: row.text("path")?,
        request_id: row.text("request_id")?,
        subject_id: row.text("subject_id")?,
        change: Change::read(&row.text("change")?)?,
        before,
        after,
        subject_type,
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
