//! Statements of pages that are at hand: of each endpoint, and copies of what a thread used lately.
//!
//! Callers choose how many there are and sellers how long they are, so they are bounded by both; what finds no room is written anew. Refuses
//! to know how one is written: an endpoint does. Start reading at [`Statements::get`].

use std::cell::RefCell;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hashbrown::{Equivalent, HashMap};
use parking_lot::Mutex;
use souk_domain::sql::{After, Operator, Slot, Window};
use souk_sandbox::json;

/// Statements of one endpoint's pages, one for each set of filters, order, fields and length that
/// callers use. Beyond them lengths are bound; beyond twice as many, all are made anew.
const TEXTS_MAX: usize = 64;
/// The same in bytes. One that is longer by itself is not kept: a first page of SQL of 64 KiB with two hundred fields takes less.
const TEXTS_BYTES_MAX: usize = 128 << 10;
/// Of all endpoints together. Beyond that they keep no new ones, and each thread writes its own: whoever is asked often does not feel it.
const ALL_BYTES_MAX: usize = 256 << 20;

/// Statements of any endpoints that a thread has at hand, and their bytes.
const FRONT_MAX: usize = 1_024;
const FRONT_BYTES_MAX: usize = 4 << 20;

thread_local! {
    /// What this thread's requests have used, copied: holders of one that threads share would be counted on all their cores.
    static FRONT: RefCell<Kept<(u64, Shape)>> = RefCell::default();
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);
/// Bytes that endpoints keep.
static ALL_BYTES: AtomicUsize = AtomicUsize::new(0);

/// What the statement of a page depends on, its values aside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    /// Places of the fields that are wanted. `None`: all.
    pub fields: Option<Box<[usize]>>,
    /// In one order, whatever order they were asked in.
    pub conditions: Box<[Chosen]>,
    /// The place of the order that is asked for.
    pub sort: Option<usize>,
    pub after: Option<After>,
    pub is_learned: bool,
    pub window: Window,
}

/// A filter that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Chosen {
    /// Its place.
    pub filter: usize,
    pub operator: Operator,
    /// How many values are bound.
    pub values: usize,
}

/// A statement that reads pages, and what its answer has.
#[derive(Clone)]
pub(crate) struct PageStatement {
    pub text: Arc<str>,
    pub slots: Vec<Slot>,
    /// What every column of the answer is called.
    pub columns: Vec<String>,
    /// What of it leaves.
    pub published: Vec<json::Field>,
    /// Where the answer has the columns of the order, if the next page can begin after a row.
    pub keys: Vec<usize>,
    /// What names and punctuation add to a row.
    pub row_bytes: usize,
    /// It reads a row by its key, without a LIMIT.
    pub by_key: bool,
}

/// The statements of one endpoint.
pub(super) struct Statements {
    kept: Mutex<Kept<Shape>>,
    /// Told apart from every other endpoint's of this host.
    number: u64,
}

/// Statements by what they are asked for with, and the bytes of both.
struct Kept<K> {
    by_key: HashMap<K, Arc<PageStatement>>,
    bytes: usize,
}

/// The key of a statement in a thread's front, as a request has it.
#[derive(Hash)]
struct Wanted<'a>(u64, &'a Shape);

impl Equivalent<(u64, Shape)> for Wanted<'_> {
    fn equivalent(&self, (number, shape): &(u64, Shape)) -> bool {
        self.0 == *number && self.1 == shape
    }
}

