//! What is asked of a provider over HTTP: bounded in time and size, protected, and without following redirects.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use souk_outbound::{Client, Trust};

use super::IdentityError::{self, Refused, Unavailable};
use crate::protected::{AddressError, client, protected};

/// From the look-up of the name to the last byte. Somebody waits for it.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Documents have a few kilobytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;

pub(super) struct Http(Client);

/// What a code is changed for.
pub(super) struct Tokens {
    pub id_token: String,
    /// With which the provider tells more of somebody.
    pub access_token: Option<String>,
}

impl Http {
    pub fn new() -> Result<Http, AddressError> {
        let trust = Trust::verified(None).map_err(AddressError::Malformed)?;
        Ok(Http(client(TIMEOUT, trust)))
    }

    /// A document of the provider's, for whoever asks or for whoever has this token.
    pub async fn get<T: DeserializeOwned>(
        &self,
        address: &str,
        access_token: Option<&str>,
    ) -> Result<T, IdentityError> {
        check(address)?;
        let mut request = Request::get(address).header(header::ACCEPT, "application/json");
        if let Some(token) = access_token {
            request = request.header(header::AUTHORIZATION, hidden(format!("Bearer {token}"))?);
        }
        let request = request.body(Full::default()).map_err(unwritten)?;
        match self.send(request, address).await? {
            (StatusCode::OK, body) => read(address, &body),
            (status, _) => Err(Unavailable(format!("{address} answered {status}"))),
        }
    }

    /// Changes a code for an ID token. `basic`: the client's id and secret, for its header.
    pub async fn redeem(
        &self,
        endpoint: &str,
        form: &[(&str, &str)],
        basic: Option<(&str, &str)>,
    ) -> Result<Tokens, IdentityError> {
        #[derive(Deserialize)]
        struct Redeemed {
            id_token: Option<String>,
            access_token: Option<String>,
        }
        #[derive(Default, Deserialize)]
        struct Failure {
            #[serde(default)]
            error: String,
        }
        check(endpoint)?;
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let mut request = Request::post(endpoint)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json");
        if let Some((id, secret)) = basic {
            // RFC 6749, 2.3.1: each is encoded as in a form before it is joined.
            let encoded = |text: &str| -> String {
                form_urlencoded::byte_serialize(text.as_bytes()).collect()
            };
            let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
            request = request.header(header::AUTHORIZATION, hidden(format!("Basic {pair}"))?);
        }
        let request = request.body(Full::from(body)).map_err(unwritten)?;
        let (status, body) = self.send(request, endpoint).await?;
        if status == StatusCode::OK {
            let redeemed: Redeemed = read(endpoint, &body)?;
            let id_token = redeemed.id_token.ok_or_else(|| {
                Refused("the code is for no ID token: ask for the scope openid".to_owned())
            })?;
            return Ok(Tokens {
                id_token,
                access_token: redeemed.access_token,
            });
        }
        let failure: Failure = serde_json::from_slice(&body).unwrap_or_default();
        match &*failure.error {
            "invalid_grant" => Err(Refused(
                "the code is not valid, was used before, or belongs to another code_verifier or redirect_uri"
                    .to_owned(),
            )),
            error => Err(Unavailable(format!("{endpoint} answered {status} {error:?}"))),
        }
    }

    async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        address: &str,
    ) -> Result<(StatusCode, Bytes), IdentityError> {
        const AGENT: &str = concat!("souk/", env!("CARGO_PKG_VERSION"));
        request
            .headers_mut()
            .insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
        let failed = |error: souk_outbound::Error| Unavailable(format!("{address}: {error}"));
        let answer = self.0.send(request, TIMEOUT, ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(failed)?;
        Ok((answer.head.status, answer.body.map_err(failed)?))
    }
}

/// What the provider names is held to what the operator's own addresses are held to.
fn check(address: &str) -> Result<(), IdentityError> {
    protected(address)
        .map(drop)
        .map_err(|error| Unavailable(format!("its address {address:?} {error}")))
}

/// A header that no log shows.
fn hidden(text: String) -> Result<HeaderValue, IdentityError> {
    let mut value = HeaderValue::try_from(text).map_err(unwritten)?;
    value.set_sensitive(true);
    Ok(value)
}

fn read<T: DeserializeOwned>(address: &str, body: &[u8]) -> Result<T, IdentityError> {
    serde_json::from_slice(body)
        .map_err(|error| Unavailable(format!("{address} answered what cannot be read: {error}")))
}

fn unwritten(error: impl std::fmt::Display) -> IdentityError {
    Unavailable(error.to_string())
}
