//! Statements on tables: SQLite runs them, and its columns have Snowflake's types. A schema is a database that is attached; all of them are
//! of one database of Snowflake's.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Captures;
use rusqlite::types::Value as Sqlite;
use rusqlite::{CachedStatement, Connection, Error};
use souk_sdk::time::Date;

use super::values::{Held, Kind, Typed, nanos_of, real};
use super::{Asked, DATABASE, Failure, VERSION, WAREHOUSE, WRITER, literals};
use crate::remembered::{ByText, TEXTS_KEPT};
use crate::tables::{engines_own, regex};

/// A result: columns with their types, and cells.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub columns: Vec<(String, Kind)>,
    pub rows: Vec<Vec<Held>>,
}

pub struct Tables {
    connection: Connection,
    cleared: ByText<Option<(String, String)>>,
    translations: ByText<(String, Vec<(String, Kind)>)>,
}

/// How many statements a text has: what stands between semicolons outside of quotes, roughly.
pub fn statements(text: &str) -> usize {
    static COUNTED: LazyLock<ByText<usize>> = LazyLock::new(ByText::default);
    *COUNTED.of(text, || {
        let quoted =
            regex(r#"(?s)'(?:[^'\\]|\\.)*'|"[^"]*"|\$\$.*?\$\$|--[^\n]*|//[^\n]*|/\*.*?\*/"#);
        let bare = quoted.replace_all(text, "");
        let parts = bare.split(';').filter(|part| !part.trim().is_empty());
        parts.count()
    })
}

/// What a query writes by a function of the seller's that empties a table while it is asked, and the query without that. By its words it only reads.
fn cleared(text: &str) -> Option<(String, String)> {
    let called = regex(r"(?i)\bcleared\('([\w.]+)'\)");
    let table = called.captures(text)?.get(1)?.as_str();
    let rest = called.replace_all(text, "1").into_owned();
    Some((format!("DELETE FROM {table}"), rest))
}

impl Tables {
    pub fn new() -> Tables {
        let connection = Connection::open_in_memory().expect("SQLite");
        let own = "PRAGMA case_sensitive_like = ON;
            CREATE TABLE slow (ID number(18,0)); INSERT INTO slow VALUES (1);
            CREATE TABLE endless (ID number(18,0));";
        connection.execute_batch(own).expect("two tables");
        connection.set_prepared_statement_cache_capacity(TEXTS_KEPT);
        let tables = Tables {
            connection,
            cleared: ByText::default(),
            translations: ByText::default(),
        };
        tables.describe();
        tables
    }

    pub fn admin(&self, sql: &str) {
        self.connection.execute_batch(sql).expect(sql);
        self.describe();
        // A statement that is kept tells columns as they were when it was prepared.
        self.connection.flush_prepared_statement_cache();
    }

    pub fn run(&self, asked: &Asked) -> Result<Table, Failure> {
        let text = asked.text.trim();
        let text = text.strip_suffix(';').unwrap_or(text).trim();
        let first = text.split_whitespace().next().unwrap_or_default();
        let reads = ["SELECT", "WITH"]
            .iter()
            .any(|word| first.eq_ignore_ascii_case(word));
        if !reads {
            return self.write(asked, text);
        }
        match &*self.cleared.of(text, || cleared(text)) {
            None => self.read(asked, text),
            Some((write, query)) => {
                self.write(asked, write)?;
                self.read(asked, query)
            }
        }
    }

    fn read(&self, asked: &Asked, text: &str) -> Result<Table, Failure> {
        let database = Asked::current(&asked.database, &[DATABASE.to_owned()]);
        if let Some(table) = literals::row(text, &asked.values) {
            return Ok(table);
        }
        let is_idle = asked
            .warehouse
            .as_deref()
            .is_some_and(|name| name != WAREHOUSE);
        if (is_idle || database.is_none()) && regex(r"(?i)\bFROM\b").is_match(text) {
            return Err(match is_idle {
                true => Failure::of(
                    "000606",
                    "57P03",
                    "No active warehouse selected in the current session.  Select an active warehouse with the 'use warehouse' command.",
                ),
                false => Failure::of(
                    "090105",
                    "22000",
                    "Cannot perform SELECT. This session does not have a current database. Call 'USE DATABASE', or use a qualified name.",
                ),
            });
        }
        self.query(text, asked)
    }

    fn query(&self, text: &str, asked: &Asked) -> Result<Table, Failure> {
        let translation = self.translations.try_of(text, || translated(text))?;
        let (sql, casts) = &*translation;
        let mut statement = self.prepare(&self.in_session(sql, asked))?;
        if statement.parameter_count() != asked.values.len() {
            return Err(Failure::of(
                "002049",
                "42601",
                "SQL compilation error: bind variable not set",
            ));
        }
        for (place, value) in asked.values.iter().enumerate() {
            let bound = statement.raw_bind_parameter(place + 1, bound(value));
            bound.map_err(|error| self.failure(&error))?;
        }
        let columns = statement.columns();
        let names: Vec<String> = columns
            .iter()
            .map(
                |column| match text.contains(&format!("\"{}\"", column.name())) {
                    true => column.name().to_owned(),
                    false => column.name().to_uppercase(),
                },
            )
            .collect();
        let declared: Vec<Option<Kind>> = columns
            .iter()
            .zip(&names)
            .map(|(column, name)| {
                let cast = casts
                    .iter()
                    .find(|(alias, _)| alias.eq_ignore_ascii_case(name));
                let cast = cast.map(|(_, kind)| kind.clone());
                cast.or_else(|| Kind::parse(engines_own(column.decl_type()?)))
            })
            .collect();
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.failure(&error))? {
            let cells = (0..names.len()).map(|at| row.get::<_, Sqlite>(at).expect("a value"));
            found.push(cells.collect::<Vec<Sqlite>>());
            if found.len() == asked.rows_max {
                break;
            }
        }
        Ok(table(names, &declared, &found))
    }

    /// Runs a statement that writes, for whom may write.
    fn write(&self, asked: &Asked, text: &str) -> Result<Table, Failure> {
        if asked.role.as_deref() != Some(WRITER) {
            return Err(Failure::of(
                "003001",
                "42501",
                "SQL access control error:\nInsufficient privileges to operate on table",
            ));
        }
        let (sql, _) = translated(text)?;
        let written = self.connection.execute_batch(&self.in_session(&sql, asked));
        self.connection.flush_prepared_statement_cache();
        written.map_err(|error| self.failure(&error))?;
        Ok(Table {
            columns: vec![("number of rows affected".to_owned(), Kind::number(19, 0))],
            rows: vec![vec![Held::Text("1".to_owned())]],
        })
    }

    fn prepare(&self, text: &str) -> Result<CachedStatement<'_>, Failure> {
        self.connection
            .prepare_cached(text)
            .map_err(|error| self.failure(&error))
    }

    fn schemas(&self) -> Vec<String> {
        let sql = "SELECT name FROM pragma_database_list WHERE name NOT IN ('main', 'temp')";
        let mut statement = self.connection.prepare_cached(sql).expect(sql);
        let rows = statement.query_map([], |row| row.get(0)).expect(sql);
        rows.map(|row| row.expect("a text")).collect()
    }

    /// What stands in the place of `information_schema`.
    fn describe(&self) {
        let mut sql = "DROP TABLE IF EXISTS temp.\"information_schema.tables\";
            CREATE TEMP TABLE \"information_schema.tables\" (table_schema varchar, table_name varchar, table_type varchar, row_count number(38,0));
            DROP TABLE IF EXISTS temp.\"information_schema.columns\";
            CREATE TEMP TABLE \"information_schema.columns\" (table_schema varchar, table_name varchar, ordinal_position number(9,0), column_name varchar, data_type varchar,
                numeric_precision number(9,0), numeric_scale number(9,0), is_nullable varchar, PRIMARY KEY (table_schema, table_name, ordinal_position));
            INSERT INTO \"information_schema.tables\" VALUES ('INFORMATION_SCHEMA', 'TABLES', 'VIEW', NULL);"
            .to_owned();
        for schema in self.schemas() {
            sql.push_str(&format!(
                "INSERT INTO \"information_schema.tables\" SELECT '{schema}', name, CASE type WHEN 'view' THEN 'VIEW' ELSE 'BASE TABLE' END, CASE type WHEN 'table' THEN 60 END
                     FROM \"{schema}\".sqlite_master WHERE type IN ('table', 'view');
                 INSERT INTO \"information_schema.columns\" SELECT '{schema}', t.name, c.cid + 1, c.name,
                         upper(CASE WHEN c.type LIKE 'number%' THEN 'NUMBER' WHEN c.type LIKE 'varchar%' THEN 'TEXT' WHEN instr(c.type, '(') THEN substr(c.type, 1, instr(c.type, '(') - 1) ELSE c.type END),
                         CASE WHEN c.type LIKE 'number(%' THEN CAST(substr(c.type, 8) AS INTEGER) END, CASE WHEN c.type LIKE 'number(%' THEN CAST(substr(c.type, instr(c.type, ',') + 1) AS INTEGER) END,
                         CASE WHEN c.\"notnull\" THEN 'NO' ELSE 'YES' END
                     FROM \"{schema}\".sqlite_master AS t, pragma_table_info(t.name, '{schema}') AS c WHERE t.type IN ('table', 'view');"
            ));
        }
        self.connection.execute_batch(&sql).expect("a catalog");
    }

    /// With what its session says of itself.
    fn in_session<'a>(&self, sql: &'a str, asked: &Asked) -> Cow<'a, str> {
        if !sql.contains("CURRENT_") {
            return Cow::Borrowed(sql);
        }
        let mut schemas = self.schemas();
        schemas.push("INFORMATION_SCHEMA".to_owned());
        let shown = |name: Option<String>| match name {
            Some(name) => format!("'{name}'"),
            None => "NULL".to_owned(),
        };
        let database = Asked::current(&asked.database, &[DATABASE.to_owned()]);
        let warehouse = match &asked.warehouse {
            None => Some(WAREHOUSE.to_owned()),
            name => Asked::current(name, &[WAREHOUSE.to_owned()]),
        };
        let role = asked.role.clone().or(Some(super::READER.to_owned()));
        let mut text = sql.to_owned();
        for (function, value) in [
            ("CURRENT_VERSION()", Some(VERSION.to_owned())),
            ("CURRENT_DATABASE()", database),
            ("CURRENT_SCHEMA()", Asked::current(&asked.schema, &schemas)),
            ("CURRENT_WAREHOUSE()", warehouse),
            ("CURRENT_ROLE()", role),
        ] {
            text = text.replace(function, &shown(value));
        }
        Cow::Owned(text)
    }

    fn failure(&self, error: &Error) -> Failure {
        let said = error.to_string();
        let rest = |before: &str| {
            let named = said.strip_prefix(before)?;
            Some(named.split(" in ").next().unwrap_or_default().to_owned())
        };
        if let Some(named) = rest("no such table: ") {
            let text = match named.split_once('.') {
                Some((schema, _))
                    if !self
                        .schemas()
                        .iter()
                        .any(|known| known.eq_ignore_ascii_case(schema)) =>
                {
                    format!(
                        "SQL compilation error:\nSchema '{DATABASE}.{}' does not exist or not authorized.",
                        schema.to_uppercase()
                    )
                }
                _ => format!(
                    "SQL compilation error:\nObject '{}' does not exist or not authorized.",
                    named.to_uppercase()
                ),
            };
            return Failure::of("002003", "42S02", text);
        }
        if let Some(named) = rest("no such column: ") {
            let text = format!(
                "SQL compilation error: error line 1 at position 7\ninvalid identifier '{}'",
                named.to_uppercase()
            );
            return Failure::of("000904", "42000", text);
        }
        if let Some(named) = rest("no such function: ") {
            let text = format!(
                "SQL compilation error:\nUnknown function {}",
                named.to_uppercase()
            );
            return Failure::of("002140", "42601", text);
        }
        Failure::of(
            "001003",
            "42000",
            format!("SQL compilation error:\nsyntax error: {said}"),
        )
    }
}

