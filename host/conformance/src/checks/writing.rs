//! Whatever a statement says, it must not change the source.

use std::time::Instant;

use souk_domain::sql::RowSource;

use super::truth::{Asked, Truth};
use super::{Suite, Verdict, rows};
use crate::profile::Place;
use crate::subject::query;

const ADVICE: &str = "hold read-only at the source: a read-only transaction or file, or credentials that cannot write; where the source has neither, send nothing but what is known to read";

pub async fn run(suite: &mut Suite<'_>, place: &Place, truth: Option<&Truth>) {
    let mut statements: Vec<String> = suite
        .subject
        .profile
        .writes
        .iter()
        .map(|write| write.text.clone())
        .collect();
    statements.extend(truth.map(harmless).unwrap_or_default());
    let begun = Instant::now();
    let verdict = match statements.is_empty() {
        true => Verdict::skipped(
            "the kit knows no statement that writes: name some in the profile ([[write]])",
        ),
        false => refused(suite, place, truth, &statements).await,
    };
    suite.found("read_only.held", begun, verdict);
}

/// Statements that write, and would change nothing if they were let through.
fn harmless(truth: &Truth) -> Vec<String> {
    let source = RowSource::Table {
        schema: truth.table.schema.as_deref(),
        table: &truth.table.name,
    };
    // The host's own statement names the table as the dialect wants it.
    let select = souk_domain::sql::columns(truth.dialect, &source);
    let name = select
        .split_once("\nFROM ")
        .and_then(|(_, rest)| rest.split_once(" AS "))
        .map(|(name, _)| name.to_owned())
        .unwrap_or_default();
    let column = truth.dialect.quote(&truth.table.fields[0].name);
    vec![
        format!("DELETE FROM {name} WHERE 1 = 0"),
        format!("UPDATE {name} SET {column} = {column} WHERE 1 = 0"),
        format!("INSERT INTO {name} SELECT * FROM {name} WHERE 1 = 0"),
        format!("SELECT 1; DELETE FROM {name} WHERE 1 = 0"),
    ]
}

async fn refused(
    suite: &Suite<'_>,
    place: &Place,
    truth: Option<&Truth>,
    statements: &[String],
) -> Verdict {
    for text in statements {
        let source = suite.subject.source(place);
        if let Ok(output) = suite.subject.ask(&source, query(text, Vec::new())).await {
            return Verdict::failed(
                format!("{text}\nwas carried out ({} rows)", output.rows),
                ADVICE,
            );
        }
    }
    let Some(truth) = truth else {
        return Verdict::passed();
    };
    let (text, values) = truth.statement(&Asked::ordered(truth.key()));
    let source = suite.subject.source(place);
    match suite.subject.ask(&source, query(&text, values)).await {
        Ok(output) if rows(&output) == truth.rows || !truth.is_whole => Verdict::passed(),
        Ok(_) => Verdict::failed(
            "after statements that write the table has other rows",
            ADVICE,
        ),
        Err(fault) => Verdict::failed(super::told(&fault), super::advice(&fault)),
    }
}
