//! Who did something, as records name it.

use crate::ids::{AlertId, IdError, KeyId, UserId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What companies are told in place of the id of a key or user of the platform's staff that has acted in them.
pub const STAFF: &str = "staff";

/// Who acts. Its text is an id, whose prefix says of which kind it is: another kind is another arm here, and another prefix in
/// [`Actor::parse`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Actor {
    Key(KeyId),
    /// Who is signed in, in whichever session.
    User(UserId),
    /// An alert, which runs its asset by itself.
    Alert(AlertId),
}

impl Actor {
    pub fn parse(text: &str) -> Result<Actor, IdError> {
        match text.split_once('_') {
            Some((UserId::PREFIX, _)) => UserId::parse(text).map(Actor::User),
            Some((AlertId::PREFIX, _)) => AlertId::parse(text).map(Actor::Alert),
            _ => KeyId::parse(text).map(Actor::Key),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Actor::Key(key) => key.as_str(),
            Actor::User(user) => user.as_str(),
            Actor::Alert(alert) => alert.as_str(),
        }
    }
}

impl From<KeyId> for Actor {
    fn from(key: KeyId) -> Actor {
        Actor::Key(key)
    }
}

impl From<UserId> for Actor {
    fn from(user: UserId) -> Actor {
        Actor::User(user)
    }
}

impl From<AlertId> for Actor {
    fn from(alert: AlertId) -> Actor {
        Actor::Alert(alert)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A record names a user or a key, and reads back as what was written.
    #[test]
    fn an_actor_is_told_by_its_prefix() {
        let (user, key) = (UserId::generate(), KeyId::generate());
        assert_eq!(Actor::parse(user.as_str()), Ok(Actor::User(user)));
        assert_eq!(Actor::parse(key.as_str()), Ok(Actor::Key(key)));
        assert!(matches!(Actor::parse("usrkey"), Ok(Actor::Key(_))));
    }
}
