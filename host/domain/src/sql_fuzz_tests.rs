//! What holds for any text at all: it is looked at in a moment, nothing panics, and nothing is changed that
//! is no placeholder.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const ALL: [Dialect; 7] = [
    Dialect::Postgres,
    Dialect::MySql,
    Dialect::Sqlite,
    Dialect::ClickHouse,
    Dialect::BigQuery,
    Dialect::MsSql,
    Dialect::Generic,
];

/// How long any statement may be looked at. A parser would have taken longer than the universe is old for the
/// worst of these; this takes some milliseconds in a debug build, and the rest is for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(2);

/// A shape, repeated up to `depth` times or to the largest statement.
fn nested(begin: &str, open: &str, middle: &str, close: &str, depth: usize) -> String {
    let room = SQL_BYTES_MAX - begin.len() - middle.len();
    let depth = depth.min(room / (open.len() + close.len()));
    format!(
        "{begin}{}{middle}{}",
        open.repeat(depth),
        close.repeat(depth)
    )
}

fn takes_a_moment(sql: &str) {
    assert!(sql.len() <= SQL_BYTES_MAX);
    for dialect in ALL {
        let started = Instant::now();
        let _ = check(dialect, sql, &[]);
        let elapsed = started.elapsed();
        let beginning = clipped(sql);
        assert!(elapsed < PATIENCE, "{dialect:?} {beginning:?}: {elapsed:?}");
    }
}

#[test]
fn no_shape_of_a_statement_takes_long() {
    for (open, middle, close) in [
        ("POSITION(", "1 IN 2", " IN 3)"),
        ("POSITION(", "", ""),
        ("(", "1", ")"),
        ("(", "", ""),
        ("(SELECT ", "1", ")"),
        ("CASE WHEN ", "1", " END"),
        ("[", "1", "]"),
        ("[", "", ""),
        ("/*", " ", "*/"),
        ("/*", "", ""),
        ("$a$", "", ""),
        ("$a", "", ""),
        ("$", "", ""),
        ("$$a", "", ""),
        ("'", "", ""),
        ("''", "", ""),
        ("\"", "", ""),
        ("`", "", ""),
        ("\\", "'", ""),
        ("'\\", "", ""),
        ("E'\\", "", ""),
        ("E''\n", "", ""),
        ("E'' --\n", "", ""),
        ("E''\n\n", "", ""),
        ("--", "", ""),
        ("--\n", "", ""),
        ("-- \r", "", ""),
        ("#", "", ""),
        ("# \n", "", ""),
        (":a ", "", ""),
        (":a", "", ""),
        (": ", "", ""),
        ("::", "", ""),
        (";", "", ""),
        ("?", "", ""),
        ("@", "", ""),
        ("+1", "", ""),
        ("-", "", ""),
        ("a.", "b", ""),
        ("NOT ", "1", ""),
        ("a ", "", ""),
        ("DELETE ", "", ""),
        ("é", "", ""),
        ("\u{2003}", "", ""),
        ("\n", "", ""),
        ("1", "", ""),
        ("{", "1", "}"),
        ("WITH x AS (", "SELECT 1", ") SELECT 1"),
    ] {
        for depth in [46, 20_000, usize::MAX] {
            takes_a_moment(&nested("SELECT ", open, middle, close, depth));
        }
        takes_a_moment(&nested("", open, middle, close, usize::MAX));
    }
    // A long delimiter, and nearly it over and over.
    let tag = "a".repeat(1_000);
    let begin = format!("SELECT ${tag}$");
    takes_a_moment(&nested(&begin, &format!("${tag} "), "", "", usize::MAX));
    let names: Vec<String> = (0..PLACEHOLDERS_MAX).map(|n| format!(":p{n},")).collect();
    takes_a_moment(&nested("SELECT ", &names.concat(), "", "", usize::MAX));
}

/// Deep is the engine's business: it has a stack of its own to guard.
#[test]
fn what_nests_deeply_is_accepted() {
    for depth in [46, 20_000] {
        let sql = nested("SELECT ", "(", "1", ")", depth);
        check(Dialect::Postgres, &sql, &[]).unwrap();
    }
    let sql = nested("SELECT ", "POSITION('a' IN ", "'b'", "::text)", 46);
    check(Dialect::Postgres, &sql, &[]).unwrap();
}

/// Pieces of SQL in which a placeholder must never be seen.
fn opaque() -> impl Strategy<Value = String> {
    let inner = "[a-z :é]{0,12}";
    prop_oneof![
        inner.prop_map(|s| format!("'{s}'")),
        inner.prop_map(|s| format!("'{s}''{s}'")),
        inner.prop_map(|s| format!("\"x{s}\"")),
        inner.prop_map(|s| format!("/*{s}*/")),
        inner.prop_map(|s| format!("-- {s}\n")),
        "[a-z]{1,5}".prop_map(|s| format!("{s}::text")),
    ]
}

fn piece() -> impl Strategy<Value = (String, Option<String>)> {
    prop_oneof![
        opaque().prop_map(|s| (s, None)),
        "p[a-z0-9_]{0,6}".prop_map(|s| (format!(":{s}"), Some(s))),
        "[a-df-h]{1,2}|[0-9]{1,4}|\\(a\\)|,|=".prop_map(|s| (s, None)),
    ]
}

