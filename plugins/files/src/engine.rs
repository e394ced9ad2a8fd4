//! DataFusion, with the session's tables and nothing else: one thread, a bounded memory, no other catalogs, files or settings.

use crate::averages;
use crate::clock::Clock;
use crate::comparisons::widened::Widened;
use crate::errors;
use crate::exact::Exact;
use crate::files::Opened;
use crate::guards::first::FilterFirst;
use crate::guards::once::{ONCE, OnceIfSure};
use crate::guards::pairs::OfPairs;
use crate::late::{self, ReadLate};
use crate::memory::Memory;
use crate::series::{self, Series};
use crate::sides::{self, SmallerSide};
use crate::steps::GiveWay;
use crate::sums;
use crate::tables::{self, Table};
use crate::turned::TurnRound;
use crate::watch::{ROWS, Watch};
use crate::zones;
use chrono::SubsecRound;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::config::{ConfigNonZeroUsize, Dialect};
use datafusion::error::Result as Planned;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use souk_sdk::Error;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The one schema.
pub const SCHEMA: &str = "public";
const CATALOG: &str = "files";

/// All that groups, sorts and joins keep: past it a statement fails and the session goes on. It is told when it has grown, and one text of it
/// may have grown to twice of what it was: then its smaller copies, which others do not fill, itself and the larger one are four times this,
/// and what is read and the answer have their room in the component's 512 MiB, too. A table of groups grows no worse.
const MEMORY_BYTES: usize = 100 << 20;
/// How deep an expression may nest: planning it recurses, and a component has 512 KiB of stack.
const DEPTH_MAX: usize = 40;
/// Of a second's fraction.
const MICROS_DIGITS: u16 = 6;

pub struct Engine {
    state: SessionState,
    tables: Arc<Tables>,
    runtime: tokio::runtime::Runtime,
    read: Arc<AtomicU64>,
}

impl Engine {
    pub fn new(opened: Opened, clock: Clock, memory: Memory) -> Result<Engine, Error> {
        let tables = opened.tables.into_iter().map(|files| {
            let name = files.name.clone();
            (name, Table::new(files))
        });
        let tables = Arc::new(Tables {
            by_name: tables.collect(),
            watch: Arc::new(Watch { clock, memory }),
        });
        let state = state(tables.clone()).map_err(|error| errors::of_statement(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|error| {
                Error::internal("no_runtime", "the connector could not start")
                    .detail(error.to_string())
            })?;
        Ok(Engine {
            state,
            tables,
            runtime,
            read: opened.read,
        })
    }

    /// For one statement, which begins now: what it calls `now()` is one moment.
    pub fn begun(&self) -> SessionState {
        let mut state = self.state.clone();
        state.mark_start_execution();
        // As PostgreSQL has it, and as it can be answered.
        let begun = &mut state.execution_props_mut().query_execution_start_time;
        *begun = begun.map(|begun| begun.trunc_subsecs(MICROS_DIGITS));
        state
    }

    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.by_name.get(name)
    }

    pub fn clock(&self) -> &Clock {
        &self.watch().clock
    }

    pub fn watch(&self) -> &Watch {
        &self.tables.watch
    }

    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.by_name.values()
    }

    /// What is kept of tables.
    pub fn kept(&self) -> Arc<tables::Kept> {
        let kept = self.state.config().get_extension::<tables::Kept>();
        kept.unwrap_or_default()
    }

    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Runs a future to its end. Nothing in it waits for anything: what is pending has given way, so that the time is looked at.
    pub fn finish<T>(&self, future: impl Future<Output = Planned<T>>) -> Result<T, Error> {
        let mut future = std::pin::pin!(future);
        let clock = self.clock();
        let watched = std::future::poll_fn(|context| {
            if let Err(error) = clock.check() {
                return std::task::Poll::Ready(Err(error));
            }
            let polled = future.as_mut().poll(context);
            if polled.is_pending() {
                // Where a task of its own computes, its giving way wakes nobody else.
                context.waker().wake_by_ref();
            }
            polled.map_err(|error| errors::of_statement(&error))
        });
        let finished = self.runtime.block_on(watched);
        if finished.is_err() {
            self.settle();
        }
        finished
    }

    /// Tasks that were given up let go of their memory only when they are next due.
    pub fn settle(&self) {
        self.runtime.block_on(tokio::task::yield_now());
    }
}

