//! An asset as clients write and read it.

use crate::refusals::{SQL_NOT_READ_ONLY, VALIDATION_ERROR};
use crate::{ApiState, Caller, FieldError, Problem};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use souk_app::definition;
use souk_app::failure::Refusal;
use souk_app::products::{DEFAULT_TIMEOUT_MS, TIMEOUT_MS_MAX, speaks};
use souk_domain::ids::{ConnectionId, UserId};
use souk_domain::parameters::Parameter;
use souk_domain::slugs;
use souk_domain::sql::{self, SqlError};
use souk_domain::time::Timestamp;
use souk_store::assets::{Asset, Written};
use souk_store::prices::Price;
use souk_store::{AnyConnection, users};
use utoipa::ToSchema;

const NAME_CHARS_MAX: usize = 255;
const TEXT_CHARS_MAX: usize = 5_000;
const LABEL_CHARS_MAX: usize = 100;
const LABELS_MAX: usize = 50;
/// Function names and paths of a seller's API.
const FUNCTION_CHARS_MAX: usize = 1_000;
const TIMEOUT_MS_MIN: i64 = 100;

/// What can be written, in one list: a PATCH is laid over it.
const WRITABLE: [&str; 22] = [
    "connection_id",
    "asset_type",
    "name",
    "slug",
    "description",
    "category",
    "sport",
    "industry_ids",
    "use_case_ids",
    "tags",
    "sql_logic",
    "function_id",
    "path",
    "parameters",
    "result_type",
    "unit",
    "visualization",
    "prediction",
    "privacy",
    "freshness_column",
    "timeout_ms",
    "allow_ai_training",
];
/// Exactly one of them is an asset's source.
const SOURCES: [&str; 3] = ["sql_logic", "function_id", "path"];

/// An asset to create, or what to change of one.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssetIn {
    /// Must equal the path's when given.
    pub company_id: Option<String>,
    /// A user of the company; the key's user when absent.
    pub user_id: Option<String>,
    /// Required on create.
    pub connection_id: Option<String>,
    /// Required on create: `CALCULATION`, `VISUALIZATION` or `PREDICTION`.
    pub asset_type: Option<String>,
    /// Required on create.
    pub name: Option<String>,
    /// Unique in the company; made from the name when absent.
    pub slug: Option<String>,
    pub description: Option<String>,
    pub category: Option<String>,
    pub sport: Option<String>,
    pub industry_ids: Option<Vec<i64>>,
    pub use_case_ids: Option<Vec<i64>>,
    pub tags: Option<Vec<String>>,
    /// One statement that begins with SELECT, WITH, VALUES or TABLE, with parameters as `:name`.
    pub sql_logic: Option<String>,
    /// A function of a seller's API.
    pub function_id: Option<String>,
    /// A path of a seller's API, beginning with `/`.
    pub path: Option<String>,
    /// `[{name, type, required, default, enum, minimum, maximum}]`, type `integer`, `number`,
    /// `string`, `boolean`, `date` or `timestamp`.
    #[schema(value_type = Option<Vec<Object>>)]
    pub parameters: Option<Value>,
    /// `number`, `string`, `chart` or `prediction`; follows from the asset type when absent.
    pub result_type: Option<String>,
    pub unit: Option<String>,
    /// `{mark, x, y, series, title}`
    #[schema(value_type = Option<Object>)]
    pub visualization: Option<Value>,
    /// `{time_column, value_column, frequency, horizon, level}`
    #[schema(value_type = Option<Object>)]
    pub prediction: Option<Value>,
    /// `{min_group_size, privacy_unit_column}`
    #[schema(value_type = Option<Object>)]
    pub privacy: Option<Value>,
    /// A column of the result with the age of the data.
    pub freshness_column: Option<String>,
    /// 100 to 60000; default 10000.
    pub timeout_ms: Option<i64>,
    /// Default true.
    pub allow_ai_training: Option<bool>,
}

