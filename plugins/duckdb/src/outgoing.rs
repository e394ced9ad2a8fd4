//! What a session sends: HTTP requests, as many at once as the host carries out, and among them the ends of connections, for which nobody waits.

use std::collections::VecDeque;

use souk_sdk::http::Request;
use souk_sdk::{HttpFailure, HttpRequest, HttpResponse, Step, WireFault};

use crate::protocol::disconnect;

/// Where a server is asked, below the connection's address.
const PATH: &str = "/quack";
/// Of an answer without rows.
pub const SMALL_RESPONSE_BYTES: u64 = 4 << 20;
/// How long the server may take to end a connection. It is told twice, and twice that is less than the two seconds that the host waits for the end
/// of a request that was cancelled, or for what is under way where it closes the session.
const END_MS: u32 = 900;
/// HTTP requests that are under way at once: half of what a host carries out, one for each statement.
pub const UNDER_WAY_MAX: usize = 64;
/// With the ends of connections, which the other half is for: a statement that is given up is still under way when its connection is ended.
const WITH_ENDS_MAX: usize = 2 * UNDER_WAY_MAX;

pub fn message(body: Vec<u8>, response_bytes_max: u64) -> Request {
    Request::post(PATH)
        .header("content-type", "application/vnd.duckdb")
        .body(body)
        .response_bytes_max(response_bytes_max)
}

/// Ends a connection, with all that it has begun.
pub fn end(connection: &str) -> Request {
    message(disconnect(connection), SMALL_RESPONSE_BYTES).timeout_ms(END_MS)
}

/// What a request is for.
#[derive(Clone, Copy)]
pub enum Kind {
    Statement,
    /// The end of a connection, which comes before statements that wait.
    End,
}

struct Ending {
    number: u32,
    connection: String,
    is_repeated: bool,
}

#[derive(Default)]
pub struct Outgoing {
    /// Of HTTP requests and pauses.
    last: u32,
    under_way: usize,
    /// What has to wait. Somebody waits for each of them: nothing may be sent once nobody does.
    unsent: VecDeque<(Kind, HttpRequest)>,
    /// Connections that are being ended, and nobody waits for it.
    ending: Vec<Ending>,
    /// Those of which the server may not have heard.
    unheard: Vec<String>,
}

impl Outgoing {
    /// A number for an HTTP request or a pause.
    pub fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    /// Sends a request as soon as there is room for it. Returns its number.
    pub fn send(&mut self, kind: Kind, request: Request, step: &mut Step) -> u32 {
        let number = self.number();
        let request = request.numbered(number);
        match (self.has_room(kind), kind) {
            (true, _) => {
                self.under_way += 1;
                step.request(request);
            }
            (false, Kind::Statement) => self.unsent.push_back((kind, request)),
            (false, Kind::End) => self.unsent.push_front((kind, request)),
        }
        number
    }

    fn has_room(&self, kind: Kind) -> bool {
        self.under_way
            < match kind {
                Kind::Statement => UNDER_WAY_MAX,
                Kind::End => WITH_ENDS_MAX,
            }
    }

    /// Takes back a request that nobody waits for any more, unless it has been sent. Whether it had not.
    pub fn withdraw(&mut self, number: u32) -> bool {
        let before = self.unsent.len();
        self.unsent.retain(|(_, request)| request.id != number);
        self.unsent.len() < before
    }

    /// A request that was sent has come to its end.
    pub fn came(&mut self, step: &mut Step) {
        self.under_way = self.under_way.saturating_sub(1);
        let next = self.unsent.front().map(|(kind, _)| *kind);
        if next.is_some_and(|kind| self.has_room(kind))
            && let Some((_, request)) = self.unsent.pop_front()
        {
            self.under_way += 1;
            step.request(request);
        }
    }

    /// Whether a connection may be ended without anybody's waiting for it: as long as that is heard.
    pub fn may_end_beside(&self) -> bool {
        self.has_room(Kind::End) && self.unheard.is_empty()
    }

    /// Ends a connection, for whose end nobody waits. Where there is no room for that, with the next request.
    pub fn end_beside(&mut self, connection: String, step: &mut Step) {
        match self.has_room(Kind::End) {
            true => self.tell(connection, false, step),
            false => self.unheard.push(connection),
        }
    }

    fn tell(&mut self, connection: String, is_repeated: bool, step: &mut Step) {
        let number = self.send(Kind::End, end(&connection), step);
        self.ending.push(Ending {
            number,
            connection,
            is_repeated,
        });
    }

    /// How a request of that number has ended, for which nobody waits. A session may ask nothing more while nobody asks it for anything: what may not
    /// have been heard is told again with the next request.
    pub fn heard(&mut self, number: u32, outcome: &Result<HttpResponse, HttpFailure>) {
        let Some(at) = self
            .ending
            .iter()
            .position(|ending| ending.number == number)
        else {
            return;
        };
        let ending = self.ending.swap_remove(at);
        if is_unheard(outcome) && !ending.is_repeated {
            self.unheard.push(ending.connection);
        }
    }

    /// Tells the server again to end what it may not have heard of.
    pub fn tell_again(&mut self, step: &mut Step) {
        while self.has_room(Kind::End)
            && let Some(connection) = self.unheard.pop()
        {
            self.tell(connection, true, step);
        }
    }
}

/// Whether a proxy has kept something from the server, a wire broke, or none was to be had.
pub fn is_unheard(outcome: &Result<HttpResponse, HttpFailure>) -> bool {
    match outcome {
        Ok(response) => matches!(response.status, 429 | 502..=504),
        Err(failure) => matches!(failure.fault, WireFault::Reset | WireFault::Unreachable),
    }
}
