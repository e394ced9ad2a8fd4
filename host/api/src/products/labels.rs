//! Industries, use cases and tags, as one text in the store.

use super::check::{Errors, LABEL_CHARS_MAX};
use serde::{Deserialize, Serialize};
use souk_domain::reference::{ASSET_USE_CASES, industries, is_choice};

/// Entries of each.
const LABELS_MAX: usize = 50;

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

    /// As a seller gave them: ids are those of the reference lists, tags are short.
    pub fn given(
        errors: &mut Errors,
        industry_ids: Option<Vec<i64>>,
        use_case_ids: Option<Vec<i64>>,
        tags: Option<Vec<String>>,
    ) -> Labels {
        let labels = Labels {
            industry_ids: bounded(errors, "industry_ids", industry_ids),
            use_case_ids: bounded(errors, "use_case_ids", use_case_ids),
            tags: bounded(errors, "tags", tags),
        };
        let is_industry = |id: &i64| industries::industry(*id).is_some();
        if let Some(id) = labels.industry_ids.iter().find(|id| !is_industry(id)) {
            let message = format!("{id} is no industry: GET /industries lists the ids");
            errors.add("industry_ids", "unknown", message);
        }
        let is_use_case = |id: &i64| is_choice(ASSET_USE_CASES, *id);
        if let Some(id) = labels.use_case_ids.iter().find(|id| !is_use_case(id)) {
            let message = format!("{id} is no use case: GET /asset-use-cases lists the ids");
            errors.add("use_case_ids", "unknown", message);
        }
        let is_long = |tag: &String| tag.chars().count() > LABEL_CHARS_MAX;
        if labels.tags.iter().any(is_long) {
            let message = format!("must have at most {LABEL_CHARS_MAX} characters each");
            errors.add("tags", "too_long", message);
        }
        labels
    }
}

fn bounded<T>(errors: &mut Errors, field: &str, given: Option<Vec<T>>) -> Vec<T> {
    let given = given.unwrap_or_default();
    if given.len() > LABELS_MAX {
        let message = format!("must have at most {LABELS_MAX} entries");
        errors.add(field, "too_many", message);
    }
    given
}
