//! Rules of alerts: which conditions there are, when an answer breaks one, and what becomes of an alert then (`standing`).
//!
//! Knows no asset and no run: an answer is a value. Start reading at [`Condition::breaks`] and [`Standing::after`].

mod standing;

pub use standing::{DELAYS_MAX, Finding, Rules, Standing, State, next_check, told};

use crate::fields::{FieldError, FieldErrors};

/// Runs are charged, and sources are others': nobody is asked more often.
pub const INTERVAL_SECONDS_MIN: i64 = 60;
/// A month. Who wants it less often asks himself.
pub const INTERVAL_SECONDS_MAX: i64 = 31 * 86_400;
pub const INTERVAL_SECONDS_DEFAULT: i64 = 3_600;
/// A day of breaches in a row, minute by minute.
pub const CONSECUTIVE_MAX: i64 = 1_440;
pub const REARM_SECONDS_MAX: i64 = 31 * 86_400;
/// What an alert spends a day unless it says otherwise: an asset of four credits, hourly.
pub const CREDITS_PER_DAY_DEFAULT: i64 = 100;
pub const CREDITS_PER_DAY_MAX: i64 = 1_000_000;
/// Of a threshold that is a text, and of an answer that is kept to be compared.
pub const TEXT_CHARS_MAX: usize = 1_000;
/// Answers that an anomaly is told by: four days of hourly answers.
pub const HISTORY_MAX: usize = 100;
/// Fewer say nothing about what is usual.
pub const HISTORY_MIN: usize = 10;
/// The modified z-score from which Iglewicz and Hoaglin call a value an outlier.
pub const DEVIATIONS_DEFAULT: f64 = 3.5;

/// What kind of answer an alert watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    Number,
    Text,
    /// The next point of a forecast.
    Forecast,
}

/// What an asset answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Number(f64),
    Text(String),
    /// NULL, or no row.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equals,
    Differs,
    /// By more than so many percent of the answer before.
    ChangePercent,
    /// In any way.
    Changed,
    NoData,
    /// Further from the median of its own history than so many of its usual deviations.
    Anomaly,
}

impl Operator {
    pub const ALL: [Operator; 10] = [
        Self::Above,
        Self::AtLeast,
        Self::Below,
        Self::AtMost,
        Self::Equals,
        Self::Differs,
        Self::ChangePercent,
        Self::Changed,
        Self::NoData,
        Self::Anomaly,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Above => "gt",
            Self::AtLeast => "gte",
            Self::Below => "lt",
            Self::AtMost => "lte",
            Self::Equals => "eq",
            Self::Differs => "neq",
            Self::ChangePercent => "change_pct_gt",
            Self::Changed => "changed",
            Self::NoData => "no_data",
            Self::Anomaly => "anomaly",
        }
    }

    pub fn parse(text: &str) -> Option<Operator> {
        Self::ALL
            .into_iter()
            .find(|operator| operator.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Threshold {
    Number(f64),
    Text(String),
}

/// Which number of a forecast's next point is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForecastField {
    #[default]
    Value,
    Lower,
    Upper,
}

impl ForecastField {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Lower => "lower",
            Self::Upper => "upper",
        }
    }

    pub fn parse(text: &str) -> Option<ForecastField> {
        [Self::Value, Self::Lower, Self::Upper]
            .into_iter()
            .find(|field| field.as_str() == text)
    }
}

/// When an alert triggers. Made by [`Condition::new`] only, so a threshold fits its operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    operator: Operator,
    threshold: Option<Threshold>,
    field: Option<ForecastField>,
}

/// Why an answer says nothing about a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecidable {
    #[error("the asset answered nothing, which only the operator no_data looks for")]
    Nothing,
    #[error("the asset answered a text where a number is watched")]
    Text,
    #[error("the asset answered a number where a text is watched")]
    Number,
}

impl Default for Condition {
    fn default() -> Condition {
        Condition {
            operator: Operator::Changed,
            threshold: None,
            field: None,
        }
    }
}

