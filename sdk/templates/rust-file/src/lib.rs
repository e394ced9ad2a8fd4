//! A connector for CSV files: a statement names columns (`name, city`, or `*`), and its parameters are pairs of a column and the value that a
//! row must have there.

use serde::Deserialize;
use souk_sdk::{
    Cell, ColumnType, Connector, Descriptor, Error, FileName, Io, Limits, Need, Query, Rows, Settings, Value,
    column,
};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The one directory that the host grants, read-only.
const DIRECTORY: &str = "/data";

/// A host passes on what the schema below names, and nothing else: `database` is the name of the connection's file.
#[derive(Deserialize)]
struct Given {
    database: String,
    /// For tests on the machine itself.
    #[cfg(not(target_arch = "wasm32"))]
    directory: Option<PathBuf>,
}

const SETTINGS: &str = r#"{
  "type": "object",
  "required": ["database"],
  "properties": {
    "database": {"type": "string", "minLength": 1, "maxLength": 255, "title": "File", "description": "The name of a CSV file with a header."}
  }
}"#;

pub struct MyConnector {
    path: PathBuf,
}

impl Connector for MyConnector {
    fn describe() -> Descriptor {
        Descriptor::new("my-connector", env!("CARGO_PKG_VERSION"), Need::Directory)
            .engine("my-connector", "MyConnector", "opaque", &["NONE"])
            .settings_schema(SETTINGS)
    }

    async fn open(settings: Settings, _io: Io) -> Result<Self, Error> {
        let given: Given = settings.parse()?;
        let name = FileName::parse(given.database)?;
        let directory = Path::new(DIRECTORY);
        #[cfg(not(target_arch = "wasm32"))]
        let directory = given.directory.as_deref().unwrap_or(directory);
        let session = MyConnector {
            path: directory.join(name.as_str()),
        };
        session.read()?;
        Ok(session)
    }

    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        let mut reader = self.read()?;
        let headers = reader.headers().map_err(damaged)?.clone();
        let find = |name: &str| {
            let found = headers.iter().position(|header| header == name);
            found.ok_or_else(|| Error::not_found("no_column", "the file has no such column").detail(name))
        };
        let chosen: Vec<usize> = match query.text.trim() {
            "*" => (0..headers.len()).collect(),
            names => names.split(',').map(|name| find(name.trim())).collect::<Result<_, _>>()?,
        };
        let mut filters = Vec::new();
        for pair in query.parameters.chunks(2) {
            let [Value::Text(name), Value::Text(value)] = pair else {
                return Err(Error::invalid_request("bad_pairs", "bind pairs of texts: a column and its value"));
            };
            filters.push((find(name)?, value));
        }
        let columns: Vec<_> = chosen
            .iter()
            .map(|at| column(&headers[*at], ColumnType::Text, "text"))
            .collect();
        rows.columns(columns)?;
        for record in reader.records() {
            let record = record.map_err(damaged)?;
            if filters.iter().any(|(at, value)| record[*at] != **value) {
                continue;
            }
            rows.push(chosen.iter().map(|at| match &record[*at] {
                "" => Cell::Null,
                text => Cell::Text(text),
            }))?;
        }
        Ok(())
    }

    async fn ping(&self, _limits: Limits, rows: &mut Rows) -> Result<(), Error> {
        self.read()?.headers().map_err(damaged)?;
        rows.alive()
    }
}

impl MyConnector {
    fn read(&self) -> Result<csv::Reader<File>, Error> {
        let file = File::open(&self.path).map_err(|error| {
            Error::unavailable("no_file", "the file cannot be read").detail(error.to_string())
        })?;
        Ok(csv::Reader::from_reader(file))
    }
}

fn damaged(error: csv::Error) -> Error {
    Error::source_failed("bad_csv", "the file is no CSV with a header").detail(error.to_string())
}

souk_sdk::export!(MyConnector);
