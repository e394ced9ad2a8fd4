use super::check_email;
use super::create::handle_taken;
use super::shape::CompanyOut;
use crate::fields::{WEB_ADDRESS_WANTED, is_web_address};
use crate::problem::both;
use crate::refusals::{CONFLICT, SLUG_TAKEN};
use crate::{ApiState, Body, Caller, Data, Line, Operation, Patch, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::emails::EMAIL_CHARS_MAX;
use souk_domain::ids::CompanyId;
use souk_domain::money::CREDITS_MAX;
use souk_domain::reference::industries;
use souk_domain::roles::{Permission, Role};
use souk_domain::slugs::check_handle;
use souk_domain::time::Timestamp;
use souk_store::companies::{self, Company, HANDLE_GRACE_DAYS};
use souk_store::{StoreError, Write, ledger};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::patch("update_company", "/companies/{company_id}")
    .about("Companies", "Change what a company tells about itself")
    .notes(
        "A former `handle` keeps routing to the company for 90 days, ten of them at most (409 `CONFLICT`); 409 `SLUG_TAKEN` when the new one is \
         another company's. When a charge takes the balance below `credits_low_threshold`, `credits.low` is sent to the company's webhooks, \
         once, until the balance has been back above it. A new threshold holds from the next charge on.",
    )
    .needs(Role::Admin, Permission::Write)
    .refuses(&[SLUG_TAKEN, CONFLICT]);

/// Former handles that route to a company: nobody else can have them meanwhile.
const FORMER_HANDLES_MAX: i64 = 10;

#[derive(Deserialize, ToSchema)]
pub struct CompanyPatch {
    /// One line, without control characters.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255)]
    name: Option<Line<1, 255>>,
    /// A DNS label: 1 to 63 characters of a-z, 0-9 and `-`.
    #[schema(
        min_length = 1,
        max_length = 63,
        pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
    )]
    handle: Option<String>,
    /// `null` clears it, here and below.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 1000)]
    description: Patch<Text<0, 1000>>,
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2000, pattern = "^https?://[^ ]+$")]
    website: Patch<Text<1, 2000>>,
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2000, pattern = "^https?://[^ ]+$")]
    logo_url: Patch<Text<1, 2000>>,
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1)]
    industry_id: Patch<i64>,
    /// ISO 3166-1, two letters: `DE`.
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 2, max_length = 2, pattern = "^[A-Za-z]{2}$")]
    country: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 3, max_length = 254, pattern = "^[^@ ]+@[^@ ]+$")]
    contact_email: Patch<Text<3, EMAIL_CHARS_MAX>>,
    /// Whole credits, 100 unless chosen; 0: a balance is never low. `null` goes back to 100.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 100_000_000_000i64)]
    credits_low_threshold: Patch<i64>,
}

/// Changes a company.
pub async fn update_company(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<CompanyPatch>,
) -> Result<Data<CompanyOut>, Problem> {
    let checked = both(low_at(&body), handle(&body));
    let (mut company, low_at) = api
        .db()
        .write(async |write| -> Result<_, Problem> {
            // Its former handles are counted, and all that it tells is read and then written.
            companies::lock(write, caller.company()).await?;
            let mut company = companies::get(write, caller.company())
                .await?
                .ok_or_else(|| Problem::not_found("company", caller.company().as_str()))?;
            let present = company.handle.clone();
            let ((low_at, wanted), ()) = both(checked, apply(body, &mut company))?;
            if let Some(handle) = wanted.filter(|handle| *handle != present) {
                let holder = companies::by_handle(write, &handle, caller.now()).await?;
                if holder.is_some_and(|holder| holder.id != company.id) {
                    return Err(handle_taken(&handle));
                }
                check_room(write, &company.id, &present, &handle, caller.now()).await?;
            }
            match companies::update(write, &company, caller.now()).await {
                // Somebody else took the handle meanwhile.
                Err(StoreError::Conflict) => return Err(handle_taken(&company.handle)),
                other => other?,
            }
            if let Some(chosen) = low_at {
                ledger::set_low_at(write, &company.id, chosen).await?;
            }
            let low_at = ledger::low_at(write, &company.id).await?;
            Ok((company, low_at))
        })
        .await?;
    company.updated_at = caller.now();
    Ok(Data(CompanyOut::of(&company, low_at)))
}

