//! From bytes to a staged connector: inspect, compile, link, ask it to describe itself, and check
//! what it says.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};
use wasmtime::{
    Engine,
    component::{Component, InstancePre},
};

use crate::{
    cache::Cache,
    compile,
    connector::{LoadError, Need, Scope},
    facts::Fact,
    inspect::{Inspection, Outside},
    loaded::{Connector, Parts},
    options::Options,
    shared::Shared,
    source::platform,
    v1::{self, Budget, Descriptor, GuestEngine, GuestNeed, MemoryGrant, World},
};

/// `describe` is a constant in all but name.
const DESCRIBE_BUDGET: Duration = Duration::from_millis(500);
const DESCRIBE_LIFT_BYTES: usize = 1 << 20;
const ENGINES_MAX: usize = 32;
const ABILITIES_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 64;
const TITLE_BYTES_MAX: usize = 256;

/// A component that has been compiled and linked, and has not been asked who it is.
pub(crate) struct Prepared {
    wire: InstancePre<v1::WireState>,
    component: Component,
    exports: v1::Exports,
    inspection: Inspection,
    pub digest: String,
    /// 0, if it was compiled here before.
    pub compile_ms: u64,
}

/// Blocks: compiling takes a second or so when the cache is cold.
pub(crate) fn prepare(
    engine: &Engine,
    cache: &Cache,
    options: &Options,
    wasm: &[u8],
    digest: &str,
    scope: &Scope,
) -> Result<Prepared, LoadError> {
    is_within(wasm.len() as u64, options)?;
    match prepare_kept(engine, cache, options, digest) {
        Err(LoadError::NotKept) => {}
        kept => return kept,
    }
    let outside = Outside::of(wasm)?;
    let inspection = outside.inspect()?;
    let begun = Instant::now();
    let (compiler, limits) = (&options.compiler, &options.limits);
    let code = compile::compile(wasm, cache, compiler, limits, scope)?;
    let compile_ms = begun.elapsed().as_millis().max(1) as u64;
    let kept = match cache.put(digest, &code, &outside) {
        Ok(()) => cache.get(digest),
        Err(error) => {
            tracing::warn!(%error, "cannot keep compiled code: the connector will be compiled again next time");
            None
        }
    };
    let kept = kept.and_then(|kept| cache.component(engine, digest, &kept));
    let component = match kept {
        Some(component) => component,
        // SAFETY: the bytes come from our own compiler.
        #[allow(unsafe_code)]
        None => unsafe { Component::deserialize(engine, &code) },
    };
    linked(engine, component, inspection, digest, compile_ms)
}

/// The same for a component that was compiled here before, without its bytes; else [`LoadError::NotKept`]. Blocks: all of its code is read.
pub(crate) fn prepare_kept(
    engine: &Engine,
    cache: &Cache,
    options: &Options,
    digest: &str,
) -> Result<Prepared, LoadError> {
    let kept = cache.get(digest).ok_or(LoadError::NotKept)?;
    is_within(kept.outside.size_bytes, options)?;
    let inspection = kept.outside.inspect()?;
    let component = cache.component(engine, digest, &kept);
    let component = component.ok_or(LoadError::NotKept)?;
    linked(engine, component, inspection, digest, 0)
}

fn is_within(bytes: u64, options: &Options) -> Result<(), LoadError> {
    let max = options.limits.component_bytes_max;
    if bytes > max as u64 {
        return Err(LoadError::Invalid(format!(
            "the component is larger than {} MiB",
            max >> 20
        )));
    }
    Ok(())
}

