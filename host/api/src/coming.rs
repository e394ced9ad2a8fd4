//! The body of an upload, which ends early where it comes so slowly that it is in the way of others: when that is, [`crate::uploads`] says. The time
//! in which the host does not ask for more is not its client's. Start reading at [`watch`].

use crate::uploads::{Coming, Place};
use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// How often it is looked at while nothing comes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Has a body end where it is in the way.
pub(crate) fn watch(body: &mut Body, place: &Place) {
    let watched = Watched {
        body: std::mem::take(body),
        coming: place.coming(),
        received: 0,
        waited: Duration::ZERO,
        waiting: None,
    };
    *body = Body::new(watched);
}

struct Watched {
    body: Body,
    coming: Coming,
    received: u64,
    /// In all.
    waited: Duration,
    /// For more bytes: since when, and when it is looked at again.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            if let Some((since, _)) = this.waiting.take() {
                this.waited += since.elapsed();
            }
            if let Some(Ok(frame)) = &frame {
                this.received += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        loop {
            let (since, timer) = this.waiting.get_or_insert_with(|| {
                let timer = tokio::time::sleep(LOOK_EVERY);
                (Instant::now(), Box::pin(timer))
            });
            let waited = this.waited + since.elapsed();
            if this.coming.is_in_the_way(this.received, waited) {
                return Poll::Ready(Some(Err(this.in_the_way().into())));
            }
            ready!(timer.as_mut().poll(context));
            timer
                .as_mut()
                .reset(tokio::time::Instant::now() + LOOK_EVERY);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Watched {
    fn in_the_way(&self) -> String {
        format!(
            "it comes too slowly while others wait for room; send at least {} bytes a second, or try again when this host is less busy",
            self.coming.bytes_per_second()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uploads::Uploads;
    use futures_util::stream::{self, StreamExt};
    use http_body::Body as _;
    use http_body_util::BodyExt;
    use souk_domain::ids::CompanyId;
    use std::convert::Infallible;
    use std::sync::Arc;

    const MIB: u64 = 1 << 20;

    /// Two bytes, and never any more.
    fn stalls() -> Body {
        let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"xx"))]);
        Body::from_stream(first.chain(stream::pending()))
    }

    /// A body that stalls is waited for until others need room, however late that is, and then it ends with what its client has to do.
    #[tokio::test]
    async fn a_slow_upload_ends_when_others_need_room() {
        let uploads = Arc::new(Uploads::new(8 * MIB, 16 * MIB));
        let enter = |mib: u64| uploads.enter(&CompanyId::generate(), mib * MIB).unwrap();
        let (slow, _others) = (enter(4), enter(8));
        let mut body = Watched {
            body: stalls(),
            coming: slow.coming(),
            received: 0,
            waited: Duration::from_secs(100),
            waiting: None,
        };
        let first = body.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap().len(), 2);
        let waits = tokio::time::timeout(2 * LOOK_EVERY, body.frame()).await;
        assert!(waits.is_err(), "others have half");
        let _more = enter(1);
        let ended = tokio::time::timeout(Duration::from_secs(60), body.frame()).await;
        let ended = ended.expect("an end").expect("an error").unwrap_err();
        let told = ended.to_string();
        assert!(told.contains("at least 69906 bytes a second"), "{told}");
    }

    /// A body that comes in time comes whole.
    #[tokio::test]
    async fn an_upload_that_comes_is_whole() {
        let uploads = Arc::new(Uploads::new(8 * MIB, 8 * MIB));
        let enter = |mib: u64| uploads.enter(&CompanyId::generate(), mib * MIB).unwrap();
        let (place, _others) = (enter(1), enter(6));
        let mut body = Body::from(vec![b'x'; 1 << 20]);
        watch(&mut body, &place);
        assert_eq!(body.size_hint().exact(), Some(MIB));
        let whole = body.collect().await.unwrap().to_bytes();
        assert_eq!(whole.len() as u64, MIB);
    }
}
