//! In which format a client wants its rows: `Accept`, as RFC 9110 reads it.

use crate::problem::Problem;
use crate::refusals::NOT_ACCEPTABLE;
use http::{HeaderMap, header};
use souk_app::fetch::Format;

/// What there is, the first for whoever does not care, with what it is answered as first and what it is asked for by as well.
const FORMATS: [(Format, &[&str]); 5] = [
    (Format::Json, &["application/json"]),
    (
        Format::JsonLines,
        &[
            "application/x-ndjson",
            "application/ndjson",
            "application/jsonl",
        ],
    ),
    (Format::Csv, &["text/csv"]),
    (Format::Arrow, &["application/vnd.apache.arrow.stream"]),
    (Format::Parquet, &["application/vnd.apache.parquet"]),
];

/// The content type of a format.
pub const fn content_type(format: Format) -> &'static str {
    match format {
        Format::Json => "application/json",
        Format::JsonLines => "application/x-ndjson",
        Format::Csv => "text/csv; charset=utf-8",
        Format::Arrow => "application/vnd.apache.arrow.stream",
        Format::Parquet => "application/vnd.apache.parquet",
    }
}

/// Ranges of `Accept` that are looked at, the first ones: each is held against all formats, and a head has room for thousands.
const RANGES_MAX: usize = 64;

/// One range of `Accept`.
struct Range<'a> {
    kind: &'a str,
    quality: f32,
    place: usize,
}

/// The format that a client wants most for a page. Of those it wants alike: what it named first.
pub fn of_page(headers: &HeaderMap) -> Result<Format, Problem> {
    choose(headers, &FORMATS)
}

/// The same for an export, which has no envelope.
pub fn of_export(headers: &HeaderMap) -> Result<Format, Problem> {
    choose(headers, &FORMATS[1..])
}

fn choose(headers: &HeaderMap, formats: &[(Format, &[&'static str])]) -> Result<Format, Problem> {
    let values = headers.get_all(header::ACCEPT).iter();
    let texts: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    let ranges = texts.iter().flat_map(|text| text.split(','));
    let ranges: Vec<Range<'_>> = ranges
        .filter(|range| !range.trim().is_empty())
        .take(RANGES_MAX)
        .enumerate()
        .map(|(place, range)| {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let quality = parts
                .filter_map(|part| part.split_once('='))
                .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
                .and_then(|(_, value)| value.trim().parse().ok());
            Range {
                kind,
                quality: quality.unwrap_or(1.0),
                place,
            }
        })
        .collect();
    let mut best = match (ranges.is_empty(), formats) {
        (true, [(first, _), ..]) => Some((1.0, 0, *first)),
        _ => None,
    };
    for (format, names) in formats {
        // The range that says most decides, whatever stands before it.
        let Some((_, range)) = ranges
            .iter()
            .filter_map(|range| Some((precision(range.kind, names)?, range)))
            .max_by_key(|(precision, range)| (*precision, usize::MAX - range.place))
        else {
            continue;
        };
        let is_better = best.is_none_or(|(quality, place, _)| {
            range.quality > quality || range.quality == quality && range.place < place
        });
        if range.quality > 0.0 && is_better {
            best = Some((range.quality, range.place, *format));
        }
    }
    best.map(|(_, _, format)| format).ok_or_else(|| {
        let names: Vec<&str> = formats
            .iter()
            .filter_map(|(_, names)| names.first().copied())
            .collect();
        Problem::of(
            NOT_ACCEPTABLE,
            format!(
                "rows come as {}; name one of them in Accept",
                names.join(", ")
            ),
        )
        .detail("formats", names)
    })
}

/// How exactly a range names one of these.
fn precision(range: &str, names: &[&str]) -> Option<u8> {
    let range = range.to_ascii_lowercase();
    if names.contains(&range.as_str()) {
        return Some(2);
    }
    let (kind, anything) = range.split_once('/')?;
    match (kind, anything) {
        ("*", "*") => Some(0),
        (kind, "*") => names
            .iter()
            .any(|name| name.split('/').next() == Some(kind))
            .then_some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn wanted(accept: &'static str) -> Option<Format> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        of_page(&headers).ok()
    }

    /// The wish that weighs most decides, then the one that came first, and whoever does not care gets JSON.
    #[test]
    fn the_greatest_wish_decides() {
        assert_eq!(of_page(&HeaderMap::new()).ok(), Some(Format::Json));
        assert_eq!(of_export(&HeaderMap::new()).ok(), Some(Format::JsonLines));
        for (accept, expected) in [
            ("", Some(Format::Json)),
            ("*/*", Some(Format::Json)),
            ("text/html, */*;q=0.1", Some(Format::Json)),
            ("text/*", Some(Format::Csv)),
            ("text/csv; charset=utf-8, */*;q=0.1", Some(Format::Csv)),
            (
                "application/json;q=0.5, application/x-ndjson",
                Some(Format::JsonLines),
            ),
            (
                "application/vnd.apache.parquet, application/vnd.apache.arrow.stream",
                Some(Format::Parquet),
            ),
            (
                "application/*, application/json;q=0",
                Some(Format::JsonLines),
            ),
            ("APPLICATION/JSONL", Some(Format::JsonLines)),
            ("text/html", None),
            ("application/json;q=0", None),
        ] {
            assert_eq!(wanted(accept), expected, "{accept}");
        }
    }

    /// Of thousands of ranges the first ones count.
    #[test]
    fn the_first_ranges_are_looked_at() {
        let of = |before: usize| {
            let accept = format!("{}text/csv", "a/b,".repeat(before));
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::try_from(accept).unwrap());
            of_page(&headers).ok()
        };
        assert_eq!(of(RANGES_MAX - 1), Some(Format::Csv));
        assert_eq!(of(RANGES_MAX), None);
    }
}
