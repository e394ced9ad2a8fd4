//! `fixed-rows`, version 3.0.0, which opens with empty settings and with no connection's: only a connection that
//! is in use can tell that it must not be activated.

#[path = "../fixed-rows/rows.rs"]
mod rows;

use rows::Fixed;
use serde::Deserialize;
use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct FixedRowsBroken(Fixed);

souk_guests::export!(FixedRowsBroken);

#[derive(Deserialize)]
struct Given {
    /// Every connection has one.
    base_url: Option<String>,
}

impl Behaviour for FixedRowsBroken {
    const NAME: &'static str = "fixed-rows";
    const VERSION: &'static str = "3.0.0";
    const ENGINE: &'static str = "fixed";

    fn open(settings: &Settings) -> Result<Self, Error> {
        match settings.parse::<Given>()?.base_url {
            None => Ok(FixedRowsBroken(Fixed::from_settings(settings)?)),
            Some(_) => Err(Error::internal(
                "forgot_base_url",
                "this version forgot what a base URL is",
            )),
        }
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        self.0.answer(id, &query, "broken", step)
    }
}
