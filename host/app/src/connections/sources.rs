//! The sources in use: each kept until what it was made of changes.

use souk_domain::ids::ConnectionId;
use souk_sandbox::Source;
use souk_store::{Cache, Db, Topic};

use crate::connectors::{SERVING, serving_ids};

/// Connections in use at once, of all sellers; a source is about 2 kB.
const SOURCES_MAX: usize = 10_000;

/// The sources in use, dropped when their connection, its file or a connector that their company may use changes.
pub type Sources = Cache<ConnectionId, Source>;

pub fn new(db: &Db) -> Sources {
    // Which settings a connector asks for is in its schema.
    let [own, platforms] = SERVING;
    Cache::new(
        db,
        SOURCES_MAX,
        [Topic::Connection, own, platforms],
        |id: &ConnectionId, source: &Source| {
            let [own, platforms] = serving_ids(&source.company.as_str().into());
            [id.as_str().into(), own, platforms]
        },
    )
}
