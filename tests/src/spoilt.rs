//! What a server that lies sends: what a real one has sent, spoilt. The same in every run.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SEED: u64 = 0x50_17;
/// With more, little is read of an answer before it is refused.
const CHANGES_MAX: usize = 3;

pub struct Spoiler {
    random: StdRng,
    telling: &'static [u8],
}

impl Spoiler {
    /// `telling`: bytes that mean something in the protocol, lengths above all.
    pub fn new(telling: &'static [u8]) -> Spoiler {
        Spoiler::seeded(telling, SEED)
    }

    /// One of those that there are, the same for the same seed.
    pub fn seeded(telling: &'static [u8], seed: u64) -> Spoiler {
        Spoiler {
            random: StdRng::seed_from_u64(seed),
            telling,
        }
    }

    /// A number below this one, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end.max(1))
    }

    /// The record, with some bytes changed, cut out, put in or doubled. No part is empty.
    pub fn spoilt(&mut self, record: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut spoilt = record.to_vec();
        for _ in 0..1 + self.below(CHANGES_MAX) {
            let part = self.below(spoilt.len());
            self.spoil(&mut spoilt[part]);
        }
        spoilt
    }

    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        let telling = self.telling[self.below(self.telling.len())];
        match self.below(6) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = telling,
            2 => drop(bytes.drain(at..(at + 1 + self.below(8)).min(bytes.len()))),
            3 => bytes.truncate(at + 1),
            4 => bytes.insert(at, telling),
            _ => {
                let copy = bytes[at..(at + self.below(40)).min(bytes.len())].to_vec();
                bytes.extend(copy);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}
