//! The one way out of this process: which addresses may be dialled, how names are looked up, whom TLS trusts, sockets, and pooled HTTP
//! over them.
//!
//! Refuses to know: connectors and stores, whose data connection something is, what is said over a wire. On whose account a connection is
//! made comes in as an [`Account`]. Start reading at [`EgressPolicy::check`], then [`Dialer::dial`], then [`Client::send`].

mod carrier;
mod chain;
mod client;
mod connect;
pub mod context;
mod dial;
mod egress;
mod error;
mod host_client;
mod lookups;
mod reading;
pub mod spans;
mod stream;
#[cfg(test)]
mod testing;
mod tls;
mod turn;

pub use client::{Client, Clients};
pub use connect::{Answer, Bounds, Reach};
pub use dial::{Account, Dialer, Lends, Own, OwnOfEach, check_address, written_address};
pub use egress::{EgressPolicy, EgressRefused};
pub use error::{Error, ErrorKind};
pub use host_client::{Counts, HostClient, Peak, WeakHostClient};
pub use lookups::Lookups;
pub use stream::Stream;
pub use tls::{Handshake, Records, TlsMode, Trust, protect, protect_as};
pub use turn::Turn;
