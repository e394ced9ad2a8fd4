//! Results that a source has made so large that going through them would hold a worker: that is done in a lane, where they are dropped as well.

use std::time::Instant;

use souk_domain::ids::CompanyId;
use souk_sandbox::Output;
use souk_sandbox::formats::Format;

use crate::App;
use crate::failure::{Cause, abandoned};

/// A larger result takes a worker longer to write than others should wait: some thousand rows.
const INLINE_BYTES_MAX: usize = 256 << 10;
/// NULLs, booleans and empty texts have hardly any bytes, and each is written with its field's name.
const INLINE_CELLS_MAX: usize = 50_000;
/// Names that are written with them, mostly some twenty bytes for each; they are copied, in a millisecond.
const INLINE_NAMES_BYTES_MAX: usize = 1 << 20;

/// Values and bytes that are gone through in a millisecond or two, if nothing is written.
const PASSED_CELLS_MAX: usize = 400_000;
const PASSED_BYTES_MAX: usize = 4 << 20;

/// Names in all rows of one page, which is in memory until it is read: a page of as many values as it may have rarely has more.
const NAMES_BYTES_MAX: usize = 64 << 20;

/// Whether going through a result holds a worker for longer than others should wait. `row_bytes`: what names add to each of its rows, if it
/// is written.
pub(super) fn is_large(output: &Output, row_bytes: usize) -> bool {
    let cells = output.rows.saturating_mul(output.columns.len());
    let names = output.rows.saturating_mul(row_bytes);
    output.bytes > INLINE_BYTES_MAX || cells > INLINE_CELLS_MAX || names > INLINE_NAMES_BYTES_MAX
}

/// Whether even looking at each value once does.
pub(super) fn takes_long_to_go_through(output: &Output) -> bool {
    let cells = output.rows.saturating_mul(output.columns.len());
    cells > PASSED_CELLS_MAX || output.bytes > PASSED_BYTES_MAX
}

/// What names add to a page of so many rows, if that is not too much.
pub(super) fn names_bytes(format: Format, rows: usize, row_bytes: usize) -> Result<usize, Cause> {
    let bytes = match format {
        Format::Json | Format::JsonLines => rows.saturating_mul(row_bytes),
        // They stand there once.
        Format::Csv | Format::Arrow | Format::Parquet => row_bytes,
    };
    if bytes > NAMES_BYTES_MAX {
        return Err(Cause::bad_answer(format!(
            "the names of fields take {bytes} bytes in {rows} rows, where {NAMES_BYTES_MAX} are allowed; ask for a smaller limit or for fewer fields"
        )));
    }
    Ok(bytes)
}

/// What is made of a result: at once, or of a large one in a lane until `deadline`. `row_bytes` as in [`is_large`].
pub(super) async fn worked<T: Send + 'static>(
    app: &App,
    company: &CompanyId,
    deadline: Instant,
    (output, row_bytes): (Output, usize),
    work: impl FnOnce(Output) -> T + Send + 'static,
) -> Result<T, Cause> {
    if !is_large(&output, row_bytes) {
        return Ok(work(output));
    }
    // What is asked for often is small, and should not carry this with it.
    let worked = Box::pin(app.compute(company.as_str(), deadline, move || work(output)));
    worked.await?.ok_or_else(abandoned)
}

#[cfg(test)]
mod tests {
    use souk_sandbox::{Batch, Chunk, Column, ColumnData, ColumnKind};

    use super::*;

    /// Many values are large, however few bytes they have, and fewer ones with long names.
    #[test]
    fn bytes_values_and_names_make_a_result_large() {
        let of = |columns: usize, rows: usize, bytes: usize, row_bytes: usize| {
            let column = |place: usize| Column {
                name: format!("c{place}"),
                kind: ColumnKind::Boolean,
                nullable: true,
                native: String::new(),
            };
            let chunk = || Chunk {
                validity: None,
                data: ColumnData::Bits(vec![0; rows.div_ceil(8)]),
            };
            let batch = Batch {
                rows: rows as u32,
                chunks: (0..columns).map(|_| chunk()).collect(),
            };
            let columns: Vec<Column> = (0..columns).map(column).collect();
            is_large(&Output::new(columns.into(), vec![batch], bytes), row_bytes)
        };
        assert!(!of(5, 1_000, INLINE_BYTES_MAX, 5 * 20));
        assert!(of(1, 1, INLINE_BYTES_MAX + 1, 20));
        assert!(!of(50, 1_000, 0, 50 * 20));
        assert!(of(51, 1_000, 0, 51 * 20));
        // Of two hundred fields as long as they may be.
        assert!(!of(200, 10, 0, 64 << 10));
        assert!(of(200, 250, 0, 64 << 10));
    }

    /// Names may take so much in all rows of a page; where they stand once, they always may.
    #[test]
    fn names_of_a_page_are_bounded() {
        let of = |format, rows| names_bytes(format, rows, 64 << 10).ok();
        assert_eq!(of(Format::Json, 1_024), Some(NAMES_BYTES_MAX));
        assert_eq!(of(Format::JsonLines, 1_025), None);
        assert_eq!(of(Format::Csv, 10_000), Some(64 << 10));
        assert_eq!(
            names_bytes(Format::Json, 10_000, 200 * 25).ok(),
            Some(50_000_000)
        );
    }
}
