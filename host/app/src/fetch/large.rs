//! Results that a source has made so large that going through them would hold a worker: that is done in a lane, where they are dropped as well.

use std::time::Instant;

use souk_domain::ids::CompanyId;
use souk_sandbox::Output;

use crate::App;
use crate::failure::{Cause, abandoned};

/// A larger result takes a worker longer to write than others should wait: some thousand rows.
const INLINE_BYTES_MAX: usize = 256 << 10;
/// NULLs, booleans and empty texts have hardly any bytes, and each is written with its field's name.
const INLINE_CELLS_MAX: usize = 50_000;

/// Whether going through a result holds a worker for longer than others should wait.
pub(super) fn is_large(output: &Output) -> bool {
    let cells = output.rows.saturating_mul(output.columns.len());
    output.bytes > INLINE_BYTES_MAX || cells > INLINE_CELLS_MAX
}

/// What is made of a result: at once, or of a large one in a lane until `deadline`.
pub(super) async fn worked<T: Send + 'static>(
    app: &App,
    company: &CompanyId,
    deadline: Instant,
    output: Output,
    work: impl FnOnce(Output) -> T + Send + 'static,
) -> Result<T, Cause> {
    if !is_large(&output) {
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

    /// Many values are large, however few bytes they have.
    #[test]
    fn bytes_and_values_make_a_result_large() {
        let of = |columns: usize, rows: usize, bytes: usize| {
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
            is_large(&Output::new(columns.into(), vec![batch], bytes))
        };
        assert!(!of(5, 1_000, INLINE_BYTES_MAX));
        assert!(of(1, 1, INLINE_BYTES_MAX + 1));
        assert!(!of(50, 1_000, 0));
        assert!(of(51, 1_000, 0));
    }
}
