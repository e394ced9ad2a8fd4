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
mod tests {
    use super::*;

    const PLAIN: Dialect = Dialect {
        line_comments: &["--"],
        line_ends: &['\n'],
        nested_comments: false,
        quotes: &[Quote::plain('\''), Quote::plain('"')],
        dollar_quotes: DollarQuotes::Bare,
        letters: Letters::Ascii,
        word_signs: "",
    };
    const OTHER: Dialect = Dialect {
        line_comments: &["--", "//", "# "],
        line_ends: &['\r', '\n'],
        nested_comments: true,
        quotes: &[
            Quote {
                raw_after: &["r"],
                ..Quote::escaped('\'')
            },
            Quote::plain('`'),
        ],
        dollar_quotes: DollarQuotes::Tagged,
        letters: Letters::All,
        word_signs: "$",
    };

    /// Words, quoted texts and signs of a text, blanks left out.
    fn seen<'a>(text: &'a str, dialect: &'a Dialect) -> Vec<&'a str> {
        let tokens: Vec<Token> = Tokens::of(text, dialect).map(Result::unwrap).collect();
        let whole: String = tokens.iter().map(|token| token.text).collect();
        assert_eq!(whole, text, "nothing is lost");
        let tokens = tokens.into_iter().filter(|token| !token.is_blank());
        tokens.map(|token| token.text).collect()
    }

    #[test]
    fn each_dialect_is_read_as_it_is_described() {
        for (text, plain, other) in [
            ("a--b\rc\nd", &["a", "d"][..], &["a", "c", "d"][..]),
            ("a//b\nc", &["a", "/", "/", "b", "c"], &["a", "c"]),
            ("# b\nc", &["#", "b", "c"], &["c"]),
            ("/* a /* b */ c */ d", &["c", "*", "/", "d"], &["d"]),
            (
                "/* /*/ a */ b */ c",
                &["a", "*", "/", "b", "*", "/", "c"],
                &["c"],
            ),
            ("/* /*/ ' */ */ a -- '", &["' */ */ a -- '"], &["a"]),
            ("/*/*/**/*/*/a", &["*", "*", "a"], &["a"]),
            ("/***/ a /**// b", &["a", "/", "b"], &["a", "/", "b"]),
            ("'a\\' b", &["'a\\'", "b"], &[]),
            ("'a''b'", &["'a'", "'b'"], &["'a'", "'b'"]),
            ("R'a\\' b", &["R", "'a\\'", "b"], &["R", "'a\\'", "b"]),
            ("br'\\'' b", &["br", "'\\'"], &["br", "'\\''", "b"]),
            ("r '\\'' b", &["r", "'\\'"], &["r", "'\\''", "b"]),
            ("$$ ' $$ a", &["$$ ' $$", "a"], &["$$ ' $$", "a"]),
            (
                "$x$ b $x$",
                &["$", "x", "$", "b", "$", "x", "$"],
                &["$x$ b $x$"],
            ),
            ("a$1", &["a", "$", "1"], &["a$1"]),
            // A number takes no dollar, which begins to quote behind it.
            ("1$$;$$", &["1", "$$;$$"], &["1", "$$;$$"]),
            ("é", &["é"], &["é"]),
            ("a\u{a0}b", &["a", "b"], &["a\u{a0}b"]),
        ] {
            let is_open =
                |text: &str, dialect| Tokens::of(text, dialect).any(|token| token.is_err());
            match is_open(text, &PLAIN) {
                true => assert!(text.matches('\'').count() % 2 == 1, "{text}"),
                false => assert_eq!(seen(text, &PLAIN), plain, "{text}"),
            }
            match is_open(text, &OTHER) {
                true => assert!(other.is_empty(), "{text}"),
                false => assert_eq!(seen(text, &OTHER), other, "{text}"),
            }
        }
    }

    #[test]
    fn what_has_no_end_is_an_error() {
        for text in ["'", "SELECT 'a", "/* a", "/*/", "\"", "$$ a", "'a\\"] {
            let error = Statement::one_query(text, &PLAIN, &["select"]).unwrap_err();
            assert_eq!(error.code, "syntax_error", "{text}");
        }
        for text in ["'a\\'", "/* /* */", "'\\", "`"] {
            let error = Statement::one_query(text, &OTHER, &["select"]).unwrap_err();
            assert_eq!(error.code, "syntax_error", "{text}");
        }
        assert_eq!(seen("$a$ b", &OTHER), ["$", "a$", "b"]);
    }

    #[test]
    fn only_one_query_passes() {
        let one = |text: &'static str| Statement::one_query(text, &PLAIN, &["select", "with"]);
        for text in [
            "SELECT 1",
            " (\n(select 1));",
            "-- x\nWITH a; -- end",
            "SELECT ';' /* ; */",
        ] {
            one(text).unwrap();
        }
        for text in [
            "",
            ";",
            "(",
            "DELETE",
            "SELECT 1; DELETE",
            "SELECT 1;;",
            "/* SELECT */ DROP",
            "'select' 1",
            "selectx",
            "sélect",
        ] {
            let error = one(text).unwrap_err();
            assert_eq!(error.code, "read_only", "{text}");
            assert!(error.message.ends_with("begins with SELECT or WITH"));
        }
        let error = Statement::one_query("x", &PLAIN, &["a", "b", "c"]).unwrap_err();
        assert!(error.message.ends_with("begins with A, B or C"));
    }

    /// Only the host's own placeholders are filled.
    #[test]
    fn placeholders_are_found() {
        let text = "SELECT ?, '?', \"?\", $$?$$ -- ?\n, ? /* ? */ ; -- ?";
        let statement = Statement::one_query(text, &PLAIN, &["select"]).unwrap();
        assert!(statement.takes(2).is_ok());
        assert_eq!(statement.takes(1).unwrap_err().code, "parameter_count");
        let filled = statement.filled(|place, out| out.push_str(["a", "b"][place]));
        assert_eq!(filled, "SELECT a, '?', \"?\", $$?$$ -- ?\n, b /* ? */ ");
        let cut = statement.places.cut(text.to_owned());
        assert_eq!(cut, "SELECT ?, '?', \"?\", $$?$$ -- ?\n, ? /* ? */ ");
        assert_eq!(
            statement.tokens().filter(|token| token.text == "?").count(),
            2
        );
    }

    #[test]
    fn values_of_the_page_are_the_hosts() {
        for (text, values, callers) in [
            ("SELECT 1", 0, 0),
            ("SELECT ?", 1, 1),
            ("SELECT 1\nLIMIT ? OFFSET ?", 2, 0),
            ("SELECT ?\nLIMIT ? OFFSET ?", 3, 1),
        ] {
            assert_eq!(callers_values(text, values), callers, "{text}");
        }
    }
}
