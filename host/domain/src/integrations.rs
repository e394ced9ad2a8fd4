//! Rules of integrations: where a company's posts are published besides, and with what. Which settings a platform asks for
//! is its publisher's business; that they are given, once, and nothing else, is decided here.
//!
//! Refuses to know: how anything is sealed or stored, whether an address may be dialled. Start at [`check`].

use std::collections::BTreeMap;

use crate::connections::check_base_url;
use crate::fields::{FieldError, FieldErrors};

/// Blogs, chats and receivers; a company with more has a system of its own behind one.
pub const INTEGRATIONS_MAX: i64 = 20;
pub const NAME_CHARS_MAX: usize = 255;
/// Of one setting whose platform says nothing else: a key file would fit.
pub const SETTING_CHARS_MAX: usize = 4_000;
/// What the host keeps to itself: the one address that the publisher's requests go to.
pub const BASE_URL: &str = "base_url";

/// One setting that a platform asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    /// A credential: sealed, and never shown again.
    pub is_secret: bool,
    pub is_required: bool,
    pub chars_min: usize,
    pub chars_max: usize,
}

/// Settings by their names.
pub type Texts = BTreeMap<String, String>;

/// An integration as a client describes it. Absent: the stored ones stay.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    pub name: String,
    pub config: Texts,
    pub credentials: Option<Texts>,
}

/// One that obeys the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub name: String,
    /// Without [`BASE_URL`].
    pub config: Texts,
    pub base_url: String,
    pub credentials: Option<Texts>,
}

/// Checks a draft against what its platform asks for, and names all that is wrong.
pub fn check(asked: &[Setting], draft: &Draft) -> Result<Checked, Vec<FieldError>> {
    let mut errors = FieldErrors::default();
    let name = check_name(&draft.name, &mut errors);
    check_settings("config", asked, false, &draft.config, &mut errors);
    if let Some(credentials) = &draft.credentials {
        check_settings("credentials", asked, true, credentials, &mut errors);
    }
    let mut config = draft.config.clone();
    let base_url = match config.remove(BASE_URL).as_deref().map(check_base_url) {
        Some(Ok(base_url)) => base_url,
        Some(Err(message)) => {
            errors.add("config.base_url", "format", message);
            String::new()
        }
        None => {
            let message = "base_url is required: https://host[:port][/path]";
            errors.add("config.base_url", "required", message);
            String::new()
        }
    };
    errors.or(Checked {
        name,
        config,
        base_url,
        credentials: draft.credentials.clone(),
    })
}

/// The rules that hold whatever the platform is.
pub fn check_name(name: &str, errors: &mut FieldErrors) -> String {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.contains('\0') {
        let message = format!("name must have 1 to {NAME_CHARS_MAX} characters, and no NUL");
        errors.add("name", "length", message);
    }
    name.to_owned()
}

fn check_settings(
    member: &str,
    asked: &[Setting],
    secret: bool,
    given: &Texts,
    errors: &mut FieldErrors,
) {
    let asked = || {
        asked
            .iter()
            .filter(|one| one.is_secret == secret && one.name != BASE_URL)
    };
    for setting in asked() {
        let field = format!("{member}.{}", setting.name);
        let (min, max) = (setting.chars_min, setting.chars_max);
        match given.get(&setting.name) {
            None if setting.is_required => errors.add(field, "required", "is required"),
            None => {}
            // What stands in headers and paths must not break them.
            Some(text)
                if !(min..=max).contains(&text.chars().count())
                    || text.chars().any(char::is_control) =>
            {
                let message = format!("must be a text of {min} to {max} characters in one line");
                errors.add(field, "invalid", message);
            }
            Some(_) => {}
        }
    }
    let unknown = given
        .keys()
        .filter(|name| *name != BASE_URL || secret)
        .filter(|name| !asked().any(|setting| setting.name == **name));
    for name in unknown {
        let known: Vec<&str> = asked().map(|setting| setting.name.as_str()).collect();
        let message = match known.is_empty() {
            true => "this platform has no such setting".to_owned(),
            false => format!(
                "this platform has no such setting here, only {}",
                known.join(", ")
            ),
        };
        errors.add(format!("{member}.{name}"), "unknown", message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Vec<Setting> {
        let setting = |name: &str, is_secret, is_required| Setting {
            name: name.to_owned(),
            is_secret,
            is_required,
            chars_min: 1,
            chars_max: 10,
        };
        vec![
            setting(BASE_URL, false, true),
            setting("path", false, false),
            setting("secret", true, true),
        ]
    }

    fn texts(pairs: &[(&str, &str)]) -> Texts {
        let pairs = pairs.iter();
        pairs
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    }

    fn fields(draft: &Draft) -> Vec<String> {
        let errors = check(&asked(), draft).unwrap_err();
        errors.into_iter().map(|error| error.field).collect()
    }

    /// The address is taken out of the settings, without its last slash.
    #[test]
    fn what_is_right_is_taken() {
        let draft = Draft {
            name: " blog ".into(),
            config: texts(&[("base_url", "https://example.com/blog/"), ("path", "/x")]),
            credentials: Some(texts(&[("secret", "s")])),
        };
        let checked = check(&asked(), &draft).unwrap();
        assert_eq!(checked.name, "blog");
        assert_eq!(checked.base_url, "https://example.com/blog");
        assert_eq!(checked.config, texts(&[("path", "/x")]));
    }

    /// All that is wrong is named: what is missing, too long, broken over lines, unknown, or a secret in the open.
    #[test]
    fn all_that_is_wrong_is_named() {
        let draft = Draft {
            name: String::new(),
            config: texts(&[("secret", "s"), ("path", "a\nb"), ("base_url", "ftp://x")]),
            credentials: Some(texts(&[("other", "x"), ("base_url", "https://x")])),
        };
        assert_eq!(
            fields(&draft),
            [
                "name",
                "config.path",
                "config.secret",
                "credentials.secret",
                "credentials.base_url",
                "credentials.other",
                "config.base_url"
            ]
        );
        let nothing = Draft::default();
        assert_eq!(fields(&nothing), ["name", "config.base_url"]);
    }
}
