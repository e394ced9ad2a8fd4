use crate::fitting::ERRORS_MAX;
use crate::products::find;
use crate::refusals::{CONFLICT, VALIDATION_ERROR};
use crate::{ApiState, Body, Caller, Data, FieldError, Operation, Path, Problem};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::saved_schemas::{self, COMPANY_BYTES_MAX};
use utoipa::ToSchema;

const NOTES: &str = "Replaces the one that was saved before. It is a note of the asset's owner, read with the asset by its owner only: nothing \
     is checked against the source. At most 1,000 tables and 5,000 fields, 255 characters a name, and 64 MiB for all of a company's assets (409); members that are not documented are left out.";

pub const OPERATION: Operation = Operation::put(
    "save_asset_schema",
    "/companies/{company_id}/assets/{asset_id}/schema",
)
.about("Assets", "Save the schema behind an own asset")
.notes(NOTES)
.needs(Role::DataScientist, Permission::Write)
.refuses(&[CONFLICT]);

pub const POST_OPERATION: Operation = Operation::post(
    "post_asset_schema",
    "/companies/{company_id}/assets/{asset_id}/schema",
)
.about("Assets", "Save the schema behind an own asset, with POST")
.notes(NOTES)
.needs(Role::DataScientist, Permission::Write)
.refuses(&[CONFLICT]);

/// As many as a catalog is read with.
const TABLES_MAX: usize = 1_000;
const FIELDS_MAX: usize = 5_000;
const NAME_CHARS_MAX: usize = 255;
const TEXT_CHARS_MAX: usize = 2_000;

#[derive(Deserialize, ToSchema)]
pub struct SchemaIn {
    schema: SavedSchema,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct SavedSchema {
    #[schema(max_items = 1000)]
    tables: Vec<SavedTable>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct SavedTable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255)]
    schema: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000)]
    description: Option<String>,
    #[serde(default)]
    #[schema(max_items = 5000)]
    fields: Vec<SavedField>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct SavedField {
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255)]
    r#type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nullable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    primary_key: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000)]
    description: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct SchemaSaved {
    #[schema(value_type = String)]
    asset_id: AssetId,
    schema: SavedSchema,
    #[schema(value_type = String, format = DateTime)]
    saved_at: Timestamp,
}

/// Saves what a seller notes of the source behind an asset.
pub async fn save_asset_schema(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    Body(body): Body<SchemaIn>,
) -> Result<Data<SchemaSaved>, Problem> {
    check(&body.schema)?;
    let text = serde_json::to_string(&body.schema).map_err(Problem::internal)?;
    let (company, now) = (caller.company(), caller.now());
    api.db()
        .write(async |write| -> Result<_, Problem> {
            find(write, company, &id).await?;
            match saved_schemas::save(write, company, &id, &text, now).await? {
                true => Ok(()),
                false => {
                    let mib = COMPANY_BYTES_MAX >> 20;
                    let message = format!("what a company saves of its sources has at most {mib} MiB in all: save less of others first");
                    Err(Problem::of(CONFLICT, message))
                }
            }
        })
        .await?;
    Ok(Data(SchemaSaved {
        asset_id: id,
        schema: body.schema,
        saved_at: now,
    }))
}

fn check(schema: &SavedSchema) -> Result<(), Problem> {
    let mut errors = Vec::new();
    let mut wrong = |field: String, code: &'static str, message: String| {
        if errors.len() < ERRORS_MAX {
            errors.push(FieldError::new(field, code, message));
        }
    };
    let fields: usize = schema.tables.iter().map(|table| table.fields.len()).sum();
    if schema.tables.len() > TABLES_MAX {
        let message = format!("must have at most {TABLES_MAX} tables");
        wrong("schema.tables".into(), "too_many", message);
    }
    if fields > FIELDS_MAX {
        let message = format!("must have at most {FIELDS_MAX} fields in all");
        wrong("schema.tables".into(), "too_many", message);
    }
    let mut name = |field: String, text: &str| {
        if text.is_empty() || text.chars().count() > NAME_CHARS_MAX {
            let message = format!("must have 1 to {NAME_CHARS_MAX} characters");
            wrong(field, "invalid", message);
        }
    };
    for (place, table) in schema.tables.iter().enumerate() {
        let at = format!("schema.tables[{place}]");
        name(format!("{at}.name"), &table.name);
        if let Some(schema) = &table.schema {
            name(format!("{at}.schema"), schema);
        }
        for (place, field) in table.fields.iter().enumerate() {
            let at = format!("{at}.fields[{place}]");
            name(format!("{at}.name"), &field.name);
            if let Some(kind) = &field.r#type {
                name(format!("{at}.type"), kind);
            }
        }
    }
    let mut text = |field: String, text: &Option<String>| {
        if text
            .as_ref()
            .is_some_and(|text| text.chars().count() > TEXT_CHARS_MAX)
        {
            let message = format!("must have at most {TEXT_CHARS_MAX} characters");
            wrong(field, "too_long", message);
        }
    };
    for (place, table) in schema.tables.iter().enumerate() {
        let at = format!("schema.tables[{place}]");
        text(format!("{at}.description"), &table.description);
        for (place, field) in table.fields.iter().enumerate() {
            let at = format!("{at}.fields[{place}].description");
            text(at, &field.description);
        }
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Problem::fields(VALIDATION_ERROR, errors)),
    }
}
