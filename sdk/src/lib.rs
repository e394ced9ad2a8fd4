//! What the author of a souk connector uses.
//!
//! A connector is a state machine that never waits: the host owns the wire (see `wit/v1`). This crate hides
//! that: implement [`Connector`] in ordinary async Rust and [`export!`] it. A protocol crate that is sans-IO
//! already implements [`Machine`] instead and is spared the executor ([`export_machine!`]).
//!
//! A component that puts posts on a platform implements [`Publisher`] and is exported with [`export_publisher!`].
//!
//! Start reading at [`Connector`], then [`Io`] (what you may reach), [`Rows`] (what you answer) and
//! [`Error`] (whose fault it is).
//!
//! The crate refuses to know any engine, and it never reaches out: there is no socket, no clock and no file
//! in here. The time of day is what the host last told ([`Io::now`]), a pause is the host's too ([`Io::sleep`]).
//!
//! A whole connector (`sdk/examples/hello`):
//!
//! ```no_run
#![doc = include_str!("example.rs")]
//! ```

pub mod bindings;
pub mod catalog;
mod columns;
mod connector;
mod descriptor;
mod driver;
mod errors;
mod export;
pub mod http;
mod io;
pub mod json;
mod known;
mod later;
pub mod looks;
mod machine;
pub mod numbers;
pub mod pager;
pub mod parameters;
mod pieces;
pub mod publisher;
pub mod results;
mod rows;
mod settings;
pub mod short;
pub mod statements;
mod tcp;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod texts;
pub mod time;

pub use columns::{Cell, ColumnBuilder, column};
pub use connector::Connector;
pub use driver::Driver;
pub use export::Component;
pub use http::Http;
pub use io::Io;
pub use known::KnownColumns;
pub use machine::{Machine, Step, is_alone, is_followed};
pub use pager::Pager;
pub use pieces::Pieces;
pub use publisher::{Published, Publisher, PublisherDriver};
pub use rows::Rows;
pub use settings::{FileName, SslMode};
pub use tcp::Tcp;

pub use bindings::souk::connector::types::{
    Batch, Call, Chunk, Column, ColumnData, ColumnType, Command, Descriptor, Engine, Errand, Error,
    ErrorClass, Event, Header, HttpFailure, HttpRequest, HttpResponse, Input, Limits, Message,
    Need, Pause, Query, Reply, Request, Route, SchemaFilter, Settings, Shape, TlsHandshake,
    TlsRecords, Value, VarLen, WireFault,
};
