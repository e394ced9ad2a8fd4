//! Results of a [`Machine`](crate::Machine) that reads rows itself, most of them page by page over HTTP: columns that are remembered by what
//! describes them ([`Shapes`]), rows that are cut into batches within the request's limits ([`Told`]), and the answer to a ping. `Rows` does all of it by itself.

use crate::columns::{BATCH_BYTES, BATCH_ROWS, column};
use crate::{
    Batch, Cell, Column, ColumnBuilder, ColumnType, Error, KnownColumns, Limits, Rows, Step, short,
};
use std::rc::Rc;

/// Shapes that a session remembers, which have the numbers below; past it the oldest number is described anew.
pub const SHAPES_MAX: usize = 64;
/// Descriptions that are remembered are no longer than this together, or a single one.
const DESCRIBED_BYTES_MAX: usize = 4 << 20;

/// Columns as a source describes them, each with a type of the connector's own.
pub struct Shape<T> {
    /// As the host knows it.
    pub number: u32,
    pub columns: KnownColumns,
    pub types: Vec<T>,
    described: Box<[u8]>,
}

impl<T> Shape<T> {
    /// What describes it, as the source sent that.
    pub fn described(&self) -> &[u8] {
        &self.described
    }

    /// Whether this is what describes it.
    pub fn is_described_by(&self, described: &[u8]) -> bool {
        short::is_same(&self.described, described)
    }
}

/// The shapes of a session's results.
pub struct Shapes<T> {
    known: Vec<Rc<Shape<T>>>,
    next: usize,
    /// Which one was asked for last: it mostly is again.
    last: usize,
}

impl<T> Default for Shapes<T> {
    fn default() -> Shapes<T> {
        Shapes {
            known: Vec::new(),
            next: 0,
            last: 0,
        }
    }
}

impl<T> Shapes<T> {
    /// The shape of which that holds true of what describes it.
    pub fn find(&self, is_it: impl Fn(&[u8]) -> bool) -> Option<Rc<Shape<T>>> {
        let known = self.known.iter().find(|shape| is_it(&shape.described));
        known.cloned()
    }

    /// What describes those that are known, the one that was asked for last before the others.
    pub fn descriptions(&self) -> impl Iterator<Item = &[u8]> {
        let (before, behind) = self.known.split_at(self.last);
        let known = behind.iter().chain(before);
        known.map(|shape| &*shape.described)
    }

    /// The one of what describes it: one that is known, or a new one, of the columns and the types that `read` reads out of that.
    pub fn of(
        &mut self,
        described: &[u8],
        read: impl FnOnce() -> Result<(Vec<Column>, Vec<T>), Error>,
    ) -> Result<Rc<Shape<T>>, Error> {
        let is_it = |shape: &Rc<Shape<T>>| shape.is_described_by(described);
        if let Some(known) = self.known.get(self.last).filter(|shape| is_it(shape)) {
            return Ok(known.clone());
        }
        if let Some(known) = self.known.iter().position(is_it) {
            self.last = known;
            return Ok(self.known[known].clone());
        }
        let (columns, types) = read()?;
        Ok(self.add(described, columns, types))
    }

    /// A new one. Its type comes with each column.
    pub fn add(&mut self, described: &[u8], columns: Vec<Column>, types: Vec<T>) -> Rc<Shape<T>> {
        let remembered: usize = self.known.iter().map(|shape| shape.described.len()).sum();
        if remembered + described.len() > DESCRIBED_BYTES_MAX {
            *self = Shapes::default();
        }
        let at = match self.known.len() {
            free @ 0..SHAPES_MAX => free,
            _ => {
                let oldest = self.next;
                self.next = (oldest + 1) % SHAPES_MAX;
                oldest
            }
        };
        let shape = Rc::new(Shape {
            number: at as u32,
            columns: KnownColumns::new(columns),
            types,
            described: described.into(),
        });
        match self.known.get_mut(at) {
            Some(place) => *place = shape.clone(),
            None => self.known.push(shape.clone()),
        }
        self.last = at;
        shape
    }
}

/// How many bytes one value of a result may become while it is written: what is a little too large is found to be so when it stands.
pub fn value_bytes_max(limits: &Limits) -> usize {
    let bytes = limits.bytes_max.saturating_add(2 * BATCH_BYTES);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// What of a result was told: the rows of all its pages count towards the request's limits.
#[derive(Default)]
pub struct Told {
    rows: u32,
    bytes: u64,
}

impl Told {
    /// Begins the next page.
    pub fn page<'a, T>(&'a mut self, shape: &'a Shape<T>, limits: &'a Limits) -> Page<'a, T> {
        Page {
            told: self,
            shape,
            limits,
            builders: Vec::new(),
            bytes: 0,
        }
    }
}

/// Rows of a page on their way into batches.
pub struct Page<'a, T> {
    told: &'a mut Told,
    shape: &'a Shape<T>,
    limits: &'a Limits,
    /// Made with the first row of a batch: many a page has no row, and none has one behind its last batch.
    builders: Vec<ColumnBuilder>,
    /// Of the batch that is being built.
    bytes: u64,
}

