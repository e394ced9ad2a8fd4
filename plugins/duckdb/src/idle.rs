//! Connections that a statement has left, for the next one. There are some only while the session is asked other things, or will be told when it is
//! not any more: else it may end none then, and a server keeps for ever what nobody ends.

use crate::outgoing::UNDER_WAY_MAX;

/// So many are kept at once, what is more is ended as soon as it is left: as many as there are statements under way, of which with fewer each of the others
/// would open one and end it. And so many ends are sent at once when nobody asks for anything any more.
const KEPT_MAX: usize = UNDER_WAY_MAX;
/// For so many seconds at the most: until the next statement the transaction of one that was not asked alone is open, which keeps old versions of rows.
const KEPT_S: u64 = 2;

/// A connection that a statement has left.
#[derive(Debug, PartialEq)]
pub struct Left {
    pub connection: String,
    /// Its clocks were put to UTC.
    pub is_in_utc: bool,
    /// In the statement's transaction, which was not ended.
    pub is_within: bool,
}

#[derive(Default)]
pub struct Idle {
    /// With the time at which each was left, the last one behind all others.
    kept: Vec<(Left, u64)>,
}

impl Idle {
    pub fn has_room(&self) -> bool {
        self.kept.len() < KEPT_MAX
    }

    pub fn keep(&mut self, left: Left, now: u64) {
        self.kept.push((left, now));
    }

    /// The one that was left last.
    pub fn take(&mut self) -> Option<Left> {
        self.kept.pop().map(|(left, _)| left)
    }

    /// Lets those go that were left too long ago. The host's clock may fall.
    pub fn old(&mut self, now: u64) -> Vec<String> {
        let is_old = |since: u64| !(since..=since.saturating_add(KEPT_S)).contains(&now);
        let old = self.kept.extract_if(.., |(_, since)| is_old(*since));
        old.map(|(left, _)| left.connection).collect()
    }

    /// Lets all go.
    pub fn all(&mut self) -> Vec<String> {
        let all = std::mem::take(&mut self.kept).into_iter();
        all.map(|(left, _)| left.connection).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(number: usize) -> Left {
        Left {
            connection: number.to_string(),
            is_in_utc: number == 3,
            is_within: number != 2,
        }
    }

    #[test]
    fn the_last_is_the_next() {
        let mut idle = Idle::default();
        for (number, now) in [10, 11, 12, 12].into_iter().enumerate() {
            assert!(idle.has_room());
            idle.keep(left(number), now);
        }
        assert_eq!(idle.take(), Some(left(3)));
        assert!(idle.old(12).is_empty());
        assert_eq!(idle.old(13), ["0"]);
        assert_eq!(idle.old(11), ["2"]);
        assert_eq!(idle.all(), ["1"]);
        assert_eq!(idle.take(), None);
        (0..KEPT_MAX).for_each(|number| idle.keep(left(number), 0));
        assert!(!idle.has_room());
    }
}
