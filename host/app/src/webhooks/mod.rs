//! Webhooks: where companies want to be told of events, with which secret, and the telling.
//!
//! The flows here make, change and rotate; what happens in the store is written down with its cause (`souk_store`'s outbox) and delivered by
//! [`start`]'s dispatcher; [`InFlight`] counts what it attempts. Start reading at [`dispatch`] for how a delivery goes.

mod client;
pub mod dispatch;
mod in_flight;
mod signature;

use souk_domain::ids::{CompanyId, WebhookId};
use souk_domain::webhooks::{EventType, SECRETS_OVERLAP, UrlError, check_url};
use souk_outbound::EgressPolicy;
use souk_store::StoreError;
use souk_store::sealing::Owner;
use souk_store::webhooks::{self, Disabled, DisabledReason, Webhook};

use crate::App;
use crate::destinations::{Withheld, judge};
pub use dispatch::start;
pub use in_flight::InFlight;
pub use signature::Secret;

/// What a company wants.
#[derive(Debug, Clone)]
pub struct Draft {
    pub url: String,
    pub description: Option<String>,
    /// Empty: all.
    pub event_types: Vec<EventType>,
    pub is_active: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The address is none that this host sends to.
    #[error("{0}")]
    Unsafe(String),
    /// Nobody says at the moment where it leads.
    #[error("{0}")]
    Unknown(String),
    #[error("the company has as many webhooks as it may have")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a webhook. Its secret is known only now.
pub async fn create(
    app: &App,
    company: &CompanyId,
    draft: Draft,
) -> Result<(Webhook, Secret), WebhookError> {
    let url = check(app, &draft.url).await?;
    let (id, secret, now) = (WebhookId::generate(), Secret::generate(), app.clock.now());
    let disabled = (!draft.is_active).then_some(Disabled {
        at: now,
        reason: DisabledReason::Request,
    });
    let webhook = Webhook {
        sealed_secret: seal(app, company, &id, &secret)?,
        id,
        company_id: company.clone(),
        url,
        description: draft.description,
        event_types: draft.event_types,
        former_secret: None,
        failing_since: None,
        disabled,
        created_at: now,
        updated_at: now,
    };
    app.db
        .write(async |write| {
            if !webhooks::insert(write, &webhook).await? {
                return Err(WebhookError::TooMany);
            }
            Ok((webhook, secret))
        })
        .await
}

/// Gives a webhook another secret, beside which the former one signs for a day. `None`: there is no such webhook.
pub async fn rotate_secret(
    app: &App,
    company: &CompanyId,
    id: &WebhookId,
) -> Result<Option<(Webhook, Secret)>, StoreError> {
    let (secret, now) = (Secret::generate(), app.clock.now());
    let sealed = seal(app, company, id, &secret)?;
    app.db
        .write(async |write| {
            let until = now.after(SECRETS_OVERLAP);
            let rotated = webhooks::rotate(write, company, id, &sealed, until, now).await?;
            Ok(rotated.map(|webhook| (webhook, secret)))
        })
        .await
}

/// Checks an address as far as that can be done before something is sent there; it is judged again whenever it is dialled. Returns it as it
/// is kept.
pub async fn check(app: &App, text: &str) -> Result<String, WebhookError> {
    judged(&app.egress, text).await
}

async fn judged(egress: &EgressPolicy, text: &str) -> Result<String, WebhookError> {
    let url = check_url(text)?;
    judge(egress, &url)
        .await
        .map_err(|withheld| match withheld {
            Withheld::Unsafe(message) => WebhookError::Unsafe(message),
            Withheld::Unknown(message) => WebhookError::Unknown(message),
        })?;
    Ok(url.into())
}

fn seal(
    app: &App,
    company: &CompanyId,
    id: &WebhookId,
    secret: &Secret,
) -> Result<Vec<u8>, StoreError> {
    let owner = Owner::of(company, id.as_str());
    Ok(app.sealer.seal(owner, secret.expose().as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without TLS only what the operator has named; with TLS also what is public; a name that is not known may become so.
    #[tokio::test]
    async fn addresses_are_judged_when_saved() {
        let public = EgressPolicy::public_only();
        let named = EgressPolicy::public_only().allow_network("127.0.0.0/8".parse().unwrap());
        for (egress, url, allowed) in [
            (&public, "https://1.1.1.1/x", true),
            (&public, "http://1.1.1.1/x", false),
            (&public, "https://127.0.0.1/x", false),
            (&public, "https://169.254.169.254/latest", false),
            (&public, "https://[::ffff:10.0.0.1]/", false),
            (&public, "https://0x7f.1/", false),
            (&public, "https://no-such-name.invalid/", true),
            (&public, "http://no-such-name.invalid/", false),
            (&named, "http://127.0.0.1:9/x", true),
            (&named, "https://127.0.0.1:9/x", true),
            (&named, "http://1.1.1.1/x", false),
            (&named, "http://10.0.0.1/x", false),
        ] {
            let checked = judged(egress, url).await;
            assert_eq!(checked.is_ok(), allowed, "{url}: {checked:?}");
            let is_unknown = matches!(checked, Err(WebhookError::Unknown(_)));
            assert_eq!(is_unknown, url == "http://no-such-name.invalid/", "{url}");
        }
    }
}
