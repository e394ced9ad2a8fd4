//! Publishing: a product goes on the market only when it has a price and its test passes, and what
//! the test returned becomes its preview. A change of what is sold takes the preview away; the next
//! test, or publication, makes a new one.

use std::sync::Arc;

use serde_json::value::RawValue;
use souk_domain::ids::{AssetId, CompanyId, EndpointId};
use souk_domain::parameters::{Raw, Value};
use souk_domain::time::Timestamp;
use souk_sandbox::Blame;
use souk_store::{StoreError, assets, endpoints};

use crate::App;
use crate::execute::{self, Sample};
use crate::failure::{Failure, Refusal};
use crate::fetch::{self, PREVIEW_ROWS, Tested};
use crate::products::{self, AssetSnapshot, EndpointSnapshot};
use crate::release::{Released, Withheld};
use crate::run::Payer;

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

impl From<StoreError> for Unpublished {
    fn from(error: StoreError) -> Unpublished {
        Unpublished::Other(error.into())
    }
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
    app.db
        .write(async |tx| {
            let now = later(asset.row.updated_at, app.clock.now());
            let published =
                assets::publish(tx, company, id, asset.row.updated_at, &sample, now).await?;
            if !published {
                return Err(Unpublished::Changed);
            }
            Ok(())
        })
        .await
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
    app.db
        .write(async |tx| {
            let read_at = endpoint.row.updated_at;
            let training = allow_ai_training.unwrap_or(endpoint.row.written.allow_ai_training);
            let now = later(read_at, app.clock.now());
            let published =
                endpoints::publish(tx, company, id, read_at, &learned, &sample, training, now)
                    .await?;
            if !published {
                return Err(Unpublished::Changed);
            }
            Ok(())
        })
        .await
}

/// Whether what a preview shows is still what the asset would answer: else its seller has withdrawn it.
pub fn asset_sample_holds(before: &assets::Written, after: &assets::Written) -> bool {
    let shown = |asset: &assets::Written| {
        (
            asset.connection_id.clone(),
            (asset.source_kind.clone(), asset.source.clone()),
            asset.parameters.clone(),
            asset.result_type.clone(),
            (asset.visualization.clone(), asset.prediction.clone()),
            asset.privacy.clone(),
            asset.freshness_column.clone(),
        )
    };
    shown(before) == shown(after)
}

/// The same of an endpoint. Filters and limits change what can be asked for, not what the first rows are.
pub fn endpoint_sample_holds(before: &endpoints::Written, after: &endpoints::Written) -> bool {
    let shown = |endpoint: &endpoints::Written| {
        (
            endpoint.connection_id.clone(),
            (
                endpoint.source_schema.clone(),
                endpoint.source_table.clone(),
            ),
            endpoint.sql_logic.clone(),
            endpoint.fields.clone(),
            endpoint.order_by.clone(),
        )
    };
    shown(before) == shown(after)
}

/// Gives an asset without a preview one: what a test of it has just returned.
pub(crate) async fn keep_tested_asset(
    app: &App,
    asset: &AssetSnapshot,
    released: &Released,
    taken_at: Timestamp,
) {
    if asset.row.sample.is_some() {
        return;
    }
    let kept = async {
        let sample = sample_of(released, taken_at)?;
        let sample =
            serde_json::to_string(&sample).map_err(|error| Refusal::Internal(error.to_string()))?;
        app.db
            .write(async |tx| {
                assets::keep_sample(tx, &asset.row.id, asset.row.updated_at, &sample).await
            })
            .await?;
        Ok::<_, Refusal>(())
    };
    // The test has passed all the same, and the next one tries again.
    if let Err(error) = kept.await {
        tracing::warn!(%error, asset = %asset.row.id, "a tested asset got no preview");
    }
}

/// Gives an endpoint without a preview one: the first rows of a test.
pub async fn keep_tested_endpoint(app: &App, endpoint: &EndpointSnapshot, tested: &Tested) {
    if endpoint.row.sample.is_some() {
        return;
    }
    let row = &endpoint.row;
    let kept = async {
        let sample = first_rows(&tested.rows)?;
        app.db
            .write(async |tx| {
                let now = app.clock.now();
                endpoints::keep_sample(tx, &row.id, row.updated_at, &sample, now).await
            })
            .await?;
        Ok::<_, Refusal>(())
    };
    if let Err(error) = kept.await {
        tracing::warn!(%error, endpoint = %row.id, "a tested endpoint got no preview");
    }
}

/// A test may show more rows than a preview.
fn first_rows(rows: &[u8]) -> Result<String, Refusal> {
    let unreadable = |error: serde_json::Error| Refusal::Internal(error.to_string());
    let mut rows: Vec<&RawValue> = serde_json::from_slice(rows).map_err(unreadable)?;
    rows.truncate(PREVIEW_ROWS as usize);
    serde_json::to_string(&rows).map_err(unreadable)
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
        Ok(released) => {
            sample_of(&released, payer.now).map_err(|error| Failure::before(true, error))
        }
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

fn sample_of(released: &Released, taken_at: Timestamp) -> Result<Sample, Refusal> {
    let text = format!("{{{}}}", String::from_utf8_lossy(&released.members));
    let result =
        RawValue::from_string(text).map_err(|error| Refusal::Internal(error.to_string()))?;
    Ok(Sample {
        result: Some(result),
        data_freshness: released.freshness.map(Timestamp::from_micros),
        taken_at,
    })
}
