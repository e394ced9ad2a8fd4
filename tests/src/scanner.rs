//! Reads statements that only compute, as far as servers of the tests answer such: words, texts and digits off the front of a text, blanks
//! before each left out.

pub struct Scanner<'a> {
    pub rest: &'a str,
}

impl<'a> Scanner<'a> {
    pub fn of(text: &'a str) -> Scanner<'a> {
        Scanner { rest: text }
    }

    pub fn is_over(&self) -> bool {
        self.rest.trim().is_empty()
    }

    pub fn takes(&mut self, text: &str) -> bool {
        match self.rest.trim_start().strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// In any case, and no part of a longer word.
    pub fn takes_word(&mut self, word: &str) -> bool {
        let begin = self.rest;
        let found = self.word().eq_ignore_ascii_case(word);
        if !found {
            self.rest = begin;
        }
        found
    }

    /// The next word, or a name in quotes or backticks; nothing where there is none.
    pub fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '"' | '`');
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    /// What a number is written in.
    pub fn digits(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let is_part = |char: char| char.is_ascii_digit() || matches!(char, '-' | '.' | 'e' | 'E');
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    /// The rest of a text, whose first quote was taken, and in which a doubled quote stands for one.
    pub fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            let (part, rest) = self.rest.split_once('\'')?;
            text.push_str(part);
            self.rest = rest;
            match rest.strip_prefix('\'') {
                Some(more) => {
                    text.push('\'');
                    self.rest = more;
                }
                None => return Some(text),
            }
        }
    }

    /// The same where a backslash has a meaning: it stands before a quote or another, or before `n` or `t`.
    pub fn escaped(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '\'' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                '\\' => text.push(match chars.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                }),
                other => text.push(other),
            }
        }
        None
    }
}
