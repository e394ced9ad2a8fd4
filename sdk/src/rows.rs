//! What a request answers: columns once, then rows. Batches are cut and limits are held here.

use crate::columns::{BATCH_BYTES, BATCH_ROWS, column};
use crate::io::Shared;
use crate::{Batch, Cell, Column, ColumnBuilder, ColumnType, Error, Limits};
use std::rc::Rc;

/// The answer to one request. Pushing past the request's limits fails with `limit-exceeded`; hand that on
/// with `?`. On a wire that ends the session, unless what is left of the answer is read and `Ok` returned: the
/// request fails all the same.
pub struct Rows {
    shared: Rc<Shared>,
    id: u32,
    limits: Limits,
    columns: Option<Rc<[Column]>>,
    builders: Vec<ColumnBuilder>,
    batch_rows: usize,
    batch_bytes: u64,
    rows: u32,
    bytes: u64,
    /// The first push that failed: the request fails with it even if the connector went on.
    broken: Option<Error>,
    /// It is answered without columns.
    is_nothing: bool,
}

impl Rows {
    pub(crate) fn new(shared: Rc<Shared>, id: u32, limits: Limits) -> Rows {
        Rows {
            shared,
            id,
            limits,
            columns: None,
            builders: Vec::new(),
            batch_rows: 0,
            batch_bytes: 0,
            rows: 0,
            bytes: 0,
            broken: None,
            is_nothing: false,
        }
    }

    /// Rows still allowed.
    pub fn rows_left(&self) -> u32 {
        self.limits.rows_max - self.rows
    }

    /// Describes the result, once, before the first row.
    pub fn columns(&mut self, columns: impl Into<Rc<[Column]>>) -> Result<(), Error> {
        if self.columns.is_some() {
            return self.fail(Error::internal(
                "columns_twice",
                "the connector described its result twice",
            ));
        }
        let columns = columns.into();
        let (shape, described) = self.shared.shapes.borrow_mut().number(&columns);
        self.shared
            .step
            .borrow_mut()
            .columns(self.id, shape, described);
        self.builders = builders(&columns);
        self.columns = Some(columns);
        Ok(())
    }

    /// Appends one row: one cell per column, in order, each of its column's type or NULL.
    pub fn push<'a>(&mut self, cells: impl IntoIterator<Item = Cell<'a>>) -> Result<(), Error> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        if self.rows == self.limits.rows_max {
            return self.fail(Error::too_many_rows(self.limits.rows_max));
        }
        let mut filled = 0;
        for cell in cells {
            let Some(builder) = self.builders.get_mut(filled) else {
                return self.fail(cells_and_columns());
            };
            if let Err(error) = builder.push(cell) {
                return self.fail(error);
            }
            self.batch_bytes += size(&cell);
            filled += 1;
        }
        if filled != self.builders.len() {
            return self.fail(cells_and_columns());
        }
        if self.bytes + self.batch_bytes > self.limits.bytes_max {
            return self.fail(Error::too_many_bytes(self.limits.bytes_max));
        }
        self.rows += 1;
        self.batch_rows += 1;
        if self.batch_rows == BATCH_ROWS || self.batch_bytes >= BATCH_BYTES {
            self.cut();
        }
        Ok(())
    }

    /// The columns that `Connector::schema` answers.
    pub fn schema_columns() -> Vec<Column> {
        [
            ("schema", ColumnType::Text),
            ("table", ColumnType::Text),
            ("type", ColumnType::Text),
            ("row_estimate", ColumnType::Int64),
            ("field", ColumnType::Text),
            ("field_type", ColumnType::Text),
            ("nullable", ColumnType::Boolean),
            ("primary_key", ColumnType::Boolean),
        ]
        .map(|(name, kind)| column(name, kind, ""))
        .into()
    }

    /// The columns that `Connector::call` answers.
    pub fn call_columns() -> Vec<Column> {
        vec![
            column("answer_value", ColumnType::Json, "json"),
            column("timestamp", ColumnType::Timestamp, "timestamp"),
        ]
    }

    /// The columns that `Connector::ping` answers.
    pub fn ping_columns() -> Vec<Column> {
        vec![
            column("server_version", ColumnType::Text, ""),
            column("read_only", ColumnType::Boolean, ""),
        ]
    }

    /// Answers a ping: the source answered, and it is not known whether these credentials may write.
    pub fn alive(&mut self) -> Result<(), Error> {
        self.columns(Rows::ping_columns())?;
        self.push([Cell::Null, Cell::Null])
    }

    /// The answer has no columns.
    pub(crate) fn nothing(&mut self) {
        self.is_nothing = true;
    }

    /// Ends the request with what the connector returned. On a wire who stops at a row may have left others unread, and who says so has
    /// ([`Tcp::broken`](crate::Tcp::broken)): that error is handed back, for it ends the session.
    pub(crate) fn conclude(
        mut self,
        result: Result<(), Error>,
        is_wire: bool,
    ) -> Result<(), Error> {
        if is_wire && (self.broken.is_some() || self.shared.wire.borrow().broken) {
            result.clone()?;
        }
        let result = result.and_then(|()| match self.broken.take() {
            Some(error) => Err(error),
            None if self.columns.is_none() && !self.is_nothing => Err(Error::internal(
                "no_columns",
                "the connector did not describe its result",
            )),
            None => Ok(()),
        });
        match result {
            Ok(()) => {
                if self.batch_rows > 0 {
                    // None comes behind it.
                    let last = std::mem::take(&mut self.builders);
                    self.tell(last);
                }
                self.shared.step.borrow_mut().done(self.id);
            }
            Err(error) => self.shared.step.borrow_mut().failed(self.id, error),
        }
        Ok(())
    }

    fn cut(&mut self) {
        let Some(columns) = &self.columns else { return };
        let next = builders(columns);
        let full = std::mem::replace(&mut self.builders, next);
        self.tell(full);
    }

    /// Ends a batch.
    fn tell(&mut self, full: Vec<ColumnBuilder>) {
        let batch = Batch {
            rows: self.batch_rows as u32,
            chunks: full.into_iter().map(ColumnBuilder::finish).collect(),
        };
        self.shared.step.borrow_mut().batch(self.id, batch);
        self.bytes += self.batch_bytes;
        self.batch_rows = 0;
        self.batch_bytes = 0;
    }

    fn fail<T>(&mut self, error: Error) -> Result<T, Error> {
        self.broken.get_or_insert_with(|| error.clone());
        Err(error)
    }
}

fn builders(columns: &[Column]) -> Vec<ColumnBuilder> {
    columns
        .iter()
        .map(|column| ColumnBuilder::new(column.kind))
        .collect()
}

fn cells_and_columns() -> Error {
    Error::internal(
        "row_length",
        "the connector pushed a row whose length is not the number of columns",
    )
}

/// What a value counts for towards `bytes-max`.
fn size(cell: &Cell<'_>) -> u64 {
    match cell {
        Cell::Null | Cell::Boolean(_) => 1,
        Cell::Date(_) => 4,
        Cell::Int64(_)
        | Cell::Float64(_)
        | Cell::Time(_)
        | Cell::Timestamp(_)
        | Cell::LocalTimestamp(_) => 8,
        Cell::Decimal(text) | Cell::Text(text) | Cell::Json(text) => text.len() as u64,
        Cell::Bytes(bytes) => bytes.len() as u64,
    }
}
