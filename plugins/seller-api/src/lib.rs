//! Connector for a seller's own API: section 4.7 of the interface specification over HTTP.
//!
//! It refuses to know addresses (the host appends its paths to the connection's base URL), parameters'
//! types and what an answer is worth. Start reading at [`SellerApi::call`]; what is posted and what an
//! answer means is in `protocol.rs`.

mod protocol;
mod settings;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use souk_sdk::{
    Call, Cell, Connector, Descriptor, Error, Http, HttpResponse, Io, Limits, Need, Route, Rows,
    Settings, http,
};

use protocol::{PING_FUNCTION, RESPONSE_BYTES_MAX, TIMEOUT_MS_MAX};
use settings::Access;

/// One base URL and the key for it. There is nothing to open: a session is ready at once.
pub struct SellerApi {
    access: Access,
    http: Http,
}

impl Connector for SellerApi {
    fn describe() -> Descriptor {
        Descriptor::new("seller-api", env!("CARGO_PKG_VERSION"), Need::Http)
            .engine("seller-api", "Seller API", "none", &["API_KEY"])
            .settings_schema(settings::SCHEMA)
            .abilities(&["functions", "pipelining", "cancel"])
    }

    async fn open(settings: Settings, io: Io) -> Result<SellerApi, Error> {
        Ok(SellerApi {
            access: Access::parse(&settings)?,
            http: io.http(),
        })
    }

    async fn call(&self, call: Call, rows: &mut Rows) -> Result<(), Error> {
        let response = self.post(&call).await?;
        let retry_after_ms = response.retry_after_ms();
        let answer = protocol::answer(
            &call.asset_id,
            response.status,
            retry_after_ms,
            protocol::unmarked(&response.body),
        )?;
        rows.columns(Rows::call_columns())?;
        rows.push([
            Cell::Json(&answer.value),
            Cell::Timestamp(answer.timestamp_micros),
        ])
    }

    /// Asks for a function that no seller has: proves address, key and contract without running one.
    async fn ping(&self, limits: Limits, rows: &mut Rows) -> Result<(), Error> {
        let call = Call {
            route: Route::Function(PING_FUNCTION.to_owned()),
            parameters: "{}".to_owned(),
            asset_id: PING_FUNCTION.to_owned(),
            request_id: PING_FUNCTION.to_owned(),
            execution_id: execution_of_a_ping(),
            limits,
        };
        let response = self.post(&call).await?;
        let body = protocol::unmarked(&response.body);
        let version = protocol::pong(response.status, response.retry_after_ms(), body)?;
        rows.columns(Rows::ping_columns())?;
        rows.push([Cell::Text(&version), Cell::Null])
    }
}

impl SellerApi {
    async fn post(&self, call: &Call) -> Result<HttpResponse, Error> {
        let (path, body) = protocol::post(&call.route, &call.parameters)?;
        let request = http::Request::post(path)
            .json(body)
            .header("accept", "application/json")
            // Whoever does not say so gets whatever a server likes (RFC 9110, 12.5.3).
            .header("accept-encoding", "identity")
            .header("x-api-key", &self.access.api_key)
            .header("x-asset-id", &call.asset_id)
            .header("x-request-id", &call.request_id)
            // The same for every attempt at one execution, so that a seller can tell a retry.
            .header("idempotency-key", &call.execution_id)
            .timeout_ms(call.limits.timeout_ms.min(TIMEOUT_MS_MAX))
            .response_bytes_max(RESPONSE_BYTES_MAX);
        let response = self.http.send(request).await.map_err(protocol::broken)?;
        let encoding = response.header("content-encoding");
        protocol::comes_as_it_is(response.status, encoding, &response.body)?;
        Ok(response)
    }
}

/// A name that no other ping has: an API that keeps its answers by `Idempotency-Key` would give its first one for ever, whatever its seller has mended since.
fn execution_of_a_ping() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{PING_FUNCTION}-{:016x}{:016x}", random(), random())
}

souk_sdk::export!(SellerApi);
