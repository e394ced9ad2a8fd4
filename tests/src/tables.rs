//! Tables of the servers that stand for an engine here: SQLite keeps them and runs statements on them.
//!
//! A schema is a database that is attached (`ATTACH ':memory:' AS shop`). What a declared type means, how an engine's own statement becomes
//! one of SQLite's and how a refusal is told is each engine's matter: `trino`, `bigquery`, `databricks`.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, Error};

use crate::remembered::TEXTS_KEPT;

pub struct Tables {
    connection: Connection,
}

/// What a statement found.
pub struct Found {
    pub names: Vec<String>,
    /// As what a column was declared; of one that is computed nothing.
    pub declared: Vec<Option<String>>,
    pub rows: Vec<Vec<Value>>,
}

/// Why a statement finds nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Wrong {
    /// These are named and not there. A table is named with its schema where the statement does.
    Schema(String),
    Table(String),
    Column(String),
    Function(String),
    /// How many values it takes.
    Values(usize),
    /// In SQLite's words.
    Syntax(String),
}

impl Tables {
    /// With two tables that servers know by their names, each of a whole number: `slow`, of one row, and `endless`.
    pub fn new(integer: &str) -> Tables {
        let connection = Connection::open_in_memory().expect("SQLite");
        let own = format!(
            "PRAGMA case_sensitive_like = ON;
             CREATE TABLE slow (id {integer}); INSERT INTO slow VALUES (1);
             CREATE TABLE endless (id {integer});"
        );
        connection.execute_batch(&own).expect("two tables");
        connection.set_prepared_statement_cache_capacity(TEXTS_KEPT);
        Tables { connection }
    }

    /// Runs statements of a test's own.
    pub fn admin(&self, sql: &str) {
        self.connection.execute_batch(sql).expect(sql);
        // A statement that is kept tells columns as they were when it was prepared.
        self.connection.flush_prepared_statement_cache();
    }

    /// Runs statements that a client asked for.
    pub fn run(&self, sql: &str) -> Result<(), Wrong> {
        let ran = self.connection.execute_batch(sql);
        self.connection.flush_prepared_statement_cache();
        ran.map_err(|error| self.wrong(&error))
    }

    /// Whether a query could be asked, and how many values it takes.
    pub fn values_of(&self, sql: &str) -> Result<usize, Wrong> {
        Ok(self.prepared(sql)?.parameter_count())
    }

    /// Asks a query with its values, in their order.
    pub fn ask(&self, sql: &str, values: &[Value]) -> Result<Found, Wrong> {
        let mut statement = self.prepared(sql)?;
        let wanted = statement.parameter_count();
        if wanted != values.len() {
            return Err(Wrong::Values(wanted));
        }
        for (place, value) in values.iter().enumerate() {
            let bound = statement.raw_bind_parameter(place + 1, value);
            bound.map_err(|error| self.wrong(&error))?;
        }
        let columns = statement.columns();
        let declared = columns
            .iter()
            .map(|column| column.decl_type().map(str::to_owned))
            .collect();
        let names: Vec<String> = columns
            .iter()
            .map(|column| column.name().to_owned())
            .collect();
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.wrong(&error))? {
            let cells = (0..names.len()).map(|at| row.get(at).expect("a value"));
            found.push(cells.collect());
        }
        Ok(Found {
            names,
            declared,
            rows: found,
        })
    }

    /// Those that were attached, by their names.
    pub fn schemas(&self) -> Vec<String> {
        self.texts(
            "SELECT name FROM pragma_database_list WHERE name NOT IN ('main', 'temp') ORDER BY name",
        )
    }

    /// Tables and views of a schema, by their names.
    pub fn tables(&self, schema: &str) -> Vec<String> {
        self.texts(&format!("SELECT name FROM \"{schema}\".sqlite_master WHERE type IN ('table', 'view') ORDER BY name"))
    }

    /// Makes what stands in the place of the standard's `information_schema`: the tables `"information_schema.schemata"`, `….tables` and
    /// `….columns`, with the columns that engines have in common. Anew after each [`admin`](Self::admin).
    pub fn describe(&self) {
        let mut sql = "DROP TABLE IF EXISTS temp.\"information_schema.schemata\";
            CREATE TEMP TABLE \"information_schema.schemata\" AS SELECT name AS schema_name FROM pragma_database_list WHERE name NOT IN ('main', 'temp')
                UNION ALL SELECT 'information_schema';
            DROP TABLE IF EXISTS temp.\"information_schema.tables\";
            CREATE TEMP TABLE \"information_schema.tables\" (table_schema varchar, table_name varchar, table_type varchar);
            DROP TABLE IF EXISTS temp.\"information_schema.columns\";
            CREATE TEMP TABLE \"information_schema.columns\" (table_schema varchar, table_name varchar, ordinal_position bigint, column_name varchar, data_type varchar, is_nullable varchar,
                PRIMARY KEY (table_schema, table_name, ordinal_position));
            INSERT INTO \"information_schema.tables\" VALUES ('information_schema', 'tables', 'BASE TABLE');"
            .to_owned();
        for schema in self.schemas() {
            sql.push_str(&format!(
                "INSERT INTO \"information_schema.tables\" SELECT '{schema}', name, CASE type WHEN 'view' THEN 'VIEW' ELSE 'BASE TABLE' END
                     FROM \"{schema}\".sqlite_master WHERE type IN ('table', 'view');
                 INSERT INTO \"information_schema.columns\" SELECT '{schema}', t.name, c.cid + 1, c.name,
                         CASE WHEN c.type LIKE '% text' THEN substr(c.type, 1, length(c.type) - 5) ELSE replace(c.type, char(34), '') END,
                         CASE WHEN c.\"notnull\" THEN 'NO' ELSE 'YES' END
                     FROM \"{schema}\".sqlite_master AS t, pragma_table_info(t.name, '{schema}') AS c WHERE t.type IN ('table', 'view');"
            ));
        }
        self.admin(&sql);
    }

    /// As what a column of this name was declared, in whichever table.
    pub fn declared(&self, column: &str) -> Option<String> {
        let name = column.replace('\'', "''");
        let sql = format!(
            "SELECT data_type FROM \"information_schema.columns\" WHERE column_name = '{name}' ORDER BY table_schema LIMIT 1"
        );
        self.texts(&sql).pop()
    }

    fn prepared(&self, sql: &str) -> Result<CachedStatement<'_>, Wrong> {
        self.connection
            .prepare_cached(sql)
            .map_err(|error| self.wrong(&error))
    }

    fn texts(&self, sql: &str) -> Vec<String> {
        let mut statement = self.connection.prepare_cached(sql).expect(sql);
        let rows = statement.query_map([], |row| row.get(0)).expect(sql);
        rows.map(|row| row.expect("a text")).collect()
    }

    fn wrong(&self, error: &Error) -> Wrong {
        let said = error.to_string();
        // The statement stands behind the name.
        let rest = |before: &str| {
            let named = said.strip_prefix(before)?;
            Some(named.split(" in ").next().unwrap_or_default().to_owned())
        };
        if let Some(named) = rest("no such table: ") {
            let schema = named.split_once('.').map(|(schema, _)| schema.to_owned());
            return match schema {
                Some(schema) if !self.schemas().contains(&schema) => Wrong::Schema(schema),
                _ => Wrong::Table(named),
            };
        }
        if let Some(named) = rest("no such column: ") {
            return Wrong::Column(named);
        }
        match rest("no such function: ") {
            Some(named) => Wrong::Function(named),
            None => Wrong::Syntax(said),
        }
    }
}

