//! DataFusion's errors as errors of the contract, and the connector's own on their way through DataFusion.

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use std::error::Error as StdError;
use std::fmt;

use souk_sdk::{Error, ErrorClass};

/// What a statement needs is more than its session may have.
pub const OUT_OF_MEMORY: &str = "out_of_memory";

/// An error of the contract where a library wants one of the standard library's.
#[derive(Clone)]
struct Told(Error);

/// Where Parquet is filtered while it is read, errors are written down instead of handed on; ours are found again between these, which nothing
/// has that is quoted there: it is written `\u{1}`.
const MARK: char = '\u{1}';

impl fmt::Debug for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = &self.0;
        match error.class {
            ErrorClass::Source => {
                write!(
                    formatter,
                    "{MARK}{}{MARK}{}{MARK}",
                    error.code, error.message
                )
            }
            _ => write!(formatter, "Told({error:?})"),
        }
    }
}

/// The connector's own error in what was written down of one.
fn told_in(text: &str) -> Option<Error> {
    let mut parts = text.split(MARK).skip(1);
    let (code, message) = (parts.next()?, parts.next()?);
    // What follows on its end.
    parts.next()?;
    Some(Error::source_failed(code, message))
}

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

impl StdError for Told {}

/// Carries an error through DataFusion; [`of_statement`] finds it again.
pub fn through(error: Error) -> DataFusionError {
    DataFusionError::External(boxed(error))
}

/// The same for libraries that take any error.
pub fn boxed(error: Error) -> Box<dyn StdError + Send + Sync> {
    Box::new(Told(error))
}

/// The file is not what its name says, or is damaged.
pub fn broken(code: &str, message: impl Into<String>) -> Error {
    Error::source_failed(code, message)
}

/// The file cannot be read.
pub fn unreadable(error: std::io::Error) -> Error {
    if let Some(told) = error.get_ref().and_then(|inner| told(inner)) {
        return told;
    }
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => broken(
            "file_truncated",
            "the file ends before what it says that it holds: upload it anew",
        ),
        std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput => broken(
            "file_broken",
            "the file is damaged, or not what its name says",
        )
        .detail(error.to_string()),
        _ => Error::unavailable("read_failed", "the file cannot be read").detail(error.to_string()),
    }
}

/// What Parquet's and Arrow's readers say of a file.
pub fn of_file(error: &(dyn StdError + 'static)) -> Error {
    told(error).unwrap_or_else(|| damaged(error))
}

fn damaged(error: &(dyn StdError + 'static)) -> Error {
    broken(
        "file_broken",
        "the file is damaged, or not what its name says",
    )
    .detail(error.to_string())
}

/// An error met while preparing or running a statement.
pub fn of_statement(error: &DataFusionError) -> Error {
    if let Some(told) = told(error) {
        return told;
    }
    let root = error.find_root();
    let text = root.strip_backtrace();
    match in_filter(root, &text).and_then(told_in) {
        Some(told) => told,
        None => classify(root, &text).detail(text),
    }
}

/// What a filter meets while Parquet is read comes as a text that begins so, in which what is quoted is written as in a program.
const IN_FILTER: &str = "Error evaluating filter predicate";

/// What it is, where it is not a value that says so.
fn in_filter<'t>(root: &DataFusionError, text: &'t str) -> Option<&'t str> {
    let is_of_parquet = match root {
        DataFusionError::ParquetError(_) => true,
        DataFusionError::ArrowError(error, _) => matches!(**error, ArrowError::ParquetError(_)),
        _ => false,
    };
    let (_, error) = text.split_once(IN_FILTER)?;
    is_of_parquet.then_some(error)
}

const OVERFLOW: &str = "ArithmeticOverflow";
/// What DataFusion itself says of a cast, before Arrow would say that it multiplied.
const BEYOND_NANOSECONDS: &str = "to Timestamp(ns): converted value exceeds the representable";

fn classify(root: &DataFusionError, text: &str) -> Error {
    let may_be_of_cast = matches!(root, DataFusionError::Execution(_)) || text.contains(IN_FILTER);
    if may_be_of_cast && text.contains(BEYOND_NANOSECONDS) {
        return moment_beyond_nanoseconds();
    }
    if text.contains(IN_FILTER) {
        return match text.contains(OVERFLOW) {
            true => of_overflow(text),
            false => failed_at_a_value(),
        };
    }
    match root {
        DataFusionError::SQL(..) => Error::source_failed(
            "syntax_error",
            "the statement is not valid SQL for DataFusion",
        ),
        DataFusionError::SchemaError(error, _) => of_names(error),
        DataFusionError::ResourcesExhausted(_) => out_of_memory(),
        DataFusionError::ParquetError(error) => damaged(error.as_ref()),
        DataFusionError::NotImplemented(_) => Error::source_failed(
            "not_implemented",
            "the statement asks for what DataFusion does not do",
        ),
        DataFusionError::Plan(text) => of_plan(text),
        DataFusionError::ArrowError(error, _)
            if matches!(**error, ArrowError::ArithmeticOverflow(_)) =>
        {
            of_overflow(text)
        }
        // A page that holds something else than it says, which is found where it is unpacked.
        DataFusionError::ArrowError(error, _) if matches!(**error, ArrowError::ParquetError(_)) => {
            damaged(error.as_ref())
        }
        DataFusionError::ArrowError(..) => failed_at_a_value(),
        // What DataFusion calls a bug is none of the source's.
        DataFusionError::Internal(_) => {
            Error::internal("engine_failed", "the statement met a mistake of DataFusion")
        }
        _ => Error::source_failed("statement_failed", "the statement failed"),
    }
}

/// By what moments of coarser units are multiplied where they become finer ones.
const UNITS: [&str; 3] = ["1000", "1000000", "1000000000"];

