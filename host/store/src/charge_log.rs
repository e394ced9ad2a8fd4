//! The charge log: two files of a fixed size beside the database, in which frames are durable after one write and one `fdatasync`.
//!
//! A frame is a batch of charges; what is in it is not this file's business. Frames are numbered without gaps for as long as the store lives.
//! Once the frames of a file are in the database, the file is written from its beginning again. It is never made longer, so on a file system
//! that overwrites in place a full disk cannot break a frame, and a sync has no metadata to write.
//!
//! A frame is `SOUK`, the payload's length (u32), a CRC-32 of number and payload, the number (u64), the payload; integers are little-endian.
//! What follows the last frame is of former rounds: its numbers are lower.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// About 3,000 charges each. While one file waits to be booked the other is written, so this bounds how far the books can be behind.
const FILE_BYTES: u64 = 2 << 20;
const MAGIC: &[u8; 4] = b"SOUK";
const HEADER_BYTES: usize = 20;

/// The log, open for appending.
pub(crate) struct ChargeLog {
    base: PathBuf,
    files: [Option<Segment>; 2],
    current: usize,
    next: u64,
    /// Why nothing can be appended any more.
    ended: Option<&'static str>,
}

/// A write or a sync failed: what is on the disk is not known.
const BROKEN: &str =
    "the charge log could not be written before; restart the host when the disk is well";
const CLOSED: &str = "the store is closed";

struct Segment {
    file: File,
    end: u64,
    /// The last frame in it.
    last: u64,
}

/// Why a frame was not appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// Certainly not.
    Refused(io::Error),
    /// It may be found when the log is read again, and nothing can be appended before that.
    InDoubt(io::Error),
}

/// A frame, as it was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub number: u64,
    pub payload: Vec<u8>,
}

impl ChargeLog {
    /// An empty log whose first frame is `next`. Its files are made when they are needed, over what is there.
    pub(crate) fn new(database: &Path, next: u64) -> Self {
        Self {
            base: database.to_owned(),
            files: [None, None],
            current: 0,
            next,
            ended: None,
        }
    }

    /// Nothing is appended from now on.
    pub(crate) fn close(&mut self) {
        self.ended = Some(CLOSED);
    }

    /// The frame that must be in the database before a payload of this length can be appended; `None`: there is room.
    pub(crate) fn must_wait_for(&self, length: usize) -> Option<u64> {
        if self.has_room(length) {
            return None;
        }
        let other = self.files[1 - self.current].as_ref()?;
        (other.end > 0).then_some(other.last)
    }

    fn has_room(&self, length: usize) -> bool {
        let end = self.files[self.current].as_ref().map_or(0, |file| file.end);
        end + (HEADER_BYTES + length) as u64 <= FILE_BYTES
    }

    /// Makes a frame durable and returns its number. The caller has waited for what [`ChargeLog::must_wait_for`] named.
    ///
    /// Blocks the thread for one write and one sync: 0.1 ms on a good disk; the first frame in each file also makes the file, some ms.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<u64, AppendError> {
        if let Some(reason) = self.ended {
            return Err(AppendError::Refused(io::Error::other(reason)));
        }
        if (HEADER_BYTES + payload.len()) as u64 > FILE_BYTES {
            let error = format!("{} bytes do not fit into the charge log", payload.len());
            return Err(AppendError::Refused(io::Error::other(error)));
        }
        if !self.has_room(payload.len()) {
            self.current = 1 - self.current;
            if let Some(file) = &mut self.files[self.current] {
                file.end = 0;
            }
        }
        let number = self.next;
        let path = path(&self.base, self.current);
        let file = match &mut self.files[self.current] {
            Some(file) => file,
            slot => slot.insert(Segment {
                file: create(&path).map_err(AppendError::Refused)?,
                end: 0,
                last: 0,
            }),
        };
        let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
        frame.extend_from_slice(MAGIC);
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.extend_from_slice(&checksum(number, payload).to_le_bytes());
        frame.extend_from_slice(&number.to_le_bytes());
        frame.extend_from_slice(payload);
        // Half a frame is none, and the next one is written over it.
        file.file
            .write_all_at(&frame, file.end)
            .map_err(AppendError::Refused)?;
        if let Err(error) = file.file.sync_data() {
            // A sync that failed may have forgotten what it could not write: trying again would prove nothing.
            self.ended = Some(BROKEN);
            let taken_back = file
                .file
                .write_all_at(&[0; HEADER_BYTES], file.end)
                .and_then(|()| file.file.sync_data());
            return Err(match taken_back {
                Ok(()) => AppendError::Refused(error),
                Err(_) => AppendError::InDoubt(error),
            });
        }
        file.end += frame.len() as u64;
        file.last = number;
        self.next += 1;
        Ok(number)
    }
}

