use super::shape::{AlertOut, ConditionIn, Given};
use super::{check_user, refuse};
use crate::idempotency::Once;
use crate::refusals::{
    ASSET_NOT_FOUND, CONFLICT, CONNECTOR_UNAVAILABLE, SELLER_SUSPENDED, VALIDATION_ERROR,
};
use crate::{
    AnyObject, ApiState, Body, Caller, Created, FieldError, Operation, Patch, Path, Problem,
};
use axum::extract::State;
use serde::Deserialize;
use souk_app::alerts::{self, Params};
use souk_domain::alerts::{CREDITS_PER_DAY_DEFAULT, Condition, INTERVAL_SECONDS_DEFAULT};
use souk_domain::ids::{AssetId, CompanyId, UserId};
use souk_domain::roles::{Permission, Role};
use souk_store::alerts::Written;
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::post("create_alert", "/companies/{company_id}/users/{user_id}/alerts")
        .about("Alerts", "Watch an asset's answer")
        .notes(
            "The asset is run at once and then every `check_interval_seconds`, as by `execute`: an own asset is free, another company's is charged \
             (and bought by its first run), at most `max_credits_per_day` for each day UTC. A condition that is broken `consecutive_breaches` times in a row \
             triggers the alert; after that it does not trigger again for `rearm_seconds`. Changes of its state are told to webhooks: to `webhook_ids`, \
             whatever they subscribe to, or to all that subscribe to `alert.triggered`, `alert.resolved` and `alert.error`. A company has at \
             most 1,000 alerts unless the operator says otherwise.",
        )
        .needs(Role::DataScientist, Permission::Write)
        .refuses(&[
            ASSET_NOT_FOUND,
            CONFLICT,
            SELLER_SUSPENDED,
            CONNECTOR_UNAVAILABLE,
        ]);

#[derive(Deserialize, ToSchema)]
pub struct AlertIn {
    /// One of the company's own, one on sale, or one that was bought; no chart.
    asset_id: String,
    /// Default true.
    is_active: Option<bool>,
    /// Default: the asset's.
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    /// The asset's parameters by name; at most 4096 bytes.
    #[serde(default)]
    #[schema(value_type = Option<AnyObject>)]
    params: Patch<Params>,
    /// Default: the answer has `changed`.
    #[serde(default)]
    #[schema(value_type = Option<ConditionIn>)]
    condition: Patch<ConditionIn>,
    /// Default 3600.
    #[schema(minimum = 60, maximum = 2678400)]
    check_interval_seconds: Option<i64>,
    /// Default 1.
    #[schema(minimum = 1, maximum = 1440)]
    consecutive_breaches: Option<i64>,
    /// Default 0.
    #[schema(minimum = 0, maximum = 2678400)]
    rearm_seconds: Option<i64>,
    /// At most 20. Default: those that subscribe.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 20)]
    webhook_ids: Patch<Vec<String>>,
    /// Default 100. An alert that would spend more is in the state `error` until the next day.
    #[schema(minimum = 0, maximum = 1000000)]
    max_credits_per_day: Option<i64>,
    /// Default false. Whether the user whose alert it is gets a mail too, at most 100 an hour for a company; 400 where the host has no relay.
    notify_by_mail: Option<bool>,
}

/// Watches an asset's answer.
pub async fn create_alert(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, user)): Path<(CompanyId, UserId)>,
    once: Once,
    Body(body): Body<AlertIn>,
) -> Result<Created<AlertOut>, Problem> {
    let mut errors = Vec::new();
    let asset = AssetId::parse(&body.asset_id);
    if let Err(error) = &asset {
        errors.push(FieldError::new("asset_id", "invalid", error.to_string()));
    }
    let is_named = body.name.is_some();
    let mut written = Written {
        name: String::new(),
        params: "{}".to_owned(),
        condition: Condition::default(),
        check_interval_seconds: INTERVAL_SECONDS_DEFAULT,
        consecutive_breaches: 1,
        rearm_seconds: 0,
        webhook_ids: Vec::new(),
        max_credits_per_day: CREDITS_PER_DAY_DEFAULT,
        notify_by_mail: false,
        is_active: true,
    };
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
    given.over(&mut written, &mut errors);
    let asset = match (asset, errors.is_empty()) {
        (Ok(asset), true) => asset,
        _ => return Err(Problem::fields(VALIDATION_ERROR, errors)),
    };
    let mut read = api.db().read().await?;
    check_user(&mut read, &caller, &user).await?;
    drop(read);
    let (app, company, told) = (api.app(), caller.company(), refuse(&asset));
    let params = Params::read(&written.params).unwrap_or_default();
    // Before the transaction: what an asset is may have to be read first.
    let watched = alerts::check(
        app,
        company,
        &asset,
        &params,
        &written.condition,
        caller.now(),
    );
    let watched = watched.await.map_err(&told)?;
    if !is_named {
        written.name = watched.row.written.name.chars().take(255).collect();
    }
    api.db()
        .write(async |write| {
            let (asset, now) = (asset.clone(), caller.now());
            let alert = alerts::create(app, write, company, user, asset, written, now);
            let alert = alert.await.map_err(&told)?;
            let created = Created {
                location: format!("/companies/{}/alerts/{}", alert.company_id, alert.id),
                data: AlertOut::of(alert, caller.now()),
            };
            once.keep(write, &created).await?;
            Ok(created)
        })
        .await
}
