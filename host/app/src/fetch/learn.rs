//! What a source says about the columns that an endpoint's pages need: whether it has them, and of which
//! types they are.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use souk_domain::ids::CompanyId;
use souk_domain::sql::Dialect;
use souk_sandbox::{
    Blame, Column, ColumnKind, Fault, Limits, Output, Query, Request, SchemaFilter, Source,
};
use souk_store::products::learned as store;

use super::asked::PAGE_BYTES_MAX;
use super::columns::other_columns;
use super::large::worked;
use super::whole;
use crate::App;
use crate::connections::source::source;
use crate::failure::Cause;
use crate::preview;
use crate::products::{EndpointSnapshot, Learned, LearnedColumn};

/// A table with more columns than this is not sold by the row.
const CATALOG_ROWS_MAX: u32 = 2_000;
/// Rows of a file by which the types of its columns are known.
const ROWS_OF_FILES: u32 = 200;
/// Every page is sorted by the key. PostgreSQL and SQL Server allow half as many fields.
const KEY_FIELDS_MAX: usize = 64;
/// Of their names together.
const KEY_BYTES_MAX: usize = 16 << 10;

/// Asks the source for the types of the columns and, of a table, for its key and for what may be NULL: for `caller`, who needs to know them.
pub async fn learn(
    app: &App,
    endpoint: &EndpointSnapshot,
    caller: &CompanyId,
    deadline: Instant,
) -> Result<Learned, Cause> {
    let company = &endpoint.row.company_id;
    let source = source(app, company, &endpoint.row.written.connection_id).await?;
    if let Some(text) = endpoint.whole() {
        let output = whole::ask(app, endpoint, text, caller, deadline).await?;
        let needed: Vec<String> = endpoint.needed().into_iter().map(str::to_owned).collect();
        let read = move |output: Output| of_whole(&needed, &output);
        return worked(app, company, deadline, (output, 0), read).await?;
    }
    let mut table = Table::default();
    if let Some(name) = &endpoint.row.written.details.source_table {
        let filter = SchemaFilter {
            schemas: endpoint
                .row
                .written
                .details
                .source_schema
                .iter()
                .cloned()
                .collect(),
            tables: vec![name.clone()],
            include_fields: true,
            limits: Limits::new(CATALOG_ROWS_MAX, PAGE_BYTES_MAX),
        };
        let is_ordered = !endpoint.plan.order_by.is_empty();
        let request = Request::Schema(filter);
        let asked = app
            .sandbox
            .run_for(caller.as_str(), source.shared(), request, deadline)
            .await;
        let catalog = match asked {
            Ok(catalog) => catalog,
            // Pages work without knowing more.
            Err(_) if is_ordered => Output::default(),
            Err(fault) => return Err(fault.into()),
        };
        // One that is there may have no fields that can be read, as SQLite's view on a table that is gone. Of a broken file the catalog's error was told
        // above: a connector of files answers it where a table is asked for by its name.
        let is_there = catalog.rows > 0;
        let needed: Vec<String> = endpoint.needed().into_iter().map(str::to_owned).collect();
        let read = move |catalog: Output| Table::of(&catalog, &needed);
        table = worked(app, company, deadline, (catalog, 0), read).await??;
        if !is_ordered && !is_there {
            let schema = &endpoint.row.written.details.source_schema;
            return Err(Cause::NoSuchTable(match schema {
                Some(schema) => format!("{schema}.{name}"),
                None => name.clone(),
            }));
        }
        if table.key.is_empty() && !is_ordered {
            return Err(match table.keys_differ {
                true => Cause::SeveralTables(name.clone()),
                false => Cause::NoOrder,
            });
        }
    }
    let probe = async |rows: u32| {
        let request = Request::Query(Query {
            text: endpoint.probe(rows).into(),
            parameters: Vec::new(),
            limits: Limits::new(rows, PAGE_BYTES_MAX),
        });
        let (caller, source) = (caller.as_str(), source.shared());
        app.sandbox.run_for(caller, source, request, deadline).await
    };
    let answer = match endpoint.plan.dialect {
        // Where each value has its own type, one row may say nothing, or something else.
        Dialect::Sqlite => match probe(ROWS_OF_FILES).await {
            Ok(output) if output.columns.iter().any(is_mixture) => {
                probe(1).await.map(|first| unmixed(output, &first))
            }
            Ok(output) => Ok(output),
            Err(_) => probe(1).await,
        },
        _ => probe(1).await,
    };
    let output = match answer {
        Ok(output) => output,
        // Which of the names it is that the source does not know, it says in its own words, or not at all.
        Err(fault) => {
            let of = (caller, deadline);
            return Err(unknown_names(app, endpoint, source.shared(), fault, of).await);
        }
    };
    let learned = Learned {
        columns: columns(&endpoint.needed(), &output, &table)?,
        key: table.key,
        types_only: false,
    };
    // An empty result may come without its columns.
    if output.rows == 0 && output.columns.is_empty() {
        return Ok(learned);
    }
    // Where a quoted name that no column has is a text, the answer has a column of another name.
    let missing = endpoint.missing(|name| learned.kind(name).is_some());
    match missing.is_empty() {
        true => Ok(learned),
        false => Err(Cause::NoSuchColumns(missing)),
    }
}

