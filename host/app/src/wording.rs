//! What serde says of a wrong value, in words that are ours. Knows no field and no type by name: a client should not read those of the code.

/// `must be an integer` for `invalid type: string "1", expected i64`. What is not serde's own stays as it is.
pub fn plain(text: &str) -> String {
    let text = text.split(" at line ").next().unwrap_or(text);
    if let Some(rest) = text.strip_prefix("unknown variant ") {
        let names: Vec<&str> = rest.split('`').skip(1).step_by(2).skip(1).collect();
        return match names.as_slice() {
            [] => "is not one of the words that are possible".to_owned(),
            [one] => format!("must be {one}"),
            names => format!("must be one of {}", names.join(", ")),
        };
    }
    if text == "expected value" {
        return "is not one of the words that are possible".to_owned();
    }
    if text.starts_with("duplicate field ") {
        return "may be given only once".to_owned();
    }
    let is_serde = ["invalid type: ", "invalid value: ", "invalid length "]
        .iter()
        .any(|prefix| text.starts_with(prefix));
    match text.rsplit_once(", expected ") {
        Some((_, expected)) if is_serde => format!("must be {}", named(expected)),
        _ => text.to_owned(),
    }
}

/// A type of Rust as a type of JSON.
fn named(expected: &str) -> String {
    let integer = |min: i128, max: i128| format!("an integer from {min} to {max}");
    match expected {
        "i64" | "i128" | "isize" => "an integer".to_owned(),
        "u64" | "u128" | "usize" => "an integer that is not negative".to_owned(),
        "i8" => integer(i8::MIN.into(), i8::MAX.into()),
        "i16" => integer(i16::MIN.into(), i16::MAX.into()),
        "i32" => integer(i32::MIN.into(), i32::MAX.into()),
        "u8" => integer(0, u8::MAX.into()),
        "u16" => integer(0, u16::MAX.into()),
        "u32" => integer(0, u32::MAX.into()),
        "f32" | "f64" | "a JSON number" => "a number".to_owned(),
        "a string" | "a borrowed string" | "str" | "a character" | "string or map" => {
            "a string".to_owned()
        }
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "an array".to_owned(),
        "unit" | "null" => "null".to_owned(),
        "a map" => "an object".to_owned(),
        _ if expected.starts_with("struct ") => "an object".to_owned(),
        _ if expected.starts_with("a tuple") || expected.starts_with("an array of length") => {
            "an array of another length".to_owned()
        }
        _ if expected.contains("enum ") || expected == "variant identifier" => {
            "one of the words that are possible".to_owned()
        }
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Thing {
        text: String,
        count: i64,
        small: u16,
        flag: bool,
        list: Vec<i64>,
        word: Word,
        part: Option<Box<Thing>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Asc,
        Desc,
    }

    /// Whatever is wrong, no type of Rust is named.
    #[test]
    fn no_type_of_the_code_is_named() {
        let right =
            json!({"text": "x", "count": 1, "small": 1, "flag": true, "list": [], "word": "asc"});
        assert!(serde_json::from_value::<Thing>(right.clone()).is_ok());
        for (member, value, words) in [
            ("text", json!(1), "must be a string"),
            ("count", json!("1"), "must be an integer"),
            ("count", json!(1.5), "must be an integer"),
            ("small", json!(-1), "must be an integer from 0 to 65535"),
            ("flag", json!("yes"), "must be true or false"),
            ("list", json!({}), "must be an array"),
            ("list", json!([null]), "must be an integer"),
            ("word", json!("up"), "must be one of asc, desc"),
            ("word", json!(1), "must be a string"),
            ("part", json!(1), "must be an object"),
        ] {
            let mut wrong = right.clone();
            wrong[member] = value.clone();
            let error = serde_json::from_value::<Thing>(wrong).unwrap_err();
            assert_eq!(
                plain(&error.to_string()),
                words,
                "{member} = {value}: {error}"
            );
        }
        assert_eq!(plain("is too long"), "is too long");
    }
}
