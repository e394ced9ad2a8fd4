//! Giving a version a share of the calls, and taking it back.

use std::sync::Arc;

use super::{Family, Registry};
use crate::{
    canary::check_stands_in,
    connector::{LoadError, Scope, Status},
    loaded::Connector,
};

impl Family {
    /// The canary takes no more calls. `None`: there was none.
    pub(super) fn end_canary(&self) -> Option<Arc<Connector>> {
        let active = self.active()?;
        let canary = active.beside.end()?;
        active.end_trial();
        canary.end_trial();
        canary.set_status(Status::Draining);
        Some(canary)
    }
}

impl Registry {
    /// So many percent of the calls go to this version from now on, and the others to the one at work. Another canary of its name is ended.
    pub fn try_out(&self, connector: &Arc<Connector>, share_percent: u8) -> Result<(), LoadError> {
        let state = self.state.lock();
        let (name, version) = (&connector.name, &connector.version);
        let key = (connector.scope.clone(), name.clone());
        let family = state.families.get(&key);
        let Some(family) = family.filter(|family| family.find(version).is_some()) else {
            return Err(LoadError::Unknown {
                name: name.clone(),
                version: version.clone(),
            });
        };
        let Some(active) = family.active() else {
            return Err(LoadError::NotActive { name: name.clone() });
        };
        if active.version == *version {
            return Err(LoadError::Active {
                name: name.clone(),
                version: version.clone(),
            });
        }
        check_stands_in(connector, active)?;
        if !active.beside.is_canary(connector) {
            family.end_canary();
        }
        connector.set_status(Status::Canary);
        connector.begin_trial(share_percent);
        active.begin_trial(100 - share_percent);
        active.beside.begin(connector.clone(), share_percent);
        Ok(())
    }

    /// The version at work takes all calls again.
    pub fn end_canary(&self, scope: &Scope, name: &str) -> Option<Arc<Connector>> {
        let state = self.state.lock();
        state
            .families
            .get(&(scope.clone(), name.to_owned()))?
            .end_canary()
    }

    /// The canary beside the version that serves an engine for a company.
    pub fn canary(&self, company: &str, slug: &str) -> Option<Arc<Connector>> {
        self.resolve(company, slug)?.beside.canary()
    }
}
