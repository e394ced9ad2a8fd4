//! What a session remembers of the texts of statements: a seller's statement is asked thousands of times, with other values each time. [`Texts`]
//! keeps what a connector reads out of a text, and within that, where a source has to let a text pass before it may run, the [`Proof`] that it has.
//!
//! ```
//! use souk_sdk::texts::{Proof, Texts};
//!
//! let mut texts = Texts::default();
//! // A request of 12:00:00 asks the source first, and is let pass.
//! let proof = texts.read("SELECT 1", |_| Ok(Proof::for_a_minute()))?;
//! assert!(proof.is_wanted(43_200));
//! proof.give(43_200);
//! // One of 12:00:49 needs not ask. Of those of 12:00:50 the first does, so that there is a new proof when this one ends, at 12:01:00.
//! let proof = texts.read("SELECT 1", |_| Ok(Proof::for_a_minute()))?;
//! assert!(!proof.is_wanted(43_249));
//! assert!(proof.is_wanted(43_250) && !proof.is_wanted(43_250));
//! assert!(proof.holds(43_259) && !proof.holds(43_260));
//! # Ok::<(), souk_sdk::Error>(())
//! ```

use std::cell::Cell;
use std::rc::Rc;

use crate::{Error, short};

/// Texts that are remembered, and their length together: beside it a session has what was read out of them. Past either the one that was asked
/// for least recently is read anew, and so is a longer one each time.
const TEXTS_MAX: usize = 128;
const TEXTS_BYTES_MAX: usize = 1 << 20;
/// How long a [`Proof::for_a_minute`] holds: a name that has come to mean something else is noticed after so many seconds at the latest.
const MINUTE_S: u64 = 60;
/// The same of a [`Proof::for_five_minutes`], which the source's answers correct before.
const FIVE_MINUTES_S: u64 = 300;
/// The part of its time in which a proof is wanted again while it still holds, at its end: the last sixth. That is ten seconds and more, in which a
/// source answers.
const LAST_PARTS: u64 = 6;

/// What was read out of the texts that were asked for last. It belongs to one session, so that nothing decides what that is but the text and
/// what never changes in a session: its user, its settings, its catalog and schema. Whatever else it depends on stands in `T`, to be compared.
pub struct Texts<T> {
    /// The one that was asked for last stands last.
    known: Vec<(Box<str>, Rc<T>)>,
    bytes: usize,
}

impl<T> Default for Texts<T> {
    fn default() -> Texts<T> {
        Texts {
            known: Vec::new(),
            bytes: 0,
        }
    }
}

impl<T> Texts<T> {
    /// What `read` reads out of a text, or has read out of it before: then nothing is copied. What it refuses is asked about anew each time.
    pub fn read(
        &mut self,
        text: &str,
        read: impl FnOnce(&str) -> Result<T, Error>,
    ) -> Result<Rc<T>, Error> {
        let mut known = self.known.iter();
        let is_it = |known: &str| short::is_same(known.as_bytes(), text.as_bytes());
        // Texts of other lengths are not even looked into.
        if let Some(at) = known.rposition(|(known, _)| is_it(known)) {
            let found = self.known[at].1.clone();
            self.known[at..].rotate_left(1);
            return Ok(found);
        }
        let new = Rc::new(read(text)?);
        if text.len() <= TEXTS_BYTES_MAX {
            self.bytes += text.len();
            self.known.push((text.into(), new.clone()));
        }
        while self.known.len() > TEXTS_MAX || self.bytes > TEXTS_BYTES_MAX {
            let (least_recent, _) = self.known.remove(0);
            self.bytes -= least_recent.len();
        }
        Ok(new)
    }
}