fn linked(
    engine: &Engine,
    component: wasmtime::Result<Component>,
    inspection: Inspection,
    digest: &str,
    compile_ms: u64,
) -> Result<Prepared, LoadError> {
    // What was compiled a moment ago, or authenticated, fails for want of room for what it declares.
    let component = component.map_err(|error| {
        LoadError::Invalid(format!(
            "the component needs more than this host gives one: {error:#}"
        ))
    })?;
    let found = v1::Exports::find(&component, inspection.world, &inspection.interface);
    let exports = found.ok_or_else(|| {
        LoadError::Invalid(format!(
            "{} lacks functions of the contract",
            inspection.interface
        ))
    })?;
    Ok(Prepared {
        wire: v1::link_wire(engine, &component).map_err(unlinked)?,
        component,
        exports,
        inspection,
        digest: digest.to_owned(),
        compile_ms,
    })
}

/// Asks the component who it is. Runs the guest, in a lane.
pub(crate) async fn finish(
    shared: &Shared,
    prepared: Prepared,
    scope: Scope,
) -> Result<Arc<Connector>, LoadError> {
    let mut descriptor = describe(shared, &scope, &prepared.wire, &prepared.exports).await?;
    if prepared.inspection.world == World::Publisher {
        as_publisher(&mut descriptor)?;
    }
    let need = match descriptor.need {
        GuestNeed::Tcp => Need::Tcp,
        GuestNeed::Http => Need::Http,
        GuestNeed::Directory => Need::Directory,
    };
    let directory = match need {
        Need::Directory => {
            Some(v1::link_directory(&shared.engine, &prepared.component).map_err(unlinked)?)
        }
        _ => None,
    };
    let mut warnings = prepared.inspection.warnings;
    warnings.extend(
        descriptor
            .abilities
            .iter()
            .filter_map(|ability| unknown_ability(ability)),
    );
    if prepared.inspection.world == World::Connector {
        warnings.extend(descriptor.engines.iter().filter_map(unknown_dialect));
    }
    Ok(Connector::new(Parts {
        warnings,
        name: descriptor.name,
        version: descriptor.version,
        digest: prepared.digest,
        scope,
        engines: descriptor.engines,
        need,
        abilities: descriptor.abilities,
        settings_schema: descriptor.settings_schema,
        wit_version: prepared.inspection.wit_version,
        imports: prepared.inspection.imports,
        exported: prepared.inspection.exports,
        size_bytes: prepared.inspection.size_bytes,
        compile_ms: prepared.compile_ms,
        wire: prepared.wire,
        directory,
        exports: prepared.exports,
    }))
}

/// A publisher speaks HTTP, and its platforms are no engines: connections cannot name them.
fn as_publisher(descriptor: &mut Descriptor) -> Result<(), LoadError> {
    if descriptor.need != GuestNeed::Http {
        let reason = "a publisher needs http: there is no other way to a platform";
        return Err(LoadError::Invalid(reason.to_owned()));
    }
    for engine in &mut descriptor.engines {
        engine.slug = platform(&engine.slug);
    }
    Ok(())
}

fn unlinked(error: wasmtime::Error) -> LoadError {
    LoadError::Invalid(format!("this component cannot be linked: {error:#}"))
}

/// Runs `describe` in a fresh instance and checks the answer. Also the health check of a version
/// that is about to be activated.
pub(crate) async fn describe(
    shared: &Shared,
    scope: &Scope,
    wire: &InstancePre<v1::WireState>,
    exports: &v1::Exports,
) -> Result<Descriptor, LoadError> {
    let budget = probe_budget(shared, scope);
    let (wire, exports) = (wire.clone(), exports.clone());
    let described = shared
        .outer_lanes
        .call(&shared.tenant_of(scope), false, async move {
            v1::describe(&wire, &exports, &budget).await
        });
    let descriptor = described.await.ok_or_else(stopping)?.map_err(|fault| {
        let detail = fault.detail.unwrap_or_default();
        LoadError::Invalid(format!(
            "the connector cannot describe itself: {} ({detail})",
            fault.message
        ))
    })?;
    check(&descriptor)?;
    Ok(descriptor)
}

