//! What a session knows of statements: that DuckDB's parser has found each to be one query, and since when a transaction that only reads has let it pass. For a minute after that
//! it is asked without one.

use std::collections::VecDeque;

/// Statements that are remembered, and their length together.
const KNOWN_MAX: usize = 64;
const KNOWN_BYTES_MAX: usize = 1 << 20;
/// For so many seconds what a transaction has let pass needs none. A view or a macro may be changed meanwhile, and nobody tells a session.
const PASSED_S: u64 = 60;

/// What they are to the parser does not depend on what the database has; whether they pass does.
#[derive(Default)]
pub struct Known {
    statements: VecDeque<Statement>,
    bytes: usize,
}

struct Statement {
    /// With names for its values.
    text: String,
    /// It does the same whatever its values are, and the time of day.
    is_plain: bool,
    /// When the transaction began that has let it pass.
    passed_at: Option<u64>,
}

impl Known {
    pub fn has(&self, text: &str) -> bool {
        self.statements.iter().any(|known| known.text == text)
    }

    /// The parser has found it to be a query.
    pub fn add(&mut self, text: String, is_plain: bool) {
        if text.len() > KNOWN_BYTES_MAX || self.has(&text) {
            return;
        }
        self.bytes += text.len();
        self.statements.push_back(Statement {
            text,
            is_plain,
            passed_at: None,
        });
        while self.statements.len() > KNOWN_MAX || self.bytes > KNOWN_BYTES_MAX {
            let oldest = self.statements.pop_front();
            self.bytes -= oldest.map_or(0, |known| known.text.len());
        }
    }

    /// A transaction that only reads, and began then, has let it pass.
    pub fn passed(&mut self, text: &str, at: u64) {
        if let Some(known) = self.find(text).filter(|known| known.is_plain) {
            known.passed_at = Some(at);
        }
    }

    /// It has failed, by whatever: it has its transaction the next time.
    pub fn failed(&mut self, text: &str) {
        if let Some(known) = self.find(text) {
            known.passed_at = None;
        }
    }

    /// Whether it needs no transaction. The host's clock may fall.
    pub fn is_passed(&self, text: &str, now: u64) -> bool {
        let is_young = |at: u64| (at..at.saturating_add(PASSED_S)).contains(&now);
        let mut known = self.statements.iter();
        let found = known.find(|known| known.text == text);
        found.is_some_and(|known| known.passed_at.is_some_and(is_young))
    }

    fn find(&mut self, text: &str) -> Option<&mut Statement> {
        self.statements.iter_mut().find(|known| known.text == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut known = Known::default();
        for n in 0..KNOWN_MAX + 1 {
            known.add(n.to_string(), true);
        }
        assert!(!known.has("0") && known.has("1") && known.statements.len() == KNOWN_MAX);
        known.add("x".repeat(KNOWN_BYTES_MAX), true);
        assert!(known.statements.len() == 1 && known.bytes == KNOWN_BYTES_MAX);
        known.add("y".repeat(KNOWN_BYTES_MAX + 1), true);
        assert_eq!(known.statements.len(), 1);
    }

    #[test]
    fn what_has_passed_is_believed_for_a_minute() {
        let mut known = Known::default();
        known.passed("unknown", 100);
        assert!(!known.has("unknown") && !known.is_passed("unknown", 100));
        known.add("calls".into(), false);
        known.passed("calls", 100);
        assert!(known.has("calls") && !known.is_passed("calls", 100));
        known.add("plain".into(), true);
        assert!(!known.is_passed("plain", 100));
        known.passed("plain", 100);
        assert!(known.is_passed("plain", 100) && known.is_passed("plain", 159));
        assert!(!known.is_passed("plain", 160) && !known.is_passed("plain", 99));
        assert!(known.has("plain"), "it is a query still");
        known.passed("plain", 170);
        assert!(known.is_passed("plain", 180));
        known.failed("plain");
        assert!(!known.is_passed("plain", 180) && known.has("plain"));
    }
}
