//! What DuckDB's own parser says of a statement (`json_serialize_sql`), before it is run for the first time: that it is one `SELECT`, how
//! many placeholders it has, which functions and tables it names.
//!
//! The second lock. What a view or a macro of the database does is its owner's, and not looked into.

use souk_sdk::Error;

use crate::errors::{malformed, no_json};
use crate::functions::{self, is_plain};
use crate::parameters::quoted;
use crate::statements::name as name_of_value;
use crate::values::plain;
use crate::vectors::{Chunk, Found};

/// Table functions that read nothing but what they are given. All others are refused: those that read files, that reach other servers, that
/// run a text as a statement, those of tomorrow.
const TABLE_FUNCTIONS: [&str; 8] = [
    "generate_series",
    "json_each",
    "json_tree",
    "range",
    "repeat",
    "repeat_row",
    "unnest",
    "values",
];
/// Functions of a row that do more than compute: `json_serialize_plan` binds a text as a statement, whatever files that reads. `nextval` is
/// refused by the transaction.
const FUNCTIONS: [&str; 4] = [
    "current_setting",
    "getenv",
    "json_serialize_plan",
    "write_log",
];
/// What those of the server itself begin with.
const FUNCTIONS_OF_QUACK: &str = "quack_";
/// DuckDB's own views on its settings, its files and others' statements.
const VIEWS: [&str; 4] = [
    "duckdb_databases",
    "duckdb_logs",
    "pg_settings",
    "pragma_database_list",
];
/// Signs that names of files have and few of tables.
const SIGNS_OF_FILES: [char; 12] = ['.', '/', '\\', ':', '*', '?', '[', ']', '{', '}', '~', '%'];
/// What names of files end with: DuckDB takes `a.csv` for one where there is no table `csv` in `a`.
const ENDS_OF_FILES: [&str; 21] = [
    "arrow", "avro", "csv", "db", "ddb", "duckdb", "fgb", "geojson", "gpkg", "gz", "ipc", "json",
    "jsonl", "lance", "ndjson", "orc", "parquet", "shp", "tsv", "xlsx", "zst",
];

/// Asks what a text is, whether binding it could bring new functions to the server, and whether the server's clocks are in another zone than UTC, which a
/// connection may change for itself unless the configuration is locked. Without the extension that knows zones there is none. Then whether another
/// engine's database is attached that may be written to, and at last, if it `looks` for that, whether a name that is a function's of DuckDB's own is also one's that
/// somebody has made: DuckDB goes through all its functions for it (15 ms of its processor).
pub fn question(text: &str, looks: bool) -> String {
    let list = |path: &str| format!("to_json(j->>'$..{path}')");
    let namesakes = match looks {
        true => namesakes(),
        false => "NULL".to_owned(),
    };
    format!(
        "SELECT j->>'$.error', j->>'$.error_type', j->>'$.error_message', json_array_length(j, '$.statements'), {}, {}, {}, {}, {}, {}, \
         CAST(current_setting('autoinstall_known_extensions') AS VARCHAR), \
         CAST((SELECT count(*) FROM duckdb_settings() WHERE name = 'TimeZone' AND value NOT IN ('UTC', 'Etc/UTC')) > 0 AND NOT current_setting('lock_configuration') AS VARCHAR), \
         CAST((SELECT count(*) FROM duckdb_databases() WHERE type <> 'duckdb' AND NOT readonly) > 0 AS VARCHAR), \
         CAST({namesakes} AS VARCHAR) AS namesakes\n\
         FROM (SELECT json_serialize_sql({}) AS j)",
        list("function_name"),
        list("function.function_name"),
        list("table_name"),
        list("schema_name"),
        list("catalog_name"),
        list("identifier"),
        quoted(text)
    )
}

/// Whether somebody's function has the name of one of DuckDB's own, in whichever database and schema: it may be called in the place of that, by what the parser names
/// and by signs alone (`[1, 2]`, `a IN b`). What is known here as DuckDB's own counts as such also at a server that has none of that name. It calls functions
/// of DuckDB's own by where they are, so that nobody's stand in their place.
fn namesakes() -> String {
    let plain: Vec<String> = functions::plain().map(|name| format!("'{name}'")).collect();
    format!(
        "EXISTS (SELECT 1 FROM (SELECT system.main.lower(function_name) AS name, system.main.bool_or(internal) AS is_duckdbs, \
         system.main.bool_and(internal) AS is_nobody_elses FROM system.main.duckdb_functions() GROUP BY 1) \
         WHERE NOT is_nobody_elses AND (is_duckdbs OR name IN ({})))",
        plain.join(", ")
    )
}

/// What the parser said.
#[derive(Default)]
pub struct Parsed {
    failure: Option<(String, String)>,
    statements: u64,
    functions: Vec<String>,
    table_functions: Vec<String>,
    tables: Vec<String>,
    schemas: Vec<String>,
    catalogs: Vec<String>,
    placeholders: Vec<String>,
    installs: bool,
    /// Clocks are in another zone than UTC, and can be put to it.
    pub is_elsewhere: bool,
    /// Another engine's database is attached, and may be written to.
    pub has_foreign: bool,
    /// Somebody's function has the name of one of DuckDB's own. It is so, too, where that was not asked.
    pub has_namesakes: bool,
}

