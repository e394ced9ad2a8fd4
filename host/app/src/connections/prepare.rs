//! What may be saved of what a client says about a connection: everything that is wrong is found at once, and nothing is dialled.

use std::net::SocketAddr;

use serde_json::{Map, Value};
use souk_domain::connections::{self as rules, Checked, Engine, Target};
use souk_domain::fields::{FieldError, FieldErrors};
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_domain::reference::CLOUD_PROVIDERS;
use souk_sandbox::{EngineInfo, Source};
use souk_store::connections::{Connection, Written};
use souk_store::sealing::Owner;
use souk_store::{StoreError, files, reference};

use super::error::{ConnectionError, no_file};
use super::input::{Input, draft, parse_credentials};
use super::schema::Asked;
use super::source::{Plan, build, settings};
use super::stored::credentials as stored_credentials;
use crate::App;
use crate::connectors::{need, serving};

/// A connection that obeys every rule that can be checked without dialling.
pub(super) struct Prepared {
    pub engine_id: i64,
    pub engine: EngineInfo,
    pub checked: Checked,
    /// Absent: the stored ones stay.
    pub credentials: Option<Map<String, Value>>,
    cloud_provider_id: Option<i64>,
    verified_usage_ability: bool,
}

impl Prepared {
    /// Lays `input` over what is stored and checks the whole. `errors`: what is wrong with the request besides.
    pub async fn new(
        app: &App,
        company: &CompanyId,
        input: &Input,
        before: Option<&Connection>,
        mut errors: FieldErrors,
    ) -> Result<Prepared, ConnectionError> {
        let engine_id = engine_id(input, before, &mut errors);
        let engine = match engine_id {
            Some(id) => engine(app, company, id, &mut errors).await?,
            None => None,
        };
        let credentials = match (&input.credentials, before) {
            (Some(text), _) => errors.take(parse_credentials(text)),
            (None, Some(_)) => None,
            (None, None) => {
                let message =
                    "credentials are required: JSON as text, \"{}\" for credential_type NONE";
                errors.add("credentials", "required", message);
                None
            }
        };
        check_cloud_provider(input, &mut errors);
        let draft = draft(input, before, credentials.as_ref());
        if input.credentials.is_none()
            && before.is_some_and(|before| before.credential_type != draft.credential_type)
        {
            let message = "a new credential_type needs new credentials";
            errors.add("credentials", "required", message);
        }
        let checked = match &engine {
            Some(engine) => {
                let asked = Asked::of(engine);
                let rules_of = Engine {
                    slug: engine.slug.clone(),
                    need: need(engine),
                    credential_types: engine.credential_types.clone(),
                    members: asked.members(),
                    default_port: asked.default_port(),
                };
                rules::check(&rules_of, &draft)
            }
            None => Err(rules::check_without_engine(&draft)),
        };
        let checked = errors.take(checked.map_err(|mut wrong| {
            // What is missing may stand in the credentials that could not be read.
            let is_unread =
                credentials.is_none() && (input.credentials.is_some() || before.is_none());
            let may_stand_there =
                |error: &FieldError| error.field != "credential_type" && error.code == "required";
            wrong.retain(|error| !(is_unread && may_stand_there(error)));
            wrong
        }));
        let (Some(engine_id), Some(engine), Some(checked)) = (engine_id, engine, checked) else {
            return Err(ConnectionError::Invalid(errors.into_vec()));
        };
        check_file(app, company, &checked.target, &mut errors).await?;
        check_settings(
            app,
            company,
            &engine,
            &checked,
            credentials.as_ref(),
            before,
            &mut errors,
        )
        .await?;
        // It has a code of its own, and asks for no credentials: giving them again would not help.
        if errors.is_empty() {
            check_egress(app, &checked.target)?;
        }
        if let (None, Some(before)) = (&input.credentials, before) {
            keep_credentials(app, before, &checked.target, &mut errors)?;
        }
        let checked = errors.or(checked).map_err(ConnectionError::Invalid)?;
        let stored_provider = before.and_then(|before| before.cloud_provider_id);
        Ok(Prepared {
            engine_id,
            engine,
            checked,
            credentials,
            cloud_provider_id: input.cloud_provider_id.unwrap_or(stored_provider),
            verified_usage_ability: input
                .verified_usage_ability
                .unwrap_or(before.is_some_and(|before| before.verified_usage_ability)),
        })
    }

