//! Whether a file is what the connections can use that read the one before it: their engines are asked while nothing names it yet, so that a
//! file that was cut off, or is another kind of thing, does not take the place of one that buyers read.
//!
//! An engine that takes too long, or cannot be asked, says nothing of the file. Nor does one know what statements will ask of it: other tables or
//! columns are found by the tests of products.

use std::time::Instant;

use souk_domain::ids::{CompanyId, ConnectionId};
use souk_store::connections;

use super::error::FileError;
use super::uploads::Place;
use crate::App;
use crate::connections::check::{self, TriedFile};

/// What was found of a file.
#[derive(Default)]
pub struct Fit {
    /// The connections that it works with, each as of a revision.
    pub works: Vec<(ConnectionId, u64)>,
    pub warnings: Vec<String>,
}

/// Tries the file with all connections that read the one of this name. Refused: one of their engines cannot read it.
pub async fn fit(
    app: &App,
    company: &CompanyId,
    name: &str,
    place: &Place,
) -> Result<Fit, FileError> {
    let users = connections::using_file(&mut *app.db.read().await?, company, name).await?;
    let (directory, deadline) = (place.directory(), Instant::now() + check::TEST_MAX);
    let mut fit = Fit::default();
    for connection in users {
        match check::with_file(app, company, &connection, &directory, deadline).await {
            Ok(tried) => fit.add(connection, tried)?,
            Err(error) => {
                tracing::debug!(%company, %connection, %error, "a file was not tried with a connection that reads it");
            }
        }
    }
    Ok(fit)
}

impl Fit {
    fn add(&mut self, connection: ConnectionId, tried: TriedFile) -> Result<(), FileError> {
        match tried.report.error {
            None => {
                for warning in tried.report.warnings {
                    if !self.warnings.contains(&warning) {
                        self.warnings.push(warning);
                    }
                }
                self.works.push((connection, tried.revision));
            }
            Some(told) if tried.is_unfit => return Err(FileError::Unfit { connection, told }),
            Some(told) => {
                tracing::info!(%connection, told, "a file was not tried to the end with a connection that reads it");
            }
        }
        Ok(())
    }
}
