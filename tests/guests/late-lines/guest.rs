//! A tcp engine that takes lines, as `careless-lines`: what it gives up it forgets at once, and takes the answer to that, when it comes, for the one to
//! whatever it has been asked then.

use souk_guests::Behaviour;
use souk_sdk::{
    Batch, Cell, ColumnBuilder, ColumnType, Error, Input, Need, Query, Settings, Step, column,
};

#[derive(Default)]
struct LateLines {
    asked: Option<u32>,
    /// What the source has said and nobody has been told.
    heard: String,
}

souk_guests::export!(LateLines);

impl Behaviour for LateLines {
    const NAME: &'static str = "late-lines";
    const DIALECT: &'static str = "opaque";
    const NEED: Need = Need::Tcp;
    const ABILITIES: &'static [&'static str] = &["cancel"];

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(LateLines::default())
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        if query.text.is_empty() || query.text.contains('\n') {
            step.failed(
                id,
                Error::invalid_request("no_line", "a statement is one line"),
            );
            return Ok(());
        }
        step.send(format!("{}\n", query.text).as_bytes());
        self.asked = Some(id);
        self.answer(step)
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        match input {
            Input::Bytes(bytes) => self.heard.push_str(&String::from_utf8_lossy(&bytes)),
            Input::Closed => {
                let ended = "the source ended the connection";
                return Err(Error::unavailable("connection_closed", ended));
            }
            _ => {}
        }
        self.answer(step)
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        self.asked = None;
        step.failed(id, Error::timeout("cancelled", "the request was cancelled"));
        Ok(())
    }
}

impl LateLines {
    /// As soon as a whole answer has been heard, and somebody asks.
    fn answer(&mut self, step: &mut Step) -> Result<(), Error> {
        let Some(id) = self.asked else {
            return Ok(());
        };
        let Some((count, rest)) = self.heard.split_once('\n') else {
            return Ok(());
        };
        let count: usize = count
            .parse()
            .map_err(|_| Error::source_failed("no_number", "the source sent no number"))?;
        let mut ends = rest.match_indices('\n').map(|(at, _)| at + 1);
        let end = match count {
            0 => Some(0),
            count => ends.nth(count - 1),
        };
        let Some(end) = end else {
            return Ok(());
        };
        let (lines, left) = rest.split_at(end);
        let mut texts = ColumnBuilder::new(ColumnType::Text);
        for line in lines.lines() {
            texts.push(Cell::Text(line))?;
        }
        let batch = Batch {
            rows: count as u32,
            chunks: vec![texts.finish()],
        };
        self.heard = left.to_owned();
        self.asked = None;
        step.columns(id, 0, Some(vec![column("line", ColumnType::Text, "line")]));
        step.batch(id, batch);
        step.done(id);
        Ok(())
    }
}
