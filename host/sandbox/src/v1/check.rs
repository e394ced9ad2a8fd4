//! Checks what a step says about results, right after it has crossed the boundary and on the thread that
//! called the guest: whoever takes a checked step can read its batches without looking again.

use hashbrown::HashMap;
use std::sync::Arc;

use super::types::{Command, Event, GuestError, Rows, Shape, Step};
use crate::{
    columns::{Batch, Column},
    fault::Fault,
    validate,
};

/// What the host keeps of all shapes that a session has described, equal columns once. A session that has described more is replaced.
const SHAPE_BYTES_KEPT_MAX: usize = 1 << 20;
/// Names and types of one result's columns: 1,600 columns of PostgreSQL with names of 63 bytes are half of it.
const SHAPE_BYTES_MAX: usize = 256 << 10;
/// What a column costs beside its texts.
const COLUMN_BYTES: usize = size_of::<Column>();
/// What a shape's number costs beside its columns, which it may share with others: its places in two tables. A session may have some eight thousand.
const NUMBER_BYTES: usize = 128;
/// What a batch and each of its chunks cost the host beside their data: a result of many tiny batches is as large
/// as it looks from here.
const BATCH_BYTES: usize = 64;
const CHUNK_BYTES: usize = 80;
/// Results that have begun and not ended: more than any session has requests in flight.
const RESULTS_MAX: usize = 1_024;

/// A step whose batches have been checked.
#[derive(Default)]
pub(crate) struct CheckedStep {
    pub commands: Vec<Command>,
    pub events: Vec<Heard>,
    /// The session has described so much that it should be replaced.
    pub is_full: bool,
}

/// An event, and what is wrong with it.
pub(crate) enum Heard {
    Ready,
    Columns(u32, Arc<[Column]>),
    /// With the bytes of its data, and what it costs the host beside them.
    Batch(u32, Batch, usize, usize),
    Done(u32),
    Failed(u32, GuestError),
    /// The result of this request has too many columns.
    TooLarge(u32, Fault),
    /// The contract was broken, by the result of this request. Nothing comes after it.
    Broken(u32, String),
}

type Described = Result<Arc<[Column]>, String>;

fn columns_bytes(columns: &[Column]) -> usize {
    let each = |column: &Column| column.name.len() + column.native.len() + COLUMN_BYTES;
    columns.iter().map(each).sum()
}

/// What a guest's numbers stand for.
#[derive(Default)]
struct Shapes {
    /// Of columns that are too many or too long, what is said of them: the guest takes them for known from then on.
    by_number: HashMap<u32, Described>,
    /// Columns that numbers stand for, each once, and for how many. Connectors number statements, and those of one endpoint's pages mostly have equal
    /// columns: kept for each of them, a hundred statements of a wide endpoint would be more than a session may describe.
    distinct: HashMap<Arc<[Column]>, usize>,
    bytes: usize,
}

impl Shapes {
    /// These columns, or equal ones that are kept already.
    fn shared(&self, columns: Vec<Column>) -> Arc<[Column]> {
        match self.distinct.get_key_value(columns.as_slice()) {
            Some((known, _)) => known.clone(),
            None => columns.into(),
        }
    }

    /// The number stands for this from now on, and not for what it stood for before.
    fn keep(&mut self, number: u32, described: &Described) {
        let bytes = match described {
            Ok(columns) => {
                let numbers = self.distinct.entry(columns.clone()).or_default();
                *numbers += 1;
                match *numbers {
                    1 => columns_bytes(columns),
                    _ => 0,
                }
            }
            Err(reason) => reason.len(),
        };
        self.bytes += NUMBER_BYTES + bytes;
        if let Some(replaced) = self.by_number.insert(number, described.clone()) {
            self.forget(&replaced);
        }
    }

    /// A number does not stand for this any more.
    fn forget(&mut self, replaced: &Described) {
        let bytes = match replaced {
            Ok(columns) => {
                let is_others = self.distinct.get_mut(columns).is_some_and(|numbers| {
                    *numbers -= 1;
                    *numbers > 0
                });
                match is_others {
                    true => 0,
                    false => {
                        self.distinct.remove(columns);
                        columns_bytes(columns)
                    }
                }
            }
            Err(reason) => reason.len(),
        };
        self.bytes -= NUMBER_BYTES + bytes;
    }
}

