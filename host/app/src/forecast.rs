//! Forecasts: history in, points with an interval out. Knows no results, no JSON and no source.
//!
//! Seasonal series are decomposed (MSTL) and their trend is forecast by exponential smoothing (ETS);
//! series without a season, or too short for one, by ETS alone.

use augurs::ets::AutoETS;
use augurs::mstl::stlrs::MstlParams;
use augurs::{Fit, Forecast, Predict};

/// What an insight can be drawn from; more is a data feed. Also bounds the time a fit takes.
pub const HISTORY_MAX: usize = 10_000;
/// ETS needs a few points per parameter that it estimates.
pub const HISTORY_MIN: usize = 8;
pub const HORIZON_MAX: u32 = 1_000;
/// The recent past decides a forecast, and a fit over more takes seconds of a processor.
const FITTED_MAX: usize = 2_000;
/// STL sees a season only where it repeats.
const SEASONS_MIN: usize = 2;
/// Of a series between -1 and 1: what computing leaves of one that does not move.
const ROUNDING_MAX: f64 = 1e-9;

/// How far apart the points of a series are.
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

    /// What a typical distance between two points, in microseconds, looks like.
    pub fn nearest(micros: i64) -> Frequency {
        const HOUR: i64 = 3_600_000_000;
        match micros {
            d if d < HOUR / 2 => Frequency::Minute,
            d if d < 12 * HOUR => Frequency::Hour,
            d if d < 4 * 24 * HOUR => Frequency::Day,
            d if d < 15 * 24 * HOUR => Frequency::Week,
            d if d < 60 * 24 * HOUR => Frequency::Month,
            d if d < 200 * 24 * HOUR => Frequency::Quarter,
            _ => Frequency::Year,
        }
    }

    /// The season that people expect in such a series; 1: none.
    fn season(self) -> usize {
        match self {
            Frequency::Minute => 60,
            Frequency::Hour => 24,
            Frequency::Day => 7,
            Frequency::Week => 52,
            Frequency::Month => 12,
            Frequency::Quarter => 4,
            Frequency::Year => 1,
        }
    }

    /// The `count`-th point after `last`, in microseconds since the epoch.
    pub fn step(self, last: i64, count: u32) -> Option<i64> {
        let count = i64::from(count);
        let last = jiff::Timestamp::from_microsecond(last)
            .ok()?
            .to_zoned(jiff::tz::TimeZone::UTC);
        let span = jiff::Span::new();
        let span = match self {
            Frequency::Minute => span.try_minutes(count),
            Frequency::Hour => span.try_hours(count),
            Frequency::Day => span.try_days(count),
            Frequency::Week => span.try_weeks(count),
            Frequency::Month => span.try_months(count),
            Frequency::Quarter => span.try_months(count * 3),
            Frequency::Year => span.try_years(count),
        };
        Some(
            last.checked_add(span.ok()?)
                .ok()?
                .timestamp()
                .as_microsecond(),
        )
    }
}

/// What is forecast, one entry per point.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecasted {
    pub model: &'static str,
    pub points: Vec<Interval>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
}

impl Interval {
    fn exactly(value: f64) -> Interval {
        Interval {
            value,
            lower: value,
            upper: value,
        }
    }

    fn map(self, of: impl Fn(f64) -> f64) -> Interval {
        Interval {
            value: of(self.value),
            lower: of(self.lower),
            upper: of(self.upper),
        }
    }

