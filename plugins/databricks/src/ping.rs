//! A connection's test: which warehouse it is, whether catalog and schema are there, and whether Databricks refuses a write where it is
//! asked for a query.

use souk_sdk::{Error, Step};

use crate::answers::{Chunk, malformed};
use crate::catalog::{identifier, text};
use crate::errors::SYNTAX;
use crate::parameters::Bound;
use crate::settings::Settings;
use crate::values;

/// What the lock that holds read-only must refuse. Where it did not, this would only be described.
pub const PROBE: &str = "DESCRIBE QUERY INSERT INTO souk VALUES (1)";

/// What is known of the warehouse.
#[derive(Default)]
pub struct Ping {
    version: Option<String>,
    has_schema: bool,
    refuses_writes: Option<bool>,
}

/// Asks which warehouse it is, and for the schema; the catalog is asked by that.
pub fn look(settings: &Settings) -> (String, Vec<Bound>) {
    let mut values = Vec::new();
    let schema = settings.schema.as_deref().unwrap_or("information_schema");
    let schema = text(&mut values, &schema.to_lowercase());
    let catalog = identifier(&settings.catalog);
    let look = format!(
        "SELECT coalesce(current_version().dbsql_version, current_version().dbr_version), count(*) FROM {catalog}.information_schema.schemata WHERE schema_name = {schema}"
    );
    (look, values)
}

impl Ping {
    /// Takes what the warehouse answers to [`look`].
    pub fn take(&mut self, chunk: &Chunk<'_>) -> Result<(), Error> {
        chunk.rows(|row| {
            let [version, schemas] = row else {
                return Err(malformed());
            };
            self.version = Some(values::plain(version)?);
            self.has_schema = values::integer(&values::plain(schemas)?)? > 0;
            Ok(())
        })
    }

    /// Whether the connection names what is there.
    pub fn fits(&self, settings: &Settings) -> Result<(), Error> {
        match (&self.version, &settings.schema) {
            (None, _) => Err(malformed()),
            (Some(_), Some(schema)) if !self.has_schema => Err(Error::configuration(
                "unknown_schema",
                "the catalog has no schema of the name that the connection's database ends with",
            )
            .detail(schema)),
            _ => Ok(()),
        }
    }

    /// Takes how [`PROBE`] was refused.
    pub fn refused(&mut self, condition: &str) {
        // For another reason it was refused before it was read.
        self.refuses_writes = (condition == SYNTAX).then_some(true);
    }

    /// Nobody refused it.
    pub fn described(&mut self) {
        self.refuses_writes = Some(false);
    }

    /// The one row, in columns of this number.
    pub fn pong(&self, id: u32, shape: u32, step: &mut Step) {
        step.pong(id, shape, self.version.as_deref(), self.refuses_writes);
    }
}
