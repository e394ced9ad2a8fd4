//! A publication as its company sees it.

use crate::words;
use serde::Serialize;
use souk_domain::ids::{IntegrationId, PostId, PublicationId};
use souk_domain::time::Timestamp;
use souk_store::publications::Publication;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = Publication)]
pub struct PublicationOut {
    #[schema(value_type = String)]
    id: PublicationId,
    #[schema(value_type = String)]
    post_id: PostId,
    #[schema(value_type = String)]
    integration_id: IntegrationId,
    /// Who asked for it last.
    user_id: String,
    platform: String,
    #[schema(value_type = words::PublicationStatus)]
    status: &'static str,
    /// Since somebody asked last, the one in flight included.
    #[schema(minimum = 0)]
    attempts: i64,
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_attempt_at: Option<Timestamp>,
    /// Why the last attempt failed.
    error: Option<String>,
    /// What the platform calls the post: publishing it again updates that one.
    external_id: Option<String>,
    external_url: Option<String>,
    /// When the platform last had it as it then was.
    #[schema(value_type = Option<String>, format = DateTime)]
    published_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<Publication> for PublicationOut {
    fn from(row: Publication) -> PublicationOut {
        PublicationOut {
            id: row.id,
            post_id: row.post_id,
            integration_id: row.integration_id,
            user_id: row.user_id,
            platform: row.platform,
            status: row.state.as_str(),
            attempts: row.attempts,
            next_attempt_at: row.next_attempt_at,
            last_attempt_at: row.last_attempt_at,
            error: row.last_error,
            external_id: row.remote_id,
            external_url: row.url,
            published_at: row.published_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}
