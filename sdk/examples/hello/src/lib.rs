// A whole connector: a score board that answers `GET /scores?player=…` with `[["ada", 7], ["bob", null]]`.
use serde::Deserialize;
use souk_sdk::http::Request;
use souk_sdk::{
    ColumnType, Connector, Descriptor, Error, Io, Limits, Need, Query, Rows, Settings, Value,
    column,
};

#[derive(Deserialize)]
struct HelloSettings {
    /// Sent as `x-league` with every request.
    league: String,
}

pub struct Hello {
    settings: HelloSettings,
    io: Io,
}

impl Connector for Hello {
    fn describe() -> Descriptor {
        Descriptor::new("hello", env!("CARGO_PKG_VERSION"), Need::Http)
            .engine("hello", "Score board", "opaque", &["NONE"])
            .settings_schema(r#"{"type":"object","required":["league"],"properties":{"league":{"type":"string"}}}"#)
            .abilities(&["pipelining", "cancel"])
    }

    async fn open(settings: Settings, io: Io) -> Result<Self, Error> {
        let settings = settings.parse()?;
        Ok(Hello { settings, io })
    }

    /// The statement is a path (the dialect is `opaque`: nobody else reads it); its one parameter, if any, is a player's name.
    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        if !query.text.starts_with('/') {
            return Err(Error::invalid_request("no_path", "a statement is a path"));
        }
        let path = match query.parameters.as_slice() {
            [] => query.text,
            [Value::Text(name)] if name.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                format!("{}?player={name}", query.text)
            }
            _ => return Err(Error::invalid_request("bad_name", "use letters and digits")),
        };
        let request = Request::get(path).header("x-league", &self.settings.league);
        let response = self.io.http().send(request).await?.success()?;
        rows.columns([
            column("player", ColumnType::Text, "string"),
            column("points", ColumnType::Int64, "number"),
        ])?;
        for (player, points) in response.json::<Vec<(String, Option<i64>)>>()? {
            rows.push([player.as_str().into(), points.into()])?;
        }
        Ok(())
    }

    async fn ping(&self, _limits: Limits, rows: &mut Rows) -> Result<(), Error> {
        self.io.http().send(Request::get("/")).await?;
        rows.alive()
    }
}

souk_sdk::export!(Hello);
