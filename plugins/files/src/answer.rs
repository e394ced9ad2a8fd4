//! What a statement answers, and the numbers that shapes of answers have in a session.

use souk_sdk::{Batch, Column};

pub struct Answer {
    pub columns: Vec<Column>,
    pub batches: Vec<Batch>,
}

/// Shapes remembered; past it the oldest number is described anew.
const SHAPES_MAX: usize = 64;

/// The shapes that this session has described.
#[derive(Default)]
pub struct Shapes {
    known: Vec<Vec<Column>>,
    next: usize,
}

impl Shapes {
    /// The number of a shape, and its columns if the host does not know them yet.
    pub fn number(&mut self, columns: Vec<Column>) -> (u32, Option<Vec<Column>>) {
        if let Some(at) = self.known.iter().position(|known| *known == columns) {
            return (at as u32, None);
        }
        let at = match self.known.len() < SHAPES_MAX {
            true => {
                self.known.push(columns.clone());
                self.known.len() - 1
            }
            false => {
                let at = self.next;
                self.known[at].clone_from(&columns);
                self.next = (at + 1) % SHAPES_MAX;
                at
            }
        };
        (at as u32, Some(columns))
    }
}
