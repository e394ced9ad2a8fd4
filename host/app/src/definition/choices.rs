//! What callers of an endpoint may choose: which rows, and in which order.

use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};
use souk_domain::fields::{FieldError, FieldErrors};
use souk_domain::sql::Operator;

use super::{Sorting, check_column, sortings};

pub const FILTERS_MAX: usize = 20;
/// Orders beside the one that rows come in by themselves.
pub const SORTS_MAX: usize = 10;
const SORT_CHARS_MAX: usize = 63;
/// Query parameters of the data route that no filter can be named after. Those that came later are reached as `filters[name]`.
const RESERVED_FILTERS: [&str; 2] = ["start", "limit"];

/// A column that a caller may compare with values.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    pub field: String,
    /// Each once, in one order.
    pub operators: Vec<Operator>,
}

/// `"team"` where only equality is allowed, as it was always written; else `{"field", "operators"}`.
impl Serialize for Filter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.operators == [Operator::Eq] {
            return self.field.serialize(serializer);
        }
        let words: Vec<&str> = self.operators.iter().map(|one| one.word()).collect();
        json!({"field": self.field, "operators": words}).serialize(serializer)
    }
}

/// `["team", {"field": "goals", "operators": ["gte", "lt"]}]`.
pub fn filters(json: &Json) -> Result<Vec<Filter>, Vec<FieldError>> {
    let items = array("filters", json, FILTERS_MAX, "columns")?;
    let mut errors = FieldErrors::default();
    let mut filters: Vec<Filter> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = format!("filters[{index}]");
        let Some(filter) = errors.take(filter(&at, item)) else {
            continue;
        };
        check_column(&at, Some(&filter.field), &mut errors);
        if RESERVED_FILTERS.contains(&filter.field.as_str()) {
            let message = format!(
                "\"{}\" is a parameter of the data route itself",
                filter.field
            );
            errors.add(&at, "reserved", message);
        }
        if filters.iter().any(|known| known.field == filter.field) {
            errors.add(at, "duplicate", "is named twice");
        }
        filters.push(filter);
    }
    errors.or(filters)
}

fn filter(at: &str, json: &Json) -> Result<Filter, Vec<FieldError>> {
    let wrong =
        |field: String, message: String| Err(vec![FieldError::new(field, "invalid", message)]);
    if let Json::String(field) = json {
        return Ok(Filter {
            field: field.clone(),
            operators: vec![Operator::Eq],
        });
    }
    let Some(field) = json.get("field").and_then(Json::as_str) else {
        return wrong(
            at.to_owned(),
            "must be a column's name, or {field, operators}".to_owned(),
        );
    };
    let words = Operator::ALL.map(Operator::word).join(", ");
    let at = format!("{at}.operators");
    let message = format!("must be an array of some of {words}");
    let given = match json.get("operators") {
        None | Some(Json::Null) => vec![Operator::Eq],
        Some(Json::Array(given)) if !given.is_empty() => {
            let read = given.iter().map(|word| Operator::of(word.as_str()?));
            match read.collect() {
                Some(operators) => operators,
                None => return wrong(at, message),
            }
        }
        Some(_) => return wrong(at, message),
    };
    let operators = Operator::ALL.into_iter().filter(|one| given.contains(one));
    Ok(Filter {
        field: field.to_owned(),
        operators: operators.collect(),
    })
}

/// An order that callers may ask for by its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sort {
    pub name: String,
    pub order_by: Vec<Sorting>,
}

/// `[{"name": "newest", "order_by": ["-played_on"]}]`.
pub fn sorts(json: &Json) -> Result<Vec<Sort>, Vec<FieldError>> {
    let items = array("sorts", json, SORTS_MAX, "orders")?;
    let mut errors = FieldErrors::default();
    let mut sorts: Vec<Sort> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = format!("sorts[{index}]");
        let name = item.get("name").and_then(Json::as_str).unwrap_or_default();
        let is_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        if !(1..=SORT_CHARS_MAX).contains(&name.len()) || !name.chars().all(is_name) {
            let message =
                format!("must be 1 to {SORT_CHARS_MAX} characters of a-z, A-Z, 0-9, _ and -");
            errors.add(format!("{at}.name"), "invalid", message);
        }
        if sorts.iter().any(|known| known.name == name) {
            errors.add(format!("{at}.name"), "duplicate", "is used twice");
        }
        let given = item.get("order_by").unwrap_or(&Json::Null);
        let Some(order_by) = errors.take(sortings(&format!("{at}.order_by"), given)) else {
            continue;
        };
        if order_by.is_empty() {
            let message = "must name a column to sort by";
            errors.add(format!("{at}.order_by"), "required", message);
        }
        let name = name.to_owned();
        sorts.push(Sort { name, order_by });
    }
    errors.or(sorts)
}

fn array<'a>(
    field: &str,
    json: &'a Json,
    max: usize,
    what: &str,
) -> Result<&'a [Json], Vec<FieldError>> {
    let wrong = |code, message: String| vec![FieldError::new(field, code, message)];
    let Some(items) = json.as_array() else {
        return Err(wrong("invalid", "must be an array".to_owned()));
    };
    match items.len() <= max {
        true => Ok(items),
        false => Err(wrong("too_many", format!("names more than {max} {what}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is stored reads as what was written, and definitions from before operators are what they were.
    #[test]
    fn filters_are_written_as_they_are_read() {
        let written =
            json!(["team", {"field": "goals", "operators": ["lt", "gte", "lt"]}, {"field": "id"}]);
        let read = filters(&written).unwrap();
        let stored = serde_json::to_value(&read).unwrap();
        let expected = json!(["team", {"field": "goals", "operators": ["gte", "lt"]}, "id"]);
        assert_eq!(stored, expected);
        assert_eq!(filters(&stored).unwrap(), read);
    }

    /// Everything that is wrong is named.
    #[test]
    fn wrong_choices_are_all_named() {
        let fields = |errors: Vec<FieldError>| -> Vec<String> {
            errors.into_iter().map(|error| error.field).collect()
        };
        let wrong = json!([1, "start", {"field": "a", "operators": ["ne"]}, {"field": "b", "operators": []}, "c", "c"]);
        assert_eq!(
            fields(filters(&wrong).unwrap_err()),
            [
                "filters[0]",
                "filters[1]",
                "filters[2].operators",
                "filters[3].operators",
                "filters[5]"
            ]
        );
        let wrong = json!([{"name": "a b", "order_by": ["x"]}, {"name": "n", "order_by": []}, {"name": "n", "order_by": [7]}]);
        assert_eq!(
            fields(sorts(&wrong).unwrap_err()),
            [
                "sorts[0].name",
                "sorts[1].order_by",
                "sorts[2].name",
                "sorts[2].order_by[0]"
            ]
        );
    }
}
