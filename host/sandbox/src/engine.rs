//! The one WebAssembly engine of this host, and the thread that keeps its time. Knows nothing of
//! connectors.

use std::{
    hash::{Hash, Hasher},
    time::Duration,
};

use sha2::{Digest, Sha256};
use wasmtime::{Config, Engine, PoolingAllocationConfig};

use crate::{errands::ERRANDS_MAX, options::SandboxLimits};

/// Granularity of every time limit inside a guest. A file engine that computes for long lets others
/// run after each tick, so it must be short; a tick costs the keeper thread some microseconds, and there is none while no guest is called (`ticker.rs`).
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Memories that are not sessions of pools: describing, health checks, errands.
const SPARE_INSTANCES: u32 = 16 + ERRANDS_MAX;
/// Function table entries of one component. Most have about 4,000; a whole query engine with its functions (`plugins/files`) has ten times that. It
/// is address space: a table takes what is written to it.
pub(crate) const TABLE_ELEMENTS: usize = 65_536;
/// What a core module's instance, or those of a component together, have beside memories and tables, above all 32 bytes for each function that is
/// in a table: made when it is needed.
const INSTANCE_BYTES: usize = 4 << 20;
/// Core modules of one component: the connector's own, and the shims that `wit-component` adds for what it imports. Rust has 4 or so, Python's
/// interpreter with its libraries 38. The pool has room for as many in every session, so that none can take another's: of address space, and
/// some hundred bytes.
pub(crate) const INSTANCES_MAX: usize = 48;
pub(crate) const TABLES_MAX: usize = 16;
/// JavaScript's engines have 3. All of them together are held to a session's memory.
pub(crate) const MEMORIES_MAX: usize = 4;
/// Below this many sessions a host is not worth starting.
const SESSIONS_MIN: u32 = 16;

/// An engine that runs components, with all memory for them reserved (not committed) up front.
/// Where the address space is limited, it takes fewer sessions rather than failing to start.
pub(crate) fn runtime(limits: &SandboxLimits) -> wasmtime::Result<(Engine, u32)> {
    let mut sessions = limits.sessions_total.max(SESSIONS_MIN);
    loop {
        let mut config = compile_config();
        config.allocation_strategy(pooling(limits, sessions));
        match Engine::new(&config) {
            Ok(engine) => return Ok((engine, sessions)),
            Err(error) if sessions / 2 < SESSIONS_MIN => return Err(error),
            Err(error) => {
                tracing::warn!(sessions, %error, "cannot reserve memory for this many sessions, trying half");
                sessions /= 2;
            }
        }
    }
}

/// An engine that only compiles: no memory is reserved.
pub(crate) fn compiler() -> wasmtime::Result<Engine> {
    Engine::new(&compile_config())
}

/// Everything that compiled code depends on. (Core dumps of guest memory, Winch and garbage-collected
/// types are not even built into this wasmtime.)
fn compile_config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        // Synchronous calls into guests cost 112 ns without it and 880 ns with it.
        .concurrency_support(false)
        .epoch_interruption(true)
        // Traps are told by name; offsets into a connector help nobody here and a third of the
        // compiled size is saved.
        .generate_address_map(false)
        .native_unwind_info(false);
    config
}

/// What all sessions have together.
struct Room {
    instances: u32,
    core_instances: u32,
    memories: u32,
    tables: u32,
}

impl Room {
    /// Every session may have as much as one may: who has the largest component takes nothing from others.
    fn of(sessions: u32) -> Room {
        let instances = sessions + SPARE_INSTANCES;
        Room {
            instances,
            core_instances: instances * INSTANCES_MAX as u32,
            memories: instances * MEMORIES_MAX as u32,
            tables: instances * TABLES_MAX as u32,
        }
    }
}

fn pooling(limits: &SandboxLimits, sessions: u32) -> PoolingAllocationConfig {
    let room = Room::of(sessions);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(room.instances)
        .total_core_instances(room.core_instances)
        .total_memories(room.memories)
        .total_tables(room.tables)
        .total_stacks(room.instances)
        .max_core_instances_per_component(INSTANCES_MAX as u32)
        .max_tables_per_component(TABLES_MAX as u32)
        .max_memories_per_component(MEMORIES_MAX as u32)
        .table_elements(TABLE_ELEMENTS)
        .max_core_instance_size(INSTANCE_BYTES)
        .max_component_instance_size(INSTANCE_BYTES)
        .max_memory_size(limits.wire_memory_bytes.max(limits.directory_memory_bytes));
    pool
}

/// What compiled code must match to be loaded, as hex.
pub(crate) fn fingerprint(engine: &Engine) -> String {
    struct Collect(Sha256);
    impl Hasher for Collect {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut collect = Collect(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut collect);
    hex::encode(&collect.0.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many sessions as a company may have, of components with 16 core instances or with the most that there may be, leave every other
    /// session as much as one may have.
    #[test]
    fn no_component_takes_room_from_others() {
        let limits = SandboxLimits::default();
        let most = [INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX].map(|most| most as u32);
        for sessions in [SESSIONS_MIN, limits.sessions_total] {
            let room = Room::of(sessions);
            assert_eq!(room.instances, sessions + SPARE_INSTANCES);
            let own = sessions.min(limits.quota.sessions as u32);
            let others = room.instances - own;
            let has = [room.core_instances, room.memories, room.tables];
            for component in [[16, 1, 2], most] {
                for ((has, one), most) in has.into_iter().zip(component).zip(most) {
                    assert!(one <= most && has - own * one >= others * most);
                }
            }
        }
    }
}
