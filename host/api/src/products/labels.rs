//! Industries, use cases and tags, as one text in the store.

use serde::{Deserialize, Serialize};

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Labels {
    pub industry_ids: Vec<i64>,
    pub use_case_ids: Vec<i64>,
    pub tags: Vec<String>,
}

impl Labels {
    pub fn stored(text: &str) -> Labels {
        serde_json::from_str(text).unwrap_or_default()
    }
}
