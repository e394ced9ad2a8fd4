//! What a connector reads out of the texts of statements, kept for those that come again: a seller's statement is asked thousands of times, with
//! other values each time.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::Error;

/// Texts that are known; past it the oldest is read anew.
const TEXTS_MAX: usize = 64;
/// A longer one is read each time: together they take no more than a megabyte, and what is read out of them.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// What was read out of the newest texts. Nothing but a text decides what that is.
pub struct Texts<T> {
    known: VecDeque<(Box<str>, Rc<T>)>,
}

impl<T> Default for Texts<T> {
    fn default() -> Texts<T> {
        Texts {
            known: VecDeque::new(),
        }
    }
}

impl<T> Texts<T> {
    /// What `read` reads out of a text, or has read out of it before. What it refuses is asked about anew each time.
    pub fn read(
        &mut self,
        text: &str,
        read: impl FnOnce(&str) -> Result<T, Error>,
    ) -> Result<Rc<T>, Error> {
        let mut known = self.known.iter();
        if let Some((_, known)) = known.find(|(known, _)| **known == *text) {
            return Ok(known.clone());
        }
        let new = Rc::new(read(text)?);
        if text.len() <= TEXT_BYTES_MAX {
            if self.known.len() == TEXTS_MAX {
                self.known.pop_front();
            }
            self.known.push_back((text.into(), new.clone()));
        }
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The newest are read once; what is refused, and what is long, each time.
    #[test]
    fn the_newest_are_known() {
        let mut texts = Texts::default();
        let mut is_new = |text: &str| {
            let mut is_new = false;
            let read = texts.read(text, |text| {
                is_new = true;
                match text.starts_with('!') {
                    true => Err(Error::source_failed("refused", "refused")),
                    false => Ok(text.to_owned()),
                }
            });
            assert!(read.is_ok_and(|read| *read == text) || text.starts_with('!'));
            is_new
        };
        for number in 0..TEXTS_MAX {
            assert!(is_new(&number.to_string()) && !is_new(&number.to_string()));
        }
        assert!(!is_new("0"));
        assert!(is_new("more") && is_new("0") && !is_new("more") && !is_new("2"));
        assert!(is_new("!") && is_new("!"));
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert!(is_new(&long) && is_new(&long) && !is_new("2"));
    }
}
