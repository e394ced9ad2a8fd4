//! The high layer: what an author implements.

use crate::{Call, Descriptor, Error, Io, Limits, Query, Rows, SchemaFilter, Settings};

/// One session at a source, in ordinary async Rust. What you await is [`Io`] only: there is no runtime, no
/// clock and no other wire.
///
/// Requests take `&self`. They run one after the other, so a `RefCell` borrowed across an await is fine,
/// unless the descriptor lists the ability `pipelining`: then they run side by side.
///
/// What you do not implement answers `unsupported`.
#[allow(
    async_fn_in_trait,
    reason = "a component has one thread: futures need not be Send"
)]
pub trait Connector: Sized + 'static {
    /// Pure; called once when the connector is loaded.
    fn describe() -> Descriptor;

    /// Opens the session. Over tcp the wire stands already; log in here.
    async fn open(settings: Settings, io: Io) -> Result<Self, Error>;

    /// Runs one statement that reads.
    async fn query(&self, _query: Query, _rows: &mut Rows) -> Result<(), Error> {
        Err(Error::unsupported("queries"))
    }

    /// Answers the catalog, in the columns of [`Rows::schema_columns`].
    async fn schema(&self, _filter: SchemaFilter, _rows: &mut Rows) -> Result<(), Error> {
        Err(Error::unsupported("reading the schema"))
    }

    /// Calls a function of the seller's API; answers one row, in the columns of [`Rows::call_columns`].
    async fn call(&self, _call: Call, _rows: &mut Rows) -> Result<(), Error> {
        Err(Error::unsupported("functions"))
    }

    /// Proves that the source answers; one row, in the columns of [`Rows::ping_columns`].
    async fn ping(&self, _limits: Limits, _rows: &mut Rows) -> Result<(), Error> {
        Err(Error::unsupported("a test"))
    }
}
