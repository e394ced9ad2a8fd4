//! An asset as clients write and read it.

use super::parts::{
    AssetParameter, AssetPrediction, AssetPrivacy, AssetVisualization, ShownPrivacy,
};
use super::save_schema::SavedSchema;
use crate::money::Usd;
use crate::money::usd;
use crate::products::check::{
    Errors, LABEL_CHARS_MAX, NAME_CHARS_MAX, TEXT_CHARS_MAX, connection, engine, slug, timeout,
};
use crate::products::labels::Labels;
use crate::products::{Common, Offered};
use crate::runs::{Params, answer, payer};
use crate::texts::ProductTag;
use crate::words;
use crate::{ApiState, Caller, Problem};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};
use souk_app::definition;
use souk_app::failure::Failure;
use souk_app::publish;
use souk_domain::ids::AssetId;
use souk_domain::parameters::Parameter;
use souk_domain::products::{AssetType, ResultType, SourceKind};
use souk_domain::sql::{self, SqlError};
use souk_domain::time::Timestamp;
use souk_store::prices::Price;
use souk_store::products::{AssetDetails, Row, Tested, Written};
use utoipa::ToSchema;

/// What anybody may see of a parameter, and of how a chart is drawn.
const OF_PARAMETERS: [&str; 7] = [
    "name", "type", "required", "default", "enum", "minimum", "maximum",
];
const OF_CHARTS: [&str; 5] = ["mark", "x", "y", "series", "title"];
/// Function names and paths of a seller's API.
const FUNCTION_CHARS_MAX: usize = 1_000;

/// An asset to create. Exactly one of `sql_logic`, `function_id` and `path` says where its answer comes from.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct AssetIn {
    /// A user of the company; the key's user when absent.
    pub user_id: Option<String>,
    #[schema(value_type = String, required = true)]
    pub connection_id: Option<String>,
    #[schema(value_type = words::AssetType, required = true)]
    pub asset_type: Option<String>,
    #[schema(value_type = String, required = true, min_length = 1, max_length = 255)]
    pub name: Option<String>,
    /// Unique in the company; made from the name when absent.
    #[schema(
        min_length = 1,
        max_length = 63,
        pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
    )]
    pub slug: Option<String>,
    #[schema(max_length = 5000)]
    pub description: Option<String>,
    #[schema(max_length = 100)]
    pub category: Option<String>,
    #[schema(max_length = 100)]
    pub sport: Option<String>,
    /// Of `GET /industries`.
    #[schema(max_items = 50)]
    pub industry_ids: Option<Vec<i64>>,
    /// Of `GET /asset-use-cases`.
    #[schema(max_items = 50)]
    pub use_case_ids: Option<Vec<i64>>,
    #[schema(value_type = Option<Vec<ProductTag>>, max_items = 50)]
    pub tags: Option<Vec<String>>,
    /// One statement that begins with SELECT, WITH, VALUES or TABLE, with parameters as `:name`.
    #[schema(max_length = 65536)]
    pub sql_logic: Option<String>,
    /// A function of a seller's API.
    #[schema(min_length = 1, max_length = 1000)]
    pub function_id: Option<String>,
    /// A path of a seller's API.
    #[schema(max_length = 1000, pattern = "^/([^/].*)?$")]
    pub path: Option<String>,
    /// What callers give.
    #[schema(value_type = Option<Vec<AssetParameter>>, max_items = 50)]
    pub parameters: Option<Value>,
    /// Follows from the asset type when absent.
    #[schema(value_type = Option<words::ResultType>)]
    pub result_type: Option<String>,
    #[schema(max_length = 100)]
    pub unit: Option<String>,
    #[schema(value_type = Option<AssetVisualization>)]
    pub visualization: Option<Value>,
    #[schema(value_type = Option<AssetPrediction>)]
    pub prediction: Option<Value>,
    #[schema(value_type = Option<AssetPrivacy>)]
    pub privacy: Option<Value>,
    /// A column of the result with the age of the data: dates, timestamps, or texts in ISO 8601. What says no zone is in UTC.
    #[schema(min_length = 1, max_length = 128)]
    pub freshness_column: Option<String>,
    /// Default 10000.
    #[schema(minimum = 100, maximum = 60000)]
    pub timeout_ms: Option<i64>,
    /// Default true.
    pub allow_ai_training: Option<bool>,
    /// What a change is tested with. No member of the asset; the document has it where it is a change's.
    #[schema(ignore)]
    pub params: Option<Map<String, Value>>,
}

