//! A whole feed in one answer: its pages one after another, each charged before it leaves.
//!
//! A page is charged when the client asks for it, and one that it never asks for costs nothing. As soon as it does, the next is asked for, and no
//! more: so the source works while a page is written, charged and taken, and, but for the first, while its own price is being held. Where the
//! company's clients have left much unread, a page is asked for, and written, when it is wanted itself and no sooner. Each page has the endpoint's
//! own deadline, and the whole has [`TIME_MAX`]. A page is one run like any other, at the price of its moment; when the product is changed
//! meanwhile, or the file that it is read from is replaced, the export ends: half of one file and half of another are a whole of neither. Start
//! reading at [`export`].

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{Either, join, select};
use futures_util::stream::FuturesOrdered;
use souk_domain::ids::CompanyId;
use souk_sandbox::formats::{Format, Stream};
use souk_sandbox::{Grant, Output};
use souk_store::Cached;
use tokio::sync::{Mutex, mpsc};

use super::large::{is_large, names_bytes};
use super::{Asked, Choice, choice, cursor, placed, rows};
use crate::App;
use crate::connections::source::source;
use crate::failure::{Cause, Failure, abandoned};
use crate::products::{self, EndpointSnapshot, Learned, PageStatement};
use crate::run::{self, About, Payer, Purpose, Run};

/// How long one export may take: as long as a client that takes a gigabyte at two megabits a second.
pub const TIME_MAX: Duration = Duration::from_secs(3_600);

/// A page of an export, and what all up to it come to.
pub struct Part {
    pub bytes: Vec<u8>,
    pub rows: u64,
    pub pages: u64,
    pub credits: i64,
    /// Where the next page begins. `None`: this was the last.
    pub cursor: Option<String>,
    /// Counts the bytes with their readers, until whoever takes them does.
    pub held: Held,
}

/// On the account of who reads.
pub type Held = Option<Box<dyn Send>>;

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
    endpoint: &Cached<EndpointSnapshot>,
    choice: &Choice,
    payer: &Payer<'_>,
    format: Format,
    outlet: Outlet,
) {
    let parts = outlet.parts.clone();
    if let Err(failure) = pages(app, endpoint, choice, payer, format, outlet).await {
        let _ = parts.send(Err(failure)).await;
    }
}

async fn pages(
    app: &App,
    endpoint: &Cached<EndpointSnapshot>,
    choice: &Choice,
    payer: &Payer<'_>,
    format: Format,
    outlet: Outlet,
) -> Result<(), Failure> {
    let refuse = |cause| Failure::before(endpoint.sold().is_owner(payer.company), cause);
    let (asked, learned) = choice::check(app, endpoint, choice, payer.company)
        .await
        .map_err(refuse)?;
    let (begin, mut begun) = mpsc::channel(1);
    let export = Export {
        app,
        endpoint,
        payer,
        format,
        learned,
        until: Instant::now() + TIME_MAX,
        begin,
        written: Mutex::new(Written {
            stream: Some(Stream::new(format)),
            outlet,
            rows: 0,
            pages: 0,
            credits: 0,
            has_unpaid: false,
        }),
    };
    // In order: what becomes of a page is told before what becomes of the next.
    let first = Begun {
        asked,
        source: Source::OnceHeld,
        is_wanted: false,
        file: None,
    };
    let mut pages = FuturesOrdered::from_iter([export.page(first)]);
    loop {
        tokio::select! {
            Some(next) = begun.recv() => pages.push_back(export.page(next)),
            Some(page) = pages.next() => {
                if let Err(failure) = page {
                    // Whatever waits for its turn behind it has none.
                    drop(pages);
                    export.end_file().await;
                    return Err(failure);
                }
                if pages.is_empty() && begun.is_empty() {
                    return Ok(());
                }
            }
        }
    }
}

/// When the source is asked for a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Nobody makes it work who cannot pay.
    OnceHeld,
    /// Behind a page that was held: while the credits are being held.
    AtOnce,
}

/// A page that begins.
struct Begun<'a> {
    asked: Asked<'a>,
    source: Source,
    /// By whoever takes it: that has been heard already.
    is_wanted: bool,
    /// That the first page was read from. `None`: this is the first, or they come from no file.
    file: Option<u64>,
}

/// What a source has answered to a page.
struct Answered {
    statement: Arc<PageStatement>,
    output: Output,
    /// The file that is read, if it is one, before it was asked and after it has answered.
    files: [Option<u64>; 2],
}

struct Export<'a> {
    app: &'a App,
    endpoint: &'a Cached<EndpointSnapshot>,
    payer: &'a Payer<'a>,
    format: Format,
    learned: Option<&'a Learned>,
    until: Instant,
    /// The next page, once the one before it is wanted, or it is wanted itself.
    begin: mpsc::Sender<Begun<'a>>,
    /// Of the page whose turn it is.
    written: Mutex<Written>,
}

