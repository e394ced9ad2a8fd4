//! Integrations: where a company's posts are published besides.
//!
//! - here: create, change, delete, and what a publisher gets of one;
//! - [`prepare`]: what may be saved;
//! - [`check`]: does it work, and if not, why, in words for its owner.
//!
//! Credentials are text only between the request and the seal, and between the seal and the sandbox. What a platform asks for is said by its
//! publisher, which is a component like a connector: one of the platform's, or one that the company has uploaded.

pub mod check;
mod error;
mod prepare;

use std::sync::Arc;

use serde_json::{Map, Value};
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{CompanyId, IntegrationId, UserId};
use souk_domain::integrations::Texts;
use souk_sandbox::{Grant, PoolLimits, Source};
use souk_store::Write;
use souk_store::integrations::{self, Integration, TestStatus};
use souk_store::sealing::{Owner, SealError};

use crate::detached::{AtTheEnd, to_the_end};
use crate::{App, connectors, members};
pub use error::IntegrationError;
pub use prepare::Input;
use prepare::Prepared;

/// Sessions at one platform: publications of one integration go one after the other, beside a test.
const LIMITS: PoolLimits = PoolLimits {
    sessions_max: 2,
    queue_max: 16,
};

/// Saves a new integration; nothing is dialled. `of_caller`: the user whose key is used.
pub async fn create(
    app: &App,
    company: &CompanyId,
    of_caller: Option<&UserId>,
    input: &Input,
) -> Result<Integration, IntegrationError> {
    let id = IntegrationId::generate();
    let mut errors = FieldErrors::default();
    let given = input.user_id.as_deref();
    let user = members::owner(app, company, given, of_caller, &mut errors).await?;
    let draft = Prepared::new(app, company, input, None, errors).await?;
    let (credentials, now) = (
        draft.checked.credentials.unwrap_or_default(),
        app.clock.now(),
    );
    let integration = Integration {
        credentials: seal(app, company, &id, &credentials)?,
        id,
        company_id: company.clone(),
        user_id: user.ok_or(IntegrationError::NotFound)?,
        platform: draft.platform,
        scope: draft.scope,
        name: draft.checked.name,
        base_url: draft.checked.base_url,
        config: draft.checked.config,
        revision: 1,
        status: TestStatus::Untested,
        last_tested_at: None,
        last_error: None,
        created_at: now,
        updated_at: now,
    };
    app.db
        .write(
            async |write| match integrations::insert(write, &integration).await? {
                true => Ok(integration),
                false => Err(IntegrationError::TooMany),
            },
        )
        .await
}

/// Changes an integration, and lets go of its sessions, whether or not anybody waits for that.
pub async fn change(
    app: &App,
    company: &CompanyId,
    id: &IntegrationId,
    input: &Input,
) -> Result<Integration, IntegrationError> {
    let before = get(app, company, id).await?;
    let draft = Prepared::new(app, company, input, Some(&before), FieldErrors::default()).await?;
    let credentials = match &draft.checked.credentials {
        Some(credentials) => seal(app, company, id, credentials)?,
        None => before.credentials.clone(),
    };
    let renamed_only = draft.checked.credentials.is_none()
        && draft.checked.base_url == before.base_url
        && draft.checked.config == before.config;
    let after = Integration {
        name: draft.checked.name,
        base_url: draft.checked.base_url,
        config: draft.checked.config,
        credentials,
        ..before
    };
    let turn = app.reconnecting.stand(company).await;
    let app = app.clone();
    let saved = to_the_end(turn, async move { save(&app, &after, renamed_only).await });
    saved.await?
}

async fn save(
    app: &App,
    after: &Integration,
    renamed_only: bool,
) -> Result<Integration, IntegrationError> {
    let (company, id, now) = (&after.company_id, &after.id, app.clock.now());
    let saved = app.db.write(async |write| {
        let done = match renamed_only {
            true => integrations::rename(write, company, id, &after.name, now).await?,
            false => integrations::update(write, after, now).await?,
        };
        match done {
            true => find(write, company, id).await,
            false => Err(IntegrationError::Lost),
        }
    });
    let sessions = (!renamed_only).then(|| letting_go(app, company, id));
    let saved = saved.await;
    if is_refused(&saved)
        && let Some(sessions) = sessions
    {
        sessions.spare();
    }
    saved
}

/// Lets go of the sessions when it is dropped: whoever opened one before opened it with what may not hold any more.
fn letting_go(
    app: &App,
    company: &CompanyId,
    id: &IntegrationId,
) -> AtTheEnd<impl FnOnce() + Send> {
    AtTheEnd::of(move || app.sandbox.forget(company.as_str(), id.as_str()))
}