/// An asset. What only its owner may see is absent for others.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Asset)]
pub struct AssetOut {
    pub id: String,
    pub asset_id: String,
    pub company_id: String,
    pub company_handle: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<String>,
    #[schema(value_type = words::AssetType)]
    pub asset_type: &'static str,
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
    #[schema(value_type = Vec<AssetParameter>)]
    pub parameters: Value,
    #[schema(value_type = words::ResultType)]
    pub result_type: &'static str,
    pub unit: Option<String>,
    #[schema(value_type = Option<AssetVisualization>)]
    pub visualization: Value,
    /// Without its columns for others than the owner.
    #[schema(value_type = Option<AssetPrediction>)]
    pub prediction: Value,
    #[schema(value_type = Option<ShownPrivacy>)]
    pub privacy: Value,
    /// `null` for others than the owner.
    pub freshness_column: Option<String>,
    #[schema(minimum = 0)]
    pub timeout_ms: i64,
    pub allow_ai_training: bool,
    #[schema(value_type = words::ProductStatus)]
    pub status: &'static str,
    #[schema(minimum = 0)]
    pub price_credits: Option<i64>,
    /// What these credits are: a price of 1.20 is paid with three, which are 1.50.
    #[schema(value_type = Option<Usd>)]
    pub price_usd: Option<Number>,
    /// What its owner saved of the source behind it; shown to the owner when the asset is read by itself.
    #[schema(value_type = Option<SavedSchema>)]
    pub saved_schema: Value,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub published_at: Option<Timestamp>,
}

impl Offered for AssetId {
    const WRITABLE: &'static [&'static str] = &[
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
    const SOURCES: &'static [&'static str] = &["sql_logic", "function_id", "path"];
    type In = AssetIn;
    type Out = AssetOut;

    fn common(body: &AssetIn) -> Common<'_> {
        Common {
            user_id: body.user_id.as_deref(),
            slug: body.slug.as_deref(),
            price_credits: None,
            params: body.params.as_ref(),
        }
    }

    async fn checked(
        body: AssetIn,
        api: &ApiState,
        caller: &Caller,
    ) -> Result<Written<AssetDetails>, Problem> {
        body.checked(api, caller).await
    }

    /// Callers of an asset choose values, which its own statement compares.
    async fn possible(
        _: &ApiState,
        _: &Caller,
        _: &AssetId,
        _: &Written<AssetDetails>,
        _: Option<&Row<AssetId>>,
    ) -> Result<(), Problem> {
        Ok(())
    }

    async fn tested(
        api: &ApiState,
        caller: &Caller,
        before: &Row<AssetId>,
        written: &Written<AssetDetails>,
        params: &Params,
    ) -> Result<Tested, Failure> {
        let (payer, given) = (payer(caller, None), params.raw());
        let app = api.app();
        publish::test_changed_asset(app, before, written, &given, &payer, answer::insight).await
    }

    fn out(row: Row<AssetId>, price: Option<&Price>, is_owner: bool) -> AssetOut {
        let written = row.written;
        let details = written.details;
        let labels = Labels::stored(&written.labels);
        let stored = |text: &Option<String>| {
            text.as_deref()
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or(Value::Null)
        };
        // To others no columns that no result has, and nothing that its seller wrote beside what is documented.
        let shown = |members: &[&str], text: &Option<String>| {
            let mut json = stored(text);
            if !is_owner {
                keep(members, &mut json);
            }
            json
        };
        let mut parameters: Value =
            serde_json::from_str(&details.parameters).unwrap_or_else(|_| json!([]));
        if !is_owner {
            let parameters = parameters.as_array_mut().into_iter().flatten();
            parameters.for_each(|parameter| keep(&OF_PARAMETERS, parameter));
        }
        let source = |kind: SourceKind| {
            (is_owner && details.source_kind == kind).then(|| details.source.clone())
        };
        AssetOut {
            asset_id: row.id.to_string(),
            id: row.id.to_string(),
            company_id: row.company_id.to_string(),
            company_handle: row.company_handle,
            user_id: is_owner.then(|| row.user_id.to_string()),
            connection_id: is_owner.then(|| written.connection_id.to_string()),
            sql_logic: source(SourceKind::Sql),
            function_id: source(SourceKind::Function),
            path: source(SourceKind::Path),
            parameters,
            visualization: shown(&OF_CHARTS, &details.visualization),
            prediction: shown(&["frequency", "horizon", "level"], &details.prediction),
            privacy: shown(&["min_group_size"], &details.privacy),
            saved_schema: Value::Null,
            asset_type: details.asset_type.as_str(),
            name: written.name,
            slug: written.slug,
            description: written.description,
            category: written.category,
            sport: details.sport,
            industry_ids: labels.industry_ids,
            use_case_ids: labels.use_case_ids,
            tags: labels.tags,
            result_type: details.result_type.as_str(),
            unit: details.unit,
            freshness_column: details.freshness_column.filter(|_| is_owner),
            timeout_ms: written.timeout_ms,
            allow_ai_training: written.allow_ai_training,
            status: row.status.as_str(),
            price_credits: price.map(|price| price.credits.get()),
            price_usd: price.map(|price| usd(price.credits.cents())),
            created_at: row.created_at,
            updated_at: row.updated_at,
            published_at: row.published_at,
        }
    }

    fn bytes(row: &Row<AssetId>) -> usize {
        let details = &row.written.details;
        let optional = [
            &details.visualization,
            &details.prediction,
            &details.privacy,
        ];
        let optional = optional.into_iter().flatten().map(String::len);
        let description = row.written.description.len();
        description + details.source.len() + details.parameters.len() + optional.sum::<usize>()
    }

    fn make_room(stored: &mut Map<String, Value>, patch: &Map<String, Value>) {
        // A new type of asset has another result.
        if patch.contains_key("asset_type") && !patch.contains_key("result_type") {
            stored.remove("result_type");
        }
    }
}

