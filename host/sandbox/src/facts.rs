//! What a connector says of its source's types that no column tells: abilities of two parts, as `singles:real`.
//!
//! They are kept, and looked up; what follows from one is nobody's business here. `docs/connectors.md` says what each means.

use std::sync::Arc;

/// Of a type's name, or of a code of errors.
const NAME_BYTES_MAX: usize = 64;

/// What can be said of a type, or of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Its floats have 32 bits.
    Singles,
    /// Whole numbers of more digits than the source's decimals have.
    Wide,
    /// Nothing may be sorted by it.
    Unsorted,
    /// It leaves as a text, and may be compared with none.
    Uncompared,
    /// By this code of errors the source says that it has no such comparison.
    NoSuchOperator,
}

impl Fact {
    const ALL: [Fact; 5] = [
        Fact::Singles,
        Fact::Wide,
        Fact::Unsorted,
        Fact::Uncompared,
        Fact::NoSuchOperator,
    ];

    fn word(self) -> &'static str {
        match self {
            Fact::Singles => "singles",
            Fact::Wide => "wide",
            Fact::Unsorted => "unsorted",
            Fact::Uncompared => "uncompared",
            Fact::NoSuchOperator => "no-such-operator",
        }
    }

    /// Which one an ability is, and of what.
    pub(crate) fn of(ability: &str) -> Option<(Fact, &str)> {
        let (word, name) = ability.split_once(':')?;
        let fact = Fact::ALL.into_iter().find(|fact| fact.word() == word)?;
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len());
        is_name.then_some((fact, name))
    }
}

/// All that one connector says.
#[derive(Clone, Debug, Default)]
pub struct Facts(Arc<[(Fact, Box<str>)]>);

impl Facts {
    pub fn of<'a>(abilities: impl IntoIterator<Item = &'a str>) -> Facts {
        let facts = abilities.into_iter().filter_map(Fact::of);
        let owned = facts.map(|(fact, name)| (fact, Box::<str>::from(name)));
        Facts(owned.collect())
    }

    /// Whether the connector says it of `name`. Where it says it of nothing, those hold that are `usual`: its dialect's.
    pub fn has(&self, fact: Fact, name: &str, usual: &[&str]) -> bool {
        let is_it = |one: &str| one.eq_ignore_ascii_case(name);
        let mut said = self.0.iter().filter(|(about, _)| *about == fact).peekable();
        match said.peek().is_some() {
            true => said.any(|(_, one)| is_it(one)),
            false => usual.iter().any(|one| is_it(one)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a connector says of a kind stands in the place of what is usual, and of other kinds it changes nothing.
    #[test]
    fn what_is_said_stands_in_the_place_of_what_is_usual() {
        let facts = Facts::of(["schema", "singles:float", "singles:Real4", "wide:"]);
        assert!(facts.has(Fact::Singles, "FLOAT", &["real"]));
        assert!(facts.has(Fact::Singles, "real4", &[]));
        assert!(!facts.has(Fact::Singles, "real", &["real"]));
        assert!(facts.has(Fact::Wide, "hugeint", &["hugeint"]));
        assert!(!facts.has(Fact::Wide, "", &[]));
        assert!(!Facts::default().has(Fact::Singles, "float", &["real"]));
    }

    /// Every fact has a word of its own, and a name that is too long is none.
    #[test]
    fn facts_are_abilities_of_two_parts() {
        for fact in Fact::ALL {
            let ability = format!("{}:name", fact.word());
            assert_eq!(Fact::of(&ability), Some((fact, "name")));
        }
        let long = format!("singles:{}", "x".repeat(NAME_BYTES_MAX + 1));
        for ability in ["singles", "singles:", "double:real", long.as_str()] {
            assert_eq!(Fact::of(ability), None, "{ability}");
        }
    }
}