/// Values of several types, which no row says of itself. (What is declared to be a document is one.)
fn is_mixture(column: &Column) -> bool {
    column.kind == ColumnKind::Json && !column.native.eq_ignore_ascii_case("json")
}

/// The first row's types for columns that are mixtures: by those they can be compared.
fn unmixed(mut output: Output, first: &Output) -> Output {
    let columns = output.columns.iter().enumerate();
    let columns = columns.map(|(place, column)| match first.columns.get(place) {
        Some(first) if is_mixture(column) => first.clone(),
        _ => column.clone(),
    });
    output.columns = columns.collect();
    output
}

/// Keeps what a test has learnt beside the endpoint, so that whoever saves it next, or another one of the same source, is told at once
/// what that source cannot do. Pages of a published endpoint go on as they were read, unless its types have changed.
pub async fn keep(app: &App, endpoint: &EndpointSnapshot, learned: &Learned) {
    let row = &endpoint.row;
    let known = Learned::stored(row);
    // An empty result may come without its columns.
    if learned.columns.is_empty()
        || known
            .as_ref()
            .is_some_and(|known| known.has_types_of(learned))
    {
        return;
    }
    let kept = async {
        let text = preview::text(&Learned {
            types_only: known.is_none_or(|known| known.types_only),
            ..learned.clone()
        })?;
        app.db
            .write(async |tx| store::keep(tx, &row.id, row.updated_at, &text).await)
            .await?;
        Ok::<_, Cause>(())
    };
    // The test has said what it has to say, and the next one tries again.
    if let Err(error) = kept.await {
        tracing::warn!(%error, product = %row.id, "what a test has learnt was not kept");
    }
}

/// What a whole result says of the published columns.
fn of_whole(needed: &[String], output: &Output) -> Result<Learned, Cause> {
    let mut learned = Learned::default();
    if output.rows == 0 && output.columns.is_empty() {
        return Ok(learned);
    }
    let mut missing = Vec::new();
    for name in needed {
        match output.column(name) {
            Some(column) => {
                let column = &output.columns[column];
                learned.columns.push(LearnedColumn {
                    name: name.clone(),
                    kind: column.kind.as_str().to_owned(),
                    native: column.native.clone(),
                    nullable: Some(column.nullable),
                    ..LearnedColumn::default()
                });
            }
            None => missing.push(("fields", name.clone())),
        }
    }
    match missing.is_empty() {
        true => Ok(learned),
        false => Err(Cause::NoSuchColumns(missing)),
    }
}

/// Why the source refused to read the columns that pages need: the names in `filters` and `order_by` that its
/// result does not have, if there are any, else what it said.
async fn unknown_names(
    app: &App,
    endpoint: &EndpointSnapshot,
    source: &Arc<Source>,
    fault: Fault,
    (caller, deadline): (&CompanyId, Instant),
) -> Cause {
    if fault.blame != Blame::Source {
        return fault.into();
    }
    let request = Request::Query(Query {
        text: endpoint.columns().into(),
        parameters: Vec::new(),
        limits: Limits::new(1, PAGE_BYTES_MAX),
    });
    let answer = app
        .sandbox
        .run_for(caller.as_str(), source, request, deadline)
        .await;
    let Ok(output) = answer else {
        return fault.into();
    };
    let missing = endpoint.missing(|name| output.column(name).is_some());
    match missing.is_empty() || output.columns.is_empty() {
        true => fault.into(),
        false => Cause::NoSuchColumns(missing),
    }
}

