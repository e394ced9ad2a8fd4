//! Prepared statements over SQLite's C interface. A page is thousands of values, and rusqlite asks SQLite three times what one of
//! them is: of 1,000 rows that took longer than the statement did. Nor is SQLite asked at all where a value is stored as nothing but
//! what it is ([`Stored`]): between two languages even the shortest call is one, with a look at the stack and at the time.
#![allow(unsafe_code)]

use crate::{errors, quoted};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ffi};
use souk_sdk::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
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
        let rows = Rows {
            statement: self,
            columns: 0,
        };
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
    quoted::forget();
    // SAFETY: the connection is open; the text has the length that is said, and `tail` points into it or to its end.
    let code = unsafe {
        let keep = ffi::SQLITE_PREPARE_PERSISTENT;
        let (handle, at) = (connection.handle(), text.as_ptr().cast());
        ffi::sqlite3_prepare_v3(handle, at, length, keep, &mut raw, &mut tail)
    };
    if code != ffi::SQLITE_OK {
        return Err(failure(connection, false));
    }
    if let Err(error) = quoted::check(text) {
        // SAFETY: it was just prepared, and nobody else knows it.
        unsafe { ffi::sqlite3_finalize(raw) };
        return Err(error);
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
    /// How many there are; 0 before the first row. A statement is only planned anew before that.
    columns: usize,
}

impl Rows<'_> {
    #[inline]
    pub fn next(&mut self) -> Result<Option<Row<'_>>, Error> {
        let raw = self.statement.raw;
        // SAFETY: the statement is alive, and whoever had the row before has given it back.
        match unsafe { ffi::sqlite3_step(raw) } {
            ffi::SQLITE_ROW => {
                // SAFETY: the statement is alive, and stands on a row.
                let first = unsafe {
                    if self.columns == 0 {
                        self.columns = usize::try_from(ffi::sqlite3_column_count(raw)).unwrap_or(0);
                    }
                    ffi::sqlite3_column_value(raw, 0)
                };
                Ok(Some(Row {
                    first: first.cast(),
                    columns: self.columns,
                    _statement: PhantomData,
                }))
            }
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
    /// Its values lie one behind the other.
    first: *mut Stored,
    columns: usize,
    _statement: PhantomData<&'r Prepared>,
}

impl<'r> Row<'r> {
    /// The value of each column.
    #[inline]
    pub fn values(self) -> impl Iterator<Item = Value<'r>> {
        let first = self.first;
        (0..self.columns).map(move |column| Value {
            // SAFETY: there are so many columns (SQLite's `columnMem` does the same).
            stored: unsafe { first.add(column) },
            _row: PhantomData,
        })
    }
}

/// How SQLite stores a value: `struct sqlite3_value` of its `vdbeInt.h`, to the last member, as the next value is behind it.
#[repr(C)]
struct Stored {
    /// An integer, or the bits of a real.
    number: i64,
    text: *const u8,
    length: c_int,
    flags: u16,
    encoding: u8,
    _subtype: u8,
    _connection: *mut c_void,
    _room: c_int,
    _temporary: u32,
    _allocated: *mut c_void,
    _destroy: *mut c_void,
}

/// No release promises to store values as the one before: look at `struct sqlite3_value` and at the flags of it before you raise this. Then have SQLite
/// counted anew (`../c/count`).
const _: () = assert!(ffi::SQLITE_VERSION_NUMBER == 3_051_003);

/// What says what a value is (`MEM_AffMask`), and whether zeros that are not stored belong to it (`MEM_Zero`). A value may be several at once.
const IS: u16 = 0x003f | 0x0400;
const IS_NULL: u16 = 0x0001;
const IS_TEXT: u16 = 0x0002;
const IS_INTEGER: u16 = 0x0004;
const IS_REAL: u16 = 0x0008;

/// A value of the row that a statement stands on.
#[derive(Clone, Copy)]
pub struct Value<'r> {
    stored: *mut Stored,
    _row: PhantomData<&'r Prepared>,
}

enum Kind {
    Null,
    Integer,
    Real,
    Text,
    Blob,
}

// Look at what is stored. `None`: it may be that all the same, or something else; `get` knows.
impl<'r> Value<'r> {
    #[inline]
    pub fn integer(self) -> Option<i64> {
        let stored = self.stored();
        (stored.flags & IS == IS_INTEGER).then_some(stored.number)
    }

    #[inline]
    pub fn real(self) -> Option<f64> {
        let stored = self.stored();
        (stored.flags & IS == IS_REAL).then_some(f64::from_bits(stored.number as u64))
    }

    /// What a text is written with, which need not be UTF-8.
    #[inline]
    pub fn text(self) -> Option<&'r [u8]> {
        let stored = self.stored();
        let is_plain =
            stored.flags & IS == IS_TEXT && c_int::from(stored.encoding) == ffi::SQLITE_UTF8;
        if !is_plain {
            return None;
        }
        // SAFETY: the row is still there, and of a text so many bytes are stored.
        unsafe { bytes(stored.text, stored.length) }
    }

    #[inline]
    fn stored(self) -> &'r Stored {
        // SAFETY: the row is still there, and SQLite changes it in calls only, of which this reference sees none.
        unsafe { &*self.stored }
    }
}

