//! What the connector says to a coordinator, and what it makes of what that says.

#[path = "../common/mod.rs"]
mod common;
mod errors;
mod pages;
mod statements;

use common::{PATH, Talk, ended, raw, text};

/// That a statement which goes on here is stopped, and its transaction ended.
fn stops(talk: &mut Talk, next: Option<u32>) {
    if let Some(next) = next {
        let stop = &talk.asked[0];
        assert_eq!(stop.method, "DELETE");
        assert_eq!(stop.path, format!("{PATH}{next}"));
        talk.hears(0, raw(204, &[], "")).unwrap();
    }
    assert_eq!(text(&talk.asked[0]), "ROLLBACK");
    talk.hears(0, ended()).unwrap();
}