/// What one guest has described.
pub(crate) struct Checker {
    columns_max: usize,
    shapes: Shapes,
    /// Results that have columns and no end yet; `None`: they are too many or too long, and nobody wants its rows.
    results: Vec<(u32, Option<Arc<[Column]>>)>,
}

impl Checker {
    pub fn new(columns_max: usize) -> Checker {
        Checker {
            columns_max,
            shapes: Shapes::default(),
            results: Vec::new(),
        }
    }

    #[inline]
    pub fn check(&mut self, step: Step) -> CheckedStep {
        let mut events = Vec::with_capacity(step.events.len());
        for event in step.events {
            let Some(heard) = self.hear(event) else {
                continue;
            };
            let is_broken = matches!(heard, Heard::Broken(..));
            events.push(heard);
            if is_broken {
                break;
            }
        }
        CheckedStep {
            commands: step.commands,
            events,
            is_full: self.shapes.bytes > SHAPE_BYTES_KEPT_MAX,
        }
    }

    /// `None`: it is of no use to anybody.
    #[inline]
    fn hear(&mut self, event: Event) -> Option<Heard> {
        Some(match event {
            Event::Ready => Heard::Ready,
            Event::Columns(shape) => self.columns(shape),
            Event::Batch(rows) => return self.batch(rows),
            Event::Done(id) => {
                self.end(id);
                Heard::Done(id)
            }
            Event::Failed(failure) => {
                self.end(failure.id);
                Heard::Failed(failure.id, failure.error)
            }
        })
    }

    fn columns(&mut self, shape: Shape) -> Heard {
        let Shape { id, shape, columns } = shape;
        let described = match columns {
            Some(columns) => {
                let described = self.described(columns);
                self.shapes.keep(shape, &described);
                described
            }
            None => match self.shapes.by_number.get(&shape) {
                Some(described) => described.clone(),
                None => {
                    return Heard::Broken(
                        id,
                        format!("it named shape {shape}, which it never described"),
                    );
                }
            },
        };
        if self.results.iter().any(|(result, _)| *result == id) {
            return Heard::Broken(id, "it described one result twice".into());
        }
        if self.results.len() >= RESULTS_MAX {
            return Heard::Broken(
                id,
                format!("it began more than {RESULTS_MAX} results at once"),
            );
        }
        self.results.push((id, described.as_ref().ok().cloned()));
        match described {
            Ok(columns) => Heard::Columns(id, columns),
            Err(reason) => Heard::TooLarge(id, Fault::too_large(reason)),
        }
    }

    /// What is kept of columns: them, or that they are too many or too long.
    fn described(&self, columns: Vec<Column>) -> Described {
        let bytes = columns_bytes(&columns);
        if columns.len() > self.columns_max || bytes > SHAPE_BYTES_MAX {
            let reason = format!(
                "the result has {} columns of {bytes} bytes, {} columns and {SHAPE_BYTES_MAX} bytes are allowed",
                columns.len(),
                self.columns_max
            );
            return Err(reason);
        }
        Ok(self.shapes.shared(columns))
    }

    fn batch(&mut self, rows: Rows) -> Option<Heard> {
        let Rows { id, batch } = rows;
        let Some((_, columns)) = self.results.iter().find(|(result, _)| *result == id) else {
            return Some(Heard::Broken(
                id,
                "it sent a batch before its columns".into(),
            ));
        };
        let columns = columns.as_ref()?;
        let overhead = BATCH_BYTES + batch.chunks.len() * CHUNK_BYTES;
        Some(match validate::batch(&batch, columns) {
            Ok(bytes) => Heard::Batch(id, batch, bytes, overhead),
            Err(reason) => Heard::Broken(id, reason),
        })
    }