impl AssetIn {
    async fn checked(
        self,
        api: &ApiState,
        caller: &Caller,
    ) -> Result<Written<AssetDetails>, Problem> {
        let mut errors = Errors::default();
        let name = errors.required("name", self.name, NAME_CHARS_MAX);
        let asset_type = errors.required("asset_type", self.asset_type, LABEL_CHARS_MAX);
        let asset_type = match AssetType::parse(&asset_type) {
            Some(asset_type) => Some(asset_type),
            None => {
                if !asset_type.is_empty() {
                    let message = "must be CALCULATION, VISUALIZATION or PREDICTION";
                    errors.add("asset_type", "invalid", message);
                }
                None
            }
        };
        let result_type = result_type(&mut errors, asset_type, self.result_type.as_deref());
        let slug = slug(&mut errors, self.slug, &name, "asset");
        let parameters_json = self.parameters.unwrap_or_else(|| json!([]));
        let parameters = definition::parameters(&parameters_json);
        let are_declared = parameters.is_ok();
        let parameters = errors.take(parameters);
        errors.json("parameters", Some(&parameters_json));
        errors.json("visualization", self.visualization.as_ref());
        errors.json("prediction", self.prediction.as_ref());
        errors.json("privacy", self.privacy.as_ref());
        // What is of no use is checked too: whoever sends it means something by it.
        let drawn = self.visualization.as_ref().map(definition::visualization);
        let drawn = errors.take(drawn.transpose());
        let forecast = self.prediction.as_ref().map(definition::prediction);
        let forecast = errors.take(forecast.transpose());
        let visualization = self
            .visualization
            .filter(|_| result_type == Some(ResultType::Chart));
        let prediction = self
            .prediction
            .filter(|_| result_type == Some(ResultType::Prediction));
        let privacy = self.privacy.as_ref().map(definition::privacy);
        let privacy = errors.take(privacy.transpose());
        let (drawn, forecast) = (drawn.as_ref(), forecast.as_ref());
        errors.take(definition::keeps_unit(privacy.as_ref(), drawn, forecast));
        let timeout_ms = timeout(&mut errors, self.timeout_ms);
        let labels = Labels::given(&mut errors, self.industry_ids, self.use_case_ids, self.tags);
        let source = source(&mut errors, self.sql_logic, self.function_id, self.path);
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
        if freshness_column.as_ref().is_some_and(String::is_empty) {
            let message = "must be a column's name, or null";
            errors.add("freshness_column", "invalid", message);
        }

        if let (Some(connection), Some((kind, text))) = (&connection, &source)
            && let Some(speaks) = engine(&mut errors, api, caller, connection).await?
        {
            match (*kind, speaks.sql) {
                (SourceKind::Sql, Some(dialect)) => {
                    let names: Vec<&str> = parameters.iter().map(Parameter::name).collect();
                    match sql::check(dialect, text, &names) {
                        // Which it is that is not declared, nobody knows.
                        Err(SqlError::Undeclared(_) | SqlError::Unused(_)) if !are_declared => {}
                        Err(error) => return Err(errors.sql(&error)),
                        Ok(_) => {}
                    }
                }
                (SourceKind::Sql, None) => {
                    let message = format!(
                        "{} takes no SQL: give a function_id or a path",
                        speaks.engine
                    );
                    errors.add("sql_logic", "unsupported", message);
                }
                (kind, _) if !speaks.functions => {
                    let message = format!("{} has no functions: give sql_logic", speaks.engine);
                    errors.add(member(kind), "unsupported", message);
                }
                (_, _)
                    if matches!(
                        result_type,
                        Some(ResultType::Chart | ResultType::Prediction)
                    ) =>
                {
                    let message = "a seller's API answers one value: charts and predictions are made from SQL";
                    errors.add("asset_type", "unsupported", message);
                }
                _ => {}
            }
        }
        errors.check()?;
        let (Some(connection_id), Some((source_kind, source)), Some(asset_type), Some(result_type)) =
            (connection, source, asset_type, result_type)
        else {
            return Err(Problem::internal("an asset without errors lacks a part"));
        };
        let details = AssetDetails {
            asset_type,
            sport,
            source_kind,
            source,
            parameters: parameters_json.to_string(),
            result_type,
            unit,
            visualization: visualization.map(|json| json.to_string()),
            prediction: prediction.map(|json| json.to_string()),
            privacy: self.privacy.map(|json| json.to_string()),
            freshness_column,
        };
        Ok(Written {
            connection_id,
            name,
            slug,
            description,
            category,
            labels: serde_json::to_string(&labels).map_err(Problem::internal)?,
            timeout_ms,
            allow_ai_training: self.allow_ai_training.unwrap_or(true),
            details,
        })
    }
}

