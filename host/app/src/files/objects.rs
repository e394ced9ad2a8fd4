//! The object store that hosts share files by: an upload is one object, `<prefix>/<company>/<upload>`, which never changes. Written and read in
//! pieces, so that memory and each wait are bounded whatever the size of a file.
//!
//! Refuses to know: rows, caches, who asks. [`way`] is how requests get there, [`ObjectsAt`] where the operator says it is.

mod at;
mod way;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{BackoffConfig, MultipartUpload, ObjectStore, ObjectStoreExt, RetryConfig};
use souk_domain::ids::CompanyId;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use at::ObjectsAt;
use way::Way;

use super::error::ObjectError;
use super::quota::FILE_BYTES_MAX;
use super::uploads::{Sink, blocking};
use crate::lines::Lines;

/// Below the prefix, and never there.
const NOTHING: &str = "nothing";
/// S3 takes parts of 5 MiB and more, at most 10,000 of them: the largest file has 128.
const PIECE_BYTES: u64 = 8 << 20;
const _: () = assert!(FILE_BYTES_MAX / PIECE_BYTES < 10_000);
/// Pieces under way in each direction, of all files together: 32 MiB. Files take turns piece by piece, so that a small one does not wait for a
/// large one, and who reads does not wait for who writes.
const PIECES_MAX: usize = 4;
/// … and of one company's files, so that others have turns beside it, however many files it needs at once.
const PIECES_PER_COMPANY: usize = 2;
/// What a request that got no answer, or an unwell one, is tried again after. (The crate's own are ten times, within three minutes.)
const AGAIN: RetryConfig = RetryConfig {
    backoff: BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(1),
        base: 2.0,
    },
    max_retries: 2,
    retry_timeout: Duration::from_secs(60),
};

/// An object store, and what is below its prefix. Cheap to clone.
#[derive(Clone)]
pub struct Objects {
    /// As the operator knows it, without what is secret.
    pub(super) name: Arc<str>,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    writing: Arc<Pieces>,
    reading: Arc<Pieces>,
}

/// Whose piece is under way next, in one direction.
struct Pieces {
    of_all: Arc<Semaphore>,
    companies: Lines<CompanyId>,
}

/// A piece is under way until this is dropped.
struct Turn {
    _place: Option<OwnedSemaphorePermit>,
    _own: Option<OwnedSemaphorePermit>,
}

impl Pieces {
    fn new() -> Arc<Pieces> {
        Arc::new(Pieces {
            of_all: Arc::new(Semaphore::new(PIECES_MAX)),
            companies: Lines::new(PIECES_PER_COMPANY),
        })
    }

    async fn turn(&self, company: &CompanyId) -> Turn {
        // The company's first: who waits for it holds no place of others.
        let own = self.companies.stand(company).await;
        let place = self.of_all.clone().acquire_owned().await;
        Turn {
            _place: place.ok(),
            _own: own,
        }
    }
}

impl Objects {
    /// Asks nothing yet.
    pub fn new(at: &ObjectsAt) -> Result<Objects, String> {
        let keyed = match &at.keys {
            Some((id, secret)) => AmazonS3Builder::new()
                .with_access_key_id(id)
                .with_secret_access_key(secret),
            // As the machine has them: AWS_ACCESS_KEY_ID, a web identity, the role of the instance.
            None => AmazonS3Builder::from_env(),
        };
        let mut builder = keyed
            .with_bucket_name(&at.bucket)
            .with_retry(AGAIN)
            // Every server that speaks S3 understands these; of virtual hosts and of deletions in bulk some do not.
            .with_virtual_hosted_style_request(false)
            .with_disable_bulk_delete(true)
            .with_http_connector(Way::new(at.authority_pem()?.as_deref())?);
        if let Some(region) = &at.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &at.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let store = builder.build().map_err(|error| error.to_string())?;
        Ok(Objects::over(Arc::new(store), &at.prefix, &at.to_string()))
    }

    pub(super) fn over(store: Arc<dyn ObjectStore>, prefix: &str, name: &str) -> Objects {
        Objects {
            name: name.into(),
            store,
            prefix: Path::from(prefix),
            writing: Pieces::new(),
            reading: Pieces::new(),
        }
    }

    fn path(&self, company: &str, upload: &str) -> Path {
        self.prefix.clone().join(company).join(upload)
    }

    /// Makes an object of the first `bytes` of the file: it is there whole, or not at all.
    pub async fn put(
        &self,
        company: &CompanyId,
        upload: &str,
        file: File,
        bytes: u64,
    ) -> Result<(), ObjectError> {
        let path = self.path(company.as_str(), upload);
        let file = Arc::new(file);
        if bytes <= PIECE_BYTES {
            let _turn = self.writing.turn(company).await;
            let whole = piece(&file, 0, bytes).await?;
            self.store
                .put(&path, whole.into())
                .await
                .map_err(not_taken)?;
            return Ok(());
        }
        let upload = self.store.put_multipart(&path).await.map_err(not_taken)?;
        let mut parts = Parts::of(upload);
        for offset in (0..bytes).step_by(PIECE_BYTES as usize) {
            let _turn = self.writing.turn(company).await;
            let part = piece(&file, offset, PIECE_BYTES.min(bytes - offset)).await?;
            parts.put(part).await?;
        }
        parts.complete().await
    }

    /// Whether the object is there, with so many bytes.
    pub(super) async fn look_at(
        &self,
        company: &CompanyId,
        upload: &str,
        bytes: u64,
    ) -> Result<(), ObjectError> {
        let found = self.size(company.as_str(), upload).await?;
        match found == bytes {
            true => Ok(()),
            false => Err(ObjectError::Damaged(format!(
                "it has {found} bytes instead of {bytes}"
            ))),
        }
    }

