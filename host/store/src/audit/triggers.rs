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
    let text = match dialect(connection) {
        Dialect::Sqlite => TABLES.iter().map(sqlite).collect::<String>(),
        Dialect::Postgres => TABLES.iter().map(postgres).collect(),
    };
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
                                    request_id, subject_type, subject_id, change, before_values, after_values)
             SELECT a.act_id, (SELECT COUNT(*) + 1 FROM audit_log AS l WHERE l.act_id = a.act_id), a.at, COALESCE({company}, a.company_id),
                    a.actor_company_id, a.actor, a.user_id, a.role, a.address, a.operation, a.method, a.path, a.request_id,
                    '{subject}', {id}, '{change}', {before}, {after}
             FROM audit_acting AS a;"
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

fn sqlite(table: &Table) -> String {
    // Whether a column is shown, and as what.
    let object = |row: &str, secret: &str, condition: &dyn Fn(&str) -> String| {
        let members = shown(table).map(|(name, is_secret)| {
            let value = match is_secret {
                true => format!("CASE WHEN {row}.{name} IS NULL THEN NULL ELSE '{secret}' END"),
                false => format!("{row}.{name}"),
            };
            format!(
                "SELECT '{name}' AS k, {value} AS v WHERE {}",
                condition(name)
            )
        });
        let members: Vec<String> = members.collect();
        format!(
            "(SELECT json_group_object(k, v) FROM ({}))",
            members.join(" UNION ALL ")
        )
    };
    let differs = |name: &str| format!("OLD.{name} IS NOT NEW.{name}");
    let is_there = |row: &'static str| move |name: &str| format!("{row}.{name} IS NOT NULL");
    let line = |row: &'static str, change, before, after| {
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
    let any: Vec<String> = shown(table).map(|(name, _)| differs(name)).collect();
    let changed = line(
        "NEW",
        "changed",
        object("OLD", "former secret", &differs),
        object("NEW", "new secret", &differs),
    );
    let (name, acting) = (table.name, "EXISTS (SELECT 1 FROM audit_acting)");
    let mut text = format!(
        "CREATE TRIGGER audit_changed_{name} AFTER UPDATE OF {} ON {name} WHEN {acting} AND ({}) BEGIN {changed} END;\n",
        names(table),
        any.join(" OR ")
    );
    if table.whole {
        let created = object("NEW", "secret", &is_there("NEW"));
        let created = line("NEW", "created", null(), created);
        let deleted = object("OLD", "secret", &is_there("OLD"));
        let deleted = line("OLD", "deleted", deleted, null());
        text += &format!(
            "CREATE TRIGGER audit_created_{name} AFTER INSERT ON {name} WHEN {acting} BEGIN {created} END;\n\
             CREATE TRIGGER audit_deleted_{name} AFTER DELETE ON {name} WHEN {acting} BEGIN {deleted} END;\n"
        );
    }
    text
}

fn postgres(table: &Table) -> String {
    let object = |row: &str, secret: &str, condition: &dyn Fn(&str) -> String| {
        let members = shown(table).map(|(name, is_secret)| {
            let value = match is_secret {
                true => format!(
                    "CASE WHEN {row}.{name} IS NULL THEN NULL ELSE to_jsonb('{secret}'::text) END"
                ),
                false => format!("to_jsonb({row}.{name})"),
            };
            format!("('{name}', {value}, {})", condition(name))
        });
        let members: Vec<String> = members.collect();
        format!(
            "(SELECT CAST(jsonb_object_agg(k, v) AS TEXT) FROM (VALUES {}) AS c (k, v, is_shown) WHERE is_shown)",
            members.join(", ")
        )
    };
    let differs = |name: &str| format!("OLD.{name} IS DISTINCT FROM NEW.{name}");
    let is_there = |row: &'static str| move |name: &str| format!("{row}.{name} IS NOT NULL");
    let line = |row: &'static str, change, before, after| {
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
    let any: Vec<String> = shown(table).map(|(name, _)| differs(name)).collect();
    let changed = line(
        "NEW",
        "changed",
        object("OLD", "former secret", &differs),
        object("NEW", "new secret", &differs),
    );
    let name = table.name;
    let mut on = vec![("changed", format!("UPDATE OF {}", names(table)), changed)];
    if table.whole {
        let created = object("NEW", "secret", &is_there("NEW"));
        on.push((
            "created",
            "INSERT".to_owned(),
            line("NEW", "created", null(), created),
        ));
        let deleted = object("OLD", "secret", &is_there("OLD"));
        on.push((
            "deleted",
            "DELETE".to_owned(),
            line("OLD", "deleted", deleted, null()),
        ));
    }
    let any = any.join(" OR ");
    let triggers = on.into_iter().map(|(change, event, line)| {
        let when = match change {
            "changed" => format!("WHEN ({any})"),
            _ => String::new(),
        };
        format!(
            "CREATE OR REPLACE FUNCTION audit_{change}_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {line} RETURN NULL; END $$;\n\
             CREATE TRIGGER audit_{change}_{name} AFTER {event} ON {name} FOR EACH ROW {when} EXECUTE FUNCTION audit_{change}_{name}();\n"
        )
    });
    triggers.collect()
}
