use proptest::prelude::*;

use super::*;

fn define(name: &str, kind: &str) -> Parameter {
    Parameter::new("parameters[0]", &definition(name, kind)).unwrap()
}

fn definition<'a>(name: &'a str, kind: &'a str) -> Definition<'a> {
    Definition {
        name,
        kind,
        required: None,
        default: None,
        allowed: Vec::new(),
        minimum: None,
        maximum: None,
    }
}

fn one(kind: &str, raw: Raw<'_>) -> Result<Value, Vec<FieldError>> {
    bind(&[define("p", kind)], &[("p", raw)]).map(|values| values[0].clone())
}

#[test]
fn json_is_strict_about_types() {
    assert_eq!(one("integer", Raw::Integer(3)), Ok(Value::Integer(3)));
    assert_eq!(one("integer", Raw::Number(3.0)), Ok(Value::Integer(3)));
    assert_eq!(one("number", Raw::Integer(3)), Ok(Value::Number(3.0)));
    assert_eq!(one("date", Raw::Text("1970-01-02")), Ok(Value::Date(1)));
    assert_eq!(one("date", Raw::Text("1969-12-31")), Ok(Value::Date(-1)));
    assert_eq!(
        one("timestamp", Raw::Text("1970-01-01T01:00:01+01:00")),
        Ok(Value::Timestamp(1_000_000))
    );
    for (kind, raw) in [
        ("integer", Raw::Text("3")),
        ("integer", Raw::Number(3.5)),
        ("number", Raw::Text("3")),
        ("string", Raw::Integer(3)),
        ("boolean", Raw::Integer(1)),
        ("boolean", Raw::Text("true")),
        ("date", Raw::Text("2026-02-30")),
        ("date", Raw::Text("2026-01-01T00:00:00Z")),
        ("timestamp", Raw::Text("2026-01-01")),
        ("timestamp", Raw::Text("2026-01-01T00:00:00")),
        ("string", Raw::Other),
        ("string", Raw::Text("a\0b")),
    ] {
        assert_eq!(
            one(kind, raw).unwrap_err()[0].code,
            "invalid_type",
            "{kind} {raw:?}"
        );
    }
}

/// A number keeps its digits, however it is sent. What a float says is one, also where it was written longer.
#[test]
fn a_number_keeps_its_digits() {
    let decimal = |digits: &str| Ok(Value::Decimal(digits.to_owned()));
    let long = "1.0000000000000000001";
    for raw in [Raw::Digits(long), Raw::Query(long)] {
        assert_eq!(one("number", raw), decimal(long));
    }
    let whole = Raw::Integer(9_007_199_254_740_993);
    assert_eq!(one("number", whole), decimal("9007199254740993"));
    for raw in [Raw::Digits("2.50"), Raw::Query("2.5"), Raw::Number(2.5)] {
        assert_eq!(one("number", raw), Ok(Value::Number(2.5)));
    }
    let beyond = Raw::Digits("9007199254740993.0");
    assert_eq!(
        one("integer", beyond),
        Ok(Value::Integer(9_007_199_254_740_993))
    );
    for (kind, text) in [
        ("integer", "3.0000000000000000001"),
        ("string", "3"),
        ("number", "1e400"),
        ("number", "1e-2000"),
    ] {
        let refused = one(kind, Raw::Digits(text)).unwrap_err();
        assert_eq!(refused[0].code, "invalid_type", "{kind} {text}");
        assert_eq!(refused[0].field, "params.p");
    }
}

/// Bounds and lists are held against a number digit for digit.
#[test]
fn bounds_of_numbers_are_exact() {
    let mut bounded = definition("p", "number");
    bounded.minimum = Some(Raw::Number(0.1));
    bounded.maximum = Some(Raw::Integer(9_007_199_254_740_993));
    let bounded = [Parameter::new("p", &bounded).unwrap()];
    let code = |parameters: &[Parameter], text: &str| {
        let bound = bind(parameters, &[("p", Raw::Query(text))]);
        bound.map_err(|errors| errors[0].code).err()
    };
    for (text, expected) in [
        ("0.1", None),
        ("0.1000000000000000000", None),
        ("0.09999999999999999999999", Some("out_of_range")),
        ("0.10000000000000000000001", None),
        ("9007199254740993", None),
        ("9007199254740993.0000000001", Some("out_of_range")),
        ("9007199254740992.9999999999", None),
        ("9007199254740994", Some("out_of_range")),
    ] {
        assert_eq!(code(&bounded, text), expected, "{text}");
    }
    let mut listed = definition("p", "number");
    listed.allowed = vec![Raw::Number(1.5), Raw::Integer(9_007_199_254_740_993)];
    listed.default = Some(Raw::Integer(9_007_199_254_740_993));
    let listed = [Parameter::new("p", &listed).unwrap()];
    for (text, expected) in [
        ("1.500", None),
        ("1.5000000000000000000001", Some("not_allowed")),
        ("9007199254740993.0", None),
        ("9007199254740992", Some("not_allowed")),
    ] {
        assert_eq!(code(&listed, text), expected, "{text}");
    }
    let default = Value::Decimal("9007199254740993".to_owned());
    assert_eq!(bind(&listed, &[]), Ok(vec![default]));
}

