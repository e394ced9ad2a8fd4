//! The requests in flight on one session and what has arrived of their results. Counts rows and
//! bytes while they arrive, never after.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use crate::{
    columns::{Batch, Column, Output},
    fault::Fault,
    memory::{HeldMemory, MemoryAccount, hold},
    pool::Job,
};

/// What the batches of any result may cost the host beside their data: some of 1,600 columns each. A larger result
/// may cost as much again as it holds.
const OVERHEAD_BYTES: u64 = 1 << 20;

pub(crate) struct Submitted {
    pub id: u32,
    pub job: Job,
    pub submitted: Instant,
    /// Answered already (too late, too large, nobody waits): its end is awaited until then.
    pub quit: Option<Instant>,
    columns: Option<Arc<[Column]>>,
    batches: Vec<Batch>,
    rows: usize,
    bytes: usize,
    overhead: usize,
    held: Option<HeldMemory>,
}

impl Submitted {
    pub fn new(id: u32, job: Job, submitted: Instant) -> Submitted {
        Submitted {
            id,
            job,
            submitted,
            quit: None,
            columns: None,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            overhead: 0,
            held: None,
        }
    }

    /// Nobody waits for it any more: what came of it is let go.
    pub fn quits(&mut self, at: Instant) {
        self.quit = Some(at);
        self.batches = Vec::new();
        self.held = None;
    }

    /// The whole result. Leaves the entry empty.
    pub fn output(&mut self) -> Output {
        let mut output = Output::new(
            self.columns.take().unwrap_or_default(),
            std::mem::take(&mut self.batches),
            self.bytes,
        );
        output.held = self.held.take().map(Arc::new);
        output
    }
}

pub(crate) struct InFlight {
    list: VecDeque<Submitted>,
    /// How many of them may be asked only once.
    unrepeatable: usize,
    /// What their results take memory from.
    account: MemoryAccount,
}

/// What is wrong with what arrived.
pub(crate) enum Wrong {
    /// The contract was broken; names the request, if it is known.
    Broken(u32, String),
    /// The result is larger than the request allows, or than there is memory for.
    TooLarge(u32, Fault),
}

impl InFlight {
    pub fn new(account: MemoryAccount) -> InFlight {
        InFlight {
            list: VecDeque::new(),
            unrepeatable: 0,
            account,
        }
    }

    pub fn account(&self) -> &MemoryAccount {
        &self.account
    }

    pub fn push(&mut self, entry: Submitted) {
        self.unrepeatable += usize::from(!entry.job.request.is_repeatable());
        self.list.push_back(entry);
    }

    /// Whether with the session something would be lost that nobody may ask again.
    #[inline]
    pub fn has_unrepeatable(&self) -> bool {
        self.unrepeatable > 0
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether somebody still waits for one of them.
    pub fn is_awaited(&self) -> bool {
        self.list.iter().any(|entry| entry.quit.is_none())
    }

    pub fn contains(&self, id: u32) -> bool {
        self.list.iter().any(|entry| entry.id == id)
    }

    pub fn oldest(&self) -> Option<Instant> {
        self.list.front().map(|entry| entry.submitted)
    }

    /// When the last of them has to have ended.
    pub fn latest(&self) -> Option<Instant> {
        let ends = |entry: &Submitted| entry.quit.unwrap_or(entry.job.deadline);
        self.list.iter().map(ends).max()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Submitted> {
        self.list.iter_mut()
    }

    pub fn drain(&mut self) -> VecDeque<Submitted> {
        self.unrepeatable = 0;
        std::mem::take(&mut self.list)
    }

    /// Requests end in order more often than not: the first one is looked at first.
    #[inline]
    fn find(&mut self, id: u32) -> Option<&mut Submitted> {
        self.list.iter_mut().find(|entry| entry.id == id)
    }

    #[inline]
    pub fn take(&mut self, id: u32) -> Option<Submitted> {
        let at = self.list.iter().position(|entry| entry.id == id)?;
        let entry = match at {
            0 => self.list.pop_front(),
            _ => self.list.remove(at),
        }?;
        self.unrepeatable -= usize::from(!entry.job.request.is_repeatable());
        Some(entry)
    }

    pub fn columns(&mut self, id: u32, columns: Arc<[Column]>) -> Result<(), Wrong> {
        let Some(entry) = self.find(id) else {
            return Err(unknown(id));
        };
        entry.columns = Some(columns);
        Ok(())
    }

    /// `bytes`: of its data; `overhead`: what it costs beside them.
    pub fn batch(
        &mut self,
        id: u32,
        batch: Batch,
        bytes: usize,
        overhead: usize,
    ) -> Result<(), Wrong> {
        let Some(entry) = self.list.iter_mut().find(|entry| entry.id == id) else {
            return Err(unknown(id));
        };
        if entry.quit.is_some() {
            return Ok(());
        }
        let limits = entry.job.request.limits();
        entry.rows += batch.rows as usize;
        entry.bytes += bytes;
        entry.overhead += overhead;
        if entry.rows > limits.rows_max as usize {
            let reason = format!("the result has more than {} rows", limits.rows_max);
            return Err(Wrong::TooLarge(id, Fault::too_large(reason)));
        }
        let is_heavy = entry.overhead as u64 > limits.bytes_max + OVERHEAD_BYTES;
        if entry.bytes as u64 > limits.bytes_max || is_heavy {
            let reason = format!("the result has more than {} bytes", limits.bytes_max);
            return Err(Wrong::TooLarge(id, Fault::too_large(reason)));
        }
        hold(&mut entry.held, &self.account, entry.bytes + entry.overhead)
            .map_err(|refused| Wrong::TooLarge(id, refused.fault()))?;
        if batch.rows > 0 {
            entry.batches.push(batch);
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
