//! The dataset, 200,000 players in teams of 5,000, and the four queries, the same for souk and for the native handlers.

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

pub const FIELDS: [&str; 6] = ["id", "name", "team", "goals", "rating", "active"];
pub const SINGLE: &str = "SELECT id, name, team, goals, rating, active FROM players WHERE id = $1";
pub const AGGREGATE: &str = "SELECT sum(goals) FROM players WHERE team = $1";
pub const ROWS: &str =
    "SELECT id, name, team, goals, rating, active FROM players ORDER BY id LIMIT $1";
pub const TEAM: &str = "Team 7";
/// What a seller writes for the aggregate.
pub const ASSET_SQL: &str = "SELECT sum(goals) AS goals FROM players WHERE team = :team";

/// As MySQL's protocol has placeholders.
pub fn with_question_marks(sql: &str) -> String {
    sql.replace("$1", "?")
}

/// Which rows are asked for one by one.
pub fn ids() -> impl Iterator<Item = u32> {
    (0..1000).map(|i| i * 199 + 1)
}
