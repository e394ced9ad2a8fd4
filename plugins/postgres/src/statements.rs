//! The session's prepared statements: a bounded cache, least recently used out first.
//!
//! A slot's place is the number of its shape. Results come in the order in which statements were sent, so a
//! place can be used again as soon as its statement is closed: the next shape of that number is described anew.

use crate::protocol;
use crate::types::Reading;
use crate::typing::{Told, Typing};
use souk_sdk::{KnownColumns, Limits, Value, short};
use std::cell::Cell;
use std::rc::Rc;

/// Statements kept prepared at the server by one session.
const STATEMENTS_MAX: usize = 256;

/// A request is sent again this often because somebody else's error had left a transaction.
pub const TURNED_AWAY_MAX: u8 = 8;
/// So many runs of a statement that has failed in a group are in none: what stands behind it there is asked a second time.
const ALONE_AFTER_ERROR: u16 = 1_000;

/// One request for rows, whatever comes of it.
pub struct Ask {
    pub id: u32,
    pub parameters: Vec<Value>,
    pub limits: Limits,
    /// Sent a second time already.
    pub retried: bool,
    /// How often it was turned away by a transaction that somebody else's error had left.
    pub turned_away: u8,
    /// It is in no group again.
    pub alone: bool,
    pub typing: Told,
}

impl Ask {
    pub fn new(id: u32, parameters: Vec<Value>, limits: Limits) -> Ask {
        Ask {
            id,
            parameters,
            limits,
            retried: false,
            turned_away: 0,
            alone: false,
            typing: None,
        }
    }

    /// Whether it may be sent again because a transaction before it had failed; counts that.
    pub fn is_turned_away(&mut self) -> bool {
        self.turned_away += 1;
        self.turned_away <= TURNED_AWAY_MAX
    }

    /// The types to prepare with.
    pub fn types(&self) -> &[u32] {
        self.typing.as_deref().map_or(&[], Typing::types)
    }
}

/// What the server said about a statement.
pub struct Description {
    pub parameters: Vec<u32>,
    pub columns: Vec<Described>,
}

pub struct Described {
    pub name: String,
    pub native: String,
    pub type_oid: u32,
    /// Asked for in binary and read so; None is text.
    pub reading: Option<Reading>,
}

/// A prepared statement.
pub struct Statement {
    pub text: Rc<str>,
    pub name: String,
    pub parameters: Vec<u32>,
    pub readings: Vec<Reading>,
    pub shape: u32,
    /// It may take locks that no end of a transaction gives up.
    pub locks: bool,
    /// The beginning of its `Bind`: portal and name.
    pub head: Vec<u8>,
    /// The end of its `Bind`: the result formats.
    pub tail: Vec<u8>,
    /// How many bytes its last request had. A buffer of as many is handed to the host as it is: another one is cut to its length first.
    pub room: Cell<usize>,
    /// It has been bound since it was prepared.
    pub was_bound: Cell<bool>,
    /// Runs that are in no group.
    alone: Cell<u16>,
    column_oids: Vec<u32>,
    typing: Told,
    pub columns: KnownColumns,
}

impl Statement {
    fn new(
        text: Rc<str>,
        name: String,
        shape: u32,
        description: Description,
        typing: Told,
    ) -> Statement {
        let readings: Vec<Reading> = description
            .columns
            .iter()
            .map(|c| c.reading.unwrap_or(Reading::Text))
            .collect();
        let formats = description
            .columns
            .iter()
            .map(|c| u16::from(c.reading.is_some_and(Reading::is_binary)));
        let mut tail = (readings.len() as u16).to_be_bytes().to_vec();
        tail.extend(formats.flat_map(u16::to_be_bytes));
        let mut head = vec![0];
        protocol::text(&mut head, &name);
        let column_oids = description.columns.iter().map(|c| c.type_oid).collect();
        let columns = description.columns.into_iter().zip(&readings);
        Statement {
            locks: locks(&text),
            text,
            name,
            parameters: description.parameters,
            shape,
            head,
            tail,
            room: Cell::new(0),
            was_bound: Cell::new(false),
            alone: Cell::new(0),
            column_oids,
            typing,
            columns: KnownColumns::new(
                columns
                    .map(|(c, reading)| souk_sdk::column(c.name, reading.column_type(), c.native))
                    .collect(),
            ),
            readings,
        }
    }

    /// Whether its next run may share a transaction with others. Counts that run.
    #[inline]
    pub fn joins(&self) -> bool {
        let alone = self.alone.get();
        self.alone.set(alone.saturating_sub(1));
        alone == 0 && !self.locks
    }

