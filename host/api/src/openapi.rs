//! The OpenAPI document, made from the operations that are mounted and the types of their handlers. Nothing is described that does not exist.

mod bounds;
mod examples;
mod links;
mod parameters;
mod special;
mod three_zero;
mod values;
mod webhooks;

use crate::cookies;
use crate::describe::{Answered, Description};
use crate::ids;
use crate::operation::{Access, Operation};
use crate::refusals::Refusal;
use crate::refused;
use crate::routes::Routes;
use crate::schemas::Schemas;
use serde_json::{Map, Value, json};
use souk_domain::roles::Role;
use std::collections::{BTreeMap, BTreeSet};
pub use three_zero::three_zero;

const DESCRIPTION: &str = "An analytics marketplace. Sellers connect a source and publish assets (one insight per execution) and endpoints \
(rows); buyers call them with credits. Every answer carries `X-Request-Id`, the three `X-RateLimit-*` headers and the fields `RateLimit` and `RateLimit-Policy`; every refusal is \
`{\"error\": {\"code\", \"message\", \"details\"}}`. Every POST that changes something and every billed GET takes an `Idempotency-Key`. Unknown members of a body are \
ignored, but for what looks misspelt in an object within it (`filters[0].operator`), unknown query parameters are refused.";

/// Here and not as a parameter of each operation: whoever has a key does not send the header, and generated clients would have a parameter for
/// it at some 150 operations.
const SESSION: &str = "Of a user who is signed in. Whatever changes or costs something, or asks a source, needs the header `x-csrf-token` beside it: \
the `csrf_token` that signing in answered, which `GET /users/me` shows again. Without it: 403 `CSRF_TOKEN_REQUIRED`.";

/// What operations are grouped under, in the order in which a newcomer meets them.
const TAGS: &[(&str, &str)] = &[
    ("Marketplace", "What is on sale."),
    (
        "Assets",
        "One insight for each execution: a number, a text, a chart, a prediction.",
    ),
    ("Endpoints", "Pages of rows."),
    (
        "Data",
        "The data route of an endpoint, for the key that belongs to it.",
    ),
    ("Purchases", "What a company has bought."),
    ("Credits", "Balances, statements, top-ups, refunds."),
    ("Companies", "A company, its figures and its objects."),
    ("Users", "The people of a company, and who is signed in."),
    ("API keys", "Who may call, and what."),
    ("Endpoint keys", "Keys that read one endpoint."),
    ("Connections", "The databases and APIs of sellers."),
    ("Files", "Databases that a seller uploads."),
    ("Connectors", "Components that speak to sources."),
    ("Prices", "What a product costs, and from when to when."),
    ("Payouts", "A seller's money on its way out."),
    ("Favorites", "Products that somebody wants to find again."),
    ("Webhooks", "Where a company is told what happens."),
    (
        "Alerts",
        "Conditions on what an asset answers, watched by the host.",
    ),
    (
        "Posts",
        "What a company writes about its data, and where it is published.",
    ),
    (
        "Integrations",
        "Blogs, chats and receivers where posts are published besides.",
    ),
    ("Audit log", "Who changed what."),
    ("Reference data", "Lists to choose from."),
    (
        "System",
        "Is the host alive, can it serve, what does it offer.",
    ),
];

/// The whole document, OpenAPI 3.1.
pub fn document(routes: &Routes) -> Value {
    let mut schemas = Schemas::default();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let refused = Refused::of(routes);
    for (operation, description) in routes.described() {
        for (path, id) in operation.paths() {
            let described = describe((operation, description), path, id, &refused, &mut schemas);
            paths
                .entry(path)
                .or_default()
                .insert(operation.verb.name().to_ascii_lowercase(), described);
        }
    }
    repeat_ids(routes, &mut schemas);
    let mut schemas = with_problem(schemas);
    let (requests, answers) = bodies(&paths);
    examples::illustrate(&mut schemas);
    bounds::of_bodies(&mut schemas, &requests, &answers);
    links::connect(&mut paths, &schemas);
    for operation in paths.values_mut().flat_map(Map::values_mut) {
        let Some(body) = operation.pointer_mut("/requestBody/content/application~1json") else {
            continue;
        };
        if let Some(example) = examples::of_body(&body["schema"], &schemas) {
            body["example"] = example;
        }
    }
    let answers = paths.values_mut().flat_map(Map::values_mut);
    let answers = answers.filter_map(|operation| operation["responses"].as_object_mut());
    for answer in answers.flat_map(Map::values_mut) {
        let Some(body) = answer.pointer_mut("/content/application~1json") else {
            continue;
        };
        if let Some(example) = examples::of_body(&body["schema"], &schemas) {
            body["example"] = example;
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "souk", "version": "1.0", "description": DESCRIPTION, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "contact": {"name": "The operator of this host"},
        },
        "servers": [{"url": "/"}],
        "security": [{"api_key": []}, {"session": []}],
        "tags": tags(routes),
        "paths": paths,
        "webhooks": webhooks::operations(&schemas),
        "x-no-such-route": {"responses": unrouted()},
        "components": {
            "securitySchemes": {
                "api_key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "session": {
                    "type": "apiKey", "in": "cookie", "name": cookies::NAME,
                    "description": SESSION,
                },
            },
            "schemas": schemas,
            "responses": refused.components(),
            "examples": refused.examples(),
        },
    })
}

