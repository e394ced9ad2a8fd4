//! Turns an async [`Connector`] or [`Publisher`](crate::Publisher) into a [`Machine`]: a single-threaded executor that is polled in each call.
//!
//! Every call polls what is under way until nothing moves; what waits then waits for the host's next input.

use crate::io::Shared;
use crate::{
    Connector, Descriptor, Error, Input, Io, Limits, Machine, Need, Request, Rows, Settings, Step,
};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

type Local<T> = Pin<Box<dyn Future<Output = T>>>;

/// What a driver drives: something that is opened and serves requests `R`.
#[allow(
    async_fn_in_trait,
    reason = "a component has one thread: futures need not be Send"
)]
pub trait Serve<R>: Sized + 'static {
    fn describe() -> Descriptor;
    async fn open(settings: Settings, io: Io) -> Result<Self, Error>;
    fn limits(request: &R) -> &Limits;
    async fn serve(&self, request: R, rows: &mut Rows) -> Result<(), Error>;

    /// A message for another session that stops what this one is doing.
    fn stop(&self) -> Option<Vec<u8>> {
        None
    }
}

impl<C: Connector> Serve<Request> for C {
    fn describe() -> Descriptor {
        <C as Connector>::describe()
    }

    async fn open(settings: Settings, io: Io) -> Result<C, Error> {
        <C as Connector>::open(settings, io).await
    }

    fn limits(request: &Request) -> &Limits {
        match request {
            Request::Query(query) => &query.limits,
            Request::Schema(filter) => &filter.limits,
            Request::Call(call) => &call.limits,
            Request::Ping(limits) => limits,
            Request::Errand(errand) => &errand.limits,
        }
    }

    async fn serve(&self, request: Request, rows: &mut Rows) -> Result<(), Error> {
        match request {
            Request::Query(query) => self.query(query, rows).await,
            Request::Schema(filter) => self.schema(filter, rows).await,
            Request::Call(call) => self.call(call, rows).await,
            Request::Ping(limits) => self.ping(limits, rows).await,
            Request::Errand(errand) => {
                self.errand(errand).await?;
                rows.nothing();
                Ok(())
            }
        }
    }

    fn stop(&self) -> Option<Vec<u8>> {
        Connector::stop(self)
    }
}

/// A session of an async connector or publisher.
pub struct Driver<C, R = Request> {
    shared: Rc<Shared>,
    settings: Option<Settings>,
    opening: Option<Local<Result<C, Error>>>,
    session: Option<Rc<C>>,
    running: Vec<(u32, Local<Result<(), Error>>)>,
    queue: VecDeque<(u32, R)>,
    /// The errand that stops what is running: nothing else begins before it has ended, for it would be stopped too.
    stopping: Option<Local<Result<(), Error>>>,
    /// How many requests run at once: 1, or all with the ability `pipelining`.
    running_max: usize,
    need: Need,
    woken: Arc<Woken>,
    waker: Waker,
}

