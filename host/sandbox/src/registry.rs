//! Which connectors there are, in which versions, and which one serves an engine. Knows nothing of
//! sessions: `Sandbox` retires pools after each change.

mod canary;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::{
    connector::{ConnectorInfo, LoadError, Scope, Status},
    loaded::Connector,
};

/// Versions kept of one connector: enough to go back, few enough to hold in memory.
const VERSIONS_MAX: usize = 32;
/// Connectors in one scope.
const NAMES_MAX: usize = 256;
/// Files of the watched directory that are remembered as rejected.
const REJECTED_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Registry {
    state: Mutex<State>,
    /// Scope and engine slug to the active connector.
    active: ArcSwap<HashMap<Scope, BTreeMap<String, Arc<Connector>>>>,
}

#[derive(Default)]
struct State {
    families: BTreeMap<(Scope, String), Family>,
    rejected: BTreeMap<String, ConnectorInfo>,
    /// When somebody chose what runs of a name, and which version; `None`: none.
    chosen: BTreeMap<(Scope, String), (i64, Option<String>)>,
}

impl State {
    /// The engines that are the platform's: those of every version of its connectors that was ever at work here. One that it stops to
    /// serve stays its own, since connections were saved for it.
    fn of_platform(&self) -> HashSet<String> {
        self.families
            .iter()
            .filter(|((scope, _), _)| *scope == Scope::Platform)
            .flat_map(|(_, family)| {
                family
                    .versions
                    .iter()
                    .filter(|connector| family.history.contains(&connector.version))
            })
            .flat_map(|connector| connector.engines.iter().map(|engine| engine.slug.clone()))
            .collect()
    }
}

/// All versions of one name in one scope, in load order.
#[derive(Default)]
struct Family {
    versions: Vec<Arc<Connector>>,
    /// Versions that were active, oldest first; the last one is active now, or was until it was taken off work.
    history: Vec<String>,
    is_off: bool,
}

impl Family {
    fn find(&self, version: &str) -> Option<&Arc<Connector>> {
        self.versions
            .iter()
            .find(|connector| connector.version == version)
    }

    fn active(&self) -> Option<&Arc<Connector>> {
        self.history
            .last()
            .filter(|_| !self.is_off)
            .and_then(|version| self.find(version))
    }
}

impl Registry {
    /// The version with this digest, if it is loaded.
    pub fn by_digest(&self, scope: &Scope, digest: &str) -> Option<Arc<Connector>> {
        let state = self.state.lock();
        state
            .families
            .iter()
            .filter(|((owner, _), _)| owner == scope)
            .flat_map(|(_, family)| &family.versions)
            .find(|connector| connector.digest == digest)
            .cloned()
    }

    /// Whether any version of anybody's has these bytes.
    pub fn has_digest(&self, digest: &str) -> bool {
        let state = self.state.lock();
        let mut versions = state.families.values().flat_map(|family| &family.versions);
        versions.any(|connector| connector.digest == digest)
    }

    /// Adds a staged version. One name and version stands for one digest.
    pub fn stage(&self, connector: Arc<Connector>) -> Result<Arc<Connector>, LoadError> {
        let mut state = self.state.lock();
        let names = state
            .families
            .keys()
            .filter(|(scope, _)| *scope == connector.scope)
            .count();
        let key = (connector.scope.clone(), connector.name.clone());
        if !state.families.contains_key(&key) && names >= NAMES_MAX {
            return Err(LoadError::Invalid(format!(
                "there are {NAMES_MAX} connectors here already: remove one first"
            )));
        }
        let family = state.families.entry(key).or_default();
        if let Some(loaded) = family.find(&connector.version) {
            if loaded.digest == connector.digest {
                return Ok(loaded.clone());
            }
            return Err(LoadError::Conflict {
                name: connector.name.clone(),
                version: connector.version.clone(),
                digest: loaded.digest.clone(),
            });
        }
        if family.versions.len() >= VERSIONS_MAX {
            return Err(LoadError::Invalid(format!(
                "connector \"{}\" has {VERSIONS_MAX} versions already: remove one first",
                connector.name
            )));
        }
        family.versions.push(connector.clone());
        Ok(connector)
    }

