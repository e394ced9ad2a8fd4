//! The customer data route: the only place where endpoint keys are taken.
//!
//! A seller is named by the subdomain of `Host` (or of what a trusted proxy forwards for it, and by
//! nothing else that a client can send), by the path, or by the key itself: an endpoint key names its endpoint, an analytics key its company.

pub mod by_handle;
pub mod by_slug;

use crate::principal::Scope;
use crate::query::parameters;
use crate::refusals::{COMPANY_ACCESS_DENIED, ENDPOINT_SCOPE_MISMATCH};
use crate::runs::shape::PageAnswer;
use crate::runs::{self, refusal};
use crate::settings::peer;
use crate::{ApiState, Caller, Integer, Nothing, Open, Problem, Ran, RawBody, Routes, Settings};
use http::request::Parts;
use souk_app::failure::Cause;
use souk_app::products::{self, EndpointSnapshot};
use souk_app::run;
use souk_domain::ids::EndpointId;
use souk_domain::pages::{LIMIT_MAX, Page, START_MAX};
use std::sync::Arc;

pub fn routes() -> Routes {
    Routes::new()
        .add(by_slug::OPERATION, by_slug::fetch_data)
        .add(by_handle::OPERATION, by_handle::fetch_data_by_handle)
}

parameters! {
    pub struct Rows {
        /// Rows to skip. Default 0.
        start: Option<Integer<0, { START_MAX as i64 }>>,
        /// Rows to return, at most the endpoint's max_limit. Default its default_limit.
        limit: Option<Integer<1, { LIMIT_MAX as i64 }>>,
    }
}

/// The page and the filters of a request.
pub struct Request {
    pub page: Page,
    pub filters: Vec<(String, String)>,
}

pub fn wanted(endpoint: &EndpointSnapshot, query: Open<Rows>) -> Result<Request, Problem> {
    let written = &endpoint.row.written.details;
    let bound = |limit: i64| u32::try_from(limit).unwrap_or(u32::MAX);
    let Open { known, rest } = query;
    let start = known
        .start
        .and_then(|start| u64::try_from(start.get()).ok())
        .unwrap_or(0);
    let limit = bound(known.limit.map_or(written.default_limit, Integer::get));
    let page = Page::new(start, limit, bound(written.max_limit)).map_err(|error| {
        refusal("endpoint", endpoint.row.id.as_str())(Cause::from(error).into())
    })?;
    Ok(Request {
        page,
        filters: rest,
    })
}

impl Request {
    /// The same request for another page.
    pub fn link(&self, base: &str, start: u64) -> String {
        let mut query = form_urlencoded::Serializer::for_suffix(format!("{base}?"), base.len() + 1);
        query.append_pair("start", &start.to_string());
        query.append_pair("limit", &self.page.limit.to_string());
        query.extend_pairs(&self.filters);
        query.finish()
    }
}

/// Fetches a page of the endpoint that this caller may fetch as `slug` of `handle`.
async fn serve(
    api: ApiState,
    caller: Caller,
    handle: Option<String>,
    slug: String,
    link: String,
    query: Open<Rows>,
    raw: RawBody<Nothing>,
) -> Result<Ran<PageAnswer>, Problem> {
    let handle = handle.as_deref();
    let endpoint = match caller.scope() {
        Scope::Endpoint(id) => of_endpoint_key(&api, &caller, id, handle, &slug).await?,
        Scope::Everything => of_analytics_key(&api, &caller, handle, &slug).await?,
    };
    run::admit(api.app(), &endpoint.sold(), caller.payer())
        .await
        .map_err(|error| refusal("endpoint", endpoint.row.id.as_str())(error.into()))?;
    let wanted = wanted(&endpoint, query)?;
    runs::page(&api, &caller, &raw, endpoint, caller.payer(), wanted, link).await
}

/// The key's own endpoint, if the request means it. What it does not mean is not looked at, so that
/// other endpoints and unknown ones answer alike.
async fn of_endpoint_key(
    api: &ApiState,
    caller: &Caller,
    id: &EndpointId,
    handle: Option<&str>,
    slug: &str,
) -> Result<Arc<EndpointSnapshot>, Problem> {
    let mismatch = || {
        Problem::of(
            ENDPOINT_SCOPE_MISMATCH,
            "this key reads another endpoint; use the key that was made for this one",
        )
    };
    let endpoint =
        products::get(api.app(), id, caller.now())
            .await
            .map_err(|error| match error {
                Cause::NotFound => mismatch(),
                error => refusal("endpoint", slug)(error.into()),
            })?;
    if endpoint.row.written.slug != slug {
        return Err(mismatch());
    }
    match handle {
        Some(handle) if handle != endpoint.row.company_handle => {
            // A former handle keeps routing for a while.
            match products::by_slug::<EndpointId>(api.app(), handle, slug, caller.now()).await {
                Ok(routed) if routed.row.id == *id => Ok(endpoint),
                Ok(_) | Err(Cause::NotFound) => Err(mismatch()),
                Err(error) => Err(refusal("endpoint", slug)(error.into())),
            }
        }
        _ => Ok(endpoint),
    }
}

