//! The small types that make fields valid by having them.

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use souk_domain::names::breaks_lines;

/// A text of `MIN` to `MAX` characters without NUL, which no store keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Text<const MIN: usize, const MAX: usize>(String);

impl<const MIN: usize, const MAX: usize> Text<MIN, MAX> {
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let is_blank = MIN > 0 && text.trim().is_empty();
        let fits = (MIN..=MAX).contains(&text.chars().count()) && !text.contains('\0');
        (fits && !is_blank).then_some(Text(text))
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl<const MIN: usize, const MAX: usize> std::ops::Deref for Text<MIN, MAX> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de, const MIN: usize, const MAX: usize> Deserialize<'de> for Text<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom(format!("must be a text of {MIN} to {MAX} characters"));
        Text::new(text).ok_or_else(wrong)
    }
}

/// The same of one line: a name, which stands in the midst of others' texts and mails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Line<const MIN: usize, const MAX: usize>(Text<MIN, MAX>);

impl<const MIN: usize, const MAX: usize> Line<MIN, MAX> {
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text: Text<MIN, MAX> = Text::new(text)?;
        (!text.chars().any(breaks_lines)).then_some(Line(text))
    }

    pub fn into_string(self) -> String {
        self.0.into_string()
    }
}

impl<const MIN: usize, const MAX: usize> std::ops::Deref for Line<MIN, MAX> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de, const MIN: usize, const MAX: usize> Deserialize<'de> for Line<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || {
            D::Error::custom(format!(
                "must be a text of {MIN} to {MAX} characters in one line, without control characters"
            ))
        };
        Line::new(text).ok_or_else(wrong)
    }
}

/// A member that may be left out, and is not `null`: `null` would say neither what it is nor that it stays. Needs `#[serde(default)]`.
pub fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A field of a PATCH: left out, `null`, or a value. Needs `#[serde(default)]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    #[default]
    Absent,
    Null,
    Value(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<T>::deserialize(deserializer)?.map_or(Patch::Null, Patch::Value))
    }
}

pub(crate) const WEB_ADDRESS_WANTED: &str = "must be an https:// or http:// address";

/// Other schemes run scripts where the address becomes a link.
pub(crate) fn is_web_address(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let is_plain = !url.chars().any(|c| c.is_whitespace() || c.is_control());
    is_plain && rest.is_some_and(|rest| !rest.is_empty())
}
