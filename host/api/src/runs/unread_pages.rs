//! The pages of one export that its client has not read: they count as other answers do, and not against the export's own next page. Its client asks for
//! that one when nearly all of the last has left; that has not gone wholly by then, and may alone be more than the company's bound.

use crate::unread::{Charge, Tally};
use bytes::Bytes;
use souk_app::run::{Readers, Unread};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::Notify;

pub struct UnreadPages {
    tally: Arc<Tally>,
    bytes: AtomicU64,
    /// Is told when there are none.
    emptied: Notify,
}

impl UnreadPages {
    pub fn of(tally: Arc<Tally>) -> Arc<UnreadPages> {
        Arc::new(UnreadPages {
            tally,
            bytes: AtomicU64::new(0),
            emptied: Notify::new(),
        })
    }

    /// A page, counted until its bytes are gone.
    pub fn counted(self: &Arc<UnreadPages>, bytes: Vec<u8>) -> Bytes {
        let size = bytes.len() as u64;
        let charge = self.tally.take(size);
        self.bytes.fetch_add(size, Relaxed);
        Bytes::from_owner(Page {
            bytes,
            of: self.clone(),
            _charge: charge,
        })
    }

    /// Waits until the bytes of all pages are gone.
    pub async fn gone(&self) {
        loop {
            // Before it is looked: what is told in between is heard.
            let emptied = self.emptied.notified();
            if self.bytes.load(Relaxed) == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl Readers for UnreadPages {
    fn room(&self, bytes: u64) -> Result<Box<dyn Send>, Unread> {
        let own = self.bytes.load(Relaxed);
        Ok(Box::new(self.tally.room_beside(own, bytes)?))
    }

    fn hold(&self, bytes: u64) -> Box<dyn Send> {
        Box::new(self.tally.take(bytes))
    }

    fn hold_ahead(&self, bytes: u64) -> Box<dyn Send> {
        Box::new(self.tally.take_ahead(bytes))
    }

    fn may_read_ahead(&self, bytes: u64) -> bool {
        self.tally.has_room_ahead(bytes)
    }
}

struct Page {
    bytes: Vec<u8>,
    of: Arc<UnreadPages>,
    _charge: Charge,
}

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let size = self.bytes.len() as u64;
        if self.of.bytes.fetch_sub(size, Relaxed) == size {
            self.of.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_domain::ids::CompanyId;

    /// What an export has sent and its client has not wholly read ends other answers, and none of its own.
    #[test]
    fn an_export_is_not_ended_by_its_own_last_page() {
        const MAX: usize = 1 << 20;
        let unread = crate::unread::Unread::new(MAX as u64, 2);
        let tally = unread.company(&CompanyId::generate());
        let [one, other] = [(); 2].map(|()| UnreadPages::of(tally.clone()));
        let mut page = one.counted(vec![b'x'; 2 * MAX]);
        // Its last bytes are still to be sent.
        let end = page.split_off(2 * MAX - 1);
        drop(page);
        assert_eq!(tally.bytes(), 2 * MAX as u64);
        assert!(one.room(1).is_ok());
        let refused = other.room(1).err().expect("a refusal");
        assert_eq!(refused.bytes, 2 * MAX as u64);
        assert!(tally.room(1).is_err());
        // What others have left counts against it, as it does against them.
        let others = other.counted(vec![b'x'; MAX + 1]);
        assert!(one.room(1).is_err());
        drop((end, others));
        assert!(tally.bytes() == 0 && other.room(1).is_ok());
    }

    /// Whoever waits for all of them to be gone waits for the last byte of the last one.
    #[tokio::test]
    async fn pages_are_gone_with_their_last_byte() {
        let unread = crate::unread::Unread::new(1 << 20, 2);
        let pages = UnreadPages::of(unread.company(&CompanyId::generate()));
        pages.gone().await;
        let [first, mut last] = [(); 2].map(|()| pages.counted(vec![b'x'; 2]));
        let waiting = pages.clone();
        let gone = tokio::spawn(async move { waiting.gone().await });
        drop(first);
        let end = last.split_off(1);
        drop(last);
        tokio::task::yield_now().await;
        assert!(!gone.is_finished());
        drop(end);
        gone.await.unwrap();
    }
}
