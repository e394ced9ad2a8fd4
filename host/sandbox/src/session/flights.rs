//! The requests in flight on one session and what has arrived of their results. Counts rows and
//! bytes while they arrive, never after.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use crate::{
    columns::{Batch, Column, Output},
    fault::{Blame, Fault, FaultKind},
    pool::Job,
    v1::{Rows, Shape},
    validate,
};

/// Columns of all shapes that a session remembers. A session that has described more is replaced.
const SHAPE_COLUMNS_MAX: usize = 100_000;

pub(crate) struct Flight {
    pub id: u32,
    pub job: Job,
    pub submitted: Instant,
    /// Answered already (too late, too large, nobody waits): its end is awaited until then.
    pub quit: Option<Instant>,
    columns: Option<Arc<[Column]>>,
    batches: Vec<Batch>,
    rows: usize,
    bytes: usize,
}

impl Flight {
    pub fn new(id: u32, job: Job, submitted: Instant) -> Flight {
        Flight {
            id,
            job,
            submitted,
            quit: None,
            columns: None,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
        }
    }

    /// The whole result. Leaves the flight empty.
    pub fn output(&mut self) -> Output {
        Output {
            columns: self.columns.take().unwrap_or_default(),
            batches: std::mem::take(&mut self.batches),
            rows: self.rows,
            bytes: self.bytes,
        }
    }
}

pub(crate) struct Flights {
    list: VecDeque<Flight>,
    shapes: HashMap<u32, Arc<[Column]>>,
    shape_columns: usize,
    columns_max: usize,
}

/// What is wrong with what arrived.
pub(crate) enum Wrong {
    /// The contract was broken; names the request, if it is known.
    Broken(u32, String),
    /// The result is larger than the request allows.
    TooLarge(u32, Fault),
}

impl Flights {
    pub fn new(columns_max: usize) -> Flights {
        Flights {
            list: VecDeque::new(),
            shapes: HashMap::new(),
            shape_columns: 0,
            columns_max,
        }
    }

    pub fn push(&mut self, flight: Flight) {
        self.list.push_back(flight);
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn contains(&self, id: u32) -> bool {
        self.list.iter().any(|flight| flight.id == id)
    }

    pub fn oldest(&self) -> Option<Instant> {
        self.list.front().map(|flight| flight.submitted)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flight> {
        self.list.iter_mut()
    }

    pub fn drain(&mut self) -> VecDeque<Flight> {
        std::mem::take(&mut self.list)
    }

    /// Requests end in order more often than not: the first one is looked at first.
    #[inline]
    fn find(&mut self, id: u32) -> Option<&mut Flight> {
        self.list.iter_mut().find(|flight| flight.id == id)
    }

    #[inline]
    pub fn take(&mut self, id: u32) -> Option<Flight> {
        let at = self.list.iter().position(|flight| flight.id == id)?;
        if at == 0 {
            self.list.pop_front()
        } else {
            self.list.remove(at)
        }
    }

    /// Whether the session has described so much that it should be replaced.
    pub fn is_full(&self) -> bool {
        self.shape_columns > SHAPE_COLUMNS_MAX
    }

    pub fn columns(&mut self, shape: Shape) -> Result<(), Wrong> {
        let Shape { id, shape, columns } = shape;
        let columns = match columns {
            Some(columns) => {
                if columns.len() > self.columns_max {
                    let reason = format!(
                        "the result has {} columns, {} are allowed",
                        columns.len(),
                        self.columns_max
                    );
                    return Err(Wrong::TooLarge(id, too_large(reason)));
                }
                self.shape_columns += columns.len() + 1;
                let columns: Arc<[Column]> = columns.into();
                self.shapes.insert(shape, columns.clone());
                columns
            }
            None => match self.shapes.get(&shape) {
                Some(columns) => columns.clone(),
                None => {
                    return Err(Wrong::Broken(
                        id,
                        format!("it named shape {shape}, which it never described"),
                    ));
                }
            },
        };
        let Some(flight) = self.find(id) else {
            return Err(unknown(id));
        };
        if flight.columns.is_some() {
            return Err(Wrong::Broken(id, "it described one result twice".into()));
        }
        flight.columns = Some(columns);
        Ok(())
    }

    pub fn batch(&mut self, rows: Rows) -> Result<(), Wrong> {
        let Rows { id, batch } = rows;
        let Some(flight) = self.find(id) else {
            return Err(unknown(id));
        };
        let Some(columns) = &flight.columns else {
            return Err(Wrong::Broken(
                id,
                "it sent a batch before its columns".into(),
            ));
        };
        let bytes = validate::batch(&batch, columns).map_err(|reason| Wrong::Broken(id, reason))?;
        if flight.quit.is_some() {
            return Ok(());
        }
        let limits = flight.job.request.limits();
        flight.rows += batch.rows as usize;
        flight.bytes += bytes;
        if flight.rows > limits.rows_max as usize {
            return Err(Wrong::TooLarge(
                id,
                too_large(format!("the result has more than {} rows", limits.rows_max)),
            ));
        }
        if flight.bytes as u64 > limits.bytes_max {
            return Err(Wrong::TooLarge(
                id,
                too_large(format!(
                    "the result has more than {} bytes",
                    limits.bytes_max
                )),
            ));
        }
        if batch.rows > 0 {
            flight.batches.push(batch);
        }
        Ok(())
    }
}

fn unknown(id: u32) -> Wrong {
    Wrong::Broken(
        id,
        format!("it spoke of request {id}, which is not in flight"),
    )
}

fn too_large(reason: String) -> Fault {
    Fault::new(Blame::Source, FaultKind::LimitExceeded, reason).code("result_too_large")
}
