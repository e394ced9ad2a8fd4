// A whole connector: a score board that answers `GET /scores?player=…` with `[{"player", "points"}]`.
use serde::Deserialize;
use souk_sdk::http::Request;
use souk_sdk::{
    Cell, ColumnType, Connector, Descriptor, Engine, Error, Io, Limits, Need, Query, Rows,
    Settings, Value, column,
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

#[derive(Deserialize)]
struct Score {
    player: String,
    points: Option<i64>,
}

impl Connector for Hello {
    fn describe() -> Descriptor {
        Descriptor {
            name: "hello".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            engines: vec![Engine {
                slug: "hello".into(),
                title: "Score board".into(),
                dialect: "none".into(),
                credential_types: vec!["NONE".into()],
            }],
            need: Need::Http,
            settings_schema: r#"{"type":"object","required":["league"],"properties":{"league":{"type":"string"}}}"#.into(),
            abilities: vec!["pipelining".into()],
        }
    }

    async fn open(settings: Settings, io: Io) -> Result<Self, Error> {
        Ok(Hello {
            settings: settings.parse()?,
            io,
        })
    }

    /// The statement is a path; its one parameter, if any, is a player's name.
    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        let path = match query.parameters.as_slice() {
            [] => query.text,
            [Value::Text(player)] if player.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                format!("{}?player={player}", query.text)
            }
            _ => {
                return Err(Error::invalid_request(
                    "bad_player",
                    "a player's name is letters and digits",
                ));
            }
        };
        let request = Request::get(path)
            .header("x-league", &self.settings.league)
            .timeout_ms(query.limits.timeout_ms);
        let response = self.io.http().send(request).await?;
        if response.status != 200 {
            return Err(Error::source_failed("bad_status", "the score board failed")
                .source_code(response.status.to_string()));
        }
        rows.columns([
            column("player", ColumnType::Text, "string"),
            column("points", ColumnType::Int64, "number"),
        ])?;
        for score in response.json::<Vec<Score>>()? {
            rows.push([
                Cell::Text(&score.player),
                score.points.map_or(Cell::Null, Cell::Int64),
            ])?;
        }
        Ok(())
    }

    async fn ping(&self, limits: Limits, rows: &mut Rows) -> Result<(), Error> {
        self.io
            .http()
            .send(Request::get("/").timeout_ms(limits.timeout_ms))
            .await?;
        rows.columns(Rows::ping_columns())?;
        rows.push([Cell::Null, Cell::Null])
    }
}

souk_sdk::export!(Hello);
