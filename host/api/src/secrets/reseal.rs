use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use serde::Serialize;
use souk_domain::roles::{Permission, Role};
use souk_store::resealing::{self, Progress};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("reseal_secrets", "/admin/secrets/reseal")
    .about("System", "Seal secrets anew after the master key was replaced")
    .notes(
        "Platform staff only. Seals up to 1,000 secrets that a former master key has sealed with the current one; ask again until `complete` is \
         true, then the former key can be forgotten. Nothing else changes, and calls go on meanwhile.",
    )
    .needs(Role::SuperAdmin, Permission::Write);

/// A second or so.
const AT_ONCE: u64 = 1_000;

#[derive(Serialize, ToSchema)]
#[schema(as = ResealedSecrets)]
pub struct ResealedOut {
    /// No secret is left that a former key could open.
    complete: bool,
    /// The first bytes of the SHA-256 of the key that seals.
    key_fingerprint: String,
    /// By this request.
    resealed: u64,
    remaining: u64,
    /// That no key opens which this host was given.
    unreadable: u64,
    kinds: Vec<KindOut>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ResealedKind)]
pub struct KindOut {
    /// What these secrets are.
    kind: &'static str,
    resealed: u64,
    remaining: u64,
    unreadable: u64,
    /// Whose they are: the first of them.
    unreadable_ids: Vec<String>,
}

impl From<Progress> for KindOut {
    fn from(progress: Progress) -> KindOut {
        KindOut {
            kind: progress.kind,
            resealed: progress.resealed,
            remaining: progress.remaining,
            unreadable: progress.unreadable,
            unreadable_ids: progress.unreadable_ids,
        }
    }
}

/// Brings secrets under the current master key.
pub async fn reseal_secrets(
    State(api): State<ApiState>,
    _: Caller,
) -> Result<Data<ResealedOut>, Problem> {
    let key_fingerprint = api.app().sealer.key_id().to_string();
    let (app, fingerprint) = (api.app().clone(), key_fingerprint.clone());
    // What has been done is noted, also where nobody waits for that. The platform's staff alone begins it, and each secret is sealed anew once.
    let work = api.to_the_end(async move {
        let within = app.clone();
        // Spawned, so that it is not this request which changes every company's connections in the audit log: no secret changes.
        let work =
            tokio::spawn(
                async move { resealing::reseal(&within.db, &within.sealer, AT_ONCE).await },
            );
        let done = work.await.map_err(Problem::internal)??;
        let noted = app
            .db
            .write(async |write| resealing::note(write, &fingerprint, &done).await);
        noted.await?;
        Ok(done)
    });
    let done = work.await?;
    let sum = |count: fn(&Progress) -> u64| done.kinds.iter().map(count).sum();
    Ok(Data(ResealedOut {
        complete: done.is_complete,
        resealed: sum(|kind| kind.resealed),
        remaining: sum(|kind| kind.remaining),
        unreadable: sum(|kind| kind.unreadable),
        key_fingerprint,
        kinds: done.kinds.into_iter().map(KindOut::from).collect(),
    }))
}
