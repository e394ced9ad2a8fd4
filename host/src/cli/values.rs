//! What settings may be that are neither a text nor a number.

use clap::ValueEnum;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum PaymentProvider {
    Manual,
    Stripe,
    Instant,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Auto,
    Text,
    Json,
}

/// A network, as an operator writes it.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    text.parse().map_err(|_| {
        format!("{text:?} is not a network like 10.1.0.0/16, or 192.0.2.7/32 for one address")
    })
}

pub(super) fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parse = |text: &String| network(text).map_err(serde::de::Error::custom);
    texts.iter().map(parse).collect()
}
