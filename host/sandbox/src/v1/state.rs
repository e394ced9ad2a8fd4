//! What the host keeps beside each guest: its limits, its clock and, for directories, its WASI context.

use std::{any::Any, path::Path};

use async_trait::async_trait;
use wasmtime::{ResourceLimiter, ResourceLimiterAsync};
use wasmtime_wasi::{FsPerms, ResourceTable, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use super::{budget::Budget, printer::Printer, turns::Turns};
use crate::{
    engine::{INSTANCES_MAX, MEMORIES_MAX, TABLE_ELEMENTS, TABLES_MAX},
    journal::Stream,
    memory::{MemoryAccount, MemoryRefused},
};

/// Random bytes that one call may ask for: no protocol needs more at once.
pub(super) const RANDOM_BYTES_MAX: u64 = 64 << 10;
/// Open files, streams and directories of a guest on a directory.
const RESOURCES_MAX: usize = 256;

/// How much linear memory a guest may have, and on whose account.
#[derive(Clone)]
pub(crate) struct MemoryGrant {
    /// Of this guest.
    pub bytes_max: usize,
    /// With more than this it does not compute on a worker, where it can be helped.
    pub on_worker_max: usize,
    /// So much of it is on nobody's account.
    pub uncounted: usize,
    pub account: Option<MemoryAccount>,
}

impl MemoryGrant {
    /// What is on the account, of so much memory.
    fn counted(&self, memory: usize) -> usize {
        memory.saturating_sub(self.uncounted)
    }
}

/// Memory and table bounds of one session, and its clock.
pub(crate) struct GuestLimits {
    grant: MemoryGrant,
    memory: usize,
    /// In the call that is under way.
    pub refused: Option<MemoryRefused>,
    /// It wanted more memory than it may have on a worker, and could not be suspended.
    pub outgrew_worker: bool,
    pub turns: Turns,
}

impl GuestLimits {
    fn new(budget: &Budget) -> GuestLimits {
        GuestLimits {
            grant: budget.memory.clone(),
            memory: 0,
            refused: None,
            outgrew_worker: false,
            turns: Turns::new(budget.ticker.clone()),
        }
    }

    /// Whether it has more memory than it may have on a worker.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.memory > self.grant.on_worker_max
    }

    fn after(&self, current: usize, desired: usize) -> usize {
        self.memory + desired.saturating_sub(current)
    }

    fn outgrows_worker(&self, current: usize, desired: usize) -> bool {
        self.turns.is_on_worker() && self.after(current, desired) > self.grant.on_worker_max
    }

    /// Takes what a memory grows by. Returns whether there was so much.
    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let grant = &self.grant;
        let memory = self.after(current, desired);
        let taken = match &grant.account {
            _ if memory > grant.bytes_max => Err(MemoryRefused::Session),
            Some(account) => account.take(grant.counted(memory) - grant.counted(self.memory)),
            None => Ok(()),
        };
        match taken {
            Ok(()) => self.memory = memory,
            Err(refused) => self.refused = Some(refused),
        }
        taken.is_ok()
    }
}

impl Drop for GuestLimits {
    fn drop(&mut self) {
        if let Some(account) = &self.grant.account {
            account.give(self.grant.counted(self.memory));
        }
    }
}

/// Of a guest that is called plainly: what outgrows a worker is cut off there.
impl ResourceLimiter for GuestLimits {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if self.outgrows_worker(current, desired) {
            self.outgrew_worker = true;
            return Err(wasmtime::Error::msg("its memory outgrew a worker"));
        }
        Ok(self.grow(current, desired))
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}

/// Of a guest whose calls can all be suspended: what outgrows a worker goes on in a lane.
#[async_trait]
impl ResourceLimiterAsync for GuestLimits {
    async fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if self.outgrows_worker(current, desired) {
            self.turns.leave_worker().await;
        }
        Ok(self.grow(current, desired))
    }

    async fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        ResourceLimiter::table_growing(self, current, desired, maximum)
    }

    fn instances(&self) -> usize {
        INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}

/// What all guests have.
pub(crate) trait GuestState: Send + 'static {
    fn limits(&self) -> &GuestLimits;
    fn limits_mut(&mut self) -> &mut GuestLimits;
    fn printer(&self) -> &Printer;

    #[inline]
    fn turns(&mut self) -> &mut Turns {
        &mut self.limits_mut().turns
    }

    /// A call begins. What an earlier one was refused, and has done without, says nothing of how this one ends.
    #[inline]
    fn begin(&mut self) -> &mut Turns {
        let limits = self.limits_mut();
        limits.refused = None;
        &mut limits.turns
    }
}

pub(crate) struct WireState {
    limits: GuestLimits,
    printer: Printer,
}

impl WireState {
    pub fn new(budget: &Budget, printer: Printer) -> WireState {
        WireState {
            limits: GuestLimits::new(budget),
            printer,
        }
    }
}

