//! Asks a SQLite that counts what sellers ask: `counted fill FILE` makes tables, `counted ask FILE` has a session of this connector answer statements
//! about them. Both are in `counted.sql`. Run by `../c/count`, which builds it and says what for.
//!
//! Each statement is asked until SQLite's machine has made [`STEPS`] instructions for it, so that most weigh about as much, and as much on any machine.

use std::error::Error;
use std::path::Path;

use rusqlite::{Connection, StatementStatus};
use souk_connector_sqlite::Session;
use souk_sdk::{Event, Limits, Machine, Query, Request, Settings, Step, Value};

const STATEMENTS: &str = include_str!("counted.sql");
const STEPS: i32 = 2_000_000;
/// Of a row by its key, which takes a dozen instructions.
const TIMES_MAX: i32 = 20_000;
/// A session that is opened anew prepares its statement anew, too.
const ASKED_IN_A_SESSION: usize = 100;
const LIMITS: Limits = Limits {
    rows_max: 10_000,
    bytes_max: 16 << 20,
    timeout_ms: 60_000,
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (made, asked) = STATEMENTS
        .split_once("-- asked\n\n")
        .ok_or("nothing is asked")?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["version"] => {
            println!("{}", rusqlite::version());
            Ok(())
        }
        ["fill", file] => Ok(Connection::open(file)?.execute_batch(made)?),
        ["ask", file] => asked
            .split("\n\n")
            .try_for_each(|statement| ask(Path::new(file), statement.trim())),
        _ => Err("counted version, or counted fill|ask FILE".into()),
    }
}

fn ask(file: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    let (steps, parameters) = weigh(file, text)?;
    let times = (STEPS / steps.max(1)).clamp(1, TIMES_MAX);
    let numbers: Vec<i64> = (0..times).map(|n| i64::from(n % 1_000 + 1)).collect();
    for numbers in numbers.chunks(ASKED_IN_A_SESSION) {
        let mut session = open(file)?;
        for &number in numbers {
            let request = Request::Query(Query {
                text: text.into(),
                parameters: vec![Value::Int64(number); parameters],
                limits: LIMITS,
            });
            let mut step = Step::default();
            session.submit(1, request, &mut step).map_err(told)?;
            for event in step.into_parts().1 {
                if let Event::Failed(failure) = event {
                    return Err(format!("{failure:?} of {text}").into());
                }
            }
        }
    }
    Ok(())
}

/// How many instructions `text` takes when it is asked once, which is counted, too, and how many values it has.
fn weigh(file: &Path, text: &str) -> Result<(i32, usize), Box<dyn Error>> {
    let connection = Connection::open(file)?;
    let mut statement = connection.prepare(text)?;
    let parameters = statement.parameter_count();
    let mut rows = statement.query(rusqlite::params_from_iter(vec![1; parameters]))?;
    while rows.next()?.is_some() {}
    drop(rows);
    Ok((statement.get_status(StatementStatus::VmStep), parameters))
}

fn open(file: &Path) -> Result<Session, Box<dyn Error>> {
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return Err("FILE is a file in a directory".into());
    };
    let settings = Settings {
        engine: "sqlite".into(),
        json: format!("{{\"database\":{:?}}}", name.to_string_lossy()),
    };
    let mut session = Session::open_in(directory, &settings).map_err(told)?;
    session.start(&mut Step::default()).map_err(told)?;
    Ok(session)
}

fn told(error: souk_sdk::Error) -> String {
    format!("{error:?}")
}
