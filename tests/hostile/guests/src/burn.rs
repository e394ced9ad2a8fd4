//! Processor time, as a guest can waste it: it has no clock, so time is counted in turns.

/// Turns in a millisecond, roughly: a turn takes about two nanoseconds on the machines of today.
const TURNS_PER_MS: u64 = 500_000;

/// Computes for about so many milliseconds.
pub fn burn_ms(milliseconds: u64) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..milliseconds * TURNS_PER_MS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    std::hint::black_box(state)
}

/// Never returns.
pub fn for_ever() -> ! {
    let mut turns = 0u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}
