//! What a caller asks of an endpoint: which rows, in which order, which fields of them, from where on.
//!
//! Everything that is wrong is told at once, by the names of the query's parameters. Knows no HTTP. Start reading at [`check`].

use std::time::Instant;

use souk_domain::fields::{FieldError, FieldErrors};
use souk_domain::ids::CompanyId;
use souk_domain::moments;
use souk_domain::pages::{LIMIT_MAX, Page, PageError};
use souk_domain::parameters::{self, Kind, Raw};
use souk_domain::sql::{Dialect, Operator, Window, prefix_pattern};
use souk_sandbox::{ColumnKind, Value};

use super::asked::{Asked, Used};
use super::cursor::{self, Position};
use super::learn;
use super::spellings::spelled;
use crate::App;
use crate::binding::value;
use crate::definition::Field;
use crate::failure::Cause;
use crate::products::{Chosen, EndpointSnapshot, Learned, Shape};
use crate::run;

/// Values of one `[in]`.
const IN_VALUES_MAX: usize = 100;
/// Values of all filters together: what an engine has placeholders for, with the cursor's.
const VALUES_MAX: usize = 200;

/// What a caller asks for, as it was sent.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Rows to leave out.
    pub start: Option<u64>,
    pub limit: Option<u32>,
    /// The name of an order.
    pub sort: Option<String>,
    /// Names of published fields, with commas between them.
    pub fields: Option<String>,
    /// Where a former page ended.
    pub cursor: Option<String>,
    /// `column=value`, `column[operator]=value`, and both as `filters[column]`.
    pub filters: Vec<(String, String)>,
    /// What is known to be wrong with it already.
    pub wrong: Vec<FieldError>,
}

/// Checks what `caller` asks for. The source is asked for the types of its columns if nobody has before.
pub async fn check<'a>(
    app: &App,
    endpoint: &'a EndpointSnapshot,
    choice: &'a Choice,
    caller: &CompanyId,
) -> Result<(Asked<'a>, Option<&'a Learned>), Cause> {
    let mut errors = FieldErrors::default();
    let wrong = choice.wrong.iter().cloned();
    errors.extend(wrong.map(|error| bounded(endpoint, error)).collect());
    let mut used = used(endpoint, &choice.filters, &mut errors);
    used.sort_by_key(|used| used.chosen);
    let sort = sort(endpoint, choice.sort.as_deref(), &mut errors);
    let fields = fields(&endpoint.plan.fields, choice.fields.as_deref(), &mut errors);
    let page = page(endpoint, choice, &mut errors);

    let late;
    let learned = match endpoint.learned() {
        None if errors.is_empty() && needs_learning(endpoint, &used) => {
            let started = Instant::now();
            let deadline = started + endpoint.timeout;
            late = Box::pin(learn(app, endpoint, caller, deadline))
                .await
                .map_err(|cause| run::late(&endpoint.sold(), started.elapsed(), cause))?;
            Some(endpoint.keep_learned(late))
        }
        known => known,
    };
    let mut values = Vec::with_capacity(used.len());
    // As the caller named them.
    let mut count = 0;
    for used in &mut used {
        let before = values.len();
        let column = &endpoint.plan.filters[used.chosen.filter].field;
        let kind = learned.and_then(|learned| ColumnKind::of(learned.kind(column)?));
        let kind = kind.unwrap_or(ColumnKind::Text);
        let operator = used.operator;
        let dialect = endpoint.plan.dialect;
        if let Err(message) = read(dialect, kind, operator, used.text, &mut values) {
            errors.add(used.name, "invalid_type", message);
        }
        count += values.len() - before;
        if let Some((operator, written)) = written(dialect, kind, operator, &values[before..]) {
            used.chosen.operator = operator;
            values.truncate(before);
            values.extend(written);
        }
        used.chosen.values = values.len() - before;
    }
    if count > VALUES_MAX {
        let message = format!("all filters together have at most {VALUES_MAX} values");
        errors.add("filters", "too_many", message);
    }
    let mut asked = Asked {
        page,
        shape: Shape {
            fields,
            conditions: used.iter().map(|used| used.chosen).collect(),
            sort,
            after: None,
            is_learned: learned.is_some(),
            window: Window::Bound,
        },
        values,
        from: Position::of_start(page.start),
        used,
    };
    if let Some(cursor) = &choice.cursor {
        // What it was told for can only be compared when that is known.
        let opened = match errors.is_empty() {
            true => cursor::open(
                app,
                endpoint,
                &asked.goes_on_with(endpoint, learned),
                cursor,
            ),
            false => cursor::open_any(app, endpoint, cursor),
        };
        match opened {
            Ok(position) => asked.begin_at(position),
            Err(message) => errors.add("cursor", "invalid", message),
        }
    } else {
        asked.begin_at(Position::of_start(page.start));
    }
    errors.or((asked, learned)).map_err(Cause::Parameters)
}

