//! The dataset and the four queries, the same for souk and for the native handlers.

pub const SCHEMA: &str = "
    CREATE TABLE players (
        id bigint PRIMARY KEY, name text NOT NULL, team text NOT NULL,
        goals integer NOT NULL, rating double precision NOT NULL, active boolean NOT NULL);
    INSERT INTO players
    SELECT i, 'Player ' || i, 'Team ' || (i % 100), i % 40, (i % 100) / 10.0, i % 3 <> 0
    FROM generate_series(1, 10000) AS i;
    CREATE INDEX players_team ON players (team);
    ANALYZE players";

/// The same rows as a SQLite file.
pub const SQLITE_SCHEMA: &str = "
    CREATE TABLE players (
        id integer PRIMARY KEY, name text NOT NULL, team text NOT NULL,
        goals integer NOT NULL, rating real NOT NULL, active boolean NOT NULL);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
    INSERT INTO players
    SELECT i, 'Player ' || i, 'Team ' || (i % 100), i % 40, (i % 100) / 10.0, i % 3 <> 0 FROM n;
    CREATE INDEX players_team ON players (team);
    ANALYZE";

pub const FIELDS: [&str; 6] = ["id", "name", "team", "goals", "rating", "active"];
pub const SINGLE: &str = "SELECT id, name, team, goals, rating, active FROM players WHERE id = $1";
pub const AGGREGATE: &str = "SELECT sum(goals) FROM players WHERE team = $1";
pub const ROWS: &str =
    "SELECT id, name, team, goals, rating, active FROM players ORDER BY id LIMIT $1";
pub const TEAM: &str = "Team 7";
/// What a seller writes for the aggregate.
pub const ASSET_SQL: &str = "SELECT sum(goals) AS goals FROM players WHERE team = :team";

/// Which rows are asked for one by one.
pub fn ids() -> impl Iterator<Item = u32> {
    (0..1000).map(|i| i * 9 + 1)
}
