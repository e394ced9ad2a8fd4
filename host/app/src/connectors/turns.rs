//! Who checks and compiles a component now, and who waits.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use souk_sandbox::Scope;
use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};

use super::error::ConnectorError;

/// Components that are checked and compiled at once, each in a child process; one more waits.
const TURNS_MAX: usize = 2;

/// Who checks and compiles now. A scope has one turn at a time and waits for the next in line with the others, so that one with many
/// uploads does not push those of others back.
pub struct Turns {
    all: Semaphore,
    lines: Lines,
}

/// A line for each scope: one of it goes on at a time, and nobody waits for another scope.
#[derive(Default)]
pub struct Lines(Mutex<HashMap<Scope, Arc<tokio::sync::Mutex<()>>>>);

impl Lines {
    pub(super) async fn stand(&self, scope: &Scope) -> OwnedMutexGuard<()> {
        let own = {
            let mut lines = self.0.lock();
            lines.retain(|_, line| Arc::strong_count(line) > 1);
            lines.entry(scope.clone()).or_default().clone()
        };
        own.lock_owned().await
    }
}

pub(super) struct Turn<'a> {
    _turn: SemaphorePermit<'a>,
    _own: OwnedMutexGuard<()>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            all: Semaphore::new(TURNS_MAX),
            lines: Lines::default(),
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
