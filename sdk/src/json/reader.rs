//! A document on its way from its front to its end, a value at a time: nothing of it is kept but what is asked for.
//!
//! What there is much of, the cells of rows, is read here by hand: through `serde` a cell goes through many hands, each of which a guest pays for
//! more than a native program does. Whatever else stands in a document is read by `serde_json` from where it begins. A loop in a guest looks at its
//! clock each time around, so texts are looked through eight bytes at a time.

use std::borrow::Cow;

use serde::de::{Deserialize, Error as _, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Error, Result};

use crate::short;

/// So many digits fit into 64 bits, whatever they are.
const DIGITS_THAT_FIT: usize = 18;
/// Values that lie in each other and are passed over by hand: a bit says what each of them is.
const DEPTH_MAX: u32 = u64::BITS;
const ONES: u64 = u64::from_le_bytes([1; 8]);

/// A cell as it is written.
#[derive(Debug)]
pub enum Written<'a> {
    Null,
    Truth(bool),
    Whole(i64),
    /// Any other number, as it stands: one with a fraction or an exponent, one of more than 64 bits, and `-0`.
    Number(&'a str),
    Text(&'a str),
    /// Its own text, where the column's type wants that. NULL does not come so.
    Raw(&'a RawValue),
}

/// What is left to read of a document.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn of(document: &'a str) -> Reader<'a> {
        Reader {
            text: document,
            at: 0,
        }
    }

    /// Reads a value, of which parts may borrow.
    pub fn read<T: Deserialize<'a>>(&mut self) -> Result<T> {
        let rest = serde_json::Deserializer::from_str(&self.text[self.at..]);
        let mut values = rest.into_iter::<T>();
        let value = values.next();
        let value = value.unwrap_or_else(|| Err(unexpected(None, "a value")))?;
        self.at += values.byte_offset();
        Ok(value)
    }

    /// Passes over a value.
    pub fn skip(&mut self) -> Result<()> {
        let begin = self.at;
        match self.skip_plain() {
            Some(()) => Ok(()),
            None => {
                self.at = begin;
                self.read::<IgnoredAny>().map(drop)
            }
        }
    }

    /// A value as it stands.
    pub fn raw(&mut self) -> Result<&'a str> {
        self.peek();
        let begin = self.at;
        self.skip()?;
        Ok(&self.text[begin..self.at])
    }

    /// The same of an object or a list, if it is written as this one, which is one: none is how another one begins. Else nothing is passed over.
    pub fn raw_like(&mut self, known: &[u8]) -> Option<&'a str> {
        self.peek();
        let end = self.at + known.len();
        let stands = self.text.as_bytes().get(self.at..end)?;
        let is_whole = matches!(known, [b'{', .., b'}'] | [b'[', .., b']']);
        if !is_whole || !short::is_same(stands, known) {
            return None;
        }
        let value = self.text.get(self.at..end)?;
        self.at = end;
        Some(value)
    }

    /// A text, which is copied only where something in it is escaped.
    pub fn quoted(&mut self) -> Result<Cow<'a, str>> {
        self.take(b'"', "a text")?;
        self.text()
    }

    /// Reads an object: `member` is told the name of each member, and takes its value.
    #[inline]
    pub fn object(
        &mut self,
        mut member: impl FnMut(&str, &mut Reader<'a>) -> Result<()>,
    ) -> Result<()> {
        self.take(b'{', "an object")?;
        match self.goes_on(b'}', true)? {
            true => {
                self.member(&mut member)?;
                self.members_left(member)
            }
            false => Ok(()),
        }
    }

    /// Reads what is left of an object, of which a member has been read.
    #[inline]
    pub fn members_left(
        &mut self,
        mut member: impl FnMut(&str, &mut Reader<'a>) -> Result<()>,
    ) -> Result<()> {
        while self.goes_on(b'}', false)? {
            self.member(&mut member)?;
        }
        Ok(())
    }

    #[inline]
    fn member(
        &mut self,
        member: &mut impl FnMut(&str, &mut Reader<'a>) -> Result<()>,
    ) -> Result<()> {
        self.take(b'"', "a name")?;
        let name = self.text()?;
        self.take(b':', "a colon")?;
        member(&name, self)
    }

    /// Passes over what begins a value, if it stands here just so. Whether it did.
    #[inline]
    pub fn passes<const LENGTH: usize>(&mut self, begin: &[u8; LENGTH]) -> bool {
        let rest = self.text.as_bytes().get(self.at..);
        let is_it = rest.and_then(<[u8]>::first_chunk) == Some(begin);
        if is_it {
            self.at += LENGTH;
        }
        is_it
    }

    /// Reads a list, which is called `what` where it is none: `element` takes each value of it.
    #[inline]
    pub fn list(
        &mut self,
        what: &str,
        mut element: impl FnMut(&mut Reader<'a>) -> Result<()>,
    ) -> Result<()> {
        self.begin_list(what)?;
        let mut is_first = true;
        while self.list_goes_on(std::mem::take(&mut is_first))? {
            element(self)?;
        }
        Ok(())
    }

    /// Passes over `null`. Whether it stood here.
    pub fn null(&mut self) -> Result<bool> {
        match self.peek() {
            Some(b'n') => self.word("null").map(|()| true),
            _ => Ok(false),
        }
    }

    /// Whether a list stands here.
    pub fn is_list(&mut self) -> bool {
        self.peek() == Some(b'[')
    }

    /// The document ends here.
    pub fn end(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Error::custom("trailing characters")),
        }
    }

    #[inline]
    pub(super) fn begin_list(&mut self, what: &str) -> Result<()> {
        self.take(b'[', what)
    }

    /// Whether another value comes in a list. Its end, and what stands between two, is passed over.
    #[inline]
    pub(super) fn list_goes_on(&mut self, is_first: bool) -> Result<bool> {
        self.goes_on(b']', is_first)
    }

    /// Reads a cell and hands it on; as it stands, if `is_raw`.
    #[inline]
    pub fn cell<T>(&mut self, is_raw: bool, take: impl FnOnce(Written<'_>) -> T) -> Result<T> {
        let text;
        let cell = match self.peek() {
            _ if is_raw => raw(self.read()?),
            Some(b'"') => {
                self.at += 1;
                text = self.text()?;
                Written::Text(&text)
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'n') => self.word("null").map(|()| Written::Null)?,
            Some(b't') => self.word("true").map(|()| Written::Truth(true))?,
            Some(b'f') => self.word("false").map(|()| Written::Truth(false))?,
            found => return Err(unexpected(found, "a cell")),
        };
        Ok(take(cell))
    }

    /// The next byte that is no blank.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                next => return next.copied(),
            }
        }
    }

    /// Passes over a sign, which `what` begins with.
    #[inline]
    fn take(&mut self, sign: u8, what: &str) -> Result<()> {
        match self.peek() {
            Some(next) if next == sign => {
                self.at += 1;
                Ok(())
            }
            next => Err(unexpected(next, what)),
        }
    }

    /// Whether what ends with this sign goes on. The end, and a comma between two values, is passed over.
    #[inline]
    fn goes_on(&mut self, end: u8, is_first: bool) -> Result<bool> {
        match self.peek() {
            Some(next) if next == end => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !is_first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if is_first => Ok(true),
            next => Err(unexpected(next, "a comma")),
        }
    }

    /// Passes over a value that is written as most are. Where it is not, or is wrong, this ends somewhere: `serde_json` says then what it is.
    fn skip_plain(&mut self) -> Option<()> {
        // The innermost value that is open is the last bit, which is set where it is an object.
        let (mut objects, mut depth) = (0_u64, 0);
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    self.skip_text()?;
                }
                b'-' | b'0'..=b'9' => self.number().map(drop).ok()?,
                b'n' => self.word("null").ok()?,
                b't' => self.word("true").ok()?,
                b'f' => self.word("false").ok()?,
                sign @ (b'{' | b'[') if depth < DEPTH_MAX => {
                    self.at += 1;
                    let is_object = sign == b'{';
                    if self.goes_on(closes(is_object), true).ok()? {
                        (objects, depth) = ((objects << 1) | u64::from(is_object), depth + 1);
                        self.skip_name(is_object)?;
                        continue;
                    }
                }
                _ => return None,
            }
            // Behind a value stands another one, or the end of what it lies in.
            loop {
                if depth == 0 {
                    return Some(());
                }
                let is_object = objects & 1 == 1;
                if self.goes_on(closes(is_object), false).ok()? {
                    self.skip_name(is_object)?;
                    break;
                }
                (objects, depth) = (objects >> 1, depth - 1);
            }
        }
    }

    /// Passes over the name of a member, which elements of a list have not.
    fn skip_name(&mut self, is_object: bool) -> Option<()> {
        if is_object {
            self.take(b'"', "a name").ok()?;
            self.skip_text()?;
            self.take(b':', "a colon").ok()?;
        }
        Some(())
    }

    /// Passes over a text of which the first quote has been passed over.
    fn skip_text(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        loop {
            self.at = plain_until(bytes, self.at);
            match (bytes.get(self.at)?, bytes.get(self.at + 1)) {
                (b'"', _) => {
                    self.at += 1;
                    return Some(());
                }
                (b'\\', Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => {
                    self.at += 2
                }
                _ => return None,
            }
        }
    }

    /// Passes over a word, of which the first letter has been seen.
    fn word(&mut self, word: &str) -> Result<()> {
        match self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            true => {
                self.at += word.len();
                Ok(())
            }
            false => Err(Error::custom("an unknown word")),
        }
    }

    /// A text of which the first quote has been passed over.
    #[inline]
    fn text(&mut self) -> Result<Cow<'a, str>> {
        let begin = self.at;
        self.at = plain_until(self.text.as_bytes(), begin);
        match self.text.as_bytes().get(self.at) {
            Some(b'"') => {
                let text = &self.text[begin..self.at];
                self.at += 1;
                Ok(Cow::Borrowed(text))
            }
            Some(b'\\') => self.escaped(begin).map(Cow::Owned),
            next => Err(unended(next)),
        }
    }

    /// The same of a text that began there, and has an escape here.
    fn escaped(&mut self, begin: usize) -> Result<String> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at) == Some(&b'\\') {
            // What is escaped ends nothing.
            self.at = plain_until(bytes, self.at + 2);
        }
        match bytes.get(self.at) {
            Some(b'"') => self.at += 1,
            next => return Err(unended(next)),
        }
        serde_json::from_str(&self.text[begin - 1..self.at])
    }

    /// A number, of which the first character has been seen.
    #[inline]
    fn number(&mut self) -> Result<Written<'a>> {
        let bytes = self.text.as_bytes();
        let begin = self.at;
        let is_negative = bytes.get(begin) == Some(&b'-');
        let first = begin + usize::from(is_negative);
        let (mut at, mut value) = (first, 0_i64);
        if let Some((count, few)) = digits_in_eight(bytes, first) {
            (at, value) = (first + count, few);
        }
        while let Some(digit @ b'0'..=b'9') = bytes.get(at).copied() {
            // What does not fit is not asked for.
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            at += 1;
        }
        let digits = at - first;
        let is_written_so = digits == 1 || (digits > 1 && bytes.get(first) != Some(&b'0'));
        if !is_written_so {
            return Err(no_number());
        }
        if let Some(b'.' | b'e' | b'E') = bytes.get(at) {
            return self.with_fraction(begin, at);
        }
        self.at = at;
        let written = &self.text[begin..at];
        Ok(match digits <= DIGITS_THAT_FIT && value != 0 {
            true if is_negative => Written::Whole(-value),
            true => Written::Whole(value),
            false => whole_or_not(written),
        })
    }

    /// The same of a number with a fraction or an exponent, whose whole digits end there.
    fn with_fraction(&mut self, begin: usize, mut at: usize) -> Result<Written<'a>> {
        let bytes = self.text.as_bytes();
        if bytes.get(at) == Some(&b'.') {
            at = digits_until(bytes, at + 1)?;
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            let has_sign = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
            at = digits_until(bytes, at + 1 + usize::from(has_sign))?;
        }
        self.at = at;
        Ok(Written::Number(&self.text[begin..at]))
    }
}

