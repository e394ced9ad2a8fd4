//! Whose business a change of connectors is.

use crate::world::World;
use souk_domain::ids::ConnectionId;
use souk_sandbox::{Grant, PoolLimits, Source};
use souk_store::connectors::{self, Choice, PLATFORM};
use souk_store::db;
use std::sync::Arc;

/// What is kept of one company's connections outlives another company's change of connectors, and neither its own nor the platform's.
#[tokio::test]
async fn a_companys_connectors_are_its_own_business() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let sources = &world.state.app().sources;
    let id = ConnectionId::generate();
    let source = Arc::new(Source {
        company: acme.id.clone(),
        connection: id.to_string(),
        revision: 1,
        engine: "fixed".into(),
        settings_json: "{}".into(),
        grant: Grant::Directory("/nonexistent".into()),
        limits: PoolLimits::default(),
    });
    for (scope, stays) in [
        (other.id.as_str(), true),
        (acme.id.as_str(), false),
        (PLATFORM, false),
    ] {
        sources.keep(id.clone(), &source, sources.epoch());
        assert!(sources.get(&id).is_some());
        let chosen = Choice {
            scope: scope.to_owned(),
            name: "fixed-rows".to_owned(),
            version: "1.0.0".to_owned(),
            previous_version: None,
            activated_at: db::now(),
        };
        world
            .db
            .write(async |write| connectors::choose(write, &chosen).await)
            .await
            .unwrap();
        assert_eq!(sources.get(&id).is_some(), stays, "{scope}");
    }
}
