//! `souk users`.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use super::client::{At, AtMost, Client, OfCompany, body, segment};
use super::output::{self, Column};

#[derive(Subcommand)]
pub enum Users {
    /// List the users of a company.
    List {
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at_most: AtMost,
        #[command(flatten)]
        at: At,
    },
    /// Add a user; the answer has his invitation, when the host sends no mail.
    Invite {
        email: String,
        #[arg(long)]
        name: Option<String>,
        /// 1 to 5, not above the key's own.
        #[arg(long, value_name = "ROLE")]
        role: Option<u8>,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
    /// Keep a user out: his sessions end.
    Disable {
        user: String,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
    /// Let a user in again.
    Enable {
        user: String,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
}

const USER: &[Column] = &[
    ("ID", "/id"),
    ("NAME", "/name"),
    ("EMAIL", "/email"),
    ("ROLE", "/role_id"),
    ("STATUS", "/status"),
    ("LAST LOGIN", "/last_login_at"),
];

const INVITED: &[Column] = &[
    ("ID", "/id"),
    ("EMAIL", "/email"),
    ("ROLE", "/role_id"),
    ("STATUS", "/status"),
    ("MAIL SENT", "/invitation/mail_sent"),
    ("INVITATION", "/invitation/url"),
    ("EXPIRES", "/invitation/expires_at"),
];

pub async fn run(command: Users) -> Result<()> {
    match command {
        Users::List { of, at_most, at } => {
            let client = Client::new(&at)?;
            let company = client.company(&of).await?;
            let path = format!("/companies/{company}/users");
            let users = client.list(&path, at_most.limit).await?;
            output::some(at.json, USER, &users)
        }
        Users::Invite {
            email,
            name,
            role,
            of,
            at,
        } => {
            let client = Client::new(&at)?;
            let company = client.company(&of).await?;
            let user = body([
                ("email", Some(Value::String(email))),
                ("name", name.map(Value::String)),
                ("role_id", role.map(Value::from)),
            ]);
            let user = client
                .post(&format!("/companies/{company}/users"), &user)
                .await?;
            output::one(at.json, INVITED, &user)
        }
        Users::Disable { user, of, at } => set_status("disabled", &user, &of, &at).await,
        Users::Enable { user, of, at } => set_status("active", &user, &of, &at).await,
    }
}

async fn set_status(status: &str, user: &str, of: &OfCompany, at: &At) -> Result<()> {
    let client = Client::new(at)?;
    let company = client.company(of).await?;
    let path = format!("/companies/{company}/users/{}", segment(user));
    let user = client.patch(&path, &json!({"status": status})).await?;
    output::one(at.json, USER, &user)
}
