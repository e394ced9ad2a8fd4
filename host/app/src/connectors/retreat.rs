//! Going back, without anybody's asking, from a version that breaks soon after it was put to work. Its health check said that it opens and answers; only
//! calls tell the rest.
//!
//! Each host counts for itself, from numbers that the sandbox has anyway: nothing is done for a call. Whichever host sees it first goes back for all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use souk_domain::time::Timestamp;
use souk_sandbox::{LogFilter, Scope, Status};
use souk_store::audit::{self, Act};
use souk_store::connectors::{self, Choice};

use super::counted::Counted;
use super::error::ConnectorError;
use super::loaded::{find, scope_from};
use super::{ahead, chosen, engines, shelf, undo};
use crate::App;

/// A version that was at work for so long has shown what it can do; what breaks then has another cause.
const WATCHED: Duration = Duration::from_secs(10 * 60);
const EVERY: Duration = Duration::from_secs(1);
/// While the store takes nothing, each try puts the version of before to work for a moment: it is tried again after twice as long, and this at the most.
const TRIED_AGAIN_MAX: Duration = Duration::from_secs(60);
/// Of the platform's connectors, which all companies use: one of them alone, by what it asks, does not decide for the others.
const COMPANIES_MIN: usize = 2;

/// Looks at what was put to work lately, for ever.
pub(super) async fn watch(app: App) {
    let mut stuck: BTreeMap<(String, String), Stuck> = BTreeMap::new();
    loop {
        tokio::time::sleep(EVERY).await;
        let since = app.clock.now().before(WATCHED);
        for choice in young(&app, since) {
            let place = (choice.scope.clone(), choice.name.clone());
            let before = stuck.get(&place).copied();
            let before = before.filter(|stuck| stuck.activated_at == choice.activated_at);
            if before.is_some_and(|stuck| !stuck.is_due()) {
                continue;
            }
            let Some(met) = too_much(&app, &choice) else {
                continue;
            };
            let wait = match retreat(&app, &choice, met).await {
                Ok(()) => {
                    stuck.remove(&place);
                    continue;
                }
                Err(ConnectorError::Store(error)) => {
                    if before.is_none() {
                        tracing::warn!(scope = choice.scope, name = choice.name, version = choice.version, %error,
                            "cannot go back from a version that breaks; trying again, later each time");
                    }
                    Some(longer(before.and_then(|stuck| stuck.wait)))
                }
                Err(error) => {
                    tracing::error!(scope = choice.scope, name = choice.name, version = choice.version, %error,
                        "a version breaks, and there is no way back");
                    None
                }
            };
            let tried = Stuck {
                activated_at: choice.activated_at,
                tried_at: Instant::now(),
                wait,
            };
            stuck.insert(place, tried);
        }
        stuck.retain(|_, stuck| stuck.activated_at >= since);
    }
}

/// A version from which nobody could go back.
#[derive(Clone, Copy)]
struct Stuck {
    activated_at: Timestamp,
    tried_at: Instant,
    /// Until it is tried again. `None`: it is not.
    wait: Option<Duration>,
}

impl Stuck {
    fn is_due(&self) -> bool {
        self.wait
            .is_some_and(|wait| self.tried_at.elapsed() >= wait)
    }
}

/// How long to wait after having waited for so long.
fn longer(waited: Option<Duration>) -> Duration {
    waited.map_or(EVERY, |waited| (2 * waited).min(TRIED_AGAIN_MAX))
}

fn young(app: &App, since: Timestamp) -> Vec<Choice> {
    let applied = app.connectors.applied.lock();
    let young = applied.values().filter(|choice| is_watched(choice, since));
    young.cloned().collect()
}

/// It is at work, not for long, and something was at work before. What has been gone back to already stays.
fn is_watched(choice: &Choice, since: Timestamp) -> bool {
    choice.deactivated_at.is_none()
        && choice.previous_version.is_some()
        && choice.reason.is_none()
        && choice.activated_at >= since
}

/// What a version has met since it was put to work, if that is too much.
fn too_much(app: &App, choice: &Choice) -> Option<Counted> {
    let scope = scope_from(&choice.scope);
    let info = find(app, &scope, &choice.name, &choice.version)?;
    if info.status != Status::Active {
        return None;
    }
    let before = app.connectors.counted_before(choice);
    let met = Counted::of(&info).since(before);
    let of = (&scope, &*choice.name, &*choice.version);
    let is_too_much = met.is_too_much() && is_everybodys(app, of, choice.activated_at);
    is_too_much.then_some(met)
}