impl Parsed {
    /// Reads the one row of an answer.
    pub fn read(chunk: &Chunk<'_>) -> Result<Parsed, Error> {
        let [
            error,
            kind,
            message,
            statements,
            functions,
            table_functions,
            tables,
            schemas,
            catalogs,
            placeholders,
            installs,
            is_elsewhere,
            has_foreign,
            has_namesakes,
        ] = chunk.columns.as_slice()
        else {
            return Err(malformed());
        };
        let installs = plain(installs, 0)? != "false";
        let is_elsewhere = plain(is_elsewhere, 0)? == "true";
        let has_foreign = plain(has_foreign, 0)? != "false";
        let has_namesakes = plain(has_namesakes, 0)? != "false";
        if plain(error, 0)? != "false" {
            return Ok(Parsed {
                installs,
                is_elsewhere,
                has_foreign,
                has_namesakes,
                failure: Some((plain(kind, 0)?.to_owned(), plain(message, 0)?.to_owned())),
                ..Parsed::default()
            });
        }
        let statements = match statements.at(0)? {
            Found::Fixed(bytes) => {
                let bytes: [u8; 8] = bytes.try_into().map_err(|_| malformed())?;
                u64::from_le_bytes(bytes)
            }
            _ => return Err(malformed()),
        };
        let names = |vector| -> Result<Vec<String>, Error> {
            serde_json::from_str(plain(vector, 0)?).map_err(|_| malformed())
        };
        Ok(Parsed {
            failure: None,
            statements,
            functions: names(functions)?,
            table_functions: names(table_functions)?,
            tables: names(tables)?,
            schemas: names(schemas)?,
            catalogs: names(catalogs)?,
            placeholders: names(placeholders)?,
            installs,
            is_elsewhere,
            has_foreign,
            has_namesakes,
        })
    }

    /// Whether it calls nothing but what computes, so that neither its values nor the time of day can make it do something else than before.
    pub fn is_plain(&self) -> bool {
        let mut called = self.functions.iter().chain(&self.table_functions);
        called.all(|name| is_plain(name))
    }

    /// Refuses what is not one query that reads tables, with so many values.
    pub fn judge(&self, placeholders: usize) -> Result<(), Error> {
        if self.installs {
            return Err(installs());
        }
        match &self.failure {
            Some((kind, message)) => return Err(failed(kind, message)),
            None if self.statements != 1 => return Err(not_a_query()),
            None => {}
        }
        let mut named: Vec<&str> = self.placeholders.iter().map(String::as_str).collect();
        named.sort_unstable();
        let mut wanted: Vec<String> = (0..placeholders).map(name_of_value).collect();
        wanted.sort_unstable();
        if named != wanted {
            return Err(Error::source_failed(
                "parameters_misread",
                "DuckDB sees other parameters in the statement than its placeholders: write ? for each, neither $1 nor ?1, and none in what is quoted",
            ));
        }
        let name = |name: &&String| name.to_lowercase();
        let is_allowed = |name: &String| TABLE_FUNCTIONS.contains(&name.as_str());
        if let Some(name) = self
            .table_functions
            .iter()
            .map(|n| name(&n))
            .find(|name| !is_allowed(name))
        {
            return Err(refused(format!(
                "the statement may not call the table function {name}, which may read files or reach other servers: put it into a view"
            )));
        }
        let is_refused = |name: &String| {
            FUNCTIONS.contains(&name.as_str()) || name.starts_with(FUNCTIONS_OF_QUACK)
        };
        if let Some(name) = self.functions.iter().map(|n| name(&n)).find(is_refused) {
            return Err(refused(format!(
                "the statement may not call the function {name}, which does more than read tables"
            )));
        }
        self.names_no_file()
    }

    fn names_no_file(&self) -> Result<(), Error> {
        let all = [&self.tables, &self.schemas, &self.catalogs];
        let is_of_a_file = |name: &&String| name.contains(SIGNS_OF_FILES);
        let mut of_a_file = all.into_iter().flatten().filter(is_of_a_file);
        // Where a name of a table stands those of its schema and database do.
        if self.tables.len() != self.schemas.len() || self.tables.len() != self.catalogs.len() {
            return Err(malformed());
        }
        let is_own = |name: &&String| VIEWS.contains(&name.to_lowercase().as_str());
        if let Some(name) = self.tables.iter().find(is_own) {
            return Err(refused(format!(
                "the statement may not read {name}, which tells of the server and not of its tables"
            )));
        }
        let is_an_end = |(table, schema): (&String, &String)| {
            !schema.is_empty() && ENDS_OF_FILES.contains(&table.to_lowercase().as_str())
        };
        let mut pairs = self.tables.iter().zip(&self.schemas);
        let ends = pairs.find(|pair| is_an_end(*pair)).map(|(table, _)| table);
        match of_a_file.next().or(ends) {
            None => Ok(()),
            Some(name) => Err(refused(format!(
                "the statement may not read files, and {name:?} may be one: put it into a view"
            ))),
        }
    }
}

