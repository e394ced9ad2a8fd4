use crate::money::Usd;
use crate::money::usd;
use crate::products::find;
use crate::query::{choices, parameters};
use crate::words;
use crate::{ApiState, Caller, Data, Operation, OptionalBody, Path, Problem, Query};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use souk_domain::estimates::{Comparable, Estimate, FACTORS, Target, estimate};
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::money::{CENTS_PER_CREDIT, UsdCents};
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::marketplace;
use souk_store::search::comparables::{self, Candidate};
use utoipa::ToSchema;

const NOTES: &str = "Estimated from the prices of comparable assets: on sale by other companies in good standing, of the same category or sport, or \
     with a word of name or tags in common (of twenty words: the name's before the others, longer ones before shorter ones); of these the 200 that \
     are run most. Each counts by its likeness (same category 3, same sport 3, \
     shared words up to 4, same result type 1, of 11) times 1 + ln(1 + sales), sales being the credits of 30 dates (`revenue`, the default: \
     price times successful executions by others) or those executions (`volume`). The estimate is the price in the middle of that weight, \
     the interval reaches from a fifth to four fifths of it. `confidence` is c / (c + 3) / (1 + (high - low) / estimate), c being how many \
     comparables of equal weight would count as much. Without a comparable there is no estimate: `null`.";

pub const OPERATION: Operation = Operation::post(
    "predict_price",
    "/companies/{company_id}/assets/{asset_id}/predicted-price",
)
.about("Prices", "Estimate what an own asset might cost")
.notes(NOTES)
.needs(Role::DataScientist, Permission::Read);

pub const GET_OPERATION: Operation = Operation::get(
    "predict_price_by_query",
    "/companies/{company_id}/assets/{asset_id}/predicted-price",
)
.about(
    "Prices",
    "Estimate what an own asset might cost, with the target in the query",
)
.notes(NOTES)
.needs(Role::DataScientist, Permission::Read);

/// Of the method: another one gives other estimates of the same market.
const MODEL: &str = "weighted-median-1";
/// Comparables that are named; all that were used count.
const NAMED_MAX: usize = 10;

choices! {
    impl Target {
        Revenue = "revenue",
        Volume = "volume",
    }
}

parameters! {
    pub struct TargetQuery {
        /// What the estimate is to serve.
        target: Target = Target::Revenue,
    }
}

#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct TargetIn {
    /// Default `revenue`.
    #[schema(value_type = Option<words::PriceTarget>)]
    target: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = PredictedPrice)]
pub struct PredictedOut {
    #[schema(value_type = String)]
    asset_id: AssetId,
    #[schema(value_type = words::PriceTarget)]
    target: &'static str,
    /// `null`: nothing on sale is comparable.
    #[schema(minimum = 0)]
    predicted_price_credits: Option<i64>,
    #[schema(value_type = Option<Usd>)]
    predicted_price_usd: Option<Number>,
    #[schema(minimum = 0)]
    low_credits: Option<i64>,
    #[schema(minimum = 0)]
    high_credits: Option<i64>,
    /// From 0 to 1, two decimals.
    #[schema(minimum = 0, maximum = 1)]
    confidence: f64,
    /// All that the estimate was made from.
    comparables_used: usize,
    /// Those that count most, at most ten.
    comparables: Vec<ComparableOut>,
    /// What the likeness of the comparables rests on; 1 together, four decimals each.
    factors: Vec<FactorOut>,
    model_version: &'static str,
    #[schema(value_type = String, format = DateTime)]
    generated_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ComparableAsset)]
pub struct ComparableOut {
    asset_id: String,
    name: String,
    #[schema(minimum = 0)]
    price_credits: i64,
    /// Successful, by others than its seller, in 30 UTC dates.
    #[schema(minimum = 0)]
    executions_30d: i64,
    /// From 0 to 1, four decimals.
    #[schema(minimum = 0, maximum = 1)]
    similarity: f64,
    /// Its share of the weight, four decimals.
    #[schema(minimum = 0, maximum = 1)]
    weight: f64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = PriceFactor)]