/// The same, with batches of so many rows.
pub fn with_rows(state: SessionState, batch_rows: usize) -> SessionState {
    let config = state.config().clone().with_batch_size(batch_rows);
    SessionStateBuilder::new_from_existing(state)
        .with_config(config)
        .build()
}

fn state(tables: Arc<Tables>) -> Planned<SessionState> {
    let give_way = GiveWay(tables.watch.clone());
    let read_late = ReadLate(tables.watch.clone());
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(SCHEMA, tables)?;
    let rules = Optimizer::new().rules.into_iter();
    let rules = rules.map(|rule| match rule.name() {
        ONCE => Arc::new(OnceIfSure(rule)),
        _ => rule,
    });
    let widened: Arc<dyn OptimizerRule + Send + Sync> = Arc::new(Widened);
    let rules = std::iter::once(widened).chain(rules);
    let first: Arc<dyn PhysicalOptimizerRule + Send + Sync> = Arc::new(OfPairs);
    let mut steps = PhysicalOptimizer::new().rules;
    let behind = steps.iter().position(|step| step.name() == sides::BEHIND);
    steps.insert(behind.map_or(0, |at| at + 1), Arc::new(SmallerSide));
    let before = steps.iter().position(|step| step.name() == late::BEFORE);
    steps.insert(before.unwrap_or(steps.len()), Arc::new(read_late));
    let mut state = SessionStateBuilder::new_with_default_features()
        .with_config(config()?)
        .with_runtime_env(runtime()?)
        .with_analyzer_rule(Arc::new(Exact))
        .with_optimizer_rules(rules.collect())
        .with_physical_optimizer_rules(std::iter::once(first).chain(steps).collect())
        .with_physical_optimizer_rule(Arc::new(FilterFirst))
        .with_physical_optimizer_rule(Arc::new(TurnRound))
        .with_physical_optimizer_rule(Arc::new(give_way))
        .build();
    state.register_udaf(Arc::new(sums::sum()))?;
    state.register_udaf(Arc::new(averages::avg()))?;
    state.register_udf(Arc::new(zones::function()))?;
    for name in series::NAMES {
        if let Some(function) = state.table_functions().get(name).cloned() {
            state.register_udtf(name, Arc::new(Series(function.function().clone())));
        }
    }
    state
        .catalog_list()
        .register_catalog(CATALOG.to_owned(), Arc::new(catalog));
    Ok(state)
}

fn config() -> Planned<SessionConfig> {
    let mut config = SessionConfig::new()
        .with_target_partitions(1)
        .with_batch_size(ROWS)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_information_schema(false)
        .with_extension(Arc::new(tables::Reads::default()))
        .with_extension(Arc::new(tables::Kept::default()));
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    // What is written with a point is the decimal that it says.
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.recursion_limit = ConfigNonZeroUsize::try_new(DEPTH_MAX)?;
    // A moment that is written, or made of a text, is one in UTC unless it says otherwise.
    options.execution.time_zone = Some("UTC".to_owned());
    // Whether filters are pushed down each table says for itself.
    options.execution.parquet.pushdown_filters = false;
    options.execution.parquet.reorder_filters = true;
    // Two readings of a table at a time would unpack it twice.
    options.execution.planning_concurrency = 1;
    // Sorts that do not fit fail: there is no disk to write to.
    options.execution.sort_spill_reservation_bytes = 0;
    Ok(config)
}

fn runtime() -> Planned<Arc<RuntimeEnv>> {
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(MEMORY_BYTES)))
        .with_disk_manager_builder(
            DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled),
        )
        .with_object_store_registry(Arc::new(tables::NoStores::default()))
        .build_arc()
}

/// The tables as DataFusion looks for them.
#[derive(Debug)]
struct Tables {
    by_name: BTreeMap<String, Table>,
    watch: Arc<Watch>,
}

#[async_trait::async_trait]
impl SchemaProvider for Tables {
    fn table_names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> Planned<Option<Arc<dyn TableProvider>>> {
        match self.by_name.get(name) {
            Some(table) => match table.opened(&self.watch) {
                Ok(known) => Ok(Some(known.provider)),
                Err(error) => Err(errors::through(error)),
            },
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }
}
