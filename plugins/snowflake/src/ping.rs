//! A connection's test: which release it is, and whether what the connection names is there.

use souk_sdk::{Error, Step};

use crate::answers::Body;
use crate::errors::{malformed, missing_warehouse, unknown_database};
use crate::settings::Settings;

/// Of a name that is not there, or that the role may not use, a session has none.
pub const LOOK: &str = "SELECT CURRENT_VERSION(), CURRENT_DATABASE(), CURRENT_SCHEMA(), CURRENT_WAREHOUSE(), CURRENT_ROLE()";

/// What is known.
#[derive(Default)]
pub struct Ping {
    version: Option<String>,
}

impl Ping {
    /// Takes what is answered to [`LOOK`].
    pub fn part(&mut self, body: &Body<'_>, settings: &Settings) -> Result<(), Error> {
        let mut rows = 0;
        body.rows(|row| {
            rows += 1;
            let (true, Some(version)) = (row.len() == 5 && rows == 1, row.cell(0)) else {
                return Err(malformed());
            };
            self.version = Some(version.to_owned());
            let is_there = |place| row.cell(place).is_some();
            match () {
                _ if !is_there(1) => Err(unknown_database()),
                _ if !is_there(2) && settings.schema.is_some() => Err(Error::configuration(
                    "unknown_schema",
                    "the database has no schema of the name that the connection's database ends with, or the role may not use it",
                )),
                _ if !is_there(3) => Err(missing_warehouse()),
                _ => Ok(()),
            }
        })?;
        match self.version {
            Some(_) => Ok(()),
            None => Err(malformed()),
        }
    }

    /// The one row, in columns of this number. Snowflake refuses no write by itself.
    pub fn pong(&self, id: u32, shape: u32, step: &mut Step) {
        step.pong(id, shape, self.version.as_deref(), None);
    }
}
