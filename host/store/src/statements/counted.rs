//! How many lines a company's statement has, by their type. Those of hours that are over are counted once, behind everybody's back; whoever asks adds
//! up what is there of these hours, and counts the lines since, and those of an hour within which its period begins or ends.
//!
//! A transaction is never changed, and its time is that of its commit or a little before, so that an hour's lines are what they are soon after its end.
//! Start reading at [`Lines::of`] and [`count`].

use crate::bulk::Bulk;
use crate::db::Db;
use crate::error::StoreError;
use crate::fields::Fields;
use crate::ledger::COMMITTED_WITHIN;
use souk_domain::ids::CompanyId;
use souk_domain::time::{DAY, HOUR, Timestamp};
use sqlx::AnyConnection;

const HOUR_MICROS: i64 = 3_600_000_000;
/// A commit of so many holds nobody up.
const ROWS_PER_COMMIT: usize = 256;
/// Up to when lines are counted: the name of a setting.
const UNTIL: &str = "lines_counted_until";

/// Lines of one company in one period.
pub(super) struct Lines(Vec<OfType>);

/// Lines whose transactions have one type.
struct OfType {
    /// The company earned by them; else it is their company.
    earned: bool,
    kind: String,
    lines: i64,
}

impl Lines {
    /// Those from `from` up to, not including, `to`. What nobody is shown is not among them.
    pub(super) async fn of(
        db: &mut AnyConnection,
        company: &CompanyId,
        from: i64,
        to: i64,
    ) -> Result<Lines, StoreError> {
        let counted = until(db).await?.map_or(0, Timestamp::micros);
        let (first, last) = hours_within(from, to, counted);
        let mut all = Vec::new();
        for (sql, from, to) in [
            (UNCOUNTED, from, first),
            (COUNTED, first, last),
            (UNCOUNTED, last, to),
        ] {
            if from < to {
                all.extend(of_types(db, sql, company, from, to).await?);
            }
        }
        Ok(Lines(all))
    }

    pub(super) fn own(&self, is_wanted: impl Fn(&str) -> bool) -> i64 {
        self.sum(false, is_wanted)
    }

    pub(super) fn earned(&self, is_wanted: impl Fn(&str) -> bool) -> i64 {
        self.sum(true, is_wanted)
    }

    fn sum(&self, earned: bool, is_wanted: impl Fn(&str) -> bool) -> i64 {
        let wanted = self
            .0
            .iter()
            .filter(|of| of.earned == earned && is_wanted(&of.kind));
        wanted.map(|of| of.lines).sum()
    }
}

/// Between which instants a period has whole hours that are counted; where it has none, both are its end.
fn hours_within(from: i64, to: i64, counted: i64) -> (i64, i64) {
    let first = from.saturating_add(HOUR_MICROS - 1).div_euclid(HOUR_MICROS) * HOUR_MICROS;
    let last = to.min(counted).div_euclid(HOUR_MICROS) * HOUR_MICROS;
    match first < last {
        true => (first, last),
        false => (to, to),
    }
}

const COUNTED: &str = "
    SELECT CAST(earned AS BIGINT) AS earned, type, CAST(SUM(lines) AS BIGINT) AS lines
    FROM counted_lines
    WHERE company_id = $1 AND hour >= $2 AND hour < $3
    GROUP BY earned, type";

const UNCOUNTED: &str = "
    SELECT CAST(0 AS BIGINT) AS earned, type, COUNT(*) AS lines
    FROM transactions
    WHERE company_id = $1 AND type NOT IN ('maturity', 'payout_paid') AND created_at >= $2 AND created_at < $3
    GROUP BY type
    UNION ALL
    SELECT CAST(1 AS BIGINT) AS earned, type, COUNT(*) AS lines
    FROM transactions
    WHERE seller_id = $1 AND created_at >= $2 AND created_at < $3
    GROUP BY type";

async fn of_types(
    db: &mut AnyConnection,
    sql: &'static str,
    company: &CompanyId,
    from: i64,
    to: i64,
) -> Result<Vec<OfType>, StoreError> {
    let rows = sqlx::query(sql)
        .bind(company.as_str())
        .bind(from)
        .bind(to)
        .fetch_all(db)
        .await?;
    let of_types = rows.iter().map(|row| {
        Ok(OfType {
            earned: row.flag("earned")?,
            kind: row.text("type")?,
            lines: row.number("lines")?,
        })
    });
    of_types.collect()
}

/// Up to when lines are counted, if any are.
async fn until(db: &mut AnyConnection) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query("SELECT CAST(value AS BIGINT) AS value FROM settings WHERE name = $1")
        .bind(UNTIL)
        .fetch_optional(db)
        .await?;
    row.map(|row| row.time("value")).transpose()
}

/// Lines of one company and type in one hour.
struct OfHour {
    company: String,
    earned: i64,
    kind: String,
    hour: i64,
    lines: i64,
}

