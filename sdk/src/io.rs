//! What a connector may reach: the one thing its descriptor says it needs.

use crate::later::{self, Later};
use crate::{Column, Error, Http, HttpFailure, HttpResponse, Step, Tcp};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::task::Waker;

/// Cheap to clone. Everything in it waits for the host's next call, nothing else.
#[derive(Clone)]
pub struct Io {
    pub(crate) shared: Rc<Shared>,
}

impl Io {
    /// The session's wire; it stands already.
    pub fn tcp(&self) -> Tcp {
        Tcp::new(self.shared.clone())
    }

    /// Requests to the connection's origin.
    pub fn http(&self) -> Http {
        Http::new(self.shared.clone())
    }

    /// The time of day when the host last asked for something: whole seconds since 1970-01-01T00:00:00Z, rounded down. It may fall.
    pub fn now(&self) -> u64 {
        self.shared.now.get()
    }

    /// Waits for so many milliseconds, one at least, and no longer than until the deadline of what is asked.
    pub async fn sleep(&self, ms: u32) {
        let (id, _forget) = later::begin(&self.shared);
        self.shared.step.borrow_mut().wake(id, ms);
        later::end(&self.shared, id).await;
    }

    /// Hands a message to a second session of this connection, which the host opens for it ([`errand`](crate::Connector::errand)), and waits
    /// until that has ended. Over tcp only; one for each request, and one more when it is cancelled.
    pub async fn confer(&self, message: impl Into<Vec<u8>>) -> Result<(), Error> {
        let (id, _forget) = later::begin(&self.shared);
        self.shared.step.borrow_mut().confer(id, message.into());
        match later::end(&self.shared, id).await {
            None => Ok(()),
            Some(failure) => Err(Error::source_failed(
                "errand_failed",
                "a second session could not do its part",
            )
            .detail(failure)),
        }
    }
}

/// What the executor and the futures of one session share.
#[derive(Default)]
pub(crate) struct Shared {
    /// The step that the present call answers.
    pub step: RefCell<Step>,
    pub wire: RefCell<Wire>,
    pub exchanges: RefCell<Exchanges>,
    pub later: RefCell<Later>,
    /// As the host last told it.
    pub now: Cell<u64>,
    pub shapes: RefCell<Shapes>,
}

#[derive(Default)]
pub(crate) struct Wire {
    pub incoming: Vec<u8>,
    /// How much of `incoming` has been read.
    pub at: usize,
    pub closed: bool,
    /// What is left on it belongs to an answer that was given up.
    pub broken: bool,
    pub tls: bool,
    pub waker: Option<Waker>,
}

#[derive(Default)]
pub(crate) struct Exchanges {
    pub next_id: u32,
    /// That the host has not answered yet: also those that nobody waits for any more, since a source goes on with what was given up.
    pub under_way: usize,
    pub waiting: HashMap<u32, Exchange>,
}

#[derive(Default)]
pub(crate) struct Exchange {
    pub outcome: Option<Result<HttpResponse, HttpFailure>>,
    pub waker: Option<Waker>,
}

/// Shapes remembered per session; past it the oldest number is described anew.
const SHAPES_MAX: usize = 64;
/// What they take together, or a single one: names and types may be long, and a session has 64 MiB.
const SHAPES_BYTES_MAX: usize = 4 << 20;

/// The shapes that this session has described.
#[derive(Default)]
pub(crate) struct Shapes {
    known: Vec<Rc<[Column]>>,
    next: usize,
}

impl Shapes {
    /// The number of a shape, and its columns if the host does not know them yet.
    pub fn number(&mut self, columns: &Rc<[Column]>) -> (u32, Option<Vec<Column>>) {
        if let Some(at) = self.known.iter().position(|known| known == columns) {
            return (at as u32, None);
        }
        let remembered: usize = self.known.iter().map(|known| bytes(known)).sum();
        if remembered + bytes(columns) > SHAPES_BYTES_MAX {
            *self = Shapes::default();
        }
        let at = if self.known.len() < SHAPES_MAX {
            self.known.push(columns.clone());
            self.known.len() - 1
        } else {
            let at = self.next;
            self.known[at] = columns.clone();
            self.next = (at + 1) % SHAPES_MAX;
            at
        };
        (at as u32, Some(columns.to_vec()))
    }
}

/// What the columns of a shape take.
fn bytes(columns: &[Column]) -> usize {
    let texts = columns
        .iter()
        .map(|column| column.name.len() + column.native.len());
    size_of_val(columns) + texts.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnType, column};

    fn shape(name: &str) -> Rc<[Column]> {
        Rc::new([column(name, ColumnType::Text, "text")])
    }

    /// A shape keeps its number while it is remembered; past the last number the oldest one's is described anew.
    #[test]
    fn shapes_are_remembered() {
        let mut shapes = Shapes::default();
        for n in 0..SHAPES_MAX {
            let (number, described) = shapes.number(&shape(&n.to_string()));
            assert_eq!((number, described.is_some()), (n as u32, true));
        }
        assert_eq!(shapes.number(&shape("7")), (7, None));
        let (number, described) = shapes.number(&shape("more"));
        assert_eq!((number, described.is_some()), (0, true));
        let (number, described) = shapes.number(&shape("0"));
        assert_eq!((number, described.is_some()), (1, true));
    }

    /// Columns with long names, or many of them, take the place of those before them: what is remembered does not fill the session's memory.
    #[test]
    fn what_is_remembered_has_bounds() {
        let mut shapes = Shapes::default();
        let many =
            |n: usize| -> Rc<[Column]> { vec![shape(&n.to_string())[0].clone(); 10_000].into() };
        for n in 0..SHAPES_MAX {
            for columns in [shape(&n.to_string().repeat(1 << 20)), many(n)] {
                let (number, described) = shapes.number(&columns);
                assert!(described.is_some(), "{n}");
                assert_eq!(shapes.number(&columns), (number, None), "{n}");
                let all: usize = shapes.known.iter().map(|known| bytes(known)).sum();
                assert!(all <= SHAPES_BYTES_MAX, "{n}: {all}");
            }
        }
        let longest = shape(&"x".repeat(SHAPES_BYTES_MAX));
        assert_eq!(shapes.number(&longest).0, 0);
        assert_eq!(shapes.known.len(), 1);
    }
}
