//! What may be done with a thing that has just been made: every operation below its path, with its id out of the answer. What was made by doing
//! something with another thing has its place elsewhere; what has no path of its own is found in the list that it joined, and at the things that
//! it names.

use crate::ids;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

type Paths<'a> = BTreeMap<&'a str, Map<String, Value>>;

/// What a thing that has just been made does not have yet (a price), or never has (a refund of what is no charge).
const NOT_YET: &[&str] = &["/prices/active", "/refund"];

/// Adds links to the answers of operations that make something, or begin something.
pub fn connect(paths: &mut Paths<'_>, schemas: &BTreeMap<String, Value>) {
    let mut all = Vec::new();
    for (path, item) in paths.iter() {
        for verb in ["post", "put"] {
            for status in ["201", "202"] {
                let answer = item.get(verb).and_then(|one| one["responses"].get(status));
                let Some(made) = answer.and_then(|answer| Made::of(answer, schemas)) else {
                    continue;
                };
                let links = match (verb, status) {
                    ("put", _) => here(path, paths),
                    (_, "201") => below(path, &made, paths),
                    _ => beside(path, &made, paths),
                };
                let links = match links.is_empty() {
                    true => elsewhere(path, &made, paths),
                    false => links,
                };
                all.push((*path, verb, status, links));
            }
        }
    }
    for (path, verb, status, links) in all {
        let made = paths.get_mut(path).and_then(|item| item.get_mut(verb));
        if let Some(made) = made.filter(|_| !links.is_empty()) {
            made["responses"][status]["links"] = links.into();
        }
    }
}

/// The thing that an answer is an envelope around.
struct Made<'a> {
    schema: &'a str,
    /// Its members, and the ids of those that are things themselves (`company_id` of a `company`), with where they stand.
    members: BTreeMap<String, String>,
}

impl<'a> Made<'a> {
    fn of(answer: &'a Value, schemas: &'a BTreeMap<String, Value>) -> Option<Made<'a>> {
        let named = |schema: &'a Value| {
            let name = schema["$ref"].as_str()?.rsplit('/').next()?;
            Some((name, schemas.get(name)?))
        };
        let (_, envelope) = named(&answer["content"]["application/json"]["schema"])?;
        let (schema, data) = named(&envelope["properties"]["data"])?;
        let parts = data["allOf"].as_array().into_iter().flatten();
        let parts = parts.map(|part| named(part).map_or(part, |(_, part)| part));
        let all = std::iter::once(data).chain(parts);
        let mut members = BTreeMap::new();
        for (name, rules) in all
            .filter_map(|part| part["properties"].as_object())
            .flatten()
        {
            let place = format!("$response.body#/data/{name}");
            if named(rules).is_some_and(|(_, part)| part["properties"].get("id").is_some()) {
                members.insert(format!("{name}_id"), format!("{place}/id"));
            }
            members.insert(name.clone(), place);
        }
        Some(Made { schema, members })
    }

    /// What stands for a path's parameter that names the thing itself.
    fn own(&self, parameter: &str) -> Option<Value> {
        let id = self.members.get("id");
        let place = id.or_else(|| self.members.get(parameter));
        place.cloned().map(Value::from)
    }
}

/// What a path's things are below: the path; of what is made in a user's name and kept with the company, that without the user; of what only
/// staff makes, that of everybody.
fn homes(path: &str) -> Vec<String> {
    let short = path.replace("/users/{user_id}/", "/");
    let open = path.strip_prefix("/admin").unwrap_or(path);
    let mut homes = vec![path.to_owned(), short, open.to_owned()];
    homes.dedup();
    homes
}