/// What operations take and what they answer.
fn bodies(paths: &BTreeMap<&str, Map<String, Value>>) -> (Vec<Value>, Vec<Value>) {
    let operations = || paths.values().flat_map(Map::values);
    let part = |name: &'static str| operations().map(move |operation| operation[name].clone());
    (part("requestBody").collect(), part("responses").collect())
}

/// Those that something is grouped under.
fn tags(routes: &Routes) -> Vec<Value> {
    let used: BTreeSet<&str> = routes.operations().map(|operation| operation.tag).collect();
    let tags = TAGS.iter().filter(|(name, _)| used.contains(name));
    tags.map(|(name, about)| json!({"name": name, "description": about}))
        .collect()
}

/// Bodies may say again what their path says: [`crate::body`] holds them against each other, but for those of runs.
fn repeat_ids(routes: &Routes, schemas: &mut Schemas) {
    let bodies = |repeats: bool| {
        let described = routes.described();
        described.filter_map(move |(operation, description)| {
            let body = description.body.as_ref()?;
            let shape = (body.shape)(&mut Schemas::default());
            let name = shape.get("$ref")?.as_str()?.rsplit('/').next()?.to_owned();
            (description.repeats_path == repeats).then_some((operation.path, name))
        })
    };
    let left: BTreeSet<String> = bodies(false).map(|(_, name)| name).collect();
    for (path, name) in bodies(true).filter(|(_, name)| !left.contains(name)) {
        let schema = schemas.0.get_mut(&name);
        let members = schema.and_then(|schema| schema.get_mut("properties")?.as_object_mut());
        let Some(members) = members else {
            continue;
        };
        for id in ["company_id", "user_id"] {
            if path.contains(&format!("{{{id}}}")) {
                let about = "Must equal the path's when given.";
                let rules = json!({"type": ["string", "null"], "description": about});
                members.entry(id).or_insert(rules);
            }
        }
    }
}

fn with_problem(mut schemas: Schemas) -> BTreeMap<String, Value> {
    let text = |about: &str, example: &str| json!({"type": "string", "description": about, "examples": [example]});
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let field_error = json!({
        "type": "object",
        "required": ["field", "code", "message"],
        "properties": {
            "field": text("As the request has it.", "parameters[0].type"),
            "code": text("Stable, lower_snake.", "required"),
            "message": text("For people.", "is required"),
        },
    });
    let details = json!({
        "type": "object",
        "required": ["request_id"],
        "additionalProperties": true,
        "description": "What the code calls for: `limit`, `retry_after`, `required_role`, …",
        "properties": {
            "request_id": {"type": "string", "examples": [ids::example("req")]},
            "errors": {
                "type": "array",
                "description": "All that is wrong with the fields of a request.",
                "items": reference("FieldError"),
            },
        },
    });
    let error = json!({
        "type": "object",
        "required": ["code", "message", "details"],
        "properties": {
            "code": text("Stable, UPPER_SNAKE.", "SOURCE_ERROR"),
            "message": text("For people: what to do next, and whose fault it was.", "the source does not answer"),
            "details": reference("ProblemDetails"),
        },
    });
    let problem = json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": reference("ProblemError")},
    });
    let count = |least: i64| json!({"type": "integer", "minimum": least});
    let meta = json!({
        "type": "object",
        "required": ["total", "page", "per_page"],
        "properties": {"total": count(0), "page": count(1), "per_page": count(1)},
    });
    let slice = json!({
        "type": "object",
        "required": ["total", "limit", "offset"],
        "properties": {"total": count(0), "limit": count(1), "offset": count(0)},
    });
    schemas.0.extend(webhooks::schemas());
    schemas.0.insert("SliceMeta".to_owned(), slice);
    schemas.0.insert("FieldError".to_owned(), field_error);
    schemas.0.insert("Problem".to_owned(), problem);
    schemas.0.insert("ProblemDetails".to_owned(), details);
    schemas.0.insert("ProblemError".to_owned(), error);
    schemas.0.insert("Meta".to_owned(), meta);
    schemas.0
}

