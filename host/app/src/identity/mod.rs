//! Who somebody is, by the word of an identity provider that speaks OpenID Connect: an ID token that it signed for this service and this
//! attempt.
//!
//! Refuses to know users and sessions: what an [`Identity`] may do here is its caller's question. The provider is the operator's choice;
//! its addresses come from its own discovery document, and all that is asked of it is bounded. Start reading at
//! [`IdentityProvider::identify`].

mod config;
mod error;
mod http;
mod signatures;
mod token;

use std::time::{Duration, Instant};

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::JwkSet;
use parking_lot::RwLock;
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::protected::{AddressError, protected};
use IdentityError::{Refused, Unavailable};
pub use config::{AGAIN_AFTER, Config};
pub use error::IdentityError;
use http::{Http, Tokens};
use token::UserInfo;
pub use token::{Email, Identity};

/// Providers announce new keys at least as long ahead.
const KEYS_HOLD: Duration = Duration::from_secs(3_600);
/// While a provider cannot be asked, its keys are believed for as long: it has other ways to say that one was stolen.
const KEYS_HOLD_AT_MOST: Duration = Duration::from_secs(24 * 3_600);
/// By what somebody shows who they are.
#[derive(Clone, Copy)]
pub enum Proof<'a> {
    IdToken(&'a str),
    /// A code that the provider changes for an ID token.
    Code {
        code: &'a str,
        /// PKCE's, whose challenge the code was asked for with.
        verifier: &'a str,
        /// Where the code was sent to.
        redirect_uri: &'a str,
    },
}

pub struct IdentityProvider {
    config: Config,
    http: Http,
    told: RwLock<Told>,
    /// Of whoever asks it: the others wait for the answer, but not those for whom what was told will do.
    asked: Mutex<Asked>,
}

/// What the provider told of itself.
#[derive(Default)]
struct Told {
    metadata: Option<Metadata>,
    keys: Option<(JwkSet, Instant)>,
}

/// When it was asked last, and whether it answered.
type Asked = Option<(Instant, bool)>;

