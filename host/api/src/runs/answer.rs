//! The answers of runs and previews, written into one buffer each: rows and results are JSON already, and copying them into values and out
//! of them again would cost more than all the rest.

use serde::Serialize;
use souk_app::failure::Cause;
use souk_app::fetch::{Next, Told};
use souk_app::preview::Sample;
use souk_app::products::{AssetSnapshot, EndpointSnapshot};
use souk_app::release::{Forecast, Insight, Released};
use souk_app::run::{About, Payer, Purpose};
use souk_domain::time::Timestamp;
use souk_store::executions::Billing;

/// Appends `,"name":`, without the comma where an object begins.
#[inline(always)]
fn called(out: &mut Vec<u8>, name: &'static str) {
    let name = name.as_bytes();
    match out.last() {
        None | Some(b'{') => out.extend_from_slice(&name[1..]),
        Some(_) => out.extend_from_slice(name),
    }
}

/// `"name":`, with a comma before it where one is due. Macros, because each is then a few bytes of a known length: there are thirty in a page.
macro_rules! name {
    ($out:expr, $name:literal) => {
        called($out, concat!(",\"", $name, "\":"))
    };
}

/// A member with its value.
macro_rules! member {
    ($out:expr, $name:literal, $value:expr) => {{
        name!($out, $name);
        value($out, $value);
    }};
}

macro_rules! begin {
    ($out:expr, $name:literal) => {{
        name!($out, $name);
        $out.push(b'{');
    }};
}

fn value(out: &mut Vec<u8>, value: impl Serialize) {
    // Into memory, and of a text, a number, a flag or nothing.
    let _ = serde_json::to_writer(out, &value);
}

/// An insight as the members that name it.
pub fn insight(out: &mut Vec<u8>, insight: &Insight) {
    match insight {
        Insight::Value(json) => {
            name!(out, "answer_value");
            out.extend_from_slice(json);
        }
        Insight::Chart(spec) => {
            begin!(out, "visualization");
            member!(out, "format", "vega-lite");
            member!(out, "version", 5);
            name!(out, "spec");
            out.extend_from_slice(spec);
            out.push(b'}');
        }
        Insight::Forecast(forecast) => prediction(out, forecast),
    }
}

fn prediction(out: &mut Vec<u8>, forecast: &Forecast) {
    let points = forecast.points.iter().map(|point| {
        serde_json::json!({"t": point.at, "value": point.value, "lower": point.lower, "upper": point.upper})
    });
    let points: Vec<_> = points.collect();
    begin!(out, "prediction");
    member!(out, "level", forecast.level);
    member!(out, "model", forecast.model);
    member!(out, "points", points);
    out.push(b'}');
}

/// What an answer or a preview of an asset says beside its result.
fn head_of_asset(out: &mut Vec<u8>, asset: &AssetSnapshot) {
    let details = &asset.row.written.details;
    member!(out, "asset_id", &asset.row.id);
    member!(out, "asset_type", details.asset_type.as_str());
    member!(out, "result_type", details.result_type.as_str());
}

fn tail_of_asset(out: &mut Vec<u8>, asset: &AssetSnapshot, answered_at: Timestamp) {
    member!(out, "unit", &asset.row.written.details.unit);
    member!(out, "timestamp", answered_at);
    out.push(b'}');
}