    /// It has failed, or had more than was asked for.
    pub fn stays_alone(&self) {
        self.alone.set(ALONE_AFTER_ERROR);
    }

    /// The types that it was prepared with.
    pub fn types(&self) -> &[u32] {
        self.typing.as_deref().map_or(&[], Typing::types)
    }

    /// Whether the server still says the same of its columns.
    pub fn has_columns(&self, described: &[Described]) -> bool {
        let known = self.columns.columns().iter().zip(&self.column_oids);
        described.len() == self.column_oids.len()
            && known.zip(described).all(|((column, oid), now)| {
                // The names of the database's own types are not looked up again.
                let is_named = now.native.is_empty() || now.native == column.native;
                now.name == column.name && now.type_oid == *oid && is_named
            })
    }

    /// What it is to be prepared with for these values, if not as it is.
    #[inline]
    pub fn better_typing(&self, values: &[Value]) -> Told {
        Typing::better(&self.typing, &self.parameters, values)
    }
}

pub enum State {
    /// The server has been asked; these wait for it.
    Preparing(Vec<Ask>),
    Ready(Rc<Statement>),
}

pub struct Slot {
    text: Rc<str>,
    typing: Told,
    /// Unique in the session; names the statement at the server.
    number: u64,
    used: u64,
    pub state: State,
}

#[derive(Default)]
pub struct Statements {
    slots: Vec<Option<Slot>>,
    clock: u64,
    numbered: u64,
    /// The server keeps none of them: they are parsed each time.
    pub are_unnamed: bool,
}

pub fn name(number: u64) -> String {
    format!("s{number}")
}

impl Statements {
    /// The slot of a text. Lengths differ before bytes do, so this is cheaper than a hash up to hundreds.
    #[inline]
    pub fn find(&mut self, text: &str) -> Option<&mut State> {
        self.clock += 1;
        let slot = self
            .slots
            .iter_mut()
            .flatten()
            .find(|slot| short::is_same(slot.text.as_bytes(), text.as_bytes()))?;
        slot.used = self.clock;
        Some(&mut slot.state)
    }

    /// Makes room for a new text. Answers its number and the name of the statement that went.
    pub fn reserve(&mut self, text: Rc<str>, ask: Ask) -> (u64, Option<String>) {
        let (place, evicted) = self.place();
        self.numbered += 1;
        let number = self.numbered;
        self.slots[place] = Some(Slot {
            text,
            typing: ask.typing.clone(),
            number,
            used: self.clock,
            state: State::Preparing(vec![ask]),
        });
        (number, evicted)
    }

    fn place(&mut self) -> (usize, Option<String>) {
        if let Some(free) = self.slots.iter().position(Option::is_none) {
            return (free, None);
        }
        let ready = self
            .slots
            .iter()
            .enumerate()
            .filter_map(|(place, slot)| match slot {
                Some(Slot {
                    used,
                    state: State::Ready(statement),
                    ..
                }) => Some((*used, place, &statement.name)),
                _ => None,
            });
        match ready.min_by_key(|(used, ..)| *used) {
            Some((_, place, name)) if self.slots.len() >= STATEMENTS_MAX => {
                (place, Some(name.clone()))
            }
            // Requests in flight are bounded by the host, hence also slots that are all being prepared.
            _ => {
                self.slots.push(None);
                (self.slots.len() - 1, None)
            }
        }
    }

    /// The statement of that number stands. Answers who waited for it.
    pub fn prepared(
        &mut self,
        number: u64,
        description: Description,
    ) -> Option<(Rc<Statement>, Vec<Ask>)> {
        let place = self.place_of(number)?;
        let slot = self.slots[place].as_mut()?;
        let statement = Rc::new(Statement::new(
            slot.text.clone(),
            match self.are_unnamed {
                true => String::new(),
                false => name(number),
            },
            place as u32,
            description,
            slot.typing.clone(),
        ));
        match std::mem::replace(&mut slot.state, State::Ready(statement.clone())) {
            State::Preparing(asks) => Some((statement, asks)),
            State::Ready(_) => None,
        }
    }

    /// The statement of that number could not be prepared. Gives back its text and who waited for it.
    pub fn take_back(&mut self, number: u64) -> Option<(Rc<str>, Vec<Ask>)> {
        let slot = self
            .place_of(number)
            .and_then(|place| self.slots[place].take())?;
        match slot.state {
            State::Preparing(asks) => Some((slot.text, asks)),
            State::Ready(_) => None,
        }
    }

