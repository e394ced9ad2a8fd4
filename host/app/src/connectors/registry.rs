//! What this host remembers about connectors beside the sandbox.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use souk_sandbox::{ConnectorInfo, Scope};
use souk_store::connectors::canaries::Canary;
use souk_store::connectors::{Choice, StoredConnector};
use souk_store::{Change, Db, Topic};
use tokio::sync::{Notify, OwnedMutexGuard, OwnedSemaphorePermit};

use super::compile_time::CompileTime;
use super::counted::Counted;
use super::turns::Turns;
use crate::lines::Lines;

/// Which of the loaded versions came from where, which choices were carried out, and who waits.
pub struct Registry {
    /// What was loaded from the store, with its digest. The rest is bundled or from a directory.
    pub(super) stored: Mutex<HashMap<Key, String>>,
    /// Why what the store has of the platform's is not loaded here.
    pub(super) unloadable: Mutex<BTreeMap<Key, String>>,
    /// The bundled version of each connector: where a choice without a row leads.
    pub(super) bundled: Mutex<BTreeMap<String, String>>,
    /// The choices that were carried out, by scope and name.
    pub(super) applied: Mutex<BTreeMap<(String, String), Choice>>,
    /// The canaries that were carried out, by scope and name.
    canaries: Mutex<BTreeMap<(String, String), Canary>>,
    /// What the version at work had counted when it was put to work here, by scope and name.
    at_switch: Mutex<BTreeMap<(String, String), (String, Counted)>>,
    pub(super) compile_time: CompileTime,
    pub(super) changed: Arc<Notify>,
    /// A choice could not be carried out here for want of room.
    pub(super) is_behind: AtomicBool,
    /// What is being compiled before it is loaded, and what of that could not be, with its digest.
    pub(super) compiling: Mutex<HashSet<Key>>,
    pub(super) uncompiled: Mutex<HashMap<Key, String>>,
    pub(super) turns: Turns,
    /// Everything that a start loads is loaded: what is compiled for nobody may go.
    pub(super) is_complete: AtomicBool,
    /// One at a time changes what runs, in moments.
    pub(super) changing: Arc<tokio::sync::Mutex<()>>,
    /// Who has its own sources asked whether a version works, for as long as they take: one of a company at a time.
    pub(super) proving: Lines<Scope>,
    /// Who wants something changed at once: one of a company at a time is before others.
    asking: Lines<Scope>,
}

/// Whoever has it changes what runs, and nobody else, until it is dropped.
pub(super) struct Changing {
    // First: who is next of the same company gets in line behind those who wait already.
    _changing: OwnedMutexGuard<()>,
    _own: Option<OwnedSemaphorePermit>,
}

/// Scope, name and version.
pub(super) type Key = (String, String, String);

impl Registry {
    pub fn new(db: &Db) -> Registry {
        let changed = Arc::new(Notify::new());
        let notify = changed.clone();
        db.on_change(Box::new(move |change| {
            if matches!(
                change,
                Change::Everything
                    | Change::One {
                        topic: Topic::Connector,
                        ..
                    }
            ) {
                notify.notify_one();
            }
        }));
        Registry {
            stored: Mutex::default(),
            unloadable: Mutex::default(),
            bundled: Mutex::default(),
            applied: Mutex::default(),
            canaries: Mutex::default(),
            at_switch: Mutex::default(),
            compile_time: CompileTime::default(),
            changed,
            is_behind: AtomicBool::new(false),
            compiling: Mutex::default(),
            uncompiled: Mutex::default(),
            turns: Turns::default(),
            is_complete: AtomicBool::new(false),
            changing: Arc::default(),
            proving: Lines::new(1),
            asking: Lines::new(1),
        }
    }

    /// Waits until only this one changes what runs. What a company asks for waits for what else it asks for, and others for one of that; staff
    /// goes before what has not begun.
    pub(super) async fn change(&self, scope: &Scope, is_staff: bool) -> Changing {
        let own = match scope {
            Scope::Company(_) if !is_staff => self.asking.stand(scope).await,
            Scope::Company(_) | Scope::Platform => None,
        };
        Changing {
            _changing: self.changing.clone().lock_owned().await,
            _own: own,
        }
    }

    /// Whether what the store has of a version is what was loaded of it.
    pub(super) fn has(&self, row: &StoredConnector) -> bool {
        let stored = self.stored.lock();
        stored
            .get(&key_of(row))
            .is_some_and(|digest| *digest == row.digest)
    }

    /// Whether the store has other bytes of a version than those that were loaded from it: it was deleted, and uploaded with others, before this host
    /// heard of either.
    pub(super) fn is_replaced(&self, row: &StoredConnector) -> bool {
        let stored = self.stored.lock();
        stored
            .get(&key_of(row))
            .is_some_and(|digest| *digest != row.digest)
    }