/// The part of a discovery document that matters here.
#[derive(Clone, Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
    token_endpoint: Option<String>,
    userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl IdentityProvider {
    pub fn new(mut config: Config) -> Result<IdentityProvider, AddressError> {
        protected(&config.issuer)?;
        // As written in its tokens; the path of its document has one slash.
        config.issuer = config.issuer.trim_end_matches('/').to_owned();
        signatures::install();
        Ok(IdentityProvider {
            http: Http::new()?,
            config,
            told: RwLock::default(),
            asked: Mutex::default(),
        })
    }

    /// As which it is shown.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Who shows this proof, if it was made for this service, for the attempt with this nonce, and holds now.
    pub async fn identify(&self, proof: Proof<'_>, nonce: &str) -> Result<Identity, IdentityError> {
        let redeemed;
        let (token, access_token) = match proof {
            Proof::IdToken(token) => (token, None),
            Proof::Code {
                code,
                verifier,
                redirect_uri,
            } => {
                redeemed = self.redeem(code, verifier, redirect_uri).await?;
                (&*redeemed.id_token, redeemed.access_token.as_deref())
            }
        };
        let head = token::head(token)?;
        let key = self.key(&head).await?;
        let mut identity = token::check(token, &key, head.alg, &self.config, nonce)?;
        if let (Email::Untold, Some(access_token)) = (&identity.email, access_token) {
            let asked = self.asked_email(&identity.subject, access_token).await;
            identity.email = asked.unwrap_or_else(|error| Email::Unasked(error.to_string()));
        }
        Ok(identity)
    }

    /// An ID token that was changed for a code need not say more than who it is: the address is told to whoever has the access token
    /// (OpenID Connect Core 1.0, 5.4).
    async fn asked_email(&self, subject: &str, access_token: &str) -> Result<Email, IdentityError> {
        let Some(endpoint) = self.metadata().await?.userinfo_endpoint else {
            return Ok(Email::Untold);
        };
        let told: UserInfo = self.http.get(&endpoint, Some(access_token)).await?;
        match told.sub == subject {
            true => Ok(told.email()),
            false => Err(Unavailable(format!(
                "{endpoint} speaks of somebody else than the ID token"
            ))),
        }
    }

    /// The key that a token says it was signed with. One that is not known may be new.
    async fn key(&self, head: &jsonwebtoken::Header) -> Result<DecodingKey, IdentityError> {
        // Strangers' tokens name keys that nobody knows, for which the provider is asked.
        if let Some(key) = self.key_of_late(head) {
            return key;
        }
        let mut asked = self.asked.lock().await;
        if let Some(key) = self.key_of_late(head) {
            return key;
        }
        if self.told_ago().is_none_or(|ago| ago >= KEYS_HOLD) {
            match self.ask_keys(&mut asked).await {
                Err(error) if self.told_ago().is_some_and(|ago| ago < KEYS_HOLD_AT_MOST) => {
                    tracing::warn!(provider = self.config.name, %error, "an identity provider cannot be asked for its keys; those of before still hold");
                }
                answered => answered?,
            }
        }
        if let Some(key) = self.told_key(head) {
            return key;
        }
        if self.may_ask(&asked) {
            self.ask_keys(&mut asked).await?;
        }
        self.told_key(head).unwrap_or_else(|| {
            Err(Refused(
                "the ID token is signed with a key that its issuer does not have".to_owned(),
            ))
        })
    }

    /// How old its keys are.
    fn told_ago(&self) -> Option<Duration> {
        let told = self.told.read();
        told.keys.as_ref().map(|(_, at)| at.elapsed())
    }

    fn told_key(&self, head: &jsonwebtoken::Header) -> Option<Result<DecodingKey, IdentityError>> {
        let told = self.told.read();
        let (keys, _) = told.keys.as_ref()?;
        token::key(keys, head)
    }

    /// If its keys are not to be asked for anew.
    fn key_of_late(
        &self,
        head: &jsonwebtoken::Header,
    ) -> Option<Result<DecodingKey, IdentityError>> {
        self.told_ago().filter(|ago| *ago < KEYS_HOLD)?;
        self.told_key(head)
    }

    fn may_ask(&self, asked: &Asked) -> bool {
        asked.is_none_or(|(at, _)| at.elapsed() >= self.config.again_after)
    }

    /// Asks for the keys anew. One that has just failed to answer is left alone.
    async fn ask_keys(&self, asked: &mut Asked) -> Result<(), IdentityError> {
        if matches!(asked, Some((_, false))) && !self.may_ask(asked) {
            return Err(Unavailable("it did not answer a moment ago".to_owned()));
        }
        let keys = self.asked_keys().await;
        *asked = Some((Instant::now(), keys.is_ok()));
        self.told.write().keys = Some((keys?, Instant::now()));
        Ok(())
    }

    async fn asked_keys(&self) -> Result<JwkSet, IdentityError> {
        // Its addresses may change, though they seldom do: asked for with the keys.
        let metadata = self.asked_metadata().await?;
        let jwks_uri = metadata.jwks_uri.clone();
        self.told.write().metadata = Some(metadata);
        self.http.get(&jwks_uri, None).await
    }

    async fn asked_metadata(&self) -> Result<Metadata, IdentityError> {
        let address = format!("{}/.well-known/openid-configuration", self.config.issuer);
        let metadata: Metadata = self.http.get(&address, None).await?;
        let named = metadata.issuer.trim_end_matches('/');
        if named != self.config.issuer {
            let message = format!("it says that it is {named:?}, not {:?}", self.config.issuer);
            return Err(Unavailable(message));
        }
        Ok(metadata)
    }

    /// Changes a code for an ID token.
    async fn redeem(
        &self,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
    ) -> Result<Tokens, IdentityError> {
        let metadata = self.metadata().await?;
        let Some(endpoint) = &metadata.token_endpoint else {
            return Err(Unavailable("it changes no codes".to_owned()));
        };
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", verifier),
            ("redirect_uri", redirect_uri),
            ("client_id", &self.config.client_id),
        ];
        let mut basic = None;
        if let Some(secret) = &self.config.client_secret {
            let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
            // What a provider supports that does not say.
            let takes_basic = methods
                .is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"));
            match takes_basic {
                true => basic = Some((self.config.client_id.as_str(), secret.as_str())),
                false => form.push(("client_secret", secret)),
            }
        }
        self.http.redeem(endpoint, &form, basic).await
    }

    async fn metadata(&self) -> Result<Metadata, IdentityError> {
        let told = || self.told.read().metadata.clone();
        if let Some(metadata) = told() {
            return Ok(metadata);
        }
        let mut asked = self.asked.lock().await;
        if told().is_none() {
            self.ask_keys(&mut asked).await?;
        }
        told().ok_or_else(|| Unavailable("it told nothing of itself".to_owned()))
    }
}
