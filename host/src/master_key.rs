//! The master key: where it comes from, and that it is the one that the store was sealed with.

use anyhow::{Context, Result, anyhow, bail, ensure};
use souk_store::Db;
use souk_store::resealing::{self, ProveError};
use souk_store::sealing::{self, KeyId, Sealer};

use crate::private::MASTER_KEY;
use crate::settings::Settings;

/// The sealer of this host, proved on its store. A key is made only for a store in which nothing is sealed yet.
pub async fn sealer(settings: &Settings, db: &Db) -> Result<Sealer> {
    let sealer = given(settings, db).await?;
    match resealing::prove(db, &sealer).await {
        Ok(()) => Ok(sealer),
        Err(ProveError::OtherKey { needed }) => Err(other_key(settings, needed)),
        Err(error) => Err(anyhow!(error).context("the master key cannot be checked")),
    }
}

async fn given(settings: &Settings, db: &Db) -> Result<Sealer> {
    let mut former = Vec::with_capacity(settings.master_key_old.len());
    for (place, key) in settings.master_key_old.iter().enumerate() {
        sealing::check_key(key).with_context(|| {
            format!(
                "--master-key-old (SOUK_MASTER_KEY_OLD), number {}",
                place + 1
            )
        })?;
        former.push(key.as_str());
    }
    if let Some(key) = &settings.master_key {
        sealing::check_key(key).context("--master-key (SOUK_MASTER_KEY)")?;
        return Ok(Sealer::new(key, &former)?);
    }
    ensure!(
        former.is_empty(),
        "--master-key-old without --master-key: which key seals from now on?"
    );
    let file = settings.data_dir.join(MASTER_KEY);
    let found = sealing::read_key(&file).with_context(|| file.display().to_string())?;
    let key = match found {
        Some(key) => key,
        None => {
            let needed = db.ask(async |db| resealing::key_in_use(db).await);
            if let Some(needed) = needed.await? {
                bail!(
                    "the master key is missing: this store was sealed with one (fingerprint {needed}); restore {}, or give it in SOUK_MASTER_KEY",
                    file.display()
                );
            }
            sealing::make_key(&file)?
        }
    };
    Ok(Sealer::new(&key, &[])?)
}

fn other_key(settings: &Settings, needed: KeyId) -> anyhow::Error {
    let given = match &settings.master_key {
        Some(_) => "the one in SOUK_MASTER_KEY".to_owned(),
        None => settings.data_dir.join(MASTER_KEY).display().to_string(),
    };
    anyhow!(
        "this store was sealed with another master key (fingerprint {needed}) than {given}: restore that key, or, while you replace it, give it in SOUK_MASTER_KEY_OLD too"
    )
}
