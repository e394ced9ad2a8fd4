//! What all operations that run a product have in common: who pays, what a retry gets, and how a
//! failure is told.

pub mod answer;
mod digits;
mod export;
mod failure;
pub mod page;
pub mod shape;
mod unread_pages;

use crate::answer::AnyObject;
use crate::idempotency::{self, Attempt, Keyed, Once};
use crate::refusals::INVALID_PARAMETER;
use crate::{ApiState, Caller, Prepared, Problem, Ran, RawBody};
use digits::{Digits, digits};
pub use failure::{refusal, unpublished};
use http::{HeaderMap, HeaderName};
pub use page::page;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use shape::AssetAnswer;
use souk_app::definition::raw;
use souk_app::failure::{Cause, Failure};
use souk_app::products::AssetSnapshot;
use souk_app::release::Released;
use souk_app::run::{About, Payer, Purpose};
use souk_app::{execute, run};
use souk_domain::fields::FieldError;
use souk_domain::ids::AssetId;
use souk_domain::parameters::{Parameter, Raw};
use souk_domain::spelling::is_near;
use souk_store::Cached;
use souk_store::idempotency::Ticket;
use std::collections::HashMap;
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
    Json(Map<String, Value>, Digits),
    Query(Vec<(String, String)>),
}

impl Params {
    pub fn of_body(raw: &RawBody<ExecuteIn>) -> Result<Params, Problem> {
        let body = raw.json()?;
        Ok(Params::sent(body.params.unwrap_or_default(), &raw.bytes))
    }

    /// The `params` of a body that has none beside them. `own`: which other members the operation has.
    pub fn of_members(
        params: Option<Map<String, Value>>,
        body: &[u8],
        own: &[&str],
        parameters: &[Parameter],
    ) -> Result<Params, Problem> {
        let params = params.unwrap_or_default();
        if params.is_empty() {
            beside_params(body, own, parameters)?;
        }
        Ok(Params::sent(params, body))
    }

    fn sent(params: Map<String, Value>, body: &[u8]) -> Params {
        let digits = digits(&params, body);
        Params::Json(params, digits)
    }

    /// Of a body that was written anew from what was read of another one, so that its numbers are floats already.
    pub fn of_floats(params: Map<String, Value>) -> Params {
        Params::Json(params, Digits::new())
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
            Params::Json(members, digits) => members
                .iter()
                .map(|(name, value)| {
                    let sent = digits.get(name);
                    let given = sent.map_or_else(|| raw(value), |text| Raw::Digits(text));
                    (name.as_str(), given)
                })
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
        max_credits: None,
    }
}

/// Credits that a run, or a page of an export, may cost at most.
pub const MAX_CREDITS: HeaderName = HeaderName::from_static("x-max-credits");

/// What the caller is willing to pay, if it says so.
pub fn max_credits(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let mut values = headers.get_all(MAX_CREDITS).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let most = value.to_str().ok().and_then(|text| text.parse().ok());
    match (most, values.next()) {
        (Some(most @ 0..), None) => Ok(Some(most)),
        _ => Err(Problem::invalid(
            MAX_CREDITS.as_str(),
            "must be one whole number of credits: what this may cost at most",
        )),
    }
}

/// Runs an asset for its result. `asked`: by which name it was asked for.
pub async fn asset<T>(
    api: &ApiState,
    caller: &Caller,
    raw: &RawBody<T>,
    asset: Cached<AssetSnapshot>,
    asked: &str,
    params: Params,
) -> Result<Ran<AssetAnswer>, Problem> {
    let (id, timeout) = (asset.row.id.clone(), asset.timeout);
    let max_credits = max_credits(&raw.parts.headers)?;
    if matches!(&params, Params::Json(members, _) if members.is_empty())
        && let Err(problem) = beside_params(&raw.bytes, &[], &asset.plan.parameters)
    {
        // What it says of parameters is for those who may run the asset.
        let admitted = run::admit(api.app(), &asset.sold(), caller.payer()).await;
        return Err(match admitted {
            Ok(()) => problem,
            Err(cause) => refusal_of(asked, &id)(cause.into()),
        });
    }
    let attempt = once(api, caller, raw, id.as_str(), timeout, |ticket| {
        let (api, caller, id, asked) = (api.clone(), caller.clone(), id.clone(), asked.to_owned());
        async move {
            let told = refusal_of(&asked, &id);
            run::admit(api.app(), &asset.sold(), caller.payer())
                .await
                .map_err(|error| told(error.into()))?;
            let payer = Payer {
                max_credits,
                ..payer(&caller, ticket.as_ref())
            };
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

/// To whom an asset is not shown it has no name but the one that was asked for.
fn refusal_of<'a>(asked: &'a str, id: &'a AssetId) -> impl Fn(Failure) -> Problem + 'a {
    move |failure| {
        let name = match failure.cause {
            Cause::NotFound => asked,
            _ => id.as_str(),
        };
        refusal("asset", name)(failure)
    }
}

/// What a body may say beside the parameters: it repeats the path.
const NO_PARAMETERS: [&str; 3] = ["params", "company_id", "asset_id"];

/// What `params` is called elsewhere, and no slip of the hand makes of it.
const MISNOMERS: [&str; 1] = ["parameters"];

/// Members that nobody knows are ignored, but for those that were meant as parameters: who sends `{"season": 2024}` would pay for the answer of
/// another season. `own` is what else the operation knows.
fn beside_params(body: &[u8], own: &[&str], parameters: &[Parameter]) -> Result<(), Problem> {
    // What is no object was refused before, and an absent body has no members.
    let Ok(members) = serde_json::from_slice::<HashMap<String, IgnoredAny>>(body) else {
        return Ok(());
    };
    let is_known = |name: &str| parameters.iter().any(|known| known.name() == name);
    let is_misnomer = |name: &str| MISNOMERS.contains(&name) || is_near(name, "params");
    let misnamed = members
        .keys()
        .map(String::as_str)
        .filter(|name| !parameters.is_empty() && !is_known(name) && is_misnomer(name));
    let errors: Vec<FieldError> = parameters
        .iter()
        .map(Parameter::name)
        .chain(misnamed)
        .filter(|name| !NO_PARAMETERS.contains(name) && !own.contains(name))
        .filter(|name| members.contains_key(*name))
        .map(|name| {
            // Of a misnomer that is not a parameter's name itself, some parameter serves as an example.
            let known = parameters.iter().find(|known| known.name() == name);
            let example = known.or(parameters.first()).map_or(name, Parameter::name);
            let message =
                format!("parameters are sent in params: {{\"params\": {{\"{example}\": …}}}}");
            FieldError::new(name, "misplaced", message)
        })
        .collect();
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Problem::fields(INVALID_PARAMETER, errors)),
    }
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
    // From now: the body may have been minutes on its way.
    let lapses_at = api.app().clock.now().after(timeout + CLAIM_GRACE);
    let keyed = Keyed::read(&raw.parts, &raw.bytes, Some(product), lapses_at)?;
    let run = |once: Once| run(once.ticket().cloned());
    Box::pin(idempotency::once(api, caller, keyed, run)).await
}

/// A product that this caller may not know of is one that does not exist.
pub fn not_found(error: Cause, resource: &str, id: &str) -> Problem {
    refusal(resource, id)(error.into())
}