/// Which filters are used, whatever their values are.
fn used<'a>(
    endpoint: &EndpointSnapshot,
    given: &'a [(String, String)],
    errors: &mut FieldErrors,
) -> Vec<Used<'a>> {
    let mut all: Vec<Used<'a>> = Vec::with_capacity(given.len());
    for (name, text) in given {
        let (filter, operator) = match target(endpoint, name) {
            Ok(found) => found,
            Err((code, message)) => {
                errors.add(name, code, message);
                continue;
            }
        };
        let is_it = |used: &Used<'_>| used.chosen.filter == filter && used.operator == operator;
        if all.iter().any(is_it) {
            errors.add(name, "repeated", "may be given only once");
            continue;
        }
        let chosen = Chosen {
            filter,
            operator,
            values: 0,
        };
        all.push(Used {
            chosen,
            operator,
            name,
            text,
        });
    }
    all
}

/// The filter that `name` means, by its place, and the operator: `team`, `goals[gte]`, `filters[team]`, `filters[goals][gte]`.
fn target(
    endpoint: &EndpointSnapshot,
    name: &str,
) -> Result<(usize, Operator), (&'static str, String)> {
    let filters = &endpoint.plan.filters;
    let rest = |field: &str| {
        let spelled = name.strip_prefix("filters[");
        let spelled = spelled.and_then(|rest| rest.strip_prefix(field)?.strip_prefix(']'));
        name.strip_prefix(field).or(spelled)
    };
    // A column's name may have brackets of its own.
    let plain = filters
        .iter()
        .position(|filter| rest(&filter.field) == Some(""));
    let with_operator = || {
        filters.iter().enumerate().find_map(|(place, filter)| {
            let word = rest(&filter.field)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((place, word))
        })
    };
    let (place, word) = match plain {
        Some(place) => (place, Operator::Eq.word()),
        None => with_operator().ok_or_else(|| ("unknown", unknown(endpoint)))?,
    };
    let filter = &filters[place];
    match Operator::of(word).filter(|operator| filter.operators.contains(operator)) {
        Some(operator) => Ok((place, operator)),
        None => {
            let words: Vec<&str> = filter.operators.iter().map(|one| one.word()).collect();
            let message = format!(
                "\"{}\" is not compared like this here: it takes {}",
                filter.field,
                words.join(", ")
            );
            Err(("unknown_operator", message))
        }
    }
}

fn unknown(endpoint: &EndpointSnapshot) -> String {
    let filters = endpoint.plan.filters.iter();
    let filters: Vec<&str> = filters.map(|filter| filter.field.as_str()).collect();
    let own = "is not a parameter: this endpoint takes start, limit, sort, fields, cursor, export, checkpoints";
    match filters.is_empty() {
        true => own.to_owned(),
        false => format!("{own} and {}", filters.join(", ")),
    }
}

fn sort(
    endpoint: &EndpointSnapshot,
    given: Option<&str>,
    errors: &mut FieldErrors,
) -> Option<usize> {
    let given = given?;
    let sorts = &endpoint.plan.sorts;
    let place = sorts.iter().position(|sort| sort.name == given);
    if place.is_none() {
        let names: Vec<&str> = sorts.iter().map(|sort| sort.name.as_str()).collect();
        let message = match names.is_empty() {
            true => "this endpoint has one order only: leave sort out".to_owned(),
            false => format!("must be one of {}", names.join(", ")),
        };
        errors.add("sort", "unknown", message);
    }
    place
}

fn fields(known: &[Field], given: Option<&str>, errors: &mut FieldErrors) -> Option<Box<[usize]>> {
    let given = given?;
    // Thousands of commas are no request, and each would be told all names that there are.
    if given.split(',').nth(known.len()).is_some() {
        let message = format!("names more fields than the {} that there are", known.len());
        errors.add("fields", "too_many", message);
        return None;
    }
    let mut places = Vec::new();
    let mut are_told = false;
    for name in given.split(',') {
        match known.iter().position(|field| field.published() == name) {
            Some(place) if places.contains(&place) => {
                errors.add("fields", "duplicate", format!("\"{name}\" is named twice"));
            }
            Some(place) => places.push(place),
            None => {
                let shown: String = name.chars().take(63).collect();
                let mut message = format!("has no field \"{shown}\"");
                // Once: they may be a hundred kilobytes.
                if !std::mem::replace(&mut are_told, true) {
                    let names: Vec<&str> = known.iter().map(Field::published).collect();
                    message.push_str(": there are ");
                    message.push_str(&names.join(", "));
                }
                errors.add("fields", "unknown", message);
            }
        }
    }
    Some(places.into_boxed_slice())
}

