//! The sandbox: runs connectors and publishers, which are WebAssembly components, and owns every wire they speak
//! over (`souk_outbound` makes it). It knows nothing of assets, prices, stores or status codes;
//! nothing else in the product knows wasmtime. Start reading at `Sandbox::run_for`, then `pool`, then `session`.

mod asking;
mod cache;
mod canary;
mod clock;
mod columns;
mod compile;
pub mod compile_child;
mod connector;
mod engine;
mod errands;
mod facts;
mod fault;
mod followed;
pub mod formats;
mod inspect;
mod journal;
pub mod json;
mod lanes;
mod load;
mod loaded;
mod memory;
mod metrics;
mod options;
mod pool;
mod registry;
mod request;
mod sandbox;
mod session;
mod shared;
mod short;
mod source;
mod tenants;
mod threads;
mod ticker;
mod v1;
mod validate;
mod watch;
mod wire;

pub use asking::{when_alone, when_asking};
pub use columns::{Batch, Cell, Chunk, Column, ColumnData, ColumnKind, Output, VarLen};
pub use connector::{
    ConnectorInfo, EngineInfo, LoadError, Need, Scope, SessionCount, Status, Trial,
};
pub use facts::{Fact, Facts};
pub use fault::{Blame, Fault, FaultKind, RefusedField};
pub use journal::{LogFilter, LogLine, Stream, is_secret};
pub use load::{ABILITIES, DIALECTS, is_ability};
pub use metrics::Metrics;
pub use options::{Compiler, LENT_WITHIN, Options, SandboxLimits};
pub use request::{
    Call, Check, Limits, Post, Publication, Query, Request, Route, SchemaFilter, Value, Visibility,
};
pub use sandbox::{LOADERS, Sandbox, Tried};
pub use source::{Grant, Lender, Lent, PoolLimits, Source, platform, platform_of};
pub use tenants::Quota;
pub use wire::refused_header;