/// `{"data": {…}, "meta": {…}}`.
pub fn asset(asset: &AssetSnapshot, released: &Released, about: &About<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(640 + released.insight.bytes());
    let (now, settled) = (about.payer.now, about.settled);
    let elapsed_us = (about.elapsed_ms * 1_000) as i64;
    let answered_at = Timestamp::from_micros(now.micros().saturating_add(elapsed_us));
    out.push(b'{');
    begin!(&mut out, "data");
    member!(&mut out, "execution_id", about.execution);
    head_of_asset(&mut out, asset);
    insight(&mut out, &released.insight);
    tail_of_asset(&mut out, asset, answered_at);
    begin!(&mut out, "meta");
    member!(&mut out, "execution_time_ms", about.elapsed_ms);
    member!(&mut out, "credits_used", settled.credits);
    if let Some(reason) = reason(settled.billing) {
        member!(&mut out, "billing_reason", reason);
    }
    // Without a word from the source, the data are as fresh as the question.
    let freshness = released.freshness.map_or(now, Timestamp::from_micros);
    member!(&mut out, "data_freshness", freshness);
    member!(&mut out, "request_id", about.payer.request);
    let allowed = asset.row.written.allow_ai_training;
    member!(&mut out, "ai_training_allowed", allowed);
    if let Some(purchase) = &settled.purchase {
        member!(&mut out, "purchase_id", purchase);
    }
    if let Some(transaction) = &settled.transaction {
        member!(&mut out, "transaction_id", transaction);
    }
    if about.purpose == Purpose::Test {
        member!(&mut out, "test", true);
    }
    out.extend_from_slice(b"}}");
    out
}

/// The stored sample as an answer: free, and the same for everybody.
pub fn asset_preview(asset: &AssetSnapshot, payer: &Payer<'_>) -> Result<Vec<u8>, Cause> {
    let sample = Sample::of(asset)?;
    let mut out = b"{\"data\":{\"execution_id\":null".to_vec();
    head_of_asset(&mut out, asset);
    let members = sample.result.as_ref().map(|result| result.get().trim());
    let members = members
        .and_then(|members| members.strip_prefix('{')?.strip_suffix('}'))
        .unwrap_or("\"answer_value\":null");
    out.push(b',');
    out.extend_from_slice(members.as_bytes());
    tail_of_asset(&mut out, asset, sample.taken_at);
    begin!(&mut out, "meta");
    member!(&mut out, "preview", true);
    member!(&mut out, "credits_used", 0);
    member!(&mut out, "billing_reason", Billing::Preview.as_str());
    member!(&mut out, "execution_time_ms", 0);
    let freshness = sample.data_freshness.unwrap_or(sample.taken_at);
    member!(&mut out, "data_freshness", freshness);
    member!(&mut out, "request_id", payer.request);
    let allowed = asset.row.written.allow_ai_training;
    member!(&mut out, "ai_training_allowed", allowed);
    out.extend_from_slice(b"}}");
    Ok(out)
}

/// What stands before the rows of a page.
pub const PAGE_HEAD: &[u8] = b"{\"data\":{\"response\":{\"data\":";

/// What stands behind them: the rest of the body of section 4.
pub fn page(
    out: &mut Vec<u8>,
    endpoint: &EndpointSnapshot,
    told: &Told,
    next_url: Option<&str>,
    about: &About<'_>,
) {
    let settled = about.settled;
    head_of_service(out, endpoint, about.payer);

    begin!(out, "pagination");
    member!(out, "start", told.start);
    member!(out, "limit", told.limit);
    member!(out, "returned", told.paged.returned);
    member!(out, "has_more", told.paged.has_more);
    member!(out, "next_start", told.paged.next_start);
    let next = told.next.as_ref();
    member!(out, "next_cursor", next.map(|next| &next.cursor));
    member!(out, "next_url", next_url);
    member!(out, "paging", next.map(paging));
    member!(out, "total", ());
    out.push(b'}');

    begin!(out, "billing");
    member!(out, "billable", settled.billing == Billing::Charged);
    member!(out, "credits_used", settled.credits);
    member!(out, "price_credits", price(endpoint));
    member!(out, "balance_credits", settled.balance);
    member!(out, "transaction_id", &settled.transaction);
    member!(out, "reason", reason(settled.billing));
    out.push(b'}');

    tail_of_service(out, endpoint, about.elapsed_ms, about.payer.now);
}