pub struct FactorOut {
    #[schema(value_type = words::PriceFactorName)]
    name: &'static str,
    #[schema(minimum = 0, maximum = 1)]
    weight: f64,
}

/// Estimates what an own asset might cost.
pub async fn predict_price(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    OptionalBody(body): OptionalBody<TargetIn>,
) -> Result<Data<PredictedOut>, Problem> {
    let target = match body.target.as_deref() {
        None | Some("revenue") => Target::Revenue,
        Some("volume") => Target::Volume,
        Some(_) => return Err(Problem::invalid("target", "must be revenue or volume")),
    };
    predict(&api, &caller, id, target).await
}

/// The same, with the target in the query.
pub async fn predict_price_by_query(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    Query(query): Query<TargetQuery>,
) -> Result<Data<PredictedOut>, Problem> {
    predict(&api, &caller, id, query.target).await
}

async fn predict(
    api: &ApiState,
    caller: &Caller,
    id: AssetId,
    target: Target,
) -> Result<Data<PredictedOut>, Problem> {
    let (company, now) = (caller.company(), caller.now());
    let mut read = api.db().snapshot().await?;
    find(&mut read, company, &id).await?;
    let traits = comparables::traits(&mut read, &id).await?;
    let candidates = comparables::candidates(&mut read, company, &id, now).await?;
    let ids = candidates.iter().map(|candidate| candidate.id.as_str());
    let sales = marketplace::stats(&mut read, ids, now).await?;
    drop(read);
    let compared: Vec<Comparable> = candidates
        .iter()
        .map(|candidate| Comparable {
            traits: candidate.traits.clone(),
            price_credits: candidate.price_credits,
            executions: sales.get(&candidate.id).map_or(0, |sales| sales.succeeded),
        })
        .collect();
    let estimated = estimate(&traits, &compared, target);
    let estimated = estimated.as_ref();
    let price = estimated.map(|estimated| estimated.price_credits);
    let shares = estimated.map_or([0.0; 4], |estimated| estimated.factors);
    let factors = FACTORS
        .iter()
        .zip(shares)
        .map(|((name, _), share)| FactorOut {
            name,
            weight: rounded(share, 4),
        });
    Ok(Data(PredictedOut {
        asset_id: id,
        target: match target {
            Target::Revenue => "revenue",
            Target::Volume => "volume",
        },
        predicted_price_credits: price,
        predicted_price_usd: price.map(|price| usd(UsdCents::new(price * CENTS_PER_CREDIT))),
        low_credits: estimated.map(|estimated| estimated.low_credits),
        high_credits: estimated.map(|estimated| estimated.high_credits),
        confidence: estimated.map_or(0.0, |estimated| rounded(estimated.confidence, 2)),
        comparables_used: estimated.map_or(0, |estimated| {
            estimated
                .shares
                .iter()
                .filter(|share| **share > 0.0)
                .count()
        }),
        comparables: estimated.map_or(Vec::new(), |estimated| {
            named(estimated, &candidates, &compared)
        }),
        factors: factors.collect(),
        model_version: MODEL,
        generated_at: now,
    }))
}

/// Those that count most.
fn named(
    estimated: &Estimate,
    candidates: &[Candidate],
    compared: &[Comparable],
) -> Vec<ComparableOut> {
    let counted = estimated.shares.iter().zip(&estimated.likeness);
    let mut named: Vec<ComparableOut> = counted
        .zip(candidates.iter().zip(compared))
        .filter(|((share, _), _)| **share > 0.0)
        .map(|((share, likeness), (candidate, compared))| ComparableOut {
            asset_id: candidate.id.clone(),
            name: candidate.name.clone(),
            price_credits: candidate.price_credits,
            executions_30d: compared.executions,
            similarity: rounded(*likeness, 4),
            weight: rounded(*share, 4),
        })
        .collect();
    named.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    named.truncate(NAMED_MAX);
    named
}

fn rounded(number: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (number * scale).round() / scale
}