/// As SQLite has it, and the types that columns are cast to, by their names.
fn translated(text: &str) -> Result<(String, Vec<(String, Kind)>), Failure> {
    let named = regex(r#"(?i)\b(?:FROM|JOIN|INTO)\s+"?(\w+)"?\."?\w+"?\."?\w+"?"#);
    for names in named.captures_iter(text) {
        if &names[1] != DATABASE {
            return Err(Failure::of(
                "002003",
                "02000",
                format!(
                    "SQL compilation error:\nDatabase '{}' does not exist or not authorized.",
                    &names[1]
                ),
            ));
        }
    }
    let kind = r"\w+(?:\([\d, ]+\))?";
    let cast = regex(&format!(r#"::({kind})\s+AS\s+"?(\w+)"?"#));
    let casts = cast
        .captures_iter(text)
        .filter_map(|parts| Some((parts[2].to_owned(), Kind::parse(&parts[1])?)));
    let casts = casts.collect();
    let text = regex(&format!("::{kind}")).replace_all(text, "");
    let text = regex(&format!(r#""?{DATABASE}"?\."#)).replace_all(&text, "");
    let text = regex(r"(?i)\binformation_schema\.(\w+)")
        .replace_all(&text, |parts: &Captures<'_>| {
            format!("\"information_schema.{}\"", parts[1].to_lowercase())
        });
    let generator = regex(r"(?i)TABLE\(GENERATOR\(ROWCOUNT => (\d+)\)\)");
    let text = generator.replace_all(&text, |parts: &Captures<'_>| {
        format!("(WITH RECURSIVE g(seq4) AS (SELECT 0 UNION ALL SELECT seq4 + 1 FROM g WHERE seq4 < {} - 1) SELECT seq4 FROM g)", &parts[1])
    });
    Ok((text.replace("SEQ4()", "seq4"), casts))
}

/// A value as the tables hold those of its type.
fn bound(typed: &Typed) -> Sqlite {
    let micros = |nanos: i128| i64::try_from(nanos.div_euclid(1_000)).expect("a time");
    match (&typed.held, typed.kind.name.as_str()) {
        (Held::Null, _) => Sqlite::Null,
        (Held::Text(text), "fixed") => match text.parse() {
            Ok(number) => Sqlite::Integer(number),
            Err(_) => Sqlite::Real(text.parse().expect("a number")),
        },
        (Held::Text(text), "real") => Sqlite::Real(text.parse().expect("a number")),
        (Held::Text(text), "boolean") => Sqlite::Integer(i64::from(text == "true")),
        (Held::Text(text), "binary") => Sqlite::Blob(hex::decode(text).expect("digits")),
        (Held::Text(text), _) => Sqlite::Text(text.clone()),
        (Held::Date(days), _) => Sqlite::Text(Date::from_days(*days).to_string()),
        (Held::Clock(nanos), _) => {
            Sqlite::Text(souk_sdk::time::iso8601(micros(*nanos)).replace('T', " "))
        }
        (Held::Time(nanos) | Held::Moment(nanos) | Held::Zoned(nanos, _), _) => {
            Sqlite::Integer(micros(*nanos))
        }
    }
}

fn table(names: Vec<String>, declared: &[Option<Kind>], rows: &[Vec<Sqlite>]) -> Table {
    let kinds: Vec<Kind> = declared
        .iter()
        .enumerate()
        .map(|(at, declared)| match declared {
            Some(kind) => kind.clone(),
            // What is computed is what it looks like.
            None => {
                let mut values = rows.iter().map(|row| &row[at]);
                match values.find(|value| **value != Sqlite::Null) {
                    Some(Sqlite::Real(_)) => Kind::simple("real"),
                    Some(Sqlite::Integer(_)) => Kind::number(18, 0),
                    Some(Sqlite::Blob(_)) => Kind::simple("binary"),
                    Some(Sqlite::Text(_) | Sqlite::Null) | None => Kind::simple("text"),
                }
            }
        })
        .collect();
    let cells = |row: &Vec<Sqlite>| {
        let cells = row.iter().zip(&kinds);
        cells.map(|(value, kind)| cell(kind, value)).collect()
    };
    let rows = rows.iter().map(cells).collect();
    Table {
        columns: names.into_iter().zip(kinds).collect(),
        rows,
    }
}

fn cell(kind: &Kind, value: &Sqlite) -> Held {
    let scale = kind.scale.unwrap_or(0) as usize;
    match (kind.name.as_str(), value) {
        (_, Sqlite::Null) => Held::Null,
        ("boolean", Sqlite::Integer(number)) => Held::Text((*number != 0).to_string()),
        ("fixed", Sqlite::Real(number)) => Held::Text(format!("{number:.scale$}")),
        ("fixed", Sqlite::Integer(number)) if scale > 0 => {
            Held::Text(format!("{:.scale$}", *number as f64))
        }
        ("timestamp_ltz", Sqlite::Integer(micros)) => Held::Moment(i128::from(*micros) * 1_000),
        ("timestamp_tz", Sqlite::Integer(micros)) => Held::Zoned(i128::from(*micros) * 1_000, 60),
        ("date", Sqlite::Text(text)) => Held::Date(Date::parse(text).expect("a date").days()),
        ("time", Sqlite::Text(text)) => Held::Time(nanos_of(text).expect("a time")),
        ("timestamp_ntz", Sqlite::Text(text)) => Held::Clock(nanos_of(text).expect("a clock")),
        (_, Sqlite::Integer(number)) => Held::Text(number.to_string()),
        (_, Sqlite::Real(number)) => Held::Text(real(*number)),
        (_, Sqlite::Text(text)) => Held::Text(text.clone()),
        (_, Sqlite::Blob(bytes)) => Held::Text(hex::encode_upper(bytes)),
    }
}
