//! What the author of a publisher implements: a component that puts posts on a platform.
//!
//! Everything but the questions is as for a connector: [`Io`], [`Error`], the descriptor, tests by hand through
//! [`PublisherDriver`]. The contract is `wit/publisher-v1`.

use crate::driver::Serve;
use crate::{Cell, ColumnType, Descriptor, Driver, Error, Io, Limits, Rows, Settings, column};

pub use crate::bindings::publisher::exports::souk::publisher::publications::{
    Check, Post, Publication, Request, Visibility,
};

/// A session of an async publisher.
pub type PublisherDriver<P> = Driver<P, Request>;

/// What the platform calls a post, and where it can be read, as far as it says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    pub remote_id: Option<String>,
    pub url: Option<String>,
}

/// One session at a platform, in ordinary async Rust. What you await is [`Io::http`] only.
#[allow(
    async_fn_in_trait,
    reason = "a component has one thread: futures need not be Send"
)]
pub trait Publisher: Sized + 'static {
    /// Pure; called once when the publisher is loaded. Its `engines` are platforms, its need is http.
    fn describe() -> Descriptor;

    async fn open(settings: Settings, io: Io) -> Result<Self, Error>;

    /// Sees to it that the post is at the platform as it is now. The class of the error says whether it is tried again.
    async fn publish(&self, publication: Publication) -> Result<Published, Error>;

    /// Whether address and credentials work, and whose they are, without publishing anything.
    async fn check(&self, check: Check) -> Result<Option<String>, Error>;
}

impl<P: Publisher> Serve<Request> for P {
    fn describe() -> Descriptor {
        <P as Publisher>::describe()
    }

    async fn open(settings: Settings, io: Io) -> Result<P, Error> {
        <P as Publisher>::open(settings, io).await
    }

    fn limits(request: &Request) -> &Limits {
        match request {
            Request::Publish(publication) => &publication.limits,
            Request::Check(check) => &check.limits,
        }
    }

    async fn serve(&self, request: Request, rows: &mut Rows) -> Result<(), Error> {
        match request {
            Request::Publish(publication) => {
                let published = self.publish(publication).await?;
                rows.columns(["remote_id", "url"].map(|name| column(name, ColumnType::Text, "")))?;
                rows.push([text(&published.remote_id), text(&published.url)])
            }
            Request::Check(check) => {
                let account = self.check(check).await?;
                rows.columns([column("account", ColumnType::Text, "")])?;
                rows.push([text(&account)])
            }
        }
    }
}

fn text(value: &Option<String>) -> Cell<'_> {
    value.as_deref().map_or(Cell::Null, Cell::Text)
}
