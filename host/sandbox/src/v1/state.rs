//! What the host keeps beside each guest: its limits, its clock and, for directories, its WASI context.

use std::{any::Any, path::Path};

use wasmtime::ResourceLimiter;
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

/// Memory and table bounds of one session.
pub(crate) struct GuestLimits {
    grant: MemoryGrant,
    memory: usize,
    pub refused: Option<MemoryRefused>,
}

impl GuestLimits {
    fn new(grant: MemoryGrant) -> GuestLimits {
        GuestLimits {
            grant,
            memory: 0,
            refused: None,
        }
    }
}

impl Drop for GuestLimits {
    fn drop(&mut self) {
        if let Some(account) = &self.grant.account {
            account.give(self.grant.counted(self.memory));
        }
    }
}

impl ResourceLimiter for GuestLimits {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let grant = &self.grant;
        let memory = self.memory + desired.saturating_sub(current);
        let taken = match &grant.account {
            _ if memory > grant.bytes_max => Err(MemoryRefused::Session),
            Some(account) => account.take(grant.counted(memory) - grant.counted(self.memory)),
            None => Ok(()),
        };
        match taken {
            Ok(()) => self.memory = memory,
            Err(refused) => self.refused = Some(refused),
        }
        Ok(taken.is_ok())
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

/// What all guests have.
pub(crate) trait GuestState: Send + 'static {
    fn limits(&mut self) -> &mut GuestLimits;
    fn turns(&mut self) -> &mut Turns;
    fn printer(&self) -> &Printer;
}

pub(crate) struct WireState {
    limits: GuestLimits,
    turns: Turns,
    printer: Printer,
}

impl WireState {
    pub fn new(budget: &Budget, printer: Printer) -> WireState {
        WireState {
            limits: GuestLimits::new(budget.memory.clone()),
            turns: Turns::new(budget.ticker.clone()),
            printer,
        }
    }
}

impl GuestState for WireState {
    fn limits(&mut self) -> &mut GuestLimits {
        &mut self.limits
    }

    #[inline]
    fn turns(&mut self) -> &mut Turns {
        &mut self.turns
    }

    #[inline]
    fn printer(&self) -> &Printer {
        &self.printer
    }
}

pub(crate) struct DirectoryState {
    limits: GuestLimits,
    turns: Turns,
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
            limits: GuestLimits::new(budget.memory.clone()),
            turns: Turns::new(budget.ticker.clone()),
            printer,
            wasi: builder.build(),
            table,
            _held: held,
        })
    }
}

impl GuestState for DirectoryState {
    fn limits(&mut self) -> &mut GuestLimits {
        &mut self.limits
    }

    fn turns(&mut self) -> &mut Turns {
        &mut self.turns
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
