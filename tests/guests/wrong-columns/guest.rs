//! Answers one row of `id` and `label` or, where the statement binds one of these words (`WHERE label = 'extra'`),
//! of other columns than it was asked for: `extra`, `fewer`, `renamed`, `swapped`, `none`. A column that nobody
//! asked for holds `hidden`.

use souk_guests::Behaviour;
use souk_sdk::{
    Batch, Cell, Column, ColumnBuilder, ColumnType, Error, Query, Settings, Step, Value, column,
};

struct WrongColumns;

souk_guests::export!(WrongColumns);

impl Behaviour for WrongColumns {
    const NAME: &'static str = "wrong-columns";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(WrongColumns)
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let word = query.parameters.iter().find_map(|value| match value {
            Value::Text(word) => Some(word.as_str()),
            _ => None,
        });
        let columns: Vec<Column> = names(word)
            .iter()
            .map(|name| match *name {
                "id" => column("id", ColumnType::Int64, "int8"),
                name => column(name, ColumnType::Text, "text"),
            })
            .collect();
        let mut chunks = Vec::new();
        for column in &columns {
            let mut builder = ColumnBuilder::new(column.kind);
            builder.push(match column.name.as_str() {
                "id" => Cell::Int64(1),
                "label" => Cell::Text("shown"),
                _ => Cell::Text("hidden"),
            })?;
            chunks.push(builder.finish());
        }
        step.columns(id, 0, Some(columns));
        step.batch(id, Batch { rows: 1, chunks });
        step.done(id);
        Ok(())
    }
}

fn names(word: Option<&str>) -> &'static [&'static str] {
    match word {
        Some("extra") => &["id", "label", "secret"],
        Some("fewer") => &["id"],
        Some("renamed") => &["id", "secret"],
        Some("swapped") => &["label", "id"],
        Some("none") => &[],
        _ => &["id", "label"],
    }
}
