//! Prepared statements over SQLite's C interface. A page is thousands of values, and rusqlite asks SQLite three times what one of
//! them is: of 1,000 rows that took longer than the statement did.
#![allow(unsafe_code)]

use crate::errors;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ffi};
use souk_sdk::Error;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::{null, null_mut};
use std::rc::Rc;

/// A value that a statement is given.
#[derive(Debug, PartialEq)]
pub enum Bound<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a str),
    /// A text that was written for it.
    Written(String),
    Blob(&'a [u8]),
}

pub struct Prepared {
    /// Never null.
    raw: *mut ffi::sqlite3_stmt,
    /// It lives at least as long.
    connection: Rc<Connection>,
}

impl Prepared {
    pub fn new(connection: &Rc<Connection>, text: &str) -> Result<Prepared, Error> {
        let (raw, rest) = prepare(connection, text)?;
        let prepared = Prepared {
            raw,
            connection: connection.clone(),
        };
        if raw.is_null() {
            return Err(Error::source_failed(
                "no_statement",
                "the text holds no statement",
            ));
        }
        if !rest.is_empty() {
            let (another, _) = prepare(connection, rest)?;
            if !another.is_null() {
                // SAFETY: it was just prepared, and nobody else knows it.
                unsafe { ffi::sqlite3_finalize(another) };
                return Err(Error::source_failed(
                    "several_statements",
                    "the text holds more than one statement",
                ));
            }
        }
        Ok(prepared)
    }

    pub fn is_read_only(&self) -> bool {
        // SAFETY: the statement is alive.
        unsafe { ffi::sqlite3_stmt_readonly(self.raw) != 0 }
    }

    pub fn parameters(&self) -> usize {
        // SAFETY: the statement is alive.
        let count = unsafe { ffi::sqlite3_bind_parameter_count(self.raw) };
        usize::try_from(count).unwrap_or(0)
    }

    /// Names and declared types of its columns.
    pub fn columns(&self) -> Vec<(String, Option<String>)> {
        // SAFETY: the statement is alive, and the texts stay for as long as nothing else is asked of this column; no memory or no
        // declared type is a null pointer.
        unsafe {
            let text = |text: *const c_char| {
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            };
            (0..ffi::sqlite3_column_count(self.raw))
                .map(|column| {
                    let name = text(ffi::sqlite3_column_name(self.raw, column));
                    let declared = text(ffi::sqlite3_column_decltype(self.raw, column));
                    (name.unwrap_or_default(), declared)
                })
                .collect()
        }
    }

    /// Begins to run it with these values, of which there are as many as [parameters](Self::parameters).
    pub fn run(&mut self, values: &[Bound<'_>]) -> Result<Rows<'_>, Error> {
        // What is bound stays for as long as it runs: dropping it ends both.
        let rows = Rows { statement: self };
        for (parameter, value) in (1..).zip(values) {
            rows.statement.bind(parameter, value)?;
        }
        Ok(rows)
    }

    fn bind(&self, parameter: c_int, value: &Bound<'_>) -> Result<(), Error> {
        let raw = self.raw;
        // SAFETY: the statement is alive and does not run; SQLite copies texts and blobs.
        let code = unsafe {
            match value {
                Bound::Null => ffi::sqlite3_bind_null(raw, parameter),
                Bound::Integer(value) => ffi::sqlite3_bind_int64(raw, parameter, *value),
                Bound::Real(value) => ffi::sqlite3_bind_double(raw, parameter, *value),
                Bound::Text(text) => self.bind_text(parameter, text),
                Bound::Written(text) => self.bind_text(parameter, text),
                Bound::Blob(bytes) => {
                    // A null pointer would be NULL, whatever its length.
                    let (at, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
                    ffi::sqlite3_bind_blob64(raw, parameter, at, length, ffi::SQLITE_TRANSIENT())
                }
            }
        };
        match code {
            ffi::SQLITE_OK => Ok(()),
            _ => Err(self.failure()),
        }
    }

    /// What the statement failed with as it ran, or as it was given its values.
    #[cold]
    fn failure(&self) -> Error {
        failure(&self.connection, self.parameters() > 0)
    }

    unsafe fn bind_text(&self, parameter: c_int, text: &str) -> c_int {
        let (at, length) = (text.as_ptr().cast(), text.len() as u64);
        let destroy = ffi::SQLITE_TRANSIENT();
        // SAFETY: as in `bind`.
        unsafe {
            ffi::sqlite3_bind_text64(
                self.raw,
                parameter,
                at,
                length,
                destroy,
                ffi::SQLITE_UTF8 as u8,
            )
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the connection is still open, and nobody uses the statement any more.
        unsafe { ffi::sqlite3_finalize(self.raw) };
    }
}

/// The first statement of a text, null where there is none, and what stands behind it.
fn prepare<'t>(
    connection: &Connection,
    text: &'t str,
) -> Result<(*mut ffi::sqlite3_stmt, &'t str), Error> {
    let (mut raw, mut tail) = (null_mut(), null());
    let length = c_int::try_from(text.len())
        .map_err(|_| Error::limit_exceeded("statement_bytes", "the statement is too long"))?;
    // SAFETY: the connection is open; the text has the length that is said, and `tail` points into it or to its end.
    let code = unsafe {
        let keep = ffi::SQLITE_PREPARE_PERSISTENT;
        let (handle, at) = (connection.handle(), text.as_ptr().cast());
        ffi::sqlite3_prepare_v3(handle, at, length, keep, &mut raw, &mut tail)
    };
    if code != ffi::SQLITE_OK {
        return Err(failure(connection, false));
    }
    let end = (tail as usize).saturating_sub(text.as_ptr() as usize);
    Ok((raw, text.get(end..).unwrap_or_default()))
}

/// What the connection last failed with; `is_bound`: in a statement that was given values.
#[cold]
fn failure(connection: &Connection, is_bound: bool) -> Error {
    // SAFETY: the connection is open, and its message is copied before anything else is asked of it.
    unsafe {
        let handle = connection.handle();
        let code = ffi::sqlite3_extended_errcode(handle);
        let text = CStr::from_ptr(ffi::sqlite3_errmsg(handle));
        errors::of_code(code, &text.to_string_lossy(), is_bound)
    }
}

/// A statement that runs. Dropping it ends that.
pub struct Rows<'s> {
    statement: &'s mut Prepared,
}

impl Rows<'_> {
    #[inline]
    pub fn next(&mut self) -> Result<Option<Row<'_>>, Error> {
        // SAFETY: the statement is alive, and whoever had the row before has given it back.
        match unsafe { ffi::sqlite3_step(self.statement.raw) } {
            ffi::SQLITE_ROW => Ok(Some(Row {
                statement: self.statement,
            })),
            ffi::SQLITE_DONE => Ok(None),
            _ => Err(self.statement.failure()),
        }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // SAFETY: the statement is alive. What the reset returns is the failure that `next` has told.
        unsafe {
            ffi::sqlite3_reset(self.statement.raw);
            ffi::sqlite3_clear_bindings(self.statement.raw);
        }
    }
}