/// What begins and ends things in one engine or another.
fn lexical_pieces(count: usize) -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "'", "''", "\"", "`", "[", "]", "(", ")", "\\", "$", "$a$", "$$", "$1", "--", "-- ", "#",
        "/*", "*/", "\n", "\r", " ", ":", ":a", ":b1", "::", ":=", "?", "@", "@@", "e", "E'",
        "U&'", "x", "r", "1", ".5", "1e5", "é", "\u{a0}", ",", "=", "a", "a$", "_", "!", "SELECT",
        "INTO", "FORMAT",
    ]);
    prop::collection::vec(pieces, 0..count).prop_map(|pieces| pieces.concat())
}

/// Walks along both texts, and says where they differ in more than placeholders. Answers the names replaced.
fn names_replaced<'a>(
    dialect: Dialect,
    sql: &'a str,
    prepared: &Prepared,
) -> Result<Vec<&'a str>, String> {
    let (mut rest, mut out) = (sql, prepared.text.as_str());
    let mut names = Vec::new();
    loop {
        let same = rest
            .char_indices()
            .zip(out.chars())
            .find(|((_, was), is)| was != is)
            .map_or(rest.len().min(out.len()), |((at, _), _)| at);
        (rest, out) = (&rest[same..], &out[same..]);
        if out.is_empty() {
            return Ok(names);
        }
        // `x:name` is written with a blank.
        out = out.strip_prefix(' ').unwrap_or(out);
        let name = rest.strip_prefix(':').ok_or_else(|| out.to_owned())?;
        let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let (name, after) = name.split_at(name.find(ends).unwrap_or(name.len()));
        let numbers = (1..=prepared.bindings.len()).rev();
        let mut placeholders = numbers.map(|number| dialect.placeholder(number));
        let placeholder = placeholders.find(|placeholder| out.starts_with(placeholder));
        out = &out[placeholder.ok_or_else(|| out.to_owned())?.len()..];
        rest = after;
        names.push(name);
    }
}

proptest! {
    #[test]
    fn exactly_the_placeholders_are_rewritten(pieces in prop::collection::vec(piece(), 1..20)) {
        let sql = pieces.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(" ");
        let names: Vec<&str> = pieces.iter().filter_map(|(_, name)| name.as_deref()).collect();
        let expected = pieces.iter().map(|(text, name)| if name.is_some() { "?" } else { text }).collect::<Vec<_>>().join(" ");
        let prepared = prepare(Dialect::MySql, &format!("SELECT {sql}")).unwrap();
        prop_assert_eq!(&prepared.bindings, &names);
        prop_assert_eq!(prepared.text, format!("SELECT {expected}"));
    }

    #[test]
    fn a_statement_without_placeholders_is_not_touched(pieces in prop::collection::vec(opaque(), 0..12)) {
        let sql = format!("SELECT {} 1", pieces.join(" "));
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            let once = prepare(dialect, &sql).unwrap().text;
            prop_assert_eq!(&once, &sql);
            prop_assert_eq!(prepare(dialect, &once).unwrap().text, once);
        }
    }

    #[test]
    fn no_input_makes_it_panic(sql in "\\PC{0,60}", tail in "[-'\":;$?@#/*\\[\\]\n a-z0-9]{0,40}") {
        for dialect in ALL {
            let _ = prepare(dialect, &sql);
            let _ = prepare(dialect, &format!("SELECT {tail}"));
            let _ = prepare(dialect, &format!("SELECT {sql}{tail}"));
        }
    }

    /// Whatever is accepted leaves as it came, but for the placeholders, a blank before one, and what stands
    /// behind the statement.
    #[test]
    fn not_a_byte_is_changed_outside_of_placeholders(tail in lexical_pieces(30)) {
        let sql = format!("SELECT {tail}");
        for dialect in ALL {
            let Ok(prepared) = prepare(dialect, &sql) else { continue };
            let names = names_replaced(dialect, &sql, &prepared);
            prop_assert!(names.is_ok(), "{:?} {:?}: {:?}", dialect, sql, prepared);
            let names = names.unwrap_or_default();
            prop_assert!(names.iter().all(|name| prepared.bindings.iter().any(|known| known == name)));
            prop_assert!(prepared.bindings.iter().all(|name| names.contains(&name.as_str())));
        }
    }

    /// Tokens cover the text, whatever it is.
    #[test]
    fn nothing_is_skipped(sql in lexical_pieces(30)) {
        for dialect in ALL {
            let Ok(tokens) = lexer::tokens(dialect, &sql) else { continue };
            let texts: Vec<&str> = tokens.iter().map(|token| token.text(&sql)).collect();
            prop_assert_eq!(texts.concat(), sql.as_str());
            prop_assert!(texts.iter().all(|text| !text.is_empty()));
        }
    }

    #[test]
    fn a_quoted_name_is_opaque(name in "[a-z\"`\\]\\\\ ;:]{1,12}") {
        for dialect in ALL {
            let sql = format!("SELECT {}", dialect.quote(&name));
            // What a generic engine makes of a backslash before a quote is not known.
            let Ok(tokens) = lexer::tokens(dialect, &sql) else {
                prop_assert!(dialect == Dialect::Generic && name.contains('\\'));
                continue;
            };
            prop_assert!(tokens[2..].iter().all(|token| token.kind == Kind::Quoted), "{:?}", sql);
        }
    }
}

proptest! {
    // Each is as long as a statement may be, for seven engines.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_mixture_takes_long(pieces in lexical_pieces(12)) {
        let times = (SQL_BYTES_MAX - 7) / pieces.len().max(1);
        takes_a_moment(&format!("SELECT {}", pieces.repeat(times)));
    }
}
