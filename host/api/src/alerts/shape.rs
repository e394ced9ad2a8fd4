//! Alerts and their events as clients see them, and what they say of one.

use crate::words;
use crate::{AnyObject, FieldError, Patch, Text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use souk_app::alerts::{PARAMS_BYTES_MAX, Params};
use souk_domain::alerts::{
    CONSECUTIVE_MAX, CREDITS_PER_DAY_MAX, Condition, ForecastField, INTERVAL_SECONDS_MAX,
    INTERVAL_SECONDS_MIN, Operator, REARM_SECONDS_MAX, State, Threshold,
};
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{AlertEventId, AlertId, AssetId, CompanyId, UserId, WebhookId};
use souk_domain::time::Timestamp;
use souk_domain::webhooks::WEBHOOKS_MAX;
use souk_store::alerts::{Alert, AlertEvent, MailStatus, Written, answer_value, threshold_value};
use utoipa::ToSchema;

#[derive(Clone, Deserialize, ToSchema)]
#[schema(as = AlertConditionIn)]
pub struct ConditionIn {
    /// `gt`, `gte`, `lt`, `lte`, `eq`, `neq`: the answer against `threshold`, a number, or with `eq` and `neq` a text where the answer is one.
    /// `change_pct_gt`: it differs from the answer before by more than `threshold` percent. `changed`: it differs at all. `no_data`: it is null, or
    /// there is no row. `anomaly`: it is further from the median of the alert's own last 100 answers than `threshold` (default 3.5) of their usual
    /// deviations, once there are 10.
    #[schema(value_type = words::AlertOperator)]
    operator: String,
    threshold: Option<Value>,
    /// Of a prediction: `value` (default), `lower` or `upper` of its next point.
    #[schema(value_type = Option<words::ForecastField>)]
    field: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AlertCondition)]
pub struct ConditionOut {
    #[schema(value_type = words::AlertOperator)]
    operator: &'static str,
    threshold: Option<Value>,
    #[schema(value_type = Option<words::ForecastField>)]
    field: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Alert)]
pub struct AlertOut {
    #[schema(value_type = String)]
    id: AlertId,
    #[schema(value_type = String)]
    alert_id: AlertId,
    #[schema(value_type = String)]
    company_id: CompanyId,
    #[schema(value_type = String)]
    user_id: UserId,
    #[schema(value_type = String)]
    asset_id: AssetId,
    is_active: bool,
    name: String,
    /// The asset's parameters by name.
    #[schema(value_type = AnyObject)]
    params: Box<RawValue>,
    condition: ConditionOut,
    #[schema(minimum = 0)]
    check_interval_seconds: i64,
    #[schema(minimum = 0)]
    consecutive_breaches: i64,
    #[schema(minimum = 0)]
    rearm_seconds: i64,
    /// Empty: those that subscribe to `alert.*`.
    #[schema(value_type = Vec<String>)]
    webhook_ids: Vec<WebhookId>,
    #[schema(minimum = 0)]
    max_credits_per_day: i64,
    /// Whether the user whose alert it is gets a mail too.
    notify_by_mail: bool,
    /// By evaluations since midnight UTC.
    #[schema(minimum = 0)]
    credits_spent_today: i64,
    #[schema(value_type = words::AlertState)]
    state: &'static str,
    /// Breaches in a row until now.
    #[schema(minimum = 0)]
    breaches: i64,
    /// The last answer: a number, a text (a long one by its beginning), or null.
    last_value: Option<Value>,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_checked_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_triggered_at: Option<Timestamp>,
    /// Why the last evaluation failed; `null` when it did not.
    last_error: Option<String>,
    /// `null` while it is not active.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_check_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl AlertOut {
    pub fn of(alert: Alert, now: Timestamp) -> AlertOut {
        let spent = alert.spent(now);
        let written = alert.written;
        let condition = &written.condition;
        AlertOut {
            alert_id: alert.id.clone(),
            id: alert.id,
            company_id: alert.company_id,
            user_id: alert.user_id,
            asset_id: alert.asset_id,
            is_active: written.is_active,
            // With all digits of its numbers.
            params: RawValue::from_string(written.params).unwrap_or_default(),
            condition: ConditionOut {
                operator: condition.operator().as_str(),
                threshold: condition.threshold().map(threshold_value),
                field: condition.field().map(ForecastField::as_str),
            },
            name: written.name,
            check_interval_seconds: written.check_interval_seconds,
            consecutive_breaches: written.consecutive_breaches,
            rearm_seconds: written.rearm_seconds,
            webhook_ids: written.webhook_ids,
            max_credits_per_day: written.max_credits_per_day,
            notify_by_mail: written.notify_by_mail,
            credits_spent_today: spent,
            state: match written.is_active {
                true => alert.standing.state.as_str(),
                false => PAUSED,
            },
            breaches: alert.standing.breaches,
            last_value: alert.last_answer.as_ref().map(answer_value),
            last_checked_at: alert.last_checked_at,
            last_triggered_at: alert.standing.last_triggered_at,
            last_error: alert.last_error,
            next_check_at: alert.next_check_at,
            created_at: alert.created_at,
            updated_at: alert.updated_at,
        }
    }
}

