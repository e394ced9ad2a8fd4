//! Whatever the store changes of what caches hold, it announces: to this host before the commit returns, to others through the store.
//!
//! On SQLite triggers witness what a call changed, so that nothing is believed of the code that is tested; on PostgreSQL a second host
//! hears. A list of all functions that write these tables, read from the source, makes sure that none is left out.

#[path = "../support/mod.rs"]
mod support;

mod calls;

use souk_store::{Change, Db, Fields, StoreError, Write};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{open, stores};

/// A table of which caches hold something: what its rows are announced as, and the columns that no cache holds.
struct Cached {
    table: &'static str,
    topic: &'static str,
    id: &'static str,
    uncached: &'static [&'static str],
}

const fn cached(table: &'static str, topic: &'static str, id: &'static str) -> Cached {
    Cached {
        table,
        topic,
        id,
        uncached: &[],
    }
}

const CACHED: &[Cached] = &[
    cached("products", "Product", "id"),
    cached("asset_details", "Product", "id"),
    cached("endpoint_details", "Product", "id"),
    cached("prices", "Price", "product_id"),
    Cached {
        uncached: &["status", "last_error", "last_tested_at"],
        ..cached("connections", "Connection", "id")
    },
    cached("connectors", "Connector", "scope"),
    cached("connector_choices", "Connector", "scope"),
    cached("connector_canaries", "Connector", "scope"),
    cached(
        "purchases",
        "Purchase",
        "company_id || '/' || {}.product_id",
    ),
    Cached {
        uncached: &[
            "first_used_at",
            "last_used_at",
            "usage_count",
            "failed_count",
        ],
        ..cached("api_keys", "Key", "id")
    },
    cached("companies", "Company", "id"),
    Cached {
        uncached: &[
            "name",
            "description",
            "status",
            "status_reason",
            "updated_at",
            "website",
            "logo_url",
            "industry_id",
            "country",
            "contact_email",
            "plan",
            "is_platform",
            "created_at",
            "id",
        ],
        ..cached("companies", "Handle", "handle")
    },
    cached("retired_handles", "Handle", "handle"),
    Cached {
        uncached: &["last_seen_at"],
        ..cached("sessions", "Key", "id")
    },
    // Keys are cached together with the state of their user; a new one has none.
    cached("users", "Company", "company_id"),
];

/// Functions that write these tables and change nothing that is cached: the first lock a row by writing what it holds.
const CHANGE_NOTHING: &[&str] = &[
    "companies::lock",
    "connections::lock",
    "connectors::lock",
    "files::lock_company",
    "prices::lock",
    "purchases::lock",
    // Writes columns that no cache holds.
    "connections::record_test",
    // A session that is found idle is read anew.
    "sessions::seen",
    // No key is a new user's yet.
    "users::insert",
];

/// What others of these functions do in their own transaction.
const PARTS: &[(&str, &str)] = &[
    ("companies::retire_handle", "companies::update"),
    ("connections::bump", "files::put"),
];

type Told = BTreeSet<(String, String)>;

/// Notes what is announced to a host.
fn listen(db: &Db) -> Arc<Mutex<Told>> {
    let told: Arc<Mutex<Told>> = Arc::default();
    let noted = told.clone();
    db.on_change(Box::new(move |change| {
        if let Change::One { topic, id } = change {
            let change = (format!("{topic:?}"), id.clone());
            noted.lock().unwrap().insert(change);
        }
    }));
    told
}

struct Witness {
    pub db: Db,
    /// On SQLite.
    has_triggers: bool,
    told: Arc<Mutex<Told>>,
    called: BTreeSet<&'static str>,
    pub announced: Told,
}

impl Witness {
    /// Does what `function` does, and compares what it changed with what was announced when its commit returned.
    pub async fn of<T>(
        &mut self,
        function: &'static str,
        work: impl AsyncFnOnce(&mut Write) -> Result<T, StoreError>,
    ) -> T {
        if self.has_triggers {
            self.run("DELETE FROM witness").await;
        }
        self.told.lock().unwrap().clear();
        let done = self.db.write(work).await;
        let done = done.unwrap_or_else(|error| panic!("{function}: {error}"));
        let told = std::mem::take(&mut *self.told.lock().unwrap());
        assert!(!told.is_empty(), "{function} announced nothing");
        if self.has_triggers {
            let changed = self.changed().await;
            assert!(!changed.is_empty(), "{function} changed nothing");
            let missing: Vec<_> = changed.difference(&told).collect();
            assert!(
                missing.is_empty(),
                "{function} did not announce {missing:?}, only {told:?}"
            );
        }
        self.announced.extend(told);
        self.called.insert(function);
        done
    }

