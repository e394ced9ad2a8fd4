//! How much a key may be used. Refuses to know where its hours are counted.

/// Requests per hour of a key for which none is given.
pub const KEY_LIMIT_DEFAULT: i64 = 1_000;
/// Requests per hour of a user who is signed in, in all sessions together: a console asks for several things a page.
pub const USER_LIMIT: u32 = 5_000;
pub const KEY_LIMIT_MAX: i64 = 1_000_000_000;
