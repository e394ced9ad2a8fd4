//! The REST edge: routes, the gate in front of them, and the statuses of answers.
//!
//! Refuses to know SQL, wires and the sandbox. A handler extracts, decides with `souk-domain`, writes once through `souk-store` (or calls
//! `souk-app` for a flow), and renders. Start reading at [`routes`] (how a call runs) and [`gate`] (the order of checks).
//!
//! One operation is one file, `<resource>/<verb>.rs`, and its resource's `mod.rs` mounts it. What it takes and answers is told by the types of
//! its handler and nowhere else ([`describe`]); `OPERATION` holds what they cannot say:
//!
//! ```ignore
//! // host/api/src/prices/create.rs
//! pub const OPERATION: Operation = Operation::post("create_price", "/companies/{company_id}/assets/{asset_id}/prices")
//!     .about("Prices", "Set the price of an asset")
//!     .needs(Role::DataEngineer, Permission::Write)           // default: role 1, `read` for GET and `write` for the others
//!     .hourly(100)                                            // beside the key's own limit
//!     .refuses(&[PRICE_OVERLAP]);                             // what neither its types nor its properties imply: `refusals`
//!
//! /// Sets the price; the former one ends.
//! pub async fn create_price(
//!     State(api): State<ApiState>,
//!     caller: Caller,                                         // key, company, role, permission and limits are checked
//!     Path((_, asset)): Path<(CompanyId, AssetId)>,           // as many as the path has; 404 `ASSET_NOT_FOUND`
//!     Body(body): Body<PriceIn>,                              // Deserialize + ToSchema
//! ) -> Result<Created<PriceOut>, Problem> {                   // 201; Serialize + ToSchema
//!     api.db()
//!         .write(async |write| {                              // committed when it returns Ok; StoreError turns into a Problem
//!             products::get(write, caller.company(), &asset).await?.ok_or_else(|| Problem::not_found("asset", asset.as_str()))?;
//!             let price = timeline::place(write, …).await?;
//!             Ok(Created { location: format!("/companies/{}/assets/{asset}/prices/{}", caller.company(), price.id), data: price.into() })
//!         })
//!         .await
//! }
//!
//! // host/api/src/prices/mod.rs
//! pub fn routes() -> Routes {
//!     Routes::new().add(create::OPERATION, create::create_price).add(…)
//! }
//! ```
//!
//! Query parameters are a struct made by `parameters!` ([`query`]); lists take [`Paging`], alone or within it, and answer [`List`]. Two
//! answers are [`Either`] of them. What moves money by itself says `.key_required()` (an `Idempotency-Key`). What runs a connector says
//! `.runs_connector()`, what charges says `.billed()` and asks [`idempotency::once`] itself (take [`RawBody`]). Execution of foreign assets
//! says `.any_company()`; the customer data route `.access(Access::Data)`. Uploads take [`Upload`]. A body that is JSON already is
//! answered as [`Prepared`], and one that is in the envelope of [`Data`] already as [`PreparedData`].

mod accepted;
mod acting;
pub mod alerts;
mod allotments;
pub mod analyze;
pub mod answer;
mod arriving;
pub mod assets;
pub mod audit;
pub mod backup;
pub mod body;
pub mod caller;
mod coming;
pub mod companies;
mod compression;
pub mod connections;
pub mod connectors;
mod cookies;
pub mod credits;
pub mod data;
pub mod describe;
pub mod endpoint_keys;
pub mod endpoints;
pub mod favorites;
pub mod fields;
pub mod files;
mod finish;
mod fitting;
mod gate;
pub mod idempotency;
mod ids;
pub mod integrations;
mod json;
pub mod keys;
pub mod large;
pub mod limiter;
pub mod marketplace;
pub mod money;
pub mod mounted;
pub mod nobody;
pub mod observed;
pub mod openapi;
pub mod operation;
mod outward;
mod pace;
pub mod path;
pub mod payments;
pub mod payouts;
mod period;
pub mod posts;
pub mod prices;
pub mod principal;
pub mod problem;
mod products;
pub mod publications;
pub mod purchases;
pub mod query;
mod reading;
pub mod reference;
pub mod refusals;
pub mod refused;
mod router;
pub mod routes;
pub mod runs;
pub mod schemas;
pub mod secrets;
pub mod sessions;
mod settings;
mod spelling;
mod standing;
mod state;
pub mod storage_engines;
pub mod system;
mod texts;
pub mod top_ups;
mod unread;
mod unwanted;
mod uploads;
pub mod users;
pub mod webhooks;
mod words;

pub use answer::{
    Accepted, All, AnyObject, Created, CreatedOnce, Data, DataOnce, Deleted, Found, Grouped, List,
    Prepared, PreparedData, Ran, Slice, Whole,
};
pub use body::{AsSent, Body, Change, Changes, Media, Nothing, OptionalBody, RawBody, Upload};
pub use caller::Caller;
pub use describe::Either;
pub use fields::{Line, Patch, Text};
pub use finish::unreadable;
pub use limiter::Shared as SharedLimits;
pub use nobody::NobodysRead;
pub use operation::{Access, Operation};
pub use path::Path;
pub use problem::{FieldError, Problem};
pub use query::{Integer, Open, Page, Paging, Query, SortOrder};
pub use router::Router;
pub use routes::Routes;
pub use settings::Settings;
pub use state::ApiState;

use souk_app::App;

/// Every operation of this host.
pub fn all() -> Routes {
    Routes::new()
        .merge(system::routes())
        .merge(companies::routes())
        .merge(audit::routes())
        .merge(users::routes())
        .merge(sessions::routes())
        .merge(secrets::routes())
        .merge(backup::routes())
        .merge(keys::routes())
        .merge(endpoint_keys::routes())
        .merge(prices::routes())
        .merge(purchases::routes())
        .merge(credits::routes())
        .merge(top_ups::routes())
        .merge(payments::routes())
        .merge(payouts::routes())
        .merge(webhooks::routes())
        .merge(alerts::routes())
        .merge(connections::routes())
        .merge(connectors::routes())
        .merge(favorites::routes())
        .merge(files::routes())
        .merge(posts::routes())
        .merge(integrations::routes())
        .merge(publications::routes())
        .merge(storage_engines::routes())
        .merge(reference::routes())
        .merge(assets::routes())
        .merge(analyze::routes())
        .merge(endpoints::routes())
        .merge(data::routes())
        .merge(marketplace::routes())
}

/// What every handler can reach.
pub fn state(app: App, settings: Settings) -> ApiState {
    ApiState::new(app, settings, all().limited())
}

/// The service: every operation behind its gate.
pub fn router(state: ApiState) -> Router {
    all().into_router(state)
}
