//! Parts of an answer that are numbers, words or objects. Where a source sends a text in their place, `serde`'s own error would quote all of that, and
//! take several times its memory: an answer may be as long as a source likes.

use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Reader, twice};

/// What a number or a word has, as it is written.
const SCALAR_BYTES_MAX: usize = 64;
const A_TEXT: &str = "a text where none is expected";

/// Takes a number or a word that may stand once; `null` is none.
pub fn once_scalar<'a, T: Deserialize<'a>>(
    place: &mut Option<T>,
    from: &mut Reader<'a>,
) -> serde_json::Result<()> {
    if place.is_some() {
        return Err(twice());
    }
    if !from.null()? {
        *place = Some(of_scalar(from.raw()?)?);
    }
    Ok(())
}

/// The same of an object.
pub fn once_part<'a, T: Deserialize<'a>>(
    place: &mut Option<T>,
    from: &mut Reader<'a>,
) -> serde_json::Result<()> {
    if place.is_some() {
        return Err(twice());
    }
    let PartOrNone(part) = from.read()?;
    *place = part;
    Ok(())
}

/// Reads a document that is an object, of which parts may borrow.
pub fn read_part<'a, T: Deserialize<'a>>(document: &'a str) -> serde_json::Result<T> {
    let mut from = serde_json::Deserializer::from_str(document);
    let read = part(&mut from)?;
    from.end().map(|()| read)
}

/// A number or a word: for `#[serde(deserialize_with)]`, as what follows.
pub fn scalar<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    of_scalar(<&RawValue>::deserialize(from)?.get()).map_err(D::Error::custom)
}

/// An object.
pub fn part<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    part_or_none(from)?.ok_or_else(|| D::Error::custom("nothing where an object is expected"))
}

/// An object, or `null`.
pub fn part_or_none<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    from.deserialize_any(Part(PhantomData))
}

fn of_scalar<'a, T: Deserialize<'a>>(raw: &'a str) -> serde_json::Result<T> {
    match raw.len() {
        // Nor is a short one told: it may be anybody's name.
        0..=SCALAR_BYTES_MAX => serde_json::from_str(raw)
            .map_err(|error| serde_json::Error::custom(super::what_is_wrong(&error))),
        _ => Err(serde_json::Error::custom(A_TEXT)),
    }
}

struct PartOrNone<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PartOrNone<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PartOrNone<T>, D::Error> {
        part_or_none(from).map(PartOrNone)
    }
}

struct Part<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Part<T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Option<T>, E> {
        Err(E::custom(A_TEXT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::members;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Place {
        #[serde(default, deserialize_with = "scalar")]
        line: u32,
        #[serde(default, deserialize_with = "part_or_none")]
        inner: Option<Box<Place>>,
    }

    /// What two members say: a number, and an object.
    fn read(document: &str) -> Result<(Option<u32>, Option<Place>), String> {
        let (mut number, mut place) = (None, None);
        let read = members(document.as_bytes(), |name, from| match name {
            "n" => once_scalar(&mut number, from),
            "p" => once_part(&mut place, from),
            _ => from.skip(),
        });
        read.map(|()| (number, place))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn parts_are_what_they_are() {
        let place = |line, inner: Option<Place>| Place {
            line,
            inner: inner.map(Box::new),
        };
        assert_eq!(read("{}"), Ok((None, None)));
        assert_eq!(read(r#"{"n": null ,"p": null }"#), Ok((None, None)));
        assert_eq!(
            read(r#"{"n": 7 ,"p":{"line":1,"inner":{"line":2,"inner":null}}}"#),
            Ok((Some(7), Some(place(1, Some(place(2, None))))))
        );
        for twice in [r#"{"n":7,"n":8}"#, r#"{"p":{},"p":{}}"#] {
            assert!(read(twice).unwrap_err().contains("twice"), "{twice}");
        }
        let read = read_part::<Place>(" {\"line\":3} ").unwrap();
        assert_eq!(read, place(3, None));
    }

    /// Whatever stands in their place, and however long it is, little of it is told.
    #[test]
    fn texts_in_their_place_are_not_quoted() {
        let long = "secret".repeat(10_000);
        for document in [
            format!(r#"{{"n":"{long}"}}"#),
            format!(r#"{{"p":"{long}"}}"#),
            format!(r#"{{"p":"\n{long}"}}"#),
            format!(r#"{{"p":{{"line":"{long}"}}}}"#),
            format!(r#"{{"p":{{"inner":"{long}"}}}}"#),
        ] {
            let error = read(&document).unwrap_err();
            assert!(!error.contains("secret") && error.len() < 200, "{error}");
        }
        for short in ["hush", "-7.5"] {
            let error = read(&format!(r#"{{"n":"{short}"}}"#)).unwrap_err();
            assert!(!error.contains(short), "{error}");
        }
        let error = read_part::<Place>(&format!("\"{long}\"")).unwrap_err();
        assert!(!error.to_string().contains("secret"));
        for broken in ["null", "7", "[]", "{} {}", "{"] {
            assert!(read_part::<Place>(broken).is_err(), "{broken}");
        }
    }
}
