//! What a server of the tests remembers of the statements that it was asked: the newest ones, and every one that has not ended ([`Remembered`]); and
//! what follows from their texts ([`ByText`]). One that is asked millions, as a benchmark does, does not grow.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More than a test asks about at once, or a benchmark has clients.
const KEPT: usize = 512;
/// More texts than a benchmark asks; and as many statements a server's SQLite keeps prepared.
pub const TEXTS_KEPT: usize = 256;

pub struct Remembered<T> {
    /// From the oldest to the newest.
    known: VecDeque<(String, T)>,
    is_over: fn(&T) -> bool,
    taken: usize,
}

impl<T> Remembered<T> {
    /// `is_over`: whether nothing more can become of one.
    pub fn new(is_over: fn(&T) -> bool) -> Remembered<T> {
        Remembered {
            known: VecDeque::new(),
            is_over,
            taken: 0,
        }
    }

    /// How many there were, the forgotten ones too.
    pub fn taken(&self) -> usize {
        self.taken
    }

    pub fn insert(&mut self, name: String, one: T) {
        self.taken += 1;
        // Those that have not ended do not count: who has gone away asks for nothing any more, and would take the place of who is about to.
        let mut over = (0..self.known.len()).filter(|&at| (self.is_over)(&self.known[at].1));
        let oldest = over.next();
        if let Some(oldest) = oldest
            && over.count() + 1 >= KEPT
        {
            self.known.remove(oldest);
        }
        self.known.push_back((name, one));
    }

    pub fn get(&self, name: &str) -> Option<&T> {
        let mut newest = self.known.iter().rev();
        newest.find(|(known, _)| known == name).map(|(_, one)| one)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        let mut newest = self.known.iter_mut().rev();
        newest.find(|(known, _)| known == name).map(|(_, one)| one)
    }

    pub fn remove(&mut self, name: &str) -> Option<T> {
        let at = self.known.iter().position(|(known, _)| known == name)?;
        self.known.remove(at).map(|(_, one)| one)
    }

    pub fn iter(&self) -> impl Iterator<Item = &(String, T)> {
        self.known.iter()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.known.iter_mut().map(|(_, one)| one)
    }
}

/// What follows from a text, and is the same whenever that is asked again. A real server keeps the plan of a statement that it has been sent before; one
/// that translated each anew would make a benchmark measure how long its clients' statements are.
pub struct ByText<T> {
    known: Mutex<HashMap<String, Arc<T>>>,
}

impl<T> Default for ByText<T> {
    fn default() -> ByText<T> {
        ByText {
            known: Mutex::default(),
        }
    }
}

impl<T> ByText<T> {
    /// `derive`: how it follows, of a text that is not known.
    pub fn of(&self, text: &str, derive: impl FnOnce() -> T) -> Arc<T> {
        let Ok(found) = self.try_of(text, || Ok::<T, Infallible>(derive()));
        found
    }

    /// As [`ByText::of`]; what fails is derived anew the next time.
    pub fn try_of<E>(
        &self,
        text: &str,
        derive: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let known = self.known().get(text).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        // Not under the lock: a statement may stand in another one.
        let new = Arc::new(derive()?);
        let mut known = self.known();
        if known.len() >= TEXTS_KEPT {
            known.clear();
        }
        known.insert(text.to_owned(), Arc::clone(&new));
        Ok(new)
    }

    /// For what follows from something else, too, as soon as that changes.
    pub fn forget(&self) {
        self.known().clear();
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<T>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What has not ended is never forgotten, however old it is.
    #[test]
    fn the_oldest_that_ended_is_forgotten() {
        let mut remembered = Remembered::new(|is_over| *is_over);
        remembered.insert("open".to_owned(), false);
        for number in 0..2 * KEPT {
            remembered.insert(number.to_string(), true);
        }
        assert_eq!(remembered.iter().count(), KEPT + 1);
        assert_eq!(remembered.taken(), 2 * KEPT + 1);
        assert_eq!(remembered.get("open"), Some(&false));
        assert_eq!(remembered.get("0"), None);
        assert_eq!(remembered.get(&(KEPT - 1).to_string()), None);
        assert!(remembered.get(&KEPT.to_string()).is_some());
        assert!(remembered.get_mut(&(2 * KEPT - 1).to_string()).is_some());
    }

    /// A text is read once, one that was refused again, and no number of them is kept beyond the bound.
    #[test]
    fn a_text_is_read_once() {
        let lengths = ByText::default();
        let mut read = 0;
        for text in ["one", "three", "one"] {
            let length = lengths.of(text, || {
                read += 1;
                text.len()
            });
            assert_eq!(*length, text.len());
        }
        assert_eq!(read, 2);
        assert_eq!(lengths.try_of("four", || Err("refused")), Err("refused"));
        assert_eq!(lengths.try_of("four", || Ok::<_, ()>(4)), Ok(Arc::new(4)));
        lengths.forget();
        assert_eq!(*lengths.of("one", || 0), 0);
        for number in 0..2 * TEXTS_KEPT {
            lengths.of(&number.to_string(), || number);
        }
        assert!(lengths.known().len() <= TEXTS_KEPT);
    }
}