/// Whether as many companies have met faults of a version as decide for all who use it.
pub(super) fn is_everybodys(
    app: &App,
    (scope, name, version): (&Scope, &str, &str),
    since: Timestamp,
) -> bool {
    if *scope != Scope::Platform {
        return true;
    }
    let filter = LogFilter {
        company: None,
        scope: Some(scope),
        connector: name,
        connection: None,
        after: u64::try_from(since.micros()).ok(),
        // All that is kept, which is bounded by itself: among the first of a talkative version are no faults.
        lines_max: usize::MAX,
    };
    let lines = app.sandbox.log_lines(&filter);
    let met = lines
        .iter()
        .filter(|line| *line.version == *version && line.stream.as_str() == "fault")
        .map(|line| line.company.to_string());
    met.collect::<BTreeSet<String>>().len() >= COMPANIES_MIN
}

/// Puts the version of before to work, unless somebody has chosen otherwise meanwhile. One that has to be compiled first is looked at again, each second,
/// until it is.
async fn retreat(app: &App, choice: &Choice, met: Counted) -> Result<(), ConnectorError> {
    let (scope, name) = (scope_from(&choice.scope), choice.name.as_str());
    let (text, bad) = (choice.scope.as_str(), choice.version.as_str());
    let previous = choice.previous_version.as_deref();
    let previous = previous.ok_or(ConnectorError::NotFound)?;
    let row = app
        .db
        .ask(async |db| connectors::get(db, text, name, previous).await);
    if let Some(row) = row.await?
        && !ahead::is_ready(app, &row).await
    {
        return Ok(());
    }
    let _changing = app.connectors.changing.lock().await;
    // Everybody who changes connectors waits for this.
    let current = app
        .db
        .ask(async |db| connectors::choice_of(db, text, name).await)
        .await?;
    if current.as_ref() != Some(choice) {
        return Ok(());
    }
    let candidate = shelf::fetch(app, &scope, name, previous).await?;
    engines::claim(app, &scope, &candidate.engine_ids).await?;
    let info = app.sandbox.activate(&scope, name, previous).await?;
    shelf::put_back(app, &scope, name, Some(bad));
    let Counted { calls, faults } = met;
    let told = format!(
        "it broke {faults} times in {calls} calls after it was put to work, so {previous} is at work again"
    );
    let back = Choice {
        version: previous.to_owned(),
        previous_version: Some(bad.to_owned()),
        activated_at: app.clock.now(),
        reason: Some(format!("{bad}: {told}")),
        ..choice.clone()
    };
    let act = Act::command("roll_back_connector", "souk serve");
    let written = app.db.write(async |tx| -> Result<_, ConnectorError> {
        // Another host that shares the store may have been first, or somebody with a key.
        let is_first = connectors::choice_of(tx, text, name).await?.as_ref() == Some(choice);
        if is_first {
            shelf::lock(app, tx, (text, name, previous)).await?;
            connectors::note_error(tx, (text, name, bad), Some(&told)).await?;
            connectors::choose(tx, &back).await?;
        }
        Ok(is_first)
    });
    match audit::acting(act, written).await {
        Ok(true) => {}
        Ok(false) => {
            // What they have chosen, which may be this one.
            app.connectors.note_counted(text, &info);
            let followed = chosen::catch_up(app, &scope, name).await;
            if followed.is_err() {
                undo::take_back(app, &scope, name, Some(bad)).await;
            }
            return followed;
        }
        Err(error) => {
            // It is looked at again, by the same counts, until the store takes it: what is at work is what the store has.
            undo::take_back(app, &scope, name, Some(bad)).await;
            return Err(error);
        }
    }
    app.sandbox
        .note_chosen(&scope, name, back.activated_at.micros(), Some(previous));
    tracing::error!(
        scope = text,
        name,
        version = bad,
        previous,
        faults,
        calls,
        "a version broke soon after it was put to work: the one before is at work again"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store that takes nothing has a version swapped less and less often, and never for good.
    #[test]
    fn what_cannot_be_written_is_tried_later_each_time() {
        let mut waits = vec![longer(None)];
        while waits.len() < 9 {
            waits.push(longer(waits.last().copied()));
        }
        let seconds: Vec<u64> = waits.iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let tried = |wait| Stuck {
            activated_at: Timestamp::from_micros(0),
            tried_at: Instant::now(),
            wait,
        };
        assert!(tried(Some(Duration::ZERO)).is_due());
        assert!(!tried(Some(TRIED_AGAIN_MAX)).is_due());
        assert!(!tried(None).is_due());
    }
}
