//! What a session looks at again and again while it answers.

use crate::clock::Clock;
use crate::memory::Memory;

/// Rows that are computed at a time.
pub const ROWS: usize = 8_192;

#[derive(Debug)]
pub struct Watch {
    pub clock: Clock,
    pub memory: Memory,
}
