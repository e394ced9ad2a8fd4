//! SQLite files that are not what they seem. What a seller can upload is bytes only; what an operator's accident (or another program of the
//! machine) makes of an uploaded file afterwards is played by [`Damage::afterwards`].

use std::os::unix::fs::symlink;
use std::path::Path;

use rusqlite::Connection;

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Nothing: proves that the others are reached.
    None,
    Empty,
    NoDatabase,
    /// Ends in the middle of its first page.
    TruncatedHeader,
    /// Ends in the middle of the table.
    TruncatedPages,
    /// The pages after the schema are noise.
    GarbagePages,
    /// Every hundredth byte is another one.
    SprinkledBytes,
    /// Says that its pages have 64 KiB, which they have not.
    WrongPageSize,
    /// Says that its pages have 3 bytes.
    ImpossiblePageSize,
    /// Says that it has four thousand million pages.
    PagesThatAreNotThere,
    /// The schema is a table with two thousand columns, ten thousand times named in views of views.
    SchemaBomb,
    /// A view that joins itself again and again: small text, endless work.
    ViewBomb,
    /// The b-tree's pages point at each other in a circle.
    CircularPages,
    /// One value of 200 MiB, which the file announces and does not have.
    ValueThatIsNotThere,
    /// A row of 12 MiB of zeros.
    LargeValue,
    /// Written with WAL, whose other files are missing.
    WalWithoutWal,
    /// After the upload: the file became a pipe that nobody writes.
    BecameAPipe,
    /// After the upload: the file became a link to a file outside.
    BecameALink,
    /// After the upload: the file became a directory.
    BecameADirectory,
    /// After the upload: the file is gone.
    IsGone,
}

impl Damage {
    pub const ALL: &[Damage] = &[
        Damage::None,
        Damage::Empty,
        Damage::NoDatabase,
        Damage::TruncatedHeader,
        Damage::TruncatedPages,
        Damage::GarbagePages,
        Damage::SprinkledBytes,
        Damage::WrongPageSize,
        Damage::ImpossiblePageSize,
        Damage::PagesThatAreNotThere,
        Damage::SchemaBomb,
        Damage::ViewBomb,
        Damage::CircularPages,
        Damage::ValueThatIsNotThere,
        Damage::LargeValue,
        Damage::WalWithoutWal,
        Damage::BecameAPipe,
        Damage::BecameALink,
        Damage::BecameADirectory,
        Damage::IsGone,
    ];

    /// The file as it is uploaded. It has a table `t` with a column `id`, if anything can be read at all.
    pub fn bytes(self) -> Vec<u8> {
        let mut sound = database(TABLE);
        match self {
            Damage::None
            | Damage::BecameAPipe
            | Damage::BecameALink
            | Damage::BecameADirectory
            | Damage::IsGone => sound,
            Damage::Empty => vec![b'\n'],
            Damage::NoDatabase => {
                b"SQLite format 4\0 and then a shopping list: eggs, flour".repeat(100)
            }
            Damage::TruncatedHeader => sound[..60].to_vec(),
            Damage::TruncatedPages => sound[..sound.len() / 2 + 100].to_vec(),
            Damage::GarbagePages => {
                let noise = noise(sound.len() - PAGE_BYTES);
                sound[PAGE_BYTES..].copy_from_slice(&noise);
                sound
            }
            Damage::SprinkledBytes => {
                let noise = noise(sound.len());
                for at in (200..sound.len()).step_by(100) {
                    sound[at] = noise[at];
                }
                sound
            }
            // A page size of 1 means 65,536.
            Damage::WrongPageSize => with(sound, 16, &1u16.to_be_bytes()),
            Damage::ImpossiblePageSize => with(sound, 16, &3u16.to_be_bytes()),
            Damage::PagesThatAreNotThere => with(sound, 28, &u32::MAX.to_be_bytes()),
            Damage::SchemaBomb => database(&schema_bomb()),
            Damage::ViewBomb => database(&view_bomb()),
            Damage::CircularPages => circular(sound),
            Damage::ValueThatIsNotThere => announced(),
            Damage::LargeValue => database(
                "CREATE TABLE t (id INTEGER PRIMARY KEY, blob BLOB); INSERT INTO t VALUES (1, zeroblob(12000000))",
            ),
            // Versions 2 of reading and of writing.
            Damage::WalWithoutWal => with(sound, 18, &[2, 2]),
        }
    }

