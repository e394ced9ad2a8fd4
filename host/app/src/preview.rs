//! What a product shows of itself before it is bought: a sample, which the test at its publication has left, or the first one after a
//! change that took it away.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use souk_domain::time::Timestamp;
use souk_sandbox::{Output, json};
use souk_store::products::{self as store, Kind, Row, Written};

use crate::App;
use crate::failure::Cause;
use crate::products::{AssetSnapshot, EndpointSnapshot, Sells};
use crate::release::{Released, Wording};

/// Rows that every preview of an endpoint shows, if they are small enough.
pub const PREVIEW_ROWS: u32 = 3;
/// What is kept of one product: in the store, beside the books, and by every host that has the product at hand.
pub const SAMPLE_BYTES_MAX: usize = 64 << 10;

/// What a preview shows: the result that passed the test at publication, or the first one after a change.
#[derive(Serialize, Deserialize)]
pub struct Sample {
    /// An object of the result's own members, as they are worded; absent in those of before 2026-11-30 whose test had made-up parameters and found nothing.
    pub result: Option<Box<RawValue>>,
    pub data_freshness: Option<Timestamp>,
    pub taken_at: Timestamp,
}

impl Sample {
    /// Of an asset, if it has one that may be shown.
    pub fn of(asset: &AssetSnapshot) -> Result<Sample, Cause> {
        let sample = asset.row.sample.as_deref();
        let shown = sample.filter(|_| asset.plan.policy.releases_unit().is_none());
        let text = shown.ok_or(Cause::NoPreview)?;
        serde_json::from_str(text).map_err(|error| Cause::Internal(error.to_string()))
    }

    /// Of what a run has let out, as `wording` puts it. `None`: it is larger than a preview may be.
    pub(crate) fn taken(
        released: &Released,
        wording: Wording,
        taken_at: Timestamp,
    ) -> Result<Option<Sample>, Cause> {
        // Some megabytes of a chart are not even written.
        if released.insight.bytes() > SAMPLE_BYTES_MAX {
            return Ok(None);
        }
        let mut members = Vec::new();
        wording(&mut members, &released.insight);
        if members.len() > SAMPLE_BYTES_MAX {
            return Ok(None);
        }
        let text = format!("{{{}}}", String::from_utf8_lossy(&members));
        let result =
            RawValue::from_string(text).map_err(|error| Cause::Internal(error.to_string()))?;
        Ok(Some(Sample {
            result: Some(result),
            data_freshness: released.freshness.map(Timestamp::from_micros),
            taken_at,
        }))
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
    let sample = || {
        let sample = Sample::taken(released, wording, taken_at)?;
        sample.as_ref().map(text).transpose()
    };
    keep_tested(app, &asset.row, sample).await;
}

/// Gives an endpoint without a preview one: the `sample` of a test, if it has one.
pub async fn keep_tested_endpoint(app: &App, endpoint: &EndpointSnapshot, sample: Option<&str>) {
    keep_tested(app, &endpoint.row, || Ok(sample.map(str::to_owned))).await;
}

async fn keep_tested<K: Kind>(
    app: &App,
    row: &Row<K>,
    sample: impl FnOnce() -> Result<Option<String>, Cause>,
) {
    if row.sample.is_some() {
        return;
    }
    let kept = async {
        let Some(sample) = sample()? else {
            return Ok(());
        };
        let now = app.clock.now();
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

/// What a preview shows of the first `rows` rows of a test, a JSON array: as many of them as are small enough together. `None`: not even one is.
pub(crate) fn first_rows(output: &Output, fields: &[json::Field], rows: usize) -> Option<String> {
    let most = rows.min(PREVIEW_ROWS as usize);
    let written = |rows: usize| {
        let mut out = Vec::new();
        json::write_rows(&mut out, output, fields, 0..rows);
        out
    };
    let fitting = (most.min(1)..=most)
        .map(written)
        .take_while(|rows| rows.len() <= SAMPLE_BYTES_MAX)
        .last()?;
    Some(String::from_utf8_lossy(&fitting).into_owned())
}

#[cfg(test)]
mod tests {
    use souk_sandbox::{Batch, Chunk, Column, ColumnData, ColumnKind, VarLen};

    use super::*;
    use crate::release::Insight;

    fn shown(texts: &[&str]) -> Option<String> {
        let mut data = VarLen {
            offsets: vec![0],
            bytes: Vec::new(),
        };
        for text in texts {
            data.bytes.extend_from_slice(text.as_bytes());
            data.offsets.push(data.bytes.len() as i32);
        }
        let column = Column {
            name: "t".to_owned(),
            kind: ColumnKind::Text,
            nullable: false,
            native: String::new(),
        };
        let chunk = Chunk {
            validity: None,
            data: ColumnData::VarLen(data),
        };
        let batch = Batch {
            rows: texts.len() as u32,
            chunks: vec![chunk],
        };
        let output = Output::new(vec![column].into(), vec![batch], 0);
        first_rows(&output, &json::Field::all(&output), texts.len())
    }

    /// A preview shows three rows, or as many as fit into what is kept; of an empty table none, of rows that are too large nothing at all.
    #[test]
    fn a_preview_shows_as_many_rows_as_fit() {
        assert_eq!(shown(&[]).unwrap(), "[]");
        assert_eq!(shown(&["a"; 2]).unwrap(), r#"[{"t":"a"},{"t":"a"}]"#);
        let three = shown(&["a", "b", "c", "d"]).unwrap();
        assert_eq!(three, r#"[{"t":"a"},{"t":"b"},{"t":"c"}]"#);

        let (part, whole) = ("x".repeat(30 << 10), "y".repeat(SAMPLE_BYTES_MAX));
        let two = shown(&[&part, &part, &part]).unwrap();
        assert_eq!(two, format!(r#"[{{"t":"{part}"}},{{"t":"{part}"}}]"#));
        // The rows are the first ones: none is left out for one behind it.
        assert_eq!(shown(&["a", &whole, "c"]).unwrap(), r#"[{"t":"a"}]"#);
        assert_eq!(shown(&[&whole, "b"]), None);
        let frame = r#"[{"t":""}]"#.len();
        let fitting = &whole[frame..];
        assert_eq!(shown(&[fitting]).unwrap().len(), SAMPLE_BYTES_MAX);
        assert_eq!(shown(&[&whole[frame - 1..]]), None);
    }

    /// What an asset shows is kept whole, or not at all.
    #[test]
    fn a_large_insight_is_no_sample() {
        let wording: Wording = |out, insight| {
            if let Insight::Value(json) = insight {
                out.extend_from_slice(b"\"v\":");
                out.extend_from_slice(json);
            }
        };
        let taken = |bytes: usize| {
            let released = Released {
                insight: Insight::Value(format!("{:?}", "z".repeat(bytes)).into_bytes()),
                freshness: None,
                rows: 1,
            };
            let sample = Sample::taken(&released, wording, Timestamp::from_micros(0)).unwrap();
            sample.and_then(|sample| Some(sample.result?.get().len()))
        };
        let frame = r#""v":"""#.len();
        let fitting = SAMPLE_BYTES_MAX - frame;
        assert_eq!(taken(fitting), Some(SAMPLE_BYTES_MAX + "{}".len()));
        assert_eq!(taken(fitting + 1), None);
        assert_eq!(taken(1 << 20), None);
    }
}
