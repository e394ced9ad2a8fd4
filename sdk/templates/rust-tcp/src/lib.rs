//! A connector for servers that speak RESP, as Redis does: a statement is one command that reads (`GET greeting`), a parameter `?` in it.

use serde::Deserialize;
use souk_sdk::{
    Cell, ColumnType, Connector, Descriptor, Error, Io, Limits, Need, Query, Rows, Settings, Tcp,
    Value, column,
};

/// What a connection is configured with. A host passes on what the schema below names, and nothing else; where the server is, is the host's.
#[derive(Deserialize)]
struct Access {
    password: Option<String>,
    #[serde(default)]
    ssl_mode: String,
}

/// A secret has `"writeOnly": true`.
const SETTINGS: &str = r#"{
  "type": "object",
  "properties": {
    "password": {"type": "string", "writeOnly": true, "title": "Password"},
    "ssl_mode": {"type": "string", "enum": ["disable", "require", "verify-ca", "verify-full"], "default": "require", "title": "TLS"}
  }
}"#;

/// Whatever a statement says, it must not change the source: what is not known to read is not sent.
const COMMANDS: [&str; 8] = ["GET", "MGET", "STRLEN", "LRANGE", "SMEMBERS", "HGETALL", "ZRANGE", "TYPE"];
/// What a server says is not believed without bounds.
const LINE_BYTES_MAX: usize = 64 << 10;
const TEXT_BYTES_MAX: usize = 16 << 20;
const ITEMS_MAX: usize = 1_000_000;
/// The code of what the server refuses.
const REFUSED: &str = "refused";

pub struct MyConnector {
    wire: Tcp,
}

/// One value of a reply.
enum Reply {
    Null,
    Number(i64),
    Text(Vec<u8>),
}

impl Connector for MyConnector {
    fn describe() -> Descriptor {
        Descriptor::new("my-connector", env!("CARGO_PKG_VERSION"), Need::Tcp)
            .engine("my-connector", "MyConnector", "opaque", &["PASSWORD", "NONE"])
            .settings_schema(SETTINGS)
    }

    /// The wire stands already.
    async fn open(settings: Settings, io: Io) -> Result<Self, Error> {
        let access: Access = settings.parse()?;
        let wire = io.tcp();
        if !matches!(access.ssl_mode.as_str(), "" | "disable") {
            wire.start_tls().await?;
        }
        let session = MyConnector { wire };
        if let Some(password) = access.password {
            let refused = |error: Error| {
                if error.code != REFUSED {
                    return error;
                }
                Error::authentication("password_rejected", "the source refused the password")
                    .detail(error.detail.unwrap_or_default())
            };
            session.ask(&["AUTH".into(), password]).await.map_err(refused)?;
        }
        Ok(session)
    }

    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        let replies = self.ask(&words(&query)?).await?;
        rows.columns([column("value", ColumnType::Text, "string")])?;
        for reply in &replies {
            match reply {
                Reply::Null => rows.push([Cell::Null])?,
                Reply::Number(number) => rows.push([Cell::Text(&number.to_string())])?,
                Reply::Text(bytes) => rows.push([Cell::Text(text(bytes)?)])?,
            }
        }
        Ok(())
    }

    async fn ping(&self, _limits: Limits, rows: &mut Rows) -> Result<(), Error> {
        self.ask(&["PING".into()]).await?;
        rows.alive()
    }
}

/// The command's words, `?` replaced by what is bound: a value is one word, whatever it holds.
fn words(query: &Query) -> Result<Vec<String>, Error> {
    let mut values = query.parameters.iter();
    let mut words = Vec::new();
    for word in query.text.split_ascii_whitespace() {
        words.push(match word {
            "?" => match values.next() {
                Some(Value::Text(text)) => text.clone(),
                Some(Value::Int64(number)) => number.to_string(),
                _ => return Err(Error::invalid_request("bad_value", "bind a text or an integer for each ?")),
            },
            word => word.to_owned(),
        });
    }
    match words.first() {
        Some(command) if COMMANDS.contains(&command.to_ascii_uppercase().as_str()) => Ok(words),
        _ => Err(Error::unsupported("commands that do not read")),
    }
}

fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| Error::source_failed("no_text", "the value is no UTF-8"))
}

/// What the server says in place of a value.
fn refused(text: &str) -> Error {
    Error::source_failed(REFUSED, "the source refused the command").detail(text)
}

impl MyConnector {
    /// Sends a command and reads its reply: one value, or a list of values.
    async fn ask(&self, words: &[String]) -> Result<Vec<Reply>, Error> {
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            command.extend(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
        self.wire.write(&command);
        let head = self.line().await?;
        let Some(count) = head.strip_prefix('*') else {
            return Ok(vec![self.value(&head).await?]);
        };
        let mut replies = Vec::new();
        for _ in 0..self.size(count, ITEMS_MAX)?.unwrap_or(0) {
            let head = self.line().await?;
            if let Some(text) = head.strip_prefix('-') {
                return Err(self.wire.broken(refused(text)));
            }
            replies.push(self.value(&head).await?);
        }
        Ok(replies)
    }

    async fn value(&self, head: &str) -> Result<Reply, Error> {
        let garbage = || self.broken("bad_reply", "the source does not speak RESP");
        let (kind, rest) = head.split_at_checked(1).ok_or_else(garbage)?;
        match kind {
            "+" => Ok(Reply::Text(rest.into())),
            ":" => rest.parse().map(Reply::Number).map_err(|_| garbage()),
            "-" => Err(refused(rest)),
            "$" => {
                let Some(length) = self.size(rest, TEXT_BYTES_MAX)? else {
                    return Ok(Reply::Null);
                };
                let mut bytes = vec![0; length + 2];
                self.wire.read_exact(&mut bytes).await?;
                if !bytes.ends_with(b"\r\n") {
                    return Err(garbage());
                }
                bytes.truncate(length);
                Ok(Reply::Text(bytes))
            }
            _ => Err(garbage()),
        }
    }

    /// A line without its end. A read ends anywhere: this one goes on until the line does.
    async fn line(&self) -> Result<String, Error> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            if line.len() == LINE_BYTES_MAX {
                return Err(self.broken("long_line", "the source's line has no end"));
            }
            let mut byte = [0];
            self.wire.read_exact(&mut byte).await?;
            line.extend(byte);
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).map_err(|_| self.broken("bad_reply", "the source does not speak RESP"))
    }

    /// A length; `None` is the protocol's -1, which is NULL.
    fn size(&self, text: &str, max: usize) -> Result<Option<usize>, Error> {
        match text.parse::<i64>() {
            Ok(-1) => Ok(None),
            Ok(size) if usize::try_from(size).is_ok_and(|size| size <= max) => Ok(Some(size as usize)),
            _ => Err(self.broken("bad_length", "the source announced a length that cannot be")),
        }
    }

    /// The rest of the reply stays on the wire, and the next request would take it for its own: the session ends.
    fn broken(&self, code: &str, message: &str) -> Error {
        self.wire.broken(Error::source_failed(code, message))
    }
}

souk_sdk::export!(MyConnector);
