//! Handles of companies and slugs of products: one DNS label each, because a handle is a subdomain.

/// A DNS label.
pub const SLUG_CHARS_MAX: usize = 63;

/// Labels that the service needs for itself as subdomains or path segments.
const RESERVED: &[&str] = &[
    "admin",
    "api",
    "app",
    "assets",
    "auth",
    "cdn",
    "companies",
    "console",
    "connectors",
    "docs",
    "endpoints",
    "ftp",
    "health",
    "help",
    "mail",
    "marketplace",
    "platform",
    "smtp",
    "souk",
    "static",
    "status",
    "support",
    "v1",
    "v2",
    "webhooks",
    "www",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SlugError {
    #[error("has 1 to 63 characters of a-z, 0-9 and -, and neither begins nor ends with -")]
    Shape,
    #[error("is reserved")]
    Reserved,
}

/// Checks a slug of an asset or endpoint.
pub fn check_slug(text: &str) -> Result<(), SlugError> {
    let shape = (1..=SLUG_CHARS_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-');
    if shape { Ok(()) } else { Err(SlugError::Shape) }
}

/// Checks a company's handle: a slug that is not reserved and not punycode.
pub fn check_handle(text: &str) -> Result<(), SlugError> {
    check_slug(text)?;
    if text.starts_with("xn--") || RESERVED.contains(&text) {
        Err(SlugError::Reserved)
    } else {
        Ok(())
    }
}

/// A slug made from a name: lower case, everything else becomes one `-`. `None` when nothing of the name can be kept.
pub fn slug_from(name: &str) -> Option<String> {
    let mut slug = String::with_capacity(name.len().min(SLUG_CHARS_MAX));
    for character in name.chars() {
        if slug.len() == SLUG_CHARS_MAX {
            break;
        }
        match character.to_ascii_lowercase() {
            kept @ ('a'..='z' | '0'..='9') => slug.push(kept),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        None
    } else {
        Some(slug.to_owned())
    }
}

/// `slug` with `-number` appended, shortened so that it stays a label: what to try when a slug is taken.
pub fn numbered(slug: &str, number: u32) -> String {
    let suffix = format!("-{number}");
    let keep = slug.len().min(SLUG_CHARS_MAX - suffix.len());
    format!("{}{suffix}", slug[..keep].trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is made from a name passes the check.
    #[test]
    fn made_slugs_are_valid() {
        for (name, slug) in [
            ("Daily Revenue (EU)", "daily-revenue-eu"),
            ("  x  ", "x"),
            ("Größe", "gr-e"),
        ] {
            assert_eq!(slug_from(name).as_deref(), Some(slug));
            assert_eq!(check_slug(slug), Ok(()));
        }
        assert_eq!(slug_from("***"), None);
        let long = slug_from(&"a".repeat(200)).unwrap();
        assert_eq!(check_slug(&numbered(&long, 12)), Ok(()));
    }

    /// A handle is a subdomain, so reserved ones are refused.
    #[test]
    fn handles_are_labels() {
        assert_eq!(check_handle("acme"), Ok(()));
        assert_eq!(check_handle("api"), Err(SlugError::Reserved));
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", &"a".repeat(64)] {
            assert_eq!(check_handle(bad), Err(SlugError::Shape), "{bad}");
        }
    }
}
