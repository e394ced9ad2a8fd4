//! The low layer: a connector as the contract sees it, a state machine that turns inputs into steps.

use crate::{
    Batch, Column, Command, Descriptor, Error, Event, HttpRequest, Input, Message, Pause, Request,
    Settings, Shape, TlsHandshake, TlsRecords, bindings,
};

/// One session at the source. An error returned by `start`, `submit`, `receive` or `cancel` ends the session;
/// an error of one request is `Step::failed`. `R` is what it is asked: a connector's requests, or a publisher's.
pub trait Machine<R = Request>: Sized + 'static {
    /// Pure; called once when the connector is loaded.
    fn describe() -> Descriptor;
    fn open(settings: Settings) -> Result<Self, Error>;
    /// The wire stands (tcp), or there is nothing to wait for (http, directory).
    fn start(&mut self, step: &mut Step) -> Result<(), Error>;
    fn submit(&mut self, id: u32, request: R, step: &mut Step) -> Result<(), Error>;
    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error>;
    /// The request still ends with `done` or `failed`.
    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error>;
}

/// Of a connector with the ability `groups`: whether another request is submitted at once behind that of this number, before anything else is said
/// (`docs/connectors.md`). Of other connectors no request has such a number.
#[inline]
pub const fn is_followed(id: u32) -> bool {
    id >= 1 << 31
}

/// Of a connector with the ability `alone`: whether the host has nothing else to do than the request of this number, so that what its answer need not wait
/// for may cost something more (`docs/connectors.md`). Of other connectors no request has such a number.
#[inline]
pub const fn is_alone(id: u32) -> bool {
    id < 1 << 31 && id >= 1 << 30
}

/// What one call tells the host: commands for the wire, events about requests. Bytes written one after the
/// other leave as one `send`.
#[derive(Default)]
pub struct Step {
    outgoing: Vec<u8>,
    commands: Vec<Command>,
    events: Vec<Event>,
    now: u64,
}

impl Step {
    /// A step of a call that is made at this time of day, in seconds.
    pub fn at(now: u64) -> Step {
        Step {
            now,
            ..Step::default()
        }
    }

    /// The time of day as the host last told it, with `start` or `submit`: whole seconds since 1970-01-01T00:00:00Z, rounded down. It
    /// may fall.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The bytes to send next; append to it.
    #[inline]
    pub fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.outgoing.extend_from_slice(bytes);
    }

    pub fn start_tls(&mut self) {
        self.start_tls_as(TlsHandshake {
            records: TlsRecords::Bare,
            protocols: Vec::new(),
        });
    }

    /// The same, with records in packets of the peer's own, or with protocols to offer.
    pub fn start_tls_as(&mut self, handshake: TlsHandshake) {
        self.command(Command::StartTls(handshake));
    }

    /// Asks for `Input::Woken(id)` in so many milliseconds.
    pub fn wake(&mut self, id: u32, ms: u32) {
        self.command(Command::Wake(Pause { id, ms }));
    }

    /// Hands a message to a second session of this connection (`Request::Errand`), which is opened for it; `Input::Conferred` says how
    /// that ended.
    pub fn confer(&mut self, id: u32, bytes: Vec<u8>) {
        self.command(Command::Confer(Message { id, bytes }));
    }

    pub fn request(&mut self, request: HttpRequest) {
        self.command(Command::Request(request));
    }

    /// Sends `bytes` on a second wire to the same address and closes it.
    pub fn aside(&mut self, bytes: Vec<u8>) {
        self.command(Command::Aside(bytes));
    }

    pub fn close(&mut self) {
        self.command(Command::Close);
    }

    pub fn ready(&mut self) {
        self.events.push(Event::Ready);
    }

    /// Describes the result of `id`, once, before its first batch. `columns` may be left out when this
    /// session has described the shape before.
    #[inline]
    pub fn columns(&mut self, id: u32, shape: u32, columns: Option<Vec<Column>>) {
        self.events
            .push(Event::Columns(Shape { id, shape, columns }));
    }

    #[inline]
    pub fn batch(&mut self, id: u32, batch: Batch) {
        self.events
            .push(Event::Batch(bindings::souk::connector::types::Rows {
                id,
                batch,
            }));
    }

    #[inline]
    pub fn done(&mut self, id: u32) {
        self.events.push(Event::Done(id));
    }

    pub fn failed(&mut self, id: u32, error: Error) {
        self.events
            .push(Event::Failed(bindings::souk::connector::types::Failure {
                id,
                error,
            }));
    }

    fn command(&mut self, command: Command) {
        self.flush();
        self.push(command);
    }

    fn flush(&mut self) {
        if !self.outgoing.is_empty() {
            let bytes = std::mem::take(&mut self.outgoing);
            self.push(Command::Send(bytes));
        }
    }

    /// Most steps have one: four, which a list begins with, are more than what the allocator has at hand.
    fn push(&mut self, command: Command) {
        if self.commands.is_empty() {
            self.commands.reserve_exact(1);
        }
        self.commands.push(command);
    }

    /// The commands and events in order, as the host gets them.
    #[inline]
    pub fn into_parts(mut self) -> (Vec<Command>, Vec<Event>) {
        self.flush();
        (self.commands, self.events)
    }
}
