//! What others do for the host, by their addresses and its secrets there: object stores, payments, signing in, mail, counting.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use souk_app::files::objects::ObjectsAt;
use souk_app::identity::{AGAIN_AFTER, Config};

/// The issuer of Google's ID tokens.
pub(super) const GOOGLE: &str = "https://accounts.google.com";

/// How Stripe is reached. It is listened to whenever this is given, also when another provider collects from now on.
pub struct StripeAccount {
    pub secret_key: String,
    pub webhook_secret: String,
    pub base_url: String,
}

/// Without the secrets.
impl std::fmt::Debug for StripeAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StripeAccount({})", self.base_url)
    }
}

/// By whose word people sign in.
pub struct Identity(pub Config);

/// Without the secret.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.0.issuer)
    }
}

/// Who takes mail, and from whom it comes.
pub struct Relay {
    pub url: String,
    pub from: String,
}

/// Without the password.
impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Relay(from {})", self.from)
    }
}

/// Where hosts count rate limits together.
pub struct RedisUrl(pub String);

/// Without the password.
impl std::fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedisUrl")
    }
}

/// Where files lie that hosts share, if the operator says so.
pub(super) fn objects(
    url: Option<String>,
    id: Option<String>,
    secret: Option<String>,
) -> Result<Option<ObjectsAt>> {
    let keys = match (id, secret) {
        (Some(id), Some(secret)) => Some((id, secret)),
        (None, None) => None,
        _ => anyhow::bail!("--files-access-key-id and --files-secret-access-key go together"),
    };
    let Some(url) = url else {
        ensure!(
            keys.is_none(),
            "--files-url is missing: the keys of an object store need it"
        );
        return Ok(None);
    };
    let at = ObjectsAt::new(&url, keys);
    let at = at.map_err(|error| anyhow::anyhow!("--files-url is wrong: {error}"))?;
    Ok(Some(at))
}

pub(super) fn stripe_account(
    secret_key: Option<String>,
    webhook_secret: Option<String>,
    base_url: Option<String>,
) -> Result<Option<StripeAccount>> {
    let base_url = base_url
        .map(|url| web_address("--stripe-base-url", url))
        .transpose()?
        .unwrap_or_else(|| souk_app::payments::stripe::BASE_URL.to_owned());
    match (secret_key, webhook_secret) {
        (Some(secret_key), Some(webhook_secret)) => {
            ensure!(
                !secret_key.is_empty() && !webhook_secret.is_empty(),
                "--stripe-secret-key and --stripe-webhook-secret must not be empty"
            );
            Ok(Some(StripeAccount {
                secret_key,
                webhook_secret,
                base_url,
            }))
        }
        (None, None) => Ok(None),
        _ => anyhow::bail!("--stripe-secret-key and --stripe-webhook-secret go together"),
    }
}

/// By whose word people sign in, if the operator says so.
pub(super) fn identity(
    client_id: Option<String>,
    secret: Option<String>,
    secret_file: Option<PathBuf>,
    issuer: Option<String>,
    name: Option<String>,
) -> Result<Option<Identity>> {
    let Some(client_id) = client_id else {
        let others =
            secret.is_some() || secret_file.is_some() || issuer.is_some() || name.is_some();
        ensure!(
            !others,
            "--oidc-client-id is missing: the other --oidc settings need it"
        );
        return Ok(None);
    };
    ensure!(!client_id.is_empty(), "--oidc-client-id must not be empty");
    ensure!(
        secret.is_none() || secret_file.is_none(),
        "--oidc-client-secret and --oidc-client-secret-file exclude each other"
    );
    let client_secret = match secret_file {
        Some(path) => {
            let text = std::fs::read_to_string(&path).with_context(|| {
                format!(
                    "--oidc-client-secret-file {} cannot be read",
                    path.display()
                )
            })?;
            Some(text.trim().to_owned())
        }
        None => secret,
    };
    ensure!(
        client_secret.as_deref() != Some(""),
        "the client secret must not be empty: leave it out for a public client"
    );
    let issuer = match issuer {
        Some(issuer) => web_address("--oidc-issuer", issuer)?,
        None => GOOGLE.to_owned(),
    };
    let default = if issuer == GOOGLE { "google" } else { "oidc" };
    let name = name.unwrap_or_else(|| default.to_owned());
    // What invited users come in by.
    ensure!(
        !name.is_empty() && name != "invitation",
        "--oidc-name must be a name, and not `invitation`"
    );
    Ok(Some(Identity(Config {
        name,
        issuer,
        client_id,
        client_secret,
        again_after: AGAIN_AFTER,
    })))
}

/// Without the trailing slash, so that a path can be appended.
pub(super) fn web_address(flag: &str, url: String) -> Result<String> {
    let host = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    ensure!(
        host.is_some_and(|host| !host.trim_end_matches('/').is_empty()),
        "{flag} must be an http:// or https:// address, not {url:?}"
    );
    Ok(url.trim_end_matches('/').to_owned())
}