/// What Arrow says that it multiplied: where whole numbers are, `computed` has told it already.
fn of_overflow(text: &str) -> Error {
    let numbers = text.split_once("Overflow happened on: ");
    let numbers = numbers.and_then(|(_, numbers)| numbers.split_once(" * "));
    let is_moment = numbers.is_some_and(|(moment, rest)| {
        let by = rest.split(|sign: char| !sign.is_ascii_digit()).next();
        moment.parse::<i64>().is_ok() && by.is_some_and(|by| UNITS.contains(&by))
    });
    match is_moment {
        true => moment_beyond_nanoseconds(),
        false => number_too_large(),
    }
}

fn of_names(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { .. } => column_not_found(),
        SchemaError::AmbiguousReference { .. } => Error::source_failed(
            "column_ambiguous",
            "the statement names a column that is there twice",
        ),
        _ => Error::source_failed(
            "column_twice",
            "the statement has two columns of one name: name one of them otherwise",
        ),
    }
}

fn of_plan(text: &str) -> Error {
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("table ") && lower.contains("not found")
        || lower.contains("table not found")
        || lower.starts_with("failed to resolve")
    {
        return Error::not_found(
            "table_not_found",
            "the statement names a table that does not exist",
        );
    }
    if lower.contains("invalid function") {
        return Error::not_found(
            "function_not_found",
            "the statement names a function that does not exist",
        );
    }
    Error::source_failed("statement_failed", "the statement cannot be planned")
}

fn column_not_found() -> Error {
    Error::not_found(
        "column_not_found",
        "the statement names a column that does not exist; a name with capital letters stands in quotes",
    )
}

fn failed_at_a_value() -> Error {
    Error::source_failed("statement_failed", "the statement failed at a value")
}

/// A number has more digits than the type has in which it is computed.
pub fn number_too_large() -> Error {
    Error::source_failed(
        NUMBER_TOO_LARGE,
        "the statement computes a number that its type cannot hold: CAST(… AS decimal(38, 0)), or decimal(76, 0), what it is computed of",
    )
}

const NUMBER_TOO_LARGE: &str = "number_too_large";
const DATE_WITH_TIME: &str = "date_with_time";

/// Whether it is one of those for which DataFusion would have answered something else.
pub fn is_of_exactness(error: &Error) -> bool {
    [NUMBER_TOO_LARGE, DATE_WITH_TIME].contains(&error.code.as_str())
}

/// A sum of intervals is none.
pub fn interval_too_large() -> Error {
    Error::source_failed(
        "interval_too_large",
        "the statement adds up more months, days or nanoseconds than an interval holds: sum(date_part('epoch', …)) adds up their seconds",
    )
}

/// A date is moved by hours, which it would lose.
pub fn date_with_hours() -> Error {
    Error::source_failed(
        DATE_WITH_TIME,
        "the statement moves a date by hours, of which it has none: CAST(… AS timestamp) the date, or name whole days",
    )
}

/// A series of moments whose step goes forward and back.
pub fn step_both_ways() -> Error {
    Error::source_failed(
        "step_both_ways",
        "the step of a series goes forward and back: give its months, days and hours one sign",
    )
}

/// A series of moments that would end where a clock is put forward or back.
pub fn series_in_a_zone() -> Error {
    Error::source_failed(
        "series_in_a_zone",
        "the statement makes a series of moments in a zone whose clocks are put forward and back: make it of timestamps without a zone, or in UTC",
    )
}

/// A moment of a float is before 1677 or after 2262, where nanoseconds do not reach.
pub fn moment_out_of_range() -> Error {
    Error::source_failed(
        "value_out_of_range",
        "the statement makes a moment of a number of seconds that is outside of what nanoseconds reach (1677 to 2262): to_timestamp_seconds(CAST(… AS bigint))",
    )
}

/// A moment becomes one in nanoseconds, by a cast or beside such a one, which do not reach its year.
fn moment_beyond_nanoseconds() -> Error {
    Error::source_failed(
        "value_out_of_range",
        "the statement makes nanoseconds of a moment that these do not reach (1677 to 2262): CAST(… AS timestamp(6)) it, or what is in nanoseconds beside it",
    )
}

/// A moment or a time of day has more digits than the contract has.
pub fn finer_than_microseconds() -> Error {
    Error::source_failed(
        "finer_than_microseconds",
        "the source holds a time of nanoseconds: date_trunc('microsecond', …), or CAST(… AS text)",
    )
}

/// A format of `to_char` would be told as it is written.
pub fn format_of_postgres() -> Error {
    Error::source_failed(
        "format_without_percent",
        "the statement gives to_char a format that names nothing of a moment: '%Y-%m-%d', as strftime has it, not 'YYYY-MM-DD'",
    )
}

/// A text would be read as midnight, whatever time of day it says.
pub fn format_without_time() -> Error {
    Error::source_failed(
        "format_without_time",
        "the statement reads a time of day by a format that does not name all of it: an hour and its minutes ('%H:%M'), and with '%I' also '%p'",
    )
}

pub fn out_of_memory() -> Error {
    Error::source_failed(
        OUT_OF_MEMORY,
        "the statement needs more memory than a session has",
    )
}

/// The connector's own error, however deep others have packed it.
fn told(error: &(dyn StdError + 'static)) -> Option<Error> {
    if let Some(Told(error)) = error.downcast_ref::<Told>() {
        return Some(error.clone());
    }
    // What has no source of its own in the standard library's sense.
    if let Some(DataFusionError::Shared(shared)) = error.downcast_ref::<DataFusionError>() {
        return told(shared.as_ref());
    }
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return error.get_ref().and_then(|inner| told(inner));
    }
    error.source().and_then(told)
}
