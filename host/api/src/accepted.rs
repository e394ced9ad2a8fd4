//! Whether a client would rather have another rendition than JSON: what its `Accept` names first decides. Of rows, which come in many
//! formats, [`crate::data::accept`] decides.

use http::{HeaderMap, header};

/// Whether the client would rather have `kind`, such as `text/csv`, than JSON.
pub fn is_preferred(headers: &HeaderMap, kind: &str) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|range| range.split(';').next())
        .map(str::trim)
        .find(|range| [kind, "application/json", "*/*"].contains(range))
        == Some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    /// The first type that we have decides.
    #[test]
    fn accept_is_read_in_order() {
        for (accept, expected) in [
            ("text/csv", true),
            ("text/csv; charset=utf-8, */*;q=0.1", true),
            ("application/json, text/csv", false),
            ("*/*", false),
            ("text/html,text/csv", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(is_preferred(&headers, "text/csv"), expected, "{accept}");
        }
        assert!(!is_preferred(&HeaderMap::new(), "text/csv"));
    }
}
