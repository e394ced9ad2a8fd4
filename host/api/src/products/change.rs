//! Creating, changing and unpublishing.

use super::{Offered, changed, check, credits, find, price, show, show_at, slug_taken};
use crate::refusals::{CONFLICT, SLUG_TAKEN};
use crate::runs::{Params, unpublished};
use crate::{ApiState, Caller, Created, Data, Problem, json};
use serde_json::{Map, Value};
use souk_app::preview::sample_holds;
use souk_app::publish::{asks_more, later};
use souk_domain::money::Credits;
use souk_domain::products::ProductStatus;
use souk_domain::slugs;
use souk_store::StoreError;
use souk_store::products::{self, Kept, Row, Tested, Written};

/// Names that many products share; after so many the seller should choose.
const SLUG_TRIES: u32 = 100;

/// Products of a company. What is kept of each, a megabyte or two at most, is on the disk that the ledger is on.
const PRODUCTS_MAX: i64 = 5_000;

/// Creates the draft `id`.
pub async fn create<K: Offered>(
    api: &ApiState,
    caller: &Caller,
    id: K,
    body: K::In,
) -> Result<Created<K::Out>, Problem> {
    let common = K::common(&body);
    let credits = credits(common.price_credits)?;
    let slug_given = common.slug.is_some();
    let mut read = api.db().read().await?;
    let user = check::user(&mut read, caller, common.user_id).await?;
    drop(read);
    let mut written = K::checked(body, api, caller).await?;
    K::possible(api, caller, &id, &written, None).await?;

    let slug = written.slug.clone();
    let mut attempt = 1;
    let data = loop {
        let mut is_taken = false;
        let created = api.db().write(async |write| -> Result<_, Problem> {
            let (company, now) = (caller.company(), caller.now());
            if products::count(write, company).await? >= PRODUCTS_MAX {
                let message = format!("a company has at most {PRODUCTS_MAX} products, archived ones included: change one that is not sold");
                return Err(Problem::of(CONFLICT, message));
            }
            check::keep_connection(write, caller, &written.connection_id).await?;
            let inserted = products::insert(write, &id, company, &user, &written, now).await;
            is_taken = matches!(inserted, Err(StoreError::Conflict));
            if is_taken {
                return Err(Problem::of(SLUG_TAKEN, SLUG_TAKEN.message));
            }
            inserted?;
            if let Some(credits) = credits {
                price::set(write, caller, id.as_ref(), credits, now).await?;
            }
            // Not behind the commit: whoever is told that this has failed makes another one.
            show(write, caller, &id).await
        });
        match created.await {
            Ok(data) => break data,
            Err(_) if is_taken && !slug_given && attempt < SLUG_TRIES => {
                attempt += 1;
                written.slug = slugs::numbered(&slug, attempt);
            }
            Err(_) if is_taken => return Err(slug_taken::<K>(api, caller, &written.slug).await?),
            Err(error) => return Err(error),
        }
    };
    let kind = K::TYPE.as_str();
    Ok(Created {
        location: format!("/companies/{}/{kind}s/{id}", caller.company()),
        data,
    })
}