/// An asset. What only its owner may see is absent for others.
#[derive(Debug, Serialize, ToSchema)]
pub struct AssetOut {
    pub id: String,
    pub asset_id: String,
    pub company_id: String,
    pub company_handle: String,
    pub user_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<String>,
    pub asset_type: String,
    pub name: String,
    pub slug: String,
    pub description: String,
    pub category: Option<String>,
    pub sport: Option<String>,
    pub industry_ids: Vec<i64>,
    pub use_case_ids: Vec<i64>,
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql_logic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[schema(value_type = Vec<Object>)]
    pub parameters: Value,
    pub result_type: String,
    pub unit: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub visualization: Value,
    #[schema(value_type = Option<Object>)]
    pub prediction: Value,
    #[schema(value_type = Option<Object>)]
    pub privacy: Value,
    pub freshness_column: Option<String>,
    pub timeout_ms: i64,
    pub allow_ai_training: bool,
    /// `draft`, `published`, `unpublished` or `archived`.
    pub status: String,
    pub price_credits: Option<i64>,
    pub price_usd: Option<f64>,
    #[schema(value_type = Option<Object>)]
    pub saved_schema: Value,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub published_at: Option<Timestamp>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Labels {
    industry_ids: Vec<i64>,
    use_case_ids: Vec<i64>,
    tags: Vec<String>,
}

impl AssetOut {
    pub fn new(asset: Asset, price: Option<&Price>, is_owner: bool) -> AssetOut {
        let written = asset.written;
        let labels: Labels = serde_json::from_str(&written.labels).unwrap_or_default();
        let stored = |text: &Option<String>| {
            text.as_deref()
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or(Value::Null)
        };
        let source =
            |kind: &str| (is_owner && written.source_kind == kind).then(|| written.source.clone());
        AssetOut {
            id: asset.id.to_string(),
            asset_id: asset.id.to_string(),
            company_id: asset.company_id.to_string(),
            company_handle: asset.company_handle,
            user_id: asset.user_id.to_string(),
            connection_id: is_owner.then(|| written.connection_id.to_string()),
            sql_logic: source("sql"),
            function_id: source("function"),
            path: source("path"),
            parameters: serde_json::from_str(&written.parameters).unwrap_or_else(|_| json!([])),
            visualization: stored(&written.visualization),
            prediction: stored(&written.prediction),
            privacy: stored(&written.privacy),
            saved_schema: stored(&asset.saved_schema),
            asset_type: written.asset_type,
            name: written.name,
            slug: written.slug,
            description: written.description,
            category: written.category,
            sport: written.sport,
            industry_ids: labels.industry_ids,
            use_case_ids: labels.use_case_ids,
            tags: labels.tags,
            result_type: written.result_type,
            unit: written.unit,
            freshness_column: written.freshness_column,
            timeout_ms: written.timeout_ms,
            allow_ai_training: written.allow_ai_training,
            status: asset.status,
            price_credits: price.map(|price| price.credits.get()),
            price_usd: price.map(|price| price.usd.get() as f64 / 100.0),
            created_at: asset.created_at,
            updated_at: asset.updated_at,
            published_at: asset.published_at,
        }
    }
}

/// What is stored of an asset, as the body that would write it, with a PATCH laid over it.
pub fn patched(asset: &Asset, patch: &Map<String, Value>) -> Map<String, Value> {
    let out = AssetOut::new(asset.clone(), None, true);
    let Ok(Value::Object(mut members)) = serde_json::to_value(&out) else {
        return patch.clone();
    };
    members.retain(|name, _| WRITABLE.contains(&name.as_str()));
    // A new source takes the place of the old one.
    if SOURCES
        .iter()
        .any(|source| patch.get(*source).is_some_and(|value| !value.is_null()))
    {
        members.retain(|name, _| !SOURCES.contains(&name.as_str()));
    }
    // So does a new type of its result.
    if patch.contains_key("asset_type") && !patch.contains_key("result_type") {
        members.remove("result_type");
    }
    for (name, value) in patch {
        members.insert(name.clone(), value.clone());
    }
    members
}

/// What is wrong so far.
#[derive(Default)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    pub fn add(&mut self, field: &str, code: &'static str, message: impl Into<String>) {
        self.0.push(FieldError::new(field, code, message));
    }

    pub fn take<T: Default>(&mut self, result: Result<T, Vec<FieldError>>) -> T {
        result.unwrap_or_else(|errors| {
            self.0.extend(errors);
            T::default()
        })
    }

    /// A text within bounds; `None` when it is absent.
    pub fn text(&mut self, field: &str, text: Option<String>, chars_max: usize) -> Option<String> {
        let text = text?;
        if text.chars().count() > chars_max || text.contains('\0') {
            self.add(
                field,
                "too_long",
                format!("must be a text of at most {chars_max} characters"),
            );
        }
        Some(text)
    }

    pub fn required(&mut self, field: &str, text: Option<String>, chars_max: usize) -> String {
        match self.text(field, text, chars_max) {
            Some(text) if !text.trim().is_empty() => text,
            _ => {
                self.add(field, "required", "is required");
                String::new()
            }
        }
    }

    pub fn sql(&mut self, error: &SqlError) -> Problem {
        let refusal = match error {
            SqlError::NotReadOnly(_) => SQL_NOT_READ_ONLY,
            _ => VALIDATION_ERROR,
        };
        self.add("sql_logic", "invalid", error.to_string());
        Problem::fields(refusal, std::mem::take(&mut self.0))
    }

    pub fn check(self) -> Result<(), Problem> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Problem::fields(VALIDATION_ERROR, self.0)),
        }
    }
}

