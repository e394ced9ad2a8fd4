//! A connection's test: which server it is, and whether it refuses a write.
//!
//! T-SQL's transactions all write. So a write is tried that changes nothing, in a transaction that is undone: a row fewer of none, in a table that the login may
//! write to by the server's own word; where there is none, a new table. A login that is let do either is no login that only reads.

use souk_sdk::{Chunk, ColumnData, Error, Step};
use tds_protocol::token::ServerError;

use crate::errors::is_refused_write;
use crate::packets::malformed;

/// Which server it is, and a table that the login may write to.
pub const LOOK: &str = "SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version,
    (SELECT TOP (1) CONCAT(QUOTENAME(s.name), N'.', QUOTENAME(o.name))
     FROM sys.objects AS o
     INNER JOIN sys.schemas AS s ON s.schema_id = o.schema_id
     WHERE o.type = 'U' AND o.is_ms_shipped = 0
       AND (HAS_PERMS_BY_NAME(CONCAT(QUOTENAME(s.name), N'.', QUOTENAME(o.name)), N'OBJECT', N'DELETE') = 1
         OR HAS_PERMS_BY_NAME(CONCAT(QUOTENAME(s.name), N'.', QUOTENAME(o.name)), N'OBJECT', N'UPDATE') = 1
         OR HAS_PERMS_BY_NAME(CONCAT(QUOTENAME(s.name), N'.', QUOTENAME(o.name)), N'OBJECT', N'INSERT') = 1)
     ORDER BY HAS_PERMS_BY_NAME(CONCAT(QUOTENAME(s.name), N'.', QUOTENAME(o.name)), N'OBJECT', N'DELETE') DESC) AS writable";
/// Rolled back, should it be let through.
const NEW_TABLE: &str = "CREATE TABLE souk_read_only_probe (id int)";
/// The database takes no writes, whatever the login may.
const READ_ONLY_DATABASE: i32 = 3906;

/// What is known of the server.
pub struct Ping {
    version: String,
    writable: Option<String>,
}

impl Ping {
    /// Reads what [`LOOK`] was answered.
    pub fn read(chunks: &[Chunk]) -> Result<Ping, Error> {
        let [version, writable] = chunks else {
            return Err(malformed());
        };
        Ok(Ping {
            version: text(version)?.unwrap_or_default(),
            writable: text(writable)?,
        })
    }

    /// The write to try.
    pub fn probe(&self) -> String {
        match &self.writable {
            Some(table) => format!("DELETE FROM {table} WHERE 1 = 0"),
            None => NEW_TABLE.to_owned(),
        }
    }

    /// Whether the source has refused the write; not known where it was something else.
    pub fn refuses(&self, refused: Option<&ServerError>) -> Option<bool> {
        match refused {
            None => Some(false),
            Some(error) if error.number == READ_ONLY_DATABASE => Some(true),
            // It may add rows, or change some.
            Some(_) if self.writable.is_some() => Some(false),
            Some(error) if is_refused_write(error) => Some(true),
            Some(_) => None,
        }
    }

    /// The one row, in columns of this number.
    pub fn pong(&self, id: u32, shape: u32, refuses: Option<bool>, step: &mut Step) {
        step.pong(id, shape, Some(&self.version), refuses);
        step.done(id);
    }
}

/// The one value of a column of texts.
fn text(chunk: &Chunk) -> Result<Option<String>, Error> {
    let is_null = chunk
        .validity
        .as_ref()
        .is_some_and(|bits| bits.first().is_none_or(|bits| bits & 1 == 0));
    match &chunk.data {
        ColumnData::VarLen(values) if values.offsets.len() == 2 => {
            let text = String::from_utf8_lossy(&values.bytes).into_owned();
            Ok((!is_null).then_some(text))
        }
        _ => Err(malformed()),
    }
}