/// Counts the lines of the next hours that are over, a day of them at most, or lets go of hours that are not over yet. `false`: those that are over
/// are all counted.
pub async fn count(db: &Db, now: Timestamp) -> Result<bool, StoreError> {
    let over = hour_of(now.before(COMMITTED_WITHIN));
    let mut read = db.read().await?;
    let first = match until(&mut read).await? {
        Some(until) => until,
        None => match first_at(&mut read).await? {
            Some(first) => hour_of(first).min(over),
            None => return Ok(false),
        },
    };
    if first > over {
        // By a clock that was ahead: these hours go on, and are counted once they are over.
        drop(read);
        db.write(async |write| counted_until(write, over).await)
            .await?;
        return Ok(false);
    }
    let last = over.min(first.after(DAY));
    if last <= first {
        return Ok(false);
    }
    let mut found = Vec::new();
    let mut hour = first;
    while hour < last {
        found.extend(of_hour(&mut read, hour).await?);
        hour = hour.after(HOUR);
    }
    drop(read);
    for found in found.chunks(ROWS_PER_COMMIT) {
        db.write(async |write| put(write, found).await).await?;
    }
    // Last of all: what another host has counted meanwhile is the same.
    db.write(async |write| counted_until(write, last).await)
        .await?;
    Ok(true)
}

fn hour_of(at: Timestamp) -> Timestamp {
    Timestamp::from_micros(at.micros().div_euclid(HOUR_MICROS) * HOUR_MICROS)
}

/// When the first transaction of all was. Whoever has one has an account, and no index leads to all by their time.
async fn first_at(db: &mut AnyConnection) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query(
        "SELECT MIN(first_at) AS first_at
         FROM (SELECT (SELECT MIN(t.created_at) FROM transactions t WHERE t.company_id = a.company_id) AS first_at
               FROM accounts a
               WHERE a.company_id IS NOT NULL) AS firsts",
    )
    .fetch_one(db)
    .await?;
    row.time_opt("first_at")
}

async fn of_hour(db: &mut AnyConnection, hour: Timestamp) -> Result<Vec<OfHour>, StoreError> {
    // CROSS: SQLite then looks for each company's lines, and not for each line's company.
    let rows = sqlx::query(
        "SELECT t.company_id AS company_id, CAST(0 AS BIGINT) AS earned, t.type AS type, COUNT(*) AS lines
         FROM (SELECT DISTINCT company_id FROM accounts WHERE company_id IS NOT NULL) AS a
         CROSS JOIN transactions t
         WHERE t.company_id = a.company_id AND t.type NOT IN ('maturity', 'payout_paid') AND t.created_at >= $1 AND t.created_at < $2
         GROUP BY t.company_id, t.type
         UNION ALL
         SELECT t.seller_id AS company_id, CAST(1 AS BIGINT) AS earned, t.type AS type, COUNT(*) AS lines
         FROM (SELECT DISTINCT company_id FROM accounts WHERE company_id IS NOT NULL) AS a
         CROSS JOIN transactions t
         WHERE t.seller_id = a.company_id AND t.created_at >= $1 AND t.created_at < $2
         GROUP BY t.seller_id, t.type",
    )
    .bind(hour.micros())
    .bind(hour.after(HOUR).micros())
    .fetch_all(db)
    .await?;
    let of_hour = rows.iter().map(|row| {
        Ok(OfHour {
            company: row.text("company_id")?,
            earned: row.number("earned")?,
            kind: row.text("type")?,
            hour: hour.micros(),
            lines: row.number("lines")?,
        })
    });
    of_hour.collect()
}

static PUT: Bulk = Bulk::new(
    "INSERT INTO counted_lines (company_id, earned, type, hour, lines)
     SELECT column1, column2, column3, column4, column5",
    5,
    "WHERE column1 IS NOT NULL
     ON CONFLICT (company_id, earned, type, hour) DO UPDATE
     SET lines = excluded.lines",
);

async fn put(db: &mut AnyConnection, found: &[OfHour]) -> Result<(), StoreError> {
    PUT.run(db, found, |values, row| {
        values
            .text(row.map(|row| row.company.as_str()))
            .number(row.map(|row| row.earned))
            .text(row.map(|row| row.kind.as_str()))
            .number(row.map(|row| row.hour))
            .number(row.map(|row| row.lines));
    })
    .await?;
    Ok(())
}

async fn counted_until(db: &mut AnyConnection, last: Timestamp) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO settings (name, value)
         VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE
         SET value = excluded.value",
    )
    .bind(UNTIL)
    .bind(last.micros().to_string())
    .execute(db)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A period is taken apart at whole hours that are counted, without an instant lost or doubled.
    #[test]
    fn whole_hours_that_are_counted_are_added_up() {
        const H: i64 = HOUR_MICROS;
        for ((from, to, counted), expected) in [
            ((0, i64::MAX, 0), (i64::MAX, i64::MAX)),
            ((0, i64::MAX, 5 * H), (0, 5 * H)),
            ((1, i64::MAX, 5 * H), (H, 5 * H)),
            ((H, 3 * H, 5 * H), (H, 3 * H)),
            ((H + 1, 3 * H - 1, 5 * H), (3 * H - 1, 3 * H - 1)),
            ((H + 1, 3 * H + 1, 5 * H), (2 * H, 3 * H)),
            ((5 * H, 7 * H, 5 * H), (7 * H, 7 * H)),
            ((4 * H, 7 * H, 5 * H), (4 * H, 5 * H)),
            ((7 * H, 4 * H, 5 * H), (4 * H, 4 * H)),
            ((i64::MAX, i64::MAX, 5 * H), (i64::MAX, i64::MAX)),
        ] {
            let found = hours_within(from, to, counted);
            assert_eq!(found, expected, "{from} {to} {counted}");
        }
    }
}