/// What an object ends with, or a list.
fn closes(is_object: bool) -> u8 {
    match is_object {
        true => b'}',
        false => b']',
    }
}

fn raw(value: &RawValue) -> Written<'_> {
    match value.get() {
        "null" => Written::Null,
        _ => Written::Raw(value),
    }
}

/// Of digits that are zero, or may not fit. A zero with a sign is none of the whole numbers.
fn whole_or_not(written: &str) -> Written<'_> {
    match written.parse::<i64>() {
        Ok(value) if written != "-0" => Written::Whole(value),
        _ => Written::Number(written),
    }
}

/// How many digits stand there one behind the other, up to eight, and the number that they are; nothing where the document ends sooner.
#[inline]
fn digits_in_eight(bytes: &[u8], at: usize) -> Option<(usize, i64)> {
    let eight = bytes.get(at..).and_then(<[u8]>::first_chunk)?;
    let digits = u64::from_le_bytes(*eight) ^ (ONES * 0x30);
    // The highest bit of the first that is none; bits above it may be anything.
    let others = (digits.wrapping_add(ONES * 0x76) | digits) & (ONES << 7);
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return Some((0, 0));
    }
    // As the last ones of eight, of which the first are zeros. Then two and two are one, of a hundred, and so on.
    let eight = digits << (64 - 8 * count);
    let pairs = (eight.wrapping_mul(10) + (eight >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let all = (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff;
    Some((count, all as i64))
}

/// Where digits end that begin there, of which there has to be one.
fn digits_until(bytes: &[u8], begin: usize) -> Result<usize> {
    let rest = bytes.get(begin..).unwrap_or_default();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
    match digits.count() {
        0 => Err(no_number()),
        count => Ok(begin + count),
    }
}

/// Where a text that is plain from there on is so no more: at its end, at an escape, at what may not stand in it.
#[inline]
pub(super) fn plain_until(bytes: &[u8], mut at: usize) -> usize {
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        match not_plain(u64::from_le_bytes(*eight)) {
            0 => at += 8,
            found => return at + (found.trailing_zeros() / 8) as usize,
        }
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let is_not_plain = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    at + rest.iter().position(is_not_plain).unwrap_or(rest.len())
}

/// The highest bit of the first of eight bytes that is a quote, a backslash or a control character; bits above it may be anything.
#[inline]
fn not_plain(eight: u64) -> u64 {
    let (quote, escape) = (eight ^ (ONES * 0x22), eight ^ (ONES * 0x5c));
    let is_quote = quote.wrapping_sub(ONES) & !quote;
    let is_escape = escape.wrapping_sub(ONES) & !escape;
    let is_control = eight.wrapping_sub(ONES * 0x20) & !eight;
    (is_quote | is_escape | is_control) & (ONES << 7)
}

/// Says what stands there, and nothing of what it is.
#[cold]
fn unexpected(found: Option<u8>, wanted: &str) -> Error {
    let found = match found {
        None => "EOF",
        Some(b'"') => "a text",
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'-' | b'0'..=b'9') => "a number",
        Some(b'n' | b't' | b'f') => "a word",
        Some(_) => "something else",
    };
    Error::custom(format_args!("{found} in place of {wanted}"))
}

#[cold]
fn unended(found: Option<&u8>) -> Error {
    match found {
        None => unexpected(None, "the end of a text"),
        Some(_) => Error::custom("a control character in a text"),
    }
}

#[cold]
fn no_number() -> Error {
    Error::custom("a number that is none of JSON's")
}

#[cfg(test)]
mod tests;
