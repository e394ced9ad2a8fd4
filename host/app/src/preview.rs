//! What a product shows of itself before it is bought: a sample, which the test at its publication has left, or the first one after a
//! change that took it away.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use souk_domain::time::Timestamp;
use souk_store::products::{self as store, Kind, Row, Written};

use crate::App;
use crate::failure::Cause;
use crate::products::{AssetSnapshot, EndpointSnapshot, Sells};
use crate::release::{Released, Wording};

/// Rows that every preview of an endpoint shows.
pub const PREVIEW_ROWS: u32 = 3;

/// What a preview shows: the result that passed the test at publication, or the first one after a change.
#[derive(Serialize, Deserialize)]
pub struct Sample {
    /// An object of the result's own members, as they are worded; absent when the test had only made-up parameters and found nothing.
    pub result: Option<Box<RawValue>>,
    pub data_freshness: Option<Timestamp>,
    pub taken_at: Timestamp,
}

impl Sample {
    /// Of an asset, if it has one.
    pub fn of(asset: &AssetSnapshot) -> Result<Sample, Cause> {
        let text = asset.row.sample.as_deref().ok_or(Cause::NoPreview)?;
        serde_json::from_str(text).map_err(|error| Cause::Internal(error.to_string()))
    }

    /// Of what a run has let out, as `wording` puts it.
    pub(crate) fn taken(
        released: &Released,
        wording: Wording,
        taken_at: Timestamp,
    ) -> Result<Sample, Cause> {
        let mut members = Vec::new();
        wording(&mut members, &released.insight);
        let text = format!("{{{}}}", String::from_utf8_lossy(&members));
        let result =
            RawValue::from_string(text).map_err(|error| Cause::Internal(error.to_string()))?;
        Ok(Sample {
            result: Some(result),
            data_freshness: released.freshness.map(Timestamp::from_micros),
            taken_at,
        })
    }
}

/// Whether what a preview shows is still what the product would answer: else its seller has withdrawn it.
pub fn sample_holds<K: Sells>(before: &Written<K::Details>, after: &Written<K::Details>) -> bool {
    before.connection_id == after.connection_id
        && K::shows_the_same(&before.details, &after.details)
}

/// Gives an asset without a preview one: what a test of it has just returned.
pub(crate) async fn keep_tested_asset(
    app: &App,
    asset: &AssetSnapshot,
    released: &Released,
    wording: Wording,
    taken_at: Timestamp,
) {
    let sample = || text(&Sample::taken(released, wording, taken_at)?);
    keep_tested(app, &asset.row, sample).await;
}

/// Gives an endpoint without a preview one: the first `rows` of a test, a JSON array.
pub async fn keep_tested_endpoint(app: &App, endpoint: &EndpointSnapshot, rows: &[u8]) {
    keep_tested(app, &endpoint.row, || first_rows(rows)).await;
}

async fn keep_tested<K: Kind>(
    app: &App,
    row: &Row<K>,
    sample: impl FnOnce() -> Result<String, Cause>,
) {
    if row.sample.is_some() {
        return;
    }
    let kept = async {
        let (sample, now) = (sample()?, app.clock.now());
        app.db
            .write(async |tx| store::keep_sample(tx, &row.id, row.updated_at, &sample, now).await)
            .await?;
        Ok::<_, Cause>(())
    };
    // The test has passed all the same, and the next one tries again.
    if let Err(error) = kept.await {
        tracing::warn!(%error, product = %row.id, "a tested product got no preview");
    }
}

/// As it is kept.
pub(crate) fn text(sample: &impl Serialize) -> Result<String, Cause> {
    serde_json::to_string(sample).map_err(|error| Cause::Internal(error.to_string()))
}

/// A test may show more rows than a preview.
fn first_rows(rows: &[u8]) -> Result<String, Cause> {
    let unreadable = |error: serde_json::Error| Cause::Internal(error.to_string());
    let mut rows: Vec<&RawValue> = serde_json::from_slice(rows).map_err(unreadable)?;
    rows.truncate(PREVIEW_ROWS as usize);
    serde_json::to_string(&rows).map_err(unreadable)
}