    #[inline]
    fn end(&mut self, id: u32) {
        if let Some(at) = self.results.iter().position(|(result, _)| *result == id) {
            self.results.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Chunk, ColumnData, ColumnKind};

    fn column(name: &str) -> Column {
        Column {
            name: name.to_owned(),
            kind: ColumnKind::Int64,
            nullable: false,
            native: String::new(),
        }
    }

    fn step(events: Vec<Event>) -> Step {
        Step {
            commands: Vec::new(),
            events,
        }
    }

    fn shape(id: u32, shape: u32, columns: Option<Vec<Column>>) -> Event {
        Event::Columns(Shape { id, shape, columns })
    }

    fn numbers(id: u32, values: Vec<i64>) -> Event {
        let batch = Batch {
            rows: values.len() as u32,
            chunks: vec![Chunk {
                validity: None,
                data: ColumnData::I64s(values),
            }],
        };
        Event::Batch(Rows { id, batch })
    }

    /// A session that describes new columns for every request is replaced, however long their names are.
    #[test]
    fn what_is_kept_of_columns_is_bounded() {
        let mut checker = Checker::new(10);
        let name = "n".repeat(100 << 10);
        let mut kept = 0;
        loop {
            kept += 1;
            let checked = checker.check(step(vec![
                shape(kept, kept, Some(vec![column(&format!("{name}{kept}"))])),
                Event::Done(kept),
            ]));
            if checked.is_full {
                break;
            }
        }
        assert!(kept < 12, "{kept}");
        let long = column(&"n".repeat(SHAPE_BYTES_MAX));
        let checked = checker.check(step(vec![shape(0, 0, Some(vec![long]))]));
        assert!(matches!(checked.events[..], [Heard::TooLarge(0, _)]));
        let many = (0..11).map(|_| column("n")).collect();
        let checked = checker.check(step(vec![shape(1, 0, Some(many))]));
        assert!(matches!(checked.events[..], [Heard::TooLarge(1, _)]));
        // What is said of those that are too large is kept, too, and as bounded.
        let mut checker = Checker::new(0);
        let is_full = (0..100_000).any(|id| {
            let described = shape(id, id, Some(vec![column("n")]));
            checker
                .check(step(vec![described, Event::Done(id)]))
                .is_full
        });
        assert!(is_full);
        // Nor are numbers without end, whatever they stand for: nothing, or all of them the same.
        for columns in [vec![], vec![column("n")]] {
            let mut checker = Checker::new(10);
            let is_full = (0..100_000).any(|id| {
                let described = shape(id, id, Some(columns.clone()));
                checker
                    .check(step(vec![described, Event::Done(id)]))
                    .is_full
            });
            assert!(is_full);
        }
        // What has a number anew takes the place of what had it.
        let mut checker = Checker::new(2);
        for id in 0..100_000 {
            let columns = (0..=id % 3).map(|_| column("n")).collect();
            let described = shape(id, id % 7, Some(columns));
            let checked = checker.check(step(vec![described, Event::Done(id)]));
            assert!(!checked.is_full);
        }
    }

    /// Statements with equal columns are kept as one, however many and wide they are, and each is told its own: one whose columns change does not
    /// change the others.
    #[test]
    fn equal_columns_are_kept_once() {
        const NUMBERS: u32 = 1_000;
        let mut checker = Checker::new(150);
        let wide = |last: &str| -> Vec<Column> {
            let columns = (1..150).map(|n| column(&format!("field_{n}")));
            columns.chain([column(last)]).collect()
        };
        let mut request = 0;
        let mut told = |checker: &mut Checker, number: u32, columns: Option<Vec<Column>>| {
            request += 1;
            let described = shape(request, number, columns);
            let checked = checker.check(step(vec![described, Event::Done(request)]));
            assert!(!checked.is_full, "{request}");
            match checked.events.first() {
                Some(Heard::Columns(_, columns)) => columns[149].name.clone(),
                _ => panic!("no columns of {number}"),
            }
        };
        let once = |last: &str| NUMBERS as usize * NUMBER_BYTES + columns_bytes(&wide(last));
        for number in 0..NUMBERS {
            assert_eq!(told(&mut checker, number, Some(wide("last"))), "last");
        }
        assert_eq!(checker.shapes.bytes, once("last"));
        // The table behind one of them is altered.
        assert_eq!(told(&mut checker, 7, Some(wide("altered"))), "altered");
        assert_eq!(told(&mut checker, 7, None), "altered");
        assert_eq!(told(&mut checker, 8, None), "last");
        assert_eq!(checker.shapes.distinct.len(), 2);
        // Then that behind all of them: of those before nothing is left.
        for number in 0..NUMBERS {
            assert_eq!(told(&mut checker, number, Some(wide("altered"))), "altered");
        }
        assert_eq!(checker.shapes.distinct.len(), 1);
        assert_eq!(checker.shapes.bytes, once("altered"));
    }

    /// Of a result with too many columns that is told each time anew, and nothing is broken: its guest goes on with its rows, and takes the columns
    /// for known when they come again.
    #[test]
    fn a_result_that_is_too_wide_breaks_nothing() {
        let mut checker = Checker::new(1);
        let wide = || -> Vec<Column> { (0..2).map(|_| column("n")).collect() };
        let rows = |id| numbers(id, vec![1]);
        let mut told = |events: Vec<Event>| {
            let heard = checker.check(step(events)).events.into_iter();
            let heard = heard.map(|heard| match heard {
                Heard::Columns(id, columns) => format!("{} columns of {id}", columns.len()),
                Heard::Batch(id, ..) => format!("rows of {id}"),
                Heard::Done(id) => format!("end of {id}"),
                Heard::TooLarge(id, _) => format!("{id} is too large"),
                Heard::Broken(id, reason) => format!("{id} is broken: {reason}"),
                Heard::Ready | Heard::Failed(..) => "another".to_owned(),
            });
            heard.collect::<Vec<_>>()
        };
        let narrow = shape(1, 1, Some(vec![column("n")]));
        assert_eq!(
            told(vec![narrow, shape(2, 0, Some(wide())), rows(2), rows(1)]),
            ["1 columns of 1", "2 is too large", "rows of 1"]
        );
        let ends = vec![rows(2), Event::Done(2), Event::Done(1)];
        assert_eq!(told(ends), ["end of 2", "end of 1"]);
        for id in 3..5 {
            let again = vec![shape(id, 0, None), rows(id), Event::Done(id)];
            let wanted = [format!("{id} is too large"), format!("end of {id}")];
            assert_eq!(told(again), wanted);
        }
        // Not the columns that had this number before.
        told(vec![shape(5, 1, Some(wide())), Event::Done(5)]);
        assert_eq!(told(vec![shape(6, 1, None)]), ["6 is too large"]);
        // And a number that is used again for fewer of them is theirs.
        let fewer = shape(7, 1, Some(vec![column("n")]));
        assert_eq!(told(vec![fewer, rows(7)]), ["1 columns of 7", "rows of 7"]);
        assert_eq!(told(vec![rows(8)]).len(), 1);
    }

    /// A row in a batch of its own costs the host more than its eight bytes, which is told.
    #[test]
    fn tiny_batches_count_what_they_cost() {
        let mut checker = Checker::new(10);
        let checked = checker.check(step(vec![
            shape(1, 0, Some(vec![column("n")])),
            numbers(1, vec![1]),
            numbers(1, Vec::new()),
            Event::Done(1),
        ]));
        let costs: Vec<_> = checked
            .events
            .iter()
            .filter_map(|event| match event {
                Heard::Batch(_, _, bytes, overhead) => Some((*bytes, *overhead)),
                _ => None,
            })
            .collect();
        let overhead = BATCH_BYTES + CHUNK_BYTES;
        assert_eq!(costs, [(8, overhead), (0, overhead)]);
        assert!(overhead >= size_of::<Batch>() + size_of::<Chunk>());
    }

    /// Results begin once, and only with a shape that is known; nothing after a broken event is believed.
    #[test]
    fn what_is_out_of_order_is_told() {
        let broken = |events: Vec<Event>| {
            let checked = Checker::new(10).check(step(events));
            matches!(checked.events.last(), Some(Heard::Broken(..)))
        };
        let known = || shape(1, 0, Some(vec![column("n")]));
        assert!(broken(vec![shape(1, 7, None)]));
        assert!(broken(vec![known(), known(), Event::Done(1)]));
        assert!(broken(vec![numbers(1, vec![1]), Event::Done(1)]));
        assert!(broken(vec![known(), Event::Done(1), numbers(1, vec![1])]));
        assert!(!broken(vec![known(), Event::Done(1), shape(1, 0, None)]));
        let flood = (0..=RESULTS_MAX as u32).map(|id| shape(id, 0, Some(vec![column("n")])));
        assert!(broken(flood.collect()));
    }
}