// SQLite is asked for its kind first, and then what that kind has: nothing is converted, so that what a text or a blob points to stays until the
// next row.
impl<'r> Value<'r> {
    pub fn get(self) -> Result<ValueRef<'r>, Error> {
        if self.stored().flags & IS == IS_NULL {
            return Ok(ValueRef::Null);
        }
        Ok(match self.kind() {
            Kind::Null => ValueRef::Null,
            Kind::Integer => ValueRef::Integer(self.ask_integer()),
            Kind::Real => ValueRef::Real(self.ask_real()),
            Kind::Text => ValueRef::Text(self.ask_text()?),
            Kind::Blob => ValueRef::Blob(self.ask_blob()),
        })
    }

    fn kind(self) -> Kind {
        // SAFETY: the row is still there.
        match unsafe { ffi::sqlite3_value_type(self.raw()) } {
            ffi::SQLITE_INTEGER => Kind::Integer,
            ffi::SQLITE_TEXT => Kind::Text,
            ffi::SQLITE_FLOAT => Kind::Real,
            ffi::SQLITE_BLOB => Kind::Blob,
            _ => Kind::Null,
        }
    }

    fn ask_integer(self) -> i64 {
        // SAFETY: the row is still there.
        unsafe { ffi::sqlite3_value_int64(self.raw()) }
    }

    fn ask_real(self) -> f64 {
        // SAFETY: the row is still there.
        unsafe { ffi::sqlite3_value_double(self.raw()) }
    }

    /// Of a file in UTF-16 it is written anew, for which there may be no memory.
    fn ask_text(self) -> Result<&'r [u8], Error> {
        // SAFETY: the row is still there; the length is asked after the text, as SQLite wants it.
        let text = unsafe {
            let at: *const u8 = ffi::sqlite3_value_text(self.raw()).cast();
            bytes(at, ffi::sqlite3_value_bytes(self.raw()))
        };
        text.ok_or_else(errors::out_of_memory)
    }

    fn ask_blob(self) -> &'r [u8] {
        // SAFETY: the row is still there; the length is asked after the blob, as SQLite wants it.
        let blob = unsafe {
            let at: *const u8 = ffi::sqlite3_value_blob(self.raw()).cast();
            bytes(at, ffi::sqlite3_value_bytes(self.raw()))
        };
        // An empty one is a null pointer.
        blob.unwrap_or_default()
    }

    fn raw(self) -> *mut ffi::sqlite3_value {
        self.stored.cast()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Clang says nothing of counts of another SQLite, and compiles what has changed as if it had never been counted.
    #[test]
    fn the_counts_are_of_this_sqlite() {
        let counts = format!("c/sqlite-{}.profdata", rusqlite::version());
        let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(
            package.join(&counts).is_file(),
            "there is no {counts}: run c/count"
        );
        let manifest = std::fs::read_to_string(package.join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains(&format!("{{dir}}/{counts}'")),
            "Cargo.toml names others than {counts}"
        );
    }

    /// What is looked at where it is stored is what SQLite says, of every column and row; what is stored otherwise is left to SQLite.
    #[test]
    fn values_are_read_where_they_are_stored() {
        let connection = Rc::new(Connection::open_in_memory().unwrap());
        let text = "
            WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
            SELECT i * -1000000007000, i / 4.0, NULL, 'text ' || i, X'00ff', i % 2, '', 'after' FROM n";
        let mut statement = Prepared::new(&connection, text).unwrap();
        let mut rows = statement.run(&[]).unwrap();
        for i in 0..=20i64 {
            let row = rows.next().unwrap().unwrap();
            let values: Vec<Value<'_>> = row.values().collect();
            assert_eq!(values.len(), 8);
            for value in &values {
                match value.get().unwrap() {
                    ValueRef::Integer(integer) => assert_eq!(value.integer(), Some(integer)),
                    ValueRef::Real(real) => assert_eq!(value.real(), Some(real)),
                    ValueRef::Text(text) => assert_eq!(value.text(), Some(text)),
                    ValueRef::Null | ValueRef::Blob(_) => assert_eq!(
                        (value.integer(), value.real(), value.text()),
                        (None, None, None)
                    ),
                }
            }
            assert_eq!(values[0].integer(), Some(i * -1_000_000_007_000));
            assert_eq!(values[1].real(), Some(i as f64 / 4.0));
            assert_eq!(values[3].text(), Some(format!("text {i}").as_bytes()));
            assert_eq!(values[6].text(), Some(&b""[..]));
            assert_eq!(values[7].text(), Some(&b"after"[..]));
        }
        assert!(rows.next().unwrap().is_none());
    }

    /// A text in UTF-16 is none that could be read where it is, and is the same text when SQLite is asked.
    #[test]
    fn other_encodings_are_asked_for() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (x); INSERT INTO t VALUES ('\u{e9}t\u{e9}')")
            .unwrap();
        let mut statement = Prepared::new(&Rc::new(connection), "SELECT x FROM t").unwrap();
        let mut rows = statement.run(&[]).unwrap();
        let row = rows.next().unwrap().unwrap();
        let value = row.values().next().unwrap();
        assert_eq!(value.text(), None);
        assert_eq!(
            value.get().unwrap(),
            ValueRef::Text("\u{e9}t\u{e9}".as_bytes())
        );
    }
}