/// An endpoint of the key's own company.
async fn of_analytics_key(
    api: &ApiState,
    caller: &Caller,
    handle: Option<&str>,
    slug: &str,
) -> Result<Arc<EndpointSnapshot>, Problem> {
    let denied = || {
        Problem::of(
            COMPANY_ACCESS_DENIED,
            "an analytics key fetches its own company's endpoints; buyers use the endpoint key of their purchase",
        )
    };
    let found = match handle {
        Some(handle) if handle != caller.handle() => {
            match products::by_slug::<EndpointId>(api.app(), handle, slug, caller.now()).await {
                Ok(endpoint) if endpoint.row.company_id == *caller.payer() => Ok(endpoint),
                Ok(_) | Err(Cause::NotFound) => return Err(denied()),
                Err(error) => Err(error),
            }
        }
        _ => products::of_company(api.app(), caller.payer(), slug, caller.now()).await,
    };
    found.map_err(|error| refusal("endpoint", slug)(error.into()))
}

/// The seller's handle in the subdomain of the host that was called, if the request came by one.
pub fn handle_of_host(settings: &Settings, parts: &Parts) -> Option<String> {
    let host = settings.host(peer(&parts.extensions), &parts.headers)?;
    let host = without_port(host).to_ascii_lowercase();
    let (_, apex) = split(&settings.endpoint_base_url);
    let label = host
        .strip_suffix(&without_port(apex).to_ascii_lowercase())?
        .strip_suffix('.')?;
    (!label.is_empty() && !label.contains('.')).then(|| label.to_owned())
}

/// Where an endpoint is fetched: with the handle as the subdomain where there can be one.
pub fn url(settings: &Settings, handle: &str, slug: &str) -> String {
    let (scheme, host) = split(&settings.endpoint_base_url);
    let name = without_port(host);
    let is_address = name.starts_with('[') || name.parse::<std::net::IpAddr>().is_ok();
    match is_address {
        true => path_url(settings, handle, slug),
        false => format!("{scheme}://{handle}.{host}/endpoints/v1/{slug}"),
    }
}

/// With the handle in the path: works without a subdomain.
pub fn path_url(settings: &Settings, handle: &str, slug: &str) -> String {
    format!("{}/endpoints/v1/{handle}/{slug}", settings.base_url)
}

/// Scheme, and host with its port.
fn split(url: &str) -> (&str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    (scheme, rest.split('/').next().unwrap_or(rest))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') =>
        {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(endpoint_base_url: &str) -> Settings {
        Settings {
            base_url: "http://127.0.0.1:8080".to_owned(),
            endpoint_base_url: endpoint_base_url.to_owned(),
            address_rate_limit: 6_000,
            shared_limits: None,
            kept_answer_bytes_max: 1 << 20,
            trust_proxy: Vec::new(),
            unread_bytes_max: 1,
            company_calls_max: 1,
            company_upload_bytes_max: 1,
            upload_bytes_max: 1,
        }
    }

    fn request(host: &str, forwarded: &[&str], peer: &str) -> Parts {
        let mut request = http::Request::builder().header("host", host);
        for forwarded in forwarded {
            request = request.header("x-forwarded-host", *forwarded);
        }
        let peer = std::net::SocketAddr::new(peer.parse().unwrap(), 7);
        let request = request.extension(axum::extract::ConnectInfo(peer));
        request.body(()).unwrap().into_parts().0
    }

    /// Only of our own proxies, and of those the last word: what came before it may be their client's.
    #[test]
    fn a_forwarded_host_is_believed_of_a_trusted_proxy() {
        let settings = Settings {
            trust_proxy: vec!["192.0.2.0/24".parse().unwrap()],
            ..settings("https://data.example.com")
        };
        let of = |forwarded: &[&str], peer: &str| {
            let request = request("acme.data.example.com", forwarded, peer);
            handle_of_host(&settings, &request)
        };
        let (proxy, stranger) = ("192.0.2.1", "198.51.100.1");
        let umbrella = "umbrella.data.example.com";
        assert_eq!(of(&[umbrella], stranger).as_deref(), Some("acme"));
        assert_eq!(of(&[umbrella], proxy).as_deref(), Some("umbrella"));
        assert_eq!(of(&[], proxy).as_deref(), Some("acme"));
        let evil = "evil.data.example.com";
        assert_eq!(of(&[evil, umbrella], proxy).as_deref(), Some("umbrella"));
        let listed = format!("{evil}, {umbrella}");
        assert_eq!(of(&[&listed], proxy).as_deref(), Some("umbrella"));
        assert_eq!(of(&["elsewhere.example.com"], proxy), None);
    }

    /// Exactly one label before the apex names the seller.
    #[test]
    fn the_subdomain_names_the_seller() {
        let settings = settings("https://data.example.com");
        let of = |host: &str| handle_of_host(&settings, &request(host, &[], "192.0.2.1"));
        assert_eq!(of("acme.data.example.com").as_deref(), Some("acme"));
        assert_eq!(of("ACME.data.example.com:443").as_deref(), Some("acme"));
        for other in [
            "data.example.com",
            "a.b.data.example.com",
            "evildata.example.com",
            "acme.example.com",
            ".data.example.com",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(
            url(&settings, "acme", "goals"),
            "https://acme.data.example.com/endpoints/v1/goals"
        );
    }

    /// An address has no subdomains.
    #[test]
    fn an_address_puts_the_seller_into_the_path() {
        let settings = settings("http://127.0.0.1:8080");
        assert_eq!(
            url(&settings, "acme", "goals"),
            "http://127.0.0.1:8080/endpoints/v1/acme/goals"
        );
    }

    /// The next page keeps limit and filters.
    #[test]
    fn a_link_keeps_the_request() {
        let request = Request {
            page: Page { start: 0, limit: 2 },
            filters: vec![("team".into(), "A & B".into())],
        };
        assert_eq!(
            request.link("http://h/e", 2),
            "http://h/e?start=2&limit=2&team=A+%26+B"
        );
    }
}
