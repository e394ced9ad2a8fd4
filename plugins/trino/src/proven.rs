//! Statements that a transaction which only reads has let pass: asked once more they need none. What a statement may do is in its text, and a
//! session is asked in the name of one user, of one catalog and schema; values stand behind the text and are no part of it.

use std::collections::VecDeque;

/// Past it the oldest is asked in a transaction once more.
const TEXTS_MAX: usize = 64;
/// A longer one always is: together they take no more than a megabyte.
const TEXT_BYTES_MAX: usize = 16 << 10;

#[derive(Default)]
pub struct Proven(VecDeque<String>);

impl Proven {
    pub fn has(&self, text: &str) -> bool {
        self.0.iter().any(|known| known == text)
    }

    pub fn add(&mut self, text: String) {
        if text.len() > TEXT_BYTES_MAX || self.has(&text) {
            return;
        }
        if self.0.len() == TEXTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_known() {
        let mut proven = Proven::default();
        for number in 0..TEXTS_MAX {
            proven.add(number.to_string());
            proven.add(number.to_string());
        }
        assert!(proven.has("0"));
        proven.add("new".to_owned());
        assert!(!proven.has("0") && proven.has("1") && proven.has("new"));
        proven.add("x".repeat(TEXT_BYTES_MAX + 1));
        assert_eq!(proven.0.len(), TEXTS_MAX);
    }
}
