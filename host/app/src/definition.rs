//! The parts of a product that are stored as JSON: what may stand in them, and what they mean.
//!
//! Nearly all functions read both a client's body and the store's columns, so that nothing is saved that
//! could not be executed.

mod choices;

pub use choices::{Filter, Sort, filters, sorts};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use souk_domain::fields::{FieldError, FieldErrors};
use souk_domain::parameters::{Definition, PARAMETERS_MAX, Parameter, Raw};

use crate::forecast::{Frequency, HORIZON_MAX};
use crate::wording::plain;

pub const FIELDS_MAX: usize = 200;
pub const ORDER_MAX: usize = 10;
/// Longest name of a column anywhere; PostgreSQL cuts at 63, others allow more.
pub const COLUMN_CHARS_MAX: usize = 128;
const TITLE_CHARS_MAX: usize = 200;

/// Reads one JSON value, strictly by its type, for `parameters`.
pub fn raw(value: &Json) -> Raw<'_> {
    match value {
        Json::Null => Raw::Null,
        Json::Bool(value) => Raw::Boolean(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Raw::Integer(value),
            None => Raw::Number(number.as_f64().unwrap_or(f64::INFINITY)),
        },
        Json::String(text) => Raw::Text(text),
        Json::Array(_) | Json::Object(_) => Raw::Other,
    }
}

/// `parameters[]` of an asset, as somebody writes them.
pub fn parameters(json: &Json) -> Result<Vec<Parameter>, Vec<FieldError>> {
    each_parameter(json, Parameter::new)
}

/// `parameters[]` of an asset, as they are saved.
pub fn saved_parameters(json: &Json) -> Result<Vec<Parameter>, Vec<FieldError>> {
    each_parameter(json, Parameter::saved)
}

type Make = fn(&str, &Definition<'_>) -> Result<Parameter, Vec<FieldError>>;

fn each_parameter(json: &Json, make: Make) -> Result<Vec<Parameter>, Vec<FieldError>> {
    let Some(items) = json.as_array() else {
        return Err(vec![FieldError::new(
            "parameters",
            "invalid_type",
            "must be an array",
        )]);
    };
    if items.len() > PARAMETERS_MAX {
        let message = format!("has more than {PARAMETERS_MAX} parameters");
        return Err(vec![FieldError::new("parameters", "too_many", message)]);
    }
    let mut errors = FieldErrors::default();
    let mut parameters: Vec<Parameter> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let field = format!("parameters[{index}]");
        match parameter(&field, item, make) {
            Ok(parameter)
                if parameters
                    .iter()
                    .any(|known| known.name() == parameter.name()) =>
            {
                errors.add(format!("{field}.name"), "duplicate", "is used twice");
            }
            Ok(parameter) => parameters.push(parameter),
            Err(more) => errors.extend(more),
        }
    }
    errors.or(parameters)
}

fn parameter(field: &str, json: &Json, make: Make) -> Result<Parameter, Vec<FieldError>> {
    let wrong = |part: &str, expected: &str| {
        let field = if part.is_empty() {
            field.to_owned()
        } else {
            format!("{field}.{part}")
        };
        vec![FieldError::new(
            field,
            "invalid_type",
            format!("must be {expected}"),
        )]
    };
    let members = json.as_object().ok_or_else(|| wrong("", "an object"))?;
    let text = |part: &str| match members.get(part) {
        Some(Json::String(text)) => Ok(text.as_str()),
        None => Err(vec![FieldError::new(
            format!("{field}.{part}"),
            "required",
            "is required",
        )]),
        Some(_) => Err(wrong(part, "a string")),
    };
    let required = match members.get("required") {
        None | Some(Json::Null) => None,
        Some(Json::Bool(required)) => Some(*required),
        Some(_) => return Err(wrong("required", "true or false")),
    };
    let allowed = match members.get("enum") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(values)) => values.iter().map(raw).collect(),
        Some(_) => return Err(wrong("enum", "an array")),
    };
    let optional = |part: &str| members.get(part).filter(|value| !value.is_null()).map(raw);
    let definition = Definition {
        name: text("name")?,
        kind: text("type")?,
        required,
        default: optional("default"),
        allowed,
        minimum: optional("minimum"),
        maximum: optional("maximum"),
    };
    make(field, &definition)
}

/// A member, and the column that it names.
pub type Named<'a> = (&'static str, Option<&'a str>);

/// How a chart is drawn. What is absent is chosen from the columns.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Visualization {
    pub mark: Option<String>,
    pub x: Option<String>,
    pub y: Option<String>,
    pub series: Option<String>,
    pub title: Option<String>,
}

