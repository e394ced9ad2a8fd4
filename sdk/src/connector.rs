//! The high layer: what an author implements.

use crate::{Call, Descriptor, Errand, Error, Io, Limits, Query, Rows, SchemaFilter, Settings};

/// One session at a source, in ordinary async Rust. What you await is [`Io`] only: there is no runtime, no
/// clock and no other wire.
///
/// When the host cancels a request, what it awaits is dropped and it has failed; over tcp, half an exchange is on the wire then, so the
/// session ends, unless [`stop`](Connector::stop) knows how to end the exchange.
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

    /// How another session of this connection stops what this one is doing at the source: the message for its
    /// [`errand`](Connector::errand), for MySQL `KILL QUERY` with this session's number. The request that is cancelled goes on until the
    /// source ends it, and no other one begins before the errand has ended. Asked of `tcp` with the ability `cancel`.
    fn stop(&self) -> Option<Vec<u8>> {
        None
    }

    /// Does what another session of this connection has asked for ([`Io::confer`], [`stop`](Connector::stop)). This session was opened
    /// for it alone, and is closed when it has ended.
    async fn errand(&self, _errand: Errand) -> Result<(), Error> {
        Err(Error::unsupported("errands"))
    }

    /// Proves that the source answers; one row, in the columns of [`Rows::ping_columns`].
    async fn ping(&self, _limits: Limits, _rows: &mut Rows) -> Result<(), Error> {
        Err(Error::unsupported("a test"))
    }
}