pub struct Row<'r> {
    statement: &'r Prepared,
}

impl<'r> Row<'r> {
    /// NULL where there is no such column.
    #[inline]
    pub fn value(&self, column: usize) -> Value<'r> {
        // SAFETY: the statement stands on a row; SQLite answers a NULL of its own for a column that it has not.
        let raw = unsafe { ffi::sqlite3_column_value(self.statement.raw, column as c_int) };
        Value {
            raw,
            _row: std::marker::PhantomData,
        }
    }
}

/// A value of the row that a statement stands on.
#[derive(Clone, Copy)]
pub struct Value<'r> {
    raw: *mut ffi::sqlite3_value,
    _row: std::marker::PhantomData<&'r Prepared>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Null,
    Integer,
    Real,
    Text,
    Blob,
}

// Its kind is asked first, and then what that kind has: nothing is converted, so that what a text or a blob points to stays until the next row.
impl<'r> Value<'r> {
    #[inline]
    pub fn kind(self) -> Kind {
        // SAFETY: the row is still there.
        match unsafe { ffi::sqlite3_value_type(self.raw) } {
            ffi::SQLITE_INTEGER => Kind::Integer,
            ffi::SQLITE_TEXT => Kind::Text,
            ffi::SQLITE_FLOAT => Kind::Real,
            ffi::SQLITE_BLOB => Kind::Blob,
            _ => Kind::Null,
        }
    }

    #[inline]
    pub fn integer(self) -> i64 {
        // SAFETY: the row is still there.
        unsafe { ffi::sqlite3_value_int64(self.raw) }
    }

    #[inline]
    pub fn real(self) -> f64 {
        // SAFETY: the row is still there.
        unsafe { ffi::sqlite3_value_double(self.raw) }
    }

    /// What a text is written with, which need not be UTF-8. Of a file in UTF-16 it is written anew, for which there may be no memory.
    #[inline]
    pub fn text(self) -> Result<&'r [u8], Error> {
        // SAFETY: the row is still there; the length is asked after the text, as SQLite wants it.
        let text = unsafe {
            let at: *const u8 = ffi::sqlite3_value_text(self.raw).cast();
            bytes(at, ffi::sqlite3_value_bytes(self.raw))
        };
        text.ok_or_else(errors::out_of_memory)
    }

    #[inline]
    pub fn blob(self) -> &'r [u8] {
        // SAFETY: the row is still there; the length is asked after the blob, as SQLite wants it.
        let blob = unsafe {
            let at: *const u8 = ffi::sqlite3_value_blob(self.raw).cast();
            bytes(at, ffi::sqlite3_value_bytes(self.raw))
        };
        // An empty one is a null pointer.
        blob.unwrap_or_default()
    }

    pub fn get(self) -> Result<ValueRef<'r>, Error> {
        Ok(match self.kind() {
            Kind::Null => ValueRef::Null,
            Kind::Integer => ValueRef::Integer(self.integer()),
            Kind::Real => ValueRef::Real(self.real()),
            Kind::Text => ValueRef::Text(self.text()?),
            Kind::Blob => ValueRef::Blob(self.blob()),
        })
    }
}

/// # Safety
///
/// So many bytes are there for as long as `'r`, or the pointer is null.
#[inline]
unsafe fn bytes<'r>(at: *const u8, length: c_int) -> Option<&'r [u8]> {
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: the caller's.
    (!at.is_null()).then(|| unsafe { std::slice::from_raw_parts(at, length) })
}