/// The parser's own refusal.
fn failed(kind: &str, message: &str) -> Error {
    match kind {
        "not implemented" if message.contains("SELECT") => not_a_query(),
        "parser" => {
            Error::source_failed("syntax_error", "DuckDB cannot read the statement").detail(message)
        }
        _ => Error::source_failed("sql_error", "DuckDB could not take the statement apart")
            .detail(message),
    }
}

fn not_a_query() -> Error {
    refused("connections are read-only: the statement must be one query to DuckDB".into())
}

fn refused(message: String) -> Error {
    Error::permission("read_only", message)
}

/// A function or a file that DuckDB does not know has it download an extension, when a statement names it.
fn installs() -> Error {
    Error::configuration(
        "installs_extensions",
        "the server installs extensions when a statement names what they have: SET GLOBAL autoinstall_known_extensions = false at the server",
    )
}

/// DuckDB's refusal of the question itself.
pub fn unasked(message: &str) -> Option<Error> {
    let is_missing = message.contains("json") && message.contains("does not exist");
    is_missing.then(|| no_json().detail(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn one() -> Parsed {
        Parsed {
            statements: 1,
            ..Parsed::default()
        }
    }

    /// All functions are gone through only where that is asked for.
    #[test]
    fn functions_are_looked_for_on_request() {
        let [looks, does_not] = [true, false].map(|looks| question("SELECT 'it''s'", looks));
        assert!(looks.contains("duckdb_functions()") && looks.contains(", 'upper', "));
        assert!(!does_not.contains("duckdb_functions()") && !does_not.contains("'upper'"));
        for asked in [looks, does_not] {
            assert!(asked.ends_with("json_serialize_sql('SELECT ''it''''s''') AS j)"));
        }
    }

    #[test]
    fn one_query_of_tables_passes() {
        let parsed = Parsed {
            functions: names(&["upper", "unnest", "||"]),
            table_functions: names(&["unnest", "Range"]),
            tables: names(&["t", "größe 2", "json"]),
            schemas: names(&["", "s", ""]),
            catalogs: names(&["", "d", ""]),
            placeholders: names(&["souks_value_1", "souks_value_0"]),
            ..one()
        };
        parsed.judge(2).unwrap();
        assert!(parsed.is_plain() && one().is_plain());
        for other in [["souks_value_0", "1"], ["souks_value_0", "souks_value_0"]] {
            let parsed = Parsed {
                placeholders: names(&other),
                ..one()
            };
            assert_eq!(parsed.judge(2).unwrap_err().code, "parameters_misread");
        }
        assert_eq!(parsed.judge(1).unwrap_err().code, "parameters_misread");
        assert_eq!(parsed.judge(3).unwrap_err().code, "parameters_misread");
    }

    #[test]
    fn what_calls_anything_else_is_not_plain() {
        for called in ["nextval", "a_macro"] {
            let parsed = Parsed {
                functions: names(&["upper", called]),
                ..one()
            };
            parsed.judge(0).unwrap();
            assert!(!parsed.is_plain());
        }
        let parsed = Parsed {
            table_functions: names(&["values"]),
            ..one()
        };
        assert!(!parsed.is_plain());
    }

    #[test]
    fn what_reads_anything_else_does_not() {
        let table = |table: &str, schema: &str| Parsed {
            tables: names(&[table]),
            schemas: names(&[schema]),
            catalogs: names(&[""]),
            ..one()
        };
        for parsed in [
            Parsed::default(),
            Parsed {
                statements: 2,
                ..one()
            },
            Parsed {
                failure: Some(("not implemented".into(), "Only SELECT statements".into())),
                ..one()
            },
            Parsed {
                table_functions: names(&["READ_csv"]),
                ..one()
            },
            Parsed {
                table_functions: names(&["query"]),
                ..one()
            },
            Parsed {
                functions: names(&["Write_Log"]),
                ..one()
            },
            Parsed {
                functions: names(&["JSON_serialize_plan"]),
                ..one()
            },
            Parsed {
                functions: names(&["quack_uri_parser"]),
                ..one()
            },
            table("PG_settings", ""),
            table("duckdb_logs", "main"),
            table("shp", "a"),
            table("/etc/passwd", ""),
            table("a.csv", ""),
            table("csv", "a"),
            table("JSON", "a"),
            table("t", "s3://bucket"),
        ] {
            assert_eq!(parsed.judge(0).unwrap_err().code, "read_only");
        }
        let installs = Parsed {
            installs: true,
            ..one()
        };
        let error = installs.judge(0).unwrap_err();
        assert_eq!(error.code, "installs_extensions");
        let lost = Parsed {
            tables: names(&["t", "u"]),
            schemas: names(&["a"]),
            ..one()
        };
        assert!(lost.judge(0).is_err());
    }
}
