//! The sample seller's data: two seasons of an invented football league in a SQLite file, the same
//! in every demo. It is a seller's file, not the store, hence the SQL here.

use std::path::Path;

use anyhow::{Context, Result};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{ConnectOptions, Connection};

/// Name and rating.
pub const TEAMS: &[(&str, u16)] = &[
    ("Ashford Athletic", 1640),
    ("Brookvale United", 1585),
    ("Carrick Rovers", 1560),
    ("Dunmore City", 1530),
    ("Eastport Wanderers", 1510),
    ("Fairhaven Town", 1490),
    ("Glenrock Albion", 1465),
    ("Harrowgate County", 1440),
    ("Ironbridge FC", 1415),
    ("Jasper Vale", 1380),
];

/// The current one is the default of the demo's parameters.
pub const SEASONS: [i64; 2] = [2024, 2025];

const SCHEMA: &str = "
    CREATE TABLE matches (
        id INTEGER PRIMARY KEY,
        season INTEGER NOT NULL,
        matchday INTEGER NOT NULL,
        played_on TEXT NOT NULL,
        home_team TEXT NOT NULL,
        away_team TEXT NOT NULL,
        home_goals INTEGER NOT NULL,
        away_goals INTEGER NOT NULL,
        attendance INTEGER NOT NULL
    );
    CREATE INDEX matches_season ON matches (season, matchday);
";

struct Match {
    season: i64,
    matchday: i64,
    played_on: jiff::civil::Date,
    home: usize,
    away: usize,
    home_goals: i64,
    away_goals: i64,
    attendance: i64,
}

/// Writes the file; `path` must not exist yet.
pub async fn write(path: &Path) -> Result<()> {
    let put = async {
        // A file without WAL is whole by itself: connectors open it read-only.
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Delete);
        let mut db = options.connect().await?;
        sqlx::raw_sql(SCHEMA).execute(&mut db).await?;
        let mut tx = db.begin().await?;
        for played in matches()? {
            insert(&mut tx, &played).await?;
        }
        tx.commit().await?;
        db.close().await?;
        anyhow::Ok(())
    };
    put.await.context("the demo's dataset cannot be written")
}

async fn insert(db: &mut SqliteConnection, played: &Match) -> Result<()> {
    sqlx::query(
        "INSERT INTO matches (season, matchday, played_on, home_team, away_team, home_goals, away_goals, attendance)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(played.season)
    .bind(played.matchday)
    .bind(played.played_on.to_string())
    .bind(TEAMS[played.home].0)
    .bind(TEAMS[played.away].0)
    .bind(played.home_goals)
    .bind(played.away_goals)
    .bind(played.attendance)
    .execute(db)
    .await?;
    Ok(())
}

/// Everybody plays everybody at home and away, a matchday a week.
fn matches() -> Result<Vec<Match>> {
    let rounds = TEAMS.len() - 1;
    let mut dice = Dice(20_250_801);
    let mut all = Vec::new();
    for season in SEASONS {
        let opening = jiff::civil::date(i16::try_from(season)?, 8, 9);
        for round in 0..2 * rounds {
            let played_on = opening.checked_add(jiff::Span::new().weeks(i64::try_from(round)?))?;
            for pair in 0..TEAMS.len() / 2 {
                let (first, second) = fixture(round % rounds, pair);
                let (home, away) = if round < rounds {
                    (first, second)
                } else {
                    (second, first)
                };
                let strength = i64::from(TEAMS[home].1) + 65 - i64::from(TEAMS[away].1);
                all.push(Match {
                    season,
                    matchday: i64::try_from(round)? + 1,
                    played_on,
                    home,
                    away,
                    home_goals: dice.goals(140 + strength / 4),
                    away_goals: dice.goals(140 - strength / 4),
                    // Rises over a season, and a little with the home team's rating.
                    attendance: 5_000
                        + 10 * i64::from(TEAMS[home].1 - 1_300)
                        + 250 * i64::try_from(round)?
                        + dice.roll(1_500),
                });
            }
        }
    }
    Ok(all)
}

/// The circle method: one team stays, the others move on by a place each round.
fn fixture(round: usize, pair: usize) -> (usize, usize) {
    let others = TEAMS.len() - 1;
    let seat = |place: usize| (place + round) % others;
    match pair {
        0 if round.is_multiple_of(2) => (others, seat(0)),
        0 => (seat(0), others),
        _ => (seat(pair), seat(others - pair)),
    }
}

/// A small generator of our own, so that the dataset never changes with a library.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: i64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).unwrap_or(0) % sides
    }

    /// Six chances; `percent` is a hundred times the goals to expect.
    fn goals(&mut self, percent: i64) -> i64 {
        (0..6).filter(|_| self.roll(600) < percent.max(30)).count() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_team_plays_once_a_matchday_and_meets_each_other_home_and_away() {
        let all = matches().unwrap();
        assert_eq!(all.len(), 2 * 90);
        let season: Vec<&Match> = all
            .iter()
            .filter(|played| played.season == SEASONS[0])
            .collect();
        for day in 1..=18 {
            let teams: BTreeSet<usize> = season
                .iter()
                .filter(|played| played.matchday == day)
                .flat_map(|played| [played.home, played.away])
                .collect();
            assert_eq!(teams.len(), TEAMS.len(), "matchday {day}");
        }
        let pairs: BTreeSet<(usize, usize)> = season
            .iter()
            .map(|played| (played.home, played.away))
            .collect();
        assert_eq!(pairs.len(), 90);
    }

    #[tokio::test]
    async fn the_file_holds_the_matches_and_nothing_lies_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("league.sqlite");
        write(&path).await.unwrap();
        let mut db = SqliteConnectOptions::new()
            .filename(&path)
            .read_only(true)
            .connect()
            .await
            .unwrap();
        let (count, goals): (i64, i64) =
            sqlx::query_as("SELECT COUNT(*), SUM(home_goals + away_goals) FROM matches")
                .fetch_one(&mut db)
                .await
                .unwrap();
        assert_eq!(count, 180);
        assert!((360..900).contains(&goals), "{goals}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
