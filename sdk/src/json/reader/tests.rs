//! What is read by hand is what serde_json reads, and what is wrong is wrong.

use super::*;
use crate::testing::spoilt;

/// A document that is a cell, and how it is written.
fn cell(document: &str, is_raw: bool) -> Result<String> {
    let mut from = Reader::of(document);
    let cell = from.cell(is_raw, |cell| match cell {
        Written::Null => "null".to_owned(),
        Written::Truth(value) => format!("truth {value}"),
        Written::Whole(value) => format!("whole {value}"),
        Written::Number(digits) => format!("number {digits}"),
        Written::Text(text) => format!("text {text}"),
        Written::Raw(raw) => format!("raw {}", raw.get()),
    })?;
    from.end().map(|()| cell)
}

/// What is read here by hand is what serde_json reads, wherever a text ends and whatever stands in it.
#[test]
fn texts_are_what_they_are_to_serde() {
    let parts = [
        "a",
        "ä",
        "日",
        "😀",
        "\\\"",
        "\\\\",
        "\\n",
        "\\u00e9",
        "\\ud83d\\ude00",
        "/",
        " ",
        "{",
        "\\x",
        "\\ud800",
        "\t",
        "\u{1}",
        "\u{1f}",
        "\u{7f}",
        "\u{80}",
        "\\",
        "\"",
    ];
    for before in 0..19 {
        for part in parts {
            for after in ["", "z", "\\t and more of it", "ö"] {
                let text = format!("\"{}{part}{after}\"", "x".repeat(before));
                let wanted = serde_json::from_str::<String>(&text);
                let read = cell(&text, false);
                match wanted {
                    Ok(wanted) => assert_eq!(read.unwrap(), format!("text {wanted}")),
                    Err(_) => assert!(read.is_err(), "{text}"),
                }
            }
        }
    }
    for unended in ["\"", "\"a", "\"a\\", "\"a\\\"", "\"12345678", "\"1234567\\"] {
        assert!(cell(unended, false).is_err(), "{unended}");
    }
}

/// Whole numbers of every length are what the standard library reads, whatever stands behind them, and wherever the document ends.
#[test]
fn whole_numbers_of_every_length_are_read() {
    for length in 1..=18 {
        for first in ["1", "9", "-1", "-7"] {
            let number = format!("{first}{}", &"0918273645509182736"[..length - 1]);
            let wanted = number.parse::<i64>().unwrap();
            for behind in [
                "",
                " ",
                ",1",
                "]        ",
                "/       ",
                ":       ",
                "\u{80}       ",
                "           ",
            ] {
                let document = format!("{number}{behind}");
                let read = Reader::of(&document).cell(false, |cell| match cell {
                    Written::Whole(value) => Some(value),
                    _ => None,
                });
                assert_eq!(read.unwrap(), Some(wanted), "{document}");
            }
            let fraction = format!(
                "[{number}.{number}]",
                number = number.trim_start_matches('-')
            );
            let mut from = Reader::of(&fraction);
            from.begin_list("a list").unwrap();
            let read = from.cell(false, |cell| matches!(cell, Written::Number(text) if text == &fraction[1..fraction.len() - 1]));
            assert!(read.unwrap(), "{fraction}");
        }
    }
}

/// Numbers keep their digits, and what is no number to serde_json is none here.
#[test]
fn numbers_keep_their_digits() {
    let nines = "9".repeat(18);
    let whole_nines = format!("whole {nines}");
    for (written, wanted) in [
        ("0", "whole 0"),
        ("-0", "number -0"),
        ("7", "whole 7"),
        ("-10", "whole -10"),
        (nines.as_str(), whole_nines.as_str()),
        ("9223372036854775807", "whole 9223372036854775807"),
        ("-9223372036854775808", "whole -9223372036854775808"),
        ("9223372036854775808", "number 9223372036854775808"),
        ("18446744073709551616", "number 18446744073709551616"),
        ("0.10", "number 0.10"),
        ("-0.0", "number -0.0"),
        ("1e5", "number 1e5"),
        ("1.50E-07", "number 1.50E-07"),
        ("1e+400", "number 1e+400"),
        (" \n\r\t1 ", "whole 1"),
    ] {
        assert_eq!(cell(written, false).unwrap(), wanted);
    }
    for wrong in [
        "", "-", "01", "-01", "00", "1.", ".5", "1e", "1e+", "1.e5", "+1", "0x1", "1 2", "1a",
        "--1", "１", "NaN", "nul", "null1", "True", "truth", "[", "{}",
    ] {
        assert!(cell(wrong, false).is_err(), "{wrong}");
        let by_serde = serde_json::from_str::<IgnoredAny>(wrong);
        assert!(by_serde.is_err() || wrong == "{}", "{wrong}");
    }
}

