//! The behaviours: one module each, and what several of them need.

mod closes_at_once;
mod computes_while_receiving;
mod deep_json;
mod done_twice;
mod eats_memory_at_once;
mod eats_memory_in_open;
mod eats_memory_slowly;
mod empty_batches;
mod errands_of_errands;
mod errands_that_loop;
mod errands_that_never_end;
mod exits_the_process;
mod fills_memory;
mod floods_asides;
mod floods_errands;
mod floods_events;
mod floods_pauses;
mod floods_requests;
mod floods_requests_in_open;
mod floods_sends;
mod grows_resources;
mod holds_memory;
mod honest;
mod honest_computing;
mod invalid_utf8;
mod large_catalogue;
mod large_errors;
mod large_session_errors;
mod large_values;
mod lies_about_alignment;
mod lies_about_lengths;
mod lies_about_rows;
mod long_column_names;
mod long_decimals;
mod loops_in_cancel;
mod loops_in_open;
mod loops_in_query;
mod loops_in_receive;
mod loops_in_schema;
mod loops_in_start;
mod malformed_decimals;
mod never_done;
mod never_ready;
mod new_shapes_every_time;
mod panics_with_a_long_message;
mod pauses_for_ever;
mod pauses_in_start;
mod plays_ping_pong;
mod prints_in_pieces;
mod ready_twice;
mod recurses_for_ever;
mod requests_for_ever;
mod retries_in_a_century;
mod starts_tls_late;
mod tiny_batches;
mod too_many_bytes;
mod too_many_columns;
mod too_many_rows;
mod traps_after_a_while;
mod traps_at_once;
mod traps_in_cancel;
mod traps_in_open;
mod traps_on_drop;
mod unknown_ids;
mod waits_for_ever;
mod writes_to_the_log;

use crate::{Behaviour, one_row};
use souk_sdk::{Batch, Cell, ColumnBuilder, ColumnType, Error, HttpRequest, Input, Step, column};

macro_rules! table {
    ($($name:ident)*) => {
        /// The behaviour of this name; a good one where there is none.
        pub fn find(name: &str) -> Box<dyn Behaviour> {
            match name {
                $(stringify!($name) => Box::new($name::Guest::default()),)*
                _ => Box::new(honest::Guest),
            }
        }
    };
}

table! {
    closes_at_once
    computes_while_receiving
    deep_json
    done_twice
    eats_memory_at_once
    eats_memory_in_open
    eats_memory_slowly
    empty_batches
    errands_of_errands
    errands_that_loop
    errands_that_never_end
    exits_the_process
    fills_memory
    floods_asides
    floods_errands
    floods_events
    floods_pauses
    floods_requests
    floods_requests_in_open
    floods_sends
    grows_resources
    holds_memory
    honest
    honest_computing
    invalid_utf8
    large_catalogue
    large_errors
    large_session_errors
    large_values
    lies_about_alignment
    lies_about_lengths
    lies_about_rows
    long_column_names
    long_decimals
    loops_in_cancel
    loops_in_open
    loops_in_query
    loops_in_receive
    loops_in_schema
    loops_in_start
    malformed_decimals
    never_done
    never_ready
    new_shapes_every_time
    panics_with_a_long_message
    pauses_for_ever
    pauses_in_start
    plays_ping_pong
    prints_in_pieces
    ready_twice
    recurses_for_ever
    requests_for_ever
    retries_in_a_century
    starts_tls_late
    tiny_batches
    too_many_bytes
    too_many_columns
    too_many_rows
    traps_after_a_while
    traps_at_once
    traps_in_cancel
    traps_in_open
    traps_on_drop
    unknown_ids
    waits_for_ever
    writes_to_the_log
}

/// Takes memory, and uses it, until there is no more.
pub fn all_memory() -> ! {
    /// Small enough that the last one nearly fills what there is.
    const PIECE_BYTES: usize = 1 << 20;
    let mut pieces = Vec::new();
    loop {
        pieces.push(std::hint::black_box(vec![0xa5u8; PIECE_BYTES]));
    }
}

fn trap() -> ! {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    unreachable!("a guest is built for wasm32 only")
}

/// Sends a byte, so that a source that answers does.
fn ask(step: &mut Step) {
    step.send(b"?");
}

/// Answers the statement of whose number its errand has, if that has failed in these words.
fn conferred(input: Input, words: &str, step: &mut Step) -> Result<(), Error> {
    let Input::Conferred(reply) = input else {
        return Ok(());
    };
    match reply.failure {
        Some(failure) if failure.contains(words) => one_row(reply.id, step)?,
        other => {
            let told = other.unwrap_or_else(|| "it was done".into());
            step.failed(reply.id, Error::internal("errand", told));
        }
    }
    Ok(())
}

fn http_request(id: u32) -> HttpRequest {
    HttpRequest {
        id,
        method: "GET".into(),
        path: "/".into(),
        headers: Vec::new(),
        body: Vec::new(),
        timeout_ms: 60_000,
        response_bytes_max: 1 << 20,
    }
}

/// One row of one column, `id`, with this value.
fn one_value(id: u32, kind: ColumnType, value: Cell<'_>, step: &mut Step) -> Result<(), Error> {
    let mut builder = ColumnBuilder::new(kind);
    builder.push(value)?;
    let chunks = vec![builder.finish()];
    step.columns(id, 0, Some(vec![column("id", kind, "lie")]));
    step.batch(id, Batch { rows: 1, chunks });
    step.done(id);
    Ok(())
}

/// A list at this address with so many numbers: what a guest written by hand could pass.
#[cfg(target_arch = "wasm32")]
#[allow(
    unsafe_code,
    reason = "a lie about memory; nothing here reads the list"
)]
fn lying_list(address: usize, length: usize) -> Vec<i64> {
    // SAFETY: none. The list goes out as an address and a length, unread, and the session ends with it.
    unsafe { Vec::from_raw_parts(address as *mut i64, length, length) }
}

#[cfg(not(target_arch = "wasm32"))]
fn lying_list(_address: usize, _length: usize) -> Vec<i64> {
    unreachable!("a guest is built for wasm32 only")
}

/// A resource of the component's own, in the host's table.
#[cfg(target_arch = "wasm32")]
fn new_resource() {
    use souk_sdk::bindings::exports::souk::connector::connector::Session;

    std::mem::forget(Session::new(unborn::Unborn));
}

#[cfg(not(target_arch = "wasm32"))]
fn new_resource() {
    unreachable!("a guest is built for wasm32 only")
}

/// A session that nobody opened.
#[cfg(target_arch = "wasm32")]
mod unborn {
    use souk_sdk::bindings::exports::souk::connector::connector::{GuestSession, Session};
    use souk_sdk::bindings::souk::connector::types::Step;
    use souk_sdk::{Error, Input, Request, Settings};

    pub struct Unborn;

    impl GuestSession for Unborn {
        fn open(_settings: Settings) -> Result<Session, Error> {
            Err(nobody())
        }

        fn start(&self, _now: u64) -> Result<Step, Error> {
            Err(nobody())
        }

        fn submit(&self, _id: u32, _request: Request, _now: u64) -> Result<Step, Error> {
            Err(nobody())
        }

        fn receive(&self, _input: Input) -> Result<Step, Error> {
            Err(nobody())
        }

        fn cancel(&self, _id: u32) -> Result<Step, Error> {
            Err(nobody())
        }
    }

    fn nobody() -> Error {
        Error::internal("unborn", "nobody opened this session")
    }
}
