//! Alerts: what is watched, and the watching.
//!
//! An evaluation is a run of the asset like any other (`crate::run`): admitted, held, charged and recorded in the alert's name, for the company
//! whose alert it is. Start reading at [`schedule`] for whose turn it is, and at [`evaluate`] for what one costs and finds.

pub mod evaluate;
pub mod mails;
pub mod params;
pub mod schedule;

use souk_domain::alerts::{Condition, Standing, Watched};
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{AlertId, AssetId, CompanyId, UserId, WebhookId};
use souk_domain::time::Timestamp;
use souk_store::alerts::{self, Alert, Written};
use souk_store::{AnyConnection, Cached, StoreError, Write, webhooks};

use crate::App;
use crate::binding;
use crate::failure::{Cause, Failure};
use crate::products::{self, AssetSnapshot};
use crate::release::ResultKind;
use crate::run::admit;
pub use params::Params;
pub use schedule::start;

/// Of the parameters of one alert, as JSON.
pub const PARAMS_BYTES_MAX: usize = 4_096;

#[derive(Debug, thiserror::Error)]
pub enum AlertError {
    #[error("{} fields are not valid", .0.len())]
    Fields(Vec<souk_domain::fields::FieldError>),
    #[error(transparent)]
    Asset(#[from] Failure),
    #[error("the company has as many alerts as it may have")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What an alert on this asset watches. `None`: a chart, which is no single answer.
pub fn watched(asset: &AssetSnapshot) -> Option<Watched> {
    match asset.plan.policy.kind {
        ResultKind::Number => Some(Watched::Number),
        ResultKind::String => Some(Watched::Text),
        ResultKind::Prediction(_) => Some(Watched::Forecast),
        ResultKind::Chart(_) => None,
    }
}

/// Checks that `company` may run the asset now, with these parameters, and that its answer can be watched so.
pub async fn check(
    app: &App,
    company: &CompanyId,
    asset: &AssetId,
    params: &Params,
    condition: &Condition,
    now: Timestamp,
) -> Result<Cached<AssetSnapshot>, AlertError> {
    let asset = products::get(app, asset, now).await.map_err(refused)?;
    admit(app, &asset.sold(), company).await.map_err(refused)?;
    let mut errors = FieldErrors::default();
    let plan = &asset.plan;
    errors.take(binding::bind(&plan.parameters, plan.dialect, &params.raw()));
    match watched(&asset) {
        Some(watched) => drop(errors.take(condition.fits(watched))),
        None => errors.add(
            "asset_id",
            "invalid",
            "its answer is a chart: an alert watches a number, a text or a prediction",
        ),
    }
    errors.or(asset).map_err(AlertError::Fields)
}

fn refused(cause: Cause) -> AlertError {
    AlertError::Asset(cause.into())
}

/// Names the webhooks that are none of the company's.
pub async fn check_webhooks(
    db: &mut AnyConnection,
    company: &CompanyId,
    ids: &[WebhookId],
) -> Result<(), AlertError> {
    let mut errors = FieldErrors::default();
    for (place, id) in ids.iter().enumerate() {
        if webhooks::get(db, company, id).await?.is_none() {
            let message = format!("there is no webhook \"{id}\" of this company");
            errors.add(format!("webhook_ids[{place}]"), "unknown", message);
        }
    }
    errors.or(()).map_err(AlertError::Fields)
}

/// Whether a user can be told by mail, when that is wanted.
pub fn check_mail(app: &App, written: &Written) -> Result<(), AlertError> {
    let mut errors = FieldErrors::default();
    if written.notify_by_mail && app.mail.is_none() {
        let message = "this host sends no mail: leave it out and have a webhook told, or ask the operator for a relay";
        errors.add("notify_by_mail", "unavailable", message);
    }
    errors.or(()).map_err(AlertError::Fields)
}

/// Adds an alert, which is evaluated at once if it is active.
pub async fn create(
    app: &App,
    write: &mut Write,
    company: &CompanyId,
    user: UserId,
    asset: AssetId,
    written: Written,
    now: Timestamp,
) -> Result<Alert, AlertError> {
    check_mail(app, &written)?;
    let alert = Alert {
        id: AlertId::generate(),
        company_id: company.clone(),
        user_id: user,
        asset_id: asset,
        next_check_at: written.is_active.then_some(now),
        written,
        created_at: now,
        updated_at: now,
        revision: 1,
        standing: Standing::NEW,
        last_answer: None,
        history: Vec::new(),
        last_checked_at: None,
        last_error: None,
        spent_on: Timestamp::from_micros(0),
        spent_credits: 0,
    };
    check_webhooks(write, company, &alert.written.webhook_ids).await?;
    match alerts::insert(write, &alert, i64::from(app.bounds.alerts)).await? {
        true => Ok(alert),
        false => Err(AlertError::TooMany),
    }
}