/// What a component may use that is asked who it is, or only instantiated. What a wire session may have it has whatever its company uses: else nobody
/// could go back from a version that uses all of that, nor would a host follow what another one has put to work. Few are asked at once. What it takes
/// beyond is its company's.
pub(crate) fn probe_budget(shared: &Shared, scope: &Scope) -> Budget {
    let limits = &shared.options.limits;
    Budget {
        memory: MemoryGrant {
            bytes_max: limits.wire_memory_bytes.max(limits.directory_memory_bytes),
            // It is asked in the lanes.
            on_worker_max: usize::MAX,
            uncounted: limits.wire_memory_bytes,
            account: match scope {
                Scope::Platform => None,
                Scope::Company(_) => Some(shared.memory_account(&shared.tenant_of(scope))),
            },
        },
        is_suspended: false,
        call: DESCRIBE_BUDGET,
        call_per_mib: Duration::ZERO,
        inline_bytes: DESCRIBE_LIFT_BYTES,
        call_bytes: DESCRIBE_LIFT_BYTES,
        columns_max: limits.columns_max,
        ticker: shared.ticker.clone(),
    }
}

pub(crate) fn stopping() -> LoadError {
    LoadError::Internal("this host is shutting down".to_owned())
}

pub(crate) fn digest(wasm: &[u8]) -> String {
    hex::encode(Sha256::digest(wasm))
}

/// Whether it is one that [`digest`] may have made: files are named by it.
pub(crate) fn is_digest(text: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 2 * <Sha256 as Digest>::output_size() && text.bytes().all(is_hex)
}

fn check(descriptor: &Descriptor) -> Result<(), LoadError> {
    let invalid = |reason: String| Err(LoadError::Invalid(reason));
    if !is_name(&descriptor.name) {
        return invalid(format!(
            "the connector's name {:?} must match [a-z][a-z0-9-]* and have at most {NAME_BYTES_MAX} letters",
            beginning(&descriptor.name)
        ));
    }
    if !is_version(&descriptor.version) {
        return invalid(format!(
            "the connector's version {:?} is no semantic version such as 1.2.3",
            beginning(&descriptor.version)
        ));
    }
    if descriptor.engines.is_empty() || descriptor.engines.len() > ENGINES_MAX {
        return invalid(format!(
            "the connector names {} engines: 1 to {ENGINES_MAX} are allowed",
            descriptor.engines.len()
        ));
    }
    for (position, engine) in descriptor.engines.iter().enumerate() {
        if !is_name(&engine.slug) {
            return invalid(format!(
                "the engine's slug {:?} must match [a-z][a-z0-9-]*",
                beginning(&engine.slug)
            ));
        }
        if descriptor.engines[..position]
            .iter()
            .any(|other| other.slug == engine.slug)
        {
            return invalid(format!(
                "the connector names the engine {:?} twice",
                engine.slug
            ));
        }
        if engine.title.len() > TITLE_BYTES_MAX || engine.dialect.len() > NAME_BYTES_MAX {
            return invalid(format!(
                "the title or dialect of engine {:?} is too long",
                engine.slug
            ));
        }
    }
    if descriptor.abilities.len() > ABILITIES_MAX {
        return invalid(format!(
            "the connector names more than {ABILITIES_MAX} abilities"
        ));
    }
    match serde_json::from_str::<serde_json::Value>(&descriptor.settings_schema) {
        Ok(serde_json::Value::Object(_)) => Ok(()),
        _ => invalid("the connector's settings schema is no JSON object".into()),
    }
}

/// So much is told of a word that may be of any length.
fn beginning(word: &str) -> String {
    word.chars().take(NAME_BYTES_MAX).collect()
}

/// What the host asks of a connector only if it says that it can: what the contract knows, and what hosts have learned since.
pub const ABILITIES: [&str; 7] = [
    "schema",
    "pipelining",
    "groups",
    "alone",
    "cancel",
    "functions",
    "idle",
];

/// Whether it is one of those, or says something of a type.
pub fn is_ability(ability: &str) -> bool {
    ABILITIES.contains(&ability) || Fact::of(ability).is_some()
}

