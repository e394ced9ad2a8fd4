//! The connectors that ship with souk, as bytes.
//!
//! The host embeds components, never a connector's Rust code: a bundled connector goes through the
//! same checks and runs in the same sandbox as one that a seller uploads.

/// Name and component of every bundled connector, ordered by name.
pub fn bundle() -> &'static [(&'static str, &'static [u8])] {
    BUNDLE
}

static BUNDLE: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/bundle.rs"));