/// That a source has let a text pass: it has said that the text only reads, or has answered it to its end where nothing can be written. While this
/// holds, the text is asked without that.
///
/// It stands in what [`Texts`] keeps of the text, so it is of that text in that session. Values are no part of it: a connector whose values could
/// make the source do something else gives no proof of such a text.
///
/// **How long it holds** depends on what would have to change for the source to answer otherwise.
///
/// - *Nothing can*, where the text alone decides: a parser says of which kind a statement is, whatever the names in it stand for. Asked once more
///   it would say the same. Such a proof holds as long as the text is remembered ([`for_good`](Proof::for_good)).
/// - *A name*, where a transaction that only reads has let a statement pass: it lets pass or refuses what the statement reaches. A view, a
///   function or a table may be replaced by one of the same name that reaches something else (a sequence that it moves, a database that refuses
///   writes only to who is told to read), and nobody tells a session of it. Such a proof holds for a minute ([`for_a_minute`](Proof::for_a_minute)):
///   then the source looks again, which costs a statement that is asked often next to nothing.
/// - *A name, and the answer says so*, where what was proven can be seen in the answer itself, as the types of a result's columns can. Whoever reads
///   it withdraws the proof; the end is for what an answer may not show. Such a proof holds for five minutes
///   ([`for_five_minutes`](Proof::for_five_minutes)).
///
/// **Before it ends** it is [wanted](Proof::is_wanted) again, of one asker a second: where many ask the same text at once, all of them would
/// get a proof of their own at its end.
///
/// Beneath it are the rights of the connection's user, which know no minute.
#[derive(Debug)]
pub struct Proof {
    holds_s: Option<u64>,
    given_at: Cell<Option<u64>>,
    /// When somebody was last told to get it again while it held.
    wanted_at: Cell<Option<u64>>,
}

impl Proof {
    /// Of what the text alone decides. It has not been given yet.
    pub const fn for_good() -> Proof {
        Proof::of(None)
    }

    /// Of what names in the text decide as well. It has not been given yet.
    pub const fn for_a_minute() -> Proof {
        Proof::of(Some(MINUTE_S))
    }

    /// Of what names in the text decide as well, and the source's answer shows. It has not been given yet.
    pub const fn for_five_minutes() -> Proof {
        Proof::of(Some(FIVE_MINUTES_S))
    }

    const fn of(holds_s: Option<u64>) -> Proof {
        Proof {
            holds_s,
            given_at: Cell::new(None),
            wanted_at: Cell::new(None),
        }
    }

    /// The source has let the text pass. It was asked to at this time of day, in seconds ([`Step::now`](crate::Step::now)): what it has seen may be
    /// as old as that.
    pub fn give(&self, asked_at: u64) {
        self.given_at.set(Some(asked_at));
    }

    /// The text has failed: it is asked with all precautions the next time.
    pub fn withdraw(&self) {
        self.given_at.set(None);
    }