impl Visualization {
    /// The members that name a column of the result.
    pub fn columns(&self) -> [Named<'_>; 3] {
        [
            ("visualization.x", self.x.as_deref()),
            ("visualization.y", self.y.as_deref()),
            ("visualization.series", self.series.as_deref()),
        ]
    }
}

pub const MARKS: [&str; 9] = [
    "bar", "line", "area", "point", "circle", "square", "tick", "arc", "rect",
];

pub fn visualization(json: &Json) -> Result<Visualization, Vec<FieldError>> {
    let read: Visualization = member("visualization", json)?;
    let mut errors = FieldErrors::default();
    if read
        .mark
        .as_deref()
        .is_some_and(|mark| !MARKS.contains(&mark))
    {
        let message = format!("must be one of {}", MARKS.join(", "));
        errors.add("visualization.mark", "invalid", message);
    }
    for (field, column) in read.columns() {
        check_column(field, column, &mut errors);
    }
    if read
        .title
        .as_ref()
        .is_some_and(|title| title.chars().count() > TITLE_CHARS_MAX)
    {
        let message = format!("must have at most {TITLE_CHARS_MAX} characters");
        errors.add("visualization.title", "too_long", message);
    }
    errors.or(read)
}

/// What is forecast from which columns. What is absent is chosen from the columns.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Prediction {
    pub time_column: Option<String>,
    pub value_column: Option<String>,
    pub frequency: Option<String>,
    pub horizon: Option<u32>,
    pub level: Option<f64>,
}

impl Prediction {
    /// The members that name a column of the result.
    pub fn columns(&self) -> [Named<'_>; 2] {
        [
            ("prediction.time_column", self.time_column.as_deref()),
            ("prediction.value_column", self.value_column.as_deref()),
        ]
    }
}

pub const DEFAULT_HORIZON: u32 = 12;
pub const DEFAULT_LEVEL: f64 = 0.95;

pub fn prediction(json: &Json) -> Result<Prediction, Vec<FieldError>> {
    let read: Prediction = member("prediction", json)?;
    let mut errors = FieldErrors::default();
    for (field, column) in read.columns() {
        check_column(field, column, &mut errors);
    }
    if read
        .frequency
        .as_deref()
        .is_some_and(|word| Frequency::of(word).is_none())
    {
        let message = "must be one of minute, hour, day, week, month, quarter, year";
        errors.add("prediction.frequency", "invalid", message);
    }
    if read
        .horizon
        .is_some_and(|horizon| !(1..=HORIZON_MAX).contains(&horizon))
    {
        let message = format!("must be between 1 and {HORIZON_MAX}");
        errors.add("prediction.horizon", "out_of_range", message);
    }
    if read
        .level
        .is_some_and(|level| !(0.5..=0.999).contains(&level))
    {
        errors.add(
            "prediction.level",
            "out_of_range",
            "must be between 0.5 and 0.999",
        );
    }
    errors.or(read)
}

/// A row is released only when it stands for at least `min_group_size` of the people or things
/// whose number is in the column `privacy_unit_column`, which itself is never released.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Privacy {
    pub min_group_size: u32,
    pub privacy_unit_column: String,
}

pub fn privacy(json: &Json) -> Result<Privacy, Vec<FieldError>> {
    let read: Privacy = member("privacy", json)?;
    let mut errors = FieldErrors::default();
    check_column(
        "privacy.privacy_unit_column",
        Some(&read.privacy_unit_column),
        &mut errors,
    );
    if read.min_group_size == 0 {
        errors.add(
            "privacy.min_group_size",
            "out_of_range",
            "must be at least 1",
        );
    }
    errors.or(read)
}

impl Privacy {
    fn is_counted_by(&self, column: Option<&str>) -> bool {
        column == Some(self.privacy_unit_column.as_str())
    }

