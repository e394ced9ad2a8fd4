//! How far apart the points of a series are, and which period each of them belongs to: by the clock and the calendar of UTC, where months have 28 to 31 days.
//!
//! Knows times, in microseconds since the epoch, and no values. Start reading at [`Calendar`].

use std::fmt;

use jiff::civil::{self, DateTime};
use jiff::{SignedDuration, Span};
use souk_domain::time::DAY_MICROS as DAY;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const WEEK: i64 = 7 * DAY;
/// Of whole weeks.
const YEAR: i64 = 52 * WEEK;
/// The mean of four hundred years.
const MONTH: i64 = 2_629_746 * SECOND;
const SHORTEST_MONTH: i64 = 28 * DAY;
const EPOCH: DateTime = civil::date(1970, 1, 1).at(0, 0, 0, 0);

/// A sensor is read a moment early or late, and a logger's hour has 3,601 seconds: a hundredth of a distance may be that. The 59th part is none.
const JITTER_PARTS: i64 = 100;
/// Points of a season. Of what is fitted it must be seen five times.
const SEASON_MAX: usize = 400;

/// What a seller calls the distance of its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frequency {
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl Frequency {
    pub fn of(word: &str) -> Option<Frequency> {
        Some(match word {
            "minute" | "minutely" => Frequency::Minute,
            "hour" | "hourly" => Frequency::Hour,
            "day" | "daily" => Frequency::Day,
            "week" | "weekly" => Frequency::Week,
            "month" | "monthly" => Frequency::Month,
            "quarter" | "quarterly" => Frequency::Quarter,
            "year" | "yearly" => Frequency::Year,
            _ => return None,
        })
    }
}

/// What lies between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Microseconds: whatever clocks count, and weeks.
    Fixed(i64),
    /// Months of the calendar.
    Months(i64),
}

impl Step {
    pub fn of(frequency: Frequency) -> Step {
        match frequency {
            Frequency::Minute => Step::Fixed(MINUTE),
            Frequency::Hour => Step::Fixed(HOUR),
            Frequency::Day => Step::Fixed(DAY),
            Frequency::Week => Step::Fixed(WEEK),
            Frequency::Month => Step::Months(1),
            Frequency::Quarter => Step::Months(3),
            Frequency::Year => Step::Months(12),
        }
    }

    /// What lies between most of the times, which are in order.
    pub fn between(times: &[i64]) -> Step {
        let mut distances: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        distances.sort_unstable();
        // Of an even number the smaller one of the middle: what is missing makes distances larger.
        let middle = distances.len().saturating_sub(1) / 2;
        let median = distances.get(middle).copied().unwrap_or(DAY).max(1);
        // Days repeat but for what clocks do in spring and autumn; months and what is made of them do not.
        let is_even = distances.iter().all(|distance| {
            let rest = distance % median;
            rest.min(median - rest) <= 2 * HOUR
        });
        if median >= SHORTEST_MONTH && !is_even {
            return Step::Months((median + MONTH / 2) / MONTH);
        }
        Step::Fixed(whole(median))
    }

    /// How many points the season has that people expect in such a series, where that is a number of them: the day, else the hour or the minute, of what is
    /// less than a day apart; the week of days; the year of weeks and months.
    pub fn season(self) -> Option<usize> {
        let (Step::Fixed(step) | Step::Months(step)) = self;
        let cycles: &[i64] = match self {
            Step::Fixed(_) if step < DAY => &[DAY, HOUR, MINUTE],
            Step::Fixed(_) if step < WEEK => &[WEEK],
            Step::Fixed(_) if step % WEEK == 0 => &[YEAR],
            Step::Fixed(_) => &[],
            Step::Months(_) => &[12],
        };
        let whole = cycles.iter().filter(|cycle| *cycle % step == 0);
        let mut points = whole.filter_map(|cycle| usize::try_from(cycle / step).ok());
        points.find(|points| (2..=SEASON_MAX).contains(points))
    }
}

const CLOCK_UNITS: &[(i64, &str)] = &[
    (WEEK, "week"),
    (DAY, "day"),
    (HOUR, "hour"),
    (MINUTE, "minute"),
    (SECOND, "second"),
    (1, "microsecond"),
];
const CALENDAR_UNITS: &[(i64, &str)] = &[(12, "year"), (1, "month")];

