//! Forecasts: history in, points with an interval out. Knows no results, no JSON and no source.
//!
//! A series is first placed on its calendar, and periods without a value get one: a season is told by nothing but places. Seasonal series are then
//! decomposed (MSTL) and their trend is forecast by exponential smoothing (ETS); series without a season, or too short for one, by ETS alone. Start reading at
//! [`forecast()`].

mod calendar;
mod gaps;

use augurs::ets::AutoETS;
use augurs::mstl::stlrs::MstlParams;
use augurs::{Fit, Forecast, Predict};

use calendar::{Calendar, Step};

pub use calendar::Frequency;

/// What an insight can be drawn from; more is a data feed. Also bounds the time a fit takes.
pub const HISTORY_MAX: usize = 10_000;
/// ETS needs a few points per parameter that it estimates.
pub const HISTORY_MIN: usize = 8;
pub const HORIZON_MAX: u32 = 1_000;
/// Periods, with a value or without: rows may be a second apart, and years. The recent past decides a forecast, and a fit over more takes seconds of a processor.
const FITTED_MAX: usize = 2_000;
/// STL sees a season only where it repeats.
const SEASONS_MIN: usize = 2;
/// One in so many rows may be in a period where another one is already: a clock that was late once is no other frequency.
pub const SHARED_PARTS: usize = 10;
/// Of a series between -1 and 1: what computing leaves of one that does not move.
const ROUNDING_MAX: f64 = 1e-9;

/// What is forecast, with the time of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecasted {
    pub model: &'static str,
    pub points: Vec<(i64, Interval)>,
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
    #[error("the series has {0} points with a value; at least {HISTORY_MIN} are needed")]
    TooShort(usize),
    #[error("the series has more than {HISTORY_MAX} points")]
    TooLong,
    #[error("more than half of the periods of the series have no value")]
    TooSparse {
        values: usize,
        periods: usize,
        step: Step,
    },
    #[error("the rows of the series are closer together than its periods")]
    TooClose { step: Step },
    #[error("the series, or its forecast, leaves the years 1 to 9999")]
    OutOfYears,
    #[error("no model fits the series: {0}")]
    NoFit(String),
}

impl ForecastError {
    /// What its seller can do about it. That is nobody else's business: it says how much there is that does not leave.
    pub fn advice(&self) -> Option<String> {
        match self {
            ForecastError::TooShort(_) => Some(
                "return more of the past: rows without a value, and those that privacy withholds, are no points".to_owned(),
            ),
            ForecastError::TooSparse {
                values,
                periods,
                step,
            } => Some(format!(
                "of its last {periods} periods of {step} only {values} have one: return a row for each, aggregate by a longer period, leave out what is before a long gap, or set the \
                 prediction's frequency to that of the rows (without one it is taken from them)"
            )),
            ForecastError::TooClose { step } => Some(format!(
                "more than one row in {SHARED_PARTS} is in a period of {step} where another one is: aggregate them (GROUP BY), or set the prediction's frequency to that of the rows \
                 (without one it is taken from them)"
            )),
            ForecastError::TooLong | ForecastError::OutOfYears | ForecastError::NoFit(_) => None,
        }
    }
}

/// Forecasts `horizon` points after `series`, whose times (microseconds since the epoch) are in order, of which few are the same. Without a `frequency` they are as far
/// apart as most of its own. Takes up to a second of a processor: call it away from the threads that serve requests.
pub fn forecast(
    series: &[(i64, f64)],
    frequency: Option<Frequency>,
    horizon: u32,
    level: f64,
) -> Result<Forecasted, ForecastError> {
    match series.len() {
        0..HISTORY_MIN => return Err(ForecastError::TooShort(series.len())),
        length if length > HISTORY_MAX => return Err(ForecastError::TooLong),
        _ => {}
    }
    let times: Vec<i64> = series.iter().map(|(at, _)| *at).collect();
    let step = frequency.map_or_else(|| Step::between(&times), Step::of);
    let calendar = Calendar::of(step, &times).ok_or(ForecastError::OutOfYears)?;
    let places = places(&calendar.periods(&times), series, step)?;
    let season = step
        .season()
        .filter(|season| places.len() > season * SEASONS_MIN);
    let history = gaps::filled(&places, season);
    let (model, intervals) = fitted(&history, season, horizon as usize, level)?;
    let points = (1..).zip(intervals).map(|(steps, interval)| {
        let at = calendar.time(steps);
        at.map(|at| (at, interval)).ok_or(ForecastError::OutOfYears)
    });
    Ok(Forecasted {
        model,
        points: points.collect::<Result<Vec<_>, _>>()?,
    })
}

