//! A connector for an API that lists things page by page: a statement is a path (`/items`), and its parameters become the query's `q`.
//!
//! The API answers `{"items": [{"id": 1, "name": "pear", "price": "1.50", "at": "2026-01-01T00:00:00Z"}], "next": "/items?page=2"}`.

use serde::Deserialize;
use serde_json::value::RawValue;
use souk_sdk::http::{Request, led_to};
use souk_sdk::{
    Cell, ColumnType, Connector, Descriptor, Error, Io, Limits, Need, Pager, Query, Rows, Settings,
    Value, column, time,
};

/// What a connection is configured with. A host passes on what the schema below names, and nothing else.
#[derive(Deserialize)]
struct Access {
    api_key: String,
}

/// A secret has `"writeOnly": true`.
const SETTINGS: &str = r#"{
  "type": "object",
  "required": ["api_key"],
  "properties": {
    "api_key": {"type": "string", "minLength": 1, "writeOnly": true, "title": "API key"}
  }
}"#;

pub struct MyConnector {
    access: Access,
    io: Io,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    items: Vec<Item<'a>>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Item<'a> {
    id: i64,
    name: String,
    /// As the API wrote it: no float stands in between.
    #[serde(borrow)]
    price: &'a RawValue,
    at: Option<String>,
}

impl Connector for MyConnector {
    fn describe() -> Descriptor {
        Descriptor::new("my-connector", env!("CARGO_PKG_VERSION"), Need::Http)
            .engine("my-connector", "MyConnector", "opaque", &["API_KEY"])
            .settings_schema(SETTINGS)
            .abilities(&["pipelining", "cancel"])
    }

    async fn open(settings: Settings, io: Io) -> Result<Self, Error> {
        Ok(MyConnector {
            access: settings.parse()?,
            io,
        })
    }

    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        if !query.text.starts_with('/') {
            return Err(Error::invalid_request("no_path", "a statement is a path, as in /items"));
        }
        let mut first = self.request(query.text);
        for (at, parameter) in query.parameters.iter().enumerate() {
            match parameter {
                Value::Text(text) => first = first.query("q", text),
                // The caller has left it out.
                Value::Null(_) => {}
                _ => return Err(Error::invalid_request("no_text", "must be a text").parameter(at)),
            }
        }
        rows.columns([
            column("id", ColumnType::Int64, "integer"),
            column("name", ColumnType::Text, "string"),
            column("price", ColumnType::Decimal, "decimal"),
            column("at", ColumnType::Timestamp, "date-time"),
        ])?;
        let mut pages = Pager::new(self.io.http(), first, |response| {
            let page: Page<'_> = response.json()?;
            let next = page.next.as_deref().map(led_to).transpose()?;
            Ok(next.map(|next| self.request(next)))
        });
        while let Some(response) = pages.next().await? {
            let page: Page<'_> = response.json()?;
            for item in &page.items {
                rows.push([
                    item.id.into(),
                    (&item.name).into(),
                    Cell::number(item.price)?,
                    moment(item.at.as_deref())?,
                ])?;
            }
        }
        Ok(())
    }

    /// Asks for something that needs the key.
    async fn ping(&self, _limits: Limits, rows: &mut Rows) -> Result<(), Error> {
        self.io.http().send(self.request("/items")).await?.classified()?;
        rows.alive()
    }
}

impl MyConnector {
    fn request(&self, path: impl Into<String>) -> Request {
        Request::get(path).header("authorization", format!("Bearer {}", self.access.api_key))
    }
}

fn moment(text: Option<&str>) -> Result<Cell<'static>, Error> {
    let Some(text) = text else {
        return Ok(Cell::Null);
    };
    let micros = time::parse_rfc3339(text).ok_or_else(|| {
        Error::source_failed("no_moment", "the source sent something else than a time").detail(text)
    })?;
    Ok(Cell::Timestamp(micros))
}

souk_sdk::export!(MyConnector);
