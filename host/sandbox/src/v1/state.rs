//! What the host keeps beside each guest: its limits and, for directories, its WASI context.

use std::path::Path;

use wasmtime::ResourceLimiter;
use wasmtime_wasi::{FsPerms, ResourceTable, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::engine::TABLE_ELEMENTS;

const INSTANCES_MAX: usize = 16;
const TABLES_MAX: usize = 8;
const MEMORIES_MAX: usize = 2;
/// Open files, streams and directories of a guest on a directory.
const RESOURCES_MAX: usize = 256;

/// Memory and table bounds of one session.
pub(crate) struct GuestLimits {
    memory_max: usize,
    memory: usize,
    /// A growth was refused: a trap that follows is for want of memory.
    pub refused: bool,
}

impl GuestLimits {
    fn new(memory_max: usize) -> GuestLimits {
        GuestLimits {
            memory_max,
            memory: 0,
            refused: false,
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
        let memory = self.memory + desired.saturating_sub(current);
        if memory > self.memory_max {
            self.refused = true;
            return Ok(false);
        }
        self.memory = memory;
        Ok(true)
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
}

pub(crate) struct WireState {
    limits: GuestLimits,
}

impl WireState {
    pub fn new(memory_max: usize) -> WireState {
        WireState {
            limits: GuestLimits::new(memory_max),
        }
    }
}

impl GuestState for WireState {
    fn limits(&mut self) -> &mut GuestLimits {
        &mut self.limits
    }
}

pub(crate) struct DirectoryState {
    limits: GuestLimits,
    wasi: WasiCtx,
    table: ResourceTable,
}

impl DirectoryState {
    /// `directory` becomes `/data`, read-only; without one (a health check) there is no file at all.
    pub fn new(memory_max: usize, directory: Option<&Path>) -> wasmtime::Result<DirectoryState> {
        let mut builder = WasiCtxBuilder::new();
        // Reads are of local files, mostly cached: a thread hop for each costs more than it saves.
        builder.allow_blocking_current_thread(true);
        if let Some(directory) = directory {
            builder.preopened_dir(directory, "/data", FsPerms::ReadOnly)?;
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        Ok(DirectoryState {
            limits: GuestLimits::new(memory_max),
            wasi: builder.build(),
            table,
        })
    }
}

impl GuestState for DirectoryState {
    fn limits(&mut self) -> &mut GuestLimits {
        &mut self.limits
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