impl fmt::Display for Step {
    /// `15 minutes`, `1 month`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (length, units) = match *self {
            Step::Fixed(length) => (length, CLOCK_UNITS),
            Step::Months(months) => (months, CALENDAR_UNITS),
        };
        let Some((unit, word)) = units.iter().find(|(unit, _)| length % unit == 0) else {
            return Ok(());
        };
        match length / unit {
            1 => write!(f, "1 {word}"),
            count => write!(f, "{count} {word}s"),
        }
    }
}

/// The nearest number of the largest unit that the distance is one of but for jitter.
fn whole(distance: i64) -> i64 {
    let nearest = |unit: i64| (distance + unit / 2) / unit * unit;
    [WEEK, DAY, HOUR, MINUTE, SECOND]
        .into_iter()
        .map(nearest)
        .find(|whole| *whole > 0 && (*whole - distance).abs() <= distance / JITTER_PARTS)
        .unwrap_or(distance)
}

/// The periods of a series, counted from its last point: that is in period 0, and those before it are below.
pub struct Calendar {
    step: Step,
    last: i64,
    /// Of the month, of which 31 means the last. Only of steps that are months.
    day: i8,
}

impl Calendar {
    /// Of times in order; `None` where one is outside of the years 1 to 9999.
    pub fn of(step: Step, times: &[i64]) -> Option<Calendar> {
        let readings: Option<Vec<DateTime>> = times.iter().map(|at| reading(*at)).collect();
        Some(Calendar {
            step,
            last: *times.last()?,
            day: day_of_months(&readings?)?,
        })
    }

    /// Which one each of the times belongs to.
    pub fn periods(&self, times: &[i64]) -> Vec<i64> {
        match self.step {
            Step::Fixed(step) => {
                let start = self.last + phase(times, self.last, step) - step / 2;
                let period = |at: i64| (at - start).div_euclid(step);
                let last = period(self.last);
                times.iter().map(|at| period(*at) - last).collect()
            }
            Step::Months(months) => times.iter().map(|at| self.nearest(*at, months)).collect(),
        }
    }

    /// The time that is so many steps after the last point; `None` outside of the years 1 to 9999.
    pub fn time(&self, steps: i64) -> Option<i64> {
        match self.step {
            Step::Fixed(step) => {
                let at = self.last.checked_add(step.checked_mul(steps)?)?;
                reading(at).map(|_| at)
            }
            Step::Months(months) => {
                let span = Span::new().try_months(months.checked_mul(steps)?).ok()?;
                let month = reading(self.last)?.first_of_month();
                let month = month.checked_add(span).ok()?;
                let day = self.day.min(month.days_in_month());
                micros(month.with().day(day).build().ok()?)
            }
        }
    }

    /// Not by the number of the month: midnight of the first, where a seller's clock is ahead, is on the last of the month before in UTC.
    fn nearest(&self, at: i64, months: i64) -> i64 {
        let (Some(then), Some(last)) = (reading(at), reading(self.last)) else {
            return 0;
        };
        let number =
            |reading: DateTime| i64::from(reading.year()) * 12 + i64::from(reading.month());
        let near = (number(then) - number(last)).div_euclid(months);
        let distance = |period: &i64| {
            let time = self.time(*period);
            time.map_or(i64::MAX, |time| (time - at).abs())
        };
        (near - 1..=near + 1).min_by_key(distance).unwrap_or(near)
    }
}

/// What a clock in UTC shows then; `None` outside of the years that are written with four digits.
fn reading(at: i64) -> Option<DateTime> {
    let reading = EPOCH.checked_add(SignedDuration::from_micros(at)).ok()?;
    (reading.year() >= 1).then_some(reading)
}

fn micros(reading: DateTime) -> Option<i64> {
    i64::try_from(reading.duration_since(EPOCH).as_micros()).ok()
}

/// How far most times are from those that are whole steps away from the last one, which may itself be early or late.
fn phase(times: &[i64], last: i64, step: i64) -> i64 {
    let rest = |at: &i64| (at - last + step / 2).rem_euclid(step) - step / 2;
    let mut rests: Vec<i64> = times.iter().map(rest).collect();
    rests.sort_unstable();
    rests.get(rests.len() / 2).copied().unwrap_or_default()
}