impl<C: Serve<R>, R: 'static> Machine<R> for Driver<C, R> {
    fn describe() -> Descriptor {
        C::describe()
    }

    fn open(settings: Settings) -> Result<Self, Error> {
        let descriptor = C::describe();
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let pipelining = descriptor
            .abilities
            .iter()
            .any(|ability| ability == "pipelining");
        Ok(Driver {
            shared: Rc::default(),
            settings: Some(settings),
            opening: None,
            session: None,
            running: Vec::new(),
            queue: VecDeque::new(),
            stopping: None,
            running_max: if pipelining { usize::MAX } else { 1 },
            need: descriptor.need,
            waker: woken.clone().into(),
            woken,
        })
    }

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        let Some(settings) = self.settings.take() else {
            return Err(Error::internal(
                "started_twice",
                "the session was started twice",
            ));
        };
        self.opening = Some(Box::pin(C::open(
            settings,
            Io {
                shared: self.shared.clone(),
            },
        )));
        self.run(step)
    }

    fn submit(&mut self, id: u32, request: R, step: &mut Step) -> Result<(), Error> {
        self.queue.push_back((id, request));
        self.run(step)
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        match input {
            Input::Bytes(bytes) => self.shared.arrived(bytes)?,
            Input::TlsEstablished => self.shared.secured(),
            Input::Closed => self.shared.hung_up(),
            Input::Response(response) => self.shared.answered(response.id, Ok(response)),
            Input::RequestFailed(failure) => self.shared.answered(failure.id, Err(failure)),
            Input::Woken(id) => self.shared.came(id, None),
            Input::Conferred(reply) => self.shared.came(reply.id, reply.failure),
        }
        self.run(step)
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        let cancelled = || Error::timeout("cancelled", "the request was cancelled");
        if let Some(at) = self.running.iter().position(|(running, _)| *running == id) {
            if self.need == Need::Tcp {
                let stop = self.session.as_ref().and_then(|session| session.stop());
                // Half an exchange is on the wire: without a way to end it the session cannot go on.
                let message = stop.ok_or_else(cancelled)?;
                if self.stopping.is_none() {
                    let shared = self.shared.clone();
                    let errand = async move { Io { shared }.confer(message).await };
                    self.stopping = Some(Box::pin(errand));
                }
                return self.run(step);
            }
            drop(self.running.remove(at));
            step.failed(id, cancelled());
        } else if let Some(at) = self.queue.iter().position(|(queued, _)| *queued == id) {
            self.queue.remove(at);
            step.failed(id, cancelled());
        }
        self.run(step)
    }
}

impl<C: Serve<R>, R: 'static> Driver<C, R> {
    /// Polls until nothing moves. The futures write into the shared step, which is this call's for as long.
    fn run(&mut self, step: &mut Step) -> Result<(), Error> {
        if step.now() > 0 {
            self.shared.now.set(step.now());
        }
        self.shared.step.replace(std::mem::take(step));
        let result = self.poll_all();
        *step = self.shared.step.take();
        result
    }

    fn poll_all(&mut self) -> Result<(), Error> {
        loop {
            self.woken.0.store(false, Ordering::Relaxed);
            self.poll_opening()?;
            self.poll_stopping();
            self.poll_running()?;
            let more = self.session.is_some()
                && self.stopping.is_none()
                && !self.queue.is_empty()
                && self.running.len() < self.running_max;
            if !more && !self.woken.0.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    fn poll_opening(&mut self) -> Result<(), Error> {
        let Some(opening) = &mut self.opening else {
            return Ok(());
        };
        if let Poll::Ready(session) = opening.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            self.opening = None;
            self.session = Some(Rc::new(session?));
            self.shared.step.borrow_mut().ready();
        }
        Ok(())
    }

    /// Where the errand failed, the source goes on, and so does who waits for it.
    fn poll_stopping(&mut self) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        let mut context = Context::from_waker(&self.waker);
        if stopping.as_mut().poll(&mut context).is_ready() {
            self.stopping = None;
        }
    }

    fn poll_running(&mut self) -> Result<(), Error> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let is_wire = self.need == Need::Tcp;
        while self.stopping.is_none() && self.running.len() < self.running_max {
            let Some((id, request)) = self.queue.pop_front() else {
                break;
            };
            let rows = Rows::new(self.shared.clone(), id, *C::limits(&request));
            let task = serve(session.clone(), request, rows, is_wire);
            self.running.push((id, Box::pin(task)));
        }
        let mut context = Context::from_waker(&self.waker);
        let mut lost = Ok(());
        self.running
            .retain_mut(|(_, task)| match task.as_mut().poll(&mut context) {
                Poll::Pending => true,
                Poll::Ready(Ok(())) => false,
                Poll::Ready(Err(error)) => {
                    lost = Err(error);
                    false
                }
            });
        lost
    }
}

/// An error of its own ends the session.
async fn serve<C: Serve<R>, R>(
    session: Rc<C>,
    request: R,
    mut rows: Rows,
    is_wire: bool,
) -> Result<(), Error> {
    let result = session.serve(request, &mut rows).await;
    rows.conclude(result, is_wire)
}

/// Set when a future asks to be polled again before the host calls.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
