//! Text where a platform reads markup.

/// The text itself, as HTML and Slack's messages write it. For what stands between tags, not in them.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
