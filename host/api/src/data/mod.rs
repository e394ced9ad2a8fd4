//! The customer data route: the only place where endpoint keys are taken.
//!
//! A seller is named by the subdomain of `Host` (or of what a trusted proxy forwards for it, and by
//! nothing else that a client can send), by the path, or by the key itself: an endpoint key names its endpoint, an analytics key its company.

pub mod accept;
pub mod by_handle;
pub mod by_slug;

use crate::principal::Scope;
use crate::query::{Judged, parameters};
use crate::refusals::{COMPANY_ACCESS_DENIED, ENDPOINT_SCOPE_MISMATCH};
use crate::runs::page::RanPage;
use crate::runs::{self, refusal};
use crate::settings::peer;
use crate::{ApiState, Caller, Integer, Nothing, Open, Problem, RawBody, Routes, Settings, Text};
use http::request::Parts;
use souk_app::failure::Cause;
use souk_app::fetch::Choice;
use souk_app::products::{self, EndpointSnapshot};
use souk_app::run;
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::pages::{LIMIT_MAX, START_MAX};
use souk_store::Cached;
use std::fmt::Write as _;

pub fn routes() -> Routes {
    Routes::new()
        .add(by_slug::OPERATION, by_slug::fetch_data)
        .add(by_handle::OPERATION, by_handle::fetch_data_by_handle)
}

parameters! {
    pub struct Rows {
        /// Rows to skip, for small offsets: the source reads what it skips. Default 0.
        start: Option<Judged<Integer<0, { START_MAX as i64 }>>>,
        /// Rows to return, at most the endpoint's max_limit. Default its default_limit.
        limit: Option<Judged<Integer<1, { LIMIT_MAX as i64 }>>>,
        /// The name of one of the endpoint's `sorts`. Default its own order.
        sort: Option<Judged<Text<0, 63>>>,
        /// Names of published fields with commas between them, in the order in which they are wanted. Default all.
        fields: Option<Judged<Text<0, 8_192>>>,
        /// Where a former page ended, as its next_url says, with the same filters and sort. Any page costs the source what the first does.
        cursor: Option<Judged<Text<0, 8_192>>>,
        /// All pages from here on as one stream (NDJSON if `Accept` says nothing else), each of `limit` rows (default max_limit) and charged
        /// as one request before it leaves.
        export: Judged<bool> = Judged(Ok(false)),
        /// With an export as NDJSON: behind each page a line `{"$checkpoint": {cursor, rows, pages, credits_used, complete}}`.
        checkpoints: Judged<bool> = Judged(Ok(false)),
    }
}

/// What is asked for, as the query says it.
#[derive(Default)]
pub struct Request {
    pub choice: Choice,
    pub is_export: bool,
    pub has_checkpoints: bool,
}

impl Request {
    pub fn read(query: Open<Rows>) -> Request {
        let mut wrong = FieldErrors::default();
        let Open {
            known,
            rest,
            repeated,
        } = query;
        for name in repeated {
            wrong.add(name, "repeated", "may be given only once");
        }
        fn judge<T>(wrong: &mut FieldErrors, name: &str, given: Option<Judged<T>>) -> Option<T> {
            match given?.0 {
                Ok(value) => Some(value),
                Err(message) => {
                    wrong.add(name, "invalid", message);
                    None
                }
            }
        }
        let start = judge(&mut wrong, "start", known.start);
        let limit = judge(&mut wrong, "limit", known.limit);
        let sort = judge(&mut wrong, "sort", known.sort);
        let fields = judge(&mut wrong, "fields", known.fields);
        let cursor = judge(&mut wrong, "cursor", known.cursor);
        let is_export = judge(&mut wrong, "export", Some(known.export)) == Some(true);
        let has_checkpoints =
            judge(&mut wrong, "checkpoints", Some(known.checkpoints)) == Some(true);
        if has_checkpoints && !is_export {
            let message = "only an export has checkpoints: send export=true as well";
            wrong.add("checkpoints", "conflict", message);
        }
        let choice = Choice {
            start: start.and_then(|start| u64::try_from(start.get()).ok()),
            limit: limit.and_then(|limit| u32::try_from(limit.get()).ok()),
            sort: sort.map(Text::into_string),
            fields: fields.map(Text::into_string),
            cursor: cursor.map(Text::into_string),
            filters: rest,
            wrong: wrong.into_vec(),
        };
        Request {
            choice,
            is_export,
            has_checkpoints,
        }
    }

