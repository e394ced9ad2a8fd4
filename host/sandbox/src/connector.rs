//! A loaded connector and what is known about it.

use serde::Serialize;

use crate::facts::Facts;

/// Who may use a connector.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    Platform,
    /// Private to the company with this id.
    Company(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    Tcp,
    Http,
    Directory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Loaded, checked, takes no requests yet.
    Staged,
    Active,
    /// Takes a share of the calls, beside the active one.
    Canary,
    /// Replaced; ends the requests it has.
    Draining,
    Retired,
    Rejected,
}

/// One version of one connector, for people and for the API.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectorInfo {
    pub name: String,
    pub version: String,
    /// SHA-256 of the component, hex.
    pub digest: String,
    /// `platform` or `company`.
    pub scope: &'static str,
    pub company_id: Option<String>,
    pub engine_ids: Vec<String>,
    pub needs: Vec<Need>,
    pub wit_version: String,
    /// JSON Schema of the settings, as the connector wrote it.
    pub settings_schema: String,
    pub imports: Vec<String>,
    /// What its author may not have meant.
    pub warnings: Vec<String>,
    pub exports: Vec<String>,
    pub size_bytes: u64,
    pub compile_ms: u64,
    pub status: Status,
    pub error: Option<String>,
    /// Microseconds since the epoch.
    pub loaded_at: i64,
    pub active_since: Option<i64>,
    pub trial: Option<Trial>,
    pub sessions: SessionCount,
    pub calls_total: u64,
    pub traps_total: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
}

impl ConnectorInfo {
    /// Of the calls of its connections; `None`: it takes none.
    pub fn share_percent(&self) -> Option<u8> {
        match (&self.trial, self.status) {
            (Some(trial), _) => Some(trial.share_percent),
            (None, Status::Active) => Some(100),
            (None, _) => None,
        }
    }
}

/// While a canary takes a share of the calls, of both versions: how they share, and what each has met since.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Trial {
    pub share_percent: u8,
    /// Microseconds since the epoch.
    pub since: i64,
    pub calls: u64,
    pub traps: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SessionCount {
    pub open: u64,
    pub idle: u64,
}

/// One engine as a company sees it: what the active connector says about it.
#[derive(Clone, Debug)]
pub struct EngineInfo {
    pub slug: String,
    pub title: String,
    /// `postgres`, `sqlite`, `none`, ….
    pub dialect: String,
    pub credential_types: Vec<String>,
    pub abilities: Vec<String>,
    /// What it says of its source's types.
    pub facts: Facts,
    pub need: Need,
    pub settings_schema: String,
    pub connector: String,
    pub version: String,
    pub digest: String,
}

impl EngineInfo {
    pub fn has(&self, ability: &str) -> bool {
        self.abilities.iter().any(|known| known == ability)
    }
}

/// Why a file does not become a connector, in words for the person who made it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Not a component, another world, imports that no grant covers, a version not served, ….
    #[error("{0}")]
    Invalid(String),
    #[error(
        "connector \"{name}\" {version} is loaded already with another digest ({digest}): raise its version"
    )]
    Conflict {
        name: String,
        version: String,
        digest: String,
    },
    #[error("no connector \"{name}\" {version} is loaded here")]
    Unknown { name: String, version: String },
    #[error(
        "connector \"{name}\" {version} is active: activate another version, or take it off work, first"
    )]
    Active { name: String, version: String },
    #[error("connector \"{name}\" {version} is a canary: roll back first, which ends it")]
    Canary { name: String, version: String },
    /// It cannot be asked what the version at work is asked; the reason says why.
    #[error(
        "connector \"{name}\" {version} cannot take a share of the calls: {reason}. Activate it for all of them"
    )]
    NoCanary {
        name: String,
        version: String,
        reason: String,
    },
    #[error("no version of connector \"{name}\" is active")]
    NotActive { name: String },
    #[error("connector \"{name}\" has no earlier version to go back to")]
    NoEarlier { name: String },
    #[error("connector \"{name}\" {version} failed its health check: {reason}")]
    Unhealthy {
        name: String,
        version: String,
        reason: String,
    },
    #[error("the connector was not compiled here before: its bytes are needed")]
    NotKept,
    #[error("cannot compile the connector: {0}")]
    Compile(String),
    /// Nobody's fault who made it.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    #[error("the sandbox failed: {0}")]
    Internal(String),
}
