//! Has memory kept for it, as a word of the statement says. `grows_8`: 8 MiB of its own, for as long as the session lives. `holds_8`: a result of
//! 8 MiB without an end, while its source does not answer. `asks_8`: a response of so many MiB, which it does not look at. `stops_8`: the same; where that
//! fails it asks for something small before it says so, as who has a statement stopped does. `sends_8`: so many requests of a MiB, which nobody answers.
//! `tries_8`: as many, and goes on without them where it has them not. `breaks`: what it says.

use souk_guests::{Behaviour, words};
use souk_sdk::{
    Batch, Cell, ColumnBuilder, ColumnType, Error, Input, Query, Settings, Step, column,
    http::Request,
};

struct Keeps {
    kept: Vec<Vec<u8>>,
    /// What waits for a response.
    waiting: Vec<u32>,
    /// Those of it that ask once more where it fails.
    stopping: Vec<u32>,
    /// What failed with this, and has asked once more.
    failed: Vec<(u32, Error)>,
}

souk_guests::export!(Keeps);

const MIB: usize = 1 << 20;
/// From one request to the next of those that are sent at once.
const NEXT: u32 = 1 << 20;
/// In the number of what is asked once more.
const ONCE_MORE: u32 = 1 << 31;

impl Behaviour for Keeps {
    const NAME: &'static str = "keeps";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(Keeps {
            kept: Vec::new(),
            waiting: Vec::new(),
            stopping: Vec::new(),
            failed: Vec::new(),
        })
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let mib = |deed: &str| {
            words(&query).find_map(|word| word.strip_prefix(deed)?.parse::<usize>().ok())
        };
        if let Some(mib) = mib("grows_") {
            let piece = || std::hint::black_box(vec![0xa5; MIB]);
            self.kept.extend((0..mib).map(|_| piece()));
            return answer(id, "grown", step);
        }
        if let Some(mib) = mib("tries_") {
            let mut tried: Vec<u8> = Vec::new();
            let is_refused = tried.try_reserve_exact(mib * MIB).is_err();
            std::hint::black_box(&tried);
            return answer(id, if is_refused { "refused" } else { "had" }, step);
        }
        assert!(
            !words(&query).any(|word| word == "breaks"),
            "it was asked to"
        );
        if let Some(mib) = mib("holds_") {
            let text = "x".repeat(MIB);
            let columns = vec![column("text", ColumnType::Text, "text")];
            step.columns(id, 0, Some(columns));
            for _ in 0..mib {
                let mut texts = ColumnBuilder::new(ColumnType::Text);
                texts.push(Cell::Text(&text))?;
                let chunks = vec![texts.finish()];
                step.batch(id, Batch { rows: 1, chunks });
            }
        }
        let stops = mib("stops_");
        if stops.is_some() {
            self.stopping.push(id);
        }
        let asks = mib("asks_").or(stops);
        let path = asks.map_or("/silent".to_owned(), |mib| format!("/{mib}"));
        let of_mib = mib("sends_").unwrap_or(0);
        for place in 0..of_mib.max(1) {
            let request = match of_mib {
                0 => Request::get(&path),
                _ => Request::post(&path).body(vec![b'x'; MIB]),
            };
            let request = request.timeout_ms(query.limits.timeout_ms);
            let request = request.response_bytes_max(64 << 20);
            step.request(request.numbered(id + place as u32 * NEXT));
        }
        self.waiting.push(id);
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        match input {
            Input::Response(response) => {
                let is_it = |failed: &(u32, Error)| (failed.0 | ONCE_MORE) == response.id;
                if let Some(at) = self.failed.iter().position(is_it) {
                    let (id, error) = self.failed.remove(at);
                    step.failed(id, error);
                    return Ok(());
                }
                self.waiting.retain(|id| *id != response.id);
                answer(response.id, "had", step)
            }
            Input::RequestFailed(failure) => {
                let id = failure.id % NEXT;
                let before = self.waiting.len();
                self.waiting.retain(|waiting| *waiting != id);
                if failure.id >= NEXT && failure.id < ONCE_MORE && self.waiting.len() == before {
                    // Another one of its requests has failed before.
                    return Ok(());
                }
                let error = Error::unavailable("no_response", "the source did not answer");
                let error = error.detail(failure.message);
                match self.stopping.contains(&failure.id) {
                    true => {
                        step.request(Request::get("/0").numbered(failure.id | ONCE_MORE));
                        self.failed.push((failure.id, error));
                    }
                    false => step.failed(id, error),
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn answer(id: u32, text: &str, step: &mut Step) -> Result<(), Error> {
    let mut texts = ColumnBuilder::new(ColumnType::Text);
    texts.push(Cell::Text(text))?;
    let chunks = vec![texts.finish()];
    step.columns(id, 1, Some(vec![column("text", ColumnType::Text, "text")]));
    step.batch(id, Batch { rows: 1, chunks });
    step.done(id);
    Ok(())
}
