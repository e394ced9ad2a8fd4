//! What is told of a source that was asked for some columns and answers with others: every caller that it did, the owner also which. What the
//! source calls its columns is the owner's to know, since a page may publish them under other names, or not at all.

use std::collections::HashSet;

use souk_sandbox::{Blame, Column, Fault, FaultKind};

use crate::failure::Cause;

/// As many names are told of those that are missing, and of those that nobody asked for: a table may have thousands.
const NAMES_MAX: usize = 10;
/// Of a name: those of a stranger's result have no bound of their own.
const NAME_CHARS_MAX: usize = 64;

/// The source was asked for columns of these names, in this order.
pub(super) fn other_columns<Name: AsRef<str>>(asked: &[Name], answered: &[Column]) -> Cause {
    Fault::new(
        Blame::Source,
        FaultKind::BadAnswer,
        "the source answered with other columns than the published ones",
    )
    .detail(differences(asked, answered))
    .into()
}

/// To some engines `ID` and `id` are one column.
fn differences<Name: AsRef<str>>(asked: &[Name], answered: &[Column]) -> String {
    let key = |name: &str| name.to_ascii_lowercase();
    let asked: Vec<&str> = asked.iter().map(AsRef::as_ref).collect();
    let answered: Vec<&str> = answered.iter().map(|column| column.name.as_str()).collect();
    let asked_for: HashSet<String> = asked.iter().map(|name| key(name)).collect();
    let came: HashSet<String> = answered.iter().map(|name| key(name)).collect();
    let missing = asked.iter().filter(|name| !came.contains(&key(name)));
    let missing: Vec<&str> = missing.copied().collect();
    // Where a quoted name that no column has is a text, its column is called as it is written: that one is missing, and nothing came in its place.
    let is_asked_for = |name: &str| asked_for.contains(&key(name.trim_matches('"')));
    let extra = answered.iter().filter(|name| !is_asked_for(name));
    let extra: Vec<&str> = extra.copied().collect();
    let (is, was) = (["is", "are"], ["was", "were"]);
    let told = [
        listed(&missing).map(|names| format!("{names} {} missing", of(is, &missing))),
        listed(&extra).map(|names| format!("{names} {} not asked for", of(was, &extra))),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    match told.is_empty() {
        true => "they came in another order, or more than once".to_owned(),
        false => told.join("; "),
    }
}

/// The form of a verb for so many.
fn of(forms: [&'static str; 2], names: &[&str]) -> &'static str {
    forms[usize::from(names.len() > 1)]
}

/// The first names, and how many more there are. `None`: there are none.
fn listed(names: &[&str]) -> Option<String> {
    let shown = names.iter().take(NAMES_MAX);
    let shown = shown.map(|name| match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("\"{}…\"", &name[..end]),
        None => format!("\"{name}\""),
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => None,
        count if count > NAMES_MAX => Some(format!("{shown} and {} more", count - NAMES_MAX)),
        _ => Some(shown),
    }
}

#[cfg(test)]
mod tests {
    use souk_sandbox::ColumnKind;

    use super::*;

    fn told(asked: &[&str], answered: &[&str]) -> String {
        let column = |name: &&str| Column {
            name: (*name).to_owned(),
            kind: ColumnKind::Text,
            nullable: true,
            native: "text".to_owned(),
        };
        let answered: Vec<Column> = answered.iter().map(column).collect();
        let fault = match other_columns(asked, &answered) {
            Cause::Fault(fault) => fault,
            other => panic!("{other}"),
        };
        assert!(!fault.message.contains('"'), "{}", fault.message);
        fault.detail.expect("what differs")
    }

    /// Which are missing and which nobody asked for, each by its name.
    #[test]
    fn columns_that_differ_are_named() {
        let cases: [(&[&str], &[&str], &str); 6] = [
            (&["id", "name"], &["id"], "\"name\" is missing"),
            (&["id", "name"], &[], "\"id\", \"name\" are missing"),
            (&["id"], &["ID", "secret"], "\"secret\" was not asked for"),
            (
                &["id", "name"],
                &["id", "title"],
                "\"name\" is missing; \"title\" was not asked for",
            ),
            (&["id", "name"], &["id", "\"name\""], "\"name\" is missing"),
            (
                &["id", "name"],
                &["name", "id"],
                "they came in another order, or more than once",
            ),
        ];
        for (asked, answered, expected) in cases {
            assert_eq!(told(asked, answered), expected);
        }
    }

    /// However many they are, and however long their names.
    #[test]
    fn what_is_named_is_bounded() {
        let names: Vec<String> = (0..2_000)
            .map(|number| format!("{number}{}", "é".repeat(1_000)))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let said = told(&["id"], &names);
        assert!(said.starts_with("\"id\" is missing; \"0é"), "{said}");
        assert!(
            said.ends_with("…\" and 1990 more were not asked for"),
            "{said}"
        );
        assert!(said.chars().count() < 1_000, "{}", said.len());
    }
}
