//! Rules of posts: how long their parts may be, and how many there are.

use crate::slugs::{SLUG_CHARS_MAX, check_slug};
use url::Url;

/// A company that writes more has a blog of its own.
pub const POSTS_MAX: i64 = 1_000;
pub const TITLE_CHARS_MAX: usize = 200;
pub const SUMMARY_CHARS_MAX: usize = 1_000;
/// Some thirty pages.
pub const BODY_CHARS_MAX: usize = 50_000;
/// Of an image's address.
pub const URL_CHARS_MAX: usize = 2_000;
pub const TAGS_MAX: usize = 20;
pub const TAG_CHARS_MAX: usize = 50;
pub const ASSETS_MAX: usize = 20;
/// Readers of one post and day that are counted: whoever has a network of addresses does not fill the store with them.
pub const READERS_MAX: i64 = 100_000;

/// A slug made of a title: its letters and digits, as far as they are ASCII. Empty when it has none.
pub fn slug_of(title: &str) -> String {
    let mut slug = String::new();
    for character in title.chars() {
        match character.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9') => slug.push(letter),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
        if slug.len() >= SLUG_CHARS_MAX {
            break;
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// The slug of a post whose title's slug is taken: with something of its own behind it.
pub fn slug_with(slug: &str, own: &str) -> String {
    let own: String = own
        .chars()
        .rev()
        .filter(char::is_ascii_alphanumeric)
        .take(8)
        .collect::<String>()
        .to_ascii_lowercase();
    let room = SLUG_CHARS_MAX - own.len() - 1;
    let kept = slug[..slug.len().min(room)].trim_end_matches('-');
    match kept.is_empty() {
        true => own,
        false => format!("{kept}-{own}"),
    }
}

/// Whether a post may be called so in its address.
pub fn is_slug(text: &str) -> bool {
    check_slug(text).is_ok()
}

/// Whether an image may be there: under TLS, since it is shown to anybody, and without a secret in its address.
pub fn is_image_address(text: &str) -> bool {
    text.chars().count() <= URL_CHARS_MAX
        && Url::parse(text).is_ok_and(|url| {
            url.scheme() == "https"
                && url.host_str().is_some_and(|host| !host.is_empty())
                && url.username().is_empty()
                && url.password().is_none()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slug made of a title is one that could have been given, however long or strange the title is.
    #[test]
    fn titles_make_slugs() {
        for (title, slug) in [
            ("Goals, & more Goals!", "goals-more-goals"),
            ("  Été 2026 ", "t-2026"),
            ("東京", ""),
        ] {
            assert_eq!(slug_of(title), slug);
        }
        for title in ["a".repeat(300), "ab-".repeat(100), "x y".to_owned()] {
            let slug = slug_of(&title);
            assert!(is_slug(&slug), "{slug}");
            let with = slug_with(&slug, "pst_0123456789abcDEFGHIJKL");
            assert!(is_slug(&with), "{with}");
        }
        assert!(is_slug(&slug_with("", "pst_0123456789abcDEFGHIJKL")));
    }
}
