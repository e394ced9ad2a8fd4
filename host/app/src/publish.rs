//! Publishing: a product goes on the market only when it has a price and its test passes, and what
//! the test returned becomes its preview.

use std::sync::Arc;

use serde_json::value::RawValue;
use souk_domain::ids::{AssetId, CompanyId, EndpointId};
use souk_domain::parameters::{Raw, Value};
use souk_domain::time::Timestamp;
use souk_sandbox::Blame;
use souk_store::{Topic, assets, endpoints};

use crate::App;
use crate::execute::{self, Sample};
use crate::failure::{Failure, Refusal};
use crate::fetch::{self, PREVIEW_ROWS};
use crate::products::{self, AssetSnapshot};
use crate::release::{Released, Withheld};
use crate::settle::Payer;

/// Why a product was not published.
#[derive(Debug, thiserror::Error)]
pub enum Unpublished {
    #[error("the product has no active price")]
    NoPrice,
    #[error("the test failed")]
    Test(Box<Failure>),
    /// The product was changed while it was tested.
    #[error("the product was changed while it was tested; try again")]
    Changed,
    #[error(transparent)]
    Other(#[from] Refusal),
}

/// Tests an asset, with these parameters where they are given, and puts it on the market.
pub async fn asset(
    app: &App,
    company: &CompanyId,
    id: &AssetId,
    given: &[(&str, Raw<'_>)],
    payer: &Payer<'_>,
) -> Result<(), Unpublished> {
    let asset = products::asset(app, id, payer.now).await?;
    if asset.row.company_id != *company || asset.row.status == "archived" {
        return Err(Refusal::NotFound.into());
    }
    if asset.priced.price.is_none() {
        return Err(Unpublished::NoPrice);
    }
    let sample = sample(app, &asset, given, payer)
        .await
        .map_err(|failure| Unpublished::Test(Box::new(failure)))?;
    let sample =
        serde_json::to_string(&sample).map_err(|error| Refusal::Internal(error.to_string()))?;
    let mut tx = app.db.write().await.map_err(Refusal::from)?;
    let now = later(asset.row.updated_at, app.clock.now());
    let published = assets::publish(&mut tx, company, id, asset.row.updated_at, &sample, now)
        .await
        .map_err(Refusal::from)?;
    if !published {
        return Err(Unpublished::Changed);
    }
    tx.touch(Topic::Asset, id.as_str());
    tx.commit().await.map_err(Refusal::from)?;
    Ok(())
}

/// Tests an endpoint and puts it on the market.
pub async fn endpoint(
    app: &App,
    company: &CompanyId,
    id: &EndpointId,
    allow_ai_training: Option<bool>,
    now: Timestamp,
) -> Result<(), Unpublished> {
    let endpoint = products::endpoint(app, id, now).await?;
    if endpoint.row.company_id != *company || endpoint.row.status == "archived" {
        return Err(Refusal::NotFound.into());
    }
    if endpoint.priced.price.is_none() {
        return Err(Unpublished::NoPrice);
    }
    let tested = fetch::test(app, &endpoint, PREVIEW_ROWS)
        .await
        .map_err(|failure| Unpublished::Test(Box::new(failure)))?;
    let learned = serde_json::to_string(&tested.learned)
        .map_err(|error| Refusal::Internal(error.to_string()))?;
    let sample = String::from_utf8_lossy(&tested.rows).into_owned();
    let mut tx = app.db.write().await.map_err(Refusal::from)?;
    let read_at = endpoint.row.updated_at;
    let training = allow_ai_training.unwrap_or(endpoint.row.written.allow_ai_training);
    let now = later(read_at, app.clock.now());
    let published = endpoints::publish(
        &mut tx, company, id, read_at, &learned, &sample, training, now,
    )
    .await
    .map_err(Refusal::from)?;
    if !published {
        return Err(Unpublished::Changed);
    }
    tx.touch(Topic::Endpoint, id.as_str());
    tx.commit().await.map_err(Refusal::from)?;
    Ok(())
}

/// `updated_at` is also the version that an update is checked against: it must move.
pub fn later(before: Timestamp, now: Timestamp) -> Timestamp {
    now.max(Timestamp::from_micros(before.micros() + 1))
}

async fn sample(
    app: &App,
    asset: &Arc<AssetSnapshot>,
    given: &[(&str, Raw<'_>)],
    payer: &Payer<'_>,
) -> Result<Sample, Failure> {
    let made_up: Vec<(&str, Value)> = asset
        .parameters
        .iter()
        .filter(|parameter| !given.iter().any(|(name, _)| *name == parameter.name()))
        .filter_map(|parameter| Some((parameter.name(), parameter.example()?)))
        .collect();
    let texts: Vec<String> = made_up.iter().map(|(_, value)| value.to_string()).collect();
    let mut all = given.to_vec();
    all.extend(
        made_up
            .iter()
            .zip(&texts)
            .map(|((name, _), text)| (*name, Raw::Query(text))),
    );
    match execute::sample(app, asset, &all, payer).await {
        Ok(released) => keep(released, payer.now),
        // Made-up values may find nothing, or be refused: that says nothing about the asset.
        Err(failure) if !made_up.is_empty() && is_about_values(&failure.refusal) => Ok(Sample {
            result: None,
            data_freshness: None,
            taken_at: payer.now,
        }),
        Err(failure) => Err(failure),
    }
}

fn is_about_values(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Withheld(Withheld::NoRow) => true,
        Refusal::Fault(fault) => fault.blame == Blame::Caller,
        _ => false,
    }
}

fn keep(released: Released, taken_at: Timestamp) -> Result<Sample, Failure> {
    let text = format!("{{{}}}", String::from_utf8_lossy(&released.members));
    let result = RawValue::from_string(text)
        .map_err(|error| Failure::before(true, Refusal::Internal(error.to_string())))?;
    Ok(Sample {
        result: Some(result),
        data_freshness: released.freshness.map(Timestamp::from_micros),
        taken_at,
    })
}