    /// Whether these bytes of a version could not be compiled here: others of its number may be.
    pub(super) fn is_uncompiled(&self, row: &StoredConnector) -> bool {
        self.uncompiled.lock().get(&key_of(row)) == Some(&row.digest)
    }

    /// For how long uploads of companies have been compiled here.
    pub fn compiled_for(&self) -> Duration {
        self.compile_time.total()
    }

    /// The same of each company that has had any in its hour.
    pub fn compiled_by_company(&self) -> Vec<(String, Duration)> {
        self.compile_time.spent(Instant::now())
    }

    pub(super) fn canaries(&self) -> Vec<Canary> {
        self.canaries.lock().values().cloned().collect()
    }

    pub(super) fn knows_canary(&self, canary: &Canary) -> bool {
        self.canaries.lock().values().any(|known| known == canary)
    }

    pub(super) fn note_canary(&self, canary: Canary) {
        let place = (canary.scope.clone(), canary.name.clone());
        self.canaries.lock().insert(place, canary);
    }

    pub(super) fn forget_canary(&self, scope: &str, name: &str) {
        let place = (scope.to_owned(), name.to_owned());
        self.canaries.lock().remove(&place);
    }

    /// A version was put to work here: what it counted before says nothing about how it does from now on.
    pub(super) fn note_counted(&self, scope: &str, info: &ConnectorInfo) {
        let place = (scope.to_owned(), info.name.clone());
        let counted = (info.version.clone(), Counted::of(info));
        self.at_switch.lock().insert(place, counted);
    }

    /// What a version had counted when it was put to work; nothing, if this host has started since.
    pub(super) fn counted_before(&self, choice: &Choice) -> Counted {
        let place = (choice.scope.clone(), choice.name.clone());
        match self.at_switch.lock().get(&place) {
            Some((version, counted)) if *version == choice.version => *counted,
            _ => Counted::default(),
        }
    }
}

pub(super) fn key(scope: &str, name: &str, version: &str) -> Key {
    (scope.to_owned(), name.to_owned(), version.to_owned())
}

pub(super) fn key_of(row: &StoredConnector) -> Key {
    key(&row.scope, &row.name, &row.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_domain::time::Timestamp;
    use souk_store::OpenOptions;
    use tempfile::TempDir;
    use tokio::task::{JoinSet, yield_now};

    /// With a store in a directory that stays as long as what is returned.
    async fn registry() -> (Registry, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("souk.db").display());
        let db = Db::open(&OpenOptions::new(url)).await.unwrap();
        (Registry::new(&db), directory)
    }

    /// What is known of a version is known of the bytes that it had.
    #[tokio::test]
    async fn a_version_is_its_bytes() {
        let (registry, _directory) = registry().await;
        let row = |digest: &str| StoredConnector {
            scope: "a company".to_owned(),
            name: "acme".to_owned(),
            version: "1.0.0".to_owned(),
            digest: digest.to_owned(),
            size_bytes: 1,
            uploaded_by: "its seller".to_owned(),
            created_at: Timestamp::from_micros(0),
            described: None,
            error: None,
        };
        let (before, now) = (row("before"), row("now"));
        let known = || {
            let of = |row: &StoredConnector| {
                [
                    registry.has(row),
                    registry.is_replaced(row),
                    registry.is_uncompiled(row),
                ]
            };
            [of(&before), of(&now)]
        };
        assert_eq!(known(), [[false; 3]; 2]);
        let (key, digest) = (key_of(&before), before.digest.clone());
        registry.stored.lock().insert(key.clone(), digest.clone());
        registry.uncompiled.lock().insert(key, digest);
        assert_eq!(known(), [[true, false, true], [false, true, false]]);
    }

    /// However much a company wants changed at once, another one waits for one of it, and so does staff.
    #[tokio::test]
    async fn a_companys_changes_wait_for_each_other() {
        let (registry, _directory) = registry().await;
        let registry = Arc::new(registry);
        let changed: Arc<Mutex<Vec<(&str, bool)>>> = Arc::default();
        let held = registry.changing.lock().await;
        let mut all = JoinSet::new();
        for who in [
            ("many", false),
            ("many", false),
            ("many", false),
            ("other", false),
            ("many", true),
        ] {
            let (registry, changed) = (registry.clone(), changed.clone());
            all.spawn(async move {
                let (company, is_staff) = who;
                let scope = Scope::Company(company.to_owned());
                let _changing = registry.change(&scope, is_staff).await;
                changed.lock().push(who);
            });
            // Until it waits.
            for _ in 0..3 {
                yield_now().await;
            }
        }
        drop(held);
        all.join_all().await;
        let in_turn = [
            ("many", false),
            ("other", false),
            ("many", true),
            ("many", false),
            ("many", false),
        ];
        assert_eq!(*changed.lock(), in_turn);
    }
}
