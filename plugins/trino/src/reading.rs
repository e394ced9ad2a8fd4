//! The rows of a result, page by page, as batches of columns. They are told while the page is read, since Trino sends what they are before
//! them; where it does not, they are kept as they stand until it has.

use souk_sdk::json::{self, Answer, Reader, Telling, once_part, once_text};
use souk_sdk::{Column, Error, HttpResponse};

use crate::answers::{Results, malformed};
use crate::types::{self, Type};

/// The text that describes columns.
const DESCRIBED_BYTES_MAX: usize = 1 << 20;

/// Reads a page. Its rows are told if they are wanted, with those of the first page that has them the columns.
pub fn page<'a>(
    response: &'a HttpResponse,
    telling: Option<Telling<'_, Type>>,
) -> Result<Results<'a>, Error> {
    let mut results = Results::default();
    let mut answer = Answer::new("data", telling);
    let read = json::members(&response.body, |name, from| match name {
        "id" => once_text(&mut results.id, from),
        "nextUri" => once_text(&mut results.next_uri, from),
        "columns" => answer.description(&mut results.columns, from),
        "error" => once_part(&mut results.error, from),
        "data" => {
            let is_known = results.described().is_some();
            answer.take(is_known, from, |telling, from| {
                tell(telling, &results, from)
            })
        }
        _ => from.skip(),
    });
    answer.end(read)?;
    if results.id.is_none() {
        return Err(malformed().detail("an answer without an id"));
    }
    results.data = answer.kept();
    answer.tell_kept(|telling, from| tell(telling, &results, from))?;
    results.told = answer.told().unwrap_or_default();
    Ok(results)
}

/// Tells the columns, if they are not told, and the rows that stand there. How many there were.
fn tell(
    telling: &mut Telling<'_, Type>,
    page: &Results<'_>,
    from: Option<&mut Reader<'_>>,
) -> Result<u64, Error> {
    match (telling.reading.shape(), page.described()) {
        // They come before the first row, and not with the first answer.
        (None, None) if page.has_rows() => return Err(malformed()),
        (None, None) => return Ok(0),
        // Of one statement they do not change.
        (Some(shape), Some(same)) if !shape.is_described_by(same.as_bytes()) => {
            return Err(malformed());
        }
        _ => {}
    }
    telling.describe(|shapes| {
        let described = page.described().ok_or_else(malformed)?;
        shapes.of(described.as_bytes(), || columns(described))
    })?;
    telling.rows(from, |from, table| table.rows(from))
}

/// The columns of a description, each with its type.
fn columns(described: &str) -> Result<(Vec<Column>, Vec<Type>), Error> {
    if described.len() > DESCRIBED_BYTES_MAX {
        return Err(Error::limit_exceeded(
            "columns_too_long",
            "the names and types of the result's columns are longer than 1 MiB",
        ));
    }
    types::columns(described)
}