/// Refusals by status: operations that refuse alike share a component.
struct Refused(BTreeSet<Vec<Refusal>>);

impl Refused {
    fn of(routes: &Routes) -> Refused {
        let sets = routes.described();
        let sets = sets.map(|(operation, description)| refused::of(operation, description));
        Refused(sets.flat_map(by_status).collect())
    }

    /// `API_KEY_DEACTIVATED`, or `Refused403_2` for several codes.
    fn name(&self, set: &[Refusal]) -> String {
        if let [one] = set
            && self
                .0
                .iter()
                .filter(|other| matches!(other.as_slice(), [other] if other.code == one.code))
                .count()
                == 1
        {
            return one.code.to_owned();
        }
        let status = set[0].status;
        let alike = self.0.iter().filter(|other| other[0].status == status);
        let place = alike.take_while(|other| other.as_slice() != set).count();
        format!("Refused{status}_{}", place + 1)
    }

    /// The responses that refuse with one of these, by status.
    fn references(&self, all: Vec<Refusal>) -> Map<String, Value> {
        let reference = |set: Vec<Refusal>| {
            let reference = format!("#/components/responses/{}", self.name(&set));
            (set[0].status.to_string(), json!({"$ref": reference}))
        };
        by_status(all).into_iter().map(reference).collect()
    }

    /// An example of every code.
    fn examples(&self) -> Map<String, Value> {
        self.0.iter().flatten().map(example).collect()
    }

    fn components(&self) -> Map<String, Value> {
        let mut all = Map::new();
        for set in &self.0 {
            let example = |refusal: &Refusal| {
                let reference = format!("#/components/examples/{}", refusal.code);
                (refusal.code.to_owned(), json!({"$ref": reference}))
            };
            let examples = set.iter().map(example).collect();
            all.insert(self.name(set), response(set, examples));
        }
        all
    }
}

/// What no operation is asked for: nothing refers to it, so it is said in full.
fn unrouted() -> Map<String, Value> {
    let said = |set: Vec<Refusal>| {
        let examples = set.iter().map(example).collect();
        (set[0].status.to_string(), response(&set, examples))
    };
    by_status(refused::of_unrouted())
        .into_iter()
        .map(said)
        .collect()
}

/// A refusal with one of these. It is one type for whoever generates a client: which codes there are is told beside it.
fn response(set: &[Refusal], examples: Map<String, Value>) -> Value {
    let codes: Vec<&str> = set.iter().map(|refusal| refusal.code).collect();
    let quoted: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
    json!({
        "description": quoted.join(", "),
        "x-codes": codes,
        "headers": headers_of(set[0].status),
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": examples}},
    })
}

fn by_status(all: Vec<Refusal>) -> Vec<Vec<Refusal>> {
    let sets = all.chunk_by(|one, other| one.status == other.status);
    sets.map(<[Refusal]>::to_vec).collect()
}

fn example(refusal: &Refusal) -> (String, Value) {
    let details = json!({"request_id": ids::example("req")});
    let error = json!({"code": refusal.code, "message": refusal.message, "details": details});
    (refusal.code.to_owned(), json!({"value": {"error": error}}))
}

