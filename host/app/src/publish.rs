//! Publishing: a product goes on the market only when it has a price and its test passes, and what
//! the test returned becomes its preview, if it is small enough to be kept. A change of what is sold takes the preview away; the next
//! test, or publication, makes a new one.
//!
//! What is on the market stays what has passed its test: a change that asks its source for more is tested before it is saved.

use souk_domain::ids::{AssetId, CompanyId, EndpointId};
use souk_domain::parameters::{Raw, Value};
use souk_domain::time::Timestamp;
use souk_store::products::{self as store, AssetDetails, EndpointDetails, Row, Tested, Written};
use souk_store::{Cached, Write};

use crate::App;
use crate::failure::{Cause, Failure};
use crate::preview::{PREVIEW_ROWS, Sample, text};
use crate::products::{self, AssetSnapshot, EndpointSnapshot, Sells, Snapshot};
use crate::release::Wording;
use crate::run::Payer;
use crate::{execute, fetch};

/// Tests an asset, with these parameters where they are given, and puts it on the market.
pub async fn asset(
    app: &App,
    company: &CompanyId,
    id: &AssetId,
    given: &[(&str, Raw<'_>)],
    payer: &Payer<'_>,
    wording: Wording,
) -> Result<(), Failure> {
    let asset = priced(app, company, id, false, payer.now).await?;
    let tested = tested_asset(app, &asset, given, payer, wording).await?;
    let passed = Passed {
        product: asset,
        tested,
    };
    app.db.write(async |tx| passed.publish(app, tx).await).await
}

/// Tests an endpoint that is to be put on the market. `is_priced_now`: its price comes with that.
pub async fn test_endpoint(
    app: &App,
    company: &CompanyId,
    id: &EndpointId,
    allow_ai_training: Option<bool>,
    is_priced_now: bool,
    now: Timestamp,
) -> Result<Passed<EndpointId>, Failure> {
    let endpoint = priced(app, company, id, is_priced_now, now).await?;
    let rows = fetch::test(app, &endpoint, PREVIEW_ROWS, b"").await;
    let mut tested = tested_endpoint(&endpoint, rows)?;
    if let Some(allowed) = allow_ai_training {
        tested.allow_ai_training = allowed;
    }
    Ok(Passed {
        product: endpoint,
        tested,
    })
}

/// Whether a change asks the source for something that it was not asked for before: then its test says whether the product still works.
pub fn asks_more<K: Sells>(before: &Written<K::Details>, after: &Written<K::Details>) -> bool {
    before.connection_id != after.connection_id || !K::asks_no_more(&before.details, &after.details)
}

/// Tests an asset as a change would leave it, with these parameters where they are given. Nothing is kept of that.
pub async fn test_changed_asset(
    app: &App,
    before: &Row<AssetId>,
    written: &Written<AssetDetails>,
    given: &[(&str, Raw<'_>)],
    payer: &Payer<'_>,
    wording: Wording,
) -> Result<Tested, Failure> {
    let asset = products::changed(app, before, written, payer.now).await?;
    tested_asset(app, &asset, given, payer, wording).await
}

/// Tests an endpoint as a change would leave it. Nothing is kept of that.
pub async fn test_changed_endpoint(
    app: &App,
    before: &Row<EndpointId>,
    written: &Written<EndpointDetails>,
    now: Timestamp,
) -> Result<Tested, Failure> {
    let endpoint = products::changed(app, before, written, now).await?;
    let rows = fetch::test_unsaved(app, &endpoint, PREVIEW_ROWS).await;
    tested_endpoint(&endpoint, rows)
}

async fn tested_asset(
    app: &App,
    asset: &Cached<AssetSnapshot>,
    given: &[(&str, Raw<'_>)],
    payer: &Payer<'_>,
    wording: Wording,
) -> Result<Tested, Failure> {
    let sample = sample(app, asset, given, payer, wording)
        .await
        .map_err(Failure::in_test)?;
    Ok(Tested {
        sample: sample.as_ref().map(text).transpose()?,
        learned: None,
        allow_ai_training: asset.row.written.allow_ai_training,
    })
}

fn tested_endpoint(
    endpoint: &EndpointSnapshot,
    rows: Result<fetch::Tested, Failure>,
) -> Result<Tested, Failure> {
    let rows = rows.map_err(Failure::in_test)?;
    Ok(Tested {
        sample: rows.sample,
        learned: Some(text(&rows.learned)?),
        allow_ai_training: endpoint.row.written.allow_ai_training,
    })
}

/// A product whose test has passed.
pub struct Passed<K: Sells> {
    product: Cached<Snapshot<K>>,
    tested: Tested,
}

impl<K: Sells> Passed<K> {
    /// Puts it on the market as it was read, or not at all.
    pub async fn publish(&self, app: &App, tx: &mut Write) -> Result<(), Failure> {
        let row = &self.product.row;
        let now = later(row.updated_at, app.clock.now());
        let (company, read_at) = (&row.company_id, row.updated_at);
        match store::publish(tx, company, &row.id, read_at, &self.tested, now).await? {
            true => Ok(()),
            false => Err(Cause::Changed.into()),
        }
    }
}

/// A product of this company that has a price, or is given one.
async fn priced<K: Sells>(
    app: &App,
    company: &CompanyId,
    id: &K,
    is_priced_now: bool,
    now: Timestamp,
) -> Result<Cached<Snapshot<K>>, Failure> {
    let product = products::get(app, id, now).await?;
    match product.is_of(company) {
        false => Err(Cause::NotFound.into()),
        true if product.priced.price.is_none() && !is_priced_now => Err(Cause::NoPrice.into()),
        true => Ok(product),
    }
}

/// `updated_at` is also the version that an update is checked against: it must move.
pub fn later(before: Timestamp, now: Timestamp) -> Timestamp {
    now.max(Timestamp::from_micros(before.micros() + 1))
}

async fn sample(
    app: &App,
    asset: &Cached<AssetSnapshot>,
    given: &[(&str, Raw<'_>)],
    payer: &Payer<'_>,
    wording: Wording,
) -> Result<Option<Sample>, Failure> {
    let made_up: Vec<(&str, Value)> = asset
        .plan
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
    match execute::sample(app, asset, &all, payer, !made_up.is_empty()).await {
        Ok(None) => Ok(None),
        Ok(Some(released)) => Sample::taken(&released, wording, payer.now)
            .map_err(|error| Failure::before(true, error)),
        // That made-up values are refused or find nothing says nothing about the asset: whoever sells it knows some that do.
        Err(failure) => Err(Failure {
            made_up: made_up.iter().map(|(name, _)| (*name).into()).collect(),
            ..failure
        }),
    }
}