/// The stored rows as an answer: free, and the same for everybody.
pub fn page_preview(endpoint: &EndpointSnapshot, payer: &Payer<'_>) -> Result<Vec<u8>, Cause> {
    let rows = endpoint.row.sample.as_deref().ok_or(Cause::NoPreview)?;
    let mut out = PAGE_HEAD.to_vec();
    out.extend_from_slice(rows.as_bytes());
    head_of_service(&mut out, endpoint, payer);
    begin!(&mut out, "billing");
    member!(&mut out, "billable", false);
    member!(&mut out, "credits_used", 0);
    member!(&mut out, "price_credits", price(endpoint));
    member!(&mut out, "reason", Billing::Preview.as_str());
    out.push(b'}');
    let taken_at = endpoint.row.sampled_at.unwrap_or(Timestamp::from_micros(0));
    tail_of_service(&mut out, endpoint, 0, taken_at);
    Ok(out)
}

/// Ends the response and begins the service.
fn head_of_service(out: &mut Vec<u8>, endpoint: &EndpointSnapshot, payer: &Payer<'_>) {
    out.push(b'}');
    begin!(out, "service");
    member!(out, "endpoint_id", &endpoint.row.id);
    member!(out, "endpoint_slug", &endpoint.row.written.slug);
    member!(out, "company_handle", &endpoint.row.company_handle);
    member!(out, "version", "v1");
    member!(out, "request_id", payer.request);
}

fn tail_of_service(
    out: &mut Vec<u8>,
    endpoint: &EndpointSnapshot,
    elapsed_ms: u64,
    freshness: Timestamp,
) {
    begin!(out, "execution");
    member!(out, "execution_time_ms", elapsed_ms);
    member!(out, "data_freshness", freshness);
    out.push(b'}');
    begin!(out, "license");
    let allowed = endpoint.row.written.allow_ai_training;
    member!(out, "ai_training_allowed", allowed);
    member!(out, "redistribution_allowed", false);
    out.extend_from_slice(b"}}}}");
}

/// How the next page is found.
pub fn paging(next: &Next) -> &'static str {
    match next.by_key {
        true => "keyset",
        false => "offset",
    }
}

pub fn price(endpoint: &EndpointSnapshot) -> i64 {
    let price = endpoint.priced.price.as_ref();
    price.map_or(0, |price| price.credits.get())
}

/// Why a run cost nothing.
pub fn reason(billing: Billing) -> Option<&'static str> {
    match billing {
        Billing::Charged => None,
        Billing::Empty => Some("empty_page"),
        billing => Some(billing.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_app::release::Point;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// Members are separated where they must be, and texts are escaped.
    #[test]
    fn members_make_objects() {
        let text = written(|out| {
            out.push(b'{');
            begin!(out, "a");
            member!(out, "b", "x\"\n");
            member!(out, "c", ());
            out.push(b'}');
            member!(out, "d", Some(1));
            out.push(b'}');
        });
        assert_eq!(text, r#"{"a":{"b":"x\"\n","c":null},"d":1}"#);
    }

    /// What an insight is called says what it is; samples are kept in these words.
    #[test]
    fn insights_have_names() {
        let value = Insight::Value(b"5.0".to_vec());
        assert_eq!(written(|out| insight(out, &value)), r#""answer_value":5.0"#);
        let chart = Insight::Chart(b"{\"mark\":\"bar\"}".to_vec());
        assert_eq!(
            written(|out| insight(out, &chart)),
            r#""visualization":{"format":"vega-lite","version":5,"spec":{"mark":"bar"}}"#
        );
        let point = Point {
            at: "2026-01-31".to_owned(),
            value: 1.5,
            lower: 1.0,
            upper: 2.0,
        };
        let forecast = Insight::Forecast(Forecast {
            model: "ets",
            level: 0.9,
            points: vec![point],
        });
        assert_eq!(
            written(|out| insight(out, &forecast)),
            r#""prediction":{"level":0.9,"model":"ets","points":[{"lower":1.0,"t":"2026-01-31","upper":2.0,"value":1.5}]}"#
        );
    }
}
