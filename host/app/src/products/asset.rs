//! An asset as it is executed.

use std::sync::Arc;
use std::time::Duration;

use souk_domain::parameters::Parameter;
use souk_domain::products::Product;
use souk_domain::sql::{self, Dialect};
use souk_sandbox::{Route, json};
use souk_store::assets;

use super::{Priced, TIMEOUT_MS_MAX, push_member, read, unreadable};
use crate::definition;
use crate::failure::Refusal;
use crate::release::{Policy, ResultKind};
use crate::run::Sold;

/// What runs at the source.
#[derive(Clone, Debug)]
pub enum Action {
    Query {
        text: Arc<str>,
        /// For each position, which parameter is bound.
        bindings: Vec<usize>,
    },
    Call(Route),
}

pub struct AssetSnapshot {
    pub row: assets::Asset,
    pub parameters: Vec<Parameter>,
    pub action: Action,
    pub policy: Policy,
    pub timeout: Duration,
    pub priced: Priced,
    /// Members of every answer, written once.
    pub(crate) head: Vec<u8>,
    pub(crate) tail: Vec<u8>,
}

impl AssetSnapshot {
    pub fn sold(&self) -> Sold<'_> {
        Sold {
            product: Product::Asset(self.row.id.clone()),
            owner: &self.row.company_id,
            status: &self.row.status,
            is_suspended: self.row.is_suspended,
            priced: &self.priced,
            allow_ai_training: self.row.written.allow_ai_training,
            timeout: self.timeout,
            seller_api: matches!(self.action, Action::Call(_)),
        }
    }

    pub(super) fn new(
        row: assets::Asset,
        dialect: Option<Dialect>,
        priced: Priced,
    ) -> Result<AssetSnapshot, Refusal> {
        let written = &row.written;
        let parameters = definition::parameters(&read(&written.parameters)?)
            .map_err(|_| unreadable("parameters"))?;
        let action = match (written.source_kind.as_str(), dialect) {
            ("sql", Some(dialect)) => {
                let prepared =
                    sql::prepare(dialect, &written.source).map_err(|_| unreadable("sql_logic"))?;
                let place = |name: &String| {
                    parameters
                        .iter()
                        .position(|parameter| parameter.name() == name)
                };
                let bindings = prepared
                    .bindings
                    .iter()
                    .map(place)
                    .collect::<Option<Vec<usize>>>();
                Action::Query {
                    text: prepared.text.into(),
                    bindings: bindings.ok_or_else(|| unreadable("parameters"))?,
                }
            }
            ("function", _) => Action::Call(Route::Function(written.source.as_str().into())),
            ("path", _) => Action::Call(Route::Path(written.source.as_str().into())),
            _ => return Err(unreadable("source")),
        };
        let kind = result_kind(written)?;
        let privacy = match &written.privacy {
            Some(text) => {
                Some(definition::privacy(&read(text)?).map_err(|_| unreadable("privacy"))?)
            }
            None => None,
        };
        // A seller's API says itself how old its answer is.
        let freshness = match action {
            Action::Call(_) => Some("timestamp".to_owned()),
            Action::Query { .. } => written.freshness_column.clone(),
        };
        let mut head = Vec::with_capacity(160);
        for (name, value) in [
            ("asset_id", row.id.as_str()),
            ("asset_type", &written.asset_type),
            ("result_type", kind.word()),
        ] {
            push_member(&mut head, name, value);
        }
        head.push(b',');
        let mut tail = b",\"unit\":".to_vec();
        match &written.unit {
            Some(unit) => json::write_string(&mut tail, unit.as_bytes()),
            None => tail.extend_from_slice(b"null"),
        }
        let timeout = Duration::from_millis(written.timeout_ms.clamp(1, TIMEOUT_MS_MAX) as u64);
        let policy = Policy {
            kind,
            freshness,
            privacy,
        };
        Ok(AssetSnapshot {
            parameters,
            action,
            policy,
            timeout,
            priced,
            head,
            tail,
            row,
        })
    }
}

fn result_kind(written: &assets::Written) -> Result<ResultKind, Refusal> {
    Ok(match written.result_type.as_str() {
        "number" => ResultKind::Number,
        "string" => ResultKind::String,
        "chart" => ResultKind::Chart(match &written.visualization {
            Some(text) => {
                definition::visualization(&read(text)?).map_err(|_| unreadable("visualization"))?
            }
            None => Default::default(),
        }),
        "prediction" => ResultKind::Prediction(match &written.prediction {
            Some(text) => {
                definition::prediction(&read(text)?).map_err(|_| unreadable("prediction"))?
            }
            None => Default::default(),
        }),
        _ => return Err(unreadable("result_type")),
    })
}