impl Statements {
    pub fn new() -> Statements {
        Statements {
            kept: Mutex::default(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The statement for a page of this shape, which `write` writes if it is not at hand. Its length is written into it, as long as few
    /// lengths are asked for.
    pub fn get(
        &self,
        shape: &Shape,
        write: impl FnOnce(&Shape) -> PageStatement,
    ) -> Arc<PageStatement> {
        FRONT.with_borrow_mut(|front| {
            if let Some(known) = front.by_key.get(&Wanted(self.number, shape)) {
                return known.clone();
            }
            let shared = self.shared(shape, write);
            let bytes = shape.bytes() + shared.bytes();
            if bytes > TEXTS_BYTES_MAX {
                return shared;
            }
            if front.by_key.len() >= FRONT_MAX || front.bytes + bytes > FRONT_BYTES_MAX {
                front.clear();
            }
            let own = Arc::new(shared.copied());
            front.keep((self.number, shape.clone()), bytes, own.clone());
            own
        })
    }

    fn shared(
        &self,
        shape: &Shape,
        write: impl FnOnce(&Shape) -> PageStatement,
    ) -> Arc<PageStatement> {
        let mut shape = shape.clone();
        {
            let kept = self.kept.lock();
            if let Some(known) = kept.by_key.get(&shape) {
                return known.clone();
            }
            if kept.by_key.len() >= TEXTS_MAX || kept.bytes >= TEXTS_BYTES_MAX {
                shape.window = Window::Bound;
                if let Some(known) = kept.by_key.get(&shape) {
                    return known.clone();
                }
            }
        }
        // Not while that is locked: a long one takes a while, and others ask for others.
        let written = Arc::new(write(&shape));
        self.keep(shape, &written);
        written
    }

    fn keep(&self, shape: Shape, written: &Arc<PageStatement>) {
        let bytes = shape.bytes() + written.bytes();
        if bytes > TEXTS_BYTES_MAX {
            return;
        }
        let mut kept = self.kept.lock();
        // Another thread has written it, too.
        if kept.by_key.contains_key(&shape) {
            return;
        }
        if kept.by_key.len() >= 2 * TEXTS_MAX || kept.bytes + bytes > 2 * TEXTS_BYTES_MAX {
            ALL_BYTES.fetch_sub(kept.bytes, Ordering::Relaxed);
            kept.clear();
        }
        if take(&ALL_BYTES, bytes, ALL_BYTES_MAX) {
            kept.keep(shape, bytes, written.clone());
        }
    }
}

impl Drop for Statements {
    fn drop(&mut self) {
        ALL_BYTES.fetch_sub(self.kept.get_mut().bytes, Ordering::Relaxed);
    }
}

/// Takes so many bytes more, if there are not more than `bytes_max` then.
fn take(taken: &AtomicUsize, bytes: usize, bytes_max: usize) -> bool {
    let before = taken.fetch_add(bytes, Ordering::Relaxed);
    let fits = before + bytes <= bytes_max;
    if !fits {
        taken.fetch_sub(bytes, Ordering::Relaxed);
    }
    fits
}

impl<K> Default for Kept<K> {
    fn default() -> Self {
        Kept {
            by_key: HashMap::new(),
            bytes: 0,
        }
    }
}

impl<K: Hash + Eq> Kept<K> {
    fn keep(&mut self, key: K, bytes: usize, statement: Arc<PageStatement>) {
        self.by_key.insert(key, statement);
        self.bytes += bytes;
    }

    fn clear(&mut self) {
        self.by_key.clear();
        self.bytes = 0;
    }
}

impl Shape {
    /// The same with the number of rows bound, and so with a LIMIT.
    pub fn bounded(&self) -> Shape {
        Shape {
            window: Window::Bound,
            ..self.clone()
        }
    }

    /// What it takes in memory.
    fn bytes(&self) -> usize {
        let fields = self.fields.as_deref().map_or(0, size_of_val);
        let after = self.after.as_ref().map_or(0, |after| after.nulls.len());
        size_of::<Shape>() + fields + size_of_val(&self.conditions[..]) + after
    }
}

impl PageStatement {
    /// With a text of its own.
    fn copied(&self) -> PageStatement {
        PageStatement {
            text: self.text[..].into(),
            ..self.clone()
        }
    }

    /// What it takes in memory.
    fn bytes(&self) -> usize {
        let columns = self.columns.iter();
        let columns: usize = columns.map(|name| size_of::<String>() + name.len()).sum();
        let published = self.published.iter();
        let published: usize = published
            .map(|field| size_of::<json::Field>() + field.name.len() + field.key_bytes())
            .sum();
        let places = size_of_val(&self.slots[..]) + size_of_val(&self.keys[..]);
        size_of::<PageStatement>() + self.text.len() + columns + published + places
    }
}

/// What names and punctuation add to a row with these fields, and a short value such as `null`.
pub(crate) fn row_bytes(fields: &[json::Field]) -> usize {
    fields.iter().map(|field| field.key_bytes() + 6).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of the first `rows` rows of one of the fields.
    fn shape(field: usize, rows: u32) -> Shape {
        Shape {
            fields: Some(Box::new([field])),
            conditions: Box::default(),
            sort: None,
            after: None,
            is_learned: false,
            window: Window::First(rows),
        }
    }

    /// A statement with a text of so many bytes.
    fn long(bytes: usize) -> PageStatement {
        PageStatement {
            text: "x".repeat(bytes).into(),
            slots: Vec::new(),
            columns: Vec::new(),
            published: Vec::new(),
            keys: Vec::new(),
            row_bytes: 0,
            by_key: false,
        }
    }

    /// What is really there, which is what was counted.
    fn counted<K: Hash + Eq>(kept: &Kept<K>, shape: impl Fn(&K) -> &Shape) -> usize {
        let each = kept.by_key.iter();
        let bytes: usize = each
            .map(|(key, statement)| shape(key).bytes() + statement.bytes())
            .sum();
        assert_eq!(kept.bytes, bytes);
        bytes
    }

    fn in_front() -> usize {
        FRONT.with_borrow(|front| counted(front, |(_, shape)| shape))
    }

    /// However many fields and lengths callers ask for, what is kept of a long statement has a bound, of its endpoint and of a thread.
    #[test]
    fn what_is_kept_is_bounded_by_bytes() {
        let statements = Statements::new();
        for number in 0..300 {
            let wanted = shape(number, number as u32);
            let given = statements.get(&wanted, |_| long(64 << 10));
            assert_eq!(given.text.len(), 64 << 10);
            assert!(counted(&statements.kept.lock(), |shape| shape) <= 2 * TEXTS_BYTES_MAX);
            assert!(in_front() <= FRONT_BYTES_MAX);
        }
        assert!(in_front() > 0);
        assert!(statements.kept.lock().bytes > 0);
    }

    /// What is asked for again is at hand, on every thread, and is written once.
    #[test]
    fn what_is_asked_for_again_is_not_written_again() {
        let statements = Statements::new();
        let first = statements.get(&shape(0, 10), |_| long(64 << 10));
        let never = |_: &Shape| -> PageStatement { panic!("it was written again") };
        assert!(Arc::ptr_eq(&first, &statements.get(&shape(0, 10), never)));
        let elsewhere = std::thread::scope(|scope| {
            let other = scope.spawn(|| statements.get(&shape(0, 10), never));
            other.join().expect("the other thread")
        });
        assert_eq!(elsewhere.text, first.text);
    }

    /// Where long statements are asked for in many lengths, these are bound, as where many short ones are.
    #[test]
    fn lengths_of_long_statements_are_bound() {
        let statements = Statements::new();
        let written = |rows: u32| {
            let mut window = None;
            statements.get(&shape(0, rows), |shape| {
                window = Some(shape.window);
                long(64 << 10)
            });
            window
        };
        assert_eq!(written(1), Some(Window::First(1)));
        assert_eq!(written(2), Some(Window::First(2)));
        assert_eq!(written(3), Some(Window::Bound));
        assert_eq!(written(4), None);
    }

    /// One that is longer than what an endpoint may keep is written each time, and takes no other's place.
    #[test]
    fn what_is_too_long_is_not_kept() {
        let statements = Statements::new();
        statements.get(&shape(0, 1), |_| long(100));
        let before = (statements.kept.lock().bytes, in_front());
        for _ in 0..2 {
            let mut is_written = false;
            statements.get(&shape(1, 1), |_| {
                is_written = true;
                long(TEXTS_BYTES_MAX)
            });
            assert!(is_written);
        }
        assert_eq!((statements.kept.lock().bytes, in_front()), before);
    }

    /// A name counts as it is written in each row: escaped.
    #[test]
    fn names_count_as_they_are_escaped() {
        let of = |name: &str| row_bytes(&[json::Field::new(0, name)]);
        assert_eq!(of("goals"), "goals".len() + 10);
        assert!(of(&"\u{1}".repeat(100)) >= 600);
    }

    /// All endpoints together keep no more than their bound.
    #[test]
    fn nothing_is_taken_beyond_the_bound_of_all() {
        let taken = AtomicUsize::new(0);
        assert!(take(&taken, 60, 100));
        assert!(!take(&taken, 41, 100));
        assert!(take(&taken, 40, 100));
        assert_eq!(taken.load(Ordering::Relaxed), 100);
    }
}