impl AssetIn {
    /// Everything checked that can be checked without running it.
    pub async fn checked(self, api: &ApiState, caller: &Caller) -> Result<Written, Problem> {
        let mut errors = Errors::default();
        let name = errors.required("name", self.name, NAME_CHARS_MAX);
        let asset_type = errors.required("asset_type", self.asset_type, LABEL_CHARS_MAX);
        let allowed: &[&str] = match asset_type.as_str() {
            "CALCULATION" => &["number", "string"],
            "VISUALIZATION" => &["chart"],
            "PREDICTION" => &["prediction"],
            "" => &[],
            _ => {
                errors.add(
                    "asset_type",
                    "invalid",
                    "must be CALCULATION, VISUALIZATION or PREDICTION",
                );
                &[]
            }
        };
        let result_type = self
            .result_type
            .unwrap_or_else(|| allowed.first().unwrap_or(&"number").to_string());
        if !allowed.is_empty() && !allowed.contains(&result_type.as_str()) {
            errors.add(
                "result_type",
                "invalid",
                format!("of a {asset_type} must be {}", allowed.join(" or ")),
            );
        }
        let slug = slug(&mut errors, self.slug, &name, "asset");
        let parameters_json = self.parameters.unwrap_or_else(|| json!([]));
        let parameters = errors.take(definition::parameters(&parameters_json));
        let visualization = self.visualization.filter(|_| result_type == "chart");
        let prediction = self.prediction.filter(|_| result_type == "prediction");
        if let Some(json) = &visualization {
            errors.take(definition::visualization(json));
        }
        if let Some(json) = &prediction {
            errors.take(definition::prediction(json));
        }
        if let Some(json) = &self.privacy {
            errors.take(definition::privacy(json).map(Some));
        }
        let timeout_ms = timeout(&mut errors, self.timeout_ms);
        let labels = Labels {
            industry_ids: bounded(&mut errors, "industry_ids", self.industry_ids),
            use_case_ids: bounded(&mut errors, "use_case_ids", self.use_case_ids),
            tags: bounded(&mut errors, "tags", self.tags),
        };
        if labels
            .tags
            .iter()
            .any(|tag| tag.chars().count() > LABEL_CHARS_MAX)
        {
            errors.add(
                "tags",
                "too_long",
                format!("must have at most {LABEL_CHARS_MAX} characters each"),
            );
        }
        let mut source = source(&mut errors, self.sql_logic, self.function_id, self.path);
        let connection = connection(&mut errors, self.connection_id);
        let description = errors
            .text("description", self.description, TEXT_CHARS_MAX)
            .unwrap_or_default();
        let category = errors.text("category", self.category, LABEL_CHARS_MAX);
        let sport = errors.text("sport", self.sport, LABEL_CHARS_MAX);
        let unit = errors.text("unit", self.unit, LABEL_CHARS_MAX);
        let freshness_column = errors.text(
            "freshness_column",
            self.freshness_column,
            definition::COLUMN_CHARS_MAX,
        );

        if let (Some(connection), Some((kind, text))) = (&connection, &mut source) {
            // Read before the match: no connection to the store is held while SQL is checked.
            let spoken = {
                let mut db = api.db().read().await?;
                speaks(api.app(), &mut db, caller.company(), connection).await
            };
            match spoken {
                Err(Refusal::NotFound) => errors.add(
                    "connection_id",
                    "unknown",
                    "the company has no such connection",
                ),
                Err(error) => {
                    return Err(crate::runs::not_found(
                        error,
                        "connection",
                        connection.as_str(),
                    ));
                }
                Ok(speaks) => match (*kind, speaks.sql) {
                    ("sql", Some(dialect)) => {
                        let names: Vec<&str> = parameters.iter().map(Parameter::name).collect();
                        if let Err(error) = sql::check(dialect, text, &names) {
                            return Err(errors.sql(&error));
                        }
                    }
                    ("sql", None) => errors.add(
                        "sql_logic",
                        "unsupported",
                        format!(
                            "{} takes no SQL: give a function_id or a path",
                            speaks.engine
                        ),
                    ),
                    (_, _) if !speaks.functions => {
                        let field = if *kind == "path" {
                            "path"
                        } else {
                            "function_id"
                        };
                        errors.add(
                            field,
                            "unsupported",
                            format!("{} has no functions: give sql_logic", speaks.engine),
                        );
                    }
                    (_, _) if result_type == "chart" || result_type == "prediction" => {
                        let message = "a seller's API answers one value: charts and predictions are made from SQL";
                        errors.add("asset_type", "unsupported", message);
                    }
                    _ => {}
                },
            }
        }
        errors.check()?;
        let (Some(connection_id), Some((source_kind, source))) = (connection, source) else {
            return Err(Problem::internal(
                "an asset without errors lacks its source",
            ));
        };
        Ok(Written {
            connection_id,
            asset_type,
            name,
            slug,
            description,
            category,
            sport,
            labels: serde_json::to_string(&labels).map_err(Problem::internal)?,
            source_kind: source_kind.to_owned(),
            source,
            parameters: parameters_json.to_string(),
            result_type,
            unit,
            visualization: visualization.map(|json| json.to_string()),
            prediction: prediction.map(|json| json.to_string()),
            privacy: self.privacy.map(|json| json.to_string()),
            freshness_column,
            timeout_ms,
            allow_ai_training: self.allow_ai_training.unwrap_or(true),
        })
    }
}

