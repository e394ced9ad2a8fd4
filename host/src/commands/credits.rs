//! `souk credits` and `souk reconcile`.

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};
use serde_json::json;

use super::client::{At, AtMost, Client, OfCompany, segment};
use super::output::{self, Column};

#[derive(Subcommand)]
pub enum Credits {
    /// Show what a company has, holds and spent.
    Show {
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
    /// List what was booked, newest first.
    Transactions {
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at_most: AtMost,
        #[command(flatten)]
        at: At,
    },
    /// Give a company credits that nobody pays for. Needs role 5.
    Grant {
        credits: u32,
        /// Shown to the company, and kept.
        reason: String,
        /// Whoever repeats this key gets the first answer, and nothing is granted again.
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
        #[command(flatten)]
        of: OfCompany,
        #[command(flatten)]
        at: At,
    },
    /// List the top-ups of all companies, newest first. Needs role 5.
    TopUps {
        /// `pending`, `settled` or `failed` only.
        #[arg(long)]
        status: Option<String>,
        #[command(flatten)]
        at_most: AtMost,
        #[command(flatten)]
        at: At,
    },
    /// Say that the money of a top-up has arrived. Needs role 5.
    Settle {
        top_up: String,
        /// By what to find the payment again: the line of a bank statement, say.
        reference: String,
        #[command(flatten)]
        at: At,
    },
}

#[derive(Args)]
pub struct Reconcile {
    /// And what was booked on this day, `2026-11-22` (UTC).
    #[arg(long, value_name = "DAY")]
    date: Option<String>,
    #[command(flatten)]
    at: At,
}

const BALANCE: &[Column] = &[
    ("BALANCE", "/balance_credits"),
    ("HELD", "/held_credits"),
    ("BALANCE USD", "/balance_usd"),
    ("SPENT IN 30 DAYS", "/total_spent_credits_30d"),
    ("EXECUTIONS IN 30 DAYS", "/executions_30d"),
    ("ENDPOINT REQUESTS IN 30 DAYS", "/endpoint_requests_30d"),
];

const TRANSACTION: &[Column] = &[
    ("ID", "/id"),
    ("TIME", "/posted_at"),
    ("TYPE", "/type"),
    ("CREDITS", "/amount_credits"),
    ("BALANCE AFTER", "/balance_after_credits"),
    ("DESCRIPTION", "/description"),
];

const GRANTED: &[Column] = &[
    ("ID", "/id"),
    ("COMPANY", "/company_id"),
    ("CREDITS", "/amount_credits"),
    ("BALANCE AFTER", "/balance_after_credits"),
];

const TOP_UP: &[Column] = &[
    ("ID", "/id"),
    ("COMPANY", "/company_id"),
    ("CREDITS", "/credits"),
    ("USD", "/amount_usd"),
    ("PROVIDER", "/provider"),
    ("STATUS", "/status"),
    ("CREATED", "/created_at"),
];

const BOOKS: &[Column] = &[
    ("BALANCED", "/balanced"),
    ("TRANSACTIONS", "/transactions"),
    ("ENTRIES", "/entries"),
    ("SUM OF ALL ACCOUNTS", "/sum_all_accounts"),
    ("OPEN HOLDS", "/open_holds"),
    ("ORPHAN HOLDS", "/orphan_holds"),
    ("MISMATCHES", "/mismatches"),
];

pub async fn run(command: Credits) -> Result<()> {
    match command {
        Credits::Show { of, at } => {
            let client = Client::new(&at)?;
            let company = client.company(&of).await?;
            let credits = client.get(&format!("/companies/{company}/credits")).await?;
            output::one(at.json, BALANCE, &credits)
        }
        Credits::Transactions { of, at_most, at } => {
            let client = Client::new(&at)?;
            let company = client.company(&of).await?;
            let path = format!("/companies/{company}/credits/transactions");
            let transactions = client.list(&path, at_most.limit).await?;
            output::some(at.json, TRANSACTION, &transactions)
        }
        Credits::Grant {
            credits,
            reason,
            idempotency_key,
            of,
            at,
        } => {
            let client = Client::new(&at)?;
            let company = client.company(&of).await?;
            let path = format!("/admin/companies/{company}/credits/grants");
            let grant = json!({"credits": credits, "reason": reason});
            let granted = match &idempotency_key {
                Some(key) => client.post_once(&path, &grant, key).await?,
                None => client.post(&path, &grant).await?,
            };
            output::one(at.json, GRANTED, &granted)
        }
        Credits::TopUps {
            status,
            at_most,
            at,
        } => {
            let path = match &status {
                Some(status) => format!("/admin/top-ups?status={}", segment(status)),
                None => "/admin/top-ups".to_owned(),
            };
            let top_ups = Client::new(&at)?.list(&path, at_most.limit).await?;
            output::some(at.json, TOP_UP, &top_ups)
        }
        Credits::Settle {
            top_up,
            reference,
            at,
        } => {
            let path = format!("/admin/top-ups/{}/settle", segment(&top_up));
            let settle = json!({"reference": reference});
            let settled = Client::new(&at)?.post(&path, &settle).await?;
            output::one(at.json, TOP_UP, &settled)
        }
    }
}

pub async fn reconcile(command: Reconcile) -> Result<()> {
    let client = Client::new(&command.at)?;
    let path = match &command.date {
        Some(date) => format!("/admin/ledger/reconciliation?date={}", segment(date)),
        None => "/admin/ledger/reconciliation".to_owned(),
    };
    let books = client.get(&path).await?;
    output::one(command.at.json, BOOKS, &books)?;
    ensure!(books["balanced"] == true, "the books do not balance");
    Ok(())
}