impl GuestState for WireState {
    #[inline]
    fn limits(&self) -> &GuestLimits {
        &self.limits
    }

    #[inline]
    fn limits_mut(&mut self) -> &mut GuestLimits {
        &mut self.limits
    }

    #[inline]
    fn printer(&self) -> &Printer {
        &self.printer
    }
}

pub(crate) struct DirectoryState {
    limits: GuestLimits,
    printer: Printer,
    wasi: WasiCtx,
    table: ResourceTable,
    /// Until the guest is dropped its directory stays.
    _held: Option<Held>,
}

/// What keeps a directory where it is.
pub(crate) type Held = Box<dyn Any + Send + Sync>;

impl DirectoryState {
    /// `directory` becomes `/data`, read-only; without one (a health check) there is no file at all.
    pub fn new(
        budget: &Budget,
        printer: Printer,
        directory: Option<(&Path, Option<Held>)>,
    ) -> wasmtime::Result<DirectoryState> {
        let mut builder = WasiCtxBuilder::new();
        builder.stdout(printer.stream(Stream::Stdout));
        builder.stderr(printer.stream(Stream::Stderr));
        // They are made one by one, in one call of the guest's, which nothing interrupts.
        builder.max_random_size(RANDOM_BYTES_MAX);
        // Reads are of local files, mostly cached: a thread hop for each costs more than it saves.
        builder.allow_blocking_current_thread(true);
        let mut held = None;
        if let Some((path, holder)) = directory {
            builder.preopened_dir(path, "/data", FsPerms::ReadOnly)?;
            held = holder;
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        Ok(DirectoryState {
            limits: GuestLimits::new(budget),
            printer,
            wasi: builder.build(),
            table,
            _held: held,
        })
    }
}

impl GuestState for DirectoryState {
    fn limits(&self) -> &GuestLimits {
        &self.limits
    }

    fn limits_mut(&mut self) -> &mut GuestLimits {
        &mut self.limits
    }

    fn printer(&self) -> &Printer {
        &self.printer
    }
}

impl WasiView for DirectoryState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::TICK, ticker::Ticker};
    use std::{pin::pin, sync::Arc, task::Waker, time::Duration};

    const MIB: usize = 1 << 20;

    fn limits() -> GuestLimits {
        GuestLimits::new(&Budget {
            memory: MemoryGrant {
                bytes_max: 64 * MIB,
                on_worker_max: 6 * MIB,
                uncounted: 0,
                account: None,
            },
            is_suspended: false,
            call: Duration::from_secs(1),
            call_per_mib: Duration::ZERO,
            inline_bytes: 0,
            call_bytes: 0,
            columns_max: 0,
            ticker: Arc::new(Ticker::new(TICK)),
        })
    }

    /// What asks for more memory than a worker can fill is cut off there; in a lane it has what it may have.
    #[test]
    fn much_memory_is_not_had_in_a_plain_call() {
        let mut limits = limits();
        let grow = |limits: &mut GuestLimits, from: usize, to: usize| {
            ResourceLimiter::memory_growing(limits, from * MIB, to * MIB, None).ok()
        };
        limits.turns.inline();
        assert_eq!(grow(&mut limits, 0, 6), Some(true));
        assert!(!limits.is_large() && !limits.outgrew_worker);
        assert_eq!(grow(&mut limits, 6, 7), None);
        assert!(!limits.is_large() && limits.outgrew_worker);
        limits.turns.in_turns(Duration::from_secs(1), false);
        assert_eq!(grow(&mut limits, 6, 64), Some(true));
        assert_eq!(grow(&mut limits, 64, 65), Some(false));
        assert!(limits.is_large());
    }

    /// What can be suspended gives the worker back before it has it, once.
    #[test]
    fn much_memory_is_had_in_the_next_turn() {
        let mut limits = limits();
        limits.turns.in_turns(Duration::from_secs(1), true);
        let mut cx = std::task::Context::from_waker(Waker::noop());
        let mut turns = |limits: &mut GuestLimits, from: usize, to: usize| {
            let grows = ResourceLimiterAsync::memory_growing(limits, from * MIB, to * MIB, None);
            let mut grows = pin!(grows);
            (1..9).find(|_| grows.as_mut().poll(&mut cx).is_ready())
        };
        assert_eq!(turns(&mut limits, 0, 6), Some(1));
        assert!(limits.turns.is_on_worker() && !limits.turns.met_tick());
        assert_eq!(turns(&mut limits, 6, 7), Some(2));
        assert!(!limits.turns.is_on_worker() && limits.turns.met_tick());
        assert_eq!(turns(&mut limits, 7, 64), Some(1));
        // The worker's bytes are all that it may return until its next tick.
        assert!(limits.turns.returns_little() && limits.is_large());
    }
}
