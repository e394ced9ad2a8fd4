//! Which master key the store was sealed with, and how its secrets come under another one.
//!
//! A *probe*, a known text that is sealed and kept in `settings`, says whether a host has the right master key before it seals or opens anything
//! with it: [`prove`]. After a rotation [`reseal`] seals anew, piece by piece and beside running hosts, what a former key has sealed; the probe
//! follows when nothing is left, so that the former key can be forgotten. Every sealed column of the schema is in [`KINDS`].

use crate::audit;
use crate::changes::Topic;
use crate::db::{Db, SWEPT_WITHIN, Write};
use crate::error::StoreError;
use crate::fields::Fields;
use crate::payouts::DESTINATION_SUBJECT;
use crate::sealing::{KeyId, Owner, SealError, Sealer, key_id};
use serde_json::json;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row};

const PROBE: &str = "sealing_probe";
const PROBE_TEXT: &[u8] = b"sealed with the master key of this store";
const PROBE_OWNER: Owner<'static> = Owner {
    company: "",
    subject: PROBE,
};
/// A transaction of so many holds nobody up.
const AT_ONCE: i64 = 100;
/// So many secrets that no key opens are named.
const NAMED_MAX: usize = 20;

/// A sealed column.
struct Kind {
    /// What its secrets are called.
    name: &'static str,
    table: &'static str,
    column: &'static str,
    /// Names the row.
    id: &'static str,
    /// What a value belongs to within its company; `None`: its row.
    subject: Option<&'static str>,
    /// Text in hexadecimal rather than bytes.
    is_hex: bool,
}

const fn kind(
    name: &'static str,
    table: &'static str,
    column: &'static str,
    id: &'static str,
) -> Kind {
    Kind {
        name,
        table,
        column,
        id,
        subject: None,
        is_hex: true,
    }
}

const KINDS: [Kind; 6] = [
    Kind {
        is_hex: false,
        ..kind(
            "credentials of connections",
            "connections",
            "credentials",
            "id",
        )
    },
    kind(
        "credentials of integrations",
        "integrations",
        "credentials",
        "id",
    ),
    kind("secrets of webhooks", "webhooks", "secret", "id"),
    kind(
        "former secrets of webhooks",
        "webhooks",
        "former_secret",
        "id",
    ),
    Kind {
        subject: Some(DESTINATION_SUBJECT),
        ..kind(
            "payout methods",
            "payout_methods",
            "destination",
            "company_id",
        )
    },
    Kind {
        subject: Some(DESTINATION_SUBJECT),
        ..kind("destinations of payouts", "payouts", "destination", "id")
    },
];

/// The columns that hold sealed secrets: table and column.
pub fn sealed_columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.iter().map(|kind| (kind.table, kind.column))
}

/// Why the master keys that a host was given are not the store's.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The store was sealed with `needed`.
    #[error("sealed with another master key (fingerprint {needed})")]
    OtherKey { needed: KeyId },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes sure that `sealer` opens what this store has sealed, and leaves a probe for the next start. The first host of a store decides.
pub async fn prove(db: &Db, sealer: &Sealer) -> Result<(), ProveError> {
    db.write(async |write| {
        // Whoever else is founding the same store waits here, and finds the probe.
        if probe(write).await?.is_none() {
            if let Some(needed) = unknown_key(write, sealer).await? {
                return Err(ProveError::OtherKey { needed });
            }
            let sealed = sealer
                .seal(PROBE_OWNER, PROBE_TEXT)
                .map_err(StoreError::from)?;
            sqlx::query(
                "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
            )
            .bind(PROBE)
            .bind(hex::encode(sealed))
            .execute(&mut **write)
            .await
            .map_err(StoreError::from)?;
        }
        let sealed = probe(write).await?.ok_or(StoreError::NotFound)?;
        match sealer.unseal(PROBE_OWNER, &sealed) {
            Ok(plain) if plain == PROBE_TEXT => Ok(()),
            _ => Err(ProveError::OtherKey {
                needed: key_id(&sealed).ok_or_else(damaged_probe)?,
            }),
        }
    })
    .await
}