impl<T> Page<'_, T> {
    /// Appends a row: `push` is called with the place and the type of each column, in order, and appends one value to it. A batch comes out
    /// where one is full. After an error nothing more of the page can be told.
    #[inline]
    pub fn row(
        &mut self,
        push: impl FnMut(usize, &T, &mut ColumnBuilder) -> Result<(), Error>,
    ) -> Result<Option<Batch>, Error> {
        self.rows_at_once(1, push)
    }

    /// Appends so many rows: `push` appends as many values to its column. A batch may become longer by them than it would of one after the
    /// other.
    #[inline]
    pub fn rows_at_once(
        &mut self,
        count: u32,
        mut push: impl FnMut(usize, &T, &mut ColumnBuilder) -> Result<(), Error>,
    ) -> Result<Option<Batch>, Error> {
        if count > self.limits.rows_max.saturating_sub(self.told.rows) {
            return Err(Error::too_many_rows(self.limits.rows_max));
        }
        if self.builders.is_empty() {
            self.builders = self.shape.columns.builders();
        }
        let bytes_max = self.limits.bytes_max.saturating_sub(self.told.bytes);
        let columns = self.shape.types.iter().zip(&mut self.builders);
        let mut bytes = 0;
        for (place, (kind, builder)) in columns.enumerate() {
            push(place, kind, builder)?;
            bytes += builder.bytes() as u64;
            // With each column: many that are too large are never there at once.
            if bytes > bytes_max {
                return Err(Error::too_many_bytes(self.limits.bytes_max));
            }
        }
        self.bytes = bytes;
        self.told.rows += count;
        match self.rows() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            true => Ok(Some(self.cut())),
            false => Ok(None),
        }
    }

    /// Ends the page: what is not in a batch yet.
    pub fn rest(mut self) -> Option<Batch> {
        match self.rows() {
            0 => None,
            _ => Some(self.cut()),
        }
    }

    fn rows(&self) -> usize {
        self.builders.first().map_or(0, ColumnBuilder::rows)
    }

    fn cut(&mut self) -> Batch {
        // Of at most as many as a batch has.
        let rows = self.rows() as u32;
        self.told.bytes += std::mem::take(&mut self.bytes);
        self.shape.columns.remember(&self.builders);
        let full = std::mem::take(&mut self.builders);
        let chunks = full.into_iter().map(ColumnBuilder::finish).collect();
        Batch { rows, chunks }
    }
}

