//! Claims on an `Idempotency-Key` that nobody works for any more: whoever asks again with the key shall not wait until they lapse.

use std::time::Duration;

use souk_store::audit::on_behalf;
use souk_store::idempotency::{self, Ticket};
use souk_store::{Db, StoreError};

use crate::App;
use crate::context::carried;

/// Of letting go, and the pause before the second one, which doubles each time: a server that is restarted is back within them, and a host that stops
/// waits for them.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);

/// Whether a claim is in the store.
#[derive(Clone, Copy)]
pub enum Written {
    Surely,
    /// Its commit was not answered, and may be on its way.
    Perhaps,
}

/// Lets go of a claim. What its client is told does not depend on that: where the store does not take it at once, it is tried again behind the answer,
/// and `held` is held until then. If all of that fails the claim lapses.
pub async fn let_go(app: &App, ticket: &Ticket, written: Written, held: impl Send + 'static) {
    if is_let_go(&app.db, ticket, written).await {
        return;
    }
    let (db, ticket) = (app.db.clone(), ticket.clone());
    let again = async move {
        let _held = held;
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            tokio::time::sleep(pause).await;
            pause *= 2;
            if is_let_go(&db, &ticket, written).await {
                return;
            }
        }
    };
    tokio::spawn(carried(on_behalf(again)));
}

async fn is_let_go(db: &Db, ticket: &Ticket, written: Written) -> bool {
    let released = db.write(async |write| -> Result<(), StoreError> {
        match written {
            Written::Surely => idempotency::release(write, ticket).await,
            Written::Perhaps => idempotency::take_back(write, ticket).await,
        }
    });
    match released.await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, "a claim on an Idempotency-Key could not be let go of");
            false
        }
    }
}
