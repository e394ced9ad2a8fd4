//! The SQLite connector: real SQLite on one file of the directory that the host grants, read-only.
//!
//! Every request is answered in the call that submits it. `README.md` says what `immutable` means for a file
//! that is being written, and how values get their types. It refuses to know where the directory is outside
//! its sandbox.
//!
//! Start reading at [`Session`], then [`query::run`].

mod authorizer;
mod catalog;
mod database;
mod dates;
mod declared;
mod errors;
mod mixed;
mod prepared;
mod query;
mod quoted;
mod settings;
mod types;

use database::Database;
use query::Plans;
use souk_sdk::{
    Batch, Cell, Column, ColumnBuilder, Descriptor, Error, FileName, Input, Machine, Need, Request,
    Rows, Settings, Step,
};
use std::path::{Path, PathBuf};

/// Where the host preopens the granted directory.
const DIRECTORY: &str = "/data";

/// Numbers of the fixed shapes, out of the way of those of statements.
const SHAPE_SCHEMA: u32 = 1_000_000;
const SHAPE_PING: u32 = 1_000_001;

/// One session on one file.
pub struct Session {
    directory: PathBuf,
    name: FileName,
    database: Option<Database>,
    plans: Plans,
}

souk_sdk::export_machine!(Session);

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("sqlite", env!("CARGO_PKG_VERSION"), Need::Directory)
            .engine("sqlite", "SQLite", "sqlite", &["NONE"])
            .settings_schema(settings::SCHEMA)
            .abilities(&["schema"])
    }

    fn open(settings: Settings) -> Result<Session, Error> {
        Session::open_in(Path::new(DIRECTORY), &settings)
    }

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        self.database = Some(Database::open(&self.directory, &self.name)?);
        step.ready();
        Ok(())
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        let Some(database) = &self.database else {
            return Err(Error::internal(
                "not_started",
                "a request came before the session was started",
            ));
        };
        let answered = match &request {
            Request::Query(query) => query::run(database, &mut self.plans, query).map(|answer| {
                step.columns(id, answer.shape, answer.columns);
                answer.batch
            }),
            Request::Schema(filter) => catalog::read(database, filter)
                .inspect(|_| step.columns(id, SHAPE_SCHEMA, Some(Rows::schema_columns()))),
            Request::Ping(_) => {
                ping(database).inspect(|_| step.columns(id, SHAPE_PING, Some(Rows::ping_columns())))
            }
            Request::Call(_) => Err(Error::unsupported("functions")),
            Request::Errand(_) => Err(Error::unsupported("errands")),
        };
        match answered {
            Ok(batch) => {
                if batch.rows > 0 {
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
            database: None,
            plans: Plans::default(),
        })
    }
}

/// The file was read when it was opened, and is still open.
fn ping(database: &Database) -> Result<Batch, Error> {
    let columns: Vec<Column> = Rows::ping_columns();
    let version = format!("SQLite {}", rusqlite::version());
    let cells = [
        Cell::Text(&version),
        Cell::Boolean(database::is_read_only(database)),
    ];
    let mut chunks = Vec::with_capacity(columns.len());
    for (column, cell) in columns.iter().zip(cells) {
        let mut builder = ColumnBuilder::new(column.kind);
        builder.push(cell)?;
        chunks.push(builder.finish());
    }
    Ok(Batch { rows: 1, chunks })
}
