//! What a server of the tests remembers of the statements that it was asked: the newest ones, and every one that has not ended. One that is asked
//! millions, as a benchmark does, does not grow.

/// More than a test asks about at once.
const KEPT: usize = 128;

pub struct Remembered<T> {
    /// From the oldest to the newest.
    known: Vec<(String, T)>,
    is_over: fn(&T) -> bool,
    taken: usize,
}

impl<T> Remembered<T> {
    /// `is_over`: whether nothing more can become of one.
    pub fn new(is_over: fn(&T) -> bool) -> Remembered<T> {
        Remembered {
            known: Vec::new(),
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
        if self.known.len() >= KEPT
            && let Some(oldest) = self.known.iter().position(|(_, one)| (self.is_over)(one))
        {
            self.known.remove(oldest);
        }
        self.known.push((name, one));
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
        Some(self.known.remove(at).1)
    }

    pub fn iter(&self) -> impl Iterator<Item = &(String, T)> {
        self.known.iter()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.known.iter_mut().map(|(_, one)| one)
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
        assert_eq!(remembered.iter().count(), KEPT);
        assert_eq!(remembered.taken(), 2 * KEPT + 1);
        assert_eq!(remembered.get("open"), Some(&false));
        assert_eq!(remembered.get("0"), None);
        assert_eq!(remembered.get(&KEPT.to_string()), None);
        assert!(remembered.get_mut(&(2 * KEPT - 1).to_string()).is_some());
    }
}
