//! Words: what a text is found by, and which words are near enough to what somebody typed. Refuses to know where they are kept.
//!
//! A word is what stands between characters that are neither letters nor digits, in lower case. What was typed finds a word that is the
//! same, that begins with it, or that differs by one typing error: a letter too many, one too few, another one, or two that changed places.
//! Start reading at [`near`].

use std::collections::BTreeSet;

/// Longer words are known by their beginning.
pub const WORD_CHARS_MAX: usize = 32;
/// One letter is the beginning of everything.
pub const PREFIX_CHARS_MIN: usize = 2;
/// Shorter words differ from too many others by one letter.
const FORGIVEN_CHARS_MIN: usize = 4;

/// The words of a text, in its order.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| {
            let lower = word.chars().flat_map(char::to_lowercase);
            lower.take(WORD_CHARS_MAX).collect()
        })
}

/// How a word is meant by what was typed. The better comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    Same,
    Begins,
    Mistyped,
}

/// Whether, and how, `typed` means `word`.
pub fn near(typed: &str, word: &str) -> Option<Match> {
    if typed == word {
        return Some(Match::Same);
    }
    let (a, b): (Vec<char>, Vec<char>) = (typed.chars().collect(), word.chars().collect());
    if a.len() >= PREFIX_CHARS_MIN && b.starts_with(&a) {
        return Some(Match::Begins);
    }
    is_mistyped(&a, &b).then_some(Match::Mistyped)
}

fn is_mistyped(a: &[char], b: &[char]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if long.len() < FORGIVEN_CHARS_MIN || long.len() - short.len() > 1 {
        return false;
    }
    let Some(at) = (0..short.len()).find(|at| short[*at] != long[*at]) else {
        return short.len() < long.len();
    };
    match short.len() < long.len() {
        true => short[at..] == long[at + 1..],
        false => {
            let is_other = short[at + 1..] == long[at + 1..];
            let has_swapped = short.len() > at + 1
                && (short[at], short[at + 1]) == (long[at + 1], long[at])
                && short[at + 2..] == long[at + 2..];
            is_other || has_swapped
        }
    }
}

/// What a word is kept under, so that it is found by looking up texts that are equal: `>` and a beginning, `-` and what is left without one letter.
pub fn kept_under(word: &str) -> BTreeSet<String> {
    let chars: Vec<char> = word.chars().collect();
    let begins = (PREFIX_CHARS_MIN..chars.len()).map(|end| prefixed('>', &chars[..end]));
    let mut keys: BTreeSet<String> = begins.collect();
    keys.insert(whole(word));
    if chars.len() >= FORGIVEN_CHARS_MIN {
        keys.extend(without_one(&chars));
    }
    keys
}

/// What every word is kept under: itself.
pub fn whole(word: &str) -> String {
    format!("-{word}")
}

/// What to look up for what was typed: it finds at least the words that are [`near`].
pub fn looked_up(typed: &str) -> BTreeSet<String> {
    let chars: Vec<char> = typed.chars().collect();
    let mut keys = BTreeSet::from([whole(typed)]);
    if chars.len() >= PREFIX_CHARS_MIN {
        keys.insert(prefixed('>', &chars));
    }
    if chars.len() + 1 >= FORGIVEN_CHARS_MIN {
        keys.extend(without_one(&chars));
    }
    keys
}

/// The letters that words begin with which are kept under `key`. `None`: they are kept there for another reason.
pub fn beginning(key: &str) -> Option<&str> {
    key.strip_prefix('>')
}

fn without_one(chars: &[char]) -> impl Iterator<Item = String> {
    (0..chars.len()).map(|left_out| {
        let kept = chars.iter().enumerate();
        let kept = kept.filter(|(at, _)| *at != left_out).map(|(_, c)| *c);
        std::iter::once('-').chain(kept).collect()
    })
}

fn prefixed(kind: char, chars: &[char]) -> String {
    std::iter::once(kind).chain(chars.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_words() {
        let of = |text: &str| words(text).collect::<Vec<_>>();
        assert_eq!(
            of("Goals per-Match, 100%_sure!"),
            ["goals", "per", "match", "100", "sure"]
        );
        assert_eq!(of("ÉTÉ à Zürich"), ["été", "à", "zürich"]);
        assert_eq!(of(" -- "), Vec::<String>::new());
        assert_eq!(of(&"x".repeat(40)), ["x".repeat(32)]);
    }

    #[test]
    fn one_typing_error_is_forgiven() {
        for (typed, word, meant) in [
            ("goals", "goals", Some(Match::Same)),
            ("goa", "goals", Some(Match::Begins)),
            ("g", "goals", None),
            ("gols", "goals", Some(Match::Mistyped)),
            ("goalls", "goals", Some(Match::Mistyped)),
            ("gaols", "goals", Some(Match::Mistyped)),
            ("goels", "goals", Some(Match::Mistyped)),
            ("goalz", "goals", Some(Match::Mistyped)),
            ("oals", "goals", Some(Match::Mistyped)),
            ("gaosl", "goals", None),
            ("gol", "goals", None),
            ("gol", "goal", Some(Match::Mistyped)),
            ("cat", "cut", None),
            ("züirch", "zürich", Some(Match::Mistyped)),
        ] {
            assert_eq!(near(typed, word), meant, "{typed} {word}");
        }
    }

    /// Whatever is near is found by what it is kept under, tried with all short words of three letters.
    #[test]
    fn what_is_near_is_looked_up() {
        let mut all = vec![String::new()];
        for _ in 0..5 {
            let longer = all
                .iter()
                .flat_map(|word| ['a', 'b', 'c'].map(|c| format!("{word}{c}")));
            let longer: BTreeSet<String> = longer.collect();
            all.extend(longer);
        }
        let all: BTreeSet<String> = all.into_iter().filter(|word| !word.is_empty()).collect();
        for typed in &all {
            let keys = looked_up(typed);
            for word in &all {
                if near(typed, word).is_some() {
                    assert!(!keys.is_disjoint(&kept_under(word)), "{typed} {word}");
                }
            }
        }
    }
}
