//! When to look whether a statement has ended that its source runs by itself, and of whose end it tells nobody who does not ask.
//!
//! Between two looks is a quarter of the time that was waited so far: an end is noticed a quarter later at most. Of a text that was waited for
//! before, the first look comes after half of the time that it took last, so that a short one is not waited for longer than it takes; one comes
//! when that time is over, and the next ones at a sixteenth of it.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

const PART: u32 = 4;
/// Of the time that a statement took last, while it is expected to end.
const PART_NEAR: u32 = 16;
const PAUSE_MIN_MS: u32 = 10;
const PAUSE_NEAR_MIN_MS: u32 = 5;
const PAUSE_MAX_MS: u32 = 1_000;
/// The first pause of a statement of which nothing is known.
const FIRST_MS: u32 = 10;
/// No first one is longer: values may make of a long statement a short one.
const FIRST_MAX_MS: u32 = 100;
/// Statements that are remembered.
const KNOWN_MAX: usize = 64;

/// How long statements took, in pauses: there is no other clock.
#[derive(Debug, Default)]
pub struct Looks {
    known: VecDeque<(u64, u32)>,
}

/// The looks after one statement.
#[derive(Clone, Debug, Default)]
pub struct Look {
    text: u64,
    /// How long its text took last.
    took_ms: Option<u32>,
    waited_ms: u32,
    /// What was waited before the last look but one.
    before_ms: u32,
}

impl Looks {
    /// Begins to wait for a statement of this text.
    pub fn begin(&self, text: &str) -> Look {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let text = hasher.finish();
        let known = self.known.iter().find(|(known, _)| *known == text);
        Look {
            text,
            took_ms: known.map(|(_, took_ms)| *took_ms),
            waited_ms: 0,
            before_ms: 0,
        }
    }

    /// The statement has ended: the next one of its text will be looked after accordingly.
    pub fn ended(&mut self, look: &Look) {
        if look.waited_ms == 0 {
            return;
        }
        // Between the look that found it running and the one that did not.
        let took_ms = look.before_ms.midpoint(look.waited_ms).max(1);
        let known = &mut self.known;
        match known.iter_mut().find(|(text, _)| *text == look.text) {
            Some((_, known_ms)) => *known_ms = took_ms,
            None => {
                if known.len() == KNOWN_MAX {
                    known.pop_front();
                }
                known.push_back((look.text, took_ms));
            }
        }
    }
}

impl Look {
    /// How long to wait before the next one, in milliseconds.
    pub fn pause_ms(&mut self) -> u32 {
        let pause = match self.waited_ms {
            0 => self.first_ms(),
            waited => self.next_ms(waited),
        };
        self.before_ms = self.waited_ms;
        self.waited_ms = self.waited_ms.saturating_add(pause);
        pause
    }

    fn first_ms(&self) -> u32 {
        self.took_ms
            .map_or(FIRST_MS, |took| (took / 2).clamp(1, FIRST_MAX_MS))
    }

    fn next_ms(&self, waited: u32) -> u32 {
        let pause = (waited / PART).clamp(PAUSE_MIN_MS, PAUSE_MAX_MS);
        match self.took_ms {
            Some(took) if waited < took => pause.min(took - waited),
            Some(took) if waited - took < (took / PART).max(PAUSE_MIN_MS) => {
                (took / PART_NEAR).clamp(PAUSE_NEAR_MIN_MS, pause)
            }
            _ => pause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks after a statement that takes so long, and how long after its end it is noticed.
    fn noticed(looks: &mut Looks, took_ms: u32) -> (usize, u32) {
        let (mut look, mut count) = (looks.begin("SELECT 1"), 0);
        while look.waited_ms < took_ms {
            look.pause_ms();
            count += 1;
        }
        looks.ended(&look);
        (count, look.waited_ms - took_ms)
    }

    /// A minute's statement takes some ninety looks, a short one is noticed at once.
    #[test]
    fn who_runs_is_looked_after_less_and_less_often() {
        for took in [1, 10, 100, 1_000, 60_000] {
            let (count, late) = noticed(&mut Looks::default(), took);
            assert!(
                late <= 10.max(took / 4) && count < 100,
                "{took}: {count}, {late}"
            );
        }
    }

    /// Of a text that is known there are fewer, and none that is later.
    #[test]
    fn what_is_known_is_looked_after_in_time() {
        let mut looks = Looks::default();
        let (first, _) = noticed(&mut looks, 200);
        let (second, late) = noticed(&mut looks, 200);
        assert!(second < first && late <= 50, "{first}, {second}, {late}");
        // It may take a little more or less each time.
        for took in [2, 3, 7, 15, 60, 64, 57, 60, 100, 97, 104, 1_000, 980] {
            let mut looks = Looks::default();
            for _ in 0..8 {
                noticed(&mut looks, took);
            }
            let (count, late) = noticed(&mut looks, took);
            assert!(
                late <= 5.max(took / 16) && count <= 14,
                "{took}: {count}, {late}"
            );
        }
        // One that ends at once.
        for _ in 0..8 {
            noticed(&mut looks, 1);
        }
        assert_eq!(noticed(&mut looks, 1), (1, 0));
        // One that was long keeps nobody waiting for long.
        noticed(&mut looks, 60_000);
        assert!(noticed(&mut looks, 1).1 < FIRST_MAX_MS);
        assert_eq!(looks.begin("SELECT 2").pause_ms(), FIRST_MS);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut looks = Looks::default();
        for number in 0..=KNOWN_MAX {
            let mut look = looks.begin(&number.to_string());
            look.pause_ms();
            looks.ended(&look);
        }
        assert_eq!(looks.known.len(), KNOWN_MAX);
        assert_eq!(looks.begin("0").took_ms, None);
        assert_eq!(looks.begin("1").took_ms, Some(FIRST_MS / 2));
    }
}
