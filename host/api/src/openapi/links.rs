//! What may be done with a thing that has just been made: every operation below its path, with its id out of the answer.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

type Paths<'a> = BTreeMap<&'a str, Map<String, Value>>;

/// Adds links to the answers of operations that make something. `names`: of which named schema a `data` has an `id`.
pub fn connect(paths: &mut Paths<'_>, schemas: &BTreeMap<String, Value>) {
    let mut all = Vec::new();
    for (path, item) in paths.iter() {
        if let Some(made) = item
            .get("post")
            .and_then(|post| post["responses"].get("201"))
            && has_id(made, schemas)
        {
            all.push((*path, links(path, paths)));
        }
    }
    for (path, links) in all {
        let made = paths.get_mut(path).and_then(|item| item.get_mut("post"));
        if let Some(made) = made.filter(|_| !links.is_empty()) {
            made["responses"]["201"]["links"] = links.into();
        }
    }
}

/// Whether the answer is an envelope around a thing with an `id`.
fn has_id(answer: &Value, schemas: &BTreeMap<String, Value>) -> bool {
    let named = |schema: &Value| {
        let name = schema["$ref"].as_str()?.rsplit('/').next()?;
        schemas.get(name)
    };
    let envelope = named(&answer["content"]["application/json"]["schema"]);
    let data = envelope.and_then(|envelope| named(&envelope["properties"]["data"]));
    data.is_some_and(|data| data["properties"].get("id").is_some())
}

fn links(path: &str, paths: &Paths<'_>) -> Map<String, Value> {
    let mut links = Map::new();
    for (below, item) in paths {
        let Some(rest) = below
            .strip_prefix(path)
            .and_then(|rest| rest.strip_prefix("/{"))
        else {
            continue;
        };
        let Some((own, rest)) = rest.split_once('}') else {
            continue;
        };
        // What has further parameters takes something else that is not known yet, and what has just been made may have no price yet.
        if rest.contains('{') || rest.ends_with("/prices/active") {
            continue;
        }
        let mut parameters = Map::new();
        for known in path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        {
            parameters.insert(known.to_owned(), format!("$request.path.{known}").into());
        }
        parameters.insert(own.to_owned(), "$response.body#/data/id".into());
        for operation in item.values() {
            // What anybody may see is published, and not what has just been made.
            let is_public = operation["security"] == json!([]);
            if let Some(id) = operation["operationId"].as_str().filter(|_| !is_public) {
                links.insert(
                    id.to_owned(),
                    json!({"operationId": id, "parameters": parameters}),
                );
            }
        }
    }
    links
}
