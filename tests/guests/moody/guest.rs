//! Answers `fine`, unless the first value that is bound says how to fail. So it can be published, bought, and fail then.

use souk_guests::Behaviour;
use souk_sdk::{
    Batch, Call, Cell, Chunk, ColumnBuilder, ColumnData, ColumnType, Error, Query, Settings, Step,
    Value, VarLen, column,
};

struct Moody {
    token: String,
    /// A large answer, ready to be given.
    speech: Option<Chunk>,
}

/// More than a call may return on a worker.
const SPEECH_BYTES: usize = 6 << 20;

souk_guests::export!(Moody);

impl Behaviour for Moody {
    const NAME: &'static str = "moody";
    const SCHEMA: &'static str =
        r#"{"type":"object","properties":{"token":{"type":"string","writeOnly":true}}}"#;

    const ABILITIES: &'static [&'static str] = &["functions"];

    fn open(settings: &Settings) -> Result<Self, Error> {
        // By hand: a test's guest needs no JSON library.
        let token = settings.json.split_once(r#""token":""#);
        let token = token.and_then(|(_, rest)| rest.split('"').next());
        Ok(Moody {
            token: token.unwrap_or("none").to_owned(),
            speech: None,
        })
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let mood = match query.parameters.first() {
            Some(Value::Text(mood)) => mood.as_str(),
            _ => "fine",
        };
        let mut fine = ColumnBuilder::new(ColumnType::Text);
        fine.push(Cell::Text("fine"))?;
        let (rows, chunk) = match mood {
            "traps" => trap(),
            "loops" => spin(),
            "exhausts_memory" => exhaust(),
            "panics" => {
                println!("about to panic");
                eprintln!("the token is {}", self.token);
                panic!("x = {}", 42)
            }
            "reads_the_clock" => {
                std::hint::black_box(std::time::Instant::now());
                (1, fine.finish())
            }
            // An interpreter does, to import a module.
            "looks_for_a_file" => {
                let found =
                    std::fs::read("/etc/hostname").is_ok() || std::fs::exists("/").unwrap_or(false);
                println!("found a file: {found}");
                (1, fine.finish())
            }
            "prepares_a_speech" => {
                self.speech = Some(speech()?);
                (1, fine.finish())
            }
            "holds_a_speech" => (1, self.speech()?),
            "prints" => {
                println!("a line for its author");
                (1, fine.finish())
            }
            "prints_much" => {
                (0..1_000).for_each(|line| println!("line {line} of many"));
                (1, fine.finish())
            }
            "is_rate_limited" => {
                let error = Error::rate_limited("too_fast", "the score board asks for patience");
                step.failed(id, error.retry_after_ms(7_000));
                return Ok(());
            }
            "is_down" => {
                let error = Error::unavailable("under_repair", "the score board is being repaired");
                step.failed(id, error.retry_after_ms(7_000));
                return Ok(());
            }
            "is_silent" => {
                step.wake(id, u32::MAX);
                return Ok(());
            }
            "waits_for_nothing" => return Ok(()),
            "refuses" => {
                step.failed(id, Error::configuration("no_mood", "not in the mood"));
                return Ok(());
            }
            "says_five_rows" => (5, fine.finish()),
            "floods" => {
                let rows = query.limits.rows_max + 1;
                (1..rows).try_for_each(|_| fine.push(Cell::Text("fine")))?;
                (rows, fine.finish())
            }
            "breaks_utf8" => (1, no_utf8()),
            _ => (1, fine.finish()),
        };
        answer(id, rows, chunk, step);
        Ok(())
    }

    /// Computes for some 30 ms, or holds a speech.
    fn call(&mut self, id: u32, call: Call, step: &mut Step) -> Result<(), Error> {
        if call.parameters.contains("speech") {
            answer(id, 1, self.speech()?, step);
            return Ok(());
        }
        let mut turns = 30_000_000u64;
        while turns > 0 {
            turns = std::hint::black_box(turns - 1);
        }
        let mut fine = ColumnBuilder::new(ColumnType::Text);
        fine.push(Cell::Text("fine"))?;
        answer(id, 1, fine.finish(), step);
        Ok(())
    }
}

impl Moody {
    /// What was prepared takes no time.
    fn speech(&mut self) -> Result<Chunk, Error> {
        match self.speech.take() {
            Some(prepared) => Ok(prepared),
            None => speech(),
        }
    }
}

fn speech() -> Result<Chunk, Error> {
    let mut column = ColumnBuilder::new(ColumnType::Text);
    column.push(Cell::Text(&"a".repeat(SPEECH_BYTES)))?;
    Ok(column.finish())
}

fn answer(id: u32, rows: u32, chunk: Chunk, step: &mut Step) {
    let columns = vec![column("mood", ColumnType::Text, "text")];
    step.columns(id, 0, Some(columns));
    let chunks = vec![chunk];
    step.batch(id, Batch { rows, chunks });
    step.done(id);
}

fn trap() -> ! {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    unreachable!()
}

fn spin() -> ! {
    let mut turns = 0u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

/// Without a look at what it takes, so that memory ends before time does.
fn exhaust() -> ! {
    let mut pieces = Vec::new();
    loop {
        pieces.push(std::hint::black_box(Vec::<u8>::with_capacity(16 << 20)));
    }
}

fn no_utf8() -> Chunk {
    let data = ColumnData::VarLen(VarLen {
        offsets: vec![0, 2],
        bytes: b"\xff\xfe".to_vec(),
    });
    Chunk {
        validity: None,
        data,
    }
}
