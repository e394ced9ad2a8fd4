//! Executing an asset, in five steps.
//!
//! (1) `api` has checked the caller; (2) the asset, its price and its connection come from one
//! snapshot, the parameters are bound and the credits held; (3) the sandbox runs it on a warm
//! session, and no transaction is open; (4) the release policy decides what may leave; (5) the
//! charge is posted durably, or the hold voided, and the answer is complete.
//!
//! The owner's call touches no store at all.

use std::sync::Arc;
use std::time::Instant;

use souk_domain::ids::{CompanyId, ExecutionId};
use souk_domain::parameters::{self, Raw, Value as Bound};
use souk_domain::products::Product;
use souk_domain::time::Timestamp;
use souk_sandbox::{Blame, Call, Fault, FaultKind, Output, Query, Request, Value, json};

use crate::App;
use crate::connections::source::source;
use crate::failure::{Failure, Refusal};
use crate::products::{Action, AssetSnapshot, push_member};
use crate::publish;
use crate::release::{Released, Withheld};
use crate::settle::{self, Charge, Payer, Settled, Subject};

/// Why an asset is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For its result; whoever does not own it pays.
    Result,
    /// By its owner, to see whether it works: also before it is published, and always free.
    Test,
}

/// The answer of an execution, envelope included.
#[derive(Debug)]
pub struct Executed {
    pub body: Vec<u8>,
}

/// Whether `company` may run this product now. An unpublished one stays with those who bought it.
pub async fn admit(app: &App, asset: &AssetSnapshot, company: &CompanyId) -> Result<(), Refusal> {
    if asset.row.status == "archived" {
        return Err(Refusal::NotFound);
    }
    if asset.row.company_id == *company {
        return Ok(());
    }
    let is_offered = asset.is_published()
        || (asset.row.status == "unpublished"
            && settle::has_purchase(app, company, asset.row.id.as_str()).await?);
    match is_offered {
        true if asset.row.is_suspended => Err(Refusal::SellerSuspended),
        true => Ok(()),
        false => Err(Refusal::NotFound),
    }
}

