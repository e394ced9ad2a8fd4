//! Wants to open a socket by itself, which no grant covers: it is loaded, and its call traps.

use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct ImportsSockets;

souk_guests::export!(ImportsSockets);

impl Behaviour for ImportsSockets {
    const NAME: &'static str = "imports-sockets";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(ImportsSockets)
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let address = query.text.trim();
        let reached = std::net::TcpStream::connect(address).is_ok();
        step.failed(
            id,
            Error::internal("reached", format!("reached {address}: {reached}")),
        );
        Ok(())
    }
}
