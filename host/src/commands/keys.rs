//! `souk keys`: of a running host; and the master key's secrets, and a lost key, for whoever owns the machine.

use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand, ValueEnum};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use souk_store::audit::{self, Act};
use souk_store::founding;
use souk_store::resealing::{self, Progress};

use super::client::{At, AtMost, Client, OfCompany, body, segment};
use super::output::{self, Column};
use super::progress;
use super::store::{self, OnStore};
use crate::master_key;

#[derive(Subcommand)]
pub enum Keys {
    /// List the API keys of a company.
    List {
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at_most: AtMost,
        #[command(flatten)]
        at: At,
    },
    /// Create an API key; it is shown this once.
    ///
    /// A key may make 1,000 calls an hour unless --rate-limit says otherwise: a load test needs more.
    Create {
        name: String,
        /// 1 to 5, not above the key's own.
        #[arg(long, value_name = "ROLE")]
        role: Option<u8>,
        /// `read`, `write` or both [default: those of the role].
        #[arg(long, value_name = "PERMISSION", value_delimiter = ',')]
        permissions: Option<Vec<String>>,
        /// Calls an hour [default: 1000].
        #[arg(long, value_name = "N")]
        rate_limit: Option<u32>,
        /// When it ends: `2027-01-01T00:00:00Z`.
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
        #[arg(long)]
        description: Option<String>,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
    /// Replace a key by a new one with the same rights, which is shown this once.
    Rotate {
        key: String,
        /// The old key works for so long still.
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        grace_seconds: u32,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
    /// End a key, from the next request on.
    Revoke {
        key: String,
        #[arg(long)]
        reason: Option<String>,
        #[arg(long, value_name = "CODE")]
        reason_code: Option<Reason>,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
    /// Seal all secrets with the current master key, after it was replaced; then the former one can be forgotten.
    ///
    /// Asks a running host, which has the new key in SOUK_MASTER_KEY and the former one in SOUK_MASTER_KEY_OLD; needs role 5. With --offline it works
    /// on the store itself. Begun again, it goes on where it was.
    Reseal(Reseal),
    /// Make a new key of role 5, when the last one is lost. It is shown this once, and the audit log has a line of it.
    ///
    /// Works on the store itself, which on SQLite no host may hold: whoever owns the machine needs no other key.
    Recover {
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        store: OnStore,
    },
}

#[derive(Args)]
pub struct Reseal {
    /// Work on the store itself, with the keys that are given here. On SQLite no host may hold it.
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    store: OnStore,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Reason {
    Compromised,
    Rotated,
    Unused,
    EmployeeLeft,
    Other,
}

const KEY: &[Column] = &[
    ("ID", "/id"),
    ("NAME", "/name"),
    ("KEY", "/key"),
    ("TYPE", "/key_type"),
    ("ROLE", "/role_id"),
    ("PERMISSIONS", "/permissions"),
    ("CALLS/H", "/rate_limit"),
    ("STATUS", "/status"),
    ("LAST USED", "/last_used"),
    ("EXPIRES", "/expires_at"),
];

const REVOKED: &[Column] = &[
    ("ID", "/id"),
    ("NAME", "/name"),
    ("STATUS", "/status"),
    ("REVOKED", "/revoked_at"),
    ("REASON", "/revocation_reason"),
];

const RESEALED: &[Column] = &[
    ("COMPLETE", "/complete"),
    ("RESEALED", "/resealed"),
    ("UNREADABLE", "/unreadable"),
    ("KEY FINGERPRINT", "/key_fingerprint"),
];

const RECOVERED: &[Column] = &[
    ("ID", "/id"),
    ("COMPANY", "/company_id"),
    ("ROLE", "/role_id"),
    ("KEY", "/key"),
];

/// A piece of resealing, between two words of how far it is.
const AT_ONCE: u64 = 1_000;

pub async fn run(command: Keys) -> Result<()> {
    match command {
        Keys::List { of, at_most, at } => {
            let client = Client::new(&at)?;
            let path = path(&client, &of).await?;
            let keys = client.list(&path, at_most.limit).await?;
            output::some(at.json, KEY, &keys)
        }
        Keys::Create {
            name,
            role,
            permissions,
            rate_limit,
            expires_at,
            description,
            of,
            at,
        } => {
            let client = Client::new(&at)?;
            let path = path(&client, &of).await?;
            let key = body([
                ("name", Some(Value::String(name))),
                ("role_id", role.map(Value::from)),
                ("permissions", permissions.map(Value::from)),
                ("rate_limit", rate_limit.map(Value::from)),
                ("expires_at", expires_at.map(Value::String)),
                ("description", description.map(Value::String)),
            ]);
            let key = client.post(&path, &key).await?;
            output::one(at.json, KEY, &key)
        }
        Keys::Rotate {
            key,
            grace_seconds,
            of,
            at,
        } => {
            let client = Client::new(&at)?;
            let path = format!("{}/{}/rotate", path(&client, &of).await?, segment(&key));
            let grace = json!({"grace_seconds": grace_seconds});
            let key = client.post(&path, &grace).await?;
            output::one(at.json, KEY, &key)
        }
        Keys::Revoke {
            key,
            reason,
            reason_code,
            of,
            at,
        } => {
            let client = Client::new(&at)?;
            let path = format!("{}/{}/revoke", path(&client, &of).await?, segment(&key));
            let code = reason_code.and_then(|code| code.to_possible_value());
            let why = body([
                ("reason", reason.map(Value::String)),
                ("reason_code", code.map(|code| Value::from(code.get_name()))),
            ]);
            let key = client.post(&path, &why).await?;
            output::one(at.json, REVOKED, &key)
        }
        Keys::Reseal(command) => reseal(command).await,
        Keys::Recover { json, store } => recover(json, store).await,
    }
}

/// Says how far it is after each piece, on standard error.
async fn reseal(command: Reseal) -> Result<()> {
    let json = command.at.json;
    let last = match command.offline {
        true => reseal_offline(command.store).await?,
        false => {
            let client = Client::new(&command.at)?;
            let mut told = Told::new();
            loop {
                let done = client.post("/admin/secrets/reseal", &json!({})).await?;
                if told.tell(&done) {
                    break told.of(done);
                }
            }
        }
    };
    output::one(json, RESEALED, &last)?;
    if json {
        return Ok(());
    }
    for kind in last["kinds"].as_array().into_iter().flatten() {
        for id in kind["unreadable_ids"].as_array().into_iter().flatten() {
            let (kind, id) = (kind["kind"].as_str(), id.as_str());
            eprintln!(
                "no key that was given opens the {} of {}",
                kind.unwrap_or_default(),
                id.unwrap_or_default()
            );
        }
    }
    ensure!(
        last["unreadable"] == 0,
        "some secrets could not be opened with any key that was given: their owners have to enter them again, or give the key that sealed them"
    );
    Ok(())
}

async fn reseal_offline(store: OnStore) -> Result<Value> {
    let settings = store.settings()?;
    let opened = store::open(&settings).await;
    let db = opened.context("cannot reseal --offline; a running host does it without that")?;
    let sealer = master_key::sealer(&settings, &db).await?;
    let mut told = Told::new();
    let last = loop {
        let done = resealing::reseal(&db, &sealer, AT_ONCE).await?;
        let kinds = done.kinds.iter().map(|kind| {
            json!({
                "kind": kind.kind, "resealed": kind.resealed, "remaining": kind.remaining,
                "unreadable": kind.unreadable, "unreadable_ids": kind.unreadable_ids,
            })
        });
        let sum = |count: fn(&Progress) -> u64| done.kinds.iter().map(count).sum::<u64>();
        let done = json!({
            "complete": done.is_complete,
            "key_fingerprint": sealer.key_id().to_string(),
            "resealed": sum(|kind| kind.resealed),
            "remaining": sum(|kind| kind.remaining),
            "unreadable": sum(|kind| kind.unreadable),
            "kinds": kinds.collect::<Vec<_>>(),
        });
        if told.tell(&done) {
            break told.of(done);
        }
    };
    db.close().await;
    Ok(last)
}

/// How far resealing is, over several answers.
struct Told {
    resealed: u64,
    bar: ProgressBar,
}

impl Told {
    fn new() -> Told {
        Told {
            resealed: 0,
            bar: progress::things("resealed"),
        }
    }

    /// Whether it is done.
    fn tell(&mut self, done: &Value) -> bool {
        self.resealed += done["resealed"].as_u64().unwrap_or(0);
        let is_complete = done["complete"] == true;
        if !is_complete {
            let remaining = done["remaining"].as_u64().unwrap_or(0);
            self.bar.set_length(self.resealed + remaining);
            self.bar.set_position(self.resealed);
            // A log of a script has lines.
            if self.bar.is_hidden() {
                eprintln!("{} resealed, {remaining} to go", self.resealed);
            }
        }
        is_complete
    }

    /// The last answer, with the sum of all.
    fn of(&self, mut last: Value) -> Value {
        last["resealed"] = self.resealed.into();
        last
    }
}

async fn recover(json: bool, store: OnStore) -> Result<()> {
    let settings = store.settings()?;
    let db = store::open(&settings).await?;
    let act = Act::command("recover_key", "souk keys recover");
    let now = SystemTime::now().into();
    let work = db.write(async |write| founding::recover_platform_key(write, now).await);
    let made = audit::acting(act, work).await?;
    db.close().await;
    let (key, secret) = made.context(
        "this store was never founded: its first `souk serve` makes the first key and shows it",
    )?;
    let made = json!({"id": key.id, "name": key.name, "company_id": key.company_id, "role_id": 5, "key": secret.expose()});
    output::one(json, RECOVERED, &made)?;
    eprintln!("revoke the lost one, if somebody may have it: souk keys list, souk keys revoke");
    Ok(())
}

async fn path(client: &Client, of: &OfCompany) -> Result<String> {
    Ok(format!("/companies/{}/api-keys", client.company(of).await?))
}
