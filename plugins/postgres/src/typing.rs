//! Which types a statement is prepared with: the server's own reading of its parameters, and what they were declared to be where that is none or
//! another one.
//!
//! Nothing here knows a message. Start reading at [`Typing::better`], which looks at a statement that was prepared, and [`Typing::after`], which says
//! what to try after one that was refused. A declared type may be what the server has no operator for; then its own reading stands. Whatever
//! is tried is tried once for each statement of a session, so that it ends.

use crate::parameters::{declared, is_mistaken};
use crate::types::{is_time, oid};
use souk_sdk::Value;
use std::rc::Rc;

/// Absent for most statements.
pub type Told = Option<Rc<Typing>>;

/// What the server says of a statement's parameters when it refuses it.
pub enum Unknown {
    /// It cannot tell the type of this one.
    One(usize),
    /// It cannot tell the types of some: several operators would do.
    Some,
    /// It has no operator or cast for what it took them for.
    Mistaken,
}

/// Which parameters a statement is prepared with types for: those that the server cannot tell by itself, or takes for something else than they
/// were declared to be. It knows the others better: an index on a column serves a value of the column's own type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Typing {
    /// 0 or the end: the server's.
    types: Vec<u32>,
    /// What is better than what the server would read, if it takes it.
    attempt: Option<Attempt>,
    /// Attempts are about one parameter at a time, since one about several was refused.
    is_careful: bool,
    /// These stay what the server reads: it has refused what they were declared to be.
    kept: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
struct Attempt {
    /// What to go back to.
    before: Vec<u32>,
    places: Vec<usize>,
}

impl Typing {
    pub fn types(&self) -> &[u32] {
        &self.types
    }

    /// What a statement is to be prepared with for these values, if not as it is: the server has taken a parameter for something else than it
    /// is declared to be, or a type was declared anew. `described` is what the server says that they are.
    #[inline]
    pub fn better(told: &Told, described: &[u32], values: &[Value]) -> Told {
        let typing = told.as_deref();
        let is_missed = |place: usize, type_oid: u32, value: &Value| match typing {
            None => is_mistaken(value, type_oid),
            Some(typing) => typing.misses(place, type_oid, value),
        };
        let mut places = described.iter().zip(values).enumerate();
        let first = places.position(|(place, (oid, value))| is_missed(place, *oid, value))?;
        let rest = places.filter(|(place, (oid, value))| is_missed(*place, **oid, value));
        let missed = std::iter::once(first).chain(rest.map(|(place, _)| place));
        let typing = typing.cloned().unwrap_or_default();
        Some(Rc::new(typing.attempting(missed.collect(), values)))
    }

    /// What to prepare a statement with after the server has refused it; None: there is nothing more to try.
    pub fn after(told: &Told, unknown: Option<&Unknown>, values: &[Value]) -> Told {
        let mut typing = told.as_deref().cloned().unwrap_or_default();
        let tells_more = unknown.is_some_and(|unknown| typing.tell(unknown, values));
        let is_another = tells_more || typing.give_way();
        is_another.then(|| Rc::new(typing))
    }

    fn misses(&self, place: usize, type_oid: u32, value: &Value) -> bool {
        match self.types.get(place) {
            _ if self.kept.contains(&place) => false,
            None | Some(0) => is_mistaken(value, type_oid),
            Some(told) => declared(value).is_some_and(|declared| !stands_for(*told, declared)),
        }
    }

    #[cold]
    fn attempting(mut self, mut places: Vec<usize>, values: &[Value]) -> Typing {
        if self.is_careful {
            places.truncate(1);
        }
        let before = self.types.clone();
        for place in &places {
            if let Some(told) = values.get(*place).and_then(declared) {
                self.set(*place, told);
            }
        }
        self.attempt = Some(Attempt { before, places });
        self
    }

    fn set(&mut self, place: usize, told: u32) {
        if self.types.len() <= place {
            self.types.resize(place + 1, 0);
        }
        self.types[place] = told;
    }

    /// Says more of what was declared. False: there is nothing more to say.
    fn tell(&mut self, unknown: &Unknown, values: &[Value]) -> bool {
        match unknown {
            Unknown::One(place) => self.tell_those(values, |at, _| at == *place),
            // A text is often beside what is compared with no text: an enumeration, a UUID.
            Unknown::Some => {
                self.tell_those(values, |_, told| told != oid::TEXT)
                    || self.tell_those(values, |_, _| true)
            }
            // What was tried beyond the server's own reading is taken back first.
            Unknown::Mistaken if self.attempt.is_some() => false,
            // Days and moments are what is reckoned with, and then numbers of days.
            Unknown::Mistaken => {
                self.tell_those(values, |_, told| is_time(told))
                    || self.tell_those(values, |_, told| matches!(told, oid::INT8 | oid::NUMERIC))
                    || self.narrow(|_| true)
            }
        }
    }

    /// Tells what these are declared to be, as far as nothing was told of them. False: of none.
    fn tell_those(&mut self, values: &[Value], is_meant: impl Fn(usize, u32) -> bool) -> bool {
        let mut is_told = false;
        for (place, value) in values.iter().enumerate() {
            let is_open = self.types.get(place).is_none_or(|told| *told == 0);
            if let Some(told) = declared(value)
                && is_open
                && is_meant(place, told)
            {
                self.set(place, told);
                is_told = true;
            }
        }
        is_told
    }

