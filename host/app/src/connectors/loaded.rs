//! The versions that the sandbox has in memory, and whose they are.

use std::collections::HashSet;

use souk_sandbox::{ConnectorInfo, Scope, Status};
use souk_store::connectors::PLATFORM;

use crate::App;

pub(super) fn versions(app: &App, scope: &Scope) -> HashSet<(String, String)> {
    let mine = app
        .sandbox
        .connectors()
        .into_iter()
        .filter(|info| scope_of(info) == *scope);
    mine.map(|info| (info.name, info.version)).collect()
}

pub(super) fn find(app: &App, scope: &Scope, name: &str, version: &str) -> Option<ConnectorInfo> {
    let same = |info: &ConnectorInfo| {
        scope_of(info) == *scope && info.name == name && info.version == version
    };
    app.sandbox.connectors().into_iter().find(same)
}

pub(super) fn active(app: &App, scope: &Scope, name: &str) -> Option<String> {
    with_status(app, scope, name, Status::Active).map(|info| info.version)
}

pub(super) fn canary(app: &App, scope: &Scope, name: &str) -> Option<ConnectorInfo> {
    with_status(app, scope, name, Status::Canary)
}

fn with_status(app: &App, scope: &Scope, name: &str, status: Status) -> Option<ConnectorInfo> {
    let same = |info: &ConnectorInfo| {
        scope_of(info) == *scope && info.name == name && info.status == status
    };
    app.sandbox.connectors().into_iter().find(same)
}

pub(super) fn scope_of(info: &ConnectorInfo) -> Scope {
    info.company_id
        .clone()
        .map_or(Scope::Platform, Scope::Company)
}

pub(super) fn scope_text(scope: &Scope) -> &str {
    match scope {
        Scope::Platform => PLATFORM,
        Scope::Company(company) => company,
    }
}

pub(super) fn scope_from(text: &str) -> Scope {
    match text {
        PLATFORM => Scope::Platform,
        company => Scope::Company(company.to_owned()),
    }
}
