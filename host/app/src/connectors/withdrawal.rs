//! Ending, without anybody's asking, what is tried out and breaks: by the numbers that a version at work is gone back from for (`retreat`).
//!
//! Each host counts for itself, from numbers that the sandbox has anyway. Whichever host sees it first withdraws the canary for all.

use std::collections::BTreeMap;
use std::time::Duration;

use souk_domain::time::Timestamp;
use souk_sandbox::{ConnectorInfo, Status};
use souk_store::audit::{self, Act};
use souk_store::connectors::canaries::Canary;

use super::canary;
use super::counted::Counted;
use super::error::ConnectorError;
use super::loaded::{find, scope_from};
use super::retreat::is_everybodys;
use crate::App;

/// What a canary meets is counted in stretches of so long: days of good answers do not outweigh that it breaks now.
const STRETCH: Duration = Duration::from_secs(10 * 60);
const EVERY: Duration = Duration::from_secs(1);

/// What one canary meets, since when.
struct Stretch {
    canary: Canary,
    begun: Timestamp,
    before: Counted,
}

/// Looks at what is tried out here, for ever.
pub(super) async fn watch(app: App) {
    let mut stretches: BTreeMap<(String, String), Stretch> = BTreeMap::new();
    loop {
        tokio::time::sleep(EVERY).await;
        let canaries = app.connectors.canaries();
        stretches.retain(|_, stretch| canaries.contains(&stretch.canary));
        for canary in canaries {
            let scope = scope_from(&canary.scope);
            let info = find(&app, &scope, &canary.name, &canary.version);
            let Some((since, counted)) = info.as_ref().and_then(counted_of) else {
                continue;
            };
            let place = (canary.scope.clone(), canary.name.clone());
            let stretch = stretches.entry(place).or_insert(Stretch {
                canary,
                begun: since,
                before: Counted::default(),
            });
            let met = counted.since(stretch.before);
            let now = app.clock.now();
            if is_too_much(&app, stretch, met) {
                if let Err(error) = withdraw(&app, &stretch.canary, met).await {
                    tracing::warn!(%error, "cannot withdraw a canary that breaks; trying again");
                }
            } else if stretch.begun < now.before(STRETCH) {
                (stretch.begun, stretch.before) = (now, counted);
            }
        }
    }
}

/// Since when, and what.
fn counted_of(info: &ConnectorInfo) -> Option<(Timestamp, Counted)> {
    let trial = info.trial.filter(|_| info.status == Status::Canary)?;
    let counted = Counted {
        calls: trial.calls,
        faults: trial.traps,
    };
    Some((Timestamp::from_micros(trial.since), counted))
}

fn is_too_much(app: &App, stretch: &Stretch, met: Counted) -> bool {
    let canary = &stretch.canary;
    let of = (&scope_from(&canary.scope), &*canary.name, &*canary.version);
    met.is_too_much() && is_everybodys(app, of, stretch.begun)
}

/// Ends it on every host, unless somebody has chosen otherwise meanwhile.
async fn withdraw(app: &App, canary: &Canary, met: Counted) -> Result<(), ConnectorError> {
    let _changing = app.connectors.changing.lock().await;
    let Counted { calls, faults } = met;
    let (share, beside) = (canary.share_percent, &canary.beside_version);
    let told = format!(
        "as a canary, with {share} percent of the calls, it broke {faults} times in {calls} calls, so {beside} answers all of them again"
    );
    let act = Act::command("withdraw_connector_canary", "souk serve");
    let written = app
        .db
        .write(async |tx| canary::end_noting(tx, canary, &told).await);
    if !audit::acting(act, written).await? {
        return Ok(());
    }
    canary::end_here(app, &canary.scope, &canary.name);
    tracing::error!(
        scope = canary.scope,
        name = canary.name,
        version = canary.version,
        beside,
        share_percent = share,
        faults,
        calls,
        "a canary broke: the version at work answers all calls again"
    );
    Ok(())
}