pub const PAUSED: &str = "paused";

#[derive(Serialize, ToSchema)]
#[schema(as = AlertEvent)]
pub struct AlertEventOut {
    #[schema(value_type = String)]
    id: AlertEventId,
    #[schema(value_type = words::AlertEventState)]
    state: &'static str,
    #[schema(value_type = words::AlertEventState)]
    previous_state: &'static str,
    /// What the asset answered.
    value: Option<Value>,
    threshold: Option<Value>,
    /// Why it could not be evaluated.
    message: Option<String>,
    /// The run that found it.
    execution_id: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    occurred_at: Timestamp,
    #[schema(value_type = words::AlertDelivery)]
    delivery_status: &'static str,
    /// How the user was told by mail: `none` (that was not wanted), `pending`, `sent` (the relay has taken it) or `failed`
    mail_status: &'static str,
}

impl From<AlertEvent> for AlertEventOut {
    fn from(event: AlertEvent) -> AlertEventOut {
        let value = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
        AlertEventOut {
            delivery_status: delivery_status(&event.deliveries),
            mail_status: event.mail.map_or("none", MailStatus::as_str),
            id: event.id,
            state: event.state.as_str(),
            previous_state: event.previous_state.as_str(),
            value: value(event.value),
            threshold: value(event.threshold),
            message: event.message,
            execution_id: event.execution_id,
            occurred_at: event.occurred_at,
        }
    }
}

fn delivery_status(deliveries: &[String]) -> &'static str {
    let count = |status: &str| deliveries.iter().filter(|one| *one == status).count();
    match (count("pending"), count("delivered"), count("failed")) {
        (0, 0, 0) => "none",
        (0, _, 0) => "delivered",
        (0, 0, _) => "failed",
        (0, _, _) => "partial",
        _ => "pending",
    }
}

/// What a body may say of an alert, beside which asset and whose it is. Absent: as it is, or its default.
#[derive(Default)]
pub struct Given {
    pub name: Option<String>,
    pub params: Patch<Params>,
    pub condition: Patch<ConditionIn>,
    pub check_interval_seconds: Option<i64>,
    pub consecutive_breaches: Option<i64>,
    pub rearm_seconds: Option<i64>,
    pub webhook_ids: Patch<Vec<String>>,
    pub max_credits_per_day: Option<i64>,
    pub notify_by_mail: Option<bool>,
    pub is_active: Option<bool>,
}

