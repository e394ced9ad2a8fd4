use super::shape::{EndpointIn, EndpointOut};
use crate::assets::shape::user;
use crate::refusals::{CONNECTOR_UNAVAILABLE, PATH_BODY_MISMATCH, SLUG_TAKEN, SQL_NOT_READ_ONLY};
use crate::{ApiState, Body, Caller, Created, Operation, Problem};
use axum::extract::State;
use souk_domain::ids::EndpointId;
use souk_domain::roles::{Permission, Role};
use souk_domain::slugs;
use souk_store::{StoreError, endpoints, prices};

/// Names that many endpoints share; after so many the seller should choose.
const SLUG_TRIES: u32 = 100;

pub const OPERATION: Operation =
    Operation::post("create_endpoint", "/companies/{company_id}/endpoints")
        .about("Endpoints", "Create an endpoint")
        .notes("A draft: nothing is run. Only the named fields ever leave the source.")
        .needs(Role::DataEngineer, Permission::Write)
        .refuses(&[
            PATH_BODY_MISMATCH,
            SLUG_TAKEN,
            SQL_NOT_READ_ONLY,
            CONNECTOR_UNAVAILABLE,
        ]);

/// Creates a draft of an endpoint.
pub async fn create_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<EndpointIn>,
) -> Result<Created<EndpointOut>, Problem> {
    caller.agree_company(body.company_id.as_deref())?;
    let credits = body.price()?;
    let slug_given = body.slug.is_some();
    let mut read = api.db().read().await?;
    let user = user(&mut read, &caller, body.user_id.as_deref()).await?;
    drop(read);
    let mut written = body.checked(&api, &caller).await?;

    let id = EndpointId::generate();
    let slug = written.slug.clone();
    for attempt in 1.. {
        let mut is_taken = false;
        let created = api.db().write(async |write| -> Result<_, Problem> {
            let (company, now) = (caller.company(), caller.now());
            let inserted = endpoints::insert(write, &id, company, &user, &written, now).await;
            is_taken = matches!(inserted, Err(StoreError::Conflict));
            inserted?;
            if let Some(credits) = credits {
                super::price::set(write, &caller, id.as_str(), credits).await?;
            }
            Ok(())
        });
        match created.await {
            Ok(()) => break,
            Err(_) if is_taken && !slug_given && attempt < SLUG_TRIES => {
                written.slug = slugs::numbered(&slug, attempt + 1);
            }
            Err(_) if is_taken => return Err(super::slug_taken(&written.slug)),
            Err(error) => return Err(error),
        }
    }
    let mut read = api.db().read().await?;
    let endpoint = super::find(&mut read, caller.company(), &id).await?;
    let price = prices::active(&mut read, id.as_str(), caller.now()).await?;
    Ok(Created {
        location: format!("/companies/{}/endpoints/{id}", caller.company()),
        data: EndpointOut::new(endpoint, price.as_ref()),
    })
}
