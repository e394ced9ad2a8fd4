//! A connection's test: which server it is, and whether the login may write there.
//!
//! T-SQL's transactions all write. So the server is asked what the login may do. Where it knows of nothing, a table is made, in a transaction that is undone. No write is
//! tried in a table that is there: its triggers would run, though nothing is changed.

use souk_sdk::{Chunk, ColumnData, Error, Step};
use tds_protocol::token::ServerError;

use crate::errors::is_refused_write;
use crate::protocol::malformed;

/// Which server it is, whether the database takes writes, and what the login may do: `WRITE` in a table, in a view, in some column or in the database as a whole, or
/// `EXECUTE` what may write.
pub const LOOK: &str = "SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version,
    CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS nvarchar(128)) AS updateability,
    (SELECT MAX(CASE permission_name WHEN N'EXECUTE' THEN N'EXECUTE' ELSE N'WRITE' END)
     FROM (SELECT p.permission_name
           FROM sys.objects AS o
           INNER JOIN sys.schemas AS s ON s.schema_id = o.schema_id
           CROSS APPLY sys.fn_my_permissions(CONCAT(QUOTENAME(s.name), N'.', QUOTENAME(o.name)), N'OBJECT') AS p
           WHERE o.type IN ('U', 'V', 'P', 'PC') AND o.is_ms_shipped = 0
           UNION ALL
           SELECT permission_name FROM sys.fn_my_permissions(NULL, N'DATABASE')) AS permissions
     WHERE permission_name IN (N'INSERT', N'UPDATE', N'DELETE', N'ALTER', N'CONTROL', N'TAKE OWNERSHIP', N'EXECUTE')
        OR permission_name LIKE N'ALTER ANY %') AS may";
/// The write that is tried. Rolled back, should it be let through.
pub const PROBE: &str = "CREATE TABLE souk_read_only_probe (id int)";
/// What is known of the server.
pub struct Ping {
    version: String,
    may: May,
}

#[derive(Clone, Copy, PartialEq)]
enum May {
    /// The database takes no writes, whatever the login may.
    WriteNothing,
    Write,
    Execute,
    /// As far as the server knows.
    Read,
}

impl Ping {
    /// Reads what [`LOOK`] was answered.
    pub fn read(chunks: &[Chunk]) -> Result<Ping, Error> {
        let [version, updateability, may] = chunks else {
            return Err(malformed());
        };
        let may = match (text(updateability)?.as_deref(), text(may)?.as_deref()) {
            (Some("READ_ONLY"), _) => May::WriteNothing,
            (_, None) => May::Read,
            (_, Some("EXECUTE")) => May::Execute,
            (_, Some(_)) => May::Write,
        };
        Ok(Ping {
            version: text(version)?.unwrap_or_default(),
            may,
        })
    }

    /// Whether a write is to be tried.
    pub fn needs_a_probe(&self) -> bool {
        matches!(self.may, May::Execute | May::Read)
    }

    /// Whether the source refuses writes, of which one may have been tried; not known where something else was refused, or where
    /// nobody knows what the login may execute.
    pub fn refuses(&self, probe: Option<Option<&ServerError>>) -> Option<bool> {
        match (self.may, probe) {
            (May::WriteNothing, _) => Some(true),
            (May::Write, _) | (_, Some(None)) => Some(false),
            (May::Read, Some(Some(error))) if is_refused_write(error) => Some(true),
            _ => None,
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
