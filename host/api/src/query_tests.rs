use super::*;

parameters! {
    struct Wanted {
        ..paging: Paging,
        /// Direction.
        sort_order: Option<SortOrder>,
        /// Where to begin.
        r#from: SortOrder = SortOrder::Descending,
    }
}

fn read<T: Parameters>(text: &str) -> Result<T, Problem> {
    let request = Request::builder().uri(format!("/?{text}"));
    let mut request = request.body(axum::body::Body::empty()).unwrap();
    Reader::of::<T>().read(&mut request)?;
    Ok(request.extensions_mut().remove::<Query<T>>().unwrap().0)
}

/// The names of what is wrong.
fn fields(problem: Problem) -> Vec<String> {
    let (_, _, body) = problem.into_parts("req_1");
    let body: Value = serde_json::from_slice(&body).unwrap();
    let errors = body["error"]["details"]["errors"].as_array().unwrap();
    let names = errors.iter().map(|error| error["field"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// Valid values arrive typed; what is absent is absent.
#[test]
fn declared_parameters_are_typed() {
    let wanted: Wanted = read("page=2&sort_order=asc").unwrap();
    assert_eq!(wanted.paging.page, Integer(2));
    assert_eq!(wanted.paging.per_page, Integer(PER_PAGE_DEFAULT));
    assert!(wanted.sort_order == Some(SortOrder::Ascending));
}

/// What a parameter is that is left out stands in the document as the handler gets it, in words and in the schema; and it may be sent.
#[test]
fn defaults_are_told_as_they_hold() {
    let reader = Reader::of::<Wanted>();
    let said = |name: &str| {
        let found = reader.params.iter().find(|param| param.name == name);
        let found = found.unwrap();
        (found.about.as_str(), found.schema.get("default").cloned())
    };
    let expected = ("Items per page. Default 50.", Some(json!(50)));
    assert_eq!(said("per_page"), expected);
    let expected = ("Where to begin. Default desc.", Some(json!("desc")));
    assert_eq!(said("from"), expected);
    assert_eq!(said("sort_order"), ("Direction.", None));
    let (absent, sent): (Wanted, Wanted) = (read("page=1").unwrap(), read("from=desc").unwrap());
    assert!(absent.from == sent.from);
}

/// Over the maximum, unknown, repeated and malformed are refused, all at once.
#[test]
fn everything_wrong_is_named() {
    let problem = read::<Wanted>("per_page=101&page=x&nope=1&sort_order=asc&sort_order=desc").err();
    let problem = problem.unwrap();
    assert_eq!(
        (problem.status().as_u16(), problem.code()),
        (400, "INVALID_PARAMETER")
    );
    assert_eq!(fields(problem), ["per_page", "page", "nope", "sort_order"]);
}

/// Bytes that are no text are none by any other name: whatever they are read as would be looked for, and paid.
#[test]
fn what_is_no_text_is_refused() {
    let problem = read::<Open<Paging>>("team=%E9t%E9&page=2&%ff=1").err();
    assert_eq!(fields(problem.unwrap()), ["team", "\u{fffd}"]);
    let problem = read::<Wanted>("page=%ff").err();
    assert_eq!(fields(problem.unwrap()), ["page"]);
    // Which is a text itself.
    let open: Open<Paging> = read("team=%EF%BF%BD").unwrap();
    assert_eq!(open.rest, [("team".to_owned(), "\u{fffd}".to_owned())]);
}

/// A date is a whole day: it begins a period at its midnight and ends one at the next.
#[test]
fn dates_are_whole_days() {
    let from = |text| Since::read(text).ok().map(|time| time.0.to_string());
    let until = |text| Until::read(text).ok().map(|time| time.0.to_string());
    let day = |text| Date::read(text).ok().map(|time| time.0.to_string());
    let midnight = |day: u32| Some(format!("2026-01-0{day}T00:00:00Z"));
    assert_eq!(from("2026-01-02"), midnight(2));
    assert_eq!(until("2026-01-02"), midnight(3));
    assert_eq!(day("2026-01-02"), midnight(2));
    assert_eq!(until("2026-01-02T00:00:00Z"), midnight(2));
    assert_eq!(from("2026-01-02T01:00:00+01:00"), midnight(2));
    for wrong in ["2026-02-30", "2026-1-2", "yesterday", ""] {
        assert_eq!(from(wrong), None, "{wrong}");
    }
    assert_eq!(day("2026-01-02T00:00:00Z"), None);
}

/// An open query keeps what it does not declare; another refuses it.
#[test]
fn an_open_query_hands_on_the_rest() {
    let open: Open<Paging> = read("page=1&team=A%20B").unwrap();
    assert_eq!(open.rest, [("team".to_owned(), "A B".to_owned())]);
    assert_eq!(open.known.page, Integer(1));
    assert!(read::<Paging>("page=1&team=A%20B").is_err());
}
