//! How large answers leave: counted with their company until they have, and at a pace while others are served.

use super::{Charge, Tally};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// Smaller answers are not counted: the kernel takes them whole, also from a client that does not read.
const COUNTED_BYTES_MIN: u64 = 64 << 10;
/// A gigabit, for all of a company's clients together, where others' calls are in flight: more is felt by them, in the cores and on the wire.
const SENT_BYTES_PER_SECOND: u64 = 128 << 20;
/// What leaves at once before that.
const SENT_AT_ONCE: Duration = Duration::from_millis(125);
/// What leaves between two looks at the pace.
const PIECE_BYTES: usize = 128 << 10;

/// Counts an answer with its company until its bytes are gone, if it is large.
pub fn count(response: &mut Response, tally: &Arc<Tally>) {
    let bytes = response.body().size_hint().lower();
    if bytes < COUNTED_BYTES_MIN {
        return;
    }
    let charge = Charge::new(tally.clone(), bytes);
    let body = std::mem::take(response.body_mut());
    *response.body_mut() = Body::new(Counted {
        body,
        charge,
        left: Bytes::new(),
        waiting: None,
    });
}

impl Tally {
    /// How long these bytes are held back, after all that the company was sent of late.
    fn send_delay(&self, bytes: usize) -> Duration {
        let micros = bytes as u64 * 1_000_000 / SENT_BYTES_PER_SECOND;
        let now = Instant::now();
        let mut sent = self.sent.lock();
        let next = sent.map_or(now, |sent| sent.max(now)) + Duration::from_micros(micros);
        *sent = Some(next);
        (next - now).saturating_sub(SENT_AT_ONCE)
    }
}

struct Counted {
    body: Body,
    charge: Charge,
    /// Of a frame that leaves piece by piece.
    left: Bytes,
    /// For the next piece's time.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Counted {
    /// The next of the bytes that leave now. `None`: the frame has left.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        if self.waiting.is_none() {
            let tally = &self.charge.tally;
            if !tally.are_others_served() {
                return Poll::Ready(Some(std::mem::take(&mut self.left)));
            }
            let delay = tally.send_delay(self.left.len().min(PIECE_BYTES));
            self.waiting = (!delay.is_zero()).then(|| Box::pin(tokio::time::sleep(delay)));
        }
        if let Some(waiting) = &mut self.waiting {
            ready!(waiting.as_mut().poll(context));
            self.waiting = None;
        }
        let piece = self.left.len().min(PIECE_BYTES);
        Poll::Ready(Some(self.left.split_to(piece)))
    }

    /// The charge leaves with the bytes: whoever sends them drops them once they are sent.
    fn charged(&mut self, bytes: Bytes) -> Frame<Bytes> {
        let charge = self.charge.split(bytes.len() as u64);
        Frame::data(Bytes::from_owner(Charged {
            bytes,
            _charge: charge,
        }))
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            if let Some(piece) = ready!(self.poll_piece(context)) {
                return Poll::Ready(Some(Ok(self.charged(piece))));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => self.left = bytes,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                other => return Poll::Ready(other),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, left) = (self.body.size_hint(), self.left.len() as u64);
        let mut all = SizeHint::new();
        if let Some(upper) = body.upper() {
            all.set_upper(upper + left);
        }
        all.set_lower(body.lower() + left);
        all
    }
}

struct Charged {
    bytes: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unread::Unread;
    use http_body_util::BodyExt;
    use souk_domain::ids::CompanyId;

    const LARGE: usize = COUNTED_BYTES_MIN as usize;

    /// From the moment an answer is ready until whoever sends it has dropped its last byte, also of a copy.
    #[tokio::test]
    async fn an_answer_counts_until_its_bytes_are_gone() {
        let unread = Unread::new(1 << 20, 2);
        let (acme, other) = (CompanyId::generate(), CompanyId::generate());
        let tally = unread.company(&acme);
        let mut response = Response::new(Body::from(vec![b'x'; LARGE]));
        count(&mut response, &tally);
        assert_eq!(response.body().size_hint().exact(), Some(LARGE as u64));
        assert_eq!(
            (unread.bytes(), tally.bytes()),
            (LARGE as u64, LARGE as u64)
        );
        assert_eq!(unread.company(&other).bytes(), 0);

        let frame = response.body_mut().frame().await.unwrap().unwrap();
        let mut bytes = frame.into_data().unwrap();
        assert!(response.body().is_end_stream());
        drop(response);
        let end = bytes.split_off(LARGE - 1);
        drop(bytes);
        assert_eq!(unread.company(&acme).bytes(), LARGE as u64);
        drop(end);
        assert_eq!((unread.bytes(), tally.bytes()), (0, 0));
    }

    /// A client that hangs up takes its answers off the tally; small ones were never on it.
    #[tokio::test]
    async fn what_is_not_sent_and_what_is_small_does_not_count() {
        let unread = Unread::new(1 << 20, 2);
        let tally = unread.company(&CompanyId::generate());
        for (size, counted) in [(LARGE, LARGE), (LARGE - 1, 0)] {
            let mut response = Response::new(Body::from(vec![b'x'; size]));
            count(&mut response, &tally);
            assert_eq!(tally.bytes(), counted as u64);
            drop(response);
            assert_eq!(tally.bytes(), 0);
        }
    }

    /// In how many pieces so many bytes leave to a client that takes them at once, and how long that takes.
    async fn sends(tally: &Arc<Tally>, bytes: usize) -> (usize, Duration) {
        let mut response = Response::new(Body::from(vec![b'x'; bytes]));
        count(&mut response, tally);
        let begun = Instant::now();
        let (mut body, mut sent, mut pieces) = (response.into_body(), 0, 0);
        while let Some(frame) = body.frame().await {
            sent += frame.unwrap().into_data().unwrap().len();
            pieces += 1;
            let left = body.size_hint().exact();
            assert_eq!(left, Some((bytes - sent) as u64));
        }
        assert!(body.is_end_stream() && sent == bytes);
        (pieces, begun.elapsed())
    }

    /// Only where others' calls are in flight, and only after what leaves at once.
    #[tokio::test]
    async fn large_answers_leave_at_a_pace_while_others_are_served() {
        const BYTES: usize = SENT_BYTES_PER_SECOND as usize / 4;
        let unread = Unread::new(1 << 20, 2);
        let tally = unread.company(&CompanyId::generate());
        let other = unread.company(&CompanyId::generate());
        assert!(tally.begin_call(10) && tally.begin_call(10));
        assert_eq!(sends(&tally, BYTES).await.0, 1);
        assert!(!other.begin_call(0), "it has no place");
        assert_eq!(sends(&tally, BYTES).await.0, 1);

        assert!(other.begin_call(10) && other.begin_call(10));
        other.end_call();
        let begun = Instant::now();
        let (pieces, took) = sends(&tally, BYTES).await;
        assert_eq!(pieces, BYTES / PIECE_BYTES);
        assert!(took >= Duration::from_millis(120), "{took:?}");
        // Of all its clients together: half a second's bytes in all, of which an eighth of a second's left at once.
        let mut both = tokio::task::JoinSet::new();
        for _ in 0..2 {
            let tally = tally.clone();
            both.spawn(async move { sends(&tally, BYTES / 2).await });
        }
        let both = both.join_all().await;
        assert!(begun.elapsed() >= Duration::from_millis(350), "{both:?}");

        other.end_call();
        assert_eq!(sends(&tally, BYTES).await.0, 1);
    }
}