/// What a catalog says of the fields of a table. Where it shows several of the name, in other schemas, only the source knows which of them is read: then
/// what it says of all that may be.
#[derive(Debug, Default)]
struct Table {
    /// Those of its primary key.
    key: Vec<String>,
    /// The catalog shows several, which have other keys.
    keys_differ: bool,
    /// Whether a field may be NULL, as far as it says; the first of a name counts.
    nullable: HashMap<String, Option<bool>>,
    /// The same by names in lower case.
    nullable_in_any_case: HashMap<String, Option<bool>>,
}

impl Table {
    /// Reads each row once: there may be many of them, and of columns that are looked for. Those of a table follow each other. `needed`: the columns that
    /// pages read, which a table must have to be the one.
    fn of(catalog: &Output, needed: &[String]) -> Result<Table, Cause> {
        let [schema, table, field, nullable, key] =
            ["schema", "table", "field", "nullable", "primary_key"]
                .map(|name| catalog.column(name).unwrap_or(usize::MAX));
        let mut all: Vec<Table> = Vec::new();
        let mut one = Table::default();
        let mut before = (catalog.cell(0, schema), catalog.cell(0, table));
        let mut key_bytes = 0;
        for row in 0..catalog.rows {
            let here = (catalog.cell(row, schema), catalog.cell(row, table));
            if here != before {
                before = here;
                key_bytes = 0;
                all.push(std::mem::take(&mut one));
            }
            let name = catalog.cell(row, field);
            let Some(name) = name.as_str() else {
                continue;
            };
            if catalog.cell(row, key).as_bool() == Some(true) {
                key_bytes += name.len();
                one.key.push(name.to_owned());
            }
            if one.key.len() > KEY_FIELDS_MAX || key_bytes > KEY_BYTES_MAX {
                return Err(Cause::bad_answer(format!(
                    "the table's primary key has more than {KEY_FIELDS_MAX} fields or {KEY_BYTES_MAX} bytes of names"
                )));
            }
            let is_nullable = catalog.cell(row, nullable).as_bool();
            let folded = name.to_ascii_lowercase();
            one.nullable.entry(name.to_owned()).or_insert(is_nullable);
            let in_any_case = one.nullable_in_any_case.entry(folded);
            in_any_case.or_insert(is_nullable);
        }
        all.push(one);
        // Another application's `users` has other columns. Where none has them all, it is not for a catalog to say which one is meant.
        if all.len() > 1 && all.iter().any(|table| table.has(needed)) {
            all.retain(|table| table.has(needed));
        }
        Ok(all.into_iter().reduce(Table::met).unwrap_or_default())
    }

    /// Whether it has all of these columns, in whatever case.
    fn has(&self, needed: &[String]) -> bool {
        let mut needed = needed.iter();
        needed.all(|name| {
            let folded = name.to_ascii_lowercase();
            self.nullable_in_any_case.contains_key(&folded)
        })
    }

    /// Leaves what is so of the others, too. Which of the two has met others before does not count.
    fn met(mut self, others: Table) -> Table {
        self.keys_differ |= others.keys_differ || self.key != others.key;
        if self.keys_differ {
            self.key.clear();
        }
        let leave = |known: &mut HashMap<String, Option<bool>>,
                     others: &HashMap<String, Option<bool>>| {
            for (name, is_nullable) in known {
                if others.get(name) != Some(&*is_nullable) {
                    *is_nullable = None;
                }
            }
        };
        leave(&mut self.nullable, &others.nullable);
        leave(&mut self.nullable_in_any_case, &others.nullable_in_any_case);
        self
    }

    fn nullable(&self, name: &str) -> Option<bool> {
        let in_any_case = || self.nullable_in_any_case.get(&name.to_ascii_lowercase());
        *self.nullable.get(name).or_else(in_any_case)?
    }
}

