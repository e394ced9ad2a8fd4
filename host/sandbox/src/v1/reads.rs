//! Files as a guest on a directory reads them. What the kernel has in memory, which is nearly always all, is read here and now: a thread hop for each
//! read costs more than the read. What has to come from a disk is read by a thread that may wait, and whoever serves others, a worker or a lane, goes
//! on meanwhile. Knows nothing of turns: a call that waits goes on in a lane by itself.

use std::{
    fs::File,
    io::{self, IoSliceMut},
    os::unix::fs::FileExt,
    sync::Arc,
};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tokio::task::{JoinHandle, spawn_blocking};
use wasmtime::{
    Result, StoreContextMut,
    component::{Linker, Resource},
};
use wasmtime_wasi::{
    filesystem::{Descriptor, WasiFilesystemView},
    p2::{
        DynInputStream, InputStream, Pollable, StreamError, StreamResult,
        bindings::filesystem::types::{ErrorCode, HostDescriptor},
    },
};

use super::state::DirectoryState;

/// What one read returns at most, as in WASI's own.
const READ_BYTES_MAX: usize = 64 << 10;
/// The interface that is linked, whatever patch version a component names.
const TYPES: &str = "wasi:filesystem/types@0.2.12";

/// Takes the place of what WASI has linked for reading files.
pub(super) fn link(linker: &mut Linker<DirectoryState>) -> Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance(TYPES)?;
    types.func_wrap("[method]descriptor.read-via-stream", read_via_stream)?;
    types.func_wrap_async(
        "[method]descriptor.read",
        |store, (descriptor, length, offset)| Box::new(read(store, descriptor, length, offset)),
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

type Opened = std::result::Result<Resource<DynInputStream>, ErrorCode>;

fn read_via_stream(
    mut store: StoreContextMut<'_, DirectoryState>,
    (descriptor, position): (Resource<Descriptor>, u64),
) -> Result<(Opened,)> {
    let files = store.data_mut().filesystem();
    let file = match files.table.get(&descriptor)? {
        Descriptor::File(file) => file.file.clone(),
        Descriptor::Dir(_) => return Ok((Err(ErrorCode::IsDirectory),)),
    };
    let stream: DynInputStream = Box::new(FileReads {
        file,
        position,
        fetching: None,
        fetched: None,
    });
    Ok((Ok(files.table.push(stream)?),))
}

type Read = std::result::Result<(Vec<u8>, bool), ErrorCode>;

async fn read(
    mut store: StoreContextMut<'_, DirectoryState>,
    descriptor: Resource<Descriptor>,
    length: u64,
    offset: u64,
) -> Result<(Read,)> {
    let mut files = store.data_mut().filesystem();
    if let Descriptor::File(file) = files.table.get(&descriptor)? {
        let file = file.file.clone();
        let length = usize::try_from(length).map_or(READ_BYTES_MAX, |all| all.min(READ_BYTES_MAX));
        // What it could not read it tells when it is read below.
        let mut buffer = BytesMut::zeroed(length);
        if from_memory(&file, &mut buffer, offset).is_none() {
            let _ = fetch(file, offset, length).await;
        }
    }
    match files.read(descriptor, length, offset).await {
        Ok(read) => Ok((Ok(read),)),
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}

/// Reads what the kernel has in memory, less than there is room for perhaps. `None`: it has to be fetched from a disk.
fn from_memory(file: &File, buffer: &mut [u8], position: u64) -> Option<io::Result<usize>> {
    loop {
        let read = preadv2(
            file,
            &mut [IoSliceMut::new(buffer)],
            position,
            ReadWriteFlags::NOWAIT,
        );
        return match read {
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => None,
            // A file system that cannot tell: memory's own, one of a network.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                Some(read_at(file, buffer, position))
            }
            read => Some(read.map_err(io::Error::from)),
        };
    }
}

fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, position) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Reads by a thread that may wait for a disk. As many at once as there are sessions on files, which are counted.
fn fetch(file: Arc<File>, position: u64, length: usize) -> JoinHandle<io::Result<Bytes>> {
    spawn_blocking(move || {
        let mut buffer = BytesMut::zeroed(length);
        let length = read_at(&file, &mut buffer, position)?;
        buffer.truncate(length);
        Ok(buffer.freeze())
    })
}

