//! A session, and a BigQuery that answers each of its requests as a test says.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

use std::ops::{Deref, DerefMut};

use serde_json::{Value as Json, json};
use souk_connector_bigquery::Session;
use souk_sdk::{Error, HttpRequest, Request, SchemaFilter, Settings};
use souk_tests::talk;
pub use souk_tests::talk::{Reply, class_and_code, query, raw};
use souk_tests::wire::{Answer, LIMITS};

/// The time of day at which everything here happens.
pub const NOW: u64 = 1_790_000_000;

/// The key file, with these members changed.
pub fn settings(more: Json) -> Settings {
    let mut settings: Json = serde_json::from_str(souk_tests::bigquery::KEY_FILE).unwrap();
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    Settings {
        engine: "bigquery".into(),
        json: settings.to_string(),
    }
}

pub fn reply(body: Json) -> Reply {
    raw(200, &[], body.to_string())
}

/// A refusal as Google's APIs tell it.
pub fn refuses(status: u16, reason: &str, text: &str) -> Reply {
    let cause = json!({"message": text, "domain": "global", "reason": reason});
    let error = json!({"code": status, "message": text, "errors": [cause]});
    raw(status, &[], json!({"error": error}).to_string())
}

/// What a dry run says.
pub fn dry(statement_type: &str) -> Reply {
    let query = json!({"statementType": statement_type});
    reply(json!({"status": {"state": "DONE"}, "statistics": {"query": query}}))
}

pub fn job() -> Json {
    json!({"projectId": "souk-test", "jobId": "job_1", "location": "EU"})
}

/// That a job has not ended.
pub fn waits() -> Reply {
    reply(json!({"jobComplete": false, "jobReference": job()}))
}

/// A page: fields as `name TYPE`, cells as BigQuery sends them.
pub fn page(fields: Json, rows: &[Json], total: usize, token: Option<&str>) -> Json {
    let row = |cells: &Json| {
        let cells = cells.as_array().unwrap().iter();
        json!({"f": cells.map(|cell| json!({"v": cell})).collect::<Vec<_>>()})
    };
    let mut page = json!({"jobComplete": true, "jobReference": job(), "schema": {"fields": fields},
        "rows": rows.iter().map(row).collect::<Vec<_>>(), "totalRows": total.to_string()});
    if let Some(token) = token {
        page["pageToken"] = token.into();
    }
    page
}

/// Members of a page in the order in which BigQuery sends them. (A [`page`] has them by their names.)
pub const ORDER: [&str; 6] = [
    "schema",
    "jobReference",
    "totalRows",
    "pageToken",
    "rows",
    "jobComplete",
];

/// A page of these members, in this order.
pub fn ordered(page: &Json, names: &[&str]) -> Reply {
    let member = |name: &&str| Some(format!("\"{name}\":{}", page.get(*name)?));
    let members: Vec<String> = names.iter().filter_map(member).collect();
    raw(200, &[], format!("{{{}}}", members.join(",")))
}

pub fn field(name: &str, kind: &str) -> Json {
    json!({"name": name, "type": kind, "mode": "NULLABLE"})
}

/// Whole numbers, all of them in one page.
pub fn numbers(count: usize) -> Reply {
    let rows: Vec<Json> = (0..count).map(|n| json!([n.to_string()])).collect();
    reply(page(json!([field("n", "INTEGER")]), &rows, count, None))
}

pub fn catalog(include_fields: bool) -> Request {
    Request::Schema(SchemaFilter {
        schemas: vec![],
        tables: vec!["a".into(), "b".into()],
        include_fields,
        limits: LIMITS,
    })
}

/// A session, and what was asked of BigQuery.
pub struct Talk(talk::Talk<Session>);

impl Deref for Talk {
    type Target = talk::Talk<Session>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Talk {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Talk {
    /// A session whose hello is answered so.
    pub fn open(more: Json, hello: Reply) -> Result<Talk, Error> {
        let mut talk = Talk(talk::Talk::begin(settings(more), NOW)?);
        talk.hears(0, hello)?;
        assert!(talk.is_ready());
        Ok(talk)
    }

    pub fn usual() -> Talk {
        Talk::open(json!({}), dry("SELECT")).unwrap()
    }

    /// What becomes of a result. Its statement is new to the session the first time only.
    pub fn rows_of(&mut self, reply: Reply) -> Answer {
        let id = self.submit(query("SELECT 1", vec![], LIMITS));
        if self.asked[0].path.contains("/jobs?") {
            self.hears(0, dry("SELECT")).unwrap();
        }
        self.hears(0, reply).unwrap();
        self.ended(id).unwrap()
    }
}

/// The body of a request.
pub fn body(request: &HttpRequest) -> Json {
    serde_json::from_slice(&request.body).unwrap()
}
