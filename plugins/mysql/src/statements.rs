//! The session's prepared statements: a bounded cache, least recently used out first.
//!
//! A statement's place is the number of its shape: a session does one thing at a time, so the number is free as soon as the statement goes.

use crate::catalog::FLAGS;
use crate::parameters::types;
use crate::protocol::{Reader, malformed};
use crate::types::Definition;
use crate::values::Reading;
use souk_sdk::{Error, KnownColumns, Value, short};
use std::rc::Rc;

/// Statements kept prepared by one session: the filters, orders and pages of one endpoint alone make many texts of its statement, and one more than these,
/// asked in turn, has each of them prepared anew. A server keeps 16,382 for all of its sessions, unless it is told otherwise: eight sessions of a data
/// connection have a sixteenth of them. Where it keeps no more, a session gives its own up.
const STATEMENTS_MAX: usize = 128;
/// Definitions of 4,096 columns with names of 64 characters are less.
const DEFINITIONS_BYTES_MAX: usize = 4 << 20;
/// What the definitions that are known to a session have together, beside those of the last result.
const REMEMBERED_BYTES_MAX: usize = 4 << 20;

/// A prepared statement.
pub struct Statement {
    pub text: Box<str>,
    /// Those of its values, where they are told apart.
    types: Box<[u8]>,
    /// Its number at the server.
    pub id: u32,
    pub parameters: usize,
    /// It may take locks that no end of a transaction gives up.
    pub locks: bool,
    /// How many bytes its last request had. A buffer of as many is handed to the host as it is: another one is cut to its length first.
    pub room: usize,
    /// What its last result looked like. Of `SELECT ?` that depends on the value.
    pub shape: Option<Rc<Shape>>,
    used: u64,
}

/// What a result looks like.
pub struct Shape {
    pub number: u32,
    /// The definitions as the server sent them, each with its length in four bytes before it.
    raw: Vec<u8>,
    pub readings: Vec<Reading>,
    pub columns: KnownColumns,
}

/// Definitions that arrive, held against those that are known.
pub struct Arriving {
    known: Option<Rc<Shape>>,
    /// How much of the known ones has come again.
    same: usize,
    /// All that came, once something was different.
    fresh: Option<Vec<u8>>,
}

impl Arriving {
    pub fn new(known: Option<Rc<Shape>>) -> Arriving {
        let fresh = known.is_none().then(Vec::new);
        Arriving {
            known,
            same: 0,
            fresh,
        }
    }

    pub fn definition(&mut self, body: &[u8]) -> Result<(), Error> {
        let length = (body.len() as u32).to_le_bytes();
        if self.fresh.is_none()
            && let Some(known) = &self.known
        {
            let rest = known.raw[self.same..].strip_prefix(&length);
            if rest.is_some_and(|rest| short::begins_with(rest, body)) {
                self.same += length.len() + body.len();
                return Ok(());
            }
            self.fresh = Some(known.raw[..self.same].to_vec());
        }
        let fresh = self.fresh.get_or_insert_default();
        if fresh.len() + body.len() > DEFINITIONS_BYTES_MAX {
            return Err(malformed().detail("the columns are described at length"));
        }
        fresh.extend_from_slice(&length);
        fresh.extend_from_slice(body);
        Ok(())
    }

    /// All have come.
    pub fn shape(self, number: u32, is_catalog: bool) -> Result<Rc<Shape>, Error> {
        match (self.fresh, self.known) {
            (None, Some(known)) if self.same == known.raw.len() => Ok(known),
            (None, Some(known)) => Shape::new(number, known.raw[..self.same].to_vec(), is_catalog),
            (fresh, _) => Shape::new(number, fresh.unwrap_or_default(), is_catalog),
        }
    }
}