impl Step {
    /// The row that answers a ping, in columns of this number: the source's version, and whether it was seen to refuse a write. What is
    /// `None` is not known.
    pub fn pong(&mut self, id: u32, shape: u32, version: Option<&str>, read_only: Option<bool>) {
        let cells: [Cell<'_>; 2] = [version.into(), read_only.into()];
        self.row(id, shape, Rows::ping_columns(), &cells);
    }

    /// The same, with what the connection's owner should mend although the source answers (`docs/connectors.md`). These columns need a number of their own.
    pub fn pong_warning(
        &mut self,
        id: u32,
        shape: u32,
        version: Option<&str>,
        read_only: Option<bool>,
        warning: &str,
    ) {
        let mut columns = Rows::ping_columns();
        columns.push(column("warning", ColumnType::Text, ""));
        let cells: [Cell<'_>; 3] = [version.into(), read_only.into(), warning.into()];
        self.row(id, shape, columns, &cells);
    }

    /// The one row of a result.
    fn row(&mut self, id: u32, shape: u32, columns: Vec<Column>, cells: &[Cell<'_>]) {
        let chunk = |(column, cell): (&Column, &Cell<'_>)| {
            let mut builder = ColumnBuilder::new(column.kind);
            // Of its column's type it is.
            let _ = builder.push(*cell);
            builder.finish()
        };
        let chunks = columns.iter().zip(cells).map(chunk).collect();
        self.columns(id, shape, Some(columns));
        self.batch(id, Batch { rows: 1, chunks });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(shapes: &mut Shapes<()>, described: &str) -> Rc<Shape<()>> {
        let columns = || vec![column("t", ColumnType::Text, "text")];
        let shape = shapes.of(described.as_bytes(), || Ok((columns(), vec![()])));
        shape.unwrap()
    }

    /// A shape keeps its number while it is remembered; past the last number the oldest one's is taken, and described anew.
    #[test]
    fn shapes_are_remembered() {
        let mut shapes = Shapes::default();
        let first = shape(&mut shapes, "0");
        assert!(first.columns.describe().is_some());
        for n in 1..SHAPES_MAX {
            assert_eq!(shape(&mut shapes, &n.to_string()).number, n as u32);
        }
        let again = shape(&mut shapes, "0");
        assert!(again.number == 0 && again.columns.describe().is_none());
        let more = shape(&mut shapes, "more");
        assert!(more.number == 0 && more.columns.describe().is_some());
        let anew = shape(&mut shapes, "0");
        assert!(anew.number == 1 && anew.columns.describe().is_some());
        assert_eq!(anew.described(), b"0");
        // What is known is not read, and of what cannot be read nothing is known.
        let refused = || Err(Error::source_failed("malformed", "no columns"));
        assert_eq!(shapes.of(b"0", refused).unwrap().number, 1);
        assert!(shapes.of(b"none", refused).is_err());
        assert!(shapes.find(|known| known == b"none").is_none());
        // The last one comes first, and each of them once.
        for asked in ["7", "8", "7", "anew", "anew"] {
            shape(&mut shapes, asked);
            let mut all: Vec<&[u8]> = shapes.descriptions().collect();
            assert_eq!(all[0], asked.as_bytes());
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), SHAPES_MAX);
        }
    }

    /// Long descriptions take the place of those before them.
    #[test]
    fn descriptions_have_bounds() {
        let mut shapes = Shapes::default();
        for n in 0..10 {
            let long = n.to_string().repeat(1 << 20);
            shape(&mut shapes, &long);
            let bytes: usize = shapes.known.iter().map(|shape| shape.described.len()).sum();
            assert!(bytes <= DESCRIBED_BYTES_MAX);
        }
        assert_eq!(shape(&mut shapes, &"x".repeat(5 << 20)).number, 0);
        assert_eq!(shapes.known.len(), 1);
    }

    fn tell(values: &[&str], limits: Limits) -> Result<Vec<u32>, Error> {
        let shape = shape(&mut Shapes::default(), "");
        let (mut told, mut batches) = (Told::default(), Vec::new());
        // As two pages: the limits are of both.
        for values in values.chunks(values.len().div_ceil(2).max(1)) {
            let mut page = told.page(&shape, &limits);
            for value in values {
                batches.extend(page.row(|_, (), into| into.var(value.as_bytes()))?);
            }
            batches.extend(page.rest());
        }
        Ok(batches.iter().map(|batch| batch.rows).collect())
    }

    #[test]
    fn batches_are_cut_and_limits_held() {
        let limits = |rows_max, bytes_max| Limits {
            rows_max,
            bytes_max,
            timeout_ms: 1,
        };
        let large = "x".repeat(BATCH_BYTES as usize / 2);
        assert_eq!(tell(&[], limits(0, 0)).unwrap(), [0_u32; 0]);
        assert_eq!(tell(&["a", "b"], limits(2, 2)).unwrap(), [1, 1]);
        let many = vec!["a"; 2 * (BATCH_ROWS + 1)];
        let whole = BATCH_ROWS as u32;
        let batches = tell(&many, limits(u32::MAX, u64::MAX)).unwrap();
        assert_eq!(batches, [whole, 1, whole, 1]);
        let batches = tell(&[large.as_str(); 6], limits(9, u64::MAX)).unwrap();
        assert_eq!(batches, [2, 1, 2, 1]);
        let error = tell(&["a", "b", "c"], limits(2, 9)).unwrap_err();
        assert_eq!(error.code, "rows_limit");
        let error = tell(&["a", "b", "c"], limits(9, 2)).unwrap_err();
        assert_eq!(error.code, "bytes_limit");
    }

    /// Rows that come together have the limits of those that come one by one, and their batch is cut behind them.
    #[test]
    fn rows_that_come_together_are_bounded() {
        let shape = shape(&mut Shapes::default(), "");
        let tell = |counts: &[u32], rows_max, bytes_max| -> Result<Vec<u32>, Error> {
            let limits = Limits {
                rows_max,
                bytes_max,
                timeout_ms: 1,
            };
            let (mut told, mut batches) = (Told::default(), Vec::new());
            let mut page = told.page(&shape, &limits);
            for count in counts {
                let values = vec![&b"ab"[..]; *count as usize];
                batches.extend(page.rows_at_once(*count, |_, (), into| into.vars(&values))?);
            }
            batches.extend(page.rest());
            Ok(batches.iter().map(|batch| batch.rows).collect())
        };
        let code = |told: Result<Vec<u32>, Error>| told.unwrap_err().code;
        assert_eq!(tell(&[0], 0, 0).unwrap(), [0_u32; 0]);
        assert_eq!(tell(&[3, 4], 7, 14).unwrap(), [7]);
        assert_eq!(code(tell(&[3, 5], 7, 99)), "rows_limit");
        assert_eq!(code(tell(&[3, 4], 7, 13)), "bytes_limit");
        let whole = BATCH_ROWS as u32;
        let many = [whole - 1, 200, whole, 1];
        assert_eq!(
            tell(&many, u32::MAX, u64::MAX).unwrap(),
            [whole + 199, whole, 1]
        );
        assert_eq!(
            code(tell(&many, u32::MAX, u64::from(4 * whole))),
            "bytes_limit"
        );
    }
}
