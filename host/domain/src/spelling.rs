//! Names that look like others: a misspelling is refused where what nobody knows is not.

/// Whatever has a longer name is no misspelling.
const NAME_BYTES_MAX: usize = 64;

/// `minGroupSize` and `min_groups_size` are near to `min_group_size`. Of three letters each is as near to many words.
pub fn is_near(name: &str, known: &str) -> bool {
    if name.len() > NAME_BYTES_MAX {
        return false;
    }
    let (name, known) = (letters(name), letters(known));
    let far = match known.len() {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    name.len().abs_diff(known.len()) <= far && strsim::osa_distance(&name, &known) <= far
}

fn letters(name: &str) -> String {
    let letters = name.chars().filter(|letter| !['_', '-'].contains(letter));
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearness_is_of_letters() {
        for (name, known) in [
            ("minGroupSize", "min_group_size"),
            ("min-groups-size", "min_group_size"),
            ("privacy_units_column", "privacy_unit_column"),
            ("X", "x"),
            ("tiles", "titles"),
            ("marks", "mark"),
        ] {
            assert!(is_near(name, known), "{name} {known}");
        }
        for (name, known) in [
            ("z", "x"),
            ("type", "name"),
            ("kind", "mark"),
            ("descending", "direction"),
            ("row_estimate", "description"),
            ("", "x"),
        ] {
            assert!(!is_near(name, known), "{name} {known}");
        }
        assert!(!is_near(&"min_group_size".repeat(1_000), "min_group_size"));
    }
}