fn below(path: &str, made: &Made<'_>, paths: &Paths<'_>) -> Map<String, Value> {
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
            let Some(id) = made.own(own) else {
                continue;
            };
            let mut parameters = of_path(&home);
            parameters.insert(own.to_owned(), id);
            // What has further parameters takes something else, which is not known unless it has been made too.
            let further = of_path(rest);
            let known: Vec<_> = further
                .keys()
                .filter_map(|name| made.members.get_key_value(name))
                .collect();
            let is_known =
                known.len() == further.len() && (known.is_empty() || rest.ends_with('}'));
            // A company has nearly everything below it: only what was made with it.
            let is_near = home != "/companies" || rest.is_empty() || !known.is_empty();
            if !is_known || !is_near || has_not_yet(rest) {
                continue;
            }
            parameters.extend(
                known
                    .into_iter()
                    .map(|(name, place)| (name.clone(), place.as_str().into())),
            );
            for operation in item.values() {
                add(&mut links, operation, &parameters);
            }
        }
    }
    links
}

fn has_not_yet(rest: &str) -> bool {
    NOT_YET.iter().any(|end| rest.ends_with(end))
}

/// What was put at a path is what the others do there.
fn here(path: &str, paths: &Paths<'_>) -> Map<String, Value> {
    let mut links = Map::new();
    let others = paths.get(path).into_iter().flatten();
    for (_, operation) in others.filter(|(verb, _)| *verb != "put") {
        add(&mut links, operation, &of_path(path));
    }
    links
}

/// The place of what was made by doing something with another thing: a key that replaces a former one, the purchase that a key is asked of.
fn elsewhere(path: &str, made: &Made<'_>, paths: &Paths<'_>) -> Map<String, Value> {
    let mut links = Map::new();
    let Some(own) = ids::what(made.schema).map(|what| format!("{what}_id")) else {
        return links;
    };
    let Some(id) = made.own(&own) else {
        return links;
    };
    let given = of_path(path);
    let end = format!("/{{{own}}}");
    let is_home = |place: &&&str| {
        let needed = of_path(place);
        place.ends_with(&end)
            && needed
                .keys()
                .all(|name| *name == own || given.contains_key(name))
    };
    let homes: Vec<_> = paths.keys().filter(is_home).collect();
    let nearest: Vec<_> = homes
        .iter()
        .filter(|home| path.starts_with(**home))
        .collect();
    let homes: Vec<_> = match nearest.is_empty() {
        true => homes.iter().collect(),
        false => nearest,
    };
    for home in homes {
        let mut parameters = of_path(home);
        parameters.insert(own.clone(), id.clone());
        for (place, item) in paths {
            let rest = place.strip_prefix(**home);
            let is_of =
                |rest: &str| rest.is_empty() || rest.starts_with('/') && !rest.contains('{');
            if *place == path || !rest.is_some_and(|rest| is_of(rest) && !has_not_yet(rest)) {
                continue;
            }
            for operation in item.values() {
                add(&mut links, operation, &parameters);
            }
        }
    }
    links
}

/// The list at the same path, or the nearest thing or list above it with what is listed below that; and what has a path of its own among the
/// things that it names: `integration_id`.
fn beside(path: &str, made: &Made<'_>, paths: &Paths<'_>) -> Map<String, Value> {
    let mut links = Map::new();
    let shown = |path: &str| paths.get(path)?.get("get");
    let above = path.match_indices('/').map(|(end, _)| &path[..end]);
    let mut nearest = above.chain([path]).filter(|place| shown(place).is_some());
    if let Some(nearest) = nearest.next_back() {
        let is_near = |place: &str| {
            let rest = place.strip_prefix(nearest);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') && !rest.contains('{'))
        };
        for place in paths.keys().filter(|place| is_near(place)) {
            if let Some(operation) = shown(place) {
                add(&mut links, operation, &of_path(place));
            }
        }
    }
    for (member, named) in &made.members {
        let end = format!("/{{{member}}}");
        let places = paths.keys().filter(|place| place.ends_with(&end));
        for place in places {
            let mut parameters = of_path(place.trim_end_matches(&end));
            let is_known = parameters.keys().all(|name| path.contains(name.as_str()));
            parameters.insert(member.clone(), named.as_str().into());
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
