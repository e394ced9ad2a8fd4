//! Which connector serves an engine for a company now, what it needs, and how a change of that is announced.

use std::sync::Arc;

use souk_domain::connections;
use souk_domain::ids::CompanyId;
use souk_sandbox::{EngineInfo, Need, Sandbox};
use souk_store::Topic;
use souk_store::connectors::PLATFORM;

/// What serves the engine `slug` of `scope` for a company now. An engine of the platform is never served by a company's connector, nor the
/// other way round: what was saved for one of them must not reach the other's code. A slug that both have is the platform's.
pub(crate) fn serving(
    sandbox: &Sandbox,
    company: &CompanyId,
    scope: &str,
    slug: &str,
) -> Option<EngineInfo> {
    let of_platform = sandbox.engine(NOBODY, slug);
    match (scope, of_platform) {
        (PLATFORM, of_platform) => of_platform,
        (_, Some(_)) => None,
        (_, None) => sandbox.engine(company.as_str(), slug),
    }
}

/// Whose connector or publisher would serve `slug` for a company if something were saved for it now, and what it says about itself.
pub(crate) fn scope_of_engine(
    sandbox: &Sandbox,
    company: &CompanyId,
    slug: &str,
) -> Option<(String, EngineInfo)> {
    match sandbox.engine(NOBODY, slug) {
        Some(info) => Some((PLATFORM.to_owned(), info)),
        None => {
            let info = sandbox.engine(company.as_str(), slug)?;
            Some((company.to_string(), info))
        }
    }
}

/// Under which topics and ids the connectors are announced that may serve a company: its own, and the platform's.
pub(crate) const SERVING: [Topic; 2] = [Topic::Connector, Topic::Connector];

pub(crate) fn serving_ids(company: &Arc<str>) -> [Arc<str>; 2] {
    [company.clone(), PLATFORM.into()]
}

/// A company that has no connectors sees the platform's.
pub(super) const NOBODY: &str = "";

/// What a connection to an engine has to name.
pub(crate) fn need(engine: &EngineInfo) -> connections::Need {
    match engine.need {
        Need::Tcp => connections::Need::Tcp,
        Need::Http => connections::Need::Http,
        Need::Directory => connections::Need::Directory,
    }
}
