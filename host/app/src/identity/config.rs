//! What the operator says of an identity provider.

use std::time::Duration;

/// Tokens with made-up key ids, or a provider that is down, cost it one question in so long.
pub const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Which provider, and as whom it is asked.
#[derive(Clone)]
pub struct Config {
    /// As which it is shown: `google`.
    pub name: String,
    /// Its discovery document is below this, and its tokens name it.
    pub issuer: String,
    pub client_id: String,
    /// Without it codes are redeemed as by a public client, with PKCE alone.
    pub client_secret: Option<String>,
    /// [`AGAIN_AFTER`], but for tests.
    pub again_after: Duration,
}
