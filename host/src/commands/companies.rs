//! `souk companies`.

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::client::{At, AtMost, Client, OfCompany, body, segment};
use super::output::{self, Column};

#[derive(Subcommand)]
pub enum Companies {
    /// List all companies, newest first. Needs role 5.
    List {
        /// Only those with this in their name or handle.
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        #[command(flatten)]
        at_most: AtMost,
        #[command(flatten)]
        at: At,
    },
    /// Show a company.
    Show {
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
    /// Create a company with its first administrator and key, which is shown this once. Needs role 5.
    Create {
        /// What it is called in addresses: a DNS label.
        handle: String,
        /// What it calls itself.
        name: String,
        #[arg(long)]
        description: Option<String>,
        /// Becomes the administrator's address, unless a user has it already.
        #[arg(long, value_name = "ADDRESS")]
        contact_email: Option<String>,
        #[command(flatten)]
        at: At,
    },
    /// Put a company on a plan. Needs role 5.
    Plan {
        plan: Plan,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Plan {
    Starter,
    Growth,
    Scale,
}

const COMPANY: &[Column] = &[
    ("ID", "/id"),
    ("HANDLE", "/handle"),
    ("NAME", "/name"),
    ("PLAN", "/plan"),
    ("STATUS", "/status"),
    ("CONTACT", "/contact_email"),
    ("CREATED", "/created_at"),
];

const CREATED: &[Column] = &[
    ("COMPANY", "/company/id"),
    ("HANDLE", "/company/handle"),
    ("USER", "/user/id"),
    ("KEY", "/api_key/key"),
];

pub async fn run(command: Companies) -> Result<()> {
    match command {
        Companies::List {
            search,
            at_most,
            at,
        } => {
            let mut path = "/admin/companies".to_owned();
            if let Some(text) = search {
                path = format!("{path}?q={}", segment(&text));
            }
            let companies = Client::new(&at)?.list(&path, at_most.limit).await?;
            output::some(at.json, COMPANY, &companies)
        }
        Companies::Show { of, at } => {
            let client = Client::new(&at)?;
            let company = client.company(&of).await?;
            let company = client.get(&format!("/companies/{company}")).await?;
            output::one(at.json, COMPANY, &company)
        }
        Companies::Create {
            handle,
            name,
            description,
            contact_email,
            at,
        } => {
            let new = body([
                ("handle", Some(Value::String(handle))),
                ("name", Some(Value::String(name))),
                ("description", description.map(Value::String)),
                ("contact_email", contact_email.map(Value::String)),
            ]);
            let created = Client::new(&at)?.post("/admin/companies", &new).await?;
            output::one(at.json, CREATED, &created)
        }
        Companies::Plan { plan, of, at } => {
            let client = Client::new(&at)?;
            let company = client.company(&of).await?;
            let plan = plan
                .to_possible_value()
                .map(|plan| plan.get_name().to_owned());
            let path = format!("/admin/companies/{company}/plan");
            let company = client.put(&path, &json!({"plan": plan})).await?;
            output::one(at.json, COMPANY, &company)
        }
    }
}