    /// Writes so many bytes of the object into `sink`; answers their digest.
    pub(super) async fn get(
        &self,
        company: &CompanyId,
        upload: &str,
        bytes: u64,
        mut sink: Sink,
    ) -> Result<String, ObjectError> {
        let path = self.path(company.as_str(), upload);
        for offset in (0..bytes).step_by(PIECE_BYTES as usize) {
            let _turn = self.reading.turn(company).await;
            let range = offset..bytes.min(offset + PIECE_BYTES);
            let piece = self.store.get_range(&path, range).await?;
            sink = blocking(move || sink.write(vec![piece])).await?;
        }
        Ok(blocking(move || sink.finish()).await?)
    }

    /// Of the object, in bytes.
    pub async fn size(&self, company: &str, upload: &str) -> Result<u64, ObjectError> {
        Ok(self.store.head(&self.path(company, upload)).await?.size)
    }

    /// Whether it does what it is asked, with these keys: it deletes what is not there.
    pub(super) async fn probe(&self) -> Result<(), ObjectError> {
        match self.store.delete(&self.prefix.clone().join(NOTHING)).await {
            // Of an object that is not there it is well that it is not there, of a bucket it is not.
            Err(error @ object_store::Error::NotFound { .. })
                if !error.to_string().contains("NoSuchBucket") =>
            {
                Ok(())
            }
            deleted => deleted.map_err(not_taken),
        }
    }

    /// One that is not there is deleted already.
    pub async fn delete(&self, company: &CompanyId, upload: &str) -> Result<(), ObjectError> {
        match self
            .store
            .delete(&self.path(company.as_str(), upload))
            .await
        {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            deleted => Ok(deleted?),
        }
    }
}

/// The parts of an object that is being written. Dropped before that is complete, however that comes about, they are given up: nobody lists them, and
/// they take room.
struct Parts {
    /// `None`: it is complete.
    upload: Option<Box<dyn MultipartUpload>>,
    /// On which they are given up.
    runtime: Handle,
}

impl Parts {
    fn of(upload: Box<dyn MultipartUpload>) -> Parts {
        Parts {
            upload: Some(upload),
            runtime: Handle::current(),
        }
    }

    async fn put(&mut self, part: Bytes) -> Result<(), ObjectError> {
        match &mut self.upload {
            Some(upload) => upload.put_part(part.into()).await.map_err(not_taken),
            None => Ok(()),
        }
    }

    async fn complete(mut self) -> Result<(), ObjectError> {
        if let Some(upload) = &mut self.upload {
            upload.complete().await.map_err(not_taken)?;
        }
        self.upload = None;
        Ok(())
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            self.runtime.spawn(async move {
                // Where that fails, too, the bucket's own rule for unfinished uploads ends it (docs/operations.md).
                let _ = upload.abort().await;
            });
        }
    }
}

/// Nothing has to be there for something to be written: what is missing is the bucket.
fn not_taken(error: object_store::Error) -> ObjectError {
    ObjectError::Away(error.to_string())
}

async fn piece(file: &Arc<File>, offset: u64, bytes: u64) -> Result<Bytes, ObjectError> {
    let file = file.clone();
    let read = move || {
        let mut piece = vec![0; bytes as usize];
        file.read_exact_at(&mut piece, offset)?;
        Ok(Bytes::from(piece))
    };
    Ok(blocking(read).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use object_store::{PutPayload, PutResult, UploadPart};
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    /// However many pieces one company wants at once, two are under way, and the next turns are others'.
    #[tokio::test]
    async fn companies_take_turns() {
        let pieces = Pieces::new();
        let [one, other, third] = [(); 3].map(|()| CompanyId::generate());
        let turn = |company: &CompanyId| pieces.turn(company).now_or_never();
        let own = [turn(&one), turn(&one)];
        assert!(own.iter().all(Option::is_some) && turn(&one).is_none());
        let others = [turn(&other), turn(&other)];
        assert!(others.iter().all(Option::is_some));
        // All that there are.
        assert!(turn(&third).is_none());
        drop(own);
        assert!(turn(&third).is_some() && turn(&one).is_some());
    }

    /// Says how it ends. Its parts take for ever.
    #[derive(Debug)]
    struct Watched(UnboundedSender<&'static str>);

    #[async_trait::async_trait]
    impl MultipartUpload for Watched {
        fn put_part(&mut self, _: PutPayload) -> UploadPart {
            Box::pin(std::future::pending())
        }

        async fn complete(&mut self) -> object_store::Result<PutResult> {
            self.0.send("complete").unwrap();
            Err(object_store::Error::NotImplemented {
                operation: "complete".to_owned(),
                implementer: "a test".to_owned(),
            })
        }

        async fn abort(&mut self) -> object_store::Result<()> {
            self.0.send("given up").unwrap();
            Ok(())
        }
    }

    /// Whoever gives up an object on its way, or cannot complete it, leaves no parts of it.
    #[tokio::test]
    async fn what_is_not_complete_leaves_no_parts() {
        let (ended, mut heard) = unbounded_channel();
        let mut parts = Parts::of(Box::new(Watched(ended.clone())));
        let sending = parts.put(Bytes::from_static(b"part"));
        assert!(sending.now_or_never().is_none());
        drop(parts);
        assert_eq!(heard.recv().await, Some("given up"));
        let parts = Parts::of(Box::new(Watched(ended)));
        assert!(parts.complete().await.is_err());
        assert_eq!(heard.recv().await, Some("complete"));
        assert_eq!(heard.recv().await, Some("given up"));
    }
}