/// Runs an asset for a caller that was admitted. `given` are the parameters as they were sent.
pub async fn execute(
    app: &App,
    asset: &Arc<AssetSnapshot>,
    given: &[(&str, Raw<'_>)],
    payer: &Payer<'_>,
    purpose: Purpose,
) -> Result<Executed, Failure> {
    let owner = asset.row.company_id == *payer.company;
    let refuse = |refusal: Refusal| Failure::before(owner, refusal);
    let bound = parameters::bind(&asset.parameters, given)
        .map_err(|errors| refuse(Refusal::Parameters(errors)))?;
    let execution = ExecutionId::generate_at(payer.now);
    let started = Instant::now();
    let subject = Subject {
        execution: &execution,
        seller: &asset.row.company_id,
        product: Product::Asset(asset.row.id.clone()),
        priced: &asset.priced,
        allow_ai_training: asset.row.written.allow_ai_training,
        timeout: asset.timeout,
    };
    let charge = match purpose {
        Purpose::Test => Charge::test(),
        Purpose::Result => settle::begin(app, payer, &subject).await.map_err(refuse)?,
    };
    let released = match run(app, asset, &bound, payer, &execution, started).await {
        Ok(released) => released,
        Err(refusal) => {
            settle::fail(app, charge, payer, &subject, &refusal, started).await;
            return Err(failure(asset, execution, owner, refusal));
        }
    };
    let elapsed = started.elapsed();
    if purpose == Purpose::Test {
        publish::keep_tested_asset(app, asset, &released, payer.now).await;
    }
    let render = |settled: &Settled| {
        let meta = Meta {
            execution: &execution,
            payer,
            elapsed_ms: elapsed.as_millis() as u64,
            settled,
            purpose,
        };
        write_answer(asset, &released, &meta)
    };
    let (rows, bytes) = (released.rows, released.members.len());
    match settle::finish(app, charge, payer, &subject, rows, bytes, elapsed, render).await {
        Ok(body) => Ok(Executed { body }),
        Err(refusal) => Err(failure(asset, execution.clone(), owner, refusal)),
    }
}

fn failure(
    asset: &AssetSnapshot,
    execution: ExecutionId,
    owner: bool,
    refusal: Refusal,
) -> Failure {
    let seller_api = matches!(asset.action, Action::Call(_));
    Failure {
        execution: Some(execution),
        owner,
        seller_api,
        refusal,
    }
}

/// Steps three and four.
async fn run(
    app: &App,
    asset: &Arc<AssetSnapshot>,
    bound: &[Bound],
    payer: &Payer<'_>,
    execution: &ExecutionId,
    started: Instant,
) -> Result<Released, Refusal> {
    let output = ask(app, asset, bound, payer, execution, started).await?;
    if !asset.policy.is_heavy(&output) {
        return Ok(asset.policy.release(&output)?);
    }
    let (company, policy) = (asset.row.company_id.as_str(), asset.clone());
    let released = app
        .sandbox
        .compute(company, move || policy.policy.release(&output));
    // It may have to wait for its turn.
    let deadline = tokio::time::Instant::from_std(started + asset.timeout);
    let late = |_| {
        let message = "the result was not computed in time";
        Fault::new(Blame::Host, FaultKind::Timeout, message)
    };
    let released = tokio::time::timeout_at(deadline, released)
        .await
        .map_err(late)?;
    Ok(released.ok_or(Withheld::Abandoned)??)
}

async fn ask(
    app: &App,
    asset: &AssetSnapshot,
    bound: &[Bound],
    payer: &Payer<'_>,
    execution: &ExecutionId,
    started: Instant,
) -> Result<Output, Refusal> {
    let source = source(app, &asset.row.company_id, &asset.row.written.connection_id).await?;
    let limits = asset.policy.kind.limits();
    let request = match &asset.action {
        Action::Query { text, bindings } => Request::Query(Query {
            text: text.clone(),
            parameters: bindings
                .iter()
                .filter_map(|index| bound.get(*index))
                .map(value)
                .collect(),
            limits,
        }),
        Action::Call(route) => Request::Call(Call {
            route: route.clone(),
            parameters: object(asset, bound),
            asset_id: asset.row.id.to_string(),
            request_id: payer.request.to_string(),
            execution_id: execution.to_string(),
            limits,
        }),
    };
    let answer = app
        .sandbox
        .run(&source, request, started + asset.timeout)
        .await;
    answer.map_err(|fault| match fault.kind {
        FaultKind::LimitExceeded => Withheld::BadAnswer(format!(
            "the result is larger than a {} may be: {} rows or {} bytes",
            asset.policy.kind.word(),
            limits.rows_max,
            limits.bytes_max
        ))
        .into(),
        _ => Refusal::Fault(fault),
    })
}

/// A typed value as the sandbox binds it.
pub(crate) fn value(bound: &Bound) -> Value {
    match bound {
        Bound::Null => Value::Null,
        Bound::Boolean(value) => Value::Boolean(*value),
        Bound::Integer(value) => Value::Int64(*value),
        Bound::Number(value) => Value::Float64(*value),
        Bound::Text(text) => Value::Text(text.clone()),
        Bound::Date(days) => Value::Date(*days),
        Bound::Timestamp(micros) => Value::Timestamp(*micros),
    }
}

/// The parameters of a seller's function, as a JSON object. One that is null is left out.
fn object(asset: &AssetSnapshot, bound: &[Bound]) -> String {
    let mut members = serde_json::Map::new();
    for (parameter, value) in asset.parameters.iter().zip(bound) {
        let value = match value {
            Bound::Null => continue,
            Bound::Boolean(value) => (*value).into(),
            Bound::Integer(value) => (*value).into(),
            Bound::Number(value) => (*value).into(),
            Bound::Text(text) => text.as_str().into(),
            Bound::Date(_) | Bound::Timestamp(_) => value.to_string().into(),
        };
        members.insert(parameter.name().to_owned(), value);
    }
    serde_json::Value::Object(members).to_string()
}

/// What an answer says about its making.
struct Meta<'a> {
    execution: &'a ExecutionId,
    payer: &'a Payer<'a>,
    elapsed_ms: u64,
    settled: &'a Settled,
    purpose: Purpose,
}

/// `{"data": {…}, "meta": {…}}`, written into one buffer.
fn write_answer(asset: &AssetSnapshot, released: &Released, meta: &Meta<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + released.members.len());
    let answered_at = Timestamp::from_micros(
        meta.payer
            .now
            .micros()
            .saturating_add((meta.elapsed_ms * 1_000) as i64),
    );
    out.extend_from_slice(b"{\"data\":{\"execution_id\":");
    json::write_string(&mut out, meta.execution.as_str().as_bytes());
    out.extend_from_slice(&asset.head);
    out.extend_from_slice(&released.members);
    out.extend_from_slice(&asset.tail);
    push_member(&mut out, "timestamp", &answered_at.to_string());
    out.extend_from_slice(b"},\"meta\":{\"execution_time_ms\":");
    push_number(&mut out, meta.elapsed_ms as i64);
    out.extend_from_slice(b",\"credits_used\":");
    push_number(&mut out, meta.settled.credits);
    if let Some(reason) = meta.settled.reason {
        push_member(&mut out, "billing_reason", reason);
    }
    // Without a word from the source, the data are as fresh as the question.
    let freshness = released
        .freshness
        .map_or(meta.payer.now, Timestamp::from_micros);
    push_member(&mut out, "data_freshness", &freshness.to_string());
    push_member(&mut out, "request_id", meta.payer.request.as_str());
    out.extend_from_slice(b",\"ai_training_allowed\":");
    push_bool(&mut out, asset.row.written.allow_ai_training);
    if let Some(purchase) = &meta.settled.purchase {
        push_member(&mut out, "purchase_id", purchase.as_str());
    }
    if let Some(transaction) = &meta.settled.transaction {
        push_member(&mut out, "transaction_id", transaction.as_str());
    }
    if meta.purpose == Purpose::Test {
        out.extend_from_slice(b",\"test\":true");
    }
    out.extend_from_slice(b"}}");
    out
}

