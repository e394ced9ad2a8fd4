//! What a statement is, in one dialect and another.

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
        let is_open = |text: &str, dialect| Tokens::of(text, dialect).any(|token| token.is_err());
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
