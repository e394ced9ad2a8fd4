//! Email addresses, as far as they can be judged without sending anything.

/// The longest address that SMTP carries.
pub const EMAIL_CHARS_MAX: usize = 254;
/// The longest part before the `@`.
const LOCAL_CHARS_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an email address: name@example.org")]
pub struct EmailError;

/// The address as it is kept and compared, in lower case. Quoted names, which nobody has, and what would end a header are refused.
pub fn parse_email(text: &str) -> Result<String, EmailError> {
    let (local, domain) = text.split_once('@').ok_or(EmailError)?;
    let is_dotted = |part: &str, max: usize, may: fn(char) -> bool| {
        part.chars().count() <= max
            && part
                .split('.')
                .all(|atom| !atom.is_empty() && atom.chars().all(may))
    };
    let in_local = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    let in_domain = |c: char| c.is_alphanumeric() || c == '-';
    let is_address = is_dotted(local, LOCAL_CHARS_MAX, in_local)
        && is_dotted(domain, EMAIL_CHARS_MAX, in_domain);
    match is_address && text.chars().count() <= EMAIL_CHARS_MAX {
        true => Ok(text.to_lowercase()),
        false => Err(EmailError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Real addresses are kept in one spelling; what is none, or would smuggle something into a message, is refused.
    #[test]
    fn addresses_are_told_from_other_texts() {
        for (given, kept) in [
            ("Ann.Lee+souk@Example.ORG", "ann.lee+souk@example.org"),
            ("o'neill@localhost", "o'neill@localhost"),
            ("jörg@müller.de", "jörg@müller.de"),
        ] {
            assert_eq!(parse_email(given).as_deref(), Ok(kept));
        }
        let long = format!("{}@example.org", "a".repeat(65));
        for wrong in [
            "",
            "ann",
            "@example.org",
            "ann@",
            "ann@@example.org",
            "ann@example..org",
            ".ann@example.org",
            "ann lee@example.org",
            "ann@example.org\r\nBcc: bob@example.org",
            "ann@example.org,bob@example.org",
            "<ann@example.org>",
            "\"ann\"@example.org",
            &long,
        ] {
            assert_eq!(parse_email(wrong), Err(EmailError), "{wrong}");
        }
    }
}