    /// Whether it was given and still holds at this time of day, in seconds. That may fall: one of a later time holds no more, unless it is for good.
    pub fn holds(&self, now: u64) -> bool {
        match (self.given_at.get(), self.holds_s) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(at), Some(holds_s)) => (at..at.saturating_add(holds_s)).contains(&now),
        }
    }

    /// Whether who asks at this time of day, in seconds, has to ask the source to let the text pass: where it does not hold, and in the last sixth of
    /// its time the first who asks in each second. So one gets it again while the others still have it. If none does, it ends as it would.
    ///
    /// Where such a one is refused, the connector [withdraws](Proof::withdraw) it: the others would have it to its end.
    pub fn is_wanted(&self, now: u64) -> bool {
        if !self.holds(now) {
            return true;
        }
        let (Some(at), Some(holds_s)) = (self.given_at.get(), self.holds_s) else {
            return false;
        };
        let left_s = at.saturating_add(holds_s).saturating_sub(now);
        left_s <= holds_s / LAST_PARTS && self.wanted_at.replace(Some(now)) != Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a text has to be read.
    fn is_new(texts: &mut Texts<String>, text: &str) -> bool {
        let mut is_new = false;
        let read = texts.read(text, |text| {
            is_new = true;
            match text.starts_with('!') {
                true => Err(Error::source_failed("refused", "refused")),
                false => Ok(text.to_owned()),
            }
        });
        assert!(read.is_ok_and(|read| *read == text) || text.starts_with('!'));
        is_new
    }

    /// What is asked for again and again stays, however many others come by; what is refused is read each time.
    #[test]
    fn the_least_recent_text_goes_first() {
        let mut texts = Texts::default();
        for number in 0..TEXTS_MAX {
            let text = number.to_string();
            assert!(is_new(&mut texts, &text) && !is_new(&mut texts, &text));
        }
        assert!(!is_new(&mut texts, "0"));
        assert!(is_new(&mut texts, "more"));
        assert!(is_new(&mut texts, "1"), "it was the least recent");
        assert!(is_new(&mut texts, "2"), "and then this");
        assert!(is_new(&mut texts, "!") && is_new(&mut texts, "!"));
        for text in ["0", "more", "1", "2", "4"] {
            assert!(!is_new(&mut texts, text), "{text}");
        }
        for number in 0..2 * TEXTS_MAX {
            assert!(is_new(&mut texts, &format!("once {number}")));
            assert!(!is_new(&mut texts, "0"));
        }
        assert_eq!(texts.known.len(), TEXTS_MAX);
    }

    /// Long texts take the place of those before them; one that is too long takes nobody's.
    #[test]
    fn texts_have_bounds() {
        let mut texts = Texts::default();
        for number in 0..20 {
            let long = number.to_string().repeat(TEXTS_BYTES_MAX / 10);
            assert!(is_new(&mut texts, &long) && !is_new(&mut texts, &long));
            let bytes: usize = texts.known.iter().map(|(text, _)| text.len()).sum();
            assert!(texts.bytes == bytes && bytes <= TEXTS_BYTES_MAX);
        }
        let longest = "x".repeat(TEXTS_BYTES_MAX);
        assert!(is_new(&mut texts, &longest) && !is_new(&mut texts, &longest));
        assert_eq!(texts.known.len(), 1);
        let longer = "y".repeat(TEXTS_BYTES_MAX + 1);
        assert!(is_new(&mut texts, &longer) && is_new(&mut texts, &longer));
        assert!(!is_new(&mut texts, &longest));
    }

    /// All who ask for a text have the same of it: a proof that one is given is the next one's.
    #[test]
    fn what_is_remembered_is_shared() {
        let mut texts = Texts::default();
        let mut read = |text: &str| texts.read(text, |_| Ok(Proof::for_good())).unwrap();
        let first = read("a");
        first.give(1);
        assert!(Rc::ptr_eq(&first, &read("a")));
        assert!(!read("b").holds(1) && !read("a ").holds(1));
    }

    #[test]
    fn a_proof_of_names_holds_for_a_minute() {
        let proof = Proof::for_a_minute();
        assert!(!proof.holds(0) && !proof.holds(100));
        proof.give(100);
        assert!(proof.holds(100) && proof.holds(159));
        assert!(!proof.holds(160) && !proof.holds(99));
        proof.give(170);
        assert!(proof.holds(170) && !proof.holds(159));
        proof.withdraw();
        assert!(!proof.holds(170));
        proof.give(u64::MAX - 1);
        assert!(proof.holds(u64::MAX - 1) && !proof.holds(0));
    }

    /// Of those who ask at its end one a second gets it again, and nobody has it longer for that.
    #[test]
    fn a_proof_is_wanted_of_one_before_it_ends() {
        let proof = Proof::for_a_minute();
        assert!(proof.is_wanted(100) && proof.is_wanted(100));
        proof.give(100);
        assert!((100..150).all(|now| !proof.is_wanted(now)));
        for now in 150..160 {
            assert!(proof.is_wanted(now), "{now}");
            assert!(!proof.is_wanted(now) && proof.holds(now), "{now}");
        }
        assert!(proof.is_wanted(160) && proof.is_wanted(160));
        // The one of second 155 has got it.
        proof.give(155);
        assert!((155..205).all(|now| !proof.is_wanted(now)));
        assert!(proof.is_wanted(205) && !proof.is_wanted(205));
        // That one has been refused.
        proof.withdraw();
        assert!(proof.is_wanted(205) && proof.is_wanted(205));
        // The clock has fallen.
        proof.give(205);
        assert!(proof.is_wanted(204) && proof.is_wanted(204));
        let proof = Proof::for_five_minutes();
        proof.give(100);
        assert!((100..350).all(|now| !proof.is_wanted(now)));
        assert!(proof.is_wanted(350) && !proof.is_wanted(350));
        assert!(proof.is_wanted(400) && proof.is_wanted(400));
        let proof = Proof::for_good();
        assert!(proof.is_wanted(100));
        proof.give(100);
        let is_wanted = |now: &u64| proof.is_wanted(*now);
        assert!(![0, 100, 160, u64::MAX].iter().any(is_wanted));
    }

    #[test]
    fn a_proof_that_answers_correct_holds_for_five_minutes() {
        let proof = Proof::for_five_minutes();
        assert!(!proof.holds(100));
        proof.give(100);
        assert!(proof.holds(100) && proof.holds(399));
        assert!(!proof.holds(400) && !proof.holds(99));
        proof.withdraw();
        assert!(!proof.holds(100));
    }

    #[test]
    fn a_proof_of_a_text_holds_for_good() {
        let proof = Proof::for_good();
        assert!(!proof.holds(0));
        proof.give(100);
        assert!([0, 100, 160, u64::MAX].iter().all(|now| proof.holds(*now)));
        proof.withdraw();
        assert!(!proof.holds(100));
    }
}