/// Behind 31 January and 28 February comes the end of March, behind 28 January and 28 February its 28th.
fn day_of_months(readings: &[DateTime]) -> Option<i8> {
    let is_last = |reading: &DateTime| reading.day() == reading.days_in_month();
    if readings.iter().all(is_last) {
        return Some(31);
    }
    let latest = readings.iter().map(|reading| reading.day()).max()?;
    let is_cut = |reading: &DateTime| reading.day() == latest || is_last(reading);
    match readings.iter().all(is_cut) {
        true => Some(latest),
        false => readings.last().map(|reading| reading.day()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<jiff::Timestamp>().unwrap().as_microsecond()
    }

    /// So many times with that step.
    fn every(step: i64, count: i64) -> Vec<i64> {
        let first = at("2026-01-05T00:00:00Z");
        (0..count).map(|index| first + index * step).collect()
    }

    /// The next times of a series, as it infers its step.
    fn next(times: &[i64], count: i64) -> Vec<String> {
        let calendar = Calendar::of(Step::between(times), times).unwrap();
        let written = |steps| {
            let at = jiff::Timestamp::from_microsecond(calendar.time(steps).unwrap());
            at.unwrap().to_string()
        };
        (1..=count).map(written).collect()
    }

    fn of(texts: &[&str]) -> Vec<i64> {
        texts
            .iter()
            .map(|text| at(&format!("{text}T00:00:00Z")))
            .collect()
    }

    /// Points go on at the distance that the rows have, whatever it is, and not at the nearest that has a name.
    #[test]
    fn a_step_is_what_lies_between_most_times() {
        for (step, told) in [
            (SECOND / 4, "250000 microseconds"),
            (SECOND, "1 second"),
            (90 * SECOND, "90 seconds"),
            (15 * MINUTE, "15 minutes"),
            (6 * HOUR, "6 hours"),
            (36 * HOUR, "36 hours"),
            (DAY, "1 day"),
            (10 * DAY, "10 days"),
            (14 * DAY, "2 weeks"),
            (30 * DAY, "30 days"),
        ] {
            let times = every(step, 20);
            assert_eq!(Step::between(&times), Step::Fixed(step), "{told}");
            assert_eq!(Step::Fixed(step).to_string(), told);
            let calendar = Calendar::of(Step::Fixed(step), &times).unwrap();
            assert_eq!(calendar.time(3), Some(times[19] + 3 * step));
            // A third is missing, which makes no larger step.
            let kept: Vec<i64> = (0..20).filter(|index| index % 3 != 1).collect();
            let times: Vec<i64> = kept.iter().map(|index| times[*index as usize]).collect();
            assert_eq!(Step::between(&times), Step::Fixed(step), "{told}");
            let calendar = Calendar::of(Step::Fixed(step), &times).unwrap();
            let expected: Vec<i64> = kept.iter().map(|index| index - 18).collect();
            assert_eq!(calendar.periods(&times), expected, "{told}");
        }
    }

    /// Readings that come a little early or late, or a logger whose hour has another second, are of a whole step, and each in a period of its own.
    #[test]
    fn jitter_is_no_step() {
        let early_and_late = |index: i64| (index * 7919 % 13 - 6) * SECOND;
        let times: Vec<i64> = every(15 * MINUTE, 200)
            .into_iter()
            .zip(0..)
            .map(|(time, index)| time + early_and_late(index))
            .collect();
        assert_eq!(Step::between(&times), Step::Fixed(15 * MINUTE));
        let calendar = Calendar::of(Step::between(&times), &times).unwrap();
        assert_eq!(calendar.periods(&times), (-199..=0).collect::<Vec<i64>>());
        // So is one that has a second too many; one that has one too few of sixty is something else.
        let hours = every(HOUR + SECOND, 100);
        assert_eq!(Step::between(&hours), Step::Fixed(HOUR));
        assert_eq!(
            Step::between(&every(59 * SECOND, 100)),
            Step::Fixed(59 * SECOND)
        );
        // Midnight where a clock is ahead by an hour, and in summer by two.
        let mut times: Vec<i64> = every(DAY, 60).iter().map(|time| time - HOUR).collect();
        for time in &mut times[40..] {
            *time -= HOUR;
        }
        assert_eq!(Step::between(&times), Step::Fixed(DAY));
        let calendar = Calendar::of(Step::Fixed(DAY), &times).unwrap();
        assert_eq!(calendar.periods(&times), (-59..=0).collect::<Vec<i64>>());
    }

    /// Months, quarters and years have no one length. What ends with the month goes on so.
    #[test]
    fn steps_follow_the_calendar() {
        let ends = of(&[
            "2024-08-31",
            "2024-09-30",
            "2024-10-31",
            "2024-11-30",
            "2024-12-31",
            "2025-01-31",
            "2025-02-28",
        ]);
        let expected = ["2025-03-31T00:00:00Z", "2025-04-30T00:00:00Z"];
        assert_eq!(next(&ends, 2), expected);
        let on_the_30th = of(&["2024-11-30", "2024-12-30", "2025-01-30", "2025-02-28"]);
        let expected = ["2025-03-30T00:00:00Z", "2025-04-30T00:00:00Z"];
        assert_eq!(next(&on_the_30th, 2), expected);
        // January is missing.
        let firsts = of(&["2024-10-01", "2024-11-01", "2024-12-01", "2025-02-01"]);
        assert_eq!(next(&firsts, 1), ["2025-03-01T00:00:00Z"]);
        let calendar = Calendar::of(Step::between(&firsts), &firsts).unwrap();
        assert_eq!(calendar.periods(&firsts), [-4, -3, -2, 0]);
        let quarters = of(&["2024-03-31", "2024-06-30", "2024-09-30", "2024-12-31"]);
        assert_eq!(Step::between(&quarters), Step::Months(3));
        assert_eq!(next(&quarters, 1), ["2025-03-31T00:00:00Z"]);
        let years = of(&["2022-02-28", "2023-02-28", "2024-02-28", "2025-02-28"]);
        assert_eq!(Step::between(&years), Step::Months(12));
        assert_eq!(next(&years, 1), ["2026-02-28T00:00:00Z"]);
        // Firsts of months by a clock in London: April begins on 31 March in UTC.
        let london: Vec<i64> = [
            "2025-02-01T00",
            "2025-03-01T00",
            "2025-03-31T23",
            "2025-04-30T23",
        ]
        .map(|text| at(&format!("{text}:00:00Z")))
        .into();
        let calendar = Calendar::of(Step::Months(1), &london).unwrap();
        assert_eq!(calendar.periods(&london), [-3, -2, -1, 0]);
    }

    /// A season is a whole number of points, and not more than can be seen.
    #[test]
    fn seasons_are_whole() {
        for (step, season) in [
            (SECOND / 4, Some(240)),
            (SECOND, Some(60)),
            (10 * SECOND, Some(360)),
            (MINUTE, Some(60)),
            (5 * MINUTE, Some(288)),
            (15 * MINUTE, Some(96)),
            (7 * MINUTE, None),
            (HOUR, Some(24)),
            (6 * HOUR, Some(4)),
            (DAY, Some(7)),
            (2 * DAY, None),
            (WEEK, Some(52)),
            (2 * WEEK, Some(26)),
            (10 * DAY, None),
            (5 * WEEK, None),
        ] {
            assert_eq!(Step::Fixed(step).season(), season, "{}", Step::Fixed(step));
        }
        for (months, season) in [
            (1, Some(12)),
            (3, Some(4)),
            (6, Some(2)),
            (5, None),
            (12, None),
        ] {
            assert_eq!(Step::Months(months).season(), season, "{months}");
        }
    }

    #[test]
    fn what_leaves_the_calendar_is_none() {
        assert!(Calendar::of(Step::Fixed(DAY), &[i64::MAX]).is_none());
        assert!(Calendar::of(Step::Fixed(DAY), &[at("-000001-01-01T00:00:00Z")]).is_none());
        let last = of(&["9999-12-01"]);
        for step in [Step::Fixed(WEEK), Step::Months(1)] {
            assert!(Calendar::of(step, &last).unwrap().time(60).is_none());
        }
    }
}