/// A type as the engine names it: what a column is declared as, without SQLite's own idea of it where that stands behind it
/// (`decimal(38,5) text`, which keeps digits that a number of SQLite's has not).
pub fn engines_own(declared: &str) -> &str {
    let kind = declared.trim_matches('"');
    let mut own = [" text", " TEXT", " BLOB"].into_iter();
    let named = own.find_map(|own| kind.strip_suffix(own));
    named.unwrap_or(kind)
}

/// An expression, which is compiled once: for each statement anew it would take longer than the statement.
pub fn regex(pattern: &str) -> &'static Regex {
    static COMPILED: LazyLock<Mutex<HashMap<String, &'static Regex>>> =
        LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = compiled.get(pattern) {
        return known;
    }
    let new: &Regex = Box::leak(Box::new(Regex::new(pattern).expect(pattern)));
    compiled.insert(pattern.to_owned(), new);
    new
}

/// The columns that a page of the host's compares with values, each with the operator, and those that it is sorted by, with `ORDER BY` instead.
pub fn uses(page: &str) -> Vec<(&str, &str)> {
    let (conditions, order) = page.rsplit_once("\nORDER BY ").unwrap_or((page, ""));
    let compared = regex(r#"\bs\.["\[`](\w+)["\]`] (=|>=|<=|>|<|IN|LIKE) "#);
    let sorted = regex(r#"\bs\.["\[`](\w+)["\]`]"#);
    let mut uses = Vec::new();
    for found in compared.captures_iter(conditions) {
        let (_, [column, operator]) = found.extract();
        uses.push((column, operator));
    }
    for found in sorted.captures_iter(order) {
        let (_, [column]) = found.extract();
        uses.push((column, "ORDER BY"));
    }
    uses
}

/// A query of the whole numbers from one to another, in a column.
pub fn sequence(from: &str, until: &str, column: &str) -> String {
    format!(
        "(WITH RECURSIVE r({column}) AS (SELECT {from} UNION ALL SELECT {column} + 1 FROM r WHERE {column} < {until}) SELECT {column} FROM r)"
    )
}

/// Whether a semicolon stands in a statement, outside of what these quotes quote.
pub fn semicolon(text: &str, quotes: &[char]) -> Option<usize> {
    let mut quote = None;
    let found = text.char_indices().find(|(_, char)| {
        match quote {
            Some(mark) if mark == *char => quote = None,
            None if quotes.contains(char) => quote = Some(*char),
            _ => {}
        }
        quote.is_none() && *char == ';'
    });
    found.map(|(at, _)| at)
}

/// The first word of a statement, in capital letters; in parentheses or not.
pub fn first_word(text: &str) -> String {
    let first = text.trim_start_matches(|char: char| char.is_whitespace() || char == '(');
    let word = first.chars().take_while(char::is_ascii_alphabetic);
    word.collect::<String>().to_ascii_uppercase()
}