/// Digits that no column keeps are not cut off behind the caller's back, in a body, an address or a definition.
#[test]
fn a_moment_between_two_microseconds_is_refused() {
    let exact = Raw::Text("1970-01-01T00:00:00.000001000Z");
    assert_eq!(one("timestamp", exact), Ok(Value::Timestamp(1)));
    let fine = "1970-01-01T00:00:00.000001001Z";
    for raw in [Raw::Text(fine), Raw::Query(fine)] {
        let refused = one("timestamp", raw);
        assert!(refused.unwrap_err()[0].message.contains("six digits"));
    }
    let mut bounded = definition("p", "timestamp");
    bounded.minimum = Some(Raw::Text(fine));
    let refused = Parameter::new("parameters[0]", &bounded).unwrap_err();
    assert_eq!(refused[0].field, "parameters[0].minimum");
}

#[test]
fn a_query_string_is_read_by_the_type() {
    assert_eq!(one("integer", Raw::Query("-3")), Ok(Value::Integer(-3)));
    assert_eq!(one("number", Raw::Query("1e3")), Ok(Value::Number(1000.0)));
    assert_eq!(one("boolean", Raw::Query("true")), Ok(Value::Boolean(true)));
    assert_eq!(one("string", Raw::Query("3")), Ok(Value::Text("3".into())));
    for (kind, text) in [
        ("integer", "3.5"),
        ("integer", ""),
        ("number", "inf"),
        ("number", "NaN"),
        ("boolean", "yes"),
    ] {
        assert!(one(kind, Raw::Query(text)).is_err(), "{kind} {text}");
    }
}

#[test]
fn every_error_is_reported_at_once() {
    let mut bounded = definition("b", "integer");
    bounded.minimum = Some(Raw::Integer(1));
    let parameters = [
        define("a", "integer"),
        Parameter::new("parameters[1]", &bounded).unwrap(),
    ];
    let errors = bind(&parameters, &[("b", Raw::Integer(0)), ("c", Raw::Null)]).unwrap_err();
    let seen: Vec<_> = errors.iter().map(|e| (e.field.as_str(), e.code)).collect();
    assert_eq!(
        seen,
        [
            ("params.a", "required"),
            ("params.b", "out_of_range"),
            ("params.c", "unknown")
        ]
    );
}

/// Whoever gives thousands of values is told of that, and not of each.
#[test]
fn very_many_values_are_refused_at_once() {
    let names: Vec<String> = (0..20_000).map(|number| format!("p{number}")).collect();
    let given = |count: usize| -> Vec<(&str, Raw<'_>)> {
        let names = names[..count].iter();
        names.map(|name| (name.as_str(), Raw::Null)).collect()
    };
    let parameters = [define("a", "integer")];
    let refused = bind(&parameters, &given(20_000)).unwrap_err();
    let refused: Vec<_> = refused.iter().map(|e| (e.field.as_str(), e.code)).collect();
    assert_eq!(refused, [("params", "too_many")]);
    let named = bind(&parameters, &given(GIVEN_MAX)).unwrap_err();
    assert_eq!(named.len(), GIVEN_MAX + 1);
}

/// A name that is not known is told with those that are, once and however many are wrong.
#[test]
fn an_unknown_name_is_told_with_the_known_ones() {
    let given = [("seasons", Raw::Integer(1)), ("team", Raw::Null)];
    let told = |parameters: &[Parameter]| -> Vec<String> {
        let refused = bind(parameters, &given).unwrap_err().into_iter();
        let unknown = refused.filter(|error| error.code == "unknown");
        unknown.map(|error| error.message).collect()
    };
    let known = [define("season", "integer"), define("club", "string")];
    let unknown = "is not a parameter of this product";
    let first = format!("{unknown}, which takes season, club");
    assert_eq!(told(&known), [first.as_str(), unknown]);
    let first = format!("{unknown}, which takes none");
    assert_eq!(told(&[]), [first.as_str(), unknown]);
}

#[test]
fn null_only_where_not_required() {
    let mut optional = definition("p", "integer");
    optional.required = Some(false);
    let optional = [Parameter::new("parameters[0]", &optional).unwrap()];
    assert_eq!(bind(&optional, &[]), Ok(vec![Value::Null]));
    assert_eq!(bind(&optional, &[("p", Raw::Null)]), Ok(vec![Value::Null]));
    assert!(bind(&[define("p", "integer")], &[("p", Raw::Null)]).is_err());
}