    pub fn seal(
        &self,
        app: &App,
        company: &CompanyId,
        id: &ConnectionId,
    ) -> Result<Vec<u8>, ConnectionError> {
        let text = Value::Object(self.credentials.clone().unwrap_or_default()).to_string();
        let owner = Owner::of(company, id.as_str());
        Ok(app.sealer.seal(owner, text.as_bytes())?)
    }

    /// The source of a connection that is not saved.
    pub async fn source(&self, app: &App, company: &CompanyId) -> Result<Source, ConnectionError> {
        let plan = Plan {
            company,
            id: &ConnectionId::generate(),
            revision: 0,
            engine: &self.engine,
            target: &self.checked.target,
            statement_timeout_ms: self.checked.statement_timeout_ms,
        };
        build(app, &plan, &self.credentials.clone().unwrap_or_default()).await
    }

    pub fn written<'a>(&'a self, sealed: &'a [u8]) -> Written<'a> {
        Written {
            name: &self.checked.name,
            credential_type: &self.checked.credential_type,
            credentials: sealed,
            target: &self.checked.target,
            cloud_provider_id: self.cloud_provider_id,
            verified_usage_ability: self.verified_usage_ability,
            statement_timeout_ms: self.checked.statement_timeout_ms,
        }
    }
}

fn engine_id(input: &Input, before: Option<&Connection>, errors: &mut FieldErrors) -> Option<i64> {
    let stored = before.map(|before| before.engine_id);
    match (input.engine_id, stored) {
        (Some(id), Some(stored)) if id != stored => {
            let message = "engine_id cannot be changed: create another connection";
            errors.add("engine_id", "immutable", message);
            Some(stored)
        }
        (None, None) => {
            let message = "engine_id is required: see GET /storage-engines";
            errors.add("engine_id", "required", message);
            None
        }
        (given, stored) => given.or(stored),
    }
}

/// What the active connector says about an engine, for a company that may use it.
async fn engine(
    app: &App,
    company: &CompanyId,
    id: i64,
    errors: &mut FieldErrors,
) -> Result<Option<EngineInfo>, StoreError> {
    let known = reference::engine_by_id(&mut *app.db.read().await?, company.as_str(), id).await?;
    let Some(known) = known else {
        let message = format!("there is no storage engine {id}: see GET /storage-engines");
        errors.add("engine_id", "unknown", message);
        return Ok(None);
    };
    let serving = serving(&app.sandbox, company, &known.scope, &known.slug);
    if serving.is_none() {
        let message = format!(
            "no connector for {} is active on this service: see GET /storage-engines",
            known.name
        );
        errors.add("engine_id", "unavailable", message);
    }
    Ok(serving)
}