    /// What happens to the uploaded file at `path` before it is read.
    pub fn afterwards(self, path: &Path) -> std::io::Result<()> {
        match self {
            Damage::BecameAPipe => {
                std::fs::remove_file(path)?;
                make_pipe(path)
            }
            Damage::BecameALink => {
                std::fs::remove_file(path)?;
                symlink("/etc/passwd", path)
            }
            Damage::BecameADirectory => {
                std::fs::remove_file(path)?;
                std::fs::create_dir(path)
            }
            Damage::IsGone => std::fs::remove_file(path),
            _ => Ok(()),
        }
    }

    /// The statement that meets the damage.
    pub fn sql(self) -> &'static str {
        match self {
            Damage::ViewBomb => "SELECT count(*) AS id FROM v12",
            Damage::SchemaBomb => "SELECT count(*) AS id FROM v40",
            Damage::LargeValue => "SELECT length(hex(blob) || hex(blob)) AS id FROM t",
            _ => "SELECT sum(id) AS id FROM t",
        }
    }
}

const PAGE_BYTES: usize = 4096;
const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    INSERT INTO t SELECT i, 'name ' || i FROM n";

/// A sound file. The disk is waited for at no statement of thousands: whoever measures would stand still with this thread.
pub fn database(sql: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("made.db");
    let made = Connection::open(&path).expect("a database");
    made.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
        .expect("quick writing");
    made.execute_batch(sql).expect("the schema");
    made.close().expect("closed");
    std::fs::read(&path).expect("the file")
}

fn with(mut bytes: Vec<u8>, at: usize, patch: &[u8]) -> Vec<u8> {
    bytes[at..at + patch.len()].copy_from_slice(patch);
    bytes
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(bytes)
    .collect()
}

fn schema_bomb() -> String {
    let columns: Vec<String> = (0..1_900).map(|number| format!("c{number}")).collect();
    let mut sql = format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, {});",
        columns.join(", ")
    );
    sql.push_str("INSERT INTO t (id) VALUES (1); CREATE VIEW v0 AS SELECT * FROM t;");
    for number in 1..=40 {
        let before = number - 1;
        sql.push_str(&format!(
            "CREATE VIEW v{number} AS SELECT * FROM v{before} WHERE id IN (SELECT id FROM v{before});"
        ));
    }
    sql
}

/// Each view reads the one before twice: 4,096 tables in the last.
fn view_bomb() -> String {
    let mut sql = format!("{TABLE}; CREATE VIEW v0 AS SELECT id FROM t;");
    for number in 1..=12 {
        let before = number - 1;
        sql.push_str(&format!(
            "CREATE VIEW v{number} AS SELECT a.id + b.id AS id FROM v{before} a, v{before} b;"
        ));
    }
    sql
}

/// Every child pointer of the table's root page points at the root page.
fn circular(mut bytes: Vec<u8>) -> Vec<u8> {
    // The table's root is the second page; an interior page of a table begins with 5.
    const ROOT: usize = PAGE_BYTES;
    assert_eq!(bytes[ROOT], 5, "the root has children");
    let cells = usize::from(u16::from_be_bytes([bytes[ROOT + 3], bytes[ROOT + 4]]));
    for cell in 0..cells {
        let at = ROOT + 12 + cell * 2;
        let offset = usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
        bytes[ROOT + offset..ROOT + offset + 4].copy_from_slice(&2u32.to_be_bytes());
    }
    bytes[ROOT + 8..ROOT + 12].copy_from_slice(&2u32.to_be_bytes());
    bytes
}

/// A row whose value is said to have 200 MiB, in a file of two pages.
fn announced() -> Vec<u8> {
    let mut bytes = database(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, blob BLOB); INSERT INTO t VALUES (1, zeroblob(3000))",
    );
    let last = bytes.len() - PAGE_BYTES;
    let cell = usize::from(u16::from_be_bytes([bytes[last + 8], bytes[last + 9]]));
    // The payload's length, a varint of two bytes, becomes one that is as long and as large as can be.
    bytes[last + cell..last + cell + 2].copy_from_slice(&[0xff, 0x7f]);
    bytes
}

fn make_pipe(path: &Path) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a C string that outlives the call.
    #[allow(unsafe_code)]
    match unsafe { libc::mkfifo(path.as_ptr(), 0o600) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damage_can_be_made() {
        for damage in Damage::ALL {
            assert!(!damage.bytes().is_empty(), "{damage:?}");
        }
    }
}