    async fn run(&self, sql: &str) {
        let sql = sql.to_owned();
        let run = self.db.write(async |write| -> Result<(), StoreError> {
            sqlx::query(sqlx::AssertSqlSafe(sql.clone()))
                .execute(&mut **write)
                .await?;
            Ok(())
        });
        run.await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    async fn changed(&self) -> Told {
        let mut read = self.db.read().await.unwrap();
        let rows = sqlx::query("SELECT DISTINCT topic, id FROM witness")
            .fetch_all(&mut *read)
            .await
            .unwrap();
        rows.iter()
            .map(|row| (row.text("topic").unwrap(), row.text("id").unwrap()))
            .collect()
    }

    async fn set_triggers(&self) {
        self.run("CREATE TABLE witness (topic TEXT NOT NULL, id TEXT NOT NULL)")
            .await;
        for (
            number,
            Cached {
                table,
                topic,
                id,
                uncached,
            },
        ) in CACHED.iter().enumerate()
        {
            let mut read = self.db.read().await.unwrap();
            let columns = format!("SELECT name FROM pragma_table_info('{table}')");
            let rows = sqlx::query(sqlx::AssertSqlSafe(columns))
                .fetch_all(&mut *read)
                .await
                .unwrap();
            drop(read);
            let columns = rows.iter().map(|row| row.text("name").unwrap());
            let differs: Vec<_> = columns
                .filter(|column| !uncached.contains(&column.as_str()))
                .map(|column| format!("OLD.{column} IS NOT NEW.{column}"))
                .collect();
            let note = |side: &str| {
                let id = id.replace("{}", side);
                format!("INSERT INTO witness SELECT '{topic}', {side}.{id};")
            };
            let differs = differs.join(" OR ");
            let (old, new) = (note("OLD"), note("NEW"));
            for sql in [
                format!(
                    "CREATE TRIGGER update_{number} AFTER UPDATE ON {table} WHEN {differs} BEGIN {old} {new} END"
                ),
                format!(
                    "CREATE TRIGGER insert_{number} AFTER INSERT ON {table} WHEN '{table}' <> 'users' BEGIN {new} END"
                ),
                format!("CREATE TRIGGER delete_{number} AFTER DELETE ON {table} BEGIN {old} END"),
            ] {
                self.run(&sql).await;
            }
        }
    }
}

/// Every function that changes what is cached announces it, on this host before its commit returns, and on the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_cached_is_announced_by_who_writes_it() {
    for store in stores().await {
        let other = match store.name {
            "postgres" => Some(open(&store.url).await),
            _ => None,
        };
        let heard = other.as_ref().map(listen);
        while !other.as_ref().is_none_or(Db::is_coherent) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut witness = Witness {
            has_triggers: store.name == "sqlite",
            told: listen(&store.db),
            db: store.db.clone(),
            called: BTreeSet::new(),
            announced: Told::new(),
        };
        if witness.has_triggers {
            witness.set_triggers().await;
        }
        calls::all(&mut witness).await;
        assert_eq!(witness.called, writers(), "{}", store.name);
        let Some(heard) = heard else { continue };
        for _ in 0..1_000 {
            if witness.announced.is_subset(&heard.lock().unwrap()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let heard = heard.lock().unwrap();
        let missed: Vec<_> = witness.announced.difference(&heard).collect();
        assert!(missed.is_empty(), "another host did not hear of {missed:?}");
    }
}

/// Every function of the store that writes a table of which something is cached, by file and name.
fn writers() -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            let file = path.file_stem().unwrap().to_string_lossy();
            for function in text.split("async fn ").skip(1) {
                let name = function.split(['(', '<']).next().unwrap_or_default();
                let body = function.split("\n}\n").next().unwrap_or_default();
                if CACHED.iter().any(|cached| writes(body, cached.table)) {
                    found.insert(format!("{file}::{name}"));
                }
            }
        }
    }
    for function in CHANGE_NOTHING {
        let is_there = found.remove(*function);
        assert!(
            is_there,
            "{function} writes none of these tables: {found:?}"
        );
    }
    let in_part_of = |function: &String| {
        let part = PARTS.iter().find(|(part, _)| part == function);
        part.map_or(function.clone(), |(_, whole)| (*whole).to_owned())
    };
    let found = found.iter().map(in_part_of);
    found.map(|function| &*function.leak()).collect()
}

fn writes(body: &str, table: &str) -> bool {
    let words = body.split(|c: char| c.is_whitespace() || "\"(".contains(c));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.windows(3).any(|words| match words {
        ["INSERT", "INTO", into] => *into == table,
        ["DELETE", "FROM", from] => *from == table,
        ["UPDATE", updated, "SET" | "\\"] => *updated == table,
        _ => false,
    })
}