/// One more handle may be given up, if so many are not given up already.
async fn check_room(
    write: &mut Write,
    company: &CompanyId,
    present: &str,
    wanted: &str,
    now: Timestamp,
) -> Result<(), Problem> {
    let retired = companies::retired_handles(write, company, present, wanted, now).await?;
    if retired < FORMER_HANDLES_MAX {
        return Ok(());
    }
    let message = format!(
        "{FORMER_HANDLES_MAX} former handles route to this company, each for {HANDLE_GRACE_DAYS} days: go back to one of them, or wait until one routes no more"
    );
    Err(Problem::of(CONFLICT, message))
}

/// The handle that is wanted.
fn handle(body: &CompanyPatch) -> Result<Option<String>, Problem> {
    let Some(handle) = &body.handle else {
        return Ok(None);
    };
    check_handle(handle).map_err(|error| Problem::invalid("handle", error.to_string()))?;
    Ok(Some(handle.clone()))
}

/// What the threshold is to become: not mentioned, the default, or a number.
fn low_at(body: &CompanyPatch) -> Result<Option<Option<i64>>, Problem> {
    match body.credits_low_threshold {
        Patch::Absent => Ok(None),
        Patch::Null => Ok(Some(None)),
        Patch::Value(credits) if (0..=CREDITS_MAX).contains(&credits) => Ok(Some(Some(credits))),
        Patch::Value(_) => Err(Problem::invalid(
            "credits_low_threshold",
            format!("must be 0 to {CREDITS_MAX} credits"),
        )),
    }
}

fn apply(body: CompanyPatch, company: &mut Company) -> Result<(), Problem> {
    if let Some(name) = body.name {
        company.name = name.into_string();
    }
    if let Some(handle) = body.handle {
        company.handle = handle;
    }
    let profile = &mut company.profile;
    let read = [
        replace(&mut company.description, body.description, |text| {
            Ok(text.into_string())
        }),
        replace(&mut profile.website, body.website, |url| {
            web_address("website", url.into_string())
        }),
        replace(&mut profile.logo_url, body.logo_url, |url| {
            web_address("logo_url", url.into_string())
        }),
        replace(&mut profile.industry_id, body.industry_id, industry),
        replace(&mut profile.country, body.country, country),
        replace(&mut profile.contact_email, body.contact_email, |email| {
            check_email(&email).map(|()| email.into_string())
        }),
    ];
    let all = read.into_iter().reduce(|all, one| both(all, one).map(drop));
    all.unwrap_or(Ok(()))
}

fn replace<T, U>(
    member: &mut Option<U>,
    patch: Patch<T>,
    read: impl FnOnce(T) -> Result<U, Problem>,
) -> Result<(), Problem> {
    match patch {
        Patch::Absent => {}
        Patch::Null => *member = None,
        Patch::Value(value) => *member = Some(read(value)?),
    }
    Ok(())
}

fn web_address(field: &str, url: String) -> Result<String, Problem> {
    match is_web_address(&url) {
        true => Ok(url),
        false => Err(Problem::invalid(field, WEB_ADDRESS_WANTED)),
    }
}

fn industry(id: i64) -> Result<i64, Problem> {
    match industries::industry(id) {
        Some(_) => Ok(id),
        None => Err(Problem::invalid(
            "industry_id",
            "must be the id of an industry: GET /industries lists them",
        )),
    }
}

fn country(code: String) -> Result<String, Problem> {
    match code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        true => Ok(code.to_ascii_uppercase()),
        false => Err(Problem::invalid(
            "country",
            "must be two letters, as in ISO 3166-1: DE",
        )),
    }
}
