//! What is wrong with a document, in words that say nothing of its content.

use serde_json::Error;
use serde_json::error::Category;

/// Says where a document is wrong, and in which way: what an error's `detail` may tell of a source's answer. `serde` itself quotes a text that stands where
/// something else was expected, which may be anybody's data. A member that is missing, or there twice, is called by its name in the connector's own type.
pub fn what_is_wrong(error: &Error) -> String {
    let text = error.to_string();
    let of_member = ["missing field `", "duplicate field `"];
    let is_of_member = of_member.iter().any(|begins| text.starts_with(begins));
    let what = match error.classify() {
        Category::Data if is_of_member => text.split(" at line ").next().unwrap_or_default(),
        Category::Data => "a value of another type than was expected",
        Category::Eof => "it ends too early",
        Category::Syntax | Category::Io => "it is no JSON",
    };
    match error.line() {
        // Nobody knows where.
        0 => what.to_owned(),
        line => format!("{what}, line {line}, column {}", error.column()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::Error as _;

    /// A place is told where it is known, and no word of a value.
    #[test]
    fn places_are_told_and_no_content() {
        let error = serde_json::from_str::<Vec<u32>>("[1,\n \"hush\"]").unwrap_err();
        assert!(error.to_string().contains("hush"));
        assert_eq!(
            what_is_wrong(&error),
            format!(
                "a value of another type than was expected, line 2, column {}",
                error.column()
            )
        );
        for (error, told) in [
            (
                Error::custom("hush"),
                "a value of another type than was expected",
            ),
            (Error::missing_field("rows"), "missing field `rows`"),
            (Error::duplicate_field("rows"), "duplicate field `rows`"),
        ] {
            assert_eq!(what_is_wrong(&error), told);
        }
    }
}
