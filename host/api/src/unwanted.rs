//! Taking what a client still sends that nobody wants. Knows no operation.

use crate::pace::Pace;
use axum::extract::Request;
use http::header;
use http_body::Body as _;
use http_body_util::BodyExt;
use std::time::Duration;

/// What a client may still send: several times the largest JSON body.
const DISCARDED_BYTES_MAX: usize = 8 << 20;
const DISCARD_FOR: Duration = Duration::from_secs(1);

/// [`discard`] for a request that was refused before its body was looked at. A client that asked whether to send it does not.
pub(crate) async fn discard_of(request: Request, pace: &Pace) {
    if !request.body().is_end_stream() && !request.headers().contains_key(header::EXPECT) {
        discard(request.into_body(), pace).await;
    }
}

/// Takes what a client is still sending that nobody wants, for a moment: closing at once would reset the connection before it has read why.
pub(crate) async fn discard(mut body: axum::body::Body, pace: &Pace) {
    let take = async {
        let mut taken = 0;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.into_data().map_or(0, |data| data.len());
            pace.keep(bytes).await;
            taken += bytes;
            if taken > DISCARDED_BYTES_MAX {
                return;
            }
        }
    };
    // A client that sends nothing more just waits for its answer.
    tokio::time::timeout(DISCARD_FOR, take).await.ok();
}
