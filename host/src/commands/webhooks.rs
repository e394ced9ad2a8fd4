//! `souk webhooks`.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use super::client::{At, AtMost, Client, OfCompany, body, segment};
use super::output::{self, Column};

#[derive(Subcommand)]
pub enum Webhooks {
    /// List the webhooks of a company.
    List {
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at_most: AtMost,
        #[command(flatten)]
        at: At,
    },
    /// Create a webhook; the secret that signs its deliveries is shown this once.
    Create {
        /// Where deliveries go.
        #[arg(value_name = "URL")]
        address: String,
        /// What it is told [default: everything].
        #[arg(long, value_name = "EVENT", value_delimiter = ',')]
        events: Option<Vec<String>>,
        #[arg(long)]
        description: Option<String>,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
    /// Delete a webhook.
    Delete {
        webhook: String,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
    /// List what was delivered, or was to be, newest first.
    Deliveries {
        webhook: String,
        /// `pending`, `delivered` or `failed` only.
        #[arg(long)]
        status: Option<String>,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at_most: AtMost,
        #[command(flatten)]
        at: At,
    },
    /// Deliver something again.
    Retry {
        webhook: String,
        delivery: String,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
}

const WEBHOOK: &[Column] = &[
    ("ID", "/id"),
    ("URL", "/url"),
    ("EVENTS", "/event_types"),
    ("ACTIVE", "/is_active"),
    ("FAILING SINCE", "/failing_since"),
    ("CREATED", "/created_at"),
];

const CREATED: &[Column] = &[
    ("ID", "/id"),
    ("URL", "/url"),
    ("EVENTS", "/event_types"),
    ("SECRET", "/secret"),
];

const DELIVERY: &[Column] = &[
    ("ID", "/id"),
    ("EVENT", "/event_type"),
    ("STATUS", "/status"),
    ("ATTEMPTS", "/attempts"),
    ("ANSWER", "/response_code"),
    ("ERROR", "/error"),
    ("CREATED", "/created_at"),
    ("NEXT ATTEMPT", "/next_attempt_at"),
];

pub async fn run(command: Webhooks) -> Result<()> {
    match command {
        Webhooks::List { of, at_most, at } => {
            let client = Client::new(&at)?;
            let path = path(&client, &of).await?;
            let webhooks = client.list(&path, at_most.limit).await?;
            output::some(at.json, WEBHOOK, &webhooks)
        }
        Webhooks::Create {
            address,
            events,
            description,
            of,
            at,
        } => {
            let client = Client::new(&at)?;
            let path = path(&client, &of).await?;
            let webhook = body([
                ("url", Some(Value::String(address))),
                ("event_types", events.map(Value::from)),
                ("description", description.map(Value::String)),
            ]);
            let webhook = client.post(&path, &webhook).await?;
            output::one(at.json, CREATED, &webhook)
        }
        Webhooks::Delete { webhook, of, at } => {
            let client = Client::new(&at)?;
            let path = format!("{}/{}", path(&client, &of).await?, segment(&webhook));
            client.delete(&path).await?;
            let sentence = format!("{webhook} is deleted");
            output::done(at.json, &sentence, &json!({"id": webhook, "deleted": true}))
        }
        Webhooks::Deliveries {
            webhook,
            status,
            of,
            at_most,
            at,
        } => {
            let client = Client::new(&at)?;
            let path = path(&client, &of).await?;
            let mut path = format!("{path}/{}/deliveries", segment(&webhook));
            if let Some(status) = status {
                path = format!("{path}?status={}", segment(&status));
            }
            let deliveries = client.list(&path, at_most.limit).await?;
            output::some(at.json, DELIVERY, &deliveries)
        }
        Webhooks::Retry {
            webhook,
            delivery,
            of,
            at,
        } => {
            let client = Client::new(&at)?;
            let path = path(&client, &of).await?;
            let (webhook, delivery) = (segment(&webhook), segment(&delivery));
            let path = format!("{path}/{webhook}/deliveries/{delivery}/retry");
            let delivery = client.post(&path, &json!({})).await?;
            output::one(at.json, DELIVERY, &delivery)
        }
    }
}

async fn path(client: &Client, of: &OfCompany) -> Result<String> {
    Ok(format!("/companies/{}/webhooks", client.company(of).await?))
}
