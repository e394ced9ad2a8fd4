//! What stands in a statement: the one query of a text, and where its placeholders are.
//!
//! This is the second lock of a connector that only reads, where the engine holds the first one; and where the host's `?` are not the
//! engine's placeholders, it says which of them are. It knows comments and quotes, as a [`Dialect`] describes them, and no grammar.
//!
//! ```
//! use souk_sdk::statements::{Dialect, DollarQuotes, Letters, Quote, Statement};
//!
//! const DIALECT: Dialect = Dialect {
//!     line_comments: &["--"],
//!     line_ends: &['\n'],
//!     nested_comments: false,
//!     quotes: &[Quote::plain('\''), Quote::plain('"')],
//!     dollar_quotes: DollarQuotes::None,
//!     letters: Letters::Ascii,
//!     word_signs: "",
//! };
//! let statement = Statement::one_query("SELECT ?, '?' ; -- ?", &DIALECT, &["select", "with"])?;
//! statement.takes(1)?;
//! let numbered = statement.filled(|place, out| out.push_str(&format!("${}", place + 1)));
//! assert_eq!(numbered, "SELECT $1, '?' ");
//! assert!(Statement::one_query("SELECT 1; DROP TABLE t", &DIALECT, &["select"]).is_err());
//! # Ok::<(), souk_sdk::Error>(())
//! ```

use crate::Error;

/// What the host writes last around an endpoint's query: two values that are its own.
pub const PAGE: &str = "\nLIMIT ? OFFSET ?";
const PAGE_VALUES: usize = 2;

/// How many of so many values are the caller's, from the first on, of whom an error may be: those of the page are the host's own.
pub fn callers_values(text: &str, values: usize) -> usize {
    match text.ends_with(PAGE) {
        true => values.saturating_sub(PAGE_VALUES),
        false => values,
    }
}

/// How an engine reads a text. Where it and the engine disagree, a statement could hide in what is only a comment here: when in doubt,
/// describe less as quoted or commented, so that more is refused.
#[derive(Debug)]
pub struct Dialect {
    /// What begins a comment that ends with its line: `--`, `//`.
    pub line_comments: &'static [&'static str],
    /// What ends a line: `\n`, of some engines `\r` as well.
    pub line_ends: &'static [char],
    /// `/* /* */ */` is one comment.
    pub nested_comments: bool,
    pub quotes: &'static [Quote],
    pub dollar_quotes: DollarQuotes,
    pub letters: Letters,
    /// What a word may have besides letters, digits and `_`, though not as its first character, nor behind a first digit: `$`.
    pub word_signs: &'static str,
}

/// A sign that begins and ends what is quoted. A doubled one begins the next token, which is quoted as well.
#[derive(Debug)]
pub struct Quote {
    pub mark: char,
    /// A backslash takes the meaning from what follows it.
    pub has_escapes: bool,
    /// Words, in small letters, which take it from the backslash where they stand right before the quote: `r'\'`.
    pub raw_after: &'static [&'static str],
}

impl Quote {
    /// Nothing in it has a meaning.
    pub const fn plain(mark: char) -> Quote {
        Quote {
            mark,
            has_escapes: false,
            raw_after: &[],
        }
    }

    /// A backslash has one.
    pub const fn escaped(mark: char) -> Quote {
        Quote {
            has_escapes: true,
            ..Quote::plain(mark)
        }
    }
}

/// Whether dollars quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DollarQuotes {
    None,
    /// `$$ … $$`.
    Bare,
    /// `$tag$ … $tag$`, of which the tag may be empty. What has no end is a sign.
    Tagged,
}

/// What a word is made of, besides digits and `_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letters {
    Ascii,
    /// And every character beyond ASCII, blanks among them too.
    All,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind,
    /// Where it begins, in bytes.
    pub at: usize,
    pub text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A blank, or a comment.
    Blank,
    Quoted,
    /// A name, a keyword or a number.
    Word,
    /// One character.
    Sign,
}

impl Token<'_> {
    pub fn is_blank(&self) -> bool {
        self.kind == Kind::Blank
    }

    /// Whether it is this word, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }
}

