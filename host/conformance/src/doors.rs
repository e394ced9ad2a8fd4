//! Sources that lie by themselves. Within TLS the kit's relay sees nothing that it could spoil: a server that is made for it spoils what it says before
//! that is sealed.

use std::io;

use crate::profile::Place;

/// Opens ways to the source, each of which has lies of its own.
pub type Doors = Box<dyn Fn() -> io::Result<Box<dyn Door>> + Send + Sync>;

/// A way to the source. Its sessions end when it is dropped.
pub trait Door: Send + Sync {
    fn place(&self) -> Place;

    /// From now on sessions that are there already hear answers that are spoilt, in the same way for the same number; sessions that begin meanwhile hear
    /// what is true, as how they open is not what is tried. `None`: all do.
    fn spoil(&self, number: Option<u64>);

    /// How many answers were spoilt.
    fn spoilt(&self) -> usize;
}
