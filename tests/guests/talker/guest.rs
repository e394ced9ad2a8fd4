//! A tcp engine that does what the contract is asked for rarely: it tells the time, pauses, has a second session stop the first one, and does TLS
//! in packets of TDS. The first value that is bound says which; the server is `souk_tests::talking_server`.

use serde::Deserialize;
use souk_guests::souk_sdk;
use souk_sdk::{
    Cell, ColumnType, Connector, Descriptor, Errand, Error, Io, Limits, Need, Query, Rows,
    Settings, Tcp, TlsHandshake, TlsRecords, Value, column,
};

#[derive(Deserialize)]
struct Given {
    ssl_mode: String,
}

struct Talker {
    io: Io,
    wire: Tcp,
    /// What the source calls this session.
    number: String,
    opened_at: u64,
}

souk_sdk::export!(Talker);

const LINE_BYTES_MAX: usize = 1 << 10;
/// What an errand takes that is asked to.
const FILL_BYTES: usize = 48 << 20;
/// In no time, each: a call that takes long is cut.
const PIECE_BYTES: usize = 512 << 10;

impl Connector for Talker {
    fn describe() -> Descriptor {
        Descriptor::new("talker", "1.0.0", Need::Tcp)
            .engine("talker", "Talker", "generic", &["NONE"])
            .settings_schema(
                r#"{"type":"object","required":["ssl_mode"],"properties":{"host":{"type":"string"},"port":{"type":"integer"},"ssl_mode":{"type":"string"}}}"#,
            )
            .abilities(&["cancel"])
    }

    async fn open(settings: Settings, io: Io) -> Result<Self, Error> {
        let given: Given = settings.parse()?;
        let wire = io.tcp();
        // A source that wakes up slowly is given time.
        io.sleep(1).await;
        if given.ssl_mode != "disable" {
            wire.write(b"TLS\n");
            expect(&wire, "OK").await?;
            let (records, protocols) = (TlsRecords::TdsPrelogin, Vec::new());
            wire.start_tls_as(TlsHandshake { records, protocols })
                .await?;
        }
        wire.write(b"LOGIN\n");
        let number = line(&wire).await?;
        let opened_at = io.now();
        Ok(Talker {
            io,
            wire,
            number,
            opened_at,
        })
    }

    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        let wish = match query.parameters.first() {
            Some(Value::Text(wish)) => wish.as_str(),
            _ => "fine",
        };
        let answer = match wish {
            "now" => format!("{} {}", self.io.now(), self.opened_at),
            "naps" => {
                for _ in 0..3 {
                    self.io.sleep(300).await;
                }
                "rested".to_owned()
            }
            "naps_for_ever" => loop {
                self.io.sleep(0).await;
            },
            "sleeps_long" => {
                self.io.sleep(3_600_000).await;
                "late".to_owned()
            }
            "confers" => {
                self.io.confer("ECHO from another session").await?;
                "conferred".to_owned()
            }
            "confers_in_vain" | "confers_in_vain_and_large" => {
                let errand = match wish {
                    "confers_in_vain" => "HANG",
                    _ => "FILL",
                };
                match self.io.confer(errand).await {
                    Ok(()) => "conferred".to_owned(),
                    Err(error) => error.detail.unwrap_or_default(),
                }
            }
            "hangs" => self.ask("HANG").await?,
            wish => self.ask(&format!("ECHO {wish}")).await?,
        };
        if answer == "KILLED" {
            return Err(Error::timeout("killed", "the statement was killed"));
        }
        rows.columns([column("answer", ColumnType::Text, "line")])?;
        rows.push([Cell::Text(&answer)])
    }

    async fn ping(&self, _limits: Limits, rows: &mut Rows) -> Result<(), Error> {
        self.ask("ECHO ping").await?;
        rows.alive()
    }

    fn stop(&self) -> Option<Vec<u8>> {
        Some(format!("KILL {}", self.number).into_bytes())
    }

    async fn errand(&self, errand: Errand) -> Result<(), Error> {
        if errand.message == b"FILL" {
            let mut kept = Vec::new();
            while kept.len() * PIECE_BYTES < FILL_BYTES {
                kept.push(std::hint::black_box(vec![0xa5u8; PIECE_BYTES]));
                self.ask("ECHO more").await?;
            }
            self.ask("HANG").await?;
            drop(kept);
            return Ok(());
        }
        self.ask(&String::from_utf8_lossy(&errand.message)).await?;
        Ok(())
    }
}

impl Talker {
    async fn ask(&self, text: &str) -> Result<String, Error> {
        self.wire.write(format!("{text}\n").as_bytes());
        line(&self.wire).await
    }
}

async fn expect(wire: &Tcp, wanted: &str) -> Result<(), Error> {
    match line(wire).await? == wanted {
        true => Ok(()),
        false => Err(Error::source_failed("refused", "the source refused")),
    }
}

async fn line(wire: &Tcp) -> Result<String, Error> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        wire.read_exact(&mut byte).await?;
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