impl Shape {
    fn new(number: u32, raw: Vec<u8>, is_catalog: bool) -> Result<Rc<Shape>, Error> {
        let mut reader = Reader(&raw);
        let (mut readings, mut columns) = (Vec::new(), Vec::new());
        let schema = souk_sdk::Rows::schema_columns();
        while !reader.0.is_empty() {
            let length = reader.u32()?;
            let definition = Definition::read(reader.take(length as usize)?)?;
            let reading = definition.reading()?;
            let place = readings.len();
            let (reading, column) = match schema.get(place).filter(|_| is_catalog) {
                Some(column) => {
                    let reading = match FLAGS.contains(&place) {
                        true => reading.as_flag(),
                        false => reading,
                    };
                    if reading != Reading::Null && reading.column_type() != column.kind {
                        return Err(malformed().detail("the catalog has other columns"));
                    }
                    (reading, column.clone())
                }
                None if is_catalog => {
                    return Err(malformed().detail("the catalog has more columns"));
                }
                None => {
                    let name = String::from_utf8_lossy(definition.name);
                    let kind = reading.column_type();
                    let column = souk_sdk::column(name, kind, definition.native());
                    (reading, column)
                }
            };
            readings.push(reading);
            columns.push(column);
        }
        if is_catalog && readings.len() != schema.len() {
            return Err(malformed().detail("the catalog has fewer columns"));
        }
        Ok(Rc::new(Shape {
            number,
            raw,
            readings,
            columns: KnownColumns::new(columns),
        }))
    }
}

#[derive(Default)]
pub struct Statements {
    slots: Vec<Option<Statement>>,
    clock: u64,
    /// A text is prepared for each choice of its values' types: MySQL from 8.0.22 on takes what comes later as what it took the first values for. A
    /// decimal lost its last digits where a float had come before, and a text was 0 behind a number.
    tells_types_apart: bool,
}

impl Statements {
    pub fn tell_types_apart(&mut self) {
        self.tells_types_apart = true;
    }

    /// The place of a text with such values. Lengths differ before bytes do, so this is cheaper than a hash.
    #[inline]
    pub fn find(&mut self, text: &str, values: &[Value]) -> Option<usize> {
        self.clock += 1;
        let tells_types_apart = self.tells_types_apart;
        let is_it = |slot: &Statement| {
            short::is_same(slot.text.as_bytes(), text.as_bytes())
                && (!tells_types_apart || types(values).eq(slot.types.iter().copied()))
        };
        let held = |slot: &Option<Statement>| slot.as_ref().is_some_and(is_it);
        let place = self.slots.iter().position(held)?;
        if let Some(statement) = &mut self.slots[place] {
            statement.used = self.clock;
        }
        Some(place)
    }

    #[inline]
    pub fn at(&mut self, place: usize) -> Option<&mut Statement> {
        self.slots.get_mut(place)?.as_mut()
    }

    /// Keeps a statement. Answers its place and the number of the one that had to go.
    pub fn keep(
        &mut self,
        text: Box<str>,
        values: &[Value],
        id: u32,
        parameters: usize,
    ) -> (usize, Option<u32>) {
        let types = match self.tells_types_apart {
            true => types(values).collect(),
            false => Box::default(),
        };
        let place = match self.slots.iter().position(Option::is_none) {
            Some(free) => free,
            None if self.slots.len() < STATEMENTS_MAX => {
                self.slots.push(None);
                self.slots.len() - 1
            }
            None => {
                let used = |place: &usize| self.slots[*place].as_ref().map(|slot| slot.used);
                (0..self.slots.len()).min_by_key(used).unwrap_or(0)
            }
        };
        let evicted = self.slots[place].replace(Statement {
            locks: locks(&text),
            text,
            types,
            id,
            parameters,
            room: 0,
            shape: None,
            used: self.clock,
        });
        (place, evicted.map(|statement| statement.id))
    }

