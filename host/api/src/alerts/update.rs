use super::shape::{AlertOut, ConditionIn, Given};
use super::{find, refuse};
use crate::refusals::{
    ASSET_NOT_FOUND, CONFLICT, CONNECTOR_UNAVAILABLE, SELLER_SUSPENDED, VALIDATION_ERROR,
};
use crate::{AnyObject, ApiState, Body, Caller, Data, FieldError, Operation, Patch, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_app::alerts::{Params, check, check_mail, check_webhooks};
use souk_domain::ids::{AlertId, CompanyId};
use souk_domain::roles::{Permission, Role};
use souk_store::alerts;
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::patch("update_alert", "/companies/{company_id}/alerts/{alert_id}")
        .about("Alerts", "Change an alert")
        .notes(
            "Other `params`, another `condition`, and `is_active: true` after a pause begin anew: the state is `unknown`, what was found before is \
             forgotten, and the asset is run at once. What was spent today counts on. A shorter `check_interval_seconds` counts from the last evaluation on, and \
             more `max_credits_per_day` end the wait for midnight of an alert that has spent what it might.",
        )
        .needs(Role::DataScientist, Permission::Write)
        .refuses(&[
            ASSET_NOT_FOUND,
            CONFLICT,
            SELLER_SUSPENDED,
            CONNECTOR_UNAVAILABLE,
        ]);

#[derive(Deserialize, ToSchema)]
pub struct AlertPatch {
    /// It stays as it is: another one is refused.
    asset_id: Option<String>,
    /// Whose alert it is stays as it is: another one is refused.
    user_id: Option<String>,
    is_active: Option<bool>,
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    /// All of them; `null` is none.
    #[serde(default)]
    #[schema(value_type = Option<AnyObject>)]
    params: Patch<Params>,
    /// The whole condition; `null`: the answer has `changed`.
    #[serde(default)]
    #[schema(value_type = Option<ConditionIn>)]
    condition: Patch<ConditionIn>,
    #[schema(minimum = 60, maximum = 2678400)]
    check_interval_seconds: Option<i64>,
    #[schema(minimum = 1, maximum = 1440)]
    consecutive_breaches: Option<i64>,
    #[schema(minimum = 0, maximum = 2678400)]
    rearm_seconds: Option<i64>,
    /// At most 20. Empty or `null`: those that subscribe.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 20)]
    webhook_ids: Patch<Vec<String>>,
    #[schema(minimum = 0, maximum = 1000000)]
    max_credits_per_day: Option<i64>,
    /// Whether the user whose alert it is gets a mail too.
    notify_by_mail: Option<bool>,
}

/// Changes an alert.
pub async fn update_alert(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AlertId)>,
    Body(body): Body<AlertPatch>,
) -> Result<Data<AlertOut>, Problem> {
    let given = Given {
        name: body.name,
        params: body.params,
        condition: body.condition,
        check_interval_seconds: body.check_interval_seconds,
        consecutive_breaches: body.consecutive_breaches,
        rearm_seconds: body.rearm_seconds,
        webhook_ids: body.webhook_ids,
        max_credits_per_day: body.max_credits_per_day,
        notify_by_mail: body.notify_by_mail,
        is_active: body.is_active,
    };
    let mut read = api.db().read().await?;
    let before = find(&mut read, &caller, &id).await?;
    drop(read);
    let (mut written, mut errors) = (before.written.clone(), Vec::new());
    for (name, wanted, known) in [
        ("asset_id", body.asset_id, before.asset_id.as_str()),
        ("user_id", body.user_id, before.user_id.as_str()),
    ] {
        if wanted.is_some_and(|wanted| wanted != known) {
            let message = "cannot be changed: create another alert";
            errors.push(FieldError::new(name, "immutable", message));
        }
    }
    given.over(&mut written, &mut errors);
    if !errors.is_empty() {
        return Err(Problem::fields(VALIDATION_ERROR, errors));
    }
    let is_woken = written.is_active && !before.written.is_active;
    let anew = is_woken
        || written.params != before.written.params
        || written.condition != before.written.condition;
    let (company, now) = (caller.company(), caller.now());
    if !before.written.notify_by_mail {
        check_mail(api.app(), &written).map_err(refuse(&before.asset_id))?;
    }
    if anew {
        let params = Params::read(&written.params).unwrap_or_default();
        let (asset, condition) = (&before.asset_id, &written.condition);
        // Before the transaction: what an asset is may have to be read first.
        check(api.app(), company, asset, &params, condition, now)
            .await
            .map_err(refuse(asset))?;
    }
    api.db()
        .write(async |write| {
            let current = find(write, &caller, &id).await?;
            if current.written != before.written {
                return Err(Problem::of(
                    CONFLICT,
                    "the alert was changed at the same time; read it again and repeat the change",
                ));
            }
            if written.webhook_ids != current.written.webhook_ids {
                check_webhooks(write, company, &written.webhook_ids)
                    .await
                    .map_err(refuse(&current.asset_id))?;
            }
            alerts::update(write, &id, &written, anew, now).await?;
            let alert = find(write, &caller, &id).await?;
            Ok(Data(AlertOut::of(alert, now)))
        })
        .await
}
