//! The rows of a result, page by page, as batches of columns. They are told while the page is read, since BigQuery sends what they are before
//! them; where it does not, they are kept as they stand until it has.

use souk_sdk::json::{self, Answer, Reader, Telling, once_raw, once_scalar, once_text};
use souk_sdk::{Error, HttpResponse};

use crate::answers::{Results, malformed, rows};
use crate::types::{self, Type};

/// Reads a page. Its rows are told if they are wanted and it is complete, with those of the first one the columns.
pub fn page<'a>(
    response: &'a HttpResponse,
    telling: Option<Telling<'_, Type>>,
) -> Result<Results<'a>, Error> {
    let mut results = Results::default();
    let mut answer = Answer::new("rows", telling);
    let read = json::members(&response.body, |name, from| match name {
        "jobComplete" => once_scalar(&mut results.job_complete, from),
        "jobReference" => once_raw(&mut results.job_reference, from),
        "schema" => answer.description(&mut results.schema, from),
        "totalRows" => once_text(&mut results.total_rows, from),
        "pageToken" => once_text(&mut results.page_token, from),
        "rows" => {
            let is_described = results.schema.is_some() && results.total_rows.is_some();
            let is_known =
                (is_described || answer.is_described()) && results.job_complete != Some(false);
            answer.take(is_known, from, |telling, from| {
                tell(telling, &results, from)
            })
        }
        _ => from.skip(),
    });
    answer.end(read)?;
    results.rows = answer.kept();
    match results.is_complete() {
        true => answer.tell_kept(|telling, from| tell(telling, &results, from))?,
        // What has rows is complete, by BigQuery's own word.
        false if answer.told().is_some() => return Err(malformed()),
        false => {}
    }
    Ok(results)
}

/// Tells the columns, if they are not told, and the rows that stand there. How many there were.
fn tell(
    telling: &mut Telling<'_, Type>,
    page: &Results<'_>,
    from: Option<&mut Reader<'_>>,
) -> Result<u64, Error> {
    let rows_max = telling.limits.rows_max;
    telling.describe(|shapes| {
        if page.total_rows() > u64::from(rows_max) {
            return Err(Error::too_many_rows(rows_max));
        }
        let schema = page.schema.ok_or_else(malformed)?;
        shapes.of(schema.as_bytes(), || types::columns(schema))
    })?;
    telling.rows(from, rows)
}
