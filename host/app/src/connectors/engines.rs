//! The engines that connectors bring, and the ids that the API knows them by.

use souk_domain::ids::CompanyId;
use souk_sandbox::{EngineInfo, Scope};
use souk_store::StoreError;
use souk_store::connections;
use souk_store::connectors::PLATFORM;
use souk_store::reference::{self, StorageEngine, UPLOADED_ENGINE_ID_MIN};

use super::error::ConnectorError;
use super::serving::{NOBODY, need, serving};
use crate::App;

/// Hosts that give engines their ids at the same moment: one wins, the others find the id.
const ENGINE_ATTEMPTS: usize = 5;

/// The engines that a company can name in a connection, with what the active connector says about
/// each; `None`: none is active. An engine that has no id yet is given one.
pub async fn engines(
    app: &App,
    company: &CompanyId,
) -> Result<Vec<(StorageEngine, Option<EngineInfo>)>, ConnectorError> {
    let active = app.sandbox.engines(company.as_str());
    let mut known = reference::engines(&mut *app.db.read().await?, company.as_str()).await?;
    let is_new = |engine: &StorageEngine| {
        !known
            .iter()
            .any(|one| one.slug == engine.slug && one.scope == engine.scope)
    };
    let new: Vec<StorageEngine> = active
        .iter()
        .map(|info| described(app, company, info))
        .filter(is_new)
        .collect();
    if !new.is_empty() {
        for engine in &new {
            ensure_engine(app, engine).await?;
        }
        known = reference::engines(&mut *app.db.read().await?, company.as_str()).await?;
    }
    let with_info = |engine: StorageEngine| {
        let info = serving(&app.sandbox, company, &engine.scope, &engine.slug);
        (engine, info)
    };
    Ok(known.into_iter().map(with_info).collect())
}

/// Of those, the ones that a company can do something with: an id that was reserved for an engine which no version of any connector has, and which no
/// connection names, is nothing to choose.
pub async fn offered(
    app: &App,
    company: &CompanyId,
) -> Result<Vec<(StorageEngine, Option<EngineInfo>)>, ConnectorError> {
    let mut all = engines(app, company).await?;
    let known = app.sandbox.connectors();
    let mut db = app.db.read().await?;
    let mut idle = Vec::new();
    for (engine, active) in &all {
        let is_brought = || {
            known
                .iter()
                .any(|info| info.engine_ids.contains(&engine.slug))
        };
        if active.is_none()
            && engine.id < UPLOADED_ENGINE_ID_MIN
            && !is_brought()
            && connections::of_engine(&mut db, &engine.scope, &engine.slug).await? == 0
        {
            idle.push(engine.id);
        }
    }
    all.retain(|(engine, _)| !idle.contains(&engine.id));
    Ok(all)
}

/// Refuses to let a company's connector serve what is the platform's.
pub(super) async fn claim(
    app: &App,
    scope: &Scope,
    slugs: &[String],
) -> Result<(), ConnectorError> {
    if *scope == Scope::Platform {
        return Ok(());
    }
    for slug in slugs {
        let is_platforms = app.sandbox.engine(NOBODY, slug).is_some()
            || app
                .db
                .ask(async |db| reference::is_platforms(db, slug).await)
                .await?;
        if is_platforms {
            let named = souk_sandbox::platform_of(slug).unwrap_or(slug);
            return Err(ConnectorError::EngineReserved(named.to_owned()));
        }
    }
    Ok(())
}

/// The ids of the engines that a company can see, by slug.
pub struct Engines(Vec<(StorageEngine, Option<EngineInfo>)>);

impl Engines {
    pub async fn load(app: &App, company: &CompanyId) -> Result<Engines, ConnectorError> {
        Ok(Engines(engines(app, company).await?))
    }

    /// The engine's id. `company`: whose private connector names it, if one does.
    pub fn id(&self, company: Option<&str>, slug: &str) -> Option<i64> {
        let scope = company.unwrap_or(PLATFORM);
        self.0
            .iter()
            .find(|(engine, _)| engine.slug == slug && engine.scope == scope)
            .map(|(engine, _)| engine.id)
    }
}

async fn ensure_engine(app: &App, engine: &StorageEngine) -> Result<(), ConnectorError> {
    for _ in 0..ENGINE_ATTEMPTS {
        let ensured = app
            .db
            .write(async |tx| reference::ensure_engine(tx, engine).await);
        match ensured.await {
            Err(StoreError::Conflict | StoreError::Busy) => continue,
            ensured => return Ok(ensured.map(drop)?),
        }
    }
    Err(StoreError::Busy.into())
}

/// An engine as a reference row, without its id.
fn described(app: &App, company: &CompanyId, info: &EngineInfo) -> StorageEngine {
    let private = app.sandbox.engine(NOBODY, &info.slug).is_none();
    StorageEngine {
        id: 0,
        scope: if private {
            company.to_string()
        } else {
            PLATFORM.to_owned()
        },
        slug: info.slug.clone(),
        name: info.title.clone(),
        dialect: info.dialect.clone(),
        need: need(info),
        credential_types: info.credential_types.clone(),
    }
}