/// The frames after `booked`, in their order.
pub(crate) fn read(database: &Path, booked: u64) -> io::Result<Vec<Frame>> {
    let mut runs = Vec::new();
    for file in 0..2 {
        match std::fs::read(path(database, file)) {
            Ok(bytes) => runs.push(frames(&bytes, booked)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    runs.sort_by_key(|run| run.first().map(|frame| frame.number));
    let mut due = Vec::new();
    for frame in runs.into_iter().flatten() {
        let expected = booked + 1 + due.len() as u64;
        if frame.number > expected {
            return Err(io::Error::other(format!(
                "the charge log goes on at {}, but the database has only the charges up to {}: it is older than its charge log; \
                 restore both from the same time, or move the files …-charges-0 and -1 away to go on without any charge since {}",
                frame.number,
                expected - 1,
                expected - 1
            )));
        }
        if frame.number == expected {
            due.push(frame);
        }
    }
    Ok(due)
}

/// Removes the files, when all frames are in the database.
pub(crate) fn remove(database: &Path) {
    for file in 0..2 {
        std::fs::remove_file(path(database, file)).ok();
    }
}

/// What the files take on the disk.
pub(crate) fn bytes(database: &Path) -> u64 {
    let lengths = (0..2).filter_map(|file| std::fs::metadata(path(database, file)).ok());
    lengths.map(|metadata| metadata.len()).sum()
}

fn path(database: &Path, file: usize) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(format!("-charges-{file}"));
    PathBuf::from(name)
}

/// A file whose blocks are all there, and whose name outlives a power cut.
fn create(path: &Path) -> io::Result<File> {
    let file = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .open(path)?;
    let filled = file
        .write_all_at(&vec![0; FILE_BYTES as usize], 0)
        .and_then(|()| file.sync_all());
    if let Err(error) = filled {
        // Half a file would be in the way of the next attempt, and of a disk that is full.
        std::fs::remove_file(path).ok();
        return Err(error);
    }
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(file)
}

/// The frames at the beginning of a file, up to the first that is torn or of a former round.
///
/// A frame is only written when the one before it is durable, and over booked ones only. So a whole frame after a broken one that is
/// newer than both was answered, and proves damage.
fn frames(bytes: &[u8], booked: u64) -> io::Result<Vec<Frame>> {
    let mut found: Vec<Frame> = Vec::new();
    let mut rest = bytes;
    while let Some((frame, after)) = frame(rest) {
        if found
            .last()
            .is_some_and(|last| last.number + 1 != frame.number)
        {
            break;
        }
        found.push(frame);
        rest = after;
    }
    let last = found
        .last()
        .map_or(booked, |frame| frame.number.max(booked));
    let later = |at: usize| {
        let rest = rest.get(at..).filter(|rest| rest.starts_with(MAGIC))?;
        frame(rest).filter(|(frame, _)| frame.number > last)
    };
    match (0..rest.len()).find_map(later) {
        Some((frame, _)) => Err(io::Error::other(format!(
            "the charge log is damaged between {last} and {}; keep its files and restore them from the disk they were on",
            frame.number
        ))),
        None => Ok(found),
    }
}

fn frame(bytes: &[u8]) -> Option<(Frame, &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let (magic, header) = header.split_first_chunk::<4>()?;
    let (length, header) = header.split_first_chunk::<4>()?;
    let (crc, header) = header.split_first_chunk::<4>()?;
    let (number, _) = header.split_first_chunk::<8>()?;
    let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let number = u64::from_le_bytes(*number);
    let is_whole = magic == MAGIC && u32::from_le_bytes(*crc) == checksum(number, payload);
    let payload = payload.to_vec();
    is_whole.then_some((Frame { number, payload }, rest))
}

fn checksum(number: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(frames: &[Frame]) -> Vec<u64> {
        frames.iter().map(|frame| frame.number).collect()
    }

    /// Why a frame was certainly not appended.
    fn refusal(appended: Result<u64, AppendError>) -> String {
        match appended {
            Err(AppendError::Refused(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn frames_come_back_in_their_order_over_both_files() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        assert_eq!(read(&database, 0).unwrap(), []);
        let mut log = ChargeLog::new(&database, 1);
        let payload = vec![7; 300_000];
        let mut waits = Vec::new();
        for _ in 0..30 {
            waits.extend(log.must_wait_for(payload.len()));
            log.append(&payload).unwrap();
        }
        // Six fit into a file: the third time round what is written over must be booked.
        assert_eq!(waits, [6, 12, 18]);
        let kept = read(&database, 20).unwrap();
        assert_eq!(numbers(&kept), Vec::from_iter(21..=30));
        assert!(kept.iter().all(|frame| frame.payload == payload));
        assert_eq!(read(&database, 30).unwrap(), []);
        remove(&database);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_torn_frame_ends_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        let mut log = ChargeLog::new(&database, 5);
        for payload in [b"one".as_slice(), b"two", b"three"] {
            log.append(payload).unwrap();
        }
        assert_eq!(numbers(&read(&database, 4).unwrap()), [5, 6, 7]);
        let bytes = std::fs::read(path(&database, 0)).unwrap();
        let ends = [
            HEADER_BYTES + 3,
            2 * HEADER_BYTES + 6,
            3 * HEADER_BYTES + 11,
        ];
        // Wherever the last write was cut off or went wrong, the frames before it are whole.
        for cut in ends[1]..ends[2] {
            let mut torn = bytes.clone();
            torn[cut] ^= 0x40;
            std::fs::write(path(&database, 0), &torn).unwrap();
            assert_eq!(numbers(&read(&database, 4).unwrap()), [5, 6], "{cut}");
            std::fs::write(path(&database, 0), &bytes[..cut]).unwrap();
            assert_eq!(numbers(&read(&database, 4).unwrap()), [5, 6], "{cut}");
        }
    }

    #[test]
    fn damage_before_a_whole_frame_is_not_taken_for_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        let mut log = ChargeLog::new(&database, 1);
        for _ in 0..5 {
            log.append(b"payload").unwrap();
        }
        let bytes = std::fs::read(path(&database, 0)).unwrap();
        for (broken, named) in [
            (0, "damaged between 0 and 2"),
            (2, "damaged between 2 and 4"),
        ] {
            let mut bytes = bytes.clone();
            bytes[broken * (HEADER_BYTES + 7) + HEADER_BYTES] ^= 1;
            std::fs::write(path(&database, 0), &bytes).unwrap();
            let error = read(&database, 0).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
            // What is booked needs no log.
            assert_eq!(read(&database, 5).unwrap(), []);
        }
    }

    #[test]
    fn frames_of_a_former_round_are_not_taken_for_new_ones() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        let mut log = ChargeLog::new(&database, 1);
        for _ in 0..4 {
            log.append(b"same length").unwrap();
        }
        // As after a restart that booked all: from the beginning, over frames that are still there.
        let mut again = ChargeLog::new(&database, 5);
        again.append(b"same length").unwrap();
        assert_eq!(numbers(&read(&database, 4).unwrap()), [5]);
    }

    /// Once a sync has failed nobody knows what is on the disk, so nothing more is written until the log has been read again.
    #[test]
    fn after_a_failed_sync_nothing_is_appended() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = ChargeLog::new(&directory.path().join("a.db"), 1);
        // It takes what is written to it, and refuses to be synced.
        let unreliable = File::options().write(true).open("/dev/null").unwrap();
        log.files[0] = Some(Segment {
            file: unreliable,
            end: 0,
            last: 0,
        });
        let first = log.append(b"one").unwrap_err();
        assert!(matches!(first, AppendError::InDoubt(_)), "{first:?}");
        assert_eq!(refusal(log.append(b"two")), BROKEN);
    }

    /// A full disk refuses the charge, and only that one.
    #[test]
    fn a_write_that_fails_is_refused_and_can_be_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        let mut log = ChargeLog::new(&database, 1);
        log.append(b"one").unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let segment = log.files[0].as_mut().unwrap();
        let good = std::mem::replace(&mut segment.file, full);
        refusal(log.append(b"two"));
        log.files[0].as_mut().unwrap().file = good;
        assert_eq!(log.append(b"two again").unwrap(), 2);
        let found = read(&database, 0).unwrap();
        assert_eq!(found[1].payload, b"two again");
    }

    #[test]
    fn a_closed_log_takes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        let mut log = ChargeLog::new(&database, 1);
        log.append(b"one").unwrap();
        log.close();
        assert_eq!(refusal(log.append(b"two")), CLOSED);
        assert_eq!(numbers(&read(&database, 0).unwrap()), [1]);
    }

    #[test]
    fn a_database_older_than_its_log_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        ChargeLog::new(&database, 9).append(b"nine").unwrap();
        let error = read(&database, 6).unwrap_err().to_string();
        assert!(error.contains("restore both"), "{error}");
    }
}
