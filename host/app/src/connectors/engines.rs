//! The engines that connectors bring, and the ids that the API knows them by.

use souk_domain::ids::CompanyId;
use souk_sandbox::{ConnectorInfo, EngineInfo};
use souk_store::StoreError;
use souk_store::connectors::PLATFORM;
use souk_store::reference::{self, StorageEngine};

use super::ConnectorError;
use crate::App;
use crate::connections::need;

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
    let new: Vec<&EngineInfo> = active
        .iter()
        .filter(|info| known.iter().all(|engine| engine.slug != info.slug))
        .collect();
    if !new.is_empty() {
        for info in new {
            ensure_engine(app, &described(app, company, info)).await?;
        }
        known = reference::engines(&mut *app.db.read().await?, company.as_str()).await?;
    }
    let with_info = |engine: StorageEngine| {
        let info = active.iter().find(|info| info.slug == engine.slug).cloned();
        (engine, info)
    };
    Ok(known.into_iter().map(with_info).collect())
}

/// The ids of the engines that a company can see, by slug.
pub struct Engines(Vec<(StorageEngine, Option<EngineInfo>)>);

impl Engines {
    pub async fn load(app: &App, company: &CompanyId) -> Result<Engines, ConnectorError> {
        Ok(Engines(engines(app, company).await?))
    }

    pub fn id(&self, slug: &str) -> Option<i64> {
        self.0
            .iter()
            .find(|(engine, _)| engine.slug == slug)
            .map(|(engine, _)| engine.id)
    }
}

async fn ensure_engine(app: &App, engine: &StorageEngine) -> Result<(), ConnectorError> {
    for _ in 0..ENGINE_ATTEMPTS {
        let mut tx = app.db.write().await?;
        match reference::ensure_engine(&mut tx, engine).await {
            Err(StoreError::Conflict | StoreError::Busy) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(tx.commit().await?),
        }
    }
    Err(StoreError::Busy.into())
}

/// An engine as a reference row, without its id.
fn described(app: &App, company: &CompanyId, info: &EngineInfo) -> StorageEngine {
    let mine = |connector: &ConnectorInfo| {
        connector.company_id.as_deref() == Some(company.as_str()) && connector.digest == info.digest
    };
    let private = app.sandbox.connectors().iter().any(mine);
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
