//! Forecasts: history in, points with an interval out. Knows no results, no JSON and no source.
//!
//! Seasonal series are decomposed (MSTL) and their trend is forecast by exponential smoothing (ETS);
//! series without a season, or too short for one, by ETS alone.

use augurs::ets::AutoETS;
use augurs::mstl::MSTLModel;
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
    if let Some(constant) = constant(recent) {
        let point = Interval {
            value: constant,
            lower: constant,
            upper: constant,
        };
        return Ok(Forecasted {
            model: "constant",
            points: vec![point; horizon as usize],
        });
    }
    let season = frequency.season();
    if season > 1 && recent.len() > season * SEASONS_MIN {
        // A decomposition may fail on a series that smoothing alone can still follow.
        let trend = AutoETS::non_seasonal().into_trend_model();
        let fitted = MSTLModel::new(vec![season], trend)
            .fit(recent)
            .and_then(|fit| fit.predict(horizon as usize, level));
        if let Some(points) = fitted.ok().and_then(intervals) {
            return Ok(Forecasted {
                model: "mstl_ets",
                points,
            });
        }
    }
    let fitted = AutoETS::non_seasonal()
        .fit(recent)
        .and_then(|fit| fit.predict(horizon as usize, level));
    let points = fitted.map_err(|e| ForecastError::NoFit(e.to_string()))?;
    let points = intervals(points)
        .ok_or_else(|| ForecastError::NoFit("it has no finite forecast".to_owned()))?;
    Ok(Forecasted {
        model: "ets",
        points,
    })
}

/// A series that never moves has no variance to fit.
fn constant(series: &[f64]) -> Option<f64> {
    let first = *series.first()?;
    series.iter().all(|value| *value == first).then_some(first)
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
    let finite = |p: &Interval| p.value.is_finite() && p.lower.is_finite() && p.upper.is_finite();
    (points.len() == forecast.point.len() && points.iter().all(finite)).then_some(points)
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