    /// Whether those who wait for the statement of that number may ask again because a transaction before it had failed; counts that.
    pub fn are_turned_away(&mut self, number: u64) -> bool {
        let slot = self
            .place_of(number)
            .and_then(|place| self.slots[place].as_mut());
        match slot.map(|slot| &mut slot.state) {
            Some(State::Preparing(asks)) => asks.iter_mut().all(Ask::is_turned_away),
            _ => false,
        }
    }

    /// Forgets a statement. False if it was replaced already.
    pub fn forget(&mut self, statement: &Rc<Statement>) -> bool {
        let held = |slot: &Option<Slot>| matches!(slot, Some(Slot { state: State::Ready(held), .. }) if Rc::ptr_eq(held, statement));
        match self.slots.iter().position(held) {
            Some(place) => self.slots[place].take().is_some(),
            None => false,
        }
    }

    /// Takes back a request that still waits for its statement.
    pub fn withdraw(&mut self, id: u32) -> bool {
        self.slots
            .iter_mut()
            .flatten()
            .any(|slot| match &mut slot.state {
                State::Preparing(asks) => {
                    let before = asks.len();
                    asks.retain(|ask| ask.id != id);
                    asks.len() < before
                }
                State::Ready(_) => false,
            })
    }

    fn place_of(&self, number: u64) -> Option<usize> {
        self.slots
            .iter()
            .position(|slot| slot.as_ref().is_some_and(|slot| slot.number == number))
    }
}

/// Whether the text begins like a statement that only reads. It is the server that holds read-only; this keeps
/// away what could end the transaction in which it does (`CALL`, `DO`, `COMMIT`) or change the protocol (`COPY`).
pub fn reads(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        at += match rest {
            [b' ' | b'\t' | b'\n' | b'\r' | 0x0c | 0x0b | b'(', ..] => 1,
            [b'-', b'-', ..] => rest
                .iter()
                .position(|&b| b == b'\n' || b == b'\r')
                .unwrap_or(rest.len()),
            [b'/', b'*', ..] => comment(rest),
            _ => break,
        };
    }
    let word = &bytes[at..];
    let word = &word[..word
        .iter()
        .position(|b| !b.is_ascii_alphabetic())
        .unwrap_or(word.len())];
    ["select", "with", "values", "table"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether the text names a function that takes a lock for the session: `pg_advisory_lock`, `pg_try_advisory_lock_shared`. One that is called by a
/// function of the seller's own is not seen.
fn locks(text: &str) -> bool {
    text.to_ascii_lowercase().contains("advisory_lock")
}

/// The length of a comment; PostgreSQL nests them.
fn comment(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        match &text[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reading_statements_pass() {
        for text in [
            "SELECT 1",
            " (\n(select 1))",
            "-- x\nWITH a AS (VALUES (1)) TABLE a",
            "/* a /* b */ c */values(1)",
        ] {
            assert!(reads(text), "{text}");
        }
        for text in [
            "",
            "CALL p()",
            "COMMIT",
            "do $$$$",
            "/* open SELECT 1",
            "selectx",
            "-- SELECT 1",
            "\u{a0}SELECT 1",
            "EXPLAIN ANALYZE SELECT 1",
        ] {
            assert!(!reads(text), "{text}");
        }
    }

    /// A lock for the transaction ends with it.
    #[test]
    fn locks_of_a_session_are_seen() {
        assert!(locks("SELECT PG_TRY_Advisory_Lock_Shared(1, 2)"));
        assert!(!locks("SELECT pg_advisory_xact_lock(1)"));
    }

    /// The cache keeps 256 statements and lets the one go that was used longest ago.
    #[test]
    fn the_oldest_statement_goes() {
        let mut statements = Statements::default();
        let ask = || Ask {
            id: 0,
            parameters: vec![],
            limits: Limits {
                rows_max: 1,
                bytes_max: 1,
                timeout_ms: 1,
            },
            retried: false,
            turned_away: 0,
            alone: false,
            typing: None,
        };
        let empty = || Description {
            parameters: vec![],
            columns: vec![],
        };
        for i in 0..STATEMENTS_MAX {
            let text: Rc<str> = format!("SELECT {i}").into();
            assert!(statements.find(&text).is_none());
            let (number, evicted) = statements.reserve(text, ask());
            assert_eq!(evicted, None);
            statements.prepared(number, empty()).unwrap();
        }
        assert!(statements.find("SELECT 0").is_some());
        assert!(statements.find("SELECT x").is_none());
        let (_, evicted) = statements.reserve("SELECT x".into(), ask());
        assert_eq!(evicted, Some(name(2)));
        assert!(statements.find("SELECT 1").is_none() && statements.find("SELECT 0").is_some());
        assert!(statements.withdraw(0) && !statements.withdraw(0));
    }
}