pub(crate) fn push_number(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

pub(crate) fn push_bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// What a preview shows: the result that passed the test at publication, or the first one after a change.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct Sample {
    /// The result's own members, as they were released; absent when the test had only made-up
    /// parameters and found nothing.
    pub result: Option<Box<serde_json::value::RawValue>>,
    pub data_freshness: Option<Timestamp>,
    pub taken_at: Timestamp,
}

/// Runs an asset for its publication, without an answer to anybody.
pub(crate) async fn sample(
    app: &App,
    asset: &Arc<AssetSnapshot>,
    given: &[(&str, Raw<'_>)],
    payer: &Payer<'_>,
) -> Result<Released, Failure> {
    let refuse = |refusal: Refusal| Failure::before(true, refusal);
    let bound = parameters::bind(&asset.parameters, given)
        .map_err(|errors| refuse(Refusal::Parameters(errors)))?;
    let execution = ExecutionId::generate_at(payer.now);
    run(app, asset, &bound, payer, &execution, Instant::now())
        .await
        .map_err(|refusal| failure(asset, execution, true, refusal))
}

/// The stored sample as an answer: free, and the same for everybody.
pub fn preview(asset: &AssetSnapshot, payer: &Payer<'_>) -> Result<Vec<u8>, Refusal> {
    let text = asset.row.sample.as_deref().ok_or(Refusal::NoPreview)?;
    let sample: Sample =
        serde_json::from_str(text).map_err(|error| Refusal::Internal(error.to_string()))?;
    let mut out = b"{\"data\":{\"execution_id\":null".to_vec();
    out.extend_from_slice(&asset.head);
    match &sample.result {
        Some(result) => {
            let members = result.get().trim();
            let members = members
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'))
                .unwrap_or_default();
            out.extend_from_slice(members.as_bytes());
        }
        None => out.extend_from_slice(b"\"answer_value\":null"),
    }
    out.extend_from_slice(&asset.tail);
    push_member(&mut out, "timestamp", &sample.taken_at.to_string());
    out.extend_from_slice(
        b"},\"meta\":{\"preview\":true,\"credits_used\":0,\"billing_reason\":\"preview\",\"execution_time_ms\":0",
    );
    push_member(
        &mut out,
        "data_freshness",
        &sample.data_freshness.unwrap_or(sample.taken_at).to_string(),
    );
    push_member(&mut out, "request_id", payer.request.as_str());
    out.extend_from_slice(b",\"ai_training_allowed\":");
    push_bool(&mut out, asset.row.written.allow_ai_training);
    out.extend_from_slice(b"}}");
    Ok(out)
}
