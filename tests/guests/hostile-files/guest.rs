//! A connector for files that wants more than its directory, or breaks, as a word of the statement says:
//! `writes`, `reads` (the bound paths), `opens` (the same, past the standard library), `environment`, `traps`,
//! `exits`, `loops`, `memory`, `keeps` (48 MiB for as long as the session lives). What it tried is answered a row each, with the kind of the error if there was one.

mod attempts;

use std::path::Path;

use attempts::{Attempt, reads, told, writes};
use souk_guests::{Behaviour, words};
use souk_sdk::{
    Batch, Cell, ColumnBuilder, ColumnType, Error, Need, Query, Settings, Step, Value, column,
};

/// Where the host puts the granted directory.
const DIRECTORY: &str = "/data";
/// What a session keeps that is told to.
const KEPT_BYTES: usize = 48 << 20;

struct HostileFiles;

souk_guests::export!(HostileFiles);

impl Behaviour for HostileFiles {
    const NAME: &'static str = "hostile-files";
    const NEED: Need = Need::Directory;

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(HostileFiles)
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let directory = Path::new(DIRECTORY);
        let paths = query.parameters.iter().filter_map(|value| match value {
            Value::Text(path) => Some(path.as_str()),
            _ => None,
        });
        let attempts = match words(&query).nth(1) {
            Some("writes") => writes(directory),
            Some("reads") => reads(directory, paths),
            Some("opens") => paths.map(opens).collect(),
            Some("environment") => environment(),
            Some("traps") => panic!("as the statement wants it"),
            Some("exits") => std::process::exit(7),
            Some("loops") => loops(),
            Some("memory") => memory(),
            Some("keeps") => {
                std::mem::forget(std::hint::black_box(vec![0xa5u8; KEPT_BYTES]));
                Vec::new()
            }
            _ => return Err(Error::internal("no_word", "the statement names no deed")),
        };
        answer(id, &attempts, step)
    }
}

fn answer(id: u32, attempts: &[Attempt], step: &mut Step) -> Result<(), Error> {
    let mut tried = ColumnBuilder::new(ColumnType::Text);
    let mut outcome = ColumnBuilder::new(ColumnType::Text);
    for attempt in attempts {
        tried.push(Cell::Text(&attempt.0))?;
        outcome.push(Cell::Text(&told(attempt)))?;
    }
    let columns = ["tried", "outcome"].map(|name| column(name, ColumnType::Text, "text"));
    step.columns(id, 0, Some(columns.into()));
    step.batch(
        id,
        Batch {
            rows: attempts.len() as u32,
            chunks: vec![tried.finish(), outcome.finish()],
        },
    );
    step.done(id);
    Ok(())
}

/// Asks the host itself to open a path below the directory: the standard library would not even pass on one
/// that begins with a slash.
#[cfg(target_arch = "wasm32")]
fn opens(path: &str) -> Attempt {
    use std::ffi::{CString, c_char, c_int};
    use std::os::fd::AsRawFd;

    /// Of wasi-libc.
    const O_RDONLY: c_int = 0x0400_0000;
    #[allow(
        unsafe_code,
        reason = "wasi-libc's only way past its own look at a path"
    )]
    unsafe extern "C" {
        fn __wasilibc_nocwd_openat_nomode(fd: c_int, path: *const c_char, flags: c_int) -> c_int;
    }
    let opened = std::fs::File::open(DIRECTORY).and_then(|directory| {
        let path = CString::new(path)?;
        #[allow(unsafe_code, reason = "the path outlives the call")]
        let fd = unsafe {
            __wasilibc_nocwd_openat_nomode(directory.as_raw_fd(), path.as_ptr(), O_RDONLY)
        };
        match fd {
            0.. => Ok("opened".to_owned()),
            _ => Err(std::io::Error::last_os_error()),
        }
    });
    (path.to_owned(), opened)
}

#[cfg(not(target_arch = "wasm32"))]
fn opens(_path: &str) -> Attempt {
    unreachable!("a guest is built for wasm32 only")
}

/// What the host's process would give away.
fn environment() -> Vec<Attempt> {
    let variables = std::env::vars().map(|(name, value)| (name, Ok(value)));
    let arguments = std::env::args().map(|argument| (argument, Ok("argument".to_owned())));
    variables.chain(arguments).collect()
}

fn loops() -> ! {
    let mut turns = 0u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

fn memory() -> ! {
    /// Small enough that the last one nearly fills what there is.
    const PIECE_BYTES: usize = 1 << 20;
    let mut pieces = Vec::new();
    loop {
        pieces.push(std::hint::black_box(vec![0xa5u8; PIECE_BYTES]));
    }
}
