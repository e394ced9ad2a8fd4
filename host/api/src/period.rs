//! The spans that figures are shown for: whole UTC dates, the last of them today unless dates are chosen, and the span of the same length
//! before them; and ratios of what was counted in them.

use crate::Problem;
use crate::query::{Date, choices};
use crate::refusals::INVALID_PERIOD;
use serde_json::Number;
use souk_domain::time::{DAY, Timestamp};
use souk_store::sales::Span;

choices! {
    pub enum Period {
        Day = "day",
        Week = "week",
        Month = "month",
        Quarter = "quarter",
    }
}

impl Period {
    const fn days(self) -> u32 {
        match self {
            Period::Day => 1,
            Period::Week => 7,
            Period::Month => 30,
            Period::Quarter => 90,
        }
    }

    /// The dates up to today, and as many before them.
    pub fn spans(self, now: Timestamp) -> (Span, Span) {
        let span = last_days(self.days(), now);
        let before = Span {
            from: span.from.before(DAY * self.days()),
            to: span.from,
        };
        (span, before)
    }
}

// Of how one key or product is used.
choices! {
    pub enum Recent {
        Day = "24h",
        Week = "7d",
        Month = "30d",
        Quarter = "90d",
    }
}

impl Recent {
    /// How many dates it touches.
    pub const fn dates(self) -> u32 {
        match self {
            Recent::Day => 2,
            Recent::Week => 7,
            Recent::Month => 30,
            Recent::Quarter => 90,
        }
    }
}

/// A leap year.
pub const DAYS_MAX: u32 = 366;

/// So many dates, the last of them today.
pub fn last_days(days: u32, now: Timestamp) -> Span {
    let to = now.day_start().after(DAY);
    let from = to.before(DAY * days);
    Span { from, to }
}

/// The dates from the first to the last, which is included; `None` when neither is given.
pub fn chosen(first: Option<Date>, last: Option<Date>) -> Result<Option<Span>, Problem> {
    let invalid = |message: &'static str| Err(Problem::of(INVALID_PERIOD, message));
    let span = match (first, last) {
        (None, None) => return Ok(None),
        (Some(from), Some(last)) => Span {
            from: from.0,
            to: last.0.after(DAY),
        },
        _ => return invalid("send both start_date and end_date, or neither"),
    };
    if span.to <= span.from {
        return invalid("end_date must not be before start_date");
    }
    if span.to.since(span.from) > DAY * DAYS_MAX {
        return invalid("a period has at most 366 days");
    }
    Ok(Some(span))
}

/// The last date of a span.
pub fn last_date(span: Span) -> String {
    span.to.before(DAY).date()
}

/// One span for each date of a span.
pub fn dates(span: Span) -> Vec<Span> {
    let mut dates = Vec::new();
    let mut from = span.from;
    while from < span.to {
        let to = from.after(DAY);
        dates.push(Span { from, to });
        from = to;
    }
    dates
}

/// By how much a number grew, in percent with one decimal. `None`: from nothing, or less, there is no growth in percent.
pub fn change_percent(now: i64, before: i64) -> Option<Number> {
    match before > 0 {
        true => ratio((now - before) * 100, before, 1),
        false => None,
    }
}

/// `over / under` rounded to some decimals, computed in integers. `None` when there is nothing to divide by.
pub fn ratio(over: i64, under: i64, decimals: u32) -> Option<Number> {
    if under == 0 {
        return None;
    }
    let scale = 10_i128.pow(decimals);
    let (over, under) = (i128::from(over) * scale, i128::from(under));
    // Half away from zero.
    let sign = if (over < 0) == (under < 0) { 1 } else { -1 };
    let units = sign * ((2 * over.abs() + under.abs()) / (2 * under.abs()));
    let (whole, part) = (units.abs() / scale, units.abs() % scale);
    let minus = if units < 0 { "-" } else { "" };
    let text = match part {
        0 => format!("{minus}{whole}"),
        _ => format!("{minus}{whole}.{part:0width$}", width = decimals as usize),
    };
    let text = match text.contains('.') {
        true => text.trim_end_matches('0'),
        false => &text,
    };
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A period ends with today, and what came before it touches it and is as long.
    #[test]
    fn periods_are_whole_dates() {
        let now = Timestamp::parse("2026-03-10T23:59:59Z").unwrap();
        for (period, first, former) in [
            (Period::Day, "2026-03-10", "2026-03-09"),
            (Period::Week, "2026-03-04", "2026-02-25"),
            (Period::Month, "2026-02-09", "2026-01-10"),
            (Period::Quarter, "2025-12-11", "2025-09-12"),
        ] {
            let (span, before) = period.spans(now);
            assert_eq!(
                (span.from.date(), last_date(span)),
                (first.into(), "2026-03-10".into())
            );
            assert_eq!((before.from.date(), before.to), (former.into(), span.from));
            assert_eq!(dates(span).len(), period.days() as usize);
        }
    }

    /// Rounded half away from zero, never as a float.
    #[test]
    fn ratios_are_exact() {
        let text = |over, under, decimals| ratio(over, under, decimals).map(|one| one.to_string());
        assert_eq!(text(1, 3, 4).as_deref(), Some("0.3333"));
        assert_eq!(text(2, 3, 1).as_deref(), Some("0.7"));
        assert_eq!(text(-1, 8, 2).as_deref(), Some("-0.13"));
        assert_eq!(text(3, 2, 3).as_deref(), Some("1.5"));
        assert_eq!(text(10, 1, 1).as_deref(), Some("10"));
        assert_eq!(text(1, 0, 1), None);
        assert_eq!(change_percent(5, 4).unwrap().to_string(), "25");
        assert_eq!(change_percent(0, 4).unwrap().to_string(), "-100");
        assert_eq!(change_percent(-2, 4).unwrap().to_string(), "-150");
    }

    /// What grows from nothing, or from a revenue below zero, has no growth in percent: it would be shown as a fall.
    #[test]
    fn nothing_grows_from_nothing_or_less() {
        for (now, before) in [(4, 0), (0, 0), (10, -10), (-20, -10)] {
            assert_eq!(change_percent(now, before), None, "{now} after {before}");
        }
    }
}