/// What is told about an ability that this host does not know: open words are no error, and a misspelt one would have no effect.
fn unknown_ability(ability: &str) -> Option<String> {
    if is_ability(ability) {
        return None;
    }
    let shown = beginning(ability);
    Some(format!(
        "its ability \"{shown}\" is not known here, and has no effect{}",
        meant(&shown, &ABILITIES)
    ))
}

/// What the text of a query may be. For any other word hosts write `generic` SQL.
pub const DIALECTS: [&str; 9] = [
    "postgres",
    "mysql",
    "sqlite",
    "clickhouse",
    "bigquery",
    "mssql",
    "generic",
    "opaque",
    "none",
];

/// What is told about a dialect that is none of those: it may be a later host's, or misspelt.
fn unknown_dialect(engine: &GuestEngine) -> Option<String> {
    let (slug, dialect) = (&engine.slug, &engine.dialect);
    if DIALECTS.contains(&dialect.as_str()) {
        return None;
    }
    Some(format!(
        "the dialect {dialect:?} of its engine \"{slug}\" is not known here, and generic SQL is written for it{}",
        meant(&dialect.to_lowercase(), &DIALECTS)
    ))
}

/// A question, where a word is much like one of those that are known.
fn meant(word: &str, known: &[&str]) -> String {
    let near = known.iter().find(|known| distance(known, word) <= 2);
    near.map_or_else(String::new, |near| format!(": did it mean \"{near}\"?"))
}

/// How many letters have to be put in, taken out or replaced.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, against) in other.iter().enumerate() {
            let same = diagonal + usize::from(letter != *against);
            diagonal = row[place + 1];
            row[place + 1] = same.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// `MAJOR.MINOR.PATCH`, then optionally `-pre.release` and `+build`.
fn is_version(version: &str) -> bool {
    if version.len() > NAME_BYTES_MAX {
        return false;
    }
    let (rest, build) = version
        .split_once('+')
        .map_or((version, None), |(rest, build)| (rest, Some(build)));
    let (core, pre) = rest
        .split_once('-')
        .map_or((rest, None), |(core, pre)| (core, Some(pre)));
    let number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let word = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre.is_none_or(|pre| pre.split('.').all(word))
        && build.is_none_or(|build| build.split('.').all(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A misspelt ability is told with what it may have been meant to be.
    #[test]
    fn abilities_are_known_or_told() {
        assert_eq!(unknown_ability("pipelining"), None);
        assert_eq!(unknown_ability("singles:real"), None);
        assert!(unknown_ability("singles:").is_some());
        let told = unknown_ability("pipelinig").unwrap();
        assert!(told.ends_with("did it mean \"pipelining\"?"), "{told}");
        assert!(!unknown_ability("teleport").unwrap().contains("mean"));
        assert_eq!(distance("cancel", "cansel"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    /// So is a misspelt dialect; one that is known is not told at all.
    #[test]
    fn dialects_are_known_or_told() {
        let told = |dialect: &str| {
            unknown_dialect(&GuestEngine {
                slug: "acme".to_owned(),
                title: "Acme".to_owned(),
                dialect: dialect.to_owned(),
                credential_types: Vec::new(),
            })
        };
        for known in DIALECTS {
            assert_eq!(told(known), None);
        }
        for misspelt in ["PostgreSQL", "postgre", "Postgres"] {
            let told = told(misspelt).unwrap();
            assert!(told.ends_with("did it mean \"postgres\"?"), "{told}");
        }
        let other = told("cypher").unwrap();
        assert!(
            other.contains("generic") && !other.contains("mean"),
            "{other}"
        );
    }

    #[test]
    fn names_and_versions_are_checked() {
        for good in ["postgres", "seller-api", "a1"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "1a", "-a", "A", "a_b", "../x", &"a".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
        for good in ["0.1.0", "1.2.3-rc.1+build.5", "10.20.30"] {
            assert!(is_version(good), "{good}");
        }
        for bad in [
            "", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.x", "1.2.3-", "../../x",
        ] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
