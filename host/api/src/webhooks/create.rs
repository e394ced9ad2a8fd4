use super::shape::WebhookOut;
use super::{event_types, refuse};
use crate::refusals::{CONFLICT, UNSAFE_URL};
use crate::words;
use crate::{ApiState, AsSent, Body, Caller, CreatedOnce, Operation, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_app::webhooks::{self, Draft};
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("create_webhook", "/companies/{company_id}/webhooks")
    .about("Webhooks", "Be told of events")
    .notes(
        "Events are posted to `url`, signed as Standard Webhooks has it. The `secret` is in this answer only. `https://` only, and public \
         addresses only, unless the operator has named the address's network: 400 `UNSAFE_URL`. A company has at most 20 webhooks.",
    )
    .needs(Role::DataEngineer, Permission::Write)
    .refuses(&[UNSAFE_URL, CONFLICT]);

#[derive(Deserialize, ToSchema)]
pub struct WebhookIn {
    #[schema(value_type = String, max_length = 2000)]
    url: String,
    /// Left out or empty: all, also those of later versions.
    #[serde(default)]
    #[schema(value_type = Vec<words::EventType>)]
    event_types: Vec<String>,
    #[schema(value_type = Option<String>, max_length = 255)]
    description: Option<Text<0, 255>>,
    /// Default true.
    is_active: Option<bool>,
}

/// Makes a webhook. Its secret appears in this response only.
pub async fn create_webhook(
    State(api): State<ApiState>,
    caller: Caller,
    sent: AsSent<Body<WebhookIn>>,
) -> Result<CreatedOnce<WebhookOut>, Problem> {
    let Body(body) = sent.body;
    let event_types = match event_types(&body.event_types, &sent.bytes) {
        Ok(types) => types,
        Err(problem) => {
            let url = souk_app::webhooks::check(api.app(), &body.url).await;
            return Err(url
                .map_err(refuse)
                .err()
                .into_iter()
                .fold(problem, Problem::and));
        }
    };
    let draft = Draft {
        event_types,
        url: body.url,
        description: body.description.map(Text::into_string),
        is_active: body.is_active.unwrap_or(true),
    };
    let (webhook, secret) = webhooks::create(api.app(), caller.company(), draft)
        .await
        .map_err(refuse)?;
    Ok(CreatedOnce {
        location: format!("/companies/{}/webhooks/{}", caller.company(), webhook.id),
        data: WebhookOut::once(&webhook, &secret, caller.now()),
        kept: WebhookOut::of(&webhook, caller.now()),
    })
}
