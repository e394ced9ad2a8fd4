//! An integration as clients write and read it.

use crate::answer::AnyObject;
use crate::fields::some;
use crate::words;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use souk_app::integrations::Input;
use souk_app::integrations::check::Report;
use souk_domain::ids::{CompanyId, IntegrationId, UserId};
use souk_domain::integrations::{BASE_URL, Texts};
use souk_domain::time::Timestamp;
use souk_store::integrations::Integration;
use utoipa::ToSchema;

/// An integration to save or to test. Which settings a platform asks for: `docs/publishing.md`, or the
/// `settings_schema` of its publisher in `GET /connectors`.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct IntegrationIn {
    /// A user of the company; the key's user when absent.
    pub user_id: Option<String>,
    /// Cannot be changed: `wordpress`, `ghost`, `slack`, `webhook`, or one of a publisher that the company has uploaded.
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = String, required = true, pattern = "^[a-z][a-z0-9-]{0,63}$")]
    pub platform: Option<String>,
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 255)]
    pub name: Option<String>,
    /// Texts by name; `base_url` is always one of them. Given, it replaces the former one.
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = AnyObject, required = true)]
    pub config: Option<Map<String, Value>>,
    /// Texts by name, sealed and never shown again. Given, it replaces the former one.
    #[schema(write_only, value_type = Option<AnyObject>)]
    pub credentials: Option<Map<String, Value>>,
}

impl IntegrationIn {
    pub fn into_input(self) -> Input {
        Input {
            user_id: self.user_id,
            platform: self.platform,
            name: self.name,
            config: self.config,
            credentials: self.credentials,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Integration)]
pub struct IntegrationOut {
    #[schema(value_type = String)]
    id: IntegrationId,
    #[schema(value_type = String)]
    company_id: CompanyId,
    #[schema(value_type = String)]
    user_id: UserId,
    platform: String,
    name: String,
    #[schema(value_type = AnyObject)]
    config: Texts,
    has_credentials: bool,
    #[schema(value_type = words::IntegrationStatus)]
    status: &'static str,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_tested_at: Option<Timestamp>,
    last_error: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<Integration> for IntegrationOut {
    fn from(row: Integration) -> IntegrationOut {
        let mut config = row.config;
        config.insert(BASE_URL.to_owned(), row.base_url);
        IntegrationOut {
            id: row.id,
            company_id: row.company_id,
            user_id: row.user_id,
            platform: row.platform,
            name: row.name,
            config,
            has_credentials: !row.credentials.is_empty(),
            status: row.status.as_str(),
            last_tested_at: row.last_tested_at,
            last_error: row.last_error,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IntegrationTest)]
pub struct TestOut {
    success: bool,
    /// What is wrong, or whose credentials these are.
    message: String,
    latency_ms: u64,
}

impl From<Report> for TestOut {
    fn from(report: Report) -> TestOut {
        TestOut {
            success: report.result.is_ok(),
            message: match report.result {
                Ok(Some(account)) => format!("it works, as {account}"),
                Ok(None) => "it works".to_owned(),
                Err(error) => error,
            },
            latency_ms: report.latency_ms,
        }
    }
}