impl Given {
    /// Lays it over what there is.
    pub fn over(self, written: &mut Written, errors: &mut Vec<FieldError>) {
        let mut wrong = FieldErrors::default();
        if let Some(name) = self.name {
            match Text::<1, 255>::new(name) {
                Some(name) => written.name = name.into_string(),
                None => wrong.add("name", "invalid", "must be a text of 1 to 255 characters"),
            }
        }
        let params = match self.params {
            Patch::Absent => None,
            Patch::Null => Some(Params::default()),
            Patch::Value(params) => Some(params),
        };
        if let Some(params) = params {
            let text = params.json();
            match text.len() <= PARAMS_BYTES_MAX && !text.contains("\\u0000") {
                true => written.params = text,
                false => wrong.add("params", "invalid", "must be at most 4096 bytes of JSON"),
            }
        }
        match self.condition {
            Patch::Absent => {}
            Patch::Null => written.condition = Condition::default(),
            Patch::Value(given) => {
                if let Some(condition) = wrong.take(condition(given)) {
                    written.condition = condition;
                }
            }
        }
        let numbers = [
            (
                "check_interval_seconds",
                self.check_interval_seconds,
                &mut written.check_interval_seconds,
                (INTERVAL_SECONDS_MIN, INTERVAL_SECONDS_MAX),
            ),
            (
                "consecutive_breaches",
                self.consecutive_breaches,
                &mut written.consecutive_breaches,
                (1, CONSECUTIVE_MAX),
            ),
            (
                "rearm_seconds",
                self.rearm_seconds,
                &mut written.rearm_seconds,
                (0, REARM_SECONDS_MAX),
            ),
            (
                "max_credits_per_day",
                self.max_credits_per_day,
                &mut written.max_credits_per_day,
                (0, CREDITS_PER_DAY_MAX),
            ),
        ];
        for (field, given, place, (min, max)) in numbers {
            match given {
                Some(number) if (min..=max).contains(&number) => *place = number,
                Some(_) => {
                    let message = format!("must be an integer from {min} to {max}");
                    wrong.add(field, "invalid", message);
                }
                None => {}
            }
        }
        match self.webhook_ids {
            Patch::Absent => {}
            Patch::Null => written.webhook_ids = Vec::new(),
            Patch::Value(ids) => written.webhook_ids = webhooks(&ids, &mut wrong),
        }
        written.notify_by_mail = self.notify_by_mail.unwrap_or(written.notify_by_mail);
        written.is_active = self.is_active.unwrap_or(written.is_active);
        errors.extend(wrong.into_vec());
    }
}

fn webhooks(given: &[String], errors: &mut FieldErrors) -> Vec<WebhookId> {
    if given.len() as i64 > WEBHOOKS_MAX {
        let message = format!("must be at most {WEBHOOKS_MAX} webhooks");
        errors.add("webhook_ids", "invalid", message);
        return Vec::new();
    }
    let mut ids = Vec::with_capacity(given.len());
    for (place, text) in given.iter().enumerate() {
        match WebhookId::parse(text) {
            Ok(id) if ids.contains(&id) => {}
            Ok(id) => ids.push(id),
            Err(error) => errors.add(
                format!("webhook_ids[{place}]"),
                "invalid",
                error.to_string(),
            ),
        }
    }
    ids
}

fn condition(given: ConditionIn) -> Result<Condition, Vec<FieldError>> {
    let mut errors = FieldErrors::default();
    let operator = Operator::parse(&given.operator);
    if operator.is_none() {
        let known = Operator::ALL.map(Operator::as_str).join(", ");
        let message = format!("must be one of {known}");
        errors.add("condition.operator", "invalid", message);
    }
    let threshold = match given.threshold {
        None | Some(Value::Null) => None,
        Some(Value::Number(number)) => number.as_f64().map(Threshold::Number),
        Some(Value::String(text)) if !text.contains('\0') => Some(Threshold::Text(text)),
        Some(_) => {
            let message = "must be a number or a text";
            errors.add("condition.threshold", "invalid", message);
            None
        }
    };
    let field = match given.field.as_deref().map(ForecastField::parse) {
        Some(None) => {
            let message = "must be one of value, lower, upper";
            errors.add("condition.field", "invalid", message);
            None
        }
        field => field.flatten(),
    };
    match (operator, errors.is_empty()) {
        (Some(operator), true) => Condition::new(operator, threshold, field),
        _ => Err(errors.into_vec()),
    }
}

crate::query::choices! {
    pub enum StateWanted {
        Unknown = "unknown",
        Ok = "ok",
        Triggered = "triggered",
        Error = "error",
        Paused = "paused",
    }
}

impl StateWanted {
    /// `None`: those that are not active.
    pub fn state(self) -> Option<State> {
        State::parse(self.as_str())
    }
}