fn source(
    errors: &mut Errors,
    sql: Option<String>,
    function: Option<String>,
    path: Option<String>,
) -> Option<(&'static str, String)> {
    let given = [("sql", sql), ("function", function), ("path", path)];
    let mut given = given
        .into_iter()
        .filter_map(|(kind, text)| Some((kind, text?)));
    let (Some((kind, text)), None) = (given.next(), given.next()) else {
        errors.add(
            "sql_logic",
            "required",
            "exactly one of sql_logic, function_id and path is required",
        );
        return None;
    };
    let field = match kind {
        "sql" => "sql_logic",
        "function" => "function_id",
        _ => "path",
    };
    if text.trim().is_empty() {
        errors.add(field, "required", "must not be empty");
    }
    if kind != "sql"
        && (text.chars().count() > FUNCTION_CHARS_MAX || text.chars().any(char::is_control))
    {
        errors.add(
            field,
            "invalid",
            format!("must be a text of at most {FUNCTION_CHARS_MAX} characters"),
        );
    }
    if kind == "path"
        && (!text.starts_with('/') || text.starts_with("//") || text.contains(['\\', '#', ' ']))
    {
        errors.add(field, "invalid", "must begin with one / and be a path");
    }
    Some((kind, text))
}

pub fn connection(errors: &mut Errors, id: Option<String>) -> Option<ConnectionId> {
    let Some(id) = id else {
        errors.add("connection_id", "required", "is required");
        return None;
    };
    match ConnectionId::parse(&id) {
        Ok(id) => Some(id),
        Err(error) => {
            errors.add("connection_id", "invalid", error.to_string());
            None
        }
    }
}

/// As given, or made from the name.
pub fn slug(errors: &mut Errors, given: Option<String>, name: &str, otherwise: &str) -> String {
    match given {
        Some(slug) => {
            if let Err(error) = slugs::check_slug(&slug) {
                errors.add("slug", "invalid", error.to_string());
            }
            slug
        }
        None => slugs::slug_from(name).unwrap_or_else(|| otherwise.to_owned()),
    }
}

pub fn timeout(errors: &mut Errors, given: Option<i64>) -> i64 {
    let timeout = given.unwrap_or(DEFAULT_TIMEOUT_MS);
    if !(TIMEOUT_MS_MIN..=TIMEOUT_MS_MAX).contains(&timeout) {
        errors.add(
            "timeout_ms",
            "out_of_range",
            format!("must be between {TIMEOUT_MS_MIN} and {TIMEOUT_MS_MAX}"),
        );
    }
    timeout
}

fn bounded<T>(errors: &mut Errors, field: &str, given: Option<Vec<T>>) -> Vec<T> {
    let given = given.unwrap_or_default();
    if given.len() > LABELS_MAX {
        errors.add(
            field,
            "too_many",
            format!("must have at most {LABELS_MAX} entries"),
        );
    }
    given
}

/// The user that a new product belongs to: the body's, else the key's, else the company's first.
pub async fn user(
    db: &mut AnyConnection,
    caller: &Caller,
    given: Option<&str>,
) -> Result<UserId, Problem> {
    let unknown = || {
        Problem::fields(
            VALIDATION_ERROR,
            vec![FieldError::new(
                "user_id",
                "unknown",
                "the company has no such user",
            )],
        )
    };
    if let Some(given) = given {
        let id = UserId::parse(given).map_err(|_| unknown())?;
        return match users::get(db, caller.company(), &id).await? {
            Some(_) => Ok(id),
            None => Err(unknown()),
        };
    }
    if let (Some(user), true) = (caller.user(), caller.company() == caller.payer()) {
        return Ok(user.clone());
    }
    let (first, _) = users::list(db, caller.company(), 0, 1).await?;
    match first.into_iter().next() {
        Some(user) => Ok(user.id),
        None => Err(Problem::invalid(
            "user_id",
            "is required: the company has no user yet",
        )),
    }
}