    pub fn find(
        &self,
        scope: &Scope,
        name: &str,
        version: &str,
    ) -> Result<Arc<Connector>, LoadError> {
        self.state
            .lock()
            .families
            .get(&(scope.clone(), name.to_owned()))
            .and_then(|family| family.find(version))
            .cloned()
            .ok_or_else(|| LoadError::Unknown {
                name: name.to_owned(),
                version: version.to_owned(),
            })
    }

    /// The version before the active one.
    pub fn earlier(&self, scope: &Scope, name: &str) -> Result<Arc<Connector>, LoadError> {
        let none = || LoadError::NoEarlier {
            name: name.to_owned(),
        };
        let state = self.state.lock();
        let family = state
            .families
            .get(&(scope.clone(), name.to_owned()))
            .ok_or_else(none)?;
        let before = family.history.len().checked_sub(2).ok_or_else(none)?;
        family
            .find(&family.history[before])
            .cloned()
            .ok_or_else(none)
    }

    /// New requests go to this version from now on. `back`: the active one leaves the history.
    pub fn activate(&self, connector: &Arc<Connector>, back: bool) -> Result<(), LoadError> {
        let mut state = self.state.lock();
        let key = (connector.scope.clone(), connector.name.clone());
        // What was saved for an engine of the platform must not reach a company's code.
        if connector.scope != Scope::Platform {
            let taken = state.of_platform();
            if let Some(engine) = connector
                .engines
                .iter()
                .find(|engine| taken.contains(&engine.slug))
            {
                return Err(LoadError::Invalid(format!(
                    "engine \"{}\" is the platform's: a company's connector cannot serve it",
                    engine.slug
                )));
            }
        }
        // Two active connectors of one scope cannot serve one engine.
        for engine in &connector.engines {
            let taken = state.families.iter().any(|(other, family)| {
                other.0 == connector.scope
                    && other.1 != connector.name
                    && family
                        .active()
                        .is_some_and(|active| active.has_engine(&engine.slug))
            });
            if taken {
                return Err(LoadError::Invalid(format!(
                    "engine \"{}\" is served by another active connector",
                    engine.slug
                )));
            }
        }
        let Some(family) = state
            .families
            .get_mut(&key)
            .filter(|family| family.find(&connector.version).is_some())
        else {
            return Err(LoadError::Unknown {
                name: connector.name.clone(),
                version: connector.version.clone(),
            });
        };
        if family
            .active()
            .is_some_and(|active| active.version == connector.version)
        {
            return Ok(());
        }
        // The one that is activated may be the canary itself.
        family.end_canary();
        if let Some(active) = family.active() {
            active.set_status(Status::Draining);
        }
        if back {
            family.history.pop();
        }
        family.is_off = false;
        family
            .history
            .retain(|version| *version != connector.version);
        family.history.push(connector.version.clone());
        connector.set_status(Status::Active);
        self.publish(&state);
        Ok(())
    }

    /// Takes the active version off work: nothing of this name serves anybody until a version is activated. What the platform's served stays
    /// the platform's.
    pub fn deactivate(&self, scope: &Scope, name: &str) -> Result<Arc<Connector>, LoadError> {
        let mut state = self.state.lock();
        let key = (scope.clone(), name.to_owned());
        let family = state.families.get_mut(&key);
        let active = family.and_then(|family| {
            let active = family.active()?.clone();
            family.end_canary();
            family.is_off = true;
            Some(active)
        });
        let active = active.ok_or_else(|| LoadError::NotActive {
            name: name.to_owned(),
        })?;
        active.set_status(Status::Draining);
        self.publish(&state);
        Ok(active)
    }

    /// Notes when what runs of a name was chosen (microseconds since the epoch), and which version; `None`: none.
    pub fn note_chosen(&self, scope: &Scope, name: &str, at: i64, version: Option<&str>) {
        let key = (scope.clone(), name.to_owned());
        let version = version.map(str::to_owned);
        self.state.lock().chosen.insert(key, (at, version));
    }