/// The columns that were asked for, as the source has them.
fn columns(needed: &[&str], output: &Output, table: &Table) -> Result<Vec<LearnedColumn>, Cause> {
    if output.columns.len() > needed.len() {
        return Err(other_columns(needed, &output.columns));
    }
    let learn = |(at, column): (usize, &Column)| LearnedColumn {
        // By the name that it was asked by: `ID` and `id` are one column to SQLite.
        name: match needed.get(at) {
            Some(name) if name.eq_ignore_ascii_case(&column.name) => (*name).to_owned(),
            _ => column.name.clone(),
        },
        kind: column.kind.as_str().to_owned(),
        native: column.native.clone(),
        nullable: table.nullable(&column.name),
        ..LearnedColumn::default()
    };
    Ok(output.columns.iter().enumerate().map(learn).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use souk_sandbox::{Batch, Chunk, ColumnData, ColumnKind, FaultKind, VarLen};

    use super::*;

    fn column(name: &str, kind: ColumnKind) -> Column {
        Column {
            name: name.to_owned(),
            kind,
            nullable: true,
            native: "native".to_owned(),
        }
    }

    /// No rows of columns with these names.
    fn answer<'a>(names: impl Iterator<Item = &'a str>) -> Output {
        let columns: Vec<Column> = names.map(|name| column(name, ColumnKind::Int64)).collect();
        Output::new(columns.into(), Vec::new(), 0)
    }

    /// Of each field its schema, its name, whether it may be NULL and whether it is of the key.
    fn catalog(fields: &[(&str, &str, bool, bool)]) -> Output {
        let texts = |of: fn(&(&str, &str, bool, bool)) -> Vec<u8>| {
            let mut texts = VarLen {
                offsets: vec![0],
                bytes: Vec::new(),
            };
            for field in fields {
                texts.bytes.extend_from_slice(&of(field));
                texts.offsets.push(texts.bytes.len() as i32);
            }
            ColumnData::VarLen(texts)
        };
        let flags = |of: fn(&(&str, &str, bool, bool)) -> bool| {
            let mut bits = vec![0u8; fields.len().div_ceil(8)];
            for (place, _) in fields.iter().enumerate().filter(|(_, field)| of(field)) {
                bits[place / 8] |= 1 << (place % 8);
            }
            ColumnData::Bits(bits)
        };
        let columns = vec![
            column("schema", ColumnKind::Text),
            column("field", ColumnKind::Text),
            column("nullable", ColumnKind::Boolean),
            column("primary_key", ColumnKind::Boolean),
        ];
        let chunks = [
            texts(|field| field.0.as_bytes().to_vec()),
            texts(|field| field.1.as_bytes().to_vec()),
            flags(|field| field.2),
            flags(|field| field.3),
        ];
        let chunk = |data| Chunk {
            validity: None,
            data,
        };
        let batch = Batch {
            rows: fields.len() as u32,
            chunks: chunks.into_iter().map(chunk).collect(),
        };
        Output::new(columns.into(), vec![batch], 0)
    }

    fn bad_answer<T>(result: Result<T, Cause>) -> String {
        match result {
            Err(Cause::Fault(fault)) if fault.kind == FaultKind::BadAnswer => fault.message,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was learnt from"),
        }
    }

    /// A field is found by its own name, else by that in another case; the first of several counts.
    #[test]
    fn fields_are_found_as_the_source_names_them() {
        let table = Table::of(
            &catalog(&[
                ("a", "ID", true, false),
                ("a", "id", false, true),
                ("a", "Name", false, true),
                ("a", "name", true, false),
                ("a", "name", false, false),
            ]),
            &[],
        )
        .unwrap();
        assert_eq!(table.key, ["id", "Name"]);
        let of = |name| table.nullable(name);
        assert_eq!(
            [of("id"), of("ID"), of("Id")],
            [Some(false), Some(true), Some(true)]
        );
        assert_eq!([of("name"), of("NAME")], [Some(true), Some(false)]);
        assert_eq!([of("elsewhere"), of("")], [None, None]);
        let nothing = Table::of(&Output::default(), &[]).unwrap();
        assert_eq!((nothing.nullable("id"), nothing.key.len()), (None, 0));

        let learnt = columns(
            &["id", "NAME", "other"],
            &answer(["ID", "NAME", "x"].into_iter()),
            &table,
        );
        let learnt = learnt.unwrap();
        let learnt = learnt
            .iter()
            .map(|column| (column.name.as_str(), column.nullable));
        let learnt: Vec<(&str, Option<bool>)> = learnt.collect();
        assert_eq!(
            learnt,
            [("id", Some(true)), ("NAME", Some(false)), ("x", None)]
        );
    }

    /// Which of several tables of one name is read only the source knows: what is so of all of them counts, whichever is shown first.
    #[test]
    fn of_several_tables_counts_what_is_so_of_all() {
        let archive = [
            ("archive", "id", false, true),
            ("archive", "day", true, false),
            ("archive", "team", false, false),
            ("archive", "was", false, false),
        ];
        let public = [
            ("public", "id", false, true),
            ("public", "day", false, false),
            ("public", "team", false, false),
        ];
        let stage = [
            ("stage", "day", false, true),
            ("stage", "id", true, false),
            ("stage", "team", false, false),
        ];
        for shown in [
            [&archive[..], &public[..]].concat(),
            [&public[..], &archive[..]].concat(),
        ] {
            let table = Table::of(&catalog(&shown), &[]).unwrap();
            assert_eq!(table.key, ["id"]);
            assert!(!table.keys_differ);
            let told = ["id", "day", "team", "was"].map(|name| table.nullable(name));
            assert_eq!(told, [Some(false), None, Some(false), None]);
        }
        // Whoever meets whom: what is left of those whose keys differ has none, and is not like a table that has none.
        let one = |fields: &[(&str, &str, bool, bool)]| Table::of(&catalog(fields), &[]).unwrap();
        let differ = || one(&[&stage[..], &public[..]].concat());
        let keyless = || one(&[("loose", "id", false, false)]);
        assert!(differ().met(keyless()).keys_differ);
        assert!(keyless().met(differ()).keys_differ);

        let shown = [&archive[..], &stage[..], &public[..]].concat();
        let catalog = catalog(&shown);
        let table = Table::of(&catalog, &[]).unwrap();
        assert!(table.key.is_empty() && table.keys_differ);
        let told = ["id", "day", "team"].map(|name| table.nullable(name));
        assert_eq!(told, [None, None, Some(false)]);

        // Those that lack what is read are not the one, unless all do.
        let of = |needed: &str| Table::of(&catalog, &["id".to_owned(), needed.to_owned()]);
        let table = of("WAS").unwrap();
        assert_eq!(table.key, ["id"]);
        assert!(!table.keys_differ);
        assert_eq!(table.nullable("day"), Some(true));
        assert!(of("team").unwrap().keys_differ && of("elsewhere").unwrap().keys_differ);
    }

    /// As many columns and fields as a source may answer with take no longer than their number: each looked for among all would take seconds.
    #[test]
    fn wide_tables_are_learnt_at_once() {
        let named = |number: usize| format!("{}{number}", "Größe ".repeat(16));
        let names: Vec<String> = (0..CATALOG_ROWS_MAX as usize).map(named).collect();
        let fields = names.iter().enumerate();
        let fields: Vec<(&str, &str, bool, bool)> = fields
            .map(|(number, name)| ("public", name.as_str(), number % 3 == 0, number == 7))
            .collect();
        let catalog = catalog(&fields);
        // The last ones, in another case, so that a search would see all the others before.
        let asked: Vec<String> = names[400..]
            .iter()
            .map(|name| name.to_ascii_lowercase())
            .collect();
        let needed: Vec<&str> = asked.iter().map(String::as_str).collect();
        let output = answer(needed.iter().copied());
        let began = Instant::now();
        let table = Table::of(&catalog, &asked).unwrap();
        let learnt = columns(&needed, &output, &table).unwrap();
        let took = began.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert_eq!((learnt.len(), table.key.as_slice()), (1_600, &names[7..8]));
        for (place, column) in learnt.iter().enumerate() {
            assert_eq!(
                column.nullable,
                Some((place + 400) % 3 == 0),
                "{}",
                column.name
            );
        }
    }

    /// A column more than were asked for is no answer, and fewer are one: which are missing is told by their names.
    #[test]
    fn more_columns_than_were_asked_for_are_refused() {
        let (table, two) = (Table::default(), ["a", "b"]);
        assert_eq!(
            columns(&two, &answer(two.into_iter()), &table)
                .unwrap()
                .len(),
            2
        );
        assert_eq!(
            columns(&two, &answer(["a"].into_iter()), &table)
                .unwrap()
                .len(),
            1
        );
        let more = columns(&two, &answer(["a", "b", "c"].into_iter()), &table);
        assert!(bad_answer(more).contains("other columns than the published ones"));
    }

    /// Every page is sorted by the key: one that no engine has is refused.
    #[test]
    fn keys_are_bounded() {
        let of = |count: usize, bytes: usize| {
            let names: Vec<String> = (0..count)
                .map(|number| format!("{number:0bytes$}"))
                .collect();
            let fields: Vec<(&str, &str, bool, bool)> = names
                .iter()
                .map(|name| ("public", name.as_str(), false, true))
                .collect();
            Table::of(&catalog(&fields), &[]).map(|table| table.key.len())
        };
        assert_eq!(of(KEY_FIELDS_MAX, 10).unwrap(), KEY_FIELDS_MAX);
        assert!(bad_answer(of(KEY_FIELDS_MAX + 1, 10)).contains("primary key"));
        assert!(bad_answer(of(2, KEY_BYTES_MAX / 2 + 1)).contains("primary key"));
    }
}