impl Condition {
    pub fn new(
        operator: Operator,
        threshold: Option<Threshold>,
        field: Option<ForecastField>,
    ) -> Result<Condition, Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        let mut wrong = |code, message: &str| errors.add("condition.threshold", code, message);
        let threshold = match (operator, threshold) {
            (Operator::Changed | Operator::NoData, None) => None,
            (Operator::Changed | Operator::NoData, Some(_)) => {
                wrong("invalid", "this operator has no threshold: leave it out");
                None
            }
            (Operator::Anomaly, None) => Some(Threshold::Number(DEVIATIONS_DEFAULT)),
            (_, None) => {
                wrong("required", "is required by this operator");
                None
            }
            (Operator::Equals | Operator::Differs, Some(Threshold::Text(text))) => {
                if text.chars().count() > TEXT_CHARS_MAX {
                    wrong("invalid", "must have at most 1000 characters");
                }
                Some(Threshold::Text(text))
            }
            (_, Some(Threshold::Text(_))) => {
                wrong("invalid", "must be a number for this operator");
                None
            }
            (Operator::Anomaly | Operator::ChangePercent, Some(Threshold::Number(number)))
                if number.is_nan() || number <= 0.0 =>
            {
                wrong("invalid", "must be above 0 for this operator");
                None
            }
            (_, given) => given,
        };
        errors.or(Condition {
            operator,
            threshold,
            field,
        })
    }

    /// Whether it can be about such answers.
    pub fn fits(&self, watched: Watched) -> Result<(), Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        let numeric = !matches!(
            self.operator,
            Operator::Equals | Operator::Differs | Operator::Changed | Operator::NoData
        );
        match (watched, &self.threshold) {
            (Watched::Text, _) if numeric => {
                let message = "must be eq, neq, changed or no_data: the asset answers a text";
                errors.add("condition.operator", "invalid", message);
            }
            (Watched::Text, Some(Threshold::Number(_))) => {
                let message = "must be a text, as the asset's answer is";
                errors.add("condition.threshold", "invalid", message);
            }
            (Watched::Number | Watched::Forecast, Some(Threshold::Text(_))) => {
                let message = "must be a number, as the asset's answer is";
                errors.add("condition.threshold", "invalid", message);
            }
            _ => {}
        }
        if self.field.is_some() && watched != Watched::Forecast {
            let message = "is for predictions only: the asset answers one value";
            errors.add("condition.field", "invalid", message);
        }
        errors.or(())
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    pub fn threshold(&self) -> Option<&Threshold> {
        self.threshold.as_ref()
    }

    pub fn field(&self) -> Option<ForecastField> {
        self.field
    }

    /// Whether earlier answers have to be kept for it.
    pub fn needs_history(&self) -> bool {
        self.operator == Operator::Anomaly
    }

    /// Whether an answer breaks the condition. `before` is the answer before it, `history` the numbers before it, oldest first.
    pub fn breaks(
        &self,
        answer: &Answer,
        before: Option<&Answer>,
        history: &[f64],
    ) -> Result<bool, Undecidable> {
        match self.operator {
            Operator::NoData => return Ok(*answer == Answer::Nothing),
            Operator::Changed => return Ok(before.is_some_and(|before| before != answer)),
            _ => {}
        }
        match (answer, &self.threshold) {
            (Answer::Nothing, _) => Err(Undecidable::Nothing),
            (Answer::Text(text), Some(Threshold::Text(wanted))) => {
                Ok((text == wanted) == (self.operator == Operator::Equals))
            }
            (Answer::Text(_), _) => Err(Undecidable::Text),
            (Answer::Number(value), Some(Threshold::Number(threshold))) => {
                Ok(self.breaks_number(*value, *threshold, before, history))
            }
            (Answer::Number(_), _) => Err(Undecidable::Number),
        }
    }

    fn breaks_number(
        &self,
        value: f64,
        threshold: f64,
        before: Option<&Answer>,
        history: &[f64],
    ) -> bool {
        match self.operator {
            Operator::Above => value > threshold,
            Operator::AtLeast => value >= threshold,
            Operator::Below => value < threshold,
            Operator::AtMost => value <= threshold,
            Operator::Equals => value == threshold,
            Operator::Differs => value != threshold,
            Operator::ChangePercent => match before {
                // From nothing to something is more than any percentage.
                Some(Answer::Number(before)) if *before == 0.0 => value != 0.0,
                Some(Answer::Number(before)) => {
                    (value - before).abs() / before.abs() * 100.0 > threshold
                }
                _ => false,
            },
            Operator::Anomaly => deviations(value, history).is_some_and(|far| far > threshold),
            Operator::Changed | Operator::NoData => false,
        }
    }
}