    /// The same request for the page that begins at `cursor`, which is in the alphabet of base64 for addresses.
    pub fn link(&self, base: &str, cursor: &str, limit: u32) -> String {
        // Each page has one: what needs no escape is written as it is.
        let mut link = String::with_capacity(base.len() + cursor.len() + 32);
        let _ = write!(link, "{base}?cursor={cursor}&limit={limit}");
        let own = [("sort", &self.choice.sort), ("fields", &self.choice.fields)];
        if self.choice.filters.is_empty() && own.iter().all(|(_, value)| value.is_none()) {
            return link;
        }
        let mut query = form_urlencoded::Serializer::for_suffix(link, base.len() + 1);
        for (name, value) in own {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        query.extend_pairs(&self.choice.filters);
        query.finish()
    }
}

/// Where a page was asked for: what the address of the next one begins with.
pub enum Address {
    /// The owner's route.
    Own(CompanyId, EndpointId),
    Path {
        handle: String,
        slug: String,
    },
    Subdomain {
        handle: String,
        slug: String,
    },
    /// Without a seller: the key names one.
    Slug(String),
}

impl Address {
    /// Without a query.
    pub fn url(&self, settings: &Settings) -> String {
        let base = &settings.base_url;
        match self {
            Address::Own(company, id) => {
                format!("{base}/companies/{company}/endpoints/{id}/execute")
            }
            Address::Path { handle, slug } => path_url(settings, handle, slug),
            Address::Subdomain { handle, slug } => url(settings, handle, slug),
            Address::Slug(slug) => format!("{base}/endpoints/v1/{slug}"),
        }
    }
}

/// Fetches a page of the endpoint that this caller may fetch as `slug` of `handle`.
async fn serve(
    api: &ApiState,
    caller: &Caller,
    address: Address,
    query: Open<Rows>,
    raw: &RawBody<Nothing>,
) -> Result<RanPage, Problem> {
    let (handle, slug) = match &address {
        Address::Own(_, id) => (None, id.as_str()),
        Address::Path { handle, slug } | Address::Subdomain { handle, slug } => {
            (Some(handle.as_str()), slug.as_str())
        }
        Address::Slug(slug) => (None, slug.as_str()),
    };
    let endpoint = match caller.scope() {
        Scope::Endpoint(id) => of_endpoint_key(api, caller, id, handle, slug).await?,
        Scope::Everything => of_analytics_key(api, caller, handle, slug).await?,
    };
    run::admit(api.app(), &endpoint.sold(), caller.payer())
        .await
        .map_err(|error| refusal("endpoint", endpoint.row.id.as_str())(error.into()))?;
    let wanted = Request::read(query);
    runs::page(api, caller, raw, endpoint, caller.payer(), wanted, address).await
}

/// The key's own endpoint, if the request means it. What it does not mean is not looked at, so that
/// other endpoints and unknown ones answer alike.
async fn of_endpoint_key(
    api: &ApiState,
    caller: &Caller,
    id: &EndpointId,
    handle: Option<&str>,
    slug: &str,
) -> Result<Cached<EndpointSnapshot>, Problem> {
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
) -> Result<Cached<EndpointSnapshot>, Problem> {
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
            company_reads_at_once: 2,
            unread_bytes_max: 1,
            company_calls_max: 1,
            company_upload_bytes_max: 1,
            upload_bytes_max: 1,
            recorder: None,
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

    /// The next page keeps limit, order, fields and filters.
    #[test]
    fn a_link_keeps_the_request() {
        let choice = Choice {
            start: Some(7),
            sort: Some("newest".into()),
            fields: Some("id,team".into()),
            filters: vec![("team".into(), "A & B".into())],
            ..Choice::default()
        };
        assert_eq!(
            Request {
                choice,
                ..Request::default()
            }
            .link("http://h/e", "x-_1", 2),
            "http://h/e?cursor=x-_1&limit=2&sort=newest&fields=id%2Cteam&team=A+%26+B"
        );
    }
}
