//! Bodies under way that are longer than nearly all are: how much memory those of one company may come to hold. Whoever sends slowly holds
//! it for long, and neither its rate nor its calls in flight bound how many do. Knows no HTTP. Start reading at [`Arriving::room`].

use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const KIB: usize = 1 << 10;
/// Of one company: 64 of the largest JSON.
const KIB_MAX: usize = 64 << 10;
/// How long a body waits for others of its company to end.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Of one company, or of all together who have no key.
pub(crate) struct Arriving(Arc<Semaphore>);

impl Default for Arriving {
    fn default() -> Arriving {
        Arriving(Arc::new(Semaphore::new(KIB_MAX)))
    }
}

impl Arriving {
    /// Room for a body of so many bytes at most, until it is dropped. `None`: there was none for too long.
    pub async fn room(&self, bytes: u64) -> Option<Room> {
        let kib = u32::try_from(bytes.div_ceil(KIB as u64)).ok()?;
        let room = tokio::time::timeout(WAIT_MAX, self.0.clone().acquire_many_owned(kib));
        room.await.ok()?.ok().map(Room)
    }
}

pub(crate) struct Room(OwnedSemaphorePermit);

impl Room {
    /// A body that has arrived: it takes what room it needs for as long as anybody has it.
    pub fn keep(mut self, body: Vec<u8>) -> Bytes {
        let needed = body.len().div_ceil(KIB);
        let surplus = self.0.num_permits().saturating_sub(needed);
        drop(self.0.split(surplus));
        Bytes::from_owner(Arrived {
            bytes: body,
            _room: self,
        })
    }
}

struct Arrived {
    bytes: Vec<u8>,
    _room: Room,
}

impl AsRef<[u8]> for Arrived {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    /// While they come bodies have room for all that they may bring, and then for what they are, until their last copy is gone.
    #[tokio::test]
    async fn a_body_has_room_as_long_as_it_is_somewhere() {
        let arriving = Arriving::default();
        let room = |kib: usize| arriving.room((kib * KIB) as u64);
        let all = room(KIB_MAX).await.unwrap();
        assert!(room(1).now_or_never().is_none());
        let body = all.keep(vec![b'x'; 3 * KIB - 1]);
        let rest = room(KIB_MAX - 3).await.unwrap();
        let end = body.slice(1..2);
        drop(body);
        assert!(room(1).now_or_never().is_none());
        drop(end);
        let freed = room(3).await.unwrap();
        assert!(room(1).await.is_none());
        drop((rest, freed));
        assert!(room(KIB_MAX).await.is_some());
    }
}