/// Whoever read the query knew the bounds that hold for all endpoints: of a `limit` that is out of those, too, this one's are told.
fn bounded(endpoint: &EndpointSnapshot, error: FieldError) -> FieldError {
    if (error.field.as_str(), error.code) != ("limit", "invalid") {
        return error;
    }
    let max = endpoint.row.written.details.max_limit;
    let message = format!("must be an integer from 1 to {}", max.min(LIMIT_MAX.into()));
    FieldError { message, ..error }
}

fn page(endpoint: &EndpointSnapshot, choice: &Choice, errors: &mut FieldErrors) -> Page {
    let written = &endpoint.row.written.details;
    let bound = |limit: i64| u32::try_from(limit).unwrap_or(u32::MAX);
    let start = choice.start.unwrap_or(0);
    let limit = choice.limit.unwrap_or(bound(written.default_limit));
    if choice.start.is_some() && choice.cursor.is_some() {
        let message = "a cursor says itself where the page begins: leave start out";
        errors.add("start", "conflict", message);
    }
    match Page::new(start, limit, bound(written.max_limit)) {
        Ok(page) => page,
        Err(error) => {
            let field = match error {
                PageError::Start => "start",
                PageError::Limit(_) => "limit",
            };
            errors.add(field, "out_of_range", error.to_string());
            Page { start: 0, limit: 1 }
        }
    }
}

fn needs_learning(endpoint: &EndpointSnapshot, used: &[Used<'_>]) -> bool {
    endpoint.whole().is_none() && (!used.is_empty() || endpoint.plan.order_by.is_empty())
}

/// The values of a filter, by the type of its column.
fn read(
    dialect: Dialect,
    kind: ColumnKind,
    operator: Operator,
    text: &str,
    into: &mut Vec<Value>,
) -> Result<(), String> {
    match operator {
        Operator::Like if kind != ColumnKind::Text => {
            return Err(format!(
                "[like] is for texts, and this column is {}",
                kind.as_str()
            ));
        }
        Operator::Like => {
            read_value(dialect, kind, text)?;
            into.push(Value::Text(prefix_pattern(dialect, text)));
        }
        operator if operator.is_range() && kind == ColumnKind::Boolean => {
            return Err("true and false have no order".to_owned());
        }
        Operator::In => {
            let texts = listed(text);
            if texts.len() > IN_VALUES_MAX {
                return Err(format!("names more than {IN_VALUES_MAX} values"));
            }
            let read = texts.iter().map(|text| read_value(dialect, kind, text));
            let values = read.collect::<Result<Vec<Value>, String>>()?;
            into.extend(padded(values));
        }
        _ => into.push(read_value(dialect, kind, text)?),
    }
    Ok(())
}

/// How a SQLite file is asked for these values: one time may be several texts there.
fn written(
    dialect: Dialect,
    kind: ColumnKind,
    operator: Operator,
    values: &[Value],
) -> Option<(Operator, Vec<Value>)> {
    if dialect != Dialect::Sqlite {
        return None;
    }
    let (operator, texts) = spelled(kind, operator, values)?;
    Some((operator, padded(texts)))
}

/// Lists of nearly the same length share a statement: naming a value twice changes nothing.
fn padded(mut values: Vec<Value>) -> Vec<Value> {
    if let Some(last) = values.last().cloned() {
        values.resize(values.len().next_power_of_two(), last);
    }
    values
}

/// Parts between commas; `\,` is a comma of a part.
fn listed(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('\\', Some(',' | '\\')) => {
                let next = chars.next();
                if let Some(part) = parts.last_mut() {
                    part.extend(next);
                }
            }
            (',', _) => parts.push(String::new()),
            (char, _) => {
                if let Some(part) = parts.last_mut() {
                    part.push(char);
                }
            }
        }
    }
    parts
}

