//! A version of a connector as clients read it.

use crate::AnyObject;
use crate::words;
use serde::Serialize;
use souk_app::connectors::{ConnectorInfo, Engines};
use souk_domain::time::Timestamp;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConnectorVersion)]
pub struct ConnectorOut {
    pub name: String,
    pub version: String,
    /// SHA-256 of the component, hexadecimal.
    pub digest: String,
    #[schema(value_type = words::ConnectorScope)]
    pub scope: &'static str,
    pub company_id: Option<String>,
    /// Of the engines that have an id; a new engine gets its id when its connector is activated.
    pub engine_ids: Vec<i64>,
    /// The engines' slugs.
    pub engines: Vec<String>,
    #[schema(value_type = Vec<words::ConnectorNeed>)]
    pub needs: serde_json::Value,
    pub wit_version: String,
    /// JSON Schema of the settings; null of a file that was rejected.
    #[schema(value_type = Option<AnyObject>)]
    pub settings_schema: serde_json::Value,
    pub imports: Vec<String>,
    /// What its author may not have meant: imports that nothing grants, abilities that are not known.
    pub warnings: Vec<String>,
    pub exports: Vec<String>,
    pub size_bytes: u64,
    pub compile_ms: u64,
    #[schema(value_type = words::ConnectorStatus)]
    pub status: serde_json::Value,
    pub error: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub loaded_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub active_since: Option<Timestamp>,
    /// Of the calls of its data connections, those that it takes; null when it takes none.
    #[schema(minimum = 1, maximum = 100)]
    pub share_percent: Option<u8>,
    /// Of the active version and its canary, while there is one; else null.
    pub trial: Option<ConnectorTrial>,
    pub sessions: ConnectorSessions,
    pub calls_total: u64,
    pub traps_total: u64,
    #[schema(minimum = 0)]
    pub p50_ms: f64,
    #[schema(minimum = 0)]
    pub p95_ms: f64,
}

/// Sessions at sources, on this host.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectorSessions {
    pub open: u64,
    /// Of the open ones, those that wait for a request.
    pub idle: u64,
}

/// What a version has met since the calls are shared as they are, on this host.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectorTrial {
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    pub calls: u64,
    pub traps: u64,
}

impl ConnectorOut {
    pub fn new(info: ConnectorInfo, engines: &Engines) -> ConnectorOut {
        ConnectorOut {
            engine_ids: info
                .engine_ids
                .iter()
                .filter_map(|slug| engines.id(info.company_id.as_deref(), slug))
                .collect(),
            share_percent: info.share_percent(),
            trial: info.trial.map(|trial| ConnectorTrial {
                since: Timestamp::from_micros(trial.since),
                calls: trial.calls,
                traps: trial.traps,
            }),
            engines: info.engine_ids,
            needs: serde_json::to_value(&info.needs).unwrap_or_default(),
            settings_schema: serde_json::from_str(&info.settings_schema).unwrap_or_default(),
            status: serde_json::to_value(info.status).unwrap_or_default(),
            sessions: ConnectorSessions {
                open: info.sessions.open,
                idle: info.sessions.idle,
            },
            name: info.name,
            version: info.version,
            digest: info.digest,
            scope: info.scope,
            company_id: info.company_id,
            wit_version: info.wit_version,
            imports: info.imports,
            warnings: info.warnings,
            exports: info.exports,
            size_bytes: info.size_bytes,
            compile_ms: info.compile_ms,
            error: info.error,
            loaded_at: Timestamp::from_micros(info.loaded_at),
            active_since: info.active_since.map(Timestamp::from_micros),
            calls_total: info.calls_total,
            traps_total: info.traps_total,
            p50_ms: info.p50_ms,
            p95_ms: info.p95_ms,
        }
    }
}
