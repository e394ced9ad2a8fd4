use super::shape::WebhookOut;
use super::{check_misnomers, event_types, find, refuse};
use crate::problem::both;
use crate::refusals::UNSAFE_URL;
use crate::words;
use crate::{ApiState, AsSent, Body, Caller, Data, Operation, Patch, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::{CompanyId, WebhookId};
use souk_domain::roles::{Permission, Role};
use souk_store::webhooks::{self, DisabledReason};
use souk_store::{companies, deliveries};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::patch(
    "update_webhook",
    "/companies/{company_id}/webhooks/{webhook_id}",
)
.about("Webhooks", "Change a webhook")
.notes(
    "A new `url` holds from the next attempt on, also of what waits already. `is_active: false` gives up what waits, and nothing is written for \
     it from then on; `is_active: true` also brings back one that was disabled because it failed. Deliveries that were given up can be retried.",
)
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[UNSAFE_URL]);

#[derive(Deserialize, ToSchema)]
pub struct WebhookPatch {
    #[schema(value_type = Option<String>, max_length = 2000)]
    url: Option<String>,
    /// Empty or `null`: all.
    #[serde(default)]
    #[schema(value_type = Option<Vec<words::EventType>>)]
    event_types: Patch<Vec<String>>,
    /// `null` clears it.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 255)]
    description: Patch<Text<0, 255>>,
    is_active: Option<bool>,
}

/// Changes a webhook.
pub async fn update_webhook(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, WebhookId)>,
    sent: AsSent<Body<WebhookPatch>>,
) -> Result<Data<WebhookOut>, Problem> {
    let Body(body) = sent.body;
    let event_types = match body.event_types {
        Patch::Absent => check_misnomers(&sent.bytes).map(|()| None),
        Patch::Null => event_types(&[], &sent.bytes).map(Some),
        Patch::Value(names) => event_types(&names, &sent.bytes).map(Some),
    };
    // Before the transaction: a name is looked up.
    let url = match &body.url {
        Some(url) => souk_app::webhooks::check(api.app(), url)
            .await
            .map(Some)
            .map_err(refuse),
        None => Ok(None),
    };
    let (event_types, url) = both(event_types, url)?;
    let (is_active, now) = (body.is_active, caller.now());
    let answer = api
        .db()
        .write(async |write| -> Result<_, Problem> {
            // All that may change is written at once: whoever changes something else waits.
            companies::lock(write, caller.company()).await?;
            let mut webhook = find(write, &caller, &id).await?;
            webhook.url = url.unwrap_or(webhook.url);
            webhook.event_types = event_types.unwrap_or(webhook.event_types);
            match body.description {
                Patch::Absent => {}
                Patch::Null => webhook.description = None,
                Patch::Value(text) => webhook.description = Some(text.into_string()),
            }
            webhooks::update(write, &webhook, now).await?;
            match is_active {
                Some(true) => webhooks::enable(write, &id, now).await?,
                Some(false) => {
                    webhooks::disable(write, &id, DisabledReason::Request, now).await?;
                }
                None => {}
            }
            let webhook = find(write, &caller, &id).await?;
            Ok(Data(WebhookOut::of(&webhook, now)))
        })
        .await?;
    if is_active == Some(false) {
        // Of thousands the first transaction gave up some. What is left when this is cut short is given up when it is due.
        loop {
            let has_more = api
                .db()
                .write(async |write| deliveries::give_up(write, &id, now).await)
                .await?;
            if !has_more {
                break;
            }
        }
    }
    Ok(answer)
}
