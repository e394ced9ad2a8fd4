//! Who did something, as records name it.

use crate::ids::{IdError, KeyId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Who acts. Its text is an id, whose prefix says of which kind it is: another kind is another arm here, and another prefix in
/// [`Actor::parse`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Actor {
    Key(KeyId),
}

impl Actor {
    pub fn parse(text: &str) -> Result<Actor, IdError> {
        KeyId::parse(text).map(Actor::Key)
    }

    pub fn as_str(&self) -> &str {
        match self {
            Actor::Key(key) => key.as_str(),
        }
    }
}

impl From<KeyId> for Actor {
    fn from(key: KeyId) -> Actor {
        Actor::Key(key)
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Actor {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Actor, IdError> {
        Actor::parse(text)
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Actor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Actor, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Actor::parse(&text).map_err(serde::de::Error::custom)
    }
}
