//! The order of checks, in one place: (0) body size, (a) key present, (b) well-formed, (c) known, active and not expired,
//! (d) kind, company, role and permission, (e) limits. Then the query string; everything later is the handler's.
//!
//! The gate never reads a body and never looks a path up in the store, except for platform staff in a foreign company.

use crate::caller::{Caller, Principal};
use crate::finish::Call;
use crate::limiter::{InFlight, Limits};
use crate::operation::{Access, CompanyRule};
use crate::problem::Problem;
use crate::query::Query;
use crate::routes::{Mounted, path_company};
use crate::{ApiState, HEADER_KEY};
use axum::RequestExt;
use axum::extract::{RawPathParams, Request};
use http::{HeaderMap, header};
use souk_domain::ids::CompanyId;
use souk_domain::keys::{KeyDigest, KeyType, check_format};
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use std::sync::Arc;

/// What a call holds until its answer is ready.
pub struct Passed {
    pub in_flight: Option<InFlight>,
}

/// Lets a request pass to its handler, with its [`Caller`] and [`Query`] in the extensions.
pub async fn pass(
    state: &ApiState,
    mounted: &Arc<Mounted>,
    request: &mut Request,
    call: &mut Call,
) -> Result<Passed, Problem> {
    let operation = &mounted.operation;
    call.operation = Some(mounted.clone());
    let size = check_size(operation.body_bytes_max, request.headers());
    let (role, permission) = match operation.access {
        Access::Public => {
            size?;
            read_query(mounted, request)?;
            return Ok(Passed { in_flight: None });
        }
        Access::Key { role, permission } => (role, permission),
        Access::Data => (Role::Analyst, Permission::Read),
    };
    if let Err(problem) = size {
        return Err(call.spend_address(state).err().unwrap_or(problem));
    }
    let principal = match authenticate(state, request.headers(), call.now).await {
        Ok(principal) => principal,
        Err(Refused::Key(problem)) => {
            return Err(call.spend_address(state).err().unwrap_or(problem));
        }
        Err(Refused::Store(problem)) => return Err(problem),
    };
    let mut limits = Limits {
        key: principal.rate_limit(),
        operation: mounted.bucket.zip(operation.hourly),
    };
    if operation.runs_connector {
        limits.key = state.limiter().under_load(limits.key);
    }
    call.recognise(principal.clone(), limits);

    if principal.key_type() == KeyType::Endpoint && operation.access != Access::Data {
        return Err(Problem::forbidden(
            "ENDPOINT_KEY_NOT_ALLOWED",
            "an endpoint key only reads its endpoint through /endpoints/v1/; use an analytics key here",
        ));
    }
    if principal.is_suspended() {
        return Err(Problem::forbidden(
            "COMPANY_SUSPENDED",
            "this company is suspended; ask the platform's staff",
        ));
    }
    let foreign = check_company(mounted, &principal, request.uri().path())?;
    check_grant(&principal, role, permission)?;
    let in_flight = match operation.runs_connector {
        true => Some(
            state
                .limiter()
                .enter(principal.buckets())
                .ok_or_else(|| Problem::busy(1))?,
        ),
        false => None,
    };
    call.spend(limits)?;
    if let Some(limit) = operation.hourly_each {
        // As the handler will read it: one thing must not have two spellings.
        let params: RawPathParams = request.extract_parts().await.map_err(Problem::internal)?;
        for (_, thing) in &params {
            call.spend_each(thing, limit)?;
        }
    }

    if let Some(company) = &foreign {
        check_exists(state, company).await?;
    }
    request
        .extensions_mut()
        .insert(Caller::new(principal, foreign, mounted.clone(), call));
    read_query(mounted, request)?;
    Ok(Passed { in_flight })
}

