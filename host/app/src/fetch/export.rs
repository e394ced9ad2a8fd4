//! A whole feed in one answer: its pages one after another, each charged before it leaves.
//!
//! While a client takes one page the next is asked for, and no more: a page is charged when the client asks for it, and one that it never
//! asks for costs nothing. Each page has the endpoint's own deadline, and the whole has [`TIME_MAX`]. A page is one run like any other,
//! at the price of its moment; when the product is changed meanwhile, the export ends. Start reading at [`export`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use souk_sandbox::formats::{Format, Stream};
use tokio::sync::mpsc;

use super::{Choice, INLINE_BYTES_MAX, choice, cursor, rows};
use crate::App;
use crate::failure::{Cause, Failure, abandoned};
use crate::products::{self, EndpointSnapshot};
use crate::run::{self, About, Payer, Purpose, Run};

/// How long one export may take: as long as a client that takes a gigabyte at two megabits a second.
pub const TIME_MAX: Duration = Duration::from_secs(3_600);

/// A page of an export, and what all up to it come to.
#[derive(Debug)]
pub struct Part {
    pub bytes: Vec<u8>,
    pub rows: u64,
    pub pages: u64,
    pub credits: i64,
    /// Where the next page begins. `None`: this was the last.
    pub cursor: Option<String>,
}

/// Where an export puts its pages.
pub struct Outlet {
    wanted: mpsc::Receiver<()>,
    parts: mpsc::Sender<Result<Part, Failure>>,
}

/// Where they are taken from. Dropped before its end it costs nothing more.
pub struct Inlet {
    wanted: mpsc::Sender<()>,
    parts: mpsc::Receiver<Result<Part, Failure>>,
}

pub fn channel() -> (Outlet, Inlet) {
    let (want, wanted) = mpsc::channel(1);
    let (put, parts) = mpsc::channel(1);
    let outlet = Outlet { wanted, parts: put };
    let inlet = Inlet {
        wanted: want,
        parts,
    };
    (outlet, inlet)
}

impl Inlet {
    /// The next page, which is charged now. `None`: there was a last one, or a failure.
    pub async fn next(&mut self) -> Option<Result<Part, Failure>> {
        // Whoever has failed does not listen any more.
        let _ = self.wanted.send(()).await;
        self.parts.recv().await
    }
}

/// Puts the pages of a feed into `outlet` until there are no more or nobody wants them.
pub async fn export(
    app: &App,
    endpoint: &Arc<EndpointSnapshot>,
    choice: &Choice,
    payer: &Payer<'_>,
    format: Format,
    mut outlet: Outlet,
) {
    if let Err(failure) = pages(app, endpoint, choice, payer, format, &mut outlet).await {
        let _ = outlet.parts.send(Err(failure)).await;
    }
}

async fn pages(
    app: &App,
    endpoint: &Arc<EndpointSnapshot>,
    choice: &Choice,
    payer: &Payer<'_>,
    format: Format,
    outlet: &mut Outlet,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let owner = endpoint.sold().is_owner(payer.company);
    let refuse = |cause: Cause| Failure::before(owner, cause);
    let (mut asked, learned) = choice::check(app, endpoint, choice).await.map_err(refuse)?;
    let mut stream = Stream::new(format);
    let (mut sent, mut pages, mut credits) = (0, 0, 0);
    loop {
        if begun.elapsed() > TIME_MAX {
            return Err(refuse(Cause::TooLong(TIME_MAX)));
        }
        let payer = Payer {
            now: app.clock.now(),
            ..payer.clone()
        };
        // Its price may be another one by now, and it may be gone.
        let now = products::get(app, &endpoint.row.id, payer.now)
            .await
            .map_err(refuse)?;
        run::admit(app, &now.sold(), payer.company)
            .await
            .map_err(refuse)?;
        if now.row.updated_at != endpoint.row.updated_at {
            return Err(refuse(Cause::Changed));
        }
        let mut run = Run::begin(app, now.sold(), &payer, Purpose::Result).await?;
        let (statement, output) = rows(app, endpoint, &asked, learned, run.deadline())
            .await
            .map_err(|cause| run.fail(cause))?;
        let elapsed = run.started.elapsed();
        let paged = asked.page.paged(output.rows);
        let (returned, size) = (paged.returned as usize, output.bytes);
        if returned == 0 {
            run = run.found_nothing();
        }
        let next = paged
            .has_more
            .then(|| cursor::behind(&output, &statement.keys, &asked.from, returned));
        let is_last = next.is_none();
        let write = move |mut stream: Stream| {
            let written = stream.write(output, &statement.published, returned);
            let written = written.and_then(|mut bytes| {
                if is_last {
                    bytes.append(&mut stream.finish()?);
                }
                Ok(bytes)
            });
            (stream, written)
        };
        let (kept, written) = match size <= INLINE_BYTES_MAX && format != Format::Parquet {
            true => write(stream),
            false => {
                let company = endpoint.row.company_id.as_str();
                let written = app.sandbox.compute(company, move || write(stream)).await;
                written.ok_or_else(|| run.fail(abandoned()))?
            }
        };
        stream = kept;
        let bytes = written.map_err(|unfit| run.fail(Cause::bad_answer(unfit.to_string())))?;
        let cursor = match &next {
            Some(place) => {
                let goes_on_with = asked.goes_on_with(endpoint, learned);
                let sealed = cursor::seal(app, endpoint, &goes_on_with, place);
                Some(sealed.map_err(|cause| run.fail(cause))?)
            }
            None => None,
        };

        if outlet.wanted.recv().await.is_none() {
            return Ok(());
        }
        // Whoever takes the page before slowly outlasts what was held for this one.
        let late = Payer {
            now: app.clock.now(),
            ..payer.clone()
        };
        if run.deadline() <= Instant::now() {
            drop(run);
            run = Run::begin(app, now.sold(), &late, Purpose::Result).await?;
            if returned == 0 {
                run = run.found_nothing();
            }
        }
        let render = |about: &About<'_>| {
            credits += about.settled.credits;
            bytes
        };
        let bytes = run.finish(elapsed, returned, size, render).await?;
        sent += returned as u64;
        pages += 1;
        let part = Part {
            bytes,
            rows: sent,
            pages,
            credits,
            cursor,
        };
        if outlet.parts.send(Ok(part)).await.is_err() {
            return Ok(());
        }
        match next {
            Some(place) => asked.begin_at(place),
            None => return Ok(()),
        }
    }
}
