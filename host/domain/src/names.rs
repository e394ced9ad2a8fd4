//! Names that people give, which others read in the midst of their own texts: lists, mails and what is written above them.

/// Whether a letter of a name does not stay in its line: control characters, and what Unicode ends lines and paragraphs with.
pub fn breaks_lines(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
}