    /// Whole numbers at these places are small ones: there is no `date + bigint`, nor `jsonb ->> bigint`. False: there is none.
    fn narrow(&mut self, is_meant: impl Fn(usize) -> bool) -> bool {
        let mut is_narrowed = false;
        for (place, told) in self.types.iter_mut().enumerate() {
            if *told == oid::INT8 && is_meant(place) {
                *told = oid::INT4;
                is_narrowed = true;
            }
        }
        is_narrowed
    }

    /// Goes on from an attempt that was refused. False: there was none.
    fn give_way(&mut self) -> bool {
        let Some(attempt) = self.attempt.take() else {
            return false;
        };
        if self.narrow(|place| attempt.places.contains(&place)) {
            self.attempt = Some(attempt);
            return true;
        }
        match attempt.places.as_slice() {
            [place] => self.kept.push(*place),
            _ => self.is_careful = true,
        }
        self.types = attempt.before;
        true
    }
}

/// A whole number was told to be a small one where the server has no other operator.
fn stands_for(told: u32, declared: u32) -> bool {
    told == declared || told == oid::INT4 && declared == oid::INT8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(told: &Told) -> Vec<u32> {
        told.as_deref().map_or(&[][..], Typing::types).to_vec()
    }

    /// What is taken for a text is told to be what it was declared to be, as a small number where the server takes no large one, and stays a text
    /// where it takes neither.
    #[test]
    fn what_was_declared_is_tried() {
        let (read, values) = ([oid::TEXT], [Value::Int64(1)]);
        let large = Typing::better(&None, &read, &values);
        assert_eq!(types(&large), [oid::INT8]);
        assert_eq!(Typing::better(&large, &[oid::INT8], &values), None);
        let small = Typing::after(&large, Some(&Unknown::Mistaken), &values);
        assert_eq!(types(&small), [oid::INT4]);
        assert_eq!(Typing::better(&small, &[oid::INT4], &values), None);
        let kept = Typing::after(&small, None, &values);
        assert!(kept.is_some() && types(&kept).is_empty());
        assert_eq!(Typing::better(&kept, &read, &values), None);
        for value in [Value::Text("1".into()), Value::Null(None)] {
            assert_eq!(Typing::better(&None, &read, &[value]), None);
        }
    }

    /// A number that no float holds is told to be a number where the server reads a whole one, as a float is.
    #[test]
    fn exact_numbers_are_numbers() {
        for value in [Value::Float64(2.5), Value::Decimal("2.5".into())] {
            let told = Typing::better(&None, &[oid::INT8], &[value]);
            assert_eq!(types(&told), [oid::NUMERIC]);
        }
    }

    /// One that the server takes is not lost with another one that it refuses.
    #[test]
    fn several_are_tried_together_and_then_alone() {
        let values = [Value::Float64(2.5), Value::Int64(5)];
        let refused = Some(&Unknown::Mistaken);
        let both = Typing::better(&None, &[oid::INT8, oid::TEXT], &values);
        assert_eq!(types(&both), [oid::NUMERIC, oid::INT8]);
        let small = Typing::after(&both, refused, &values);
        assert_eq!(types(&small), [oid::NUMERIC, oid::INT4]);
        let neither = Typing::after(&small, refused, &values);
        assert!(neither.is_some() && types(&neither).is_empty());
        let first = Typing::better(&neither, &[oid::INT8, oid::TEXT], &values);
        assert_eq!(types(&first), [oid::NUMERIC]);
        let read = [oid::NUMERIC, oid::TEXT];
        let large = Typing::better(&first, &read, &values);
        assert_eq!(types(&large), [oid::NUMERIC, oid::INT8]);
        let small = Typing::after(&large, refused, &values);
        assert_eq!(types(&small), [oid::NUMERIC, oid::INT4]);
        let last = Typing::after(&small, refused, &values);
        assert_eq!(types(&last), [oid::NUMERIC]);
        assert_eq!(Typing::better(&last, &read, &values), None);
    }

    /// A statement that is refused for what the server took parameters for is told more of them each time, and texts last.
    #[test]
    fn a_refused_statement_is_told_more() {
        let values = [Value::Text("x".into()), Value::Date(0), Value::Int64(1)];
        let told = |unknown: Unknown| {
            let mut told = Vec::new();
            let mut typing: Told = None;
            while let Some(next) = Typing::after(&typing, Some(&unknown), &values) {
                told.push(next.types().to_vec());
                typing = Some(next);
            }
            told
        };
        assert_eq!(
            told(Unknown::Mistaken),
            [
                vec![0, oid::DATE],
                vec![0, oid::DATE, oid::INT8],
                vec![0, oid::DATE, oid::INT4]
            ]
        );
        assert_eq!(
            told(Unknown::Some),
            [
                vec![0, oid::DATE, oid::INT8],
                vec![oid::TEXT, oid::DATE, oid::INT8]
            ]
        );
        assert_eq!(told(Unknown::One(2)), [vec![0, 0, oid::INT8]]);
        assert!(told(Unknown::One(3)).is_empty());
    }

    /// Two products with one text and other declarations prepare it by turns.
    #[test]
    fn what_is_declared_anew_is_told_anew() {
        let told = Typing::better(&None, &[oid::TEXT], &[Value::Int64(1)]);
        let again = Typing::better(&told, &[oid::INT8], &[Value::Boolean(true)]);
        assert_eq!(types(&again), [oid::BOOL]);
        let back = Typing::better(&again, &[oid::BOOL], &[Value::Int64(1)]);
        assert_eq!(types(&back), [oid::INT8]);
    }
}
