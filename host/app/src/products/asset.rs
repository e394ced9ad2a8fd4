//! An asset as it is executed.

use std::sync::Arc;

use souk_domain::ids::AssetId;
use souk_domain::parameters::Parameter;
use souk_domain::products::{ResultType, SourceKind};
use souk_domain::sql::{self, Dialect};
use souk_sandbox::{Facts, Route};
use souk_store::products::{AssetDetails, Row, Written};

use super::snapshot::{InUse, Products, Sells, read, unreadable};
use crate::definition;
use crate::failure::Cause;
use crate::release::{Freshness, Policy, ResultKind};

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

pub struct AssetPlan {
    pub parameters: Vec<Parameter>,
    pub action: Action,
    /// How its SQL is written, if it has any.
    pub dialect: Option<Dialect>,
    pub policy: Policy,
}

impl Sells for AssetId {
    type Plan = AssetPlan;

    fn plan(row: &Row<AssetId>, spoken: Option<(Dialect, Facts)>) -> Result<AssetPlan, Cause> {
        let details = &row.written.details;
        let dialect = spoken.map(|(dialect, _)| dialect);
        let parameters = definition::saved_parameters(&read(&details.parameters)?)
            .map_err(|_| unreadable("parameters"))?;
        let action = match (details.source_kind, dialect) {
            (SourceKind::Sql, Some(dialect)) => {
                let names: Vec<&str> = parameters.iter().map(|one| one.name()).collect();
                let prepared = sql::check(dialect, &details.source, &names)
                    .map_err(|_| unreadable("sql_logic"))?;
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
            (SourceKind::Function, _) => {
                Action::Call(Route::Function(details.source.as_str().into()))
            }
            (SourceKind::Path, _) => Action::Call(Route::Path(details.source.as_str().into())),
            (SourceKind::Sql, None) => return Err(unreadable("source")),
        };
        let kind = result_kind(details)?;
        let privacy = match &details.privacy {
            Some(text) => {
                Some(definition::privacy(&read(text)?).map_err(|_| unreadable("privacy"))?)
            }
            None => None,
        };
        let freshness = match action {
            // A seller's API says itself how old its answer is.
            Action::Call(_) => Some(Freshness {
                column: "timestamp".to_owned(),
                is_owed: false,
            }),
            Action::Query { .. } => details.freshness_column.clone().map(|column| Freshness {
                column,
                is_owed: true,
            }),
        };
        Ok(AssetPlan {
            parameters,
            action,
            dialect,
            policy: Policy {
                kind,
                freshness,
                privacy,
            },
        })
    }

    fn is_sql(details: &AssetDetails) -> bool {
        details.source_kind == SourceKind::Sql
    }

    fn shows_the_same(before: &AssetDetails, after: &AssetDetails) -> bool {
        // What does not change the result: how it is called.
        let AssetDetails {
            asset_type,
            sport,
            unit,
            ..
        } = after;
        let named = AssetDetails {
            asset_type: *asset_type,
            sport: sport.clone(),
            unit: unit.clone(),
            ..before.clone()
        };
        named == *after
    }

    fn asks_no_more(before: &AssetDetails, after: &AssetDetails) -> bool {
        // How many must stand behind a result decides whether it leaves, not whether there is one; the column that says so is not part of it.
        // What a chart is called, and what it is drawn with, the host writes.
        let told = AssetDetails {
            privacy: after.privacy.clone(),
            visualization: after.visualization.clone(),
            ..before.clone()
        };
        AssetId::shows_the_same(&told, after)
            && unit_column(before) == unit_column(after)
            && drawn_columns(before) == drawn_columns(after)
    }

    fn still_learned(_: &Row<AssetId>, _: &Written<AssetDetails>) -> Option<String> {
        None
    }

    fn in_use(products: &Products) -> &InUse<AssetId> {
        &products.assets
    }
}

/// The column of the result that says how many stand behind it.
fn unit_column(details: &AssetDetails) -> Option<String> {
    let privacy = read(details.privacy.as_deref()?).ok()?;
    let privacy = definition::privacy(&privacy).ok()?;
    Some(privacy.privacy_unit_column)
}

/// The columns that a chart draws, where they are named.
fn drawn_columns(details: &AssetDetails) -> [Option<String>; 3] {
    let stored = details.visualization.as_deref();
    let chart = stored.and_then(|text| definition::visualization(&read(text).ok()?).ok());
    let chart = chart.unwrap_or_default();
    [chart.x, chart.y, chart.series]
}

fn result_kind(details: &AssetDetails) -> Result<ResultKind, Cause> {
    Ok(match details.result_type {
        ResultType::Number => ResultKind::Number,
        ResultType::String => ResultKind::String,
        ResultType::Chart => ResultKind::Chart(match &details.visualization {
            Some(text) => {
                definition::visualization(&read(text)?).map_err(|_| unreadable("visualization"))?
            }
            None => Default::default(),
        }),
        ResultType::Prediction => ResultKind::Prediction(match &details.prediction {
            Some(text) => {
                definition::prediction(&read(text)?).map_err(|_| unreadable("prediction"))?
            }
            None => Default::default(),
        }),
    })
}