fn read_value(dialect: Dialect, kind: ColumnKind, text: &str) -> Result<Value, String> {
    // Whether its texts say a zone is known of one row, and perhaps of none.
    let is_file = dialect == Dialect::Sqlite;
    let read = |kind| parameters::read(kind, &Raw::Query(text)).map(|bound| value(&bound));
    match kind {
        ColumnKind::Boolean => read(Kind::Boolean),
        ColumnKind::Int64 => read(Kind::Integer),
        ColumnKind::Float64 => read(Kind::Number),
        // Checked as a number, sent digit for digit.
        ColumnKind::Decimal => read(Kind::Number).map(|_| Value::Decimal(text.to_owned())),
        ColumnKind::Date => Ok(Value::Date(moments::date(text)?)),
        ColumnKind::Time => Ok(Value::Time(moments::time(text)?)),
        ColumnKind::Timestamp => Ok(Value::Timestamp(match is_file {
            true => moments::either_timestamp(text)?,
            false => moments::timestamp(text)?,
        })),
        ColumnKind::LocalTimestamp => Ok(Value::LocalTimestamp(match is_file {
            true => moments::either_timestamp(text)?,
            false => moments::local_timestamp(text)?,
        })),
        ColumnKind::Text => read(Kind::String),
        ColumnKind::Bytes | ColumnKind::Json => {
            Err("this column cannot be compared with a value".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many fields are named, and whatever there are, the names that there are are told once.
    #[test]
    fn what_is_told_of_fields_is_bounded() {
        let field = |place: usize| Field {
            name: format!("{place:0>128}"),
            alias: None,
            description: None,
        };
        let known: Vec<Field> = (0..200).map(field).collect();
        let told = |given: &str| {
            let mut errors = FieldErrors::default();
            let chosen = fields(&known, Some(given), &mut errors);
            let errors = errors.into_vec().into_iter();
            let told: Vec<_> = errors.map(|error| (error.code, error.message)).collect();
            (chosen.map(|chosen| chosen.len()), told)
        };
        let (chosen, told_of_many) = told(&",".repeat(8_192));
        assert_eq!((chosen, told_of_many.len()), (None, 1));
        assert_eq!(told_of_many[0].0, "too_many");
        let (_, told_of_unknown) = told(&["x"; 200].join(","));
        assert_eq!(told_of_unknown.len(), 200);
        let bytes: usize = told_of_unknown.iter().map(|(_, text)| text.len()).sum();
        assert!(bytes < 200 * 130 + 200 * 40, "{bytes}");
        assert!(told_of_unknown[0].1.contains(known[199].published()));
        let all: Vec<&str> = known.iter().map(Field::published).collect();
        assert_eq!(told(&all.join(",")), (Some(200), Vec::new()));
    }

    /// Commas part values unless they are escaped.
    #[test]
    fn lists_are_parted_at_commas() {
        assert_eq!(listed("a,b"), ["a", "b"]);
        assert_eq!(
            listed(r"Smith\, John,b\\,c\d"),
            ["Smith, John", r"b\", r"c\d"]
        );
        assert_eq!(listed(""), [""]);
    }

    /// Lists are padded to few lengths, so that few statements are prepared.
    #[test]
    fn lists_are_padded() {
        let read = |text| {
            let (dialect, kind, mut values) = (Dialect::Postgres, ColumnKind::Int64, Vec::new());
            read(dialect, kind, Operator::In, text, &mut values).map(|()| values)
        };
        assert_eq!(read("1,2,3").unwrap().len(), 4);
        assert_eq!(read("1,2,3").unwrap()[3], Value::Int64(3));
        assert_eq!(read("7").unwrap(), [Value::Int64(7)]);
        assert!(read("1,x").is_err());
    }

    /// However many texts a time has in a file.
    #[test]
    fn lists_of_texts_are_padded() {
        let of = |operator, micros: &[i64]| {
            let times: Vec<Value> = micros.iter().map(|micros| Value::Time(*micros)).collect();
            written(Dialect::Sqlite, ColumnKind::Time, operator, &times).expect("texts")
        };
        // Two digits behind the second are the shortest.
        let (operator, texts) = of(Operator::Eq, &[250_000]);
        assert_eq!((operator, texts.len()), (Operator::In, 8));
        assert_eq!(texts[4], Value::Text("00:00:00.250000".to_owned()));
        assert!(texts[4..].iter().all(|text| *text == texts[4]));
        assert_eq!(of(Operator::In, &[250_000, 1, 1, 1]).1.len(), 8);
        assert_eq!(of(Operator::In, &[250_000, 0, 0, 0]).1.len(), 32);
        assert_eq!(of(Operator::Gt, &[250_000]).1.len(), 1);
        let elsewhere = written(
            Dialect::Postgres,
            ColumnKind::Time,
            Operator::Eq,
            &[Value::Time(0)],
        );
        assert_eq!(elsewhere, None);
    }

    /// One row of a SQLite file does not tell of another whether it says a zone. Elsewhere the column's type does.
    #[test]
    fn a_file_takes_timestamps_with_and_without_a_zone() {
        let (zoned, plain) = ("1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00");
        let of = |dialect, kind| [zoned, plain].map(|text| read_value(dialect, kind, text).ok());
        let (moment, local) = (Value::Timestamp(0), Value::LocalTimestamp(0));
        assert_eq!(
            of(Dialect::Sqlite, ColumnKind::Timestamp),
            [Some(moment.clone()), Some(moment.clone())]
        );
        assert_eq!(
            of(Dialect::Sqlite, ColumnKind::LocalTimestamp),
            [Some(local.clone()), Some(local.clone())]
        );
        assert_eq!(
            of(Dialect::Postgres, ColumnKind::Timestamp),
            [Some(moment), None]
        );
        assert_eq!(
            of(Dialect::Postgres, ColumnKind::LocalTimestamp),
            [None, Some(local)]
        );
    }
}