/// How many usual deviations a value is away from the median of a history: the modified z-score, which an outlier in the history does not
/// change as it would a mean. `None`: the history is too short.
pub fn deviations(value: f64, history: &[f64]) -> Option<f64> {
    /// What makes a median absolute deviation comparable with the standard deviation of a normal distribution …
    const OF_MEDIAN: f64 = 1.4826;
    /// … and a mean absolute deviation, where more than half of the history is the same.
    const OF_MEAN: f64 = 1.2533;
    if history.len() < HISTORY_MIN {
        return None;
    }
    let median_of = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() % 2 {
            0 => (values[middle - 1] + values[middle]) / 2.0,
            _ => values[middle],
        }
    };
    let median = median_of(history.to_vec());
    let away: Vec<f64> = history.iter().map(|known| (known - median).abs()).collect();
    let mean = away.iter().sum::<f64>() / away.len() as f64;
    let usual = match median_of(away) * OF_MEDIAN {
        0.0 => mean * OF_MEAN,
        usual => usual,
    };
    Some(match (value - median).abs() {
        0.0 => 0.0,
        // Where nothing has ever changed, any change is unusual.
        _ if usual == 0.0 => f64::INFINITY,
        away => away / usual,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(operator: Operator, threshold: impl Into<Option<f64>>) -> Condition {
        Condition::new(operator, threshold.into().map(Threshold::Number), None).unwrap()
    }

    fn breaks(condition: &Condition, value: f64, before: Option<f64>) -> bool {
        let before = before.map(Answer::Number);
        condition
            .breaks(&Answer::Number(value), before.as_ref(), &[])
            .unwrap()
    }

    /// Each operator breaks on its side of the threshold, and not on it where it must not.
    #[test]
    fn thresholds_have_two_sides() {
        for (operator, below, on, above) in [
            (Operator::Above, false, false, true),
            (Operator::AtLeast, false, true, true),
            (Operator::Below, true, false, false),
            (Operator::AtMost, true, true, false),
            (Operator::Equals, false, true, false),
            (Operator::Differs, true, false, true),
        ] {
            let condition = condition(operator, 10.0);
            let found = [9.5, 10.0, 10.5].map(|value| breaks(&condition, value, None));
            assert_eq!(found, [below, on, above], "{operator:?}");
        }
    }

    /// A change is measured against the answer before; the first answer changes nothing.
    #[test]
    fn changes_are_measured_against_the_answer_before() {
        let percent = condition(Operator::ChangePercent, 10.0);
        for (before, value, expected) in [
            (None, 5.0, false),
            (Some(100.0), 110.0, false),
            (Some(100.0), 110.1, true),
            (Some(100.0), 89.9, true),
            (Some(-100.0), -111.0, true),
            (Some(0.0), 0.0, false),
            (Some(0.0), 0.1, true),
        ] {
            assert_eq!(
                breaks(&percent, value, before),
                expected,
                "{before:?} {value}"
            );
        }
        let changed = Condition::default();
        assert!(!breaks(&changed, 1.0, None));
        assert!(!breaks(&changed, 1.0, Some(1.0)));
        assert!(breaks(&changed, 1.0, Some(2.0)));
        let gone = changed.breaks(&Answer::Nothing, Some(&Answer::Number(1.0)), &[]);
        assert_eq!(gone, Ok(true));
    }

    /// Nothing is an answer to `no_data` alone, and a text none to a number's condition.
    #[test]
    fn what_says_nothing_is_no_breach() {
        let missing = condition(Operator::NoData, None);
        assert_eq!(missing.breaks(&Answer::Nothing, None, &[]), Ok(true));
        assert!(!breaks(&missing, 0.0, None));
        let above = condition(Operator::Above, 1.0);
        let text = Answer::Text("2".into());
        assert_eq!(
            above.breaks(&Answer::Nothing, None, &[]),
            Err(Undecidable::Nothing)
        );
        assert_eq!(above.breaks(&text, None, &[]), Err(Undecidable::Text));
        let wanted = Some(Threshold::Text("2".into()));
        let equals = Condition::new(Operator::Equals, wanted, None).unwrap();
        assert_eq!(equals.breaks(&text, None, &[]), Ok(true));
        let number = Answer::Number(2.0);
        assert_eq!(equals.breaks(&number, None, &[]), Err(Undecidable::Number));
    }

    /// What is far from its own history is an anomaly: not before there is one, and an outlier in it hides no other.
    #[test]
    fn anomalies_are_far_from_their_history() {
        let anomaly = condition(Operator::Anomaly, None);
        let breaks = |value, history: &[f64]| {
            anomaly
                .breaks(&Answer::Number(value), None, history)
                .unwrap()
        };
        let mut history: Vec<f64> = (0..20).map(|n| 100.0 + f64::from(n % 5)).collect();
        assert!(!breaks(104.0, &history));
        assert!(!breaks(107.0, &history));
        assert!(breaks(108.0, &history));
        assert!(breaks(50.0, &history));
        assert!(!breaks(1e9, &history[..HISTORY_MIN - 1]));
        history.push(1e9);
        assert!(breaks(120.0, &history));
        let same = [7.0; 12];
        assert!(!breaks(7.0, &same));
        assert!(breaks(7.1, &same));
    }

    /// A threshold that does not fit its operator, or a condition that does not fit its asset, is named.
    #[test]
    fn conditions_that_cannot_be_are_refused() {
        let field = |made: Result<Condition, Vec<FieldError>>| made.unwrap_err()[0].field.clone();
        let number = |value| Some(Threshold::Number(value));
        for (operator, threshold) in [
            (Operator::Above, None),
            (Operator::NoData, number(1.0)),
            (Operator::Above, Some(Threshold::Text("a".into()))),
            (Operator::ChangePercent, number(0.0)),
            (Operator::Anomaly, number(-1.0)),
            (
                Operator::Equals,
                Some(Threshold::Text("a".repeat(TEXT_CHARS_MAX + 1))),
            ),
        ] {
            let made = Condition::new(operator, threshold, None);
            assert_eq!(field(made), "condition.threshold", "{operator:?}");
        }
        let above = condition(Operator::Above, 1.0);
        assert!(above.fits(Watched::Number).is_ok());
        assert_eq!(
            above.fits(Watched::Text).unwrap_err()[0].field,
            "condition.operator"
        );
        let lower = Condition::new(Operator::Above, number(1.0), Some(ForecastField::Lower));
        let lower = lower.unwrap();
        assert!(lower.fits(Watched::Forecast).is_ok());
        assert_eq!(
            lower.fits(Watched::Number).unwrap_err()[0].field,
            "condition.field"
        );
    }
}
