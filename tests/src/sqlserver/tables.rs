//! Statements on tables: SQLite runs them, and its columns have SQL Server's types. A schema is a database that is attached.

use regex::Captures;
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, Error};

use super::calls::{Bound, Values};
use super::types::Kind;
use super::{Failure, Table, VERSION};
use crate::remembered::{ByText, TEXTS_KEPT};
use crate::tables::{regex, uses};

pub struct Tables {
    connection: Connection,
    plans: ByText<Plan>,
}

/// What is known of a query before it is asked, as long as the tables stay what they are.
struct Plan {
    /// As SQLite has it.
    sql: String,
    /// With the types that are declared or cast to.
    columns: Vec<(String, Option<Kind>)>,
}

impl Tables {
    pub fn new() -> Tables {
        let connection = Connection::open_in_memory().expect("SQLite");
        let own = "PRAGMA case_sensitive_like = ON; ATTACH ':memory:' AS dbo;";
        connection.execute_batch(own).expect("a schema");
        connection.set_prepared_statement_cache_capacity(TEXTS_KEPT);
        let tables = Tables {
            connection,
            plans: ByText::default(),
        };
        tables.describe();
        tables
    }

    pub fn admin(&self, sql: &str) {
        self.connection.execute_batch(sql).expect(sql);
        self.describe();
        self.forget();
    }

    /// Tables may be others from now on.
    fn forget(&self) {
        self.plans.forget();
        self.connection.flush_prepared_statement_cache();
    }

