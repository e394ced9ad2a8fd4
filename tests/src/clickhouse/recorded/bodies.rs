//! What the engine was recorded to answer (`plugins/clickhouse/tests/recorded/statements.sql`), by the names of those files: a head of names and
//! types, and the rows behind it.

use std::ops::Range;

macro_rules! recorded {
    ($($name:literal),*) => {
        &[$((
            $name,
            include_bytes!(concat!("../../../../plugins/clickhouse/tests/recorded/", $name, ".bin"))
                .as_slice(),
        )),*]
    };
}

/// Each of one row, but for `empty` and `rows`.
const BODIES: &[(&str, &[u8])] = recorded![
    "integers", "floats", "decimals", "texts", "days", "times", "nulls", "nested", "empty", "rows"
];
/// The schema that they are tables of.
pub const SCHEMA: &str = "shop";
/// A hundred rows: a number, `xxxxx`, and a number or NULL.
pub const ROWS: &str = "rows";

/// What a statement on this table was recorded to answer. Whatever has no record is [`ROWS`].
pub fn of(table: &str) -> &'static [u8] {
    let found = BODIES.iter().find(|(name, _)| *name == table);
    match found.or(BODIES.last()) {
        Some((_, body)) => body,
        None => &[],
    }
}

/// Names and types of a body's columns, and where its rows begin.
fn head(body: &[u8]) -> (Vec<(&str, &str)>, usize) {
    let count = usize::from(body[0]);
    let mut at = 1;
    let mut texts = Vec::new();
    for _ in 0..2 * count {
        let end = at + 1 + usize::from(body[at]);
        texts.push(std::str::from_utf8(&body[at + 1..end]).expect("a text"));
        at = end;
    }
    let (names, types) = texts.split_at(count);
    let columns = names.iter().copied().zip(types.iter().copied());
    (columns.collect(), at)
}

/// Some rows of [`ROWS`], in the order that they have there.
pub fn rows(wanted: Range<usize>) -> Vec<u8> {
    let body = of(ROWS);
    let (_, begin) = head(body);
    let mut answer = body[..begin].to_vec();
    let mut rest = &body[begin..];
    let mut row = 0;
    while !rest.is_empty() {
        // A number of eight bytes, a text behind its length, whether there is no other number, and that.
        let mark = 8 + 1 + usize::from(rest[8]);
        let length = mark + if rest[mark] == 0 { 5 } else { 1 };
        if wanted.contains(&row) {
            answer.extend_from_slice(&rest[..length]);
        }
        rest = &rest[length..];
        row += 1;
    }
    answer
}

/// An answer of texts in one row.
pub fn texts(columns: &[(&str, &str)]) -> Vec<u8> {
    let head = columns.iter().map(|(name, _)| (*name, "String"));
    let mut body = begun(&head.collect::<Vec<_>>());
    for (_, value) in columns {
        sized(&mut body, value);
    }
    body
}

/// The catalog of the connector's own statement: every table, or those of these names.
pub fn catalog(wanted: &[&str]) -> Vec<u8> {
    let mut answer = begun(&[
        ("schema", "String"),
        ("table", "String"),
        ("type", "String"),
        ("row_estimate", "Nullable(Int64)"),
        ("field", "String"),
        ("field_type", "String"),
        ("nullable", "Bool"),
        ("primary_key", "Bool"),
    ]);
    let mut tables: Vec<_> = BODIES.iter().collect();
    tables.sort_unstable_by_key(|(name, _)| *name);
    for (table, body) in tables {
        if !wanted.is_empty() && !wanted.contains(table) {
            continue;
        }
        for (field, kind) in head(body).0 {
            for text in [SCHEMA, *table, "table"] {
                sized(&mut answer, text);
            }
            // How many rows it has, nobody knows.
            answer.push(1);
            sized(&mut answer, field);
            sized(&mut answer, kind);
            let nullable = ["Nullable(", "LowCardinality(Nullable(", "Variant("];
            let is_nullable = nullable.iter().any(|begin| kind.starts_with(begin));
            answer.extend([u8::from(is_nullable), 0]);
        }
    }
    answer
}

fn begun(columns: &[(&str, &str)]) -> Vec<u8> {
    let mut body = vec![u8::try_from(columns.len()).expect("few columns")];
    for (name, _) in columns {
        sized(&mut body, name);
    }
    for (_, kind) in columns {
        sized(&mut body, kind);
    }
    body
}

fn sized(body: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    // Seven bits in each byte, the low ones first; all but the last one say that there are more.
    while length > 0x7f {
        body.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    body.push(length as u8);
    body.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of the rows is whole rows: all of them are what was recorded.
    #[test]
    fn rows_are_whole() {
        assert_eq!(rows(0..100), of(ROWS));
        let (columns, begin) = head(of(ROWS));
        assert_eq!(columns[0], ("n", "UInt64"));
        let parts = [0..40, 40..80, 80..200].map(|part| rows(part)[begin..].to_vec());
        assert_eq!(parts.concat(), of(ROWS)[begin..]);
        assert_eq!(rows(100..141), of(ROWS)[..begin]);
    }
}
