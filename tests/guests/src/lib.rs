//! What the guests of the tests share: a connector that does everything right except what its behaviour
//! overrides.
//!
//! Each guest is one example of this package, `<behaviour>/guest.rs`. Unless they say otherwise they need the
//! grant `http` but never make a request. Their connections open and answer a ping, so that a test reaches the
//! misbehaviour.
//!
//! Start reading at [`Behaviour`].

use souk_sdk::{
    Batch, Call, Cell, ColumnBuilder, Descriptor, Errand, Error, Input, Machine, Need, Query,
    Request, Rows, Settings, Step,
};

pub use souk_sdk;

/// What one guest does when it is asked to run a statement.
pub trait Behaviour: Sized + 'static {
    /// Of the connector and, unless [`ENGINE`](Behaviour::ENGINE) says otherwise, of its engine.
    const NAME: &'static str;
    const VERSION: &'static str = "1.0.0";
    const ENGINE: &'static str = Self::NAME;
    const DIALECT: &'static str = "generic";
    const NEED: Need = Need::Http;
    /// Of its settings.
    const SCHEMA: &'static str = r#"{"type":"object"}"#;
    /// Beside `schema`.
    const ABILITIES: &'static [&'static str] = &[];

    fn open(settings: &Settings) -> Result<Self, Error>;

    /// Answers `query`, or does not.
    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error>;

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        step.ready();
        Ok(())
    }

    fn receive(&mut self, _input: Input, _step: &mut Step) -> Result<(), Error> {
        Ok(())
    }

    /// Answers what a function is asked, if it has any.
    fn call(&mut self, id: u32, _call: Call, step: &mut Step) -> Result<(), Error> {
        step.failed(id, Error::unsupported("functions"));
        Ok(())
    }

    /// Does what another session has asked for.
    fn errand(&mut self, id: u32, _errand: Errand, step: &mut Step) -> Result<(), Error> {
        step.failed(id, Error::unsupported("errands"));
        Ok(())
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        step.failed(id, Error::timeout("cancelled", "the request was cancelled"));
        Ok(())
    }
}

/// Exports a [`Behaviour`] as this example's component.
#[macro_export]
macro_rules! export {
    ($behaviour:ty) => {
        $crate::souk_sdk::export_machine!($crate::Guest<$behaviour>);
    };
}

/// A session of a guest.
pub struct Guest<B>(B);

impl<B: Behaviour> Machine for Guest<B> {
    fn describe() -> Descriptor {
        Descriptor::new(B::NAME, B::VERSION, B::NEED)
            .engine(
                B::ENGINE,
                B::ENGINE,
                B::DIALECT,
                &["NONE", "API_KEY", "PASSWORD"],
            )
            .settings_schema(B::SCHEMA)
            .abilities(&[&["schema"], B::ABILITIES].concat())
    }

    fn open(settings: Settings) -> Result<Self, Error> {
        Ok(Guest(B::open(&settings)?))
    }

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        self.0.start(step)
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        let (columns, row) = match request {
            Request::Query(query) => return self.0.query(id, query, step),
            Request::Errand(errand) => return self.0.errand(id, errand, step),
            Request::Call(call) => return self.0.call(id, call, step),
            Request::Ping(_) => (
                Rows::ping_columns(),
                vec![Cell::Text("guest 1.0"), Cell::Null],
            ),
            Request::Schema(_) => (Rows::schema_columns(), SCHEMA.to_vec()),
        };
        let mut chunks = Vec::new();
        for (column, cell) in columns.iter().zip(row) {
            let mut builder = ColumnBuilder::new(column.kind);
            builder.push(cell)?;
            chunks.push(builder.finish());
        }
        step.columns(id, 0, Some(columns));
        step.batch(id, Batch { rows: 1, chunks });
        step.done(id);
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        self.0.receive(input, step)
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        self.0.cancel(id, step)
    }
}

/// One field of one table.
const SCHEMA: [Cell<'static>; 8] = [
    Cell::Text("main"),
    Cell::Text("fixed"),
    Cell::Text("table"),
    Cell::Null,
    Cell::Text("id"),
    Cell::Text("int8"),
    Cell::Boolean(false),
    Cell::Boolean(true),
];

/// The words of a statement, as a test wrote them: guests that can do several things choose by them.
pub fn words(query: &Query) -> impl Iterator<Item = &str> {
    words_of(&query.text)
}

/// The same of any text.
pub fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// The smallest `LIMIT` in a statement.
pub fn limit(query: &Query) -> Option<u32> {
    let follows = words(query).skip(1).zip(words(query));
    follows
        .filter(|(_, word)| word.eq_ignore_ascii_case("limit"))
        .filter_map(|(next, _)| next.parse().ok())
        .min()
}
