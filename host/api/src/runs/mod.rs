//! What all operations that run a product have in common: who pays, what a retry gets, and how a
//! failure is told.

pub mod answer;
mod export;
mod failure;
pub mod page;
pub mod shape;
mod unread_pages;

use crate::answer::AnyObject;
use crate::idempotency::{self, Attempt, Keyed, Once};
use crate::{ApiState, Caller, Prepared, Problem, Ran, RawBody};
pub use failure::{refusal, unpublished};
pub use page::page;
use serde::Deserialize;
use serde_json::{Map, Value};
use shape::AssetAnswer;
use souk_app::definition::raw;
use souk_app::failure::{Cause, Failure};
use souk_app::products::AssetSnapshot;
use souk_app::release::Released;
use souk_app::run::{About, Payer, Purpose};
use souk_app::{execute, run};
use souk_domain::parameters::Raw;
use souk_store::Cached;
use souk_store::idempotency::Ticket;
use std::time::Duration;
use utoipa::ToSchema;

/// A claim outlives its execution by this, as a hold does: long enough to post the charge, and short
/// enough that a retry is soon served when the host died in between.
const CLAIM_GRACE: Duration = Duration::from_secs(10);

/// The body of an execution; absent, empty and `{}` are the same.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct ExecuteIn {
    /// The asset's parameters by name.
    #[schema(value_type = Option<AnyObject>)]
    #[serde(default)]
    pub params: Option<Map<String, Value>>,
}

/// The parameters of an execution as they were sent.
#[derive(Clone, Debug)]
pub enum Params {
    Json(Map<String, Value>),
    Query(Vec<(String, String)>),
}

impl Params {
    pub fn of_body(raw: &RawBody<ExecuteIn>) -> Result<Params, Problem> {
        let body = raw.json()?;
        Ok(Params::Json(body.params.unwrap_or_default()))
    }

    /// `params.name=value`, or `name=value` for short. A name that the asset does not know is refused
    /// when the parameters are bound.
    pub fn of_query(rest: Vec<(String, String)>) -> Params {
        let name = |given: String| match given.strip_prefix("params.") {
            Some(name) => name.to_owned(),
            None => given,
        };
        let rest = rest.into_iter();
        Params::Query(rest.map(|(given, value)| (name(given), value)).collect())
    }

    pub fn raw(&self) -> Vec<(&str, Raw<'_>)> {
        match self {
            Params::Json(members) => members
                .iter()
                .map(|(name, value)| (name.as_str(), raw(value)))
                .collect(),
            Params::Query(pairs) => pairs
                .iter()
                .map(|(name, value)| (name.as_str(), Raw::Query(value)))
                .collect(),
        }
    }
}

/// Who pays for what `caller` runs.
pub fn payer<'a>(caller: &'a Caller, ticket: Option<&'a Ticket>) -> Payer<'a> {
    Payer {
        company: caller.payer(),
        actor: caller.actor(),
        request: caller.request_id(),
        now: caller.now(),
        ticket,
        readers: Some(caller),
    }
}

/// Runs an asset for its result.
pub async fn asset<T>(
    api: &ApiState,
    caller: &Caller,
    raw: &RawBody<T>,
    asset: Cached<AssetSnapshot>,
    params: Params,
) -> Result<Ran<AssetAnswer>, Problem> {
    let (id, timeout) = (asset.row.id.clone(), asset.timeout);
    let attempt = once(api, caller, raw, id.as_str(), timeout, |ticket| {
        let (api, caller, id) = (api.clone(), caller.clone(), id.clone());
        async move {
            let told = refusal("asset", id.as_str());
            run::admit(api.app(), &asset.sold(), caller.payer())
                .await
                .map_err(|error| told(error.into()))?;
            let payer = payer(&caller, ticket.as_ref());
            answer_of(&api, &asset, &params, &payer, Purpose::Result)
                .await
                .map_err(told)
        }
    });
    Ok(match attempt.await? {
        Attempt::Now(body) => Ran::Now(Prepared::new(body)),
        Attempt::Before(response) => Ran::Before(response),
    })
}

/// What a run of an asset answers.
pub async fn answer_of(
    api: &ApiState,
    asset: &Cached<AssetSnapshot>,
    params: &Params,
    payer: &Payer<'_>,
    purpose: Purpose,
) -> Result<Vec<u8>, Failure> {
    let render = |released: &Released, about: &About<'_>| answer::asset(asset, released, about);
    let (given, wording) = (params.raw(), answer::insight);
    execute::execute(api.app(), asset, &given, payer, purpose, wording, render).await
}

/// Runs a billed request for `product` that ends within `timeout`, at most once per `Idempotency-Key`.
async fn once<T, R, F>(
    api: &ApiState,
    caller: &Caller,
    raw: &RawBody<T>,
    product: &str,
    timeout: Duration,
    run: impl FnOnce(Option<Ticket>) -> F,
) -> Result<Attempt<R>, Problem>
where
    R: Send + 'static,
    F: Future<Output = Result<R, Problem>> + Send + 'static,
{
    // Nearly all requests are this one: what a key needs is boxed, because a future is copied as a whole from call to call.
    if !Keyed::is_asked(&raw.parts.headers) {
        return run(None).await.map(Attempt::Now);
    }
    let lapses_at = caller.now().after(timeout + CLAIM_GRACE);
    let keyed = Keyed::read(&raw.parts, &raw.bytes, Some(product), lapses_at)?;
    let run = |once: Once| run(once.ticket().cloned());
    Box::pin(idempotency::once(api, caller, keyed, run)).await
}

/// A product that this caller may not know of is one that does not exist.
pub fn not_found(error: Cause, resource: &str, id: &str) -> Problem {
    refusal(resource, id)(error.into())
}
