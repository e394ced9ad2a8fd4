//! A connection's test: which server it is, whether catalog and schema are there, and whether the transaction refuses a write.

use souk_sdk::{Error, Step};

use crate::answers::{Results, malformed};
use crate::errors::READ_ONLY;
use crate::parameters::quoted;
use crate::settings::Settings;
use crate::values;

/// A write that a transaction refuses which only reads. Where none held it, this table would refuse it: it takes none ([`NOT_TAKEN`]).
const PROBE_TABLE: &str = "information_schema.schemata";
const NOT_TAKEN: &str = "NOT_SUPPORTED";

/// What is known of the server.
#[derive(Default)]
pub struct Ping {
    version: Option<String>,
    has_schema: bool,
    refuses_writes: Option<bool>,
}

/// Asks which server it is, and for the schema; the catalog is asked by that.
pub fn look(settings: &Settings) -> String {
    let catalog = identifier(&settings.catalog);
    let schema = settings.schema.as_deref().unwrap_or("information_schema");
    format!(
        "SELECT version(), count(*) FROM {catalog}.information_schema.schemata WHERE schema_name = {}",
        quoted(&schema.to_ascii_lowercase())
    )
}

/// Tries to write.
pub fn probe(settings: &Settings) -> String {
    let catalog = identifier(&settings.catalog);
    format!("INSERT INTO {catalog}.{PROBE_TABLE} VALUES ('souk', 'souk')")
}

impl Ping {
    /// Takes what the server answers to [`look`].
    pub fn page(&mut self, page: &Results<'_>) -> Result<(), Error> {
        page.rows(|row| {
            let [version, schemas] = row else {
                return Err(malformed());
            };
            self.version = Some(values::plain(version)?);
            self.has_schema = values::integer(schemas)? > 0;
            Ok(())
        })
    }

    /// Whether the connection names what is there.
    pub fn fits(&self, settings: &Settings) -> Result<(), Error> {
        match (&self.version, &settings.schema) {
            (None, _) => Err(malformed()),
            (Some(_), Some(schema)) if !self.has_schema => Err(Error::configuration(
                "unknown_schema",
                "Trino's catalog has no schema of the name that the connection's database ends with",
            )
            .detail(schema)),
            _ => Ok(()),
        }
    }

    /// Takes how the server refuses [`probe`].
    pub fn refused(&mut self, name: &str) {
        self.refuses_writes = match name {
            READ_ONLY => Some(true),
            NOT_TAKEN => Some(false),
            // It was refused for another reason, before either was asked.
            _ => None,
        };
    }

    /// Nobody held it, nor did the table.
    pub fn wrote(&mut self) {
        self.refuses_writes = Some(false);
    }

    /// The one row, in columns of this number.
    pub fn pong(&self, id: u32, shape: u32, step: &mut Step) {
        step.pong(id, shape, self.version.as_deref(), self.refuses_writes);
    }
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
