//! What assets and endpoints have in common for whoever sells them. Their operations are in `assets` and `endpoints`, and thin.

pub mod archive;
pub mod change;
pub mod check;
pub mod labels;
pub mod list;
pub mod price;

use crate::refusals::{CONFLICT, SLUG_TAKEN};
use crate::runs::{Params, refusal};
use crate::{ApiState, Caller, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use souk_app::failure::Failure;
use souk_app::products::{self as app, Sells, Snapshot};
use souk_domain::ids::CompanyId;
use souk_domain::money::Credits;
use souk_domain::products::ProductStatus;
use souk_domain::time::Timestamp;
use souk_store::prices::{self, Price};
use souk_store::products::{self, Kind, Row, Tested, Written};
use souk_store::{AnyConnection, Cached};
use utoipa::ToSchema;

/// A kind of product as clients write and read it.
pub trait Offered: Sells {
    /// What can be written, in one list: a PATCH is laid over it.
    const WRITABLE: &'static [&'static str];
    /// One of them is the source: a new one takes the place of the old one.
    const SOURCES: &'static [&'static str];
    type In: DeserializeOwned + ToSchema + Send;
    type Out: Serialize + Send + 'static;

    fn common(body: &Self::In) -> Common<'_>;

    /// Everything checked that can be checked without running it.
    fn checked(
        body: Self::In,
        api: &ApiState,
        caller: &Caller,
    ) -> impl Future<Output = Result<Written<Self::Details>, Problem>> + Send;

    /// Refuses what the source is known to be unable to do. `before`: the product as it is, if it is there already.
    fn possible(
        api: &ApiState,
        caller: &Caller,
        id: &Self,
        written: &Written<Self::Details>,
        before: Option<&Row<Self>>,
    ) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Tests a product as a change would leave it, as it was tested before its publication, with these parameters if it has any. Nothing is
    /// kept of that.
    fn tested(
        api: &ApiState,
        caller: &Caller,
        before: &Row<Self>,
        written: &Written<Self::Details>,
        params: &Params,
    ) -> impl Future<Output = Result<Tested, Failure>> + Send;

    /// `is_owner`: the reader may see what only its owner may.
    fn out(row: Row<Self>, price: Option<&Price>, is_owner: bool) -> Self::Out;

    /// What is stored of a product, without what is short.
    fn bytes(row: &Row<Self>) -> usize;

    /// Takes out of what is stored what would contradict a patch.
    fn make_room(_stored: &mut Map<String, Value>, _patch: &Map<String, Value>) {}
}

/// What every body may say.
#[derive(Clone, Copy, Default)]
pub struct Common<'a> {
    pub user_id: Option<&'a str>,
    pub slug: Option<&'a str>,
    pub price_credits: Option<i64>,
    /// What a change is tested with.
    pub params: Option<&'a Map<String, Value>>,
}

/// A product of this company that is not archived.
pub async fn find<K: Kind>(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &K,
) -> Result<Row<K>, Problem> {
    products::get(db, company, id)
        .await?
        .ok_or_else(|| not_found(id))
}

/// The same as its owner sees it.
pub async fn show<K: Offered>(
    db: &mut AnyConnection,
    caller: &Caller,
    id: &K,
) -> Result<K::Out, Problem> {
    show_at(db, caller, id, caller.now()).await
}

/// The same, with the price that holds then.
pub async fn show_at<K: Offered>(
    db: &mut AnyConnection,
    caller: &Caller,
    id: &K,
    at: Timestamp,
) -> Result<K::Out, Problem> {
    let row = find(db, caller.company(), id).await?;
    let price = prices::active(db, id.as_ref(), at).await?;
    Ok(K::out(row, price.as_ref(), true))
}

/// The same as it is run.
pub async fn own<K: Sells>(
    api: &ApiState,
    caller: &Caller,
    id: &K,
) -> Result<Cached<Snapshot<K>>, Problem> {
    let product = app::get(api.app(), id, caller.now())
        .await
        .map_err(|error| refusal(K::TYPE.as_str(), id.as_ref())(error.into()))?;
    match product.is_of(caller.company()) {
        true => Ok(product),
        false => Err(not_found(id)),
    }
}

pub fn not_found<K: Kind>(id: &K) -> Problem {
    Problem::not_found(K::TYPE.as_str(), id.as_ref())
}

/// Why a product cannot have this slug. Looked up behind the transaction that found out, in which PostgreSQL answers nothing more.
async fn slug_taken<K: Kind>(
    api: &ApiState,
    caller: &Caller,
    slug: &str,
) -> Result<Problem, Problem> {
    let mut read = api.db().read().await?;
    let holder = products::id_by_slug::<K>(&mut read, caller.company(), slug).await?;
    let status = match holder {
        Some(id) => products::status(&mut read, &id.product()).await?,
        None => None,
    };
    let kind = K::TYPE.as_str();
    let message = match status {
        Some((_, ProductStatus::Archived)) => {
            format!("an archived {kind} has the slug \"{slug}\" and keeps it; choose another")
        }
        _ => format!("the company has an {kind} with the slug \"{slug}\"; choose another"),
    };
    Ok(Problem::of(SLUG_TAKEN, message))
}

fn changed<K: Kind>() -> Problem {
    let kind = K::TYPE.as_str();
    let message =
        format!("the {kind} was changed at the same time; read it again and repeat the change");
    Problem::of(CONFLICT, message)
}

/// A whole number of credits.
pub fn credits(given: Option<i64>) -> Result<Option<Credits>, Problem> {
    let wrong = |error: souk_domain::money::CreditsError| {
        Problem::invalid("price_credits", error.to_string())
    };
    given.map(Credits::new).transpose().map_err(wrong)
}