/// The key that the store is sealed with, if anything is sealed in it yet.
pub async fn key_in_use(db: &mut AnyConnection) -> Result<Option<KeyId>, StoreError> {
    if let Some(sealed) = probe(db).await? {
        return key_id(&sealed).ok_or_else(damaged_probe).map(Some);
    }
    for kind in &KINDS {
        if let Some(id) = keys_of(db, kind).await?.into_iter().next() {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn damaged_probe() -> StoreError {
    StoreError::Corrupt(format!("the setting {PROBE} is damaged"))
}

async fn probe(db: &mut AnyConnection) -> Result<Option<Vec<u8>>, StoreError> {
    let row = sqlx::query("SELECT value FROM settings WHERE name = $1")
        .bind(PROBE)
        .fetch_optional(db)
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let sealed = hex::decode(row.text("value")?);
    sealed.map_err(|_| damaged_probe()).map(Some)
}

/// Of a store that has no probe yet: a key that has sealed something in it and is not among those that were given.
async fn unknown_key(db: &mut AnyConnection, sealer: &Sealer) -> Result<Option<KeyId>, StoreError> {
    for kind in &KINDS {
        let ids = keys_of(db, kind).await?;
        if let Some(id) = ids.into_iter().find(|id| !sealer.knows(*id)) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

async fn keys_of(db: &mut AnyConnection, kind: &Kind) -> Result<Vec<KeyId>, StoreError> {
    let Kind { table, column, .. } = kind;
    let head = match kind.is_hex {
        true => format!("substr({column}, 1, 10)"),
        false => format!("substr({column}, 1, 5)"),
    };
    let sql = format!("SELECT DISTINCT {head} AS head FROM {table} WHERE length({column}) > 0");
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(db).await?;
    let mut ids = Vec::new();
    for row in &rows {
        ids.extend(read(kind, row, "head").as_deref().and_then(key_id));
    }
    Ok(ids)
}

/// How far a kind of secrets is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    pub kind: &'static str,
    /// Sealed anew by this call.
    pub resealed: u64,
    /// Still sealed with a former key.
    pub remaining: u64,
    /// Which no key opens that was given; the first of them are named.
    pub unreadable: u64,
    pub unreadable_ids: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resealed {
    pub kinds: Vec<Progress>,
    /// Nothing is left that a former key could open: it may be forgotten.
    pub is_complete: bool,
}

/// Seals up to `at_most` secrets anew with the sealer's first key. Called again, it goes on. Hosts may run meanwhile that have both keys.
pub async fn reseal(db: &Db, sealer: &Sealer, at_most: u64) -> Result<Resealed, StoreError> {
    let mut left = at_most;
    let mut kinds = Vec::with_capacity(KINDS.len());
    for kind in &KINDS {
        let progress = reseal_kind(db, sealer, kind, left).await?;
        left = left.saturating_sub(progress.resealed);
        kinds.push(progress);
    }
    // Somebody may have written back what he had read before; a look at everything that finds nothing to do says that nobody has.
    let is_complete = kinds
        .iter()
        .all(|progress| progress.remaining == 0 && progress.resealed == 0);
    if is_complete {
        move_probe(db, sealer).await?;
    }
    Ok(Resealed { kinds, is_complete })
}

/// Says in the audit log who did that, if somebody is acting.
pub async fn note(write: &mut Write, fingerprint: &str, done: &Resealed) -> Result<(), StoreError> {
    let sum = |count: fn(&Progress) -> u64| done.kinds.iter().map(count).sum::<u64>();
    let after = json!({
        "resealed": sum(|kind| kind.resealed),
        "remaining": sum(|kind| kind.remaining),
        "unreadable": sum(|kind| kind.unreadable),
    });
    let subject = ("master_key", fingerprint);
    audit::note(
        write,
        None,
        subject,
        audit::Change::Changed,
        None,
        Some(after),
    )
    .await
}

async fn reseal_kind(
    db: &Db,
    sealer: &Sealer,
    kind: &'static Kind,
    at_most: u64,
) -> Result<Progress, StoreError> {
    let mut progress = Progress {
        kind: kind.name,
        ..Progress::default()
    };
    let mut after = String::new();
    while progress.resealed < at_most {
        let left = i64::try_from(at_most - progress.resealed).unwrap_or(AT_ONCE);
        let batch = db.write(async |write| -> Result<_, StoreError> {
            let rows = former(write, sealer, kind, &after, left.min(AT_ONCE)).await?;
            let mut unreadable = Vec::new();
            let mut resealed = 0;
            for row in &rows {
                match reseal_one(write, sealer, kind, row).await? {
                    Some(done) => resealed += u64::from(done),
                    None => unreadable.push(row.text("id")?),
                }
            }
            let last = rows.last().map(|row| row.text("id")).transpose()?;
            Ok((resealed, unreadable, last))
        });
        let (resealed, unreadable, last) = batch.await?;
        progress.resealed += resealed;
        progress.unreadable += unreadable.len() as u64;
        let room = NAMED_MAX - progress.unreadable_ids.len();
        progress
            .unreadable_ids
            .extend(unreadable.into_iter().take(room));
        match last {
            Some(last) => after = last,
            None => return Ok(progress),
        }
    }
    progress.remaining = count_former(db, sealer, kind, &after).await?;
    Ok(progress)
}

/// Not sealed with the key that seals now.
fn is_former(kind: &Kind) -> String {
    let Kind { column, id, .. } = kind;
    let key = match kind.is_hex {
        true => format!("substr({column}, 3, 8)"),
        false => format!("substr({column}, 2, 4)"),
    };
    format!("length({column}) > 0 AND {key} <> $1 AND {id} > $2")
}

async fn former(
    db: &mut AnyConnection,
    sealer: &Sealer,
    kind: &Kind,
    after: &str,
    at_most: i64,
) -> Result<Vec<AnyRow>, StoreError> {
    let Kind {
        table, column, id, ..
    } = kind;
    let sql = format!(
        "SELECT {id} AS id, company_id, {column} AS sealed FROM {table} WHERE {} ORDER BY {id} LIMIT $3",
        is_former(kind)
    );
    let current = sealer.key_id();
    let query = sqlx::query(AssertSqlSafe(sql));
    let query = match kind.is_hex {
        true => query.bind(current.to_string()),
        false => query.bind(current.0.to_vec()),
    };
    Ok(query.bind(after).bind(at_most).fetch_all(db).await?)
}

async fn count_former(
    db: &Db,
    sealer: &Sealer,
    kind: &Kind,
    after: &str,
) -> Result<u64, StoreError> {
    let sql = format!(
        "SELECT COUNT(*) AS found FROM {} WHERE {}",
        kind.table,
        is_former(kind)
    );
    let current = sealer.key_id();
    let query = sqlx::query(AssertSqlSafe(sql));
    let query = match kind.is_hex {
        true => query.bind(current.to_string()),
        false => query.bind(current.0.to_vec()),
    };
    // A whole table is read, and nobody may wait for that any more.
    let counted = async {
        let row = query.bind(after).fetch_one(&mut *db.read().await?).await?;
        Ok::<_, StoreError>(row.number("found")?.cast_unsigned())
    };
    db.answered(SWEPT_WITHIN, counted).await
}

/// `None`: no key opens it. False: it was changed meanwhile.
async fn reseal_one(
    write: &mut Write,
    sealer: &Sealer,
    kind: &Kind,
    row: &AnyRow,
) -> Result<Option<bool>, StoreError> {
    let (id, company) = (row.text("id")?, row.text("company_id")?);
    let Some(sealed) = read(kind, row, "sealed") else {
        return Ok(None);
    };
    let owner = Owner {
        company: &company,
        subject: kind.subject.unwrap_or(&id),
    };
    let plain = match sealer.unseal(owner, &sealed) {
        Ok(plain) => plain,
        Err(SealError::UnknownKey | SealError::Damaged) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let anew = sealer.seal(owner, &plain)?;
    let Kind {
        table,
        column,
        id: key,
        ..
    } = kind;
    let sql = format!("UPDATE {table} SET {column} = $1 WHERE {key} = $2 AND {column} = $3");
    let query = sqlx::query(AssertSqlSafe(sql));
    let query = match kind.is_hex {
        true => query
            .bind(hex::encode(anew))
            .bind(&id)
            .bind(row.text("sealed")?),
        false => query.bind(anew).bind(&id).bind(sealed),
    };
    let done = query.execute(&mut **write).await?;
    if kind.table == "connections" {
        write.touch(Topic::Connection, &id);
    }
    Ok(Some(done.rows_affected() == 1))
}

async fn move_probe(db: &Db, sealer: &Sealer) -> Result<(), StoreError> {
    db.write(async |write| {
        let known = probe(write).await?;
        if known.as_deref().and_then(key_id) == Some(sealer.key_id()) {
            return Ok(());
        }
        let sealed = sealer.seal(PROBE_OWNER, PROBE_TEXT)?;
        sqlx::query(
            "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2",
        )
        .bind(PROBE)
        .bind(hex::encode(sealed))
        .execute(&mut **write)
        .await?;
        Ok(())
    })
    .await
}

/// `None`: it is not what was ever written there.
fn read(kind: &Kind, row: &AnyRow, column: &str) -> Option<Vec<u8>> {
    match kind.is_hex {
        true => hex::decode(row.try_get::<String, _>(column).ok()?).ok(),
        false => row.try_get(column).ok(),
    }
}
