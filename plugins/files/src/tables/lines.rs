//! One JSON object a line.

use super::text::{self, Opened, RECORD_BYTES_MAX};
use crate::errors;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use souk_sdk::Error;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const AHEAD_BYTES: usize = 64 * 1024;

/// The lines of a text, without those that are blank.
pub struct Lines {
    bytes: BufReader<Opened>,
    begun: Arc<AtomicU64>,
    at: u64,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    pub fn new(opened: Opened) -> Lines {
        Lines {
            begun: opened.begun(),
            bytes: BufReader::with_capacity(AHEAD_BYTES, opened),
            at: 0,
            line: Vec::new(),
            number: 0,
        }
    }

    /// The next line with something in it and its number, or the end.
    pub fn read(&mut self) -> Result<Option<(u64, &str)>, Error> {
        loop {
            self.line.clear();
            self.number += 1;
            let mut line = (&mut self.bytes).take(RECORD_BYTES_MAX + 1);
            let count = line
                .read_until(b'\n', &mut self.line)
                .map_err(errors::unreadable)? as u64;
            if count > RECORD_BYTES_MAX {
                return Err(text::record_too_long());
            }
            if count == 0 {
                return Ok(None);
            }
            self.at += count;
            self.begun.store(self.at, Ordering::Relaxed);
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                break;
            }
        }
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some((self.number, line))),
            Err(_) => Err(text::not_utf8(self.number)),
        }
    }
}

/// Hands each member of a line's object to `each`, as it is written.
pub fn members<'a>(
    line: &'a str,
    number: u64,
    each: impl FnMut(&str, &'a RawValue) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut told = None;
    let mut deserializer = serde_json::Deserializer::from_str(line);
    let members = Members {
        each,
        told: &mut told,
    };
    let read = deserializer
        .deserialize_map(members)
        .and_then(|()| deserializer.end());
    match (told, read) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => Err(errors::broken(
            "no_json_object",
            format!("line {number} of the file is not one JSON object: write one a line"),
        )
        .detail(error.to_string())),
    }
}

struct Members<'t, F> {
    each: F,
    told: &'t mut Option<Error>,
}

impl<'a, F: FnMut(&str, &'a RawValue) -> Result<(), Error>> Visitor<'a> for Members<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let value: &'a RawValue = map.next_value()?;
            if let Err(error) = (self.each)(&name, value) {
                *self.told = Some(error);
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}
