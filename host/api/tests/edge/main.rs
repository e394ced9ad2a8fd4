//! The edge against a real SQLite store, in process: what every answer promises, and the resources that need no connector.
//!
//! Over real HTTP, with connectors and sources, the same API is tested in `tests/`.

mod alerts;
mod archived;
mod audit;
#[path = "../../../../tests/src/audited.rs"]
mod audited;
mod bodies;
mod browser;
mod caches;
mod companies;
mod connections;
#[path = "../../../../tests/src/contract.rs"]
mod contract;
mod described;
mod envelope;
mod favorites;
mod files;
mod foreign;
mod gate;
mod idempotency;
mod invitations;
mod keys;
mod limits;
mod marketplace;
mod money;
mod openapi;
mod payouts;
mod plans;
mod posts;
mod predictions;
mod prices;
mod product_details;
mod provider;
mod purchases;
mod reference;
mod schemas;
mod search;
mod sessions;
mod sign_in;
mod spelling;
mod staff;
mod standing;
mod statements;
mod statistics;
mod stripe;
mod top_ups;
mod unread;
mod uploads;
mod users;
mod webhooks;
mod wire;
mod world;
mod wrong_fields;
mod wrong_queries;