    /// Runs a query. `may` and `updateability`: what the server says that the login may do, and the database takes.
    pub fn query(
        &self,
        text: &str,
        values: &Values,
        may: Option<&str>,
        updateability: &str,
    ) -> Result<Table, Failure> {
        if text.contains("fn_my_permissions") {
            let kind = |length| Kind {
                numbers: vec![length],
                ..Kind::simple("nvarchar")
            };
            let may = may.map_or(Value::Null, |name| Value::Text(name.to_owned()));
            return Ok(Table {
                columns: vec![
                    ("version".into(), kind(128)),
                    ("updateability".into(), kind(128)),
                    ("may".into(), kind(7)),
                ],
                rows: vec![vec![
                    Value::Text(VERSION.into()),
                    Value::Text(updateability.into()),
                    may,
                ]],
            });
        }
        let plan = self.plans.try_of(text, || self.plan(text))?;
        let mut statement = self.prepare(&plan.sql)?;
        for (name, bound) in values {
            if let Some(place) = statement.parameter_index(name).expect("a name") {
                let value = as_stored(bound);
                statement
                    .raw_bind_parameter(place, value)
                    .map_err(|error| self.failure(&error))?;
            }
        }
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.failure(&error))? {
            let cells = (0..plan.columns.len()).map(|at| row.get::<_, Value>(at).expect("a value"));
            found.push(cells.collect::<Vec<Value>>());
        }
        let columns = plan.columns.iter().enumerate().map(|(at, (name, kind))| {
            let kind = kind.clone();
            let kind = kind.unwrap_or_else(|| guessed(found.iter().map(|row| &row[at])));
            (name.clone(), kind)
        });
        Ok(Table {
            columns: columns.collect(),
            rows: found,
        })
    }

    fn plan(&self, text: &str) -> Result<Plan, Failure> {
        self.fits(text)?;
        let sql = translated(text);
        let statement = self.prepare(&sql)?;
        let columns = statement.columns();
        let columns = columns.iter().map(|column| {
            let declared = column.decl_type().and_then(Kind::parse);
            let kind = declared.or_else(|| cast(text, column.name()));
            (column.name().to_owned(), kind)
        });
        let columns = columns.collect();
        Ok(Plan { sql, columns })
    }

    /// Large objects of former times and documents are neither compared nor sorted by.
    fn fits(&self, page: &str) -> Result<(), Failure> {
        for (column, operator) in uses(page) {
            let kind = self.declared(column).unwrap_or_default();
            let (number, said) = match (kind.as_str(), operator) {
                ("xml", "LIKE") => (
                    8116,
                    "Argument data type xml is invalid for argument 1 of like function.",
                ),
                ("xml", _) => (
                    305,
                    "The XML data type cannot be compared or sorted, except when using the IS NULL operator.",
                ),
                ("text" | "ntext" | "image", "ORDER BY") => (
                    306,
                    "The text, ntext, and image data types cannot be compared or sorted, except when using IS NULL or LIKE operator.",
                ),
                ("text" | "ntext", "LIKE") => continue,
                ("text" | "ntext" | "image", _) => (
                    402,
                    "The data types text and nvarchar are incompatible in the equal to operator.",
                ),
                _ => continue,
            };
            return Err(Failure::new(number, said));
        }
        Ok(())
    }

    /// The type of a column of this name, in whichever table.
    fn declared(&self, column: &str) -> Option<String> {
        let sql = "SELECT t.name FROM \"sys.columns\" AS c JOIN \"sys.types\" AS t USING (user_type_id) WHERE c.name = ?1 LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql).expect(sql);
        statement.query_row([column], |row| row.get(0)).ok()
    }

    /// Runs a statement that writes; undone at once unless it is to stay.
    pub fn write(&self, text: &str, stays: bool) -> Result<(), Failure> {
        let text = translated(text);
        let both = match stays {
            true => text,
            false => format!("SAVEPOINT tried; {text}; ROLLBACK TO tried; RELEASE tried"),
        };
        let written = self.connection.execute_batch(&both);
        if written.is_err() && !stays {
            let _ = self
                .connection
                .execute_batch("ROLLBACK TO tried; RELEASE tried");
        }
        self.forget();
        written.map_err(|error| self.failure(&error))
    }

    fn prepare(&self, text: &str) -> Result<CachedStatement<'_>, Failure> {
        self.connection
            .prepare_cached(text)
            .map_err(|error| self.failure(&error))
    }

    fn schemas(&self) -> Vec<String> {
        let sql = "SELECT name FROM pragma_database_list WHERE name NOT IN ('main', 'temp')";
        let mut statement = self.connection.prepare(sql).expect(sql);
        let rows = statement.query_map([], |row| row.get(0)).expect(sql);
        rows.map(|row| row.expect("a text")).collect()
    }

    /// What stands in the place of the server's catalog.
    fn describe(&self) {
        let mut sql = "DROP TABLE IF EXISTS temp.\"sys.schemas\"; DROP TABLE IF EXISTS temp.\"sys.objects\"; DROP TABLE IF EXISTS temp.\"sys.columns\";
            DROP TABLE IF EXISTS temp.\"sys.types\"; DROP TABLE IF EXISTS temp.\"sys.partitions\"; DROP TABLE IF EXISTS temp.\"sys.indexes\";
            DROP TABLE IF EXISTS temp.\"sys.index_columns\";
            CREATE TEMP TABLE \"sys.schemas\" (schema_id INTEGER PRIMARY KEY, name \"nvarchar(128)\");
            CREATE TEMP TABLE \"sys.objects\" (object_id INTEGER PRIMARY KEY, schema_id int, name \"nvarchar(128)\", type \"char(2)\", is_ms_shipped bit);
            CREATE TEMP TABLE \"sys.columns\" (object_id int, column_id int, name \"nvarchar(128)\", user_type_id int, max_length int, precision int, scale int, is_nullable bit, is_hidden bit, generated_always_type int,
                PRIMARY KEY (object_id, column_id)) WITHOUT ROWID;
            CREATE TEMP TABLE \"sys.types\" (user_type_id INTEGER PRIMARY KEY, name \"nvarchar(128)\");
            CREATE TEMP TABLE \"sys.partitions\" (object_id int, index_id int, rows bigint);
            CREATE TEMP TABLE \"sys.indexes\" (object_id int, index_id int, is_primary_key bit);
            CREATE TEMP TABLE \"sys.index_columns\" (object_id int, index_id int, column_id int);
            INSERT INTO \"sys.schemas\" VALUES (0, 'sys');
            INSERT INTO \"sys.objects\" VALUES (1, 0, 'sysrowsets', 'U', 1);"
            .to_owned();
        let mut types: Vec<String> = Vec::new();
        let mut object = 1;
        for (number, schema) in self.schemas().into_iter().enumerate() {
            let number = number + 1;
            sql.push_str(&format!(
                "INSERT INTO \"sys.schemas\" VALUES ({number}, '{schema}');"
            ));
            let list = format!(
                "SELECT name, type FROM \"{schema}\".sqlite_master WHERE type IN ('table', 'view')"
            );
            let mut statement = self.connection.prepare(&list).expect("tables");
            let tables = statement.query_map([], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            });
            let tables: Vec<(String, String)> = tables
                .expect("tables")
                .map(|row| row.expect("a table"))
                .collect();
            for (table, kind) in tables {
                object += 1;
                let letter = if kind == "view" { 'V' } else { 'U' };
                sql.push_str(&format!("INSERT INTO \"sys.objects\" VALUES ({object}, {number}, '{table}', '{letter}', 0);"));
                if letter == 'U' {
                    sql.push_str(&format!("INSERT INTO \"sys.partitions\" SELECT {object}, 1, count(*) FROM \"{schema}\".\"{table}\"; INSERT INTO \"sys.indexes\" VALUES ({object}, 1, 1);"));
                }
                let fields =
                    "SELECT cid, name, type, \"notnull\", pk FROM pragma_table_info(?1, ?2)";
                let mut statement = self.connection.prepare_cached(fields).expect("fields");
                let mut rows = statement.query([&table, &schema]).expect("fields");
                while let Some(row) = rows.next().expect("a field") {
                    let (place, name): (i64, String) =
                        (row.get(0).expect("a place"), row.get(1).expect("a name"));
                    let declared: String = row.get(2).expect("a type");
                    let kind =
                        Kind::parse(&declared).unwrap_or_else(|| Kind::simple("sql_variant"));
                    let is_null = !row.get::<_, bool>(3).expect("a flag");
                    let id = types
                        .iter()
                        .position(|known| *known == kind.name)
                        .unwrap_or_else(|| {
                            types.push(kind.name.clone());
                            types.len() - 1
                        });
                    let (bytes, digits, scale) = kind.sizes();
                    let column = place + 1;
                    // As those of a graph's tables, which nobody can select, and of a period, which a statement may name.
                    let (is_hidden, generated) = match name.as_str() {
                        "valid_from" => (true, 1),
                        _ => (name.starts_with("graph_id_"), 0),
                    };
                    sql.push_str(&format!("INSERT INTO \"sys.columns\" VALUES ({object}, {column}, '{name}', {id}, {bytes}, {digits}, {scale}, {is_null}, {is_hidden}, {generated});"));
                    if row.get::<_, i64>(4).expect("a key") > 0 {
                        sql.push_str(&format!(
                            "INSERT INTO \"sys.index_columns\" VALUES ({object}, 1, {column});"
                        ));
                    }
                }
            }
        }
        for (id, name) in types.iter().enumerate() {
            sql.push_str(&format!(
                "INSERT INTO \"sys.types\" VALUES ({id}, '{name}');"
            ));
        }
        self.connection
            .execute_batch(&format!("BEGIN; {sql} COMMIT;"))
            .expect("a catalog");
    }

    fn failure(&self, error: &Error) -> Failure {
        let said = error.to_string();
        let rest = |before: &str| {
            let named = said.strip_prefix(before)?;
            Some(named.split(" in ").next().unwrap_or_default().to_owned())
        };
        if let Some(named) = rest("no such table: ") {
            return Failure::new(208, format!("Invalid object name '{named}'."));
        }
        if let Some(named) = rest("no such column: ") {
            return Failure::new(207, format!("Invalid column name '{named}'."));
        }
        if let Some(named) = rest("no such function: ") {
            return Failure::new(
                195,
                format!("'{named}' is not a recognized built-in function name."),
            );
        }
        Failure::new(102, format!("Incorrect syntax near: {said}"))
    }
}

