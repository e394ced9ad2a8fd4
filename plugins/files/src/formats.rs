//! Formats by which texts are read as moments. Of a time of day that a format does not name whole, an hour without its minutes or one of twelve without
//! AM or PM, DataFusion makes midnight.

use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;

/// Functions that read texts by the formats behind them.
const READING: [&str; 6] = [
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
];

/// Whether a call reads a text by a format that stands in the statement, of whose time of day something would be lost.
pub fn loses_time(function: &ScalarFunction) -> bool {
    let mut formats = function.args.iter().skip(1);
    READING.contains(&function.name())
        && formats.any(|format| match format {
            Expr::Literal(format, _) => format.try_as_str().flatten().is_some_and(has_part_of_time),
            _ => false,
        })
}

/// Whether it names something of a time of day, and not an hour with its minutes.
fn has_part_of_time(format: &str) -> bool {
    let named: Vec<char> = named(format).collect();
    let has = |names: &[char]| named.iter().any(|name| names.contains(name));
    // Each of these is a whole time, or the seconds since 1970.
    if has(&['T', 'R', 'X', 'r', 'c', '+', 's']) {
        return false;
    }
    let has_hour = has(&['H', 'k']) || has(&['I', 'l']) && has(&['p', 'P']);
    let is_whole = has_hour && has(&['M']);
    has(&['H', 'k', 'I', 'l', 'p', 'P', 'M', 'S']) && !is_whole
}

/// What stands behind each `%`, and behind what says how it is filled up.
fn named(format: &str) -> impl Iterator<Item = char> {
    let mut signs = format.chars();
    std::iter::from_fn(move || {
        signs.find(|sign| *sign == '%')?;
        signs.find(|sign| !matches!(sign, '-' | '_' | '.' | ':' | '#' | '0'..='9'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_named_whole() {
        for format in [
            "%Y-%m-%d",
            "%d.%m.%Y %H:%M",
            "%Y-%m-%dT%H:%M:%S%.3f%:z",
            "%-I:%M %p %D",
            "%F %T",
            "%+",
            "%s",
            "100%% %Y %b %-d",
            "%Y %%H",
            "",
            "%",
        ] {
            assert!(!has_part_of_time(format), "{format}");
        }
        for format in [
            "%Y-%m-%d %H",
            "%Y-%m-%d %I:%M",
            "%Y-%m-%d %-I %p",
            "%Y-%m-%d %M:%S",
            "%%%Y-%m-%d %_k",
            "%F %S",
        ] {
            assert!(has_part_of_time(format), "{format}");
        }
    }
}
