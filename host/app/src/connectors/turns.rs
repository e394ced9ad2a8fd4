//! Who checks and compiles a component now, and who waits.

use souk_sandbox::{LOADERS, Scope};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::error::ConnectorError;
use crate::lines::Lines;

/// Components that are checked and compiled at once, each in a child process; one more waits. What was compiled before is loaded beside them.
const TURNS_MAX: usize = LOADERS - 1;

/// Who checks and compiles now. A scope has one turn at a time and waits for the next in line with the others, so that one with many
/// uploads does not push those of others back.
pub struct Turns {
    all: Semaphore,
    lines: Lines<Scope>,
}

pub(super) struct Turn<'a> {
    _turn: SemaphorePermit<'a>,
    _own: Option<OwnedSemaphorePermit>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            all: Semaphore::new(TURNS_MAX),
            lines: Lines::new(1),
        }
    }
}

impl Turns {
    pub(super) async fn take(&self, scope: &Scope) -> Result<Turn<'_>, ConnectorError> {
        let own = self.lines.stand(scope).await;
        let turn = self.all.acquire().await;
        let turn = turn.map_err(|error| ConnectorError::Internal(error.to_string()))?;
        Ok(Turn {
            _turn: turn,
            _own: own,
        })
    }
}