/// Holds what the connector would be told against its schema: of a new connection, of new credentials, and where what it leads to changes.
async fn check_settings(
    app: &App,
    company: &CompanyId,
    engine: &EngineInfo,
    checked: &Checked,
    credentials: Option<&Map<String, Value>>,
    before: Option<&Connection>,
    errors: &mut FieldErrors,
) -> Result<(), ConnectionError> {
    let stored = match (credentials, before) {
        (Some(_), _) => None,
        (None, Some(before)) if before.target()? != checked.target => {
            Some(stored_credentials(app, before)?)
        }
        (None, _) => return Ok(()),
    };
    let Some(credentials) = credentials.or(stored.as_ref()).cloned() else {
        return Ok(());
    };
    let told = settings(&checked.target, checked.statement_timeout_ms, &credentials);
    let (asked, credential_type) = (Asked::of(engine), checked.credential_type.clone());
    // The schema is a stranger's: what it costs to follow is its own company's time.
    let found = app.sandbox.compute(company.as_str(), move || {
        asked.check(&told, &credential_type, &credentials)
    });
    let found = found.await.ok_or_else(crate::failure::abandoned)?;
    // What the rules of all engines have said already is not said twice.
    let known: Vec<String> = errors.names().map(str::to_owned).collect();
    let is_said = |error: &FieldError| {
        let whole = error.field.split('.').next().unwrap_or_default();
        known
            .iter()
            .any(|field| *field == error.field || *field == whole)
    };
    errors.extend(found.into_iter().filter(|error| !is_said(error)).collect());
    Ok(())
}

/// A connection to a file names one that exists.
async fn check_file(
    app: &App,
    company: &CompanyId,
    target: &Target,
    errors: &mut FieldErrors,
) -> Result<(), StoreError> {
    if let Target::File { name } = target
        && files::get(&mut *app.db.read().await?, company, name)
            .await?
            .is_none()
    {
        errors.push(no_file(company, name));
    }
    Ok(())
}

/// Stored credentials stay with the server that they were given for: whoever may change a connection but was never told its password could
/// otherwise have it sent to a server of their own. Where none are stored there is nothing to learn.
fn keep_credentials(
    app: &App,
    before: &Connection,
    after: &Target,
    errors: &mut FieldErrors,
) -> Result<(), ConnectionError> {
    let field = match (before.target()?, after) {
        (Target::Tcp { host, .. }, Target::Tcp { host: now, .. }) if host != *now => "host",
        (Target::Tcp { port, .. }, Target::Tcp { port: now, .. }) if port != *now => "port",
        (Target::Http { base_url, .. }, Target::Http { base_url: now, .. }) if base_url != *now => {
            "base_url"
        }
        (Target::Tcp { .. }, Target::Tcp { .. })
        | (Target::Http { .. }, Target::Http { .. })
        | (Target::File { .. }, Target::File { .. }) => return Ok(()),
        // The engine's connector speaks over another wire than when the connection was saved.
        _ => "kind of address",
    };
    if stored_credentials(app, before)?.is_empty() {
        return Ok(());
    }
    let message = format!(
        "a new {field} needs the credentials again: the stored ones were given for the server of before"
    );
    errors.add("credentials", "required", message);
    Ok(())
}

fn check_cloud_provider(input: &Input, errors: &mut FieldErrors) {
    if let Some(Some(id)) = input.cloud_provider_id
        && !CLOUD_PROVIDERS.iter().any(|provider| provider.id == id)
    {
        let message = format!("{id} is no cloud provider: GET /cloud-providers lists the ids");
        errors.add("cloud_provider_id", "unknown", message);
    }
}

/// Refuses a written address that the sandbox would refuse anyway; a name is judged when it is
/// resolved for a session.
fn check_egress(app: &App, target: &Target) -> Result<(), ConnectionError> {
    let (field, host, port) = match target {
        Target::Tcp { host, port, .. } => ("host", host.clone(), *port),
        Target::Http { base_url, .. } => {
            let url = url::Url::parse(base_url).ok();
            let host = url
                .as_ref()
                .and_then(url::Url::host_str)
                .unwrap_or_default();
            let port = url.as_ref().and_then(url::Url::port_or_known_default);
            ("base_url", host.to_owned(), port.unwrap_or_default())
        }
        Target::File { .. } => return Ok(()),
    };
    let Some(address) = souk_outbound::written_address(&host) else {
        return Ok(());
    };
    let judged = app.egress.check(SocketAddr::new(address, port));
    judged.map_err(|refused| ConnectionError::UnsafeAddress {
        field,
        message: refused.to_string(),
    })
}