/// What has a default may be left out, which is not the same as null: that takes the place of the default only where the seller has said that it may.
#[test]
fn null_is_no_default() {
    for (required, null) in [
        (None, None),
        (Some(true), None),
        (Some(false), Some(Value::Null)),
    ] {
        let mut with = definition("p", "integer");
        with.required = required;
        with.default = Some(Raw::Integer(2024));
        let with = [Parameter::new("parameters[0]", &with).unwrap()];
        assert_eq!(with[0].example(), None, "{required:?}");
        assert_eq!(bind(&with, &[]), Ok(vec![Value::Integer(2024)]));
        match (bind(&with, &[("p", Raw::Null)]), null) {
            (Ok(bound), Some(null)) => assert_eq!(bound, [null]),
            (Err(refused), None) => {
                let FieldError {
                    field,
                    code,
                    message,
                } = &refused[0];
                assert_eq!((field.as_str(), *code), ("params.p", "required"));
                assert!(message.contains("leave it out"), "{message}");
            }
            (bound, _) => panic!("{required:?}: {bound:?}"),
        }
    }
}

#[test]
fn a_default_stands_in_and_must_itself_be_allowed() {
    let mut with = definition("p", "string");
    with.default = Some(Raw::Text("b"));
    with.allowed = vec![Raw::Text("a"), Raw::Text("b")];
    let parameter = [Parameter::new("parameters[0]", &with).unwrap()];
    assert_eq!(bind(&parameter, &[]), Ok(vec![Value::Text("b".into())]));
    assert_eq!(
        bind(&parameter, &[("p", Raw::Text("c"))]).unwrap_err()[0].code,
        "not_allowed"
    );
    with.default = Some(Raw::Text("c"));
    assert_eq!(
        Parameter::new("parameters[0]", &with).unwrap_err()[0].field,
        "parameters[0].default"
    );
}

/// A value that is listed and out of bounds is refused where it is defined: whoever gave it would be, and so would the test that chose it. Of what was
/// saved with one, another one is tried.
#[test]
fn listed_values_are_within_the_bounds() {
    let mut listed = definition("p", "integer");
    listed.allowed = vec![Raw::Integer(1), Raw::Integer(5), Raw::Integer(9)];
    listed.minimum = Some(Raw::Integer(2));
    listed.maximum = Some(Raw::Integer(8));
    let refused = Parameter::new("parameters[0]", &listed).unwrap_err();
    let told: Vec<_> = refused.iter().map(|e| (e.field.as_str(), e.code)).collect();
    assert_eq!(
        told,
        [
            ("parameters[0].enum[0]", "out_of_range"),
            ("parameters[0].enum[2]", "out_of_range")
        ]
    );
    assert!(refused[0].message.contains("less than 2"), "{refused:?}");
    let saved = Parameter::saved("parameters[0]", &listed).unwrap();
    assert_eq!(saved.example(), Some(Value::Integer(5)));
    assert!(bind(&[saved], &[("p", Raw::Integer(5))]).is_ok());
    listed.allowed = vec![Raw::Integer(5)];
    assert!(Parameter::new("parameters[0]", &listed).is_ok());
}

#[test]
fn a_definition_that_cannot_hold_is_refused() {
    assert!(Parameter::new("p", &definition("1a", "integer")).is_err());
    assert!(Parameter::new("p", &definition("a", "decimal")).is_err());
    let mut upside_down = definition("a", "date");
    upside_down.minimum = Some(Raw::Text("2026-01-02"));
    upside_down.maximum = Some(Raw::Text("2026-01-01"));
    assert!(Parameter::new("p", &upside_down).is_err());
}

proptest! {
    #[test]
    fn a_date_survives_being_written(days in -700_000i32..2_900_000) {
        if let Some(date) = date_of_days(days) {
            prop_assert_eq!(one("date", Raw::Text(&date.to_string())).ok(), Some(Value::Date(days)).filter(|_| date.year() >= 0));
        }
    }

    #[test]
    fn what_is_bound_is_within_the_bounds(value in any::<i64>(), minimum in any::<i64>(), maximum in any::<i64>()) {
        let mut bounded = definition("p", "integer");
        bounded.minimum = Some(Raw::Integer(minimum));
        bounded.maximum = Some(Raw::Integer(maximum));
        match Parameter::new("p", &bounded) {
            Ok(parameter) => {
                let bound = bind(&[parameter], &[("p", Raw::Integer(value))]);
                prop_assert_eq!(bound.is_ok(), (minimum..=maximum).contains(&value));
            }
            Err(_) => prop_assert!(maximum < minimum),
        }
    }
}