    /// Whether a choice that was made later than `at` keeps this version from work.
    pub fn is_kept_off(&self, scope: &Scope, name: &str, version: &str, at: i64) -> bool {
        let state = self.state.lock();
        let key = (scope.clone(), name.to_owned());
        let is_active = state
            .families
            .get(&key)
            .is_some_and(|family| family.active().is_some());
        state
            .chosen
            .get(&key)
            .filter(|(chosen_at, _)| *chosen_at > at)
            .is_some_and(|(_, chosen)| match chosen {
                Some(chosen) => is_active && chosen != version,
                None => true,
            })
    }

    pub fn remove(&self, scope: &Scope, name: &str, version: &str) -> Result<(), LoadError> {
        let mut state = self.state.lock();
        let key = (scope.clone(), name.to_owned());
        let unknown = || LoadError::Unknown {
            name: name.to_owned(),
            version: version.to_owned(),
        };
        let family = state.families.get_mut(&key).ok_or_else(unknown)?;
        let connector = family.find(version).ok_or_else(unknown)?;
        match (connector.status(), (name.to_owned(), version.to_owned())) {
            (Status::Active, (name, version)) => return Err(LoadError::Active { name, version }),
            (Status::Canary, (name, version)) => return Err(LoadError::Canary { name, version }),
            _ => {}
        }
        family
            .versions
            .retain(|connector| connector.version != version);
        family.history.retain(|known| known != version);
        if family.versions.is_empty() {
            state.families.remove(&key);
        }
        Ok(())
    }

    /// The connector that serves an engine for a company: the platform's, and its own where the platform has none.
    /// No company at all (`""`): the platform's.
    pub fn resolve(&self, company: &str, slug: &str) -> Option<Arc<Connector>> {
        let active = self.active.load();
        if let Some(connector) = active
            .get(&Scope::Platform)
            .and_then(|engines| engines.get(slug))
        {
            return Some(connector.clone());
        }
        if active.len() <= usize::from(active.contains_key(&Scope::Platform)) {
            return None;
        }
        active
            .get(&Scope::Company(company.to_owned()))
            .and_then(|engines| engines.get(slug))
            .cloned()
    }

    /// Every engine that a company can use, by slug.
    pub fn engines(&self, company: &str) -> BTreeMap<String, Arc<Connector>> {
        let active = self.active.load();
        let mut engines = active.get(&Scope::Platform).cloned().unwrap_or_default();
        if let Some(own) = active.get(&Scope::Company(company.to_owned())) {
            for (slug, connector) in own {
                engines
                    .entry(slug.clone())
                    .or_insert_with(|| connector.clone());
            }
        }
        engines
    }

    pub fn all(&self) -> Vec<Arc<Connector>> {
        self.state
            .lock()
            .families
            .values()
            .flat_map(|family| family.versions.iter().cloned())
            .collect()
    }

    /// Remembers (or forgets) that a file of the watched directory was refused.
    pub fn note_rejected(&self, file: &str, rejected: Option<ConnectorInfo>) {
        let mut state = self.state.lock();
        match rejected {
            Some(info)
                if state.rejected.len() < REJECTED_MAX || state.rejected.contains_key(file) =>
            {
                state.rejected.insert(file.to_owned(), info);
            }
            Some(_) => {}
            None => {
                state.rejected.remove(file);
            }
        }
    }

    pub fn rejected(&self) -> Vec<ConnectorInfo> {
        self.state.lock().rejected.values().cloned().collect()
    }

    fn publish(&self, state: &State) {
        let mut active: HashMap<Scope, BTreeMap<String, Arc<Connector>>> = HashMap::new();
        let taken = state.of_platform();
        for ((scope, _), family) in &state.families {
            if let Some(connector) = family.active() {
                let engines = active.entry(scope.clone()).or_default();
                engines.extend(
                    connector
                        .engines
                        .iter()
                        .filter(|engine| *scope == Scope::Platform || !taken.contains(&engine.slug))
                        .map(|engine| (engine.slug.clone(), connector.clone())),
                );
            }
        }
        self.active.store(Arc::new(active));
    }
}
