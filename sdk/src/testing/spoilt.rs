//! Documents with a fault at each place.

/// The document without its end from each place on, and with each of these characters before and instead of the one at each place: what a reader
/// has to refuse, or to read as another reader does.
pub fn spoilt(document: &str, others: &str) -> impl Iterator<Item = String> {
    document.char_indices().flat_map(move |(at, was)| {
        let (before, after) = document.split_at(at);
        let behind = &after[was.len_utf8()..];
        let cut = std::iter::once(before.to_owned());
        cut.chain(others.chars().flat_map(move |other| {
            [
                format!("{before}{other}{after}"),
                format!("{before}{other}{behind}"),
            ]
        }))
    })
}