/// The values of the last periods, one for each, and `None` where the series has none.
fn places(
    periods: &[i64],
    series: &[(i64, f64)],
    step: Step,
) -> Result<Vec<Option<f64>>, ForecastError> {
    // The last is period 0.
    let all = 1 - periods.first().copied().unwrap_or_default();
    let length = all.min(FITTED_MAX as i64);
    let first = periods.partition_point(|period| *period <= -length);
    let (periods, series) = (&periods[first..], &series[first..]);
    let start = periods.first().copied().unwrap_or_default();
    let rows: Vec<(usize, f64)> = periods
        .iter()
        .zip(series)
        .map(|(period, (_, value))| ((period - start) as usize, *value))
        .collect();
    let mut places = vec![None; (1 - start) as usize];
    let mut values = 0;
    for shared in rows.chunk_by(|(place, _), (next, _)| place == next) {
        let count = shared.len() as f64;
        places[shared[0].0] = Some(shared.iter().map(|(_, value)| value / count).sum::<f64>());
        values += 1;
    }
    if (rows.len() - values) * SHARED_PARTS > rows.len() {
        return Err(ForecastError::TooClose { step });
    }
    let periods = length as usize;
    if values * 2 < periods {
        return Err(ForecastError::TooSparse {
            values,
            periods,
            step,
        });
    }
    Ok(places)
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
    use souk_domain::time::DAY_MICROS;

    const HOUR_MICROS: i64 = DAY_MICROS / 24;

    /// The values as a series of that distance.
    fn every(step: i64, values: &[f64]) -> Vec<(i64, f64)> {
        let times = (0..).map(|index| index * step);
        times.zip(values.iter().copied()).collect()
    }

    /// What remains of a series of days without those.
    fn without(series: &[(i64, f64)], is_missing: impl Fn(i64) -> bool) -> Vec<(i64, f64)> {
        let kept = series.iter().filter(|(at, _)| !is_missing(at / DAY_MICROS));
        kept.copied().collect()
    }

    fn noise(index: usize) -> f64 {
        ((index * 7919) % 13) as f64 / 13.0 - 0.5
    }

    /// The points are those of the days from `first` on, and near what is true of these.
    fn assert_days(
        forecasted: &Forecasted,
        first: usize,
        truth: impl Fn(usize) -> f64,
        tolerance: f64,
    ) {
        assert_eq!(forecasted.model, "mstl_ets");
        for (day, (at, point)) in (first..).zip(&forecasted.points) {
            assert_eq!(*at, day as i64 * DAY_MICROS);
            let distance = (point.value - truth(day)).abs();
            assert!(distance < tolerance, "{day}: {point:?}");
            assert!(point.lower <= point.value && point.value <= point.upper);
        }
    }

    /// A weekly pattern on a rising line is continued, and the truth lies within the interval.
    #[test]
    fn a_season_on_a_trend_is_continued() {
        let truth =
            |day: usize| 100.0 + day as f64 + [0.0, 5.0, 9.0, 4.0, -3.0, -8.0, -7.0][day % 7];
        let values: Vec<f64> = (0..140).map(|day| truth(day) + noise(day)).collect();
        let history = every(DAY_MICROS, &values);
        let forecasted = forecast(&history, Some(Frequency::Day), 14, 0.95).unwrap();
        assert_days(&forecasted, 140, truth, 5.0);
        assert_eq!(forecasted, forecast(&history, None, 14, 0.95).unwrap());
    }

    /// A season of tens on billions is not lost in rounding: 32-bit floats are 128 apart there.
    #[test]
    fn seasons_of_large_numbers_keep_their_digits() {
        let truth = |day: usize| 2e9 + [0.0, 50.0, 90.0, 40.0, -30.0, -80.0, -70.0][day % 7];
        let values: Vec<f64> = (0..140).map(|day| truth(day) + noise(day)).collect();
        let forecasted = forecast(&every(DAY_MICROS, &values), None, 14, 0.95).unwrap();
        assert_days(&forecasted, 140, truth, 5.0);
        for (_, point) in &forecasted.points {
            assert!(point.upper - point.lower < 20.0, "{point:?}");
        }
        // What repeats exactly leaves nothing to smooth.
        let exact: Vec<f64> = (0..140).map(truth).collect();
        let forecasted = forecast(&every(DAY_MICROS, &exact), None, 7, 0.95).unwrap();
        assert_days(&forecasted, 140, truth, 0.01);
    }

    /// Days without a value shift no season: a Saturday stays a Saturday.
    #[test]
    fn a_season_keeps_its_place_over_gaps() {
        let week = [100.0, 100.0, 100.0, 100.0, 100.0, 10.0, 0.0];
        let truth = |day: usize| week[day % 7];
        let values: Vec<f64> = (0..140).map(|day| truth(day) + noise(day)).collect();
        let whole = every(DAY_MICROS, &values);
        let single = without(&whole, |day| [20, 47, 75, 103, 131].contains(&day));
        let holidays = without(&whole, |day| (60..75).contains(&day) || day == 137);
        let every_fifth = without(&whole, |day| day % 11 % 5 == 2 && day < 130);
        for history in [whole, single, holidays, every_fifth] {
            for frequency in [None, Some(Frequency::Day)] {
                let forecasted = forecast(&history, frequency, 14, 0.95).unwrap();
                assert_days(&forecasted, 140, truth, 8.0);
            }
        }
    }

    /// Of a week that has no weekends the season is still one of seven days.
    #[test]
    fn days_that_never_have_a_value_are_periods() {
        let values: Vec<f64> = (0..138).map(|day| f64::from(day % 7 + 1) * 10.0).collect();
        let history = without(&every(DAY_MICROS, &values), |day| day % 7 > 4);
        let forecasted = forecast(&history, None, 14, 0.95).unwrap();
        let week = [
            10.0,
            20.0,
            30.0,
            40.0,
            50.0,
            50.0 - 40.0 / 3.0,
            10.0 + 40.0 / 3.0,
        ];
        assert_days(&forecasted, 138, |day| week[day % 7], 2.0);
    }

    /// Rows that are further apart than the frequency says, or closer together, make no forecast of it; by themselves they do.
    #[test]
    fn a_frequency_that_the_rows_contradict_is_refused() {
        let values: Vec<f64> = (0..20).map(noise).collect();
        let weekly = every(7 * DAY_MICROS, &values);
        let refused = forecast(&weekly, Some(Frequency::Day), 3, 0.95).unwrap_err();
        let advice = refused.advice().unwrap();
        assert!(
            advice.starts_with("of its last 134 periods of 1 day only 20 have one"),
            "{advice}"
        );
        let refused = forecast(&weekly, Some(Frequency::Month), 3, 0.95).unwrap_err();
        assert!(
            matches!(refused, ForecastError::TooClose { .. }),
            "{refused}"
        );
        let advice = refused.advice().unwrap();
        assert!(
            advice.contains("in a period of 1 month where another one is: aggregate"),
            "{advice}"
        );
        let forecasted = forecast(&weekly, None, 3, 0.95).unwrap();
        let times: Vec<i64> = forecasted.points.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [20, 21, 22].map(|week| week * 7 * DAY_MICROS));
    }

    /// A row that came late shares its period with the next one. That is no other frequency.
    #[test]
    fn a_late_row_is_no_other_frequency() {
        let values: Vec<f64> = (0..40).map(noise).collect();
        let mut history = every(DAY_MICROS, &values);
        history[20].0 += 14 * HOUR_MICROS;
        let forecasted = forecast(&history, Some(Frequency::Day), 1, 0.95).unwrap();
        assert_eq!(forecasted.points[0].0, 40 * DAY_MICROS);
    }

    /// Two seconds that are fifty years apart take no memory for what lies between them.
    #[test]
    fn periods_are_bounded() {
        let values: Vec<f64> = (0..20).map(noise).collect();
        let mut history = every(1_000_000, &values);
        for (at, _) in &mut history[10..] {
            *at += 50 * 365 * DAY_MICROS;
        }
        let refused = forecast(&history, None, 3, 0.95).unwrap_err();
        let expected = ForecastError::TooSparse {
            values: 10,
            periods: FITTED_MAX,
            step: Step::Fixed(1_000_000),
        };
        assert_eq!(refused.advice(), expected.advice());
    }

    /// What is missing is said: how many points there must be, and how many there are.
    #[test]
    fn a_short_series_says_how_many_points_are_needed() {
        let refused = forecast(&every(DAY_MICROS, &[1.0; 3]), None, 5, 0.95).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the series has 3 points with a value; at least 8 are needed"
        );
    }

    #[test]
    fn odd_series_are_answered_or_refused_but_never_panic() {
        assert!(forecast(&[], None, 5, 0.95).is_err());
        let many = vec![1.0; HISTORY_MAX + 1];
        assert!(forecast(&every(DAY_MICROS, &many), None, 5, 0.95).is_err());
        let constant = forecast(&every(DAY_MICROS, &[3.0; 30]), None, 2, 0.9).unwrap();
        assert_eq!(constant.points[1].1, Interval::exactly(3.0));
        for values in [
            vec![0.0, 1e300, -1e300, 1e300, 0.0, 1e300, -1e300, 1.0, 2.0, 3.0],
            [1e308, -1e308].repeat(20),
            [0.0, f64::MIN_POSITIVE / 4.0].repeat(20),
            (0..40).map(|n| if n == 20 { 1.0 } else { 0.0 }).collect(),
            (0..3_000).map(|n| f64::from(n).sin()).collect(),
        ] {
            for step in [1, HOUR_MICROS, DAY_MICROS, 30 * DAY_MICROS] {
                let _ = forecast(&every(step, &values), None, 3, 0.8);
            }
        }
        let late = i64::MAX - 40 * DAY_MICROS;
        let outside: Vec<(i64, f64)> = every(DAY_MICROS, &[1.0; 30])
            .iter()
            .map(|(at, value)| (late + at, *value))
            .collect();
        assert!(forecast(&outside, None, 3, 0.95).is_err());
    }
}
