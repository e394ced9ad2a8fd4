//! The triggers that write the audit log, made from the list of what it shows ([`tables`](super::tables)).
//!
//! They are taken away before a migration changes tables, and set again when the schema or the list has changed.

use super::tables::{Shown, TABLES, Table};
use crate::error::StoreError;
use crate::fields::Fields;
use sha2::{Digest, Sha256};
use sqlx::{AnyConnection, AssertSqlSafe, Executor};

/// In `settings`: what the triggers were made of.
const MADE_OF: &str = "audit_triggers";

#[derive(Clone, Copy)]
enum Dialect {
    Sqlite,
    Postgres,
}

fn dialect(connection: &AnyConnection) -> Dialect {
    match connection.backend_name() {
        "SQLite" => Dialect::Sqlite,
        _ => Dialect::Postgres,
    }
}

/// Takes all of them away: while a migration makes tables anew, nothing may refer to them.
pub(crate) async fn remove(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let rows = match dialect(connection) {
        Dialect::Sqlite => {
            sqlx::query("SELECT 'DROP TRIGGER ' || name AS sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'audit%'")
        }
        Dialect::Postgres => sqlx::query(
            "SELECT 'DROP TRIGGER ' || t.tgname || ' ON ' || c.relname AS sql
             FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
             WHERE NOT t.tgisinternal AND t.tgname LIKE 'audit%' AND c.relnamespace = CURRENT_SCHEMA()::regnamespace",
        ),
    };
    for row in rows.fetch_all(&mut *connection).await? {
        let sql = AssertSqlSafe(row.text("sql")?);
        connection.execute(sqlx::raw_sql(sql)).await?;
    }
    Ok(())
}

/// Sets them, unless they are there as they should be. `is_new`: the schema has just changed.
pub(crate) async fn set(connection: &mut AnyConnection, is_new: bool) -> Result<(), StoreError> {
    let dialect = dialect(connection);
    let text: String = TABLES
        .iter()
        .map(|table| triggers(dialect, table))
        .collect();
    let digest = hex::encode(Sha256::digest(text.as_bytes()));
    let known = sqlx::query("SELECT value FROM settings WHERE name = $1")
        .bind(MADE_OF)
        .fetch_optional(&mut *connection)
        .await?;
    let known = known.map(|row| row.text("value")).transpose()?;
    if !is_new && known.as_deref() == Some(&*digest) {
        return Ok(());
    }
    remove(connection).await?;
    connection
        .execute(sqlx::raw_sql(AssertSqlSafe(text)))
        .await?;
    sqlx::query(
        "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2",
    )
    .bind(MADE_OF)
    .bind(digest)
    .execute(connection)
    .await?;
    Ok(())
}

/// Characters of one value: whoever changes long texts to and fro would fill the disk with them, on which the ledger is.
const SHOWN_CHARS: usize = 1_000;
/// What stands behind them where there were more.
const CUT: &str = "…";
/// What a line is counted with beside its values: its other columns, and its places in indexes.
pub(super) const LINE_BYTES: usize = 1_024;

/// What a line says of the row, besides who acted.
struct Line<'a> {
    table: &'a Table,
    /// The row that is there, or was.
    row: &'a str,
    change: &'a str,
    before: String,
    after: String,
}

impl Line<'_> {
    /// The statement that writes it, if somebody answers for this transaction.
    fn sql(&self) -> String {
        let Line {
            table,
            row,
            change,
            before,
            after,
        } = self;
        let (id, company) = (
            table.id.replace("{}", row),
            table.company.replace("{}", row),
        );
        let subject = table.subject;
        format!(
            "INSERT INTO audit_log (act_id, line, at, company_id, actor_company_id, actor, user_id, role, address, operation, method, path,
                                    request_id, subject_type, subject_id, change, before_values, after_values, bytes)
             SELECT a.act_id, (SELECT COALESCE(MAX(l.line), 0) + 1 FROM audit_log AS l WHERE l.act_id = a.act_id), a.at, COALESCE({company}, a.company_id),
                    a.actor_company_id, a.actor, a.user_id, a.role, a.address, a.operation, a.method, a.path, a.request_id,
                    '{subject}', {id}, '{change}', w.before_values, w.after_values,
                    {LINE_BYTES} + COALESCE(OCTET_LENGTH(w.before_values), 0) + COALESCE(OCTET_LENGTH(w.after_values), 0)
             FROM audit_acting AS a, (SELECT {before} AS before_values, {after} AS after_values) AS w;"
        )
    }
}

/// The columns of which something is shown.
fn shown(table: &Table) -> impl Iterator<Item = (&'static str, bool)> {
    let columns = table.columns.iter();
    columns
        .filter(|(_, shown)| *shown != Shown::Not)
        .map(|(name, shown)| (*name, *shown == Shown::Secret))
}

