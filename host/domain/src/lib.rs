//! The rules of the marketplace as plain functions over plain values: ids, keys, roles, money, prices, limits, parameters.
//!
//! Refuses to know a clock (callers pass `now`), a database, a wire, JSON or an async runtime. Start reading at [`money`] and [`roles`].

pub mod actors;
pub mod alerts;
pub mod connections;
pub mod emails;
pub mod estimates;
pub mod fields;
pub mod ids;
pub mod integrations;
pub mod keys;
pub mod limits;
pub mod markdown;
pub mod moments;
pub mod money;
pub mod names;
pub mod numbers;
pub mod pages;
pub mod parameters;
pub mod payments;
pub mod plans;
pub mod posts;
pub mod prices;
pub mod products;
pub mod publications;
pub mod reference;
pub mod roles;
pub mod sessions;
pub mod slugs;
pub mod spelling;
pub mod sql;
pub mod throttle;
pub mod time;
pub mod webhooks;
pub mod words;