/// The tokens of a text, which together are all of it. What has no end is the last one's error.
pub struct Tokens<'a> {
    dialect: &'a Dialect,
    text: &'a str,
    at: usize,
    /// The word that ends where the next token begins.
    before: &'a str,
}

impl<'a> Tokens<'a> {
    pub fn of(text: &'a str, dialect: &'a Dialect) -> Tokens<'a> {
        Tokens {
            dialect,
            text,
            at: 0,
            before: "",
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Result<Token<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let Some((kind, length)) = self.dialect.token(rest, first, self.before) else {
            self.at = self.text.len();
            return Some(Err(endless()));
        };
        let (at, text) = (self.at, &rest[..length]);
        self.at += length;
        self.before = match kind {
            Kind::Word => text,
            _ => "",
        };
        Some(Ok(Token { kind, at, text }))
    }
}

impl Dialect {
    /// The kind and the length of what a text begins with; `None`: it has no end.
    fn token(&self, rest: &str, first: char, before: &str) -> Option<(Kind, usize)> {
        if self.line_comments.iter().any(|mark| rest.starts_with(mark)) {
            let length = rest.find(self.line_ends).unwrap_or(rest.len());
            return Some((Kind::Blank, length));
        }
        if rest.starts_with("/*") {
            return Some((Kind::Blank, self.comment(rest)?));
        }
        if let Some(quote) = self.quotes.iter().find(|quote| quote.mark == first) {
            return Some((Kind::Quoted, quote.length(rest, before)?));
        }
        if first == '$' {
            match self.dollar_quotes {
                DollarQuotes::Bare if rest.starts_with("$$") => {
                    return Some((Kind::Quoted, 2 + rest[2..].find("$$")? + 2));
                }
                DollarQuotes::Tagged => {
                    if let Some(length) = self.tagged(rest) {
                        return Some((Kind::Quoted, length));
                    }
                }
                _ => {}
            }
        }
        if self.is_letter(first) {
            let has_signs = !first.is_ascii_digit();
            let goes_on =
                |char: char| self.is_letter(char) || (has_signs && self.word_signs.contains(char));
            let length = rest.find(|char| !goes_on(char)).unwrap_or(rest.len());
            return Some((Kind::Word, length));
        }
        let kind = match first.is_whitespace() {
            true => Kind::Blank,
            false => Kind::Sign,
        };
        Some((kind, first.len_utf8()))
    }

    fn is_letter(&self, char: char) -> bool {
        match self.letters {
            _ if char.is_ascii() => char.is_ascii_alphanumeric() || char == '_',
            Letters::Ascii => false,
            Letters::All => true,
        }
    }

    /// From left to right, as engines read it: a sign that began something ends nothing, as the `*` of `/* /*/` does not.
    fn comment(&self, rest: &str) -> Option<usize> {
        let mut at = 2;
        let mut depth = 1;
        while depth > 0 {
            at += rest[at..].find(['/', '*'])?;
            let sign = &rest[at..];
            match () {
                _ if self.nested_comments && sign.starts_with("/*") => {
                    (at, depth) = (at + 2, depth + 1)
                }
                _ if sign.starts_with("*/") => (at, depth) = (at + 2, depth - 1),
                _ => at += 1,
            }
        }
        Some(at)
    }

    /// `$tag$ … $tag$`.
    fn tagged(&self, rest: &str) -> Option<usize> {
        let tag = rest[1..].find('$')?;
        let mark = &rest[..tag + 2];
        let is_tag = mark[1..=tag].chars().all(|char| self.is_letter(char));
        let end = is_tag.then(|| rest[mark.len()..].find(mark)).flatten()?;
        Some(mark.len() + end + mark.len())
    }
}

impl Quote {
    fn length(&self, rest: &str, before: &str) -> Option<usize> {
        let is_raw = |word: &&str| before.eq_ignore_ascii_case(word);
        let has_escapes = self.has_escapes && !self.raw_after.iter().any(is_raw);
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' if has_escapes => drop(chars.next()),
                char if char == self.mark => return Some(at + char.len_utf8()),
                _ => {}
            }
        }
        None
    }
}

/// The one statement of a text.
#[derive(Debug)]
pub struct Statement<'a> {
    /// Without the semicolon that ends it.
    pub text: &'a str,
    dialect: &'a Dialect,
    places: Places,
}