/// Whether nothing was written, so that sessions stay what they are. Where the store has failed, nobody knows.
fn is_refused<T>(written: &Result<T, IntegrationError>) -> bool {
    !matches!(written, Ok(_) | Err(IntegrationError::Store(_)))
}

/// Deletes an integration with its credentials, likewise; what waits for it is given up.
pub async fn delete(
    app: &App,
    company: &CompanyId,
    id: &IntegrationId,
) -> Result<(), IntegrationError> {
    let turn = app.reconnecting.stand(company).await;
    let (app, company, id) = (app.clone(), company.clone(), id.clone());
    let deleted = to_the_end(turn, async move { delete_whole(&app, &company, &id).await });
    deleted.await?
}

async fn delete_whole(
    app: &App,
    company: &CompanyId,
    id: &IntegrationId,
) -> Result<(), IntegrationError> {
    let now = app.clock.now();
    let deleted =
        app.db.write(
            async |write| match integrations::delete(write, company, id, now).await? {
                true => Ok(()),
                false => Err(IntegrationError::NotFound),
            },
        );
    let sessions = letting_go(app, company, id);
    let deleted = deleted.await;
    if is_refused(&deleted) {
        sessions.spare();
    }
    deleted
}

pub async fn get(
    app: &App,
    company: &CompanyId,
    id: &IntegrationId,
) -> Result<Integration, IntegrationError> {
    let found = integrations::get(&mut *app.db.read().await?, company, id).await?;
    found.ok_or(IntegrationError::NotFound)
}

async fn find(
    write: &mut Write,
    company: &CompanyId,
    id: &IntegrationId,
) -> Result<Integration, IntegrationError> {
    let found = integrations::get(write, company, id).await?;
    found.ok_or(IntegrationError::NotFound)
}

/// An integration as the sandbox wants it, and the credentials that nobody else may see.
pub(crate) async fn source(
    app: &App,
    integration: &Integration,
) -> Result<(Arc<Source>, Texts), IntegrationError> {
    let credentials = unseal(app, integration)?;
    let base_url = &integration.base_url;
    // A name may lead elsewhere than when it was saved, and what is not encrypted stays with whom the operator has named.
    if base_url.starts_with("http:") {
        prepare::check_again(app, base_url).await?;
    }
    let revision = u64::try_from(integration.revision).unwrap_or_default();
    let id = integration.id.to_string();
    let (config, engine) = (&integration.config, engine(app, integration)?);
    let source = built(
        (&integration.company_id, id, revision),
        engine,
        base_url,
        config,
        &credentials,
    );
    Ok((Arc::new(source), credentials))
}

fn built(
    (company, id, revision): (&CompanyId, String, u64),
    engine: String,
    base_url: &str,
    config: &Texts,
    credentials: &Texts,
) -> Source {
    let settings: Map<String, Value> = config
        .iter()
        .chain(credentials)
        .map(|(name, text)| (name.clone(), Value::from(text.as_str())))
        .collect();
    Source {
        company: company.to_string(),
        connection: id,
        revision,
        engine,
        settings_json: Value::Object(settings).to_string(),
        grant: Grant::Http {
            base_url: base_url.to_owned(),
            attach: Vec::new(),
            ca_pem: None,
        },
        limits: LIMITS,
    }
}

/// What serves the platform now. One of the platform's publishers is never replaced by a company's own, nor the other way round: what was
/// saved for one of them must not reach the other's code.
fn engine(app: &App, integration: &Integration) -> Result<String, IntegrationError> {
    let (company, scope) = (&integration.company_id, &integration.scope);
    let slug = souk_sandbox::platform(&integration.platform);
    match connectors::serving(&app.sandbox, company, scope, &slug) {
        Some(serving) => Ok(serving.slug),
        None => Err(IntegrationError::NoPublisher(integration.platform.clone())),
    }
}

fn seal(
    app: &App,
    company: &CompanyId,
    id: &IntegrationId,
    credentials: &Texts,
) -> Result<Vec<u8>, SealError> {
    let text = serde_json::json!(credentials).to_string();
    app.sealer
        .seal(Owner::of(company, id.as_str()), text.as_bytes())
}

fn unseal(app: &App, integration: &Integration) -> Result<Texts, SealError> {
    let owner = Owner::of(&integration.company_id, integration.id.as_str());
    let plain = app.sealer.unseal(owner, &integration.credentials)?;
    serde_json::from_slice(&plain).map_err(|_| SealError::Damaged)
}
