//! What a caller asks of an endpoint: which rows, in which order, which fields of them, from where on.
//!
//! Everything that is wrong is told at once, by the names of the query's parameters. Knows no HTTP. Start reading at [`check`].

mod values;

use std::time::Instant;

use souk_domain::fields::{FieldError, FieldErrors};
use souk_domain::ids::CompanyId;
use souk_domain::pages::{LIMIT_MAX, Page, PageError};
use souk_domain::sql::{Operator, Window};
use souk_sandbox::ColumnKind;

use values::{Compared, read, written};

use super::asked::{Asked, Used};
use super::cursor::{self, Position};
use super::learn;
use crate::App;
use crate::definition::Field;
use crate::failure::Cause;
use crate::products::{Chosen, EndpointSnapshot, Learned, Shape};
use crate::run;

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
        let known = learned.and_then(|learned| learned.column(column));
        let kind = known.and_then(|known| ColumnKind::of(&known.kind));
        let column = Compared {
            dialect: endpoint.plan.dialect,
            facts: &endpoint.plan.facts,
            kind: kind.unwrap_or(ColumnKind::Text),
            native: known.map_or("", |known| &known.native),
        };
        let operator = used.operator;
        if let Err(message) = read(column, operator, used.text, &mut values) {
            errors.add(used.name, "invalid_type", message);
        }
        count += values.len() - before;
        if let Some((operator, written)) = written(column, operator, used.text, &values[before..]) {
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
}
