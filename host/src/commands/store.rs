//! A store that is opened by a command, without a host.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use souk_store::{Db, OpenOptions, StoreError};

use crate::cli::{LogFormat, Options};
use crate::host::without_password;
use crate::settings::{self, Settings};
use crate::{logs, private};

/// The store that is worked on, named as `souk serve` names it.
#[derive(Args)]
pub struct OnStore {
    /// Read further settings from this TOML file: the one of the host.
    #[arg(long, env = "SOUK_CONFIG", value_name = "FILE", help_heading = "Store")]
    config: Option<PathBuf>,

    /// The data directory of the host [default: souk-data].
    #[arg(
        long,
        env = "SOUK_DATA_DIR",
        value_name = "DIR",
        help_heading = "Store"
    )]
    data_dir: Option<PathBuf>,

    /// The store of the host [default: sqlite:souk.db in the data directory].
    #[arg(
        long,
        env = "SOUK_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true,
        help_heading = "Store"
    )]
    database_url: Option<String>,

    /// The master key of the host [default: master.key in the data directory].
    #[arg(
        long,
        env = "SOUK_MASTER_KEY",
        value_name = "KEY",
        hide_env_values = true,
        help_heading = "Store"
    )]
    master_key: Option<String>,

    /// Master keys of the past.
    #[arg(
        long,
        env = "SOUK_MASTER_KEY_OLD",
        value_name = "KEY",
        value_delimiter = ',',
        hide_env_values = true,
        help_heading = "Store"
    )]
    master_key_old: Vec<String>,
}

impl OnStore {
    /// What the host's settings say of its store. From here on this process makes private files only.
    pub fn settings(self) -> Result<Settings> {
        self.settings_with(Options::default())
    }

    /// The same, with `others` that a command was given.
    pub fn settings_with(self, others: Options) -> Result<Settings> {
        let given = Options {
            config: self.config,
            data_dir: self.data_dir,
            database_url: self.database_url,
            master_key: self.master_key,
            master_key_old: self.master_key_old,
            ..others
        };
        let settings = Settings::resolve(given, &settings::SERVE)?;
        private::keep_to_owner();
        logs::start("warn", LogFormat::Text)?;
        Ok(settings)
    }
}

/// Opens a store that is there already. On SQLite no host may hold it.
pub async fn open(settings: &Settings) -> Result<Db> {
    let url = &settings.database_url;
    if let Some(path) = sqlite_path(url) {
        ensure!(
            path.is_file(),
            "there is no store at {}: name the host's --data-dir (or --database-url)",
            path.display()
        );
    }
    match Db::open(&OpenOptions::new(url)).await {
        Err(StoreError::Unavailable(message)) if message.contains("another souk process") => {
            anyhow::bail!(
                "a running host holds {}: stop it for the moment that this takes",
                without_password(url)
            )
        }
        opened => {
            opened.with_context(|| format!("the store {} cannot be opened", without_password(url)))
        }
    }
}

/// The file of a SQLite store.
pub fn sqlite_path(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    Some(Path::new(path.split('?').next().unwrap_or(path)).to_owned())
}
