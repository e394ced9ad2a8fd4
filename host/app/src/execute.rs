//! Executing an asset: what is asked of its source, and the answer. [`crate::run`] has the steps.

use std::time::Instant;

use serde_json::Value as Json;
use souk_domain::ids::ExecutionId;
use souk_domain::parameters::{Parameter, Raw, Value as Bound};
use souk_sandbox::{Call, FaultKind, Output, Query, Request};
use souk_store::Cached;

use crate::App;
use crate::binding::{self, Named, declared, named};
use crate::connections::source::source;
use crate::failure::{Cause, Failure, abandoned};
use crate::preview;
use crate::products::{Action, AssetSnapshot};
use crate::release::{Policy, Released, ResultKind, Wording};
use crate::run::{self, About, Payer, Purpose, Run};

/// Runs an asset for a caller that was admitted. `given` are the parameters as they were sent; `render` makes the answer.
pub async fn execute(
    app: &App,
    asset: &Cached<AssetSnapshot>,
    given: &[(&str, Raw<'_>)],
    payer: &Payer<'_>,
    purpose: Purpose,
    wording: Wording,
    render: impl FnOnce(&Released, &About<'_>) -> Vec<u8>,
) -> Result<Vec<u8>, Failure> {
    let sold = asset.sold();
    let bound = bind(asset, given, sold.is_owner(payer.company))?;
    let run = Run::begin(app, sold, payer, purpose).await?;
    let asked = (&bound[..], &run.execution, run.deadline());
    let released = released(app, asset, asked, payer, Policy::release)
        .await
        .map_err(|cause| run.fail(cause))?;
    let elapsed = run.started.elapsed();
    if purpose == Purpose::Test {
        Box::pin(preview::keep_tested_asset(
            app, asset, &released, wording, payer.now,
        ))
        .await;
    }
    let (rows, bytes) = (released.rows, released.insight.bytes());
    run.finish(elapsed, rows, bytes, |about| render(&released, about))
        .await
}

fn bind(
    asset: &AssetSnapshot,
    given: &[(&str, Raw<'_>)],
    owner: bool,
) -> Result<Vec<Bound>, Failure> {
    let plan = &asset.plan;
    binding::bind(&plan.parameters, plan.dialect, given)
        .map_err(|errors| Failure::before(owner, Cause::Parameters(errors)))
}

/// Steps three and four. `release` is what the policy makes of the answer.
async fn released<T: Send + 'static>(
    app: &App,
    asset: &Cached<AssetSnapshot>,
    (bound, execution, deadline): (&[Bound], &ExecutionId, Instant),
    payer: &Payer<'_>,
    release: fn(&Policy, &Output) -> Result<T, Cause>,
) -> Result<T, Cause> {
    let output = ask(app, asset, bound, payer, execution, deadline).await?;
    if !asset.plan.policy.is_heavy(&output) {
        return release(&asset.plan.policy, &output);
    }
    let (company, policy) = (asset.row.company_id.as_str(), asset.clone());
    let release = move || release(&policy.plan.policy, &output);
    let released = app.compute(company, deadline, release).await?;
    released.ok_or_else(abandoned)?
}

async fn ask(
    app: &App,
    asset: &AssetSnapshot,
    bound: &[Bound],
    payer: &Payer<'_>,
    execution: &ExecutionId,
    deadline: Instant,
) -> Result<Output, Cause> {
    let source = source(app, &asset.row.company_id, &asset.row.written.connection_id).await?;
    let limits = asset.plan.policy.kind.limits();
    let request = match &asset.plan.action {
        Action::Query { text, bindings } => Request::Query(Query {
            text: text.clone(),
            parameters: bindings
                .iter()
                .filter_map(|index| {
                    Some(declared(
                        asset.plan.parameters.get(*index)?,
                        bound.get(*index)?,
                    ))
                })
                .collect(),
            limits,
        }),
        Action::Call(route) => Request::Call(Call {
            route: route.clone(),
            parameters: object(&asset.plan.parameters, bound),
            asset_id: asset.row.id.to_string(),
            request_id: payer.request.to_string(),
            execution_id: execution.to_string(),
            limits,
        }),
    };
    let caller = payer.company.as_str();
    let answer = app
        .sandbox
        .run_for(caller, source.shared(), request, deadline)
        .await;
    answer.map_err(|fault| match fault.kind {
        FaultKind::LimitExceeded => Cause::bad_answer(too_large(&asset.plan.policy.kind)),
        _ => Cause::Fault(named(fault, |index| {
            let Action::Query { bindings, .. } = &asset.plan.action else {
                return None;
            };
            let parameter = asset.plan.parameters.get(*bindings.get(index)?)?;
            Some(Named {
                told: format!("parameter \"{}\"", parameter.name()),
                field: parameter.field(),
            })
        })),
    })
}

/// Which of its limits a result has met is not told: of a number it nearly always is the one row.
fn too_large(kind: &ResultKind) -> String {
    let (word, limits) = (kind.word(), kind.limits());
    let (rows, bytes) = (limits.rows_max, limits.bytes_max);
    match rows {
        1 => format!(
            "the result has more than one row, or is larger than a {word} may be ({bytes} bytes): aggregate the rows, or take the first one only"
        ),
        _ => format!(
            "the result is larger than a {word} may be, {rows} rows or {bytes} bytes: group the rows, or take fewer of them"
        ),
    }
}

/// The parameters of a seller's function, as a JSON object in the order of their names. One that is null is left out.
fn object(parameters: &[Parameter], bound: &[Bound]) -> String {
    let members = parameters
        .iter()
        .zip(bound)
        .filter_map(|(parameter, value)| {
            // A name is of letters, digits and _.
            Some(format!("\"{}\":{}", parameter.name(), written(value)?))
        });
    let mut members: Vec<String> = members.collect();
    members.sort_unstable();
    format!("{{{}}}", members.join(","))
}

/// A whole number that a float holds is written in digits up to here, as JavaScript does.
const PLAIN_MAX: f64 = 1e21;

/// A value as JSON. A whole number has no point, and one that no float holds has all its digits: as they mostly came.
fn written(value: &Bound) -> Option<String> {
    Some(match value {
        Bound::Null => return None,
        Bound::Boolean(value) => value.to_string(),
        Bound::Integer(value) => value.to_string(),
        Bound::Number(value) if value.fract() == 0.0 && value.abs() < PLAIN_MAX => {
            value.to_string()
        }
        Bound::Number(value) => Json::from(*value).to_string(),
        Bound::Decimal(digits) => digits.clone(),
        Bound::Text(text) => Json::from(text.as_str()).to_string(),
        Bound::Date(_) | Bound::Timestamp(_) => Json::from(value.to_string()).to_string(),
    })
}

/// Runs an asset for its publication, without an answer to anybody. `None`: it may be sold, and shows nothing at the moment. `is_made_up`: some of the
/// values are; that they find nobody says nothing.
pub(crate) async fn sample(
    app: &App,
    asset: &Cached<AssetSnapshot>,
    given: &[(&str, Raw<'_>)],
    payer: &Payer<'_>,
    is_made_up: bool,
) -> Result<Option<Released>, Failure> {
    let bound = bind(asset, given, true)?;
    let execution = ExecutionId::generate_at(payer.now);
    let started = Instant::now();
    let deadline = started + asset.timeout;
    let asked = (&bound[..], &execution, deadline);
    let release: fn(&Policy, &Output) -> Result<Option<Released>, Cause> = match is_made_up {
        true => |policy, output| policy.release(output).map(Some),
        false => Policy::tested,
    };
    released(app, asset, asked, payer, release)
        .await
        .map_err(|cause| {
            let sold = asset.sold();
            let cause = run::late(&sold, started.elapsed(), cause);
            run::failure(&sold, payer, &execution, cause)
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::parameters;

    /// A function is sent the numbers that its caller sent: a whole one without a point, and one that no float holds with all its digits.
    #[test]
    fn a_function_is_sent_the_numbers_that_came() {
        let names = ["n", "a", "ab", "text", "day", "gone"];
        let kinds = ["number", "number", "boolean", "string", "date", "string"];
        let definition = names.iter().zip(kinds);
        let definition = definition.map(|(name, kind)| json!({"name": name, "type": kind}));
        let defined = parameters(&Json::from(definition.collect::<Vec<_>>())).unwrap();
        let of = |n: Bound, a: Bound| {
            let text = Bound::Text("\"x\"".to_owned());
            let bound = [
                n,
                a,
                Bound::Boolean(true),
                text,
                Bound::Date(0),
                Bound::Null,
            ];
            object(&defined, &bound)
        };
        assert_eq!(
            of(
                Bound::Number(7.0),
                Bound::Decimal("1.0000000000000000001".to_owned())
            ),
            r#"{"a":1.0000000000000000001,"ab":true,"day":"1970-01-01","n":7,"text":"\"x\""}"#
        );
        let numbers = of(Bound::Number(1e18), Bound::Number(-1.5e300));
        assert!(
            numbers.starts_with(r#"{"a":-1.5e300,"ab""#)
                || numbers.starts_with(r#"{"a":-1.5e+300,"ab""#),
            "{numbers}"
        );
        assert!(numbers.contains(r#""n":1000000000000000000,"#), "{numbers}");
        assert_eq!(object(&[], &[]), "{}");
    }
}