/// Where the one statement of a text ends, and where its placeholders are: what is kept of a [`Statement`] whose text comes again
/// ([`Texts`](crate::texts::Texts)).
#[derive(Debug)]
pub struct Places {
    end: usize,
    placeholders: Vec<usize>,
}

impl<'a> Statement<'a> {
    /// The one query of a text, which begins with one of these words (in small letters); brackets may stand before it. `permission` where it
    /// is anything else.
    pub fn one_query(
        text: &'a str,
        dialect: &'a Dialect,
        begins: &[&str],
    ) -> Result<Statement<'a>, Error> {
        let mut placeholders = Vec::new();
        let (mut is_query, mut end) = (None, None);
        for token in Tokens::of(text, dialect) {
            let token = token?;
            match (token.kind, token.text) {
                (Kind::Blank, _) => continue,
                _ if end.is_some() => return Err(not_one_query(begins)),
                (Kind::Sign, ";") => end = Some(token.at),
                (Kind::Sign, "?") => placeholders.push(token.at),
                _ => {}
            }
            if is_query.is_none() && token.text != "(" {
                is_query = Some(begins.iter().any(|word| token.is_word(word)));
            }
        }
        match is_query {
            Some(true) => {
                let end = end.unwrap_or(text.len());
                Ok(Statement {
                    text: &text[..end],
                    dialect,
                    places: Places { end, placeholders },
                })
            }
            _ => Err(not_one_query(begins)),
        }
    }

    /// Its tokens; those of [`one_query`](Statement::one_query) all have an end.
    pub fn tokens(&self) -> impl Iterator<Item = Token<'a>> + use<'a> {
        Tokens::of(self.text, self.dialect).flatten()
    }

    /// `invalid-request` unless it takes so many values.
    pub fn takes(&self, given: usize) -> Result<(), Error> {
        self.places.takes(given)
    }

    /// The text with what is written in place of each placeholder, the first one being 0.
    pub fn filled(&self, write: impl FnMut(usize, &mut String)) -> String {
        self.places.filled(self.text, write)
    }

    pub fn places(self) -> Places {
        self.places
    }
}

impl Places {
    /// The statement, of the text in which they were found.
    pub fn statement<'a>(&self, text: &'a str) -> &'a str {
        text.get(..self.end).unwrap_or(text)
    }

    /// The same of a text of which nothing else is needed: it is not copied.
    pub fn cut(&self, mut text: String) -> String {
        text.truncate(self.statement(&text).len());
        text
    }

    /// How many placeholders there are.
    pub fn count(&self) -> usize {
        self.placeholders.len()
    }

    /// As [`Statement::takes`].
    pub fn takes(&self, given: usize) -> Result<(), Error> {
        match self.placeholders.len() {
            wanted if wanted == given => Ok(()),
            wanted => Err(Error::invalid_request(
                "parameter_count",
                format!("the statement takes {wanted} parameters, {given} were given"),
            )),
        }
    }

    /// As [`Statement::filled`], of the text in which they were found.
    pub fn filled(&self, text: &str, mut write: impl FnMut(usize, &mut String)) -> String {
        let text = self.statement(text);
        let mut out = String::with_capacity(text.len() + 24 * self.placeholders.len());
        let mut copied = 0;
        for (place, at) in self.placeholders.iter().enumerate() {
            out.push_str(&text[copied..*at]);
            write(place, &mut out);
            copied = at + 1;
        }
        out.push_str(&text[copied..]);
        out
    }
}

fn not_one_query(begins: &[&str]) -> Error {
    let words: Vec<String> = begins.iter().map(|word| word.to_uppercase()).collect();
    let words = match &words[..] {
        [words @ .., last] if !words.is_empty() => format!("{} or {last}", words.join(", ")),
        words => words.join(""),
    };
    Error::permission(
        "read_only",
        format!(
            "connections are read-only: the statement must be one query, which begins with {words}"
        ),
    )
}

fn endless() -> Error {
    Error::source_failed(
        "syntax_error",
        "a text, a quoted name or a comment of the statement has no end",
    )
}

#[cfg(test)]
mod tests;
