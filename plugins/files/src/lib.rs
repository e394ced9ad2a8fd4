//! The files connector: Parquet, CSV, JSON Lines and Arrow files as tables, queried with SQL by DataFusion.
//!
//! Every request is answered in the call that submits it, by one thread. A connection names one file of the directory that the host
//! grants, or a tar archive of several. `README.md` says how a file becomes a table and how its values get their types. It refuses to
//! know where the directory is outside its sandbox.
//!
//! Start reading at [`Session`], then [`engine`] and [`query`].

#[cfg(target_family = "wasm")]
mod allocated;
mod answer;
mod archive;
mod averages;
mod catalog;
mod clock;
mod comparisons;
mod computed;
mod distinct;
mod engine;
mod errors;
mod escapes;
mod exact;
mod extremes;
mod files;
mod floats;
mod formats;
mod guards;
mod ignored;
mod intervals;
mod late;
mod memory;
mod ordered;
#[cfg(target_family = "wasm")]
mod panics;
mod parameters;
mod pieces;
mod places;
mod plans;
mod query;
mod reaches;
mod series;
mod settings;
mod sides;
mod similar;
mod slice;
mod steps;
mod sums;
mod tables;
mod turned;
mod types;
mod watch;
#[cfg(any(test, target_family = "wasm"))]
mod wide;
mod zones;

pub use memory::count_with as count_memory_with;

use clock::Clock;
use engine::Engine;
use memory::Memory;
use souk_sdk::{
    Batch, Cell, Column, ColumnBuilder, Descriptor, Error, FileName, Input, Limits, Machine, Need,
    Request, Rows, Settings, Step,
};
use std::path::{Path, PathBuf};

/// Where the host preopens the granted directory.
const DIRECTORY: &str = "/data";

/// What opening may take: the host ends it after fifteen seconds, and would take it for a fault of the connector.
const OPEN_MS: u32 = 10_000;

/// Numbers of the fixed shapes, out of the way of those of statements.
const SHAPE_SCHEMA: u32 = 1_000_000;
const SHAPE_PING: u32 = 1_000_001;

/// One session on one file, or on one archive of files.
pub struct Session {
    directory: PathBuf,
    name: FileName,
    engine: Option<Engine>,
    shapes: answer::Shapes,
}

souk_sdk::export_machine!(Session);

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("files", env!("CARGO_PKG_VERSION"), Need::Directory)
            .engine(
                "files",
                "Parquet, CSV, JSON and Arrow files",
                "postgres",
                &["NONE"],
            )
            .settings_schema(settings::SCHEMA)
            .abilities(&["schema"])
    }

    fn open(settings: Settings) -> Result<Session, Error> {
        #[cfg(target_family = "wasm")]
        panics::advise();
        Session::open_in(Path::new(DIRECTORY), &settings)
    }

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        let memory = Memory::default();
        let clock = Clock::default();
        clock.allow(OPEN_MS);
        let files = files::open(&self.directory, &self.name, &clock)?;
        self.engine = Some(Engine::new(files, Clock::default(), memory)?);
        step.ready();
        Ok(())
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        let Some(engine) = &self.engine else {
            return Err(Error::internal(
                "not_started",
                "a request came before the session was started",
            ));
        };
        let answered = match &request {
            Request::Query(query) => query::run(engine, query).map(|answer| {
                let (shape, columns) = self.shapes.number(answer.columns);
                step.columns(id, shape, columns);
                answer.batches
            }),
            Request::Schema(filter) => catalog::read(engine, filter)
                .inspect(|_| step.columns(id, SHAPE_SCHEMA, Some(Rows::schema_columns())))
                .map(|batch| vec![batch]),
            Request::Ping(limits) => ping(engine, limits)
                .inspect(|_| step.columns(id, SHAPE_PING, Some(Rows::ping_columns())))
                .map(|batch| vec![batch]),
            Request::Call(_) => Err(Error::unsupported("functions")),
            Request::Errand(_) => Err(Error::unsupported("errands")),
        };
        match answered {
            Ok(batches) => {
                for batch in batches.into_iter().filter(|batch| batch.rows > 0) {
                    step.batch(id, batch);
                }
                step.done(id);
            }
            Err(error) => step.failed(id, error),
        }
        Ok(())
    }

    fn receive(&mut self, _input: Input, _step: &mut Step) -> Result<(), Error> {
        Err(Error::internal(
            "unexpected_input",
            "a file connector has no wire",
        ))
    }

    /// Nothing is ever in flight between two calls.
    fn cancel(&mut self, _id: u32, _step: &mut Step) -> Result<(), Error> {
        Ok(())
    }
}

impl Session {
    /// As `open`, with another directory than the sandbox's: for tests on the machine itself.
    pub fn open_in(directory: &Path, settings: &Settings) -> Result<Session, Error> {
        Ok(Session {
            directory: directory.to_path_buf(),
            name: FileName::from_settings(settings)?,
            engine: None,
            shapes: answer::Shapes::default(),
        })
    }

    /// How many bytes of the files this session has read.
    pub fn bytes_read(&self) -> u64 {
        self.engine.as_ref().map_or(0, Engine::bytes_read)
    }
}

/// Reads of each file what has to be read before a statement: its footer, or for a text all of it. A file that is broken is told here.
fn ping(engine: &Engine, limits: &Limits) -> Result<Batch, Error> {
    engine.clock().allow(limits.timeout_ms);
    for table in engine.tables() {
        table.opened(engine.watch())?;
    }
    let columns: Vec<Column> = Rows::ping_columns();
    let version = format!("DataFusion {}", datafusion::DATAFUSION_VERSION);
    let cells = [Cell::Text(&version), Cell::Boolean(true)];
    let mut chunks = Vec::with_capacity(columns.len());
    for (column, cell) in columns.iter().zip(cells) {
        let mut builder = ColumnBuilder::new(column.kind);
        builder.push(cell)?;
        chunks.push(builder.finish());
    }
    Ok(Batch { rows: 1, chunks })
}