    /// The first of the members that names the column which is never released.
    pub fn named_by(&self, columns: &[Named<'_>]) -> Option<&'static str> {
        let mut columns = columns.iter();
        let found = columns.find(|(_, column)| self.is_counted_by(*column));
        found.map(|(member, _)| *member)
    }
}

/// Whether what is drawn or forecast leaves the column out that the rows are counted by: it would leave with them.
pub fn keeps_unit(
    privacy: Option<&Privacy>,
    drawn: Option<&Visualization>,
    forecast: Option<&Prediction>,
) -> Result<(), Vec<FieldError>> {
    let mut errors = FieldErrors::default();
    let drawn = drawn.map(Visualization::columns).into_iter().flatten();
    let forecast = forecast.map(Prediction::columns).into_iter().flatten();
    for (field, column) in drawn.chain(forecast) {
        if privacy.is_some_and(|privacy| privacy.is_counted_by(column)) {
            let message = "is the privacy_unit_column, which is never released: name another column, or let privacy count by another one";
            errors.add(field, "invalid", message);
        }
    }
    errors.or(())
}

/// One published column of an endpoint.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Field {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Field {
    /// Under which name the column is published.
    pub fn published(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

pub fn fields(json: &Json) -> Result<Vec<Field>, Vec<FieldError>> {
    let given = json
        .as_array()
        .ok_or_else(|| vec![FieldError::new("fields", "invalid", "must be an array")])?;
    let mut errors = FieldErrors::default();
    if given.is_empty() || given.len() > FIELDS_MAX {
        let message = format!("must name 1 to {FIELDS_MAX} columns");
        errors.add("fields", "out_of_range", message);
        // Each is held against all before it: of thousands that would take a worker's tens of milliseconds.
        return Err(errors.into_vec());
    }
    let read = given.iter().enumerate();
    let fields: Vec<Field> = read
        .filter_map(|(index, field)| errors.take(one_field(&format!("fields[{index}]"), field)))
        .collect();
    if !errors.is_empty() {
        return Err(errors.into_vec());
    }
    for (index, field) in fields.iter().enumerate() {
        check_column(
            &format!("fields[{index}].name"),
            Some(&field.name),
            &mut errors,
        );
        check_column(
            &format!("fields[{index}].alias"),
            field.alias.as_deref(),
            &mut errors,
        );
        if fields[..index]
            .iter()
            .any(|known| known.published() == field.published())
        {
            let message = format!("\"{}\" is published twice", field.published());
            errors.add(format!("fields[{index}]"), "duplicate", message);
        }
    }
    errors.or(fields)
}

/// A name alone is what `order_by` and `filters` take, and what is tried first here.
fn one_field(place: &str, json: &Json) -> Result<Field, Vec<FieldError>> {
    match json {
        Json::String(_) => {
            let message = "must be an object with the column's name: {\"name\": \"…\"}";
            Err(vec![FieldError::new(place, "invalid", message)])
        }
        _ => member(place, json),
    }
}

/// One column that rows are sorted by.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Sorting {
    pub field: String,
    #[serde(default)]
    pub descending: bool,
    /// Whether it may be NULL, if the seller says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nullable: Option<bool>,
}

/// `[{"field", "direction"}]`, `["field"]` or `["-field"]`, as a client writes it.
pub fn order_by(json: &Json) -> Result<Vec<Sorting>, Vec<FieldError>> {
    sortings("order_by", json)
}

fn sortings(field: &str, json: &Json) -> Result<Vec<Sorting>, Vec<FieldError>> {
    let wrong = |field: String, message: &str| vec![FieldError::new(field, "invalid", message)];
    let items = json
        .as_array()
        .ok_or_else(|| wrong(field.into(), "must be an array"))?;
    if items.len() > ORDER_MAX {
        return Err(wrong(field.into(), "names more than 10 columns"));
    }
    let mut errors = FieldErrors::default();
    let mut sorting = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = format!("{field}[{index}]");
        match sorted_by(item) {
            Ok(read) => {
                check_column(&at, Some(&read.field), &mut errors);
                sorting.push(read);
            }
            Err(message) => errors.extend(wrong(at, message)),
        }
    }
    errors.or(sorting)
}

fn sorted_by(item: &Json) -> Result<Sorting, &'static str> {
    let members = match item {
        Json::String(text) => {
            let descending = text.starts_with('-');
            return Ok(Sorting {
                field: text.strip_prefix('-').unwrap_or(text).to_owned(),
                descending,
                nullable: None,
            });
        }
        Json::Object(members) => members,
        _ => return Err("must be a column's name, or {field, direction}"),
    };
    let field = members.get("field").and_then(Json::as_str);
    let descending = match members.get("direction").and_then(Json::as_str) {
        Some("desc" | "DESC") => Some(true),
        Some("asc" | "ASC") => Some(false),
        Some(_) => None,
        None if members.contains_key("direction") => None,
        None => members.get("descending").map_or(Some(false), Json::as_bool),
    };
    let (Some(field), Some(descending)) = (field, descending) else {
        return Err("must have a field, and a direction asc or desc");
    };
    let nullable = match members.get("nullable") {
        None | Some(Json::Null) => None,
        Some(Json::Bool(nullable)) => Some(*nullable),
        Some(_) => return Err("nullable must be true or false"),
    };
    Ok(Sorting {
        field: field.to_owned(),
        descending,
        nullable,
    })
}