/// What pages are written to one after another, and what they came to.
struct Written {
    /// Taken while a page is written.
    stream: Option<Stream>,
    outlet: Outlet,
    rows: u64,
    pages: u64,
    credits: i64,
    /// Rows are written that are not paid.
    has_unpaid: bool,
}

impl Written {
    /// These bytes, with what all up to them come to.
    fn part(&self, bytes: Vec<u8>, cursor: Option<String>, held: Held) -> Part {
        Part {
            bytes,
            rows: self.rows,
            pages: self.pages,
            credits: self.credits,
            cursor,
            held,
        }
    }
}

impl<'a> Export<'a> {
    fn refuse(&self, cause: Cause) -> Failure {
        Failure::before(self.endpoint.sold().is_owner(self.payer.company), cause)
    }

    /// The payer of what is paid now.
    fn payer(&self) -> Payer<'a> {
        Payer {
            now: self.app.clock.now(),
            ..self.payer.clone()
        }
    }

    /// What is not sent yet is counted as what is not read yet.
    fn held(&self, bytes: usize) -> Held {
        let readers = self.payer.readers?;
        Some(readers.hold(bytes as u64))
    }

    /// Likewise of what nobody has asked for yet.
    fn held_ahead(&self, bytes: usize) -> Held {
        let readers = self.payer.readers?;
        Some(readers.hold_ahead(bytes as u64))
    }

    fn may_read_ahead(&self, bytes: usize) -> bool {
        let readers = self.payer.readers;
        readers.is_none_or(|readers| readers.may_read_ahead(bytes as u64))
    }

    /// What is exported, as it is on sale now: its price may be another one than when the export began, and it may be gone.
    async fn on_sale(&self, payer: &Payer<'_>) -> Result<Cached<EndpointSnapshot>, Failure> {
        let now = products::get(self.app, &self.endpoint.row.id, payer.now)
            .await
            .map_err(|cause| self.refuse(cause))?;
        run::admit(self.app, &now.sold(), payer.company)
            .await
            .map_err(|cause| self.refuse(cause))?;
        match now.row.updated_at == self.endpoint.row.updated_at {
            true => Ok(now),
            false => Err(self.refuse(Cause::Changed)),
        }
    }

    /// Makes a file of the pages that were paid, where no more come: what Parquet has of them leaves with its end, and without that nobody can read
    /// the rest.
    async fn end_file(&self) {
        let mut turn = self.written.lock().await;
        if self.format != Format::Parquet || turn.pages == 0 || turn.has_unpaid {
            return;
        }
        let Some(mut stream) = turn.stream.take() else {
            return;
        };
        let company = self.endpoint.row.company_id.as_str();
        let finished = self.app.sandbox.compute(company, move || stream.finish());
        let Some(Ok(bytes)) = finished.await else {
            return;
        };
        let held = self.held(bytes.len());
        // There would be more.
        let part = turn.part(bytes, Some(String::new()), held);
        let _ = turn.outlet.parts.send(Ok(part)).await;
    }

    async fn page(&self, begun: Begun<'a>) -> Result<(), Failure> {
        let Begun {
            mut asked,
            source,
            mut is_wanted,
            file,
        } = begun;
        let (app, endpoint) = (self.app, self.endpoint);
        if Instant::now() > self.until {
            return Err(self.refuse(Cause::TooLong(TIME_MAX)));
        }
        let payer = self.payer();
        let now = self.on_sale(&payer).await?;
        let deadline = Instant::now() + now.sold().timeout;
        let (mut run, read) = {
            let begin = pin!(Run::begin(app, now.sold(), &payer, Purpose::Result));
            let of = (payer.company, deadline);
            let read = pin!(self.read(&asked, of));
            match source {
                Source::OnceHeld => (begin.await?, read.await),
                // Where nothing can be held, the source is asked no further.
                Source::AtOnce => match select(begin, read).await {
                    Either::Left((run, read)) => (run?, read.await),
                    Either::Right((read, begin)) => (begin.await?, read),
                },
            }
        };
        let Answered {
            statement,
            output,
            files,
        } = read.map_err(|cause| run.fail(cause))?;
        if file.is_some_and(|first| files != [Some(first); 2]) {
            // What was held for it is given back.
            drop(run);
            return Err(self.refuse(Cause::Changed));
        }
        let file = file.or(files[0]);
        let elapsed = run.started.elapsed();
        let paged = asked.page.paged(output.rows);
        let (returned, size) = (paged.returned as usize, output.bytes);
        let is_large = is_large(&output, statement.row_bytes);
        let names = names_bytes(self.format, returned, statement.row_bytes);
        let names = names.map_err(|cause| run.fail(cause))?;
        // It waits for its turn, and for whoever wants it: as long as a client likes. Its names are there when it is written.
        let ahead = self.held_ahead(size);
        if returned == 0 {
            run = run.found_nothing();
        }
        let (output, place) = placed(app, endpoint, deadline, &statement, &asked, output)
            .await
            .map_err(|cause| run.fail(cause))?;
        let mut cursor = None;
        let mut next = None;
        if let Some(place) = place {
            let goes_on_with = asked.goes_on_with(endpoint, self.learned);
            let sealed = cursor::seal(app, endpoint, &goes_on_with, &place);
            cursor = Some(sealed.map_err(|cause| run.fail(cause))?);
            asked.begin_at(place);
            next = Some(asked);
        }

        // The turn of this page lasts until it has left; nobody else's begins before it is wanted.
        let mut turn = self.written.lock().await;
        let Written { stream, outlet, .. } = &mut *turn;
        let is_last = next.is_none();
        if !is_wanted && !self.may_read_ahead(names) {
            if outlet.wanted.recv().await.is_none() {
                return Ok(());
            }
            is_wanted = true;
        }
        let ahead = (ahead, self.held_ahead(names));
        let Some(mut taken) = stream.take() else {
            return Err(run.fail(abandoned()));
        };
        let write = move || {
            let written = taken.write(output, &statement.published, returned);
            let written = written.and_then(|mut bytes| {
                if is_last {
                    bytes.append(&mut taken.finish()?);
                }
                Ok(bytes)
            });
            (taken, written)
        };
        let writing = async {
            if !is_large && self.format != Format::Parquet {
                return Some(write());
            }
            let company = endpoint.row.company_id.as_str();
            app.sandbox.compute(company, write).await
        };
        let wanted = async {
            let wanted = match is_wanted {
                true => Some(()),
                false => outlet.wanted.recv().await,
            };
            // Mostly it has as many bytes as this one.
            if wanted.is_some() && self.may_read_ahead(size) {
                self.begin_next(next.take(), false, file).await;
            }
            wanted
        };
        let (written, wanted) = join(writing, wanted).await;
        let (kept, written) = written.ok_or_else(|| run.fail(abandoned()))?;
        *stream = Some(kept);
        let bytes = written.map_err(|unfit| run.fail(Cause::bad_answer(unfit.to_string())))?;
        if wanted.is_none() {
            return Ok(());
        }
        turn.has_unpaid = true;
        // Whoever takes the page before slowly outlasts what was held for this one.
        let late = self.payer();
        let still;
        if run.deadline() <= Instant::now() {
            drop(run);
            still = self.on_sale(&late).await?;
            run = Run::begin(app, still.sold(), &late, Purpose::Result).await?;
            if returned == 0 {
                run = run.found_nothing();
            }
        }
        run.beside = names;
        let render = |about: &About<'_>| {
            turn.credits += about.settled.credits;
            bytes
        };
        // From here on the run counts it, by itself.
        drop(ahead);
        let bytes = run.finish(elapsed, returned, size, render).await?;
        turn.has_unpaid = false;
        turn.rows += returned as u64;
        turn.pages += 1;
        let held = self.held(bytes.len());
        let part = turn.part(bytes, cursor, held);
        // Nobody takes it any more: the next page, if it has begun, finds that out by itself.
        let _ = turn.outlet.parts.send(Ok(part)).await;
        // There was no room to read it ahead.
        if next.is_some() && turn.outlet.wanted.recv().await.is_some() {
            self.begin_next(next, true, file).await;
        }
        Ok(())
    }

    async fn read(&self, asked: &Asked<'a>, of: (&CompanyId, Instant)) -> Result<Answered, Cause> {
        let before = self.file().await?;
        let (statement, output) = rows(self.app, self.endpoint, asked, self.learned, of).await?;
        // A session that was opened on a newer file answers those who asked for the older one, too.
        let files = [before, self.file().await?];
        Ok(Answered {
            statement,
            output,
            files,
        })
    }

    /// The file that pages are read from, by the revision of its connection. `None`: they come from no file.
    async fn file(&self) -> Result<Option<u64>, Cause> {
        let row = &self.endpoint.row;
        let source = source(self.app, &row.company_id, &row.written.connection_id).await?;
        let is_file = matches!(source.grant, Grant::Directory(_) | Grant::Lent(_));
        Ok(is_file.then_some(source.revision))
    }

    async fn begin_next(&self, next: Option<Asked<'a>>, is_wanted: bool, file: Option<u64>) {
        let Some(asked) = next else { return };
        let source = Source::AtOnce;
        let next = Begun {
            asked,
            source,
            is_wanted,
            file,
        };
        // There is room for one, and the last one has begun.
        let _ = self.begin.send(next).await;
    }
}
