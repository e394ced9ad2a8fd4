//! The dataset, 200,000 players in teams of 5,000, and the five queries, the same for souk and for the native handlers.

pub const SCHEMA: &str = "
    CREATE TABLE players (
        id bigint PRIMARY KEY, name text NOT NULL, team text NOT NULL,
        goals integer NOT NULL, rating double precision NOT NULL, active boolean NOT NULL);
    INSERT INTO players
    SELECT i, 'Player ' || i, 'Team ' || (i % 40), i % 40, (i % 100) / 10.0, i % 3 <> 0
    FROM generate_series(1, 200000) AS i;
    CREATE INDEX players_team ON players (team);
    ANALYZE players";

/// The same rows as a SQLite file.
pub const SQLITE_SCHEMA: &str = "
    CREATE TABLE players (
        id integer PRIMARY KEY, name text NOT NULL, team text NOT NULL,
        goals integer NOT NULL, rating real NOT NULL, active boolean NOT NULL);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
    INSERT INTO players
    SELECT i, 'Player ' || i, 'Team ' || (i % 40), i % 40, (i % 100) / 10.0, i % 3 <> 0 FROM n;
    CREATE INDEX players_team ON players (team);
    ANALYZE";

/// The same rows for MariaDB.
pub const MARIADB_SCHEMA: &str = "
    CREATE TABLE players (
        id bigint PRIMARY KEY, name varchar(40) NOT NULL, team varchar(40) NOT NULL,
        goals integer NOT NULL, rating double NOT NULL, active boolean NOT NULL);
    INSERT INTO players
    SELECT seq, CONCAT('Player ', seq), CONCAT('Team ', seq % 40), seq % 40, (seq % 100) / 10.0, seq % 3 <> 0
    FROM seq_1_to_200000;
    CREATE INDEX players_team ON players (team);
    ANALYZE TABLE players";

/// The same rows for ClickHouse.
pub const CLICKHOUSE_SCHEMA: [&str; 2] = [
    "CREATE TABLE players (id Int64, name String, team String, goals Int32, rating Float64, active Bool) ENGINE = MergeTree ORDER BY id",
    "INSERT INTO players SELECT number, concat('Player ', toString(number)), concat('Team ', toString(number % 40)), number % 40, (number % 100) / 10.0, number % 3 <> 0
     FROM numbers(1, 200000)",
];

/// The same rows for DuckDB, where a primary key is an index as well.
pub const DUCKDB_SCHEMA: &str = "
    CREATE TABLE players (
        id BIGINT PRIMARY KEY, name VARCHAR NOT NULL, team VARCHAR NOT NULL,
        goals INTEGER NOT NULL, rating DOUBLE NOT NULL, active BOOLEAN NOT NULL);
    INSERT INTO players
    SELECT i, 'Player ' || i, 'Team ' || (i % 40), i % 40, (i % 100) / 10.0, i % 3 <> 0
    FROM range(1, 200001) AS r(i)";

/// The columns of servers that stand for an engine and keep their tables in SQLite, with that engine's types.
pub const SQLSERVER_COLUMNS: &str = r#"id bigint PRIMARY KEY, name "nvarchar(40)" NOT NULL, team "nvarchar(40)" NOT NULL, goals int NOT NULL, rating float NOT NULL, active bit NOT NULL"#;
pub const TRINO_COLUMNS: &str = "id bigint PRIMARY KEY, name varchar(40) NOT NULL, team varchar(40) NOT NULL, goals integer NOT NULL, rating double NOT NULL, active boolean NOT NULL";
pub const DATABRICKS_COLUMNS: &str = "id bigint PRIMARY KEY, name string text NOT NULL, team string text NOT NULL, goals int NOT NULL, rating double NOT NULL, active boolean NOT NULL";
pub const SNOWFLAKE_COLUMNS: &str = "id number(18,0) PRIMARY KEY, name varchar(40) NOT NULL, team varchar(40) NOT NULL, goals number(9,0) NOT NULL, rating double NOT NULL, active boolean NOT NULL";
pub const BIGQUERY_COLUMNS: &str = "id INT64 PRIMARY KEY, name STRING TEXT NOT NULL, team STRING TEXT NOT NULL, goals INT64 NOT NULL, rating FLOAT64 NOT NULL, active BOOL NOT NULL";