/// Leaves these members of an object.
fn keep(members: &[&str], json: &mut Value) {
    if let Some(object) = json.as_object_mut() {
        object.retain(|name, _| members.contains(&name.as_str()));
    }
}

/// What the result is, as it is said or as it follows from the type of the asset.
fn result_type(
    errors: &mut Errors,
    asset_type: Option<AssetType>,
    given: Option<&str>,
) -> Option<ResultType> {
    let asset_type = asset_type?;
    let allowed = asset_type.results();
    let wanted = match given {
        None => allowed.first().copied(),
        Some(given) => ResultType::parse(given).filter(|given| allowed.contains(given)),
    };
    if wanted.is_none() {
        let allowed: Vec<&str> = allowed.iter().map(|allowed| allowed.as_str()).collect();
        let (asset_type, allowed) = (asset_type.as_str(), allowed.join(" or "));
        let message = format!("of a {asset_type} must be {allowed}");
        errors.add("result_type", "invalid", message);
    }
    wanted
}

/// The member of a body that a source is given by.
fn member(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Sql => "sql_logic",
        SourceKind::Function => "function_id",
        SourceKind::Path => "path",
    }
}

fn source(
    errors: &mut Errors,
    sql: Option<String>,
    function: Option<String>,
    path: Option<String>,
) -> Option<(SourceKind, String)> {
    let given = [
        (SourceKind::Sql, sql),
        (SourceKind::Function, function),
        (SourceKind::Path, path),
    ];
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
    let field = member(kind);
    if text.trim().is_empty() {
        errors.add(field, "required", "must not be empty");
    }
    if kind != SourceKind::Sql
        && (text.chars().count() > FUNCTION_CHARS_MAX || text.chars().any(char::is_control))
    {
        errors.add(
            field,
            "invalid",
            format!("must be a text of at most {FUNCTION_CHARS_MAX} characters"),
        );
    }
    if kind == SourceKind::Path
        && (!text.starts_with('/') || text.starts_with("//") || text.contains(['\\', '#', ' ']))
    {
        errors.add(field, "invalid", "must begin with one / and be a path");
    }
    Some((kind, text))
}
