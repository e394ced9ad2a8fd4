//! Flows that span several transactions, or a transaction and a connector: executing, publishing,
//! testing a connection, receiving a file.
//!
//! Refuses to know how it is asked (`api` has routes, headers and the statuses of answers), SQL (`store` writes) and wasmtime
//! (`sandbox` runs). HTTP is spoken to payment and identity providers, webhooks and object stores only, SMTP to the operator's relay. No transaction is ever open across a connector's call. Start reading at [`App`].

pub mod alerts;
mod app;
mod background;
pub mod backup;
mod binding;
pub mod bounds;
pub mod claims;
pub mod connections;
pub mod connectors;
pub mod definition;
mod destinations;
pub mod detached;
pub mod earnings;
pub mod execute;
pub mod failure;
pub mod fetch;
pub mod files;
pub mod forecast;
pub mod identity;
pub mod integrations;
mod leases;
mod lines;
pub mod mail;
mod members;
pub mod payments;
pub mod payouts;
pub mod preview;
pub mod products;
mod protected;
pub mod publications;
pub mod publish;
mod readers;
pub mod release;
pub mod run;
pub mod scan;
pub mod settle;
#[cfg(test)]
mod tls_server;
pub mod webhooks;
pub mod wording;

pub use app::{App, Clock, Parts};
pub use background::Background;
pub use bounds::CompanyBounds;
pub use protected::AddressError;
/// For whose call a flow runs.
pub use souk_outbound::{context, spans};
