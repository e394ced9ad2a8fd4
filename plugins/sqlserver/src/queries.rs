//! Texts that were read: that one is a query, and how many values it takes, follow from the text alone, and one is mostly asked with other values again.

use std::collections::HashMap;

use souk_sdk::Error;

use crate::statements;

/// When there are so many of them all are forgotten.
const TEXTS_MAX: usize = 64;
/// A longer one is read each time: together they take no more than a megabyte.
const TEXT_BYTES_MAX: usize = 16 << 10;

#[derive(Default)]
pub struct Queries(HashMap<String, usize>);

impl Queries {
    /// How many values a query takes; refused where it is none.
    pub fn places(&mut self, text: &str) -> Result<usize, Error> {
        if let Some(places) = self.0.get(text) {
            return Ok(*places);
        }
        statements::one_query(text)?;
        let places = statements::places(text)?;
        if text.len() <= TEXT_BYTES_MAX {
            if self.0.len() == TEXTS_MAX {
                self.0.clear();
            }
            self.0.insert(text.to_owned(), places);
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_never_known() {
        let mut queries = Queries::default();
        for _ in 0..2 {
            assert_eq!(queries.places("SELECT @P2, @P1").unwrap(), 2);
            assert!(queries.places("DELETE FROM t WHERE a = @P1").is_err());
        }
        assert_eq!(queries.0.len(), 1);
        for number in 0..2 * TEXTS_MAX {
            queries.places(&format!("SELECT {number}")).unwrap();
            assert!(queries.0.len() <= TEXTS_MAX);
        }
        let long = format!("SELECT '{}'", "x".repeat(TEXT_BYTES_MAX));
        assert_eq!(queries.places(&long).unwrap(), 0);
        assert!(!queries.0.contains_key(&long));
    }
}