/// A request that no operation takes still shows whose limits it counted against.
pub async fn pass_unrouted(
    state: &ApiState,
    headers: &HeaderMap,
    call: &mut Call,
) -> Result<(), Problem> {
    match authenticate(state, headers, call.now).await {
        Ok(principal) => {
            let limits = Limits {
                key: principal.rate_limit(),
                operation: None,
            };
            call.recognise(principal, limits);
            call.spend(limits)
        }
        Err(Refused::Key(_)) => call.spend_address(state),
        Err(Refused::Store(_)) => Ok(()),
    }
}

enum Refused {
    Key(Problem),
    Store(Problem),
}

/// (a) to (c).
async fn authenticate(
    state: &ApiState,
    headers: &HeaderMap,
    now: Timestamp,
) -> Result<Arc<Principal>, Refused> {
    let mut sent = headers.get_all(HEADER_KEY).iter();
    let text = match (sent.next(), sent.next()) {
        (Some(one), None) if !one.is_empty() => one.to_str().ok(),
        (Some(_), Some(_)) => None,
        _ => return Err(Refused::Key(Problem::missing_key())),
    };
    let malformed = || {
        Refused::Key(Problem::invalid_key(
            "this is not an API key; check that it was copied completely",
            None,
            None,
        ))
    };
    let text = text.ok_or_else(malformed)?;
    check_format(text).map_err(|_| malformed())?;
    let principal = state
        .principal(KeyDigest::of(text), now)
        .await
        .map_err(Refused::Store)?;
    let principal = principal.ok_or_else(|| {
        Refused::Key(Problem::invalid_key(
            "this API key is not known here",
            None,
            None,
        ))
    })?;
    match principal.refusal(now) {
        Some(problem) => Err(Refused::Key(problem)),
        None => Ok(principal),
    }
}

/// (d), the company: by comparison only, so that companies that exist and those that do not answer alike.
/// Answers the foreign company that platform staff act in.
fn check_company(
    mounted: &Mounted,
    principal: &Principal,
    path: &str,
) -> Result<Option<CompanyId>, Problem> {
    if mounted.operation.company == CompanyRule::Unchecked {
        return Ok(None);
    }
    let denied = || {
        Problem::forbidden(
            "COMPANY_ACCESS_DENIED",
            "this key belongs to another company; use your own company_id in the path",
        )
    };
    let segment = path_company(&mounted.operation, path).ok_or_else(denied)?;
    if segment == principal.company().as_str() {
        return Ok(None);
    }
    match principal.role() {
        Role::SuperAdmin => CompanyId::parse(segment)
            .map(Some)
            .map_err(|_| Problem::not_found("company", segment)),
        _ => Err(denied()),
    }
}

/// (d), role and permission.
fn check_grant(principal: &Principal, role: Role, permission: Permission) -> Result<(), Problem> {
    if principal.role() < role {
        return Err(Problem::forbidden(
            "INSUFFICIENT_ROLE",
            format!("this needs a key with role {role} or higher"),
        )
        .detail("required_role", role.level())
        .detail("role", principal.role().level()));
    }
    if !principal.permissions().has(permission) {
        return Err(Problem::forbidden(
            "INSUFFICIENT_PERMISSIONS",
            format!(
                "this needs a key with the permission {}",
                permission.as_str()
            ),
        )
        .detail("required_permission", permission.as_str()));
    }
    Ok(())
}

async fn check_exists(state: &ApiState, company: &CompanyId) -> Result<(), Problem> {
    let mut read = state.db().read().await?;
    match souk_store::companies::get(&mut read, company).await? {
        Some(_) => Ok(()),
        None => Err(Problem::not_found("company", company.as_str())),
    }
}

/// (0): a body that says itself that it is too large is not waited for.
fn check_size(limit: Option<u64>, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(limit) = limit else { return Ok(()) };
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match length {
        Some(length) if length > limit => Err(Problem::too_large(limit)),
        _ => Ok(()),
    }
}

fn read_query(mounted: &Mounted, request: &mut Request) -> Result<(), Problem> {
    let Some(text) = request.uri().query().filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    let query = Query::read(text, mounted.operation.query, mounted.operation.open_query)?;
    request.extensions_mut().insert(query);
    Ok(())
}