fn describe(
    (operation, description): (&Operation, &Description),
    path: &str,
    id: &str,
    refused: &Refused,
    schemas: &mut Schemas,
) -> Value {
    let mut responses = Map::new();
    for answered in &description.answers {
        let response = responses.entry(answered.status.to_string()).or_insert_with(
            || json!({"description": success(answered), "headers": headers_of(answered.status)}),
        );
        if let Some((kind, shape)) = answered.content {
            response["content"][kind] = json!({"schema": shape(schemas)});
        }
    }
    let can_be_known = responses.contains_key("304");
    for status in ["200", "304"] {
        if let Some(page) = responses.get_mut(status).filter(|_| can_be_known) {
            page["headers"]["ETag"] =
                json!({"description": "For `If-None-Match`.", "schema": {"type": "string"}});
            page["headers"]["Link"] = json!({"description": "The next page, as `rel=\"next\"`.", "schema": {"type": "string"}});
        }
    }
    responses.extend(refused.references(refused::of(operation, description)));
    let mut described = json!({
        "operationId": id,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": parameters::of(operation, description, path),
        "responses": responses,
    });
    let Some(members) = described.as_object_mut() else {
        return described;
    };
    members.insert("description".to_owned(), about(operation).into());
    match operation.access {
        Access::Public => {
            members.insert("security".to_owned(), json!([]));
        }
        Access::Key { role, permission } => {
            members.insert("x-required-role".to_owned(), role.level().into());
            members.insert(
                "x-required-permission".to_owned(),
                permission.as_str().into(),
            );
        }
        Access::Data => {
            members.insert("security".to_owned(), json!([{"api_key": []}]));
            members.insert("x-required-permission".to_owned(), "read".into());
        }
    }
    if let Some(hourly) = operation.hourly {
        members.insert("x-requests-per-hour".to_owned(), hourly.into());
    }
    if let Some(hourly) = operation.hourly_each {
        members.insert("x-requests-per-hour-each".to_owned(), hourly.into());
    }
    if operation.billed {
        members.insert("x-billed".to_owned(), true.into());
    }
    if let Some(body) = &description.body {
        let content = json!({body.content_type: {"schema": (body.shape)(schemas)}});
        members.insert(
            "requestBody".to_owned(),
            json!({"required": body.required, "content": content}),
        );
    }
    described
}

/// What a reader of the specification would ask, and who may call it how often.
fn about(operation: &Operation) -> String {
    let mut sentences = Vec::new();
    if !operation.notes.is_empty() {
        sentences.push(operation.notes.to_owned());
    }
    sentences.push(match operation.access {
        Access::Public => "Needs no key.".to_owned(),
        Access::Data => {
            "Needs the endpoint's own key, or an analytics key that may read.".to_owned()
        }
        Access::Key { role, permission } => {
            let permission = permission.as_str();
            match role {
                Role::Analyst => {
                    format!("Any role may call it, with the permission `{permission}`.")
                }
                role => format!(
                    "Needs role {} ({}) or higher, and the permission `{permission}`.",
                    role.level(),
                    role.title()
                ),
            }
        }
    });
    if let Some(hourly) = operation.hourly {
        let each = match operation.access {
            Access::Public => "address",
            _ => "key",
        };
        sentences.push(format!("At most {hourly} calls an hour for each {each}."));
    }
    sentences.join(" ")
}

fn success(answered: &Answered) -> &'static str {
    match answered.content {
        Some(_) => "Success.",
        None if answered.status == 304 => "The caller has it already. Costs nothing.",
        None => "Done.",
    }
}

fn headers() -> Value {
    json!({
        "X-Request-Id": {"schema": {"type": "string"}},
        "X-RateLimit-Limit": {"schema": {"type": "integer"}},
        "X-RateLimit-Remaining": {"schema": {"type": "integer"}},
        "X-RateLimit-Reset": {"description": "Epoch seconds.", "schema": {"type": "integer"}},
        "RateLimit": {"description": "What is left of the limit that binds, and for how many seconds.", "schema": {"type": "string", "examples": ["\"list_keys\";r=99;t=3540"]}},
        "RateLimit-Policy": {"description": "That limit, and its window in seconds.", "schema": {"type": "string", "examples": ["\"list_keys\";q=100;w=3600"]}},
    })
}

/// What answers of that status say in headers besides.
fn headers_of(status: u16) -> Value {
    let mut all = headers();
    match status {
        201 => {
            all["Location"] = json!({"description": "The path of what was made, where it has one.", "schema": {"type": "string"}})
        }
        401 => {
            all["WWW-Authenticate"] =
                json!({"description": "How to show who one is.", "schema": {"type": "string"}})
        }
        405 => {
            all["Allow"] = json!({"description": "The methods that the path has.", "schema": {"type": "string"}})
        }
        429 | 503 => {
            all["Retry-After"] =
                json!({"description": "Seconds, where it is known.", "schema": {"type": "integer"}})
        }
        _ => {}
    }
    all
}