fn names(table: &Table) -> String {
    let names: Vec<&str> = shown(table).map(|(name, _)| name).collect();
    names.join(", ")
}

impl Dialect {
    /// Whether a column changed.
    fn differs(self, name: &str) -> String {
        match self {
            Dialect::Sqlite => format!("OLD.{name} IS NOT NEW.{name}"),
            Dialect::Postgres => format!("OLD.{name} IS DISTINCT FROM NEW.{name}"),
        }
    }

    /// The shown columns of `row` for which `condition` holds, as the text of a JSON object; of a secret only `secret`.
    fn object(
        self,
        table: &Table,
        row: &str,
        secret: &str,
        condition: &dyn Fn(&str) -> String,
    ) -> String {
        let members = shown(table).map(|(name, is_secret)| {
            let condition = condition(name);
            let column = format!("{row}.{name}");
            match (self, is_secret) {
                (Dialect::Sqlite, true) => format!(
                    "SELECT '{name}' AS k, CASE WHEN {column} IS NULL THEN NULL ELSE '{secret}' END AS v WHERE {condition}"
                ),
                (Dialect::Sqlite, false) => format!(
                    "SELECT '{name}' AS k, CASE WHEN length({column}) > {SHOWN_CHARS} THEN substr({column}, 1, {SHOWN_CHARS}) || '{CUT}' ELSE {column} END AS v
                     WHERE {condition}"
                ),
                (Dialect::Postgres, true) => format!(
                    "('{name}', CASE WHEN {column} IS NULL THEN NULL ELSE to_jsonb('{secret}'::text) END, {condition})"
                ),
                (Dialect::Postgres, false) => format!(
                    "('{name}', CASE WHEN length(CAST({column} AS TEXT)) > {SHOWN_CHARS}
                                     THEN to_jsonb(substr(CAST({column} AS TEXT), 1, {SHOWN_CHARS}) || '{CUT}') ELSE to_jsonb({column}) END, {condition})"
                ),
            }
        });
        let members: Vec<String> = members.collect();
        match self {
            Dialect::Sqlite => format!(
                "(SELECT json_group_object(k, v) FROM ({}))",
                members.join(" UNION ALL ")
            ),
            Dialect::Postgres => format!(
                "(SELECT CAST(jsonb_object_agg(k, v) AS TEXT) FROM (VALUES {}) AS c (k, v, is_shown) WHERE is_shown)",
                members.join(", ")
            ),
        }
    }

    /// A trigger that runs `line` after `event`, if `when`.
    fn trigger(
        self,
        table: &Table,
        change: &str,
        event: &str,
        when: Option<&str>,
        line: &str,
    ) -> String {
        let name = table.name;
        match self {
            Dialect::Sqlite => {
                let acting = "EXISTS (SELECT 1 FROM audit_acting)";
                let when = when
                    .map(|when| format!(" AND ({when})"))
                    .unwrap_or_default();
                format!(
                    "CREATE TRIGGER audit_{change}_{name} AFTER {event} ON {name} WHEN {acting}{when} BEGIN {line} END;\n"
                )
            }
            Dialect::Postgres => {
                let when = when
                    .map(|when| format!("WHEN ({when})"))
                    .unwrap_or_default();
                format!(
                    "CREATE OR REPLACE FUNCTION audit_{change}_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {line} RETURN NULL; END $$;\n\
                     CREATE TRIGGER audit_{change}_{name} AFTER {event} ON {name} FOR EACH ROW {when} EXECUTE FUNCTION audit_{change}_{name}();\n"
                )
            }
        }
    }
}

/// All triggers of a table.
fn triggers(dialect: Dialect, table: &Table) -> String {
    let line = |row, change, before, after| {
        let line = Line {
            table,
            row,
            change,
            before,
            after,
        };
        line.sql()
    };
    let null = || "NULL".to_owned();
    let differs = |name: &str| dialect.differs(name);
    let former = dialect.object(table, "OLD", "former secret", &differs);
    let new = dialect.object(table, "NEW", "new secret", &differs);
    let any: Vec<String> = shown(table).map(|(name, _)| differs(name)).collect();
    let mut text = dialect.trigger(
        table,
        "changed",
        &format!("UPDATE OF {}", names(table)),
        Some(&any.join(" OR ")),
        &line("NEW", "changed", former, new),
    );
    if table.whole {
        let whole = |row: &'static str| {
            let is_there = |name: &str| format!("{row}.{name} IS NOT NULL");
            dialect.object(table, row, "secret", &is_there)
        };
        let created = line("NEW", "created", null(), whole("NEW"));
        text += &dialect.trigger(table, "created", "INSERT", None, &created);
        let deleted = line("OLD", "deleted", whole("OLD"), null());
        text += &dialect.trigger(table, "deleted", "DELETE", None, &deleted);
    }
    text
}
