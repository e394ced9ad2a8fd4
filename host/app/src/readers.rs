//! Who reads the answers: whether a company's clients have room for one more. `api` knows them.

/// Clients that read what they ask for, more or less quickly.
pub trait Readers: Sync {
    /// Room for an answer of so many bytes, held until it is on its way. `Err`: what they have not read is too much already, and how much may be.
    fn room(&self, bytes: u64) -> Result<Box<dyn Send>, Unread>;

    /// Counts an answer that is on its way to them, until it is dropped.
    fn hold(&self, bytes: u64) -> Box<dyn Send>;

    /// Counts what is there for them already and has not been asked for, until it is dropped. An answer that they ask for has as much room as without it.
    fn hold_ahead(&self, bytes: u64) -> Box<dyn Send>;

    /// Whether there is room for so many bytes that nobody has asked for yet, beside all that is counted.
    fn may_read_ahead(&self, bytes: u64) -> bool;
}

/// Answers that wait for their readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread {
    pub bytes: u64,
    pub bytes_max: u64,
}