/// A value as the tables hold those of its type: a clock with seven digits of a second.
fn as_stored(bound: &Bound) -> Value {
    match &bound.value {
        Value::Text(text) if bound.kind.name == "decimal" => {
            Value::Real(text.parse().expect("a number"))
        }
        Value::Text(text) if bound.kind.name == "nvarchar" && is_clock(text) => {
            let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
            Value::Text(format!("{clock}.{fraction:0<7}"))
        }
        value => value.clone(),
    }
}

fn is_clock(text: &str) -> bool {
    let shape: String = text
        .chars()
        .take(19)
        .map(|char| if char.is_ascii_digit() { '0' } else { char })
        .collect();
    shape == "0000-00-00T00:00:00"
        && text[19..]
            .chars()
            .all(|char| char == '.' || char.is_ascii_digit())
}

/// As SQLite has it.
fn translated(text: &str) -> String {
    let text = regex(r"\[((?:[^\]]|\]\])*)\]").replace_all(text, |parts: &Captures<'_>| {
        format!("\"{}\"", parts[1].replace("]]", "]").replace('"', "\"\""))
    });
    let text = regex(r"\bN'").replace_all(&text, "'");
    let text = regex(r"\bsys\.(\w+)").replace_all(&text, "\"sys.$1\"");
    let text = regex(r"COLLATE Latin1_General_BIN2").replace_all(&text, "COLLATE BINARY");
    // An int divided by an int is one, and sizes are.
    let text = regex(r"(?is)^\s*SELECT TOP \((\d+)\) (.*)$").replace(&text, "SELECT $2 LIMIT $1");
    let window = regex(r"OFFSET (\S+) ROWS FETCH NEXT (\S+) ROWS ONLY");
    let text = window.replace_all(&text, "LIMIT $2 OFFSET $1");
    let series = regex(r"GENERATE_SERIES\((\d+), (\d+)\)");
    let series = series.replace_all(&text, |parts: &Captures<'_>| {
        format!("(WITH RECURSIVE r(value) AS (SELECT {} UNION ALL SELECT value + 1 FROM r WHERE value < {}) SELECT value FROM r)", &parts[1], &parts[2])
    });
    series.into_owned()
}

/// The type that a statement casts a column to.
fn cast(text: &str, name: &str) -> Option<Kind> {
    let pattern = format!(
        r"(?i)\bAS\s+(\w+(?:\s*\([^()]*\))?)\)\s+AS\s+[\[\x22]?{}\b",
        regex::escape(name)
    );
    let found = regex(&pattern).captures(text)?;
    Kind::parse(&found[1])
}

/// What is computed is what it looks like.
fn guessed<'a>(mut values: impl Iterator<Item = &'a Value>) -> Kind {
    match values.find(|value| **value != Value::Null) {
        Some(Value::Real(_)) => Kind::simple("float"),
        Some(Value::Text(_)) => Kind {
            is_max: true,
            ..Kind::simple("nvarchar")
        },
        Some(Value::Blob(_)) => Kind {
            is_max: true,
            ..Kind::simple("varbinary")
        },
        Some(Value::Integer(_)) => Kind::simple("bigint"),
        Some(Value::Null) | None => Kind::simple("int"),
    }
}