/// A file from a position on.
struct FileReads {
    file: Arc<File>,
    position: u64,
    /// What a disk is asked for.
    fetching: Option<JoinHandle<io::Result<Bytes>>>,
    /// What it has answered, and nobody has taken yet.
    fetched: Option<io::Result<Bytes>>,
}

impl FileReads {
    fn give(&mut self, read: io::Result<Bytes>, size: usize) -> StreamResult<Bytes> {
        let mut bytes = read.map_err(|error| StreamError::LastOperationFailed(error.into()))?;
        if bytes.is_empty() {
            return Err(StreamError::Closed);
        }
        let given = bytes.split_to(size.min(bytes.len()));
        self.position += given.len() as u64;
        if !bytes.is_empty() {
            self.fetched = Some(Ok(bytes));
        }
        Ok(given)
    }
}

#[async_trait]
impl InputStream for FileReads {
    /// Nothing yet, where it has to be waited for.
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let size = size.min(READ_BYTES_MAX);
        if size == 0 || self.fetching.is_some() {
            return Ok(Bytes::new());
        }
        if let Some(fetched) = self.fetched.take() {
            return self.give(fetched, size);
        }
        let mut buffer = BytesMut::zeroed(size);
        match from_memory(&self.file, &mut buffer, self.position) {
            Some(read) => {
                let read = read.map(|length| {
                    buffer.truncate(length);
                    buffer.freeze()
                });
                self.give(read, size)
            }
            None => {
                self.fetching = Some(fetch(self.file.clone(), self.position, size));
                Ok(Bytes::new())
            }
        }
    }
}

#[async_trait]
impl Pollable for FileReads {
    async fn ready(&mut self) {
        if let Some(fetching) = &mut self.fetching {
            let fetched = fetching.await;
            self.fetched = Some(fetched.unwrap_or_else(|error| Err(io::Error::other(error))));
            self.fetching = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Advice, fadvise};
    use std::io::Write;

    /// Everything is read, in order and to the end, whether the kernel has it in memory or not.
    #[tokio::test]
    async fn all_of_a_file_is_read() {
        let bytes: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let file = Arc::new(file.into_file());
        file.sync_all().unwrap();
        for (is_cold, size) in [(false, 4_096), (true, 4_096), (true, 1 << 20)] {
            if is_cold {
                // A file system in memory keeps what it has.
                fadvise(&*file, 0, None, Advice::DontNeed).unwrap();
            }
            let mut reads = FileReads {
                file: file.clone(),
                position: 1_000,
                fetching: None,
                fetched: None,
            };
            let mut read = Vec::new();
            let end = loop {
                match reads.blocking_read(size).await {
                    Ok(bytes) => read.extend_from_slice(&bytes),
                    Err(end) => break end,
                }
            };
            assert!(matches!(end, StreamError::Closed), "{end}");
            assert!(read == bytes[1_000..], "{is_cold} {size}");
        }
    }

    /// What has to come from a disk is not waited for by who asks, and less may be taken of it at a time.
    #[tokio::test]
    async fn a_disk_is_waited_for_elsewhere() {
        let file = tempfile::NamedTempFile::new().unwrap().into_file();
        file.write_all_at(b"goals and cards", 0).unwrap();
        let mut reads = FileReads {
            fetching: Some(fetch(Arc::new(file.try_clone().unwrap()), 0, 9)),
            file: Arc::new(file),
            position: 0,
            fetched: None,
        };
        assert!(reads.read(9).unwrap().is_empty());
        reads.ready().await;
        assert_eq!(&reads.read(5).unwrap()[..], b"goals");
        assert_eq!(&reads.read(64).unwrap()[..], b" and");
        assert_eq!(&reads.read(64).unwrap()[..], b" cards");
        assert!(matches!(reads.read(64), Err(StreamError::Closed)));
    }
}