    fn is_finite(&self) -> bool {
        self.value.is_finite() && self.lower.is_finite() && self.upper.is_finite()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ForecastError {
    #[error("the series has {0} points; at least {HISTORY_MIN} are needed")]
    TooShort(usize),
    #[error("the series has more than {HISTORY_MAX} points")]
    TooLong,
    #[error("no model fits the series: {0}")]
    NoFit(String),
}

/// Forecasts `horizon` points after `history`, which is in order of time. Takes up to a second of a
/// processor: call it away from the threads that serve requests.
pub fn forecast(
    history: &[f64],
    frequency: Frequency,
    horizon: u32,
    level: f64,
) -> Result<Forecasted, ForecastError> {
    match history.len() {
        0..HISTORY_MIN => return Err(ForecastError::TooShort(history.len())),
        length if length > HISTORY_MAX => return Err(ForecastError::TooLong),
        _ => {}
    }
    let recent = &history[history.len().saturating_sub(FITTED_MAX)..];
    let season = Some(frequency.season())
        .filter(|season| *season > 1 && recent.len() > season * SEASONS_MIN);
    let (model, points) = fitted(recent, season, horizon as usize, level)?;
    Ok(Forecasted { model, points })
}

/// The model that fits, and what it says.
fn fitted(
    history: &[f64],
    season: Option<usize>,
    horizon: usize,
    level: f64,
) -> Result<(&'static str, Vec<Interval>), ForecastError> {
    if let Some(value) = constant(history, 0.0) {
        return Ok(("constant", vec![Interval::exactly(value); horizon]));
    }
    // A decomposition may fail on a series that smoothing alone can still follow.
    if let Some(points) = season.and_then(|season| seasonal(history, season, horizon, level)) {
        return Ok(("mstl_ets", points));
    }
    Ok(("ets", smoothed(history, horizon, level)?))
}

/// The season as it was the last time, on the trend of what is left without it. Not by augurs' own model of both, which takes the series as 32-bit floats:
/// of a billion these have seven digits.
fn seasonal(history: &[f64], season: usize, horizon: usize, level: f64) -> Option<Vec<Interval>> {
    // Smoothing looks for its parameters in steps that fit numbers around 1.
    let (centre, spread) = extent(history)?;
    let scaled: Vec<f64> = history
        .iter()
        .map(|value| (value - centre) / spread)
        .collect();
    let parts = MstlParams::new().fit(&scaled, &[season]).ok()?;
    let pattern = parts.seasonal().first()?;
    let rest: Vec<f64> = scaled
        .iter()
        .zip(pattern)
        .map(|(value, above)| value - above)
        .collect();
    if !rest.iter().all(|value| value.is_finite()) {
        return None;
    }
    let trend = match constant(&rest, ROUNDING_MAX) {
        Some(value) => vec![Interval::exactly(value); horizon],
        None => smoothed(&rest, horizon, level).ok()?,
    };
    let repeated = pattern.iter().skip(pattern.len() - season).cycle();
    let points: Vec<Interval> = trend
        .iter()
        .zip(repeated)
        .map(|(point, above)| point.map(|value| (value + above) * spread + centre))
        .collect();
    points.iter().all(Interval::is_finite).then_some(points)
}

/// What exponential smoothing makes of a series: it follows trends, and no seasons.
fn smoothed(series: &[f64], horizon: usize, level: f64) -> Result<Vec<Interval>, ForecastError> {
    let predicted = AutoETS::non_seasonal()
        .fit(series)
        .and_then(|fit| fit.predict(horizon, level));
    let predicted = predicted.map_err(|error| ForecastError::NoFit(error.to_string()))?;
    intervals(predicted).ok_or_else(|| ForecastError::NoFit("it has no finite forecast".to_owned()))
}

/// A series that never moves by more than `most` has no variance to fit.
fn constant(series: &[f64], most: f64) -> Option<f64> {
    let first = *series.first()?;
    series
        .iter()
        .all(|value| (value - first).abs() <= most)
        .then_some(first)
}

/// The middle of the smallest and the largest value, and how far they are from it. In halves: the difference of two large numbers may be none.
fn extent(series: &[f64]) -> Option<(f64, f64)> {
    let low = series.iter().copied().fold(f64::INFINITY, f64::min);
    let high = series.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (centre, spread) = (high / 2.0 + low / 2.0, high / 2.0 - low / 2.0);
    (centre.is_finite() && spread.is_normal()).then_some((centre, spread))
}

/// `None` unless every number is finite.
fn intervals(forecast: Forecast) -> Option<Vec<Interval>> {
    let bounds = forecast.intervals?;
    let points: Vec<Interval> = forecast
        .point
        .iter()
        .zip(bounds.lower.iter().zip(&bounds.upper))
        .map(|(value, (lower, upper))| Interval {
            value: *value,
            lower: *lower,
            upper: *upper,
        })
        .collect();
    (points.len() == forecast.point.len() && points.iter().all(Interval::is_finite))
        .then_some(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A weekly pattern on a rising line is continued, and the truth lies within the interval.
    #[test]
    fn a_season_on_a_trend_is_continued() {
        let truth =
            |day: usize| 100.0 + day as f64 + [0.0, 5.0, 9.0, 4.0, -3.0, -8.0, -7.0][day % 7];
        let history: Vec<f64> = (0..140)
            .map(|day| truth(day) + ((day * 7919) % 13) as f64 / 13.0 - 0.5)
            .collect();
        let forecasted = forecast(&history, Frequency::Day, 14, 0.95).unwrap();
        assert_eq!(forecasted.model, "mstl_ets");
        for (ahead, point) in forecasted.points.iter().enumerate() {
            assert!(
                (point.value - truth(140 + ahead)).abs() < 5.0,
                "{ahead}: {point:?}"
            );
            assert!(point.lower <= point.value && point.value <= point.upper);
        }
    }

    /// A season of tens on billions is not lost in rounding: 32-bit floats are 128 apart there.
    #[test]
    fn seasons_of_large_numbers_keep_their_digits() {
        let truth = |day: usize| 2e9 + [0.0, 50.0, 90.0, 40.0, -30.0, -80.0, -70.0][day % 7];
        let noise = |day: usize| ((day * 7919) % 13) as f64 / 13.0 - 0.5;
        let history: Vec<f64> = (0..140).map(|day| truth(day) + noise(day)).collect();
        let forecasted = forecast(&history, Frequency::Day, 14, 0.95).unwrap();
        assert_eq!(forecasted.model, "mstl_ets");
        for (ahead, point) in forecasted.points.iter().enumerate() {
            let distance = (point.value - truth(140 + ahead)).abs();
            assert!(distance < 5.0, "{ahead}: {point:?}");
            assert!(point.lower <= point.value && point.value <= point.upper);
            assert!(point.upper - point.lower < 20.0, "{ahead}: {point:?}");
        }
        // What repeats exactly leaves nothing to smooth.
        let exact: Vec<f64> = (0..140).map(truth).collect();
        let forecasted = forecast(&exact, Frequency::Day, 7, 0.95).unwrap();
        assert_eq!(forecasted.model, "mstl_ets");
        for (ahead, point) in forecasted.points.iter().enumerate() {
            let distance = (point.value - truth(140 + ahead)).abs();
            assert!(distance < 0.01, "{ahead}: {point:?}");
        }
    }

    #[test]
    fn odd_series_are_answered_or_refused_but_never_panic() {
        assert!(forecast(&[1.0; 3], Frequency::Day, 5, 0.95).is_err());
        assert!(forecast(&vec![1.0; HISTORY_MAX + 1], Frequency::Day, 5, 0.95).is_err());
        assert_eq!(
            forecast(&[3.0; 30], Frequency::Day, 2, 0.9).unwrap().points[1].value,
            3.0
        );
        for series in [
            vec![0.0, 1e300, -1e300, 1e300, 0.0, 1e300, -1e300, 1.0, 2.0, 3.0],
            (0..40).map(|n| if n == 20 { 1.0 } else { 0.0 }).collect(),
            (0..3_000).map(|n| (n as f64).sin()).collect(),
        ] {
            for frequency in [Frequency::Hour, Frequency::Month, Frequency::Year] {
                let _ = forecast(&series, frequency, 3, 0.8);
            }
        }
    }

    #[test]
    fn steps_follow_the_calendar() {
        let january = "2026-01-31T00:00:00Z"
            .parse::<jiff::Timestamp>()
            .unwrap()
            .as_microsecond();
        let at = |frequency: Frequency, count| {
            jiff::Timestamp::from_microsecond(frequency.step(january, count).unwrap())
                .unwrap()
                .to_string()
        };
        assert_eq!(at(Frequency::Month, 1), "2026-02-28T00:00:00Z");
        assert_eq!(at(Frequency::Month, 2), "2026-03-31T00:00:00Z");
        assert_eq!(at(Frequency::Quarter, 1), "2026-04-30T00:00:00Z");
        assert_eq!(at(Frequency::Day, 1), "2026-02-01T00:00:00Z");
        assert_eq!(Frequency::nearest(86_400_000_000), Frequency::Day);
        assert_eq!(Frequency::nearest(30 * 86_400_000_000), Frequency::Month);
    }
}