#[test]
fn cells_are_told_as_they_are_wanted() {
    for (written, plain, as_it_stands) in [
        ("null", "null", "null"),
        ("true", "truth true", "raw true"),
        (" false", "truth false", "raw false"),
        ("\"\"", "text ", "raw \"\""),
        ("-1", "whole -1", "raw -1"),
    ] {
        assert_eq!(cell(written, false).unwrap(), plain);
        assert_eq!(cell(written, true).unwrap(), as_it_stands);
    }
    assert_eq!(
        cell(r#" [1, {"a":"]"}] "#, true).unwrap(),
        r#"raw [1, {"a":"]"}]"#
    );
    assert!(cell("[1", true).is_err() && cell("", true).is_err());
}

/// What is passed over is what serde_json passes over, however it is written, and wherever a character is another one.
#[test]
fn what_is_passed_over_is_a_value() {
    let documents = [
        r#"{"fields":[{"name":"id","type":"INTEGER"},{"mode":"a\"b\\"}],"n":[[],{}]}"#,
        r#" [ 1 , -0.5e+7 , true , false , null , { } , [ ] , "\u00e9\n" ] "#,
        "\"plain text of some length\"",
        "-12.50",
        "null",
    ];
    let is_passed = |document: &str| {
        let mut from = Reader::of(document);
        from.skip().and_then(|()| from.end()).is_ok()
    };
    let mut good = 0;
    let mut look = |document: &str| {
        let is_good = serde_json::from_str::<IgnoredAny>(document).is_ok();
        assert_eq!(is_passed(document), is_good, "{document}");
        good += usize::from(is_good);
    };
    for document in documents {
        look(document);
        for at in 0..document.len() {
            look(&document[at..]);
        }
        for spoilt in spoilt(document, "{}[]\",:\\0-.eEtn \u{1}é") {
            look(&spoilt);
        }
    }
    assert!(good > 500, "{good}");
    for depth in [1, 63, 64, 65, 200] {
        let (begin, end) = (r#"[{"a":"#.repeat(depth), "}]".repeat(depth));
        assert!(is_passed(&format!("{begin}1{end}")), "{depth}");
        assert!(!is_passed(&format!("{begin}1{end}]")) && !is_passed(&begin));
        assert!(!is_passed(&format!(
            "{begin}1{}",
            end.replacen('}', "]", 1)
        )));
    }
}

/// A value comes as it stands, one that is known without being read; nothing is known by its beginning alone.
#[test]
fn values_come_as_they_stand() {
    let mut from = Reader::of(r#" {"a": [1]} "#);
    assert_eq!(from.raw().unwrap(), r#"{"a": [1]}"#);
    from.end().unwrap();
    for (document, known, is_known) in [
        (r#" {"a":1},2"#, r#"{"a":1}"#, true),
        ("[1] ", "[1]", true),
        (r#"{"a":1}"#, r#"{"a":2}"#, false),
        (r#"{"a":1}"#, r#"{"a":1"#, false),
        (r#"{"a":1"#, r#"{"a":1}"#, false),
        ("12", "1", false),
        ("\"é\"", "\"é\"", false),
        ("12", "", false),
    ] {
        let mut from = Reader::of(document);
        let value = from.raw_like(known.as_bytes());
        assert_eq!(value, is_known.then_some(known), "{document}");
        let left = &document[from.at..];
        assert!(is_known == (left.len() < document.trim_start().len()));
    }
}

/// Lists and objects are gone through in their order, and have no more commas than they need.
#[test]
fn lists_and_objects_are_gone_through() {
    let read = |document: &str| -> Result<String> {
        let (mut from, mut seen) = (Reader::of(document), String::new());
        from.object(|name, value| {
            seen.push_str(name);
            match name {
                "list" => value.list("numbers", |element| {
                    seen.push_str(&element.read::<u8>()?.to_string());
                    Ok(())
                }),
                _ => value.skip(),
            }
        })?;
        from.end().map(|()| seen)
    };
    for (document, wanted) in [
        ("{}", ""),
        (" { } ", ""),
        (r#"{"a":{"b":[]},"c":null}"#, "ac"),
        (r#" { "list" : [ 1 , 2 ] , "\u0061" : "}" } "#, "list12a"),
        (r#"{"list":[]}"#, "list"),
    ] {
        assert_eq!(read(document).unwrap(), wanted);
    }
    for (document, why) in [
        ("", "EOF"),
        ("[]", "a list in place of an object"),
        ("\"secret\"", "a text in place of an object"),
        ("{\"list\":7}", "a number in place of numbers"),
        ("{\"list\":[1,]}", "expected value"),
        ("{\"list\":[,1]}", "expected value"),
        ("{\"list\":[1 2]}", "a number in place of a comma"),
        ("{\"list\":[1", "EOF"),
        ("{\"a\":1,}", "in place of a name"),
        ("{\"a\" 1}", "a number in place of a colon"),
        ("{a:1}", "in place of a name"),
        ("{\"a\":}", "expected value"),
        ("{\"a\":1}}", "trailing"),
    ] {
        let error = read(document).unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("secret"), "{error}");
    }
    let mut from = Reader::of(r#"{"a":1 , "b":2}"#);
    assert!(!from.passes(b"{\"b") && !from.passes(&[b' '; 99]));
    assert!(from.passes(b"{\"a\":") && from.read::<u8>().unwrap() == 1);
    let mut left = String::new();
    let read = from.members_left(|name, value| {
        left.push_str(name);
        value.skip()
    });
    assert!(read.and_then(|()| from.end()).is_ok() && left == "b");
    let mut from = Reader::of("null");
    assert!(!from.is_list() && from.null().unwrap() && !from.null().unwrap());
    assert!(Reader::of(" [").is_list());
}