/// The same rows in SQLite, in a schema that is there.
pub fn in_sqlite(schema: &str, columns: &str) -> String {
    format!(
        "CREATE TABLE {schema}.players ({columns});
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
         INSERT INTO {schema}.players
         SELECT i, 'Player ' || i, 'Team ' || (i % 40), i % 40, (i % 100) / 10.0, i % 3 <> 0 FROM n;
         CREATE INDEX {schema}.players_team ON players (team);"
    )
}

pub const FIELDS: [&str; 6] = ["id", "name", "team", "goals", "rating", "active"];
pub const SINGLE: &str = "SELECT id, name, team, goals, rating, active FROM players WHERE id = $1";
/// The same row as a page of a feed, which may have more of them and says so.
const PAGE: &str =
    "SELECT id, name, team, goals, rating, active FROM players WHERE id = $1 ORDER BY id LIMIT 2";
pub const AGGREGATE: &str = "SELECT sum(goals) FROM players WHERE team = $1";
pub const ROWS: &str =
    "SELECT id, name, team, goals, rating, active FROM players ORDER BY id LIMIT $1";
pub const TEAM: &str = "Team 7";
/// What a seller writes for the aggregate.
pub const ASSET_SQL: &str = "SELECT sum(goals) AS goals FROM players WHERE team = :team";
/// 5,000 rows in 62 groups. The numbers are whole, so that they are the same in whatever order an engine adds them up.
pub const GROUPS: &str = "SELECT id % 31 AS shirt, active, sum(goals) AS goals FROM players WHERE team = $1 GROUP BY shirt, active ORDER BY shirt, active";

/// Of which the one value is a number.
#[derive(Clone, Copy)]
pub enum Query {
    Single,
    /// A single row as a page is asked for.
    Page,
    Rows,
}

/// The queries with an engine's own placeholder.
pub struct Texts {
    pub single: String,
    pub page: String,
    pub rows: String,
    pub aggregate: String,
    pub groups: String,
}

impl Texts {
    pub fn with(placeholder: &str) -> Texts {
        let [single, page, rows, aggregate, groups] =
            [SINGLE, PAGE, ROWS, AGGREGATE, GROUPS].map(|sql| sql.replace("$1", placeholder));
        Texts {
            single,
            page,
            rows,
            aggregate,
            groups,
        }
    }

    /// For an engine whose pages are not told to be in the order of what an equality has fixed.
    pub fn without_order(mut self) -> Texts {
        self.page = self.page.replace(" ORDER BY id", "");
        self
    }

    pub fn of(&self, query: Query) -> &str {
        match query {
            Query::Single => &self.single,
            Query::Page => &self.page,
            Query::Rows => &self.rows,
        }
    }
}

/// Which rows are asked for one by one.
pub fn ids() -> impl Iterator<Item = u32> {
    (0..1000).map(|i| i * 199 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    /// All rows of a team meet in groups, which come in an order that is told.
    #[test]
    fn a_team_is_grouped() {
        let file = Connection::open_in_memory().expect("a database");
        file.execute_batch(SQLITE_SCHEMA).expect("the dataset");
        let mut statement = file.prepare(GROUPS).expect("a statement");
        let mut rows = statement.query([TEAM]).expect("rows");
        let mut groups: Vec<(i64, bool, i64)> = Vec::new();
        while let Some(row) = rows.next().expect("a row") {
            let value = |place| row.get::<usize, i64>(place).expect("a number");
            groups.push((value(0), value(1) != 0, value(2)));
        }
        assert_eq!(groups.len(), 62);
        assert!(groups.is_sorted());
        // Seven goals each.
        let goals: i64 = groups.iter().map(|(_, _, goals)| goals).sum();
        assert_eq!(goals, 7 * 5_000);
    }
}
