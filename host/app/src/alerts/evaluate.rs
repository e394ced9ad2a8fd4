//! One evaluation: the asset is run, and what it answers is held against the condition.
//!
//! Whose fault a failure is decides what becomes of the alert: trouble of this host's own says nothing about the asset, and is tried again soon.

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use souk_domain::actors::Actor;
use souk_domain::alerts::{
    Answer, Finding, ForecastField, HISTORY_MAX, Rules, TEXT_CHARS_MAX, next_check,
};
use souk_domain::ids::{ExecutionId, RequestId};
use souk_domain::time::{DAY, Timestamp};
use souk_sandbox::FaultKind;
use souk_store::alerts::{Alert, Evaluated};

use super::params::Params;
use crate::App;
use crate::execute::execute;
use crate::failure::{Cause, Class, Failure};
use crate::products;
use crate::release::{Insight, NO_ROW, Released};
use crate::run::{About, Payer, Purpose, admit};

/// Trouble of this host's own is waited for this long, or for the alert's interval if that is shorter.
const TRY_AGAIN: Duration = Duration::from_secs(60);
/// Of what went wrong, so much is kept and told.
const ERROR_CHARS_MAX: usize = 500;

/// What running the asset gave.
#[derive(Debug)]
pub struct Found {
    pub result: Result<Answer, Trouble>,
    pub credits: i64,
    pub execution: Option<ExecutionId>,
}

/// Why there is no answer.
#[derive(Debug)]
pub struct Trouble {
    pub message: String,
    pub finding: Finding,
    /// Nothing changes before then.
    pub not_before: Option<Timestamp>,
}

/// Evaluates a claimed alert, whatever goes wrong. What takes longer than `limit` is given up; what had been handed over to be charged by then is charged
/// without anybody who waits for it, and counts as spent.
pub async fn evaluate(app: &App, alert: &Alert, limit: Duration) -> Evaluated {
    let mut found = Found {
        result: Ok(Answer::Nothing),
        credits: 0,
        execution: None,
    };
    let asked = ask(app, alert, app.clock.now(), &mut found);
    found.result = within(limit, asked).await;
    conclude(alert, found, app.clock.now())
}

/// What was asked for, or that it did not come in time.
async fn within(
    limit: Duration,
    asked: impl Future<Output = Result<Answer, Trouble>>,
) -> Result<Answer, Trouble> {
    let answer = tokio::time::timeout(limit, asked).await;
    answer.unwrap_or_else(|_| {
        Err(Trouble {
            message: "the evaluation did not end in time".to_owned(),
            finding: Finding::Delayed,
            not_before: None,
        })
    })
}

/// Runs the asset as anybody would, in the alert's name. Whatever comes of it, and if it is given up, `found` has what may have been charged.
async fn ask(
    app: &App,
    alert: &Alert,
    now: Timestamp,
    found: &mut Found,
) -> Result<Answer, Trouble> {
    let company = &alert.company_id;
    let asset = products::get(app, &alert.asset_id, now)
        .await
        .map_err(trouble)?;
    let sold = asset.sold();
    admit(app, &sold, company).await.map_err(trouble)?;
    // The charge is by this very price.
    let price = match (sold.is_owner(company), &sold.priced.price) {
        (false, Some(price)) => price.credits.get(),
        _ => 0,
    };
    let (spent, most) = (alert.spent(now), alert.written.max_credits_per_day);
    if spent + price > most {
        return Err(Trouble {
            message: format!(
                "an evaluation costs {price} credits, and {spent} of the {most} that may be spent today are spent"
            ),
            finding: Finding::Failed,
            not_before: Some(now.day_start().after(DAY)),
        });
    }
    let params = Params::read(&alert.written.params).unwrap_or_default();
    let given = params.raw();
    let (actor, request) = (Actor::Alert(alert.id.clone()), RequestId::generate_at(now));
    let payer = Payer {
        company,
        actor: &actor,
        request: &request,
        now,
        ticket: None,
        readers: None,
        max_credits: None,
    };
    let field = alert.written.condition.field().unwrap_or_default();
    let mut answered = None;
    // Its charge is handed over right behind this.
    let render = |released: &Released, about: &About<'_>| {
        found.credits = about.settled.credits;
        found.execution = Some(about.execution.clone());
        answered = Some(answer_of(&released.insight, field));
        Vec::new()
    };
    let wording = |_: &mut Vec<u8>, _: &Insight| {};
    let ran = execute(
        app,
        &asset,
        &given,
        &payer,
        Purpose::Result,
        wording,
        render,
    )
    .await;
    match ran {
        Ok(_) => answered.flatten().ok_or_else(|| Trouble {
            message: "the asset's answer is a chart, which is no single value".to_owned(),
            finding: Finding::Failed,
            not_before: None,
        }),
        Err(failure) => {
            // It costs nothing, whatever it was going to cost. What may have been charged counts as spent.
            if !matches!(failure.cause, Cause::ChargeInDoubt(_)) {
                found.credits = 0;
            }
            found.execution = failure.execution.clone();
            of_failure(failure)
        }
    }
}

/// `None`: a chart.
fn answer_of(insight: &Insight, field: ForecastField) -> Option<Answer> {
    match insight {
        Insight::Value(json) => Some(match serde_json::from_slice(json).unwrap_or_default() {
            Value::Number(number) => number.as_f64().map_or(Answer::Nothing, Answer::Number),
            Value::String(text) => Answer::Text(kept(text)),
            _ => Answer::Nothing,
        }),
        Insight::Chart(_) => None,
        Insight::Forecast(forecast) => Some(match forecast.points.first() {
            None => Answer::Nothing,
            Some(next) => Answer::Number(match field {
                ForecastField::Value => next.value,
                ForecastField::Lower => next.lower,
                ForecastField::Upper => next.upper,
            }),
        }),
    }
}

