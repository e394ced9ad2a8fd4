//! Bytes of the granted directory: a file, or the part of an archive that one is. Nothing else here opens or reads.

use bytes::Bytes;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is read ahead of who reads from front to back.
const AHEAD_BYTES: usize = 256 * 1024;

/// It cannot change while it is open: uploads are never written to once they have a name.
#[derive(Clone, Debug)]
pub struct Slice {
    file: Arc<File>,
    start: u64,
    len: u64,
    read: Arc<AtomicU64>,
}

impl Slice {
    pub fn whole(file: File, read: Arc<AtomicU64>) -> io::Result<Slice> {
        let len = file.metadata()?.len();
        Ok(Slice {
            file: Arc::new(file),
            start: 0,
            len,
            read,
        })
    }

    /// The part of it that `range` is.
    pub fn part(&self, range: Range<u64>) -> io::Result<Slice> {
        if range.start > range.end || range.end > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Slice {
            start: self.start + range.start,
            len: range.end - range.start,
            ..self.clone()
        })
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// The bytes of `range`, all of them; the caller has bounded how many.
    pub fn bytes(&self, range: Range<u64>) -> io::Result<Bytes> {
        let part = self.part(range)?;
        let mut bytes = vec![0; usize::try_from(part.len).map_err(io::Error::other)?];
        part.fill(0, &mut bytes)?;
        Ok(bytes.into())
    }

    /// All of `into` from `at` on.
    pub fn fill(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            match self.read_at(at + filled as u64, &mut into[filled..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(())
    }

    /// From front to back.
    pub fn reader(&self) -> io::BufReader<Front> {
        let front = Front {
            slice: self.clone(),
            at: 0,
        };
        io::BufReader::with_capacity(AHEAD_BYTES, front)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.start + at))?;
        let count = file.read(&mut into[..wanted])?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        #[cfg(target_family = "wasm")]
        crate::allocated::read(count);
        Ok(count)
    }
}

/// Reads a slice from its beginning.
#[derive(Debug)]
pub struct Front {
    slice: Slice,
    at: u64,
}

impl Read for Front {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.slice.read_at(self.at, into)?;
        self.at += count as u64;
        Ok(count)
    }
}
