//! What this host remembers about connectors beside the sandbox.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use souk_sandbox::{ConnectorInfo, Scope};
use souk_store::connectors::Choice;
use souk_store::connectors::canaries::Canary;
use souk_store::{Change, Db, Topic};
use tokio::sync::Notify;

use super::compile_time::CompileTime;
use super::counted::Counted;
use super::turns::Turns;
use crate::lines::Lines;

/// Which of the loaded versions came from where, which choices were carried out, and who waits.
pub struct Registry {
    /// What was loaded from the store. The rest is bundled or from a directory.
    pub(super) stored: Mutex<HashSet<Key>>,
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
    pub(super) turns: Turns,
    /// Everything that a start loads is loaded: what is compiled for nobody may go.
    pub(super) is_complete: AtomicBool,
    /// One at a time changes what runs, in moments.
    pub(super) changing: tokio::sync::Mutex<()>,
    /// Who has its own sources asked whether a version works, for as long as they take: one of a company at a time.
    pub(super) proving: Lines<Scope>,
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
            turns: Turns::default(),
            is_complete: AtomicBool::new(false),
            changing: tokio::sync::Mutex::default(),
            proving: Lines::new(1),
        }
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
