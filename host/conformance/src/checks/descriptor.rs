//! What the connector says of itself. That it loads at all has been proved by the time the kit gets here: name, version, engines, imports
//! and the contract's version are the sandbox's own checks.

use souk_domain::sql::Dialect;
use souk_sandbox::{ABILITIES, DIALECTS, is_ability, is_secret};

use super::{Suite, Verdict};

const CREDENTIAL_TYPES: [&str; 4] = ["PASSWORD", "SERVICE_ACCOUNT", "API_KEY", "NONE"];
/// A member that is called so is a secret, whatever else its schema says.
const SECRET_WORDS: [&str; 5] = ["password", "secret", "token", "api_key", "private_key"];

pub async fn run(suite: &mut Suite<'_>) {
    let (info, engine) = (&suite.subject.info, &suite.subject.engine);
    let (digest, version) = (info.digest.clone(), info.version.clone());
    let engine = engine.clone();
    suite.note("descriptor.loads", || {
        Verdict::noted(format!("version {version}, digest {digest}"))
    });
    suite.note("descriptor.abilities", || {
        let unknown = engine
            .abilities
            .iter()
            .filter(|ability| !is_ability(ability));
        let unknown: Vec<String> = unknown.cloned().collect();
        match unknown.is_empty() {
            true => Verdict::passed(),
            false => Verdict::warned(
                format!("no host knows the abilities {}", unknown.join(", ")),
                format!(
                    "a misspelt ability counts as absent: {}",
                    ABILITIES.join(", ")
                ),
            ),
        }
    });
    suite.note("descriptor.dialect", || {
        match DIALECTS.contains(&engine.dialect.as_str()) {
            true => Verdict::passed(),
            false => Verdict::warned(
                format!(
                    "the dialect {:?} is not one of the contract's: a host writes generic SQL for it ({:?})",
                    engine.dialect,
                    Dialect::of(&engine.dialect)
                ),
                "name one of the dialects in wit/v1/connector.wit",
            ),
        }
    });
    suite.note("descriptor.credential_types", || {
        let unknown = engine
            .credential_types
            .iter()
            .find(|kind| !CREDENTIAL_TYPES.contains(&kind.as_str()));
        match (unknown, engine.credential_types.is_empty()) {
            (Some(unknown), _) => Verdict::failed(
                format!("{unknown:?} is no credential type"),
                format!("use {}", CREDENTIAL_TYPES.join(", ")),
            ),
            (None, true) => Verdict::failed(
                "the engine takes no credential type, so no connection can be saved",
                "name at least NONE",
            ),
            (None, false) => Verdict::passed(),
        }
    });
    suite.note("descriptor.settings_schema", || {
        schema(&engine.settings_schema)
    });
}

/// A schema of an object whose members have types, with every secret marked.
fn schema(text: &str) -> Verdict {
    let Ok(schema) = serde_json::from_str::<serde_json::Value>(text) else {
        return Verdict::failed("the settings' schema is no JSON", "write a JSON Schema");
    };
    let Some(properties) = schema.get("properties").and_then(|found| found.as_object()) else {
        return Verdict::warned(
            "the settings' schema names no `properties`: the connector is told every setting, and no form can be made of it",
            "name each setting that the connector reads",
        );
    };
    if let Some(missing) = schema
        .get("required")
        .and_then(|required| required.as_array())
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str())
        .find(|name| !properties.contains_key(*name))
    {
        return Verdict::failed(
            format!(
                "the setting {missing:?} is required and has no schema: a host never passes it on"
            ),
            "a host tells a connector only what `properties` names: describe it there",
        );
    }
    let open = properties.iter().find(|(name, member)| {
        SECRET_WORDS.iter().any(|word| name.contains(word)) && !is_secret(member)
    });
    match open {
        Some((name, _)) => Verdict::warned(
            format!("the setting {name:?} looks like a secret and is not marked as one"),
            "write \"writeOnly\": true into its schema: what is not marked may be shown",
        ),
        None => Verdict::passed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Outcome;

    /// A word that is known has SQL of its own, or none; `generic` is what is written for all others.
    #[test]
    fn dialects_are_those_that_hosts_write() {
        for word in DIALECTS {
            let is_generic = Dialect::of(word) == Some(Dialect::Generic);
            assert_eq!(is_generic, word == "generic", "{word}");
        }
    }

    /// What a host would not pass on, and a secret that is not marked, are told.
    #[test]
    fn schemas_are_read_as_a_host_reads_them() {
        let outcome = |text: &str| schema(text).outcome;
        assert_eq!(outcome("{}"), Outcome::Warned);
        assert_eq!(outcome("{"), Outcome::Failed);
        assert_eq!(
            outcome(r#"{"required":["a"],"properties":{"b":{}}}"#),
            Outcome::Failed
        );
        assert_eq!(
            outcome(r#"{"properties":{"db_password":{"type":"string"}}}"#),
            Outcome::Warned
        );
        for marked in [r#""writeOnly":true"#, r#""format":"password""#] {
            let schema =
                format!(r#"{{"properties":{{"db_password":{{"type":"string",{marked}}}}}}}"#);
            assert_eq!(outcome(&schema), Outcome::Passed, "{marked}");
        }
    }
}
