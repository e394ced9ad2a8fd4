//! Who says what the source does not: the kit's relay, which changes bytes on their way, or the source itself, by a door that was named for it.

use super::wire::relayed;
use crate::doors::Door;
use crate::profile::Place;
use crate::relay::{Mode, Relay, Spoilt};
use crate::subject::{KitError, Subject};

pub enum Liar {
    Relay(Relay),
    Door(Box<dyn Door>),
}

impl Liar {
    /// One of its own, and the place that leads to the source through it; or why there is none.
    pub async fn before(
        subject: &Subject,
        place: &Place,
    ) -> Result<Result<(Liar, Place), String>, KitError> {
        if let Some(open) = &subject.doors {
            let door = open()?;
            let through = door.place();
            return Ok(Ok((Liar::Door(door), through)));
        }
        let relayed = relayed(place).await?;
        Ok(relayed.map(|(relay, through)| (Liar::Relay(relay), through)))
    }

    /// From now on; `None`: the truth.
    pub fn tell(&self, lies: Option<Spoilt>) {
        match self {
            Liar::Relay(relay) => relay.set(lies.map_or(Mode::Pass, Mode::Spoilt)),
            Liar::Door(door) => door.spoil(lies.map(|lies| lies.seed)),
        }
    }

    /// Bytes that the source has said. A door knows by itself how long its answers are.
    pub fn heard(&self) -> usize {
        match self {
            Liar::Relay(relay) => relay.heard(),
            Liar::Door(_) => 0,
        }
    }

    /// Bytes, or answers, that were others.
    pub fn spoilt(&self) -> usize {
        match self {
            Liar::Relay(relay) => relay.spoilt(),
            Liar::Door(door) => door.spoilt(),
        }
    }
}
