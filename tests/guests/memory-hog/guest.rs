//! Takes all the memory that it can get, and uses it.

use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct MemoryHog;

souk_guests::export!(MemoryHog);

impl Behaviour for MemoryHog {
    const NAME: &'static str = "memory-hog";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(MemoryHog)
    }

    fn query(&mut self, _id: u32, _query: Query, _step: &mut Step) -> Result<(), Error> {
        /// Small enough that the last one nearly fills what there is.
        const PIECE_BYTES: usize = 1 << 20;
        let mut pieces = Vec::new();
        loop {
            pieces.push(std::hint::black_box(vec![0xa5u8; PIECE_BYTES]));
        }
    }
}