    /// What a statement's last result looked like. With much of it, the others' is told again by the next of theirs.
    pub fn remember(&mut self, place: usize, shape: &Rc<Shape>) {
        let Some(statement) = self.at(place) else {
            return;
        };
        let is_known = |known: &Rc<Shape>| Rc::ptr_eq(known, shape);
        if statement.shape.as_ref().is_some_and(is_known) {
            return;
        }
        statement.shape = None;
        let known = self.slots.iter().flatten();
        let bytes = known.filter_map(|statement| Some(statement.shape.as_ref()?.raw.len()));
        if bytes.sum::<usize>() + shape.raw.len() > REMEMBERED_BYTES_MAX {
            for statement in self.slots.iter_mut().flatten() {
                statement.shape = None;
            }
        }
        if let Some(statement) = self.at(place) {
            statement.shape = Some(shape.clone());
        }
    }

    /// Forgets a statement; it has to be closed at the server.
    pub fn forget(&mut self, place: usize) -> Option<u32> {
        Some(self.slots.get_mut(place)?.take()?.id)
    }

    /// Forgets all of them.
    pub fn forget_all(&mut self) -> Vec<u32> {
        let slots = std::mem::take(&mut self.slots);
        slots.into_iter().flatten().map(|slot| slot.id).collect()
    }
}

