//! Where payment providers, and the browsers of those who paid, come in. No keys here: events are signed, and the page shows nothing.

pub mod event;
pub mod returned;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(event::OPERATION, event::receive_payment_event)
        .add(returned::OPERATION, returned::payment_returned)
}