/// Lays a patch over a product and checks the whole.
pub async fn update<K: Offered>(
    api: &ApiState,
    caller: &Caller,
    id: &K,
    patch: &Map<String, Value>,
) -> Result<Data<K::Out>, Problem> {
    let mut read = api.db().read().await?;
    let before = find(&mut read, caller.company(), id).await?;
    drop(read);
    let merged = serde_json::to_vec(&patched(&before, patch)?).map_err(Problem::internal)?;
    let body: K::In = json::parse(&merged)?;
    let common = K::common(&body);
    let credits = credits(common.price_credits)?;
    let params = Params::of_floats(common.params.cloned().unwrap_or_default());
    let written = K::checked(body, api, caller).await?;
    if before.status == ProductStatus::Published && written.slug != before.written.slug {
        let message = format!(
            "the slug of a published {} cannot be changed",
            K::TYPE.as_str()
        );
        return Err(Problem::state(before.status.as_str(), message));
    }
    K::possible(api, caller, id, &written, Some(&before)).await?;
    let is_on_market = before.status == ProductStatus::Published;
    let tested = match is_on_market && asks_more::<K>(&before.written, &written) {
        true => Some(test(api, caller, &before, &written, credits, &params).await?),
        false => None,
    };
    let learned = match &tested {
        Some(tested) => tested.learned.clone(),
        None => K::still_learned(&before, &written),
    };
    let kept = Kept {
        sample: sample_holds::<K>(&before.written, &written),
        learned: learned.as_deref(),
    };
    let sample = tested.as_ref().and_then(|tested| tested.sample.as_deref());

    // It holds from now: while a test ran, what was paid was the price before, and what was served the definition before.
    let mut is_taken = false;
    let saved = api
        .db()
        .write(async |write| -> Result<Data<K::Out>, Problem> {
            let (company, read_at) = (caller.company(), before.updated_at);
            let now = api.app().clock.now();
            let updated_at = later(read_at, now);
            // The one that it has stays because of it.
            if written.connection_id != before.written.connection_id {
                check::keep_connection(write, caller, &written.connection_id).await?;
            }
            let updated = products::update(write, company, id, read_at, &written, kept, updated_at);
            match updated.await {
                Ok(true) => {}
                Ok(false) => return Err(changed::<K>()),
                Err(StoreError::Conflict) => {
                    is_taken = true;
                    return Err(Problem::of(SLUG_TAKEN, SLUG_TAKEN.message));
                }
                Err(error) => return Err(error.into()),
            }
            if let Some(sample) = sample {
                products::keep_sample(write, id, updated_at, sample, now).await?;
            }
            if let Some(credits) = credits {
                price::set(write, caller, id.as_ref(), credits, now).await?;
            }
            show_at(write, caller, id, now).await.map(Data)
        });
    match saved.await {
        Err(_) if is_taken => Err(slug_taken::<K>(api, caller, &written.slug).await?),
        saved => saved,
    }
}

/// Tests what a change would leave of a product on the market, and refuses it as a publication would. Buyers are served what was, until it is saved.
async fn test<K: Offered>(
    api: &ApiState,
    caller: &Caller,
    before: &Row<K>,
    written: &Written<K::Details>,
    credits: Option<Credits>,
    params: &Params,
) -> Result<Tested, Problem> {
    if let Some(credits) = credits {
        let mut read = api.db().read().await?;
        price::check(&mut read, caller, before.id.as_ref(), credits).await?;
    }
    let told = unpublished(K::TYPE.as_str(), before.id.as_ref(), before.status);
    // Boxed: most changes ask no source.
    let tested = Box::pin(K::tested(api, caller, before, written, params));
    tested.await.map_err(told)
}

/// What is stored of a product, as the body that would write it, with a patch laid over it.
fn patched<K: Offered>(
    row: &Row<K>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, Problem> {
    let out = K::out(row.clone(), None, true);
    let Value::Object(mut members) = serde_json::to_value(&out).map_err(Problem::internal)? else {
        return Err(Problem::internal("a product is no JSON object"));
    };
    members.retain(|name, _| K::WRITABLE.contains(&name.as_str()));
    let is_given = |source: &&str| patch.get(*source).is_some_and(|value| !value.is_null());
    if K::SOURCES.iter().any(is_given) {
        members.retain(|name, _| !K::SOURCES.contains(&name.as_str()));
    }
    K::make_room(&mut members, patch);
    members.extend(patch.clone());
    Ok(members)
}

/// Hides a product from new buyers.
pub async fn unpublish<K: Offered>(
    api: &ApiState,
    caller: &Caller,
    id: &K,
) -> Result<Data<K::Out>, Problem> {
    let to = ProductStatus::Unpublished;
    api.db()
        .write(async |write| {
            let before = find(write, caller.company(), id).await?;
            match before.status {
                ProductStatus::Published => {
                    let now = later(before.updated_at, caller.now());
                    products::set_status(write, caller.company(), id, to, now).await?;
                }
                ProductStatus::Unpublished => {}
                status => {
                    let kind = K::TYPE.as_str();
                    let message = format!("only a published {kind} can be unpublished");
                    return Err(Problem::state(status.as_str(), message));
                }
            }
            show(write, caller, id).await.map(Data)
        })
        .await
}