/// Whether the text begins like a statement that only reads. It is the server that holds read-only; this keeps away what is no query.
pub fn reads(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let line = || {
            let end = rest.iter().position(|byte| *byte == b'\n');
            end.unwrap_or(rest.len())
        };
        at += match rest {
            [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | b'(', ..] => 1,
            [b'#', ..] => line(),
            [b'-', b'-', b' ' | b'\t' | b'\n' | b'\r', ..] => line(),
            // Not a comment: the server runs what is in it.
            [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => return false,
            [b'/', b'*', inside @ ..] => {
                let end = inside.windows(2).position(|pair| pair == b"*/");
                end.map_or(rest.len(), |end| end + 4)
            }
            _ => break,
        };
    }
    let word = &bytes[at..];
    let end = word.iter().position(|byte| !byte.is_ascii_alphabetic());
    let word = &word[..end.unwrap_or(word.len())];
    ["select", "with", "values", "table"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether the text names the function that takes a lock for the session. One that is called by a function of the seller's own is not seen.
fn locks(text: &str) -> bool {
    text.to_ascii_lowercase().contains("get_lock")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;
    use crate::types::id;

    #[test]
    fn only_reading_statements_pass() {
        for text in [
            "SELECT 1",
            " (\n(select 1))",
            "-- x\nWITH a AS (SELECT 1) TABLE a",
            "# x\n/* a /* b */values(1)",
        ] {
            assert!(reads(text), "{text}");
        }
        for text in [
            "",
            "CALL p()",
            "COMMIT",
            "SET @x = 1",
            "/* open SELECT 1",
            "/*! SELECT 1 */ DELETE FROM t",
            "/*M! DELETE */ SELECT 1",
            "selectx",
            "-- SELECT 1",
            "--SELECT 1",
            "\u{a0}SELECT 1",
        ] {
            assert!(!reads(text), "{text}");
        }
    }

    #[test]
    fn locks_of_a_session_are_seen() {
        assert!(locks("SELECT Get_Lock('x', 1)"));
        assert!(!locks("SELECT IS_FREE_LOCK('x')"));
    }

    /// A column of this name, as a server describes it.
    fn definition(name: &str, kind: u8) -> Vec<u8> {
        let mut body = Vec::new();
        for text in ["def", "shop", "t", "t", name, name] {
            protocol::sized(&mut body, text.as_bytes());
        }
        let mut rest = protocol::BINARY.to_le_bytes().to_vec();
        rest.extend_from_slice(&[8, 0, 0, 0, kind, 0, 0, 0, 0, 0]);
        protocol::sized(&mut body, &rest);
        body
    }

    fn arrived(known: Option<Rc<Shape>>, definitions: &[Vec<u8>]) -> Rc<Shape> {
        let mut arriving = Arriving::new(known);
        for body in definitions {
            arriving.definition(body).unwrap();
        }
        arriving.shape(0, false).unwrap()
    }

    /// Columns are those of last time only if each byte of what describes them is.
    #[test]
    fn a_change_of_columns_is_seen() {
        let two = [definition("id", id::LONGLONG), definition("n", id::LONG)];
        let known = arrived(None, &two);
        assert!(Rc::ptr_eq(&arrived(Some(known.clone()), &two), &known));
        let names = |shape: &Shape| -> Vec<String> {
            let columns = shape.columns.columns().iter();
            columns.map(|column| column.name.clone()).collect()
        };
        assert_eq!(names(&known), ["id", "n"]);
        let other = |definitions: &[Vec<u8>]| arrived(Some(known.clone()), definitions);
        let renamed = other(&[two[0].clone(), definition("m", id::LONG)]);
        assert_eq!(names(&renamed), ["id", "m"]);
        let wider = other(&[two[0].clone(), definition("n", id::LONGLONG)]);
        assert_eq!(wider.readings, [Reading::I64, Reading::I64]);
        assert_eq!(names(&other(&two[..1])), ["id"]);
        let more = other(&[two[0].clone(), two[1].clone(), two[0].clone()]);
        assert_eq!(names(&more), ["id", "n", "id"]);
    }

    /// What a server says of its columns is not kept for all statements, however much that is.
    #[test]
    fn long_columns_are_not_all_known() {
        let mut statements = Statements::default();
        let long = [definition(&"x".repeat(1 << 20), id::LONG)];
        let bytes = |statements: &Statements| -> usize {
            let shapes = statements.slots.iter().flatten();
            let shapes = shapes.filter_map(|statement| statement.shape.as_ref());
            shapes.map(|shape| shape.raw.len()).sum()
        };
        for i in 0..10 {
            let (place, _) = statements.keep(format!("SELECT {i}").into(), &[], i, 0);
            let shape = arrived(None, &long);
            statements.remember(place, &shape);
            statements.remember(place, &shape);
            let last = statements.at(place).unwrap().shape.clone();
            assert!(Rc::ptr_eq(&last.unwrap(), &shape));
            assert!(bytes(&statements) <= REMEMBERED_BYTES_MAX, "{i}");
        }
        assert!(bytes(&statements) > 0);
    }

    /// The cache keeps so many statements and lets the one go that was used longest ago.
    #[test]
    fn the_oldest_statement_goes() {
        let mut statements = Statements::default();
        for i in 0..STATEMENTS_MAX {
            let text = format!("SELECT {i}");
            assert!(statements.find(&text, &[]).is_none());
            assert_eq!(statements.keep(text.into(), &[], i as u32, 0), (i, None));
        }
        assert_eq!(statements.find("SELECT 0", &[]), Some(0));
        assert!(statements.find("SELECT x", &[]).is_none());
        assert_eq!(
            statements.keep("SELECT x".into(), &[], 999, 0),
            (1, Some(1))
        );
        assert!(statements.find("SELECT 1", &[]).is_none());
        assert_eq!(statements.forget(1), Some(999));
        assert_eq!(statements.forget_all().len(), STATEMENTS_MAX - 1);
    }

    /// Where types are told apart, a text with a float is another statement than the same text with a whole number.
    #[test]
    fn types_are_told_apart_where_they_count() {
        let (whole, float) = ([Value::Int64(1)], [Value::Float64(0.5)]);
        let mut statements = Statements::default();
        statements.keep("SELECT ?".into(), &whole, 1, 1);
        assert_eq!(statements.find("SELECT ?", &float), Some(0));
        let mut statements = Statements::default();
        statements.tell_types_apart();
        statements.keep("SELECT ?".into(), &whole, 1, 1);
        assert_eq!(statements.find("SELECT ?", &[Value::Int64(2)]), Some(0));
        assert_eq!(statements.find("SELECT ?", &float), None);
        assert_eq!(statements.keep("SELECT ?".into(), &float, 2, 1), (1, None));
        assert_eq!(statements.find("SELECT ?", &float), Some(1));
        assert_eq!(statements.find("SELECT ?", &whole), Some(0));
    }
}
