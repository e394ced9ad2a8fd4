//! Guests that want to hurt their host. A behaviour is one module of [`behaviours`]; three components (one for each thing that a connector
//! may be granted) can do all of them, so that fifty behaviours are three builds. Which one a session shows is said by its connection: the
//! last segment of `base_url`, or `database`. Unknown and absent names behave well, so that a health check passes.
//!
//! How the component describes itself cannot be chosen by a connection: it is a text in its own bytes, [`MARK`], that a test writes over.
//!
//! Start reading at [`Behaviour`].

pub mod behaviours;
mod burn;
mod results;

use std::marker::PhantomData;

use serde::Deserialize;
use souk_sdk::{
    Descriptor, Errand, Error, Input, Machine, Need, Query, Request, SchemaFilter, Settings, Step,
    Value,
};

pub use burn::{burn_ms, for_ever};
pub use results::{batch, id_column, one_row};
pub use souk_sdk;

/// One session of one behaviour. What is not overridden is done well.
pub trait Behaviour {
    fn open(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        step.ready();
        Ok(())
    }

    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        one_row(id, step)
    }

    fn schema(&mut self, id: u32, _filter: &SchemaFilter, step: &mut Step) -> Result<(), Error> {
        results::one_field(id, step)
    }

    fn errand(&mut self, id: u32, _errand: &Errand, step: &mut Step) -> Result<(), Error> {
        step.done(id);
        Ok(())
    }

    fn receive(&mut self, _input: Input, _step: &mut Step) -> Result<(), Error> {
        Ok(())
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        step.failed(id, Error::timeout("cancelled", "the request was cancelled"));
        Ok(())
    }
}

/// Whether a parameter asks for peace.
fn rests(query: &Query) -> bool {
    query
        .parameters
        .iter()
        .any(|value| matches!(value, Value::Text(word) if word == "rest"))
}

/// What a component of these guests is granted.
pub trait Granted: 'static {
    const NAME: &'static str;
    const NEED: Need;
}

pub struct Tcp;
pub struct Http;
pub struct Files;

impl Granted for Tcp {
    const NAME: &'static str = "hostile-tcp";
    const NEED: Need = Need::Tcp;
}

impl Granted for Http {
    const NAME: &'static str = "hostile-http";
    const NEED: Need = Need::Http;
}

impl Granted for Files {
    const NAME: &'static str = "hostile-files";
    const NEED: Need = Need::Directory;
}

/// `describe=` and `version=` may be written over, each with as many bytes as it has.
static MARK: [u8; 48] = *b"souk-hostile-mark:describe=well..;version=000000";

/// A value of [`MARK`], wherever the compiler thinks that it knows them already.
fn marked(name: &str) -> &'static str {
    let mark: &'static [u8; 48] = std::hint::black_box(&MARK);
    let text = std::str::from_utf8(mark).unwrap_or_default();
    let (_, value) = text.split_once(name).unwrap_or_default();
    let value = value.split(';').next().unwrap_or_default();
    value.trim_end_matches('.')
}

pub struct Guest<G> {
    behaviour: Box<dyn Behaviour>,
    granted: PhantomData<G>,
}

#[derive(Deserialize)]
struct Place {
    base_url: Option<String>,
    database: Option<String>,
}

impl Place {
    /// The behaviour that the connection names.
    fn word(self) -> String {
        let place = self.database.or(self.base_url).unwrap_or_default();
        let last = place.rsplit('/').next().unwrap_or_default();
        last.trim_end_matches(".db").to_owned()
    }
}

impl<G: Granted> Machine for Guest<G> {
    fn describe() -> Descriptor {
        let number = marked("version=").trim_start_matches('0');
        let version = format!("1.0.{}", if number.is_empty() { "0" } else { number });
        let well = Descriptor::new(G::NAME, version, G::NEED)
            .engine(G::NAME, G::NAME, "generic", &["NONE"])
            .abilities(&["schema", "cancel"]);
        match marked("describe=") {
            "loops" => for_ever(),
            "traps" => panic!("a connector that cannot say what it is"),
            "memory" => behaviours::all_memory(),
            "large" => well.settings_schema("x".repeat(8 << 20)),
            "named" => Descriptor {
                name: "../../etc/passwd\n".repeat(1000),
                ..well
            },
            _ => well,
        }
    }

    fn open(settings: Settings) -> Result<Self, Error> {
        let mut behaviour = behaviours::find(&settings.parse::<Place>()?.word());
        behaviour.open()?;
        Ok(Guest {
            behaviour,
            granted: PhantomData,
        })
    }

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        self.behaviour.start(step)
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        match request {
            // A product must answer before it is published.
            Request::Query(query) if rests(&query) => one_row(id, step),
            Request::Query(query) => self.behaviour.query(id, &query, step),
            Request::Schema(filter) => self.behaviour.schema(id, &filter, step),
            Request::Ping(_) => results::pong(id, step),
            Request::Errand(errand) => self.behaviour.errand(id, &errand, step),
            Request::Call(_) => {
                step.failed(id, Error::unsupported("functions"));
                Ok(())
            }
        }
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        self.behaviour.receive(input, step)
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        self.behaviour.cancel(id, step)
    }
}
