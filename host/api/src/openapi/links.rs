//! What may be done with a thing that has just been made: every operation below its path, with its id out of the answer. What has no path of
//! its own is found in the list that it joined, and at the things that it names.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

type Paths<'a> = BTreeMap<&'a str, Map<String, Value>>;

/// Adds links to the answers of operations that make something, where `data` has an `id`.
pub fn connect(paths: &mut Paths<'_>, schemas: &BTreeMap<String, Value>) {
    let mut all = Vec::new();
    for (path, item) in paths.iter() {
        let Some(post) = item.get("post") else {
            continue;
        };
        for status in ["201", "202"] {
            let made = data(&post["responses"][status], schemas);
            if made.contains(&"id") {
                let links = match status {
                    "201" => below(path, paths),
                    _ => beside(path, &made, paths),
                };
                all.push((*path, status, links));
            }
        }
    }
    for (path, status, links) in all {
        let made = paths.get_mut(path).and_then(|item| item.get_mut("post"));
        if let Some(made) = made.filter(|_| !links.is_empty()) {
            made["responses"][status]["links"] = links.into();
        }
    }
}

/// The members of the thing that an answer is an envelope around.
fn data<'a>(answer: &Value, schemas: &'a BTreeMap<String, Value>) -> Vec<&'a str> {
    let named = |schema: &Value| {
        let name = schema["$ref"].as_str()?.rsplit('/').next()?;
        schemas.get(name)
    };
    let envelope = named(&answer["content"]["application/json"]["schema"]);
    let data = envelope.and_then(|envelope| named(&envelope["properties"]["data"]));
    let Some(data) = data else {
        return Vec::new();
    };
    let parts = data["allOf"].as_array().into_iter().flatten();
    let parts = parts.filter_map(|part| named(part).or(Some(part)));
    let all = std::iter::once(data).chain(parts);
    let all = all.filter_map(|part| part["properties"].as_object());
    all.flatten().map(|(name, _)| name.as_str()).collect()
}

/// What a path's things are below: the path, or, of what is made in a user's name and kept with the company, that without the user.
fn homes(path: &str) -> impl Iterator<Item = String> {
    let short = path.replace("/users/{user_id}/", "/");
    let is_other = short != path;
    std::iter::once(path.to_owned()).chain(is_other.then_some(short))
}

fn below(path: &str, paths: &Paths<'_>) -> Map<String, Value> {
    let mut links = Map::new();
    for home in homes(path) {
        for (below, item) in paths {
            let Some(rest) = below
                .strip_prefix(home.as_str())
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
            let mut parameters = of_path(&home);
            parameters.insert(own.to_owned(), "$response.body#/data/id".into());
            for operation in item.values() {
                add(&mut links, operation, &parameters);
            }
        }
    }
    links
}

/// The list at the same path, and what has a path of its own among the things that it names: `integration_id`.
fn beside(path: &str, made: &[&str], paths: &Paths<'_>) -> Map<String, Value> {
    let mut links = Map::new();
    let shown = |path: &str| paths.get(path)?.get("get");
    let Some(list) = shown(path) else {
        return links;
    };
    add(&mut links, list, &of_path(path));
    for member in made {
        let end = format!("/{{{member}}}");
        let places = paths.keys().filter(|place| place.ends_with(&end));
        for place in places {
            let mut parameters = of_path(place.trim_end_matches(&end));
            let is_known = parameters.keys().all(|name| path.contains(name.as_str()));
            parameters.insert(
                (*member).to_owned(),
                format!("$response.body#/data/{member}").into(),
            );
            if let Some(operation) = shown(place).filter(|_| is_known) {
                add(&mut links, operation, &parameters);
            }
        }
    }
    links
}

/// The parameters of a path, as they were in the request.
fn of_path(path: &str) -> Map<String, Value> {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names
        .map(|name| (name.to_owned(), format!("$request.path.{name}").into()))
        .collect()
}

fn add(links: &mut Map<String, Value>, operation: &Value, parameters: &Map<String, Value>) {
    // What anybody may see is published, and not what has just been made.
    let is_public = operation["security"] == json!([]);
    if let Some(id) = operation["operationId"].as_str().filter(|_| !is_public) {
        links.insert(
            id.to_owned(),
            json!({"operationId": id, "parameters": parameters}),
        );
    }
}
