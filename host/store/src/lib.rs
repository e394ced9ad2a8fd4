//! Everything that lasts: companies, keys, sources, products, prices, and the ledger. The only place with SQL.
//!
//! Refuses to decide: rules are `souk-domain`'s, flows are `souk-app`'s. One file per subject, plain functions over a connection
//! (`&mut AnyConnection` to read, `&mut Write` to change). Start reading at [`db`].

mod accounts;
pub mod alerts;
pub mod audit;
pub mod backup;
mod bulk;
pub mod cache;
pub mod changes;
mod charge_log;
pub mod companies;
pub mod connections;
pub mod connectors;
pub mod days;
pub mod db;
pub mod deliveries;
pub mod disputes;
pub mod error;
mod events;
pub mod executions;
pub mod failures;
pub mod favorites;
pub mod fields;
pub mod files;
pub mod founding;
pub mod idempotency;
pub mod integrations;
pub mod invitations;
pub mod keys;
pub mod labels;
pub mod leases;
pub mod ledger;
pub mod lists;
pub mod marketplace;
pub mod maturity;
pub mod migrations;
pub mod nonces;
pub mod objects;
mod opening;
pub mod overview;
pub mod payment_events;
pub mod payouts;
#[cfg(test)]
mod plans;
pub mod posts;
pub mod prices;
pub mod products;
pub mod publications;
pub mod purchases;
pub mod recent;
pub mod reconciliation;
pub mod reference;
pub mod refunds;
pub mod resealing;
pub mod sales;
pub mod saved_schemas;
pub mod sealing;
pub mod search;
pub mod sessions;
pub mod shares;
pub mod statements;
pub mod teller;
pub mod times;
pub mod top_ups;
pub mod usage;
pub mod users;
pub mod uses;
pub mod webhooks;

pub use cache::{Cache, Cached};
pub use changes::{Change, Topic};
pub use db::{Db, OpenOptions, Read, Write};
pub use error::StoreError;
pub use fields::Fields;
pub use lists::{Listed, Part};
pub use sqlx::AnyConnection;
