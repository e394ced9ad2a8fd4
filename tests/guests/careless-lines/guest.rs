//! A tcp engine that takes lines of its own: a statement leaves as a line, and the source answers with how many lines follow and then these.
//! With the setting `care` at `none` it takes what one read brings for the whole answer, and at `panics` it trusts the number.

use serde::Deserialize;
use souk_guests::souk_sdk;
use souk_sdk::{
    Cell, ColumnType, Connector, Descriptor, Error, Io, Limits, Need, Query, Rows, Settings, Tcp,
    column,
};

#[derive(Deserialize)]
struct Given {
    care: String,
}

struct Lines {
    care: String,
    wire: Tcp,
}

souk_sdk::export!(Lines);

/// No line of an honest source is longer.
const LINE_BYTES_MAX: usize = 1 << 16;

impl Connector for Lines {
    fn describe() -> Descriptor {
        Descriptor::new("careless-lines", "1.0.0", Need::Tcp)
            .engine("lines", "Lines", "none", &["NONE"])
            .settings_schema(
                r#"{"type":"object","required":["care"],"properties":{"care":{"type":"string"}}}"#,
            )
    }

    async fn open(settings: Settings, io: Io) -> Result<Self, Error> {
        let given: Given = settings.parse()?;
        Ok(Lines {
            care: given.care,
            wire: io.tcp(),
        })
    }

    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        let lines = self.ask(&query.text).await?;
        rows.columns([column("line", ColumnType::Text, "line")])?;
        for line in &lines {
            rows.push([Cell::Text(line)])?;
        }
        Ok(())
    }

    async fn ping(&self, _limits: Limits, rows: &mut Rows) -> Result<(), Error> {
        self.ask("PING").await?;
        rows.alive()
    }
}

impl Lines {
    async fn ask(&self, text: &str) -> Result<Vec<String>, Error> {
        if text.is_empty() || text.contains('\n') {
            return Err(Error::invalid_request("no_line", "a statement is one line"));
        }
        self.wire.write(format!("{text}\n").as_bytes());
        if self.care == "none" {
            let mut buffer = vec![0; 1 << 16];
            let count = self.wire.read(&mut buffer).await;
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            return Ok(text.lines().skip(1).map(str::to_owned).collect());
        }
        let count = self.line().await?;
        let count: usize = match self.care.as_str() {
            "panics" => count.parse().expect("a number"),
            _ => count
                .parse()
                .map_err(|_| Error::source_failed("no_number", "the source sent no number"))?,
        };
        let mut lines = Vec::new();
        for _ in 0..count {
            lines.push(self.line().await?);
        }
        Ok(lines)
    }

    async fn line(&self) -> Result<String, Error> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            self.wire.read_exact(&mut byte).await?;
            if byte == *b"\n" {
                return String::from_utf8(line)
                    .map_err(|_| Error::source_failed("no_text", "the source sent no text"));
            }
            if line.len() == LINE_BYTES_MAX {
                return Err(Error::source_failed("long_line", "a line has no end"));
            }
            line.extend(byte);
        }
    }
}
