//! What a statement does: transactions, queries, writes.

use std::sync::Arc;

use super::tables::Table;
use super::{CATALOG, Failure, Query, Server, Transaction, literals, locked, name};
use crate::tables::{first_word, semicolon};

/// What came of it.
#[derive(Clone)]
pub enum Outcome {
    Rows(Arc<Table>),
    /// What was done, and the headers that tell of it.
    Done(&'static str, Vec<(&'static str, String)>),
    Failed(Failure),
}

impl Server {
    /// Carries a statement out.
    pub fn outcome(&self, query: &Query) -> Outcome {
        match self.carry_out(query) {
            Ok(outcome) => outcome,
            Err(failure) => Outcome::Failed(failure),
        }
    }

    fn carry_out(&self, query: &Query) -> Result<Outcome, Failure> {
        let words: Vec<String> = query
            .text
            .split_whitespace()
            .take(4)
            .map(str::to_ascii_uppercase)
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut transactions = locked(&self.transactions);
        let current = match query.transaction.as_deref() {
            None | Some("NONE") => None,
            Some(id) => match transactions.get(id) {
                None => {
                    let text = format!("Unknown transaction ID: {id}");
                    return Err(Failure::user("UNKNOWN_TRANSACTION", text));
                }
                known => known,
            },
        };
        match words[..] {
            ["START", "TRANSACTION", ..] => {
                if query.transaction.is_none() {
                    let text = "Client does not support transactions";
                    return Err(Failure::user("INCOMPATIBLE_CLIENT", text));
                }
                let id = format!("{}-{}", name(), name());
                let transaction = Transaction {
                    is_read_only: words[2..] == ["READ", "ONLY"],
                    is_aborted: false,
                };
                transactions.insert(id.clone(), transaction);
                let headers = vec![("x-trino-started-transaction-id", id)];
                return Ok(Outcome::Done("START TRANSACTION", headers));
            }
            ["COMMIT" | "ROLLBACK", ..] => {
                let id = query.transaction.as_deref().unwrap_or_default();
                return match transactions.remove(id) {
                    Some(_) => {
                        let headers = vec![("x-trino-clear-transaction-id", "true".to_owned())];
                        Ok(Outcome::Done("ROLLBACK", headers))
                    }
                    None => Err(Failure::user(
                        "NOT_IN_TRANSACTION",
                        "No transaction in progress",
                    )),
                };
            }
            _ => {}
        }
        if current.is_some_and(|current| current.is_aborted) {
            let text =
                "Current transaction is aborted, commands ignored until end of transaction block";
            return Err(Failure::user("TRANSACTION_ALREADY_ABORTED", text));
        }
        let is_read_only = current.is_some_and(|current| current.is_read_only);
        drop(transactions);
        let immediate = literals::execute_immediate(&query.text);
        let (text, values) = immediate.unwrap_or_else(|| (query.text.clone(), Vec::new()));
        if semicolon(&text, &['\'', '"']).is_some() {
            return Err(Failure::user(
                "SYNTAX_ERROR",
                "line 1:9: mismatched input ';'. Expecting: <EOF>",
            ));
        }
        let tables = locked(&self.tables);
        let first = first_word(&text);
        match first.as_str() {
            "SELECT" | "WITH" => {
                let named_catalog = text.contains("FROM ") && query.catalog != CATALOG;
                if named_catalog
                    && !text.contains(&format!("{CATALOG}."))
                    && !text.contains("information_schema")
                {
                    let text = format!("line 1:15: Catalog '{}' not found", query.catalog);
                    return Err(Failure::user("CATALOG_NOT_FOUND", text));
                }
                let table = tables.query(&text, &values)?;
                Ok(Outcome::Rows(Arc::new(table)))
            }
            "INSERT" | "UPDATE" | "DELETE" | "CREATE" | "DROP" | "MERGE" => {
                if is_read_only {
                    let text = "Cannot execute write in a read-only transaction";
                    return Err(Failure::user("READ_ONLY_VIOLATION", text));
                }
                tables.write(&text)?;
                Ok(Outcome::Done("WRITE", Vec::new()))
            }
            _ => Err(Failure::user(
                "SYNTAX_ERROR",
                format!("line 1:1: mismatched input '{first}'"),
            )),
        }
    }
}