/// A long text is kept by its beginning and its digest: enough to be looked at, and to tell it from any other.
fn kept(text: String) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        None => text,
        Some((end, _)) => {
            let digest = hex::encode(Sha256::digest(&text));
            format!("{}… sha256:{digest}", &text[..end])
        }
    }
}

/// A source that found no row has answered: nothing.
fn of_failure(failure: Failure) -> Result<Answer, Trouble> {
    match &failure.cause {
        Cause::Fault(fault) if fault.kind == FaultKind::BadAnswer && fault.code == NO_ROW => {
            Ok(Answer::Nothing)
        }
        _ => Err(of_class(failure.class(), failure.cause)),
    }
}

fn trouble(cause: Cause) -> Trouble {
    let failure = Failure::from(cause);
    of_class(failure.class(), failure.cause)
}

fn of_class(class: Class, cause: Cause) -> Trouble {
    let finding = match class {
        Class::Busy
        | Class::ShuttingDown
        | Class::Host
        | Class::Internal
        | Class::Paused
        | Class::SourceLimited
        | Class::SourceAway => Finding::Delayed,
        Class::Request
        | Class::Parameter
        | Class::Private
        | Class::Source
        | Class::SellerApi
        | Class::Connector
        | Class::Timeout => Finding::Failed,
    };
    let message = match cause {
        // One sentence that is safe to show to any caller.
        Cause::Fault(fault) => fault.message,
        Cause::Internal(_) | Cause::ChargeInDoubt(_) | Cause::Store(_) => {
            tracing::warn!(%cause, "an alert could not be evaluated");
            "this service could not run the asset at the moment".to_owned()
        }
        // As many as fit: who set the alert has to know which to change.
        Cause::Parameters(errors) => {
            let errors = errors.iter();
            let told: Vec<_> = errors
                .map(|error| format!("{} {}", error.field, error.message))
                .collect();
            told.join("; ")
        }
        cause @ Cause::InsufficientCredits { .. } => {
            format!("{cause}, and the balance does not cover them")
        }
        cause => cause.to_string(),
    };
    Trouble {
        message,
        finding,
        not_before: None,
    }
}

/// What follows from what was found.
fn conclude(alert: &Alert, found: Found, now: Timestamp) -> Evaluated {
    let (written, before) = (&alert.written, &alert.standing);
    let rules = Rules {
        consecutive_breaches: written.consecutive_breaches,
        rearm: seconds(written.rearm_seconds),
    };
    let interval = seconds(written.check_interval_seconds);
    let due = alert.next_check_at.unwrap_or(now);
    let mut next = next_check(due, interval, now);
    let mut history = alert.history.clone();
    let (finding, error) = match &found.result {
        Ok(answer) => {
            let condition = &written.condition;
            let judged = condition.breaks(answer, alert.last_answer.as_ref(), &history);
            if let (true, Answer::Number(value)) = (condition.needs_history(), answer) {
                history.push(*value);
                history.drain(..history.len().saturating_sub(HISTORY_MAX));
            }
            match judged {
                Ok(true) => (Finding::Breach, None),
                Ok(false) => (Finding::Fine, None),
                Err(undecidable) => (Finding::Failed, Some(undecidable.to_string())),
            }
        }
        Err(trouble) => {
            if trouble.finding == Finding::Delayed {
                next = next.min(now.after(TRY_AGAIN));
            }
            next = trouble.not_before.unwrap_or(next);
            (trouble.finding, Some(cut(&trouble.message)))
        }
    };
    Evaluated {
        standing: before.after(finding, rules, now),
        answer: found.result.ok(),
        history,
        error,
        execution: found.execution,
        credits: found.credits,
        next_check_at: next,
    }
}

fn seconds(given: i64) -> Duration {
    Duration::from_secs(given.try_into().unwrap_or_default())
}

fn cut(text: &str) -> String {
    text.chars().take(ERROR_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_domain::fields::FieldError;
    use std::future::pending;

    /// An asset may take other parameters than it took when the alert was made: its user is told which.
    #[test]
    fn parameters_are_told_by_their_names() {
        let error = FieldError::new("params.season", "required", "must not be null");
        let trouble = trouble(Cause::Parameters(vec![error]));
        assert_eq!(trouble.message, "params.season must not be null");
        assert_eq!(trouble.finding, Finding::Failed);
    }

    /// What was on its way to be charged when an evaluation is given up counts as spent: the next one must leave room for it.
    #[tokio::test]
    async fn what_is_on_its_way_to_be_charged_counts_as_spent() {
        let run = ExecutionId::generate_at(Timestamp::from_micros(1));
        let mut found = Found {
            result: Ok(Answer::Nothing),
            credits: 0,
            execution: None,
        };
        let asked = async {
            found.credits = 3;
            found.execution = Some(run.clone());
            pending::<Result<Answer, Trouble>>().await
        };
        let given_up = within(Duration::from_millis(10), asked).await;
        found.result = given_up;
        assert_eq!((found.credits, &found.execution), (3, &Some(run)));
        // It says nothing about the asset, and is tried again soon.
        let trouble = found.result.unwrap_err();
        assert_eq!(trouble.finding, Finding::Delayed);
        assert_eq!(trouble.message, "the evaluation did not end in time");
    }
}