fn member<T: serde::de::DeserializeOwned>(field: &str, json: &Json) -> Result<T, Vec<FieldError>> {
    let wrong = |error: serde_json::Error| {
        let text = error.to_string();
        let missing = text.strip_prefix("missing field `");
        vec![match missing.and_then(|rest| rest.split_once('`')) {
            Some((name, _)) => {
                FieldError::new(format!("{field}.{name}"), "required", "is required")
            }
            None => FieldError::new(field, "invalid", plain(&text)),
        }]
    };
    T::deserialize(json).map_err(wrong)
}

fn check_column(field: &str, name: Option<&str>, errors: &mut FieldErrors) {
    let Some(name) = name else { return };
    if name.is_empty() || name.chars().count() > COLUMN_CHARS_MAX || name.contains('\0') {
        let message = format!("must be a column's name of 1 to {COLUMN_CHARS_MAX} characters");
        errors.add(field, "invalid", message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A number in a body is the float that is nearest to its digits, as it is in an address.
    #[test]
    fn a_number_is_read_to_its_last_bit() {
        for text in ["62.572030410805404", "-62.572030410805404", "0.1", "5e-324"] {
            let json: Json = serde_json::from_str(text).unwrap();
            assert_eq!(raw(&json), Raw::Number(text.parse().unwrap()), "{text}");
        }
    }

    /// What was saved is read, also where nobody may write it any more.
    #[test]
    fn saved_parameters_stay_readable() {
        let json = json!([{"name": "n", "type": "integer", "enum": [1, 5], "minimum": 2}]);
        let refused = parameters(&json).unwrap_err();
        assert_eq!(refused[0].field, "parameters[0].enum[0]");
        assert_eq!(saved_parameters(&json).unwrap().len(), 1);
    }

    /// What is wrong with a field is said at its place, and how to write it.
    #[test]
    fn a_wrong_field_is_named_by_its_place() {
        let given = json!([{"name": "id"}, "team", {"title": "goals"}, {"name": 1}]);
        let refused = fields(&given).unwrap_err();
        let told: Vec<(&str, &str, &str)> = refused
            .iter()
            .map(|error| (error.field.as_str(), error.code, error.message.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "fields[1]",
                    "invalid",
                    "must be an object with the column's name: {\"name\": \"…\"}"
                ),
                ("fields[2].name", "required", "is required"),
                ("fields[3]", "invalid", "must be a string"),
            ]
        );
        let refused = fields(&json!({"name": "id"})).unwrap_err();
        assert_eq!(refused[0].message, "must be an array");
    }

    /// A column by which privacy counts is never released: what would draw or continue it is refused by its member.
    #[test]
    fn what_counts_is_neither_drawn_nor_forecast() {
        let privacy = json!({"min_group_size": 5, "privacy_unit_column": "people"});
        let privacy = super::privacy(&privacy).unwrap();
        let fields = |privacy, drawn: Json, forecast: Json| -> Vec<String> {
            let drawn = visualization(&drawn).unwrap();
            let forecast = prediction(&forecast).unwrap();
            let kept = keeps_unit(privacy, Some(&drawn), Some(&forecast));
            let errors = kept.err().unwrap_or_default();
            errors.into_iter().map(|error| error.field).collect()
        };
        let drawn = json!({"x": "people", "y": "people", "series": "People"});
        let forecast = json!({"time_column": "day", "value_column": "people"});
        let refused = fields(Some(&privacy), drawn.clone(), forecast.clone());
        assert_eq!(
            refused,
            [
                "visualization.x",
                "visualization.y",
                "prediction.value_column"
            ]
        );
        assert!(fields(None, drawn, forecast).is_empty());
        assert!(fields(Some(&privacy), json!({"x": "team"}), json!({})).is_empty());
        assert_eq!(keeps_unit(Some(&privacy), None, None), Ok(()));
    }

    /// Of too many fields nothing else is told: each would be held against all before it.
    #[test]
    fn too_many_fields_are_refused_at_once() {
        let of = |count: usize| {
            let names = (0..count).map(|place| json!({"name": format!("c{}", place % 9_000)}));
            fields(&Json::from(names.collect::<Vec<_>>()))
        };
        assert_eq!(of(FIELDS_MAX).unwrap().len(), FIELDS_MAX);
        let refused = of(9_500).unwrap_err();
        let codes: Vec<&str> = refused.iter().map(|error| error.code).collect();
        assert_eq!(codes, ["out_of_range"]);
    }
}
