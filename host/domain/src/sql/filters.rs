//! How a caller may narrow an endpoint's rows down: a column, an operator, and values that are only ever bound.

use super::Dialect;

/// How a column is compared with what a caller sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    Eq,
    Gt,
    Gte,
    Lt,
    Lte,
    /// One of several values.
    In,
    /// A text that begins so.
    Like,
}

impl Operator {
    pub const ALL: [Operator; 7] = [
        Operator::Eq,
        Operator::Gt,
        Operator::Gte,
        Operator::Lt,
        Operator::Lte,
        Operator::In,
        Operator::Like,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            Operator::Eq => "eq",
            Operator::Gt => "gt",
            Operator::Gte => "gte",
            Operator::Lt => "lt",
            Operator::Lte => "lte",
            Operator::In => "in",
            Operator::Like => "like",
        }
    }

    pub fn of(word: &str) -> Option<Operator> {
        Operator::ALL
            .into_iter()
            .find(|operator| operator.word() == word)
    }

    /// Whether it needs values that have an order.
    pub const fn is_range(self) -> bool {
        matches!(
            self,
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte
        )
    }
}

/// One comparison of a page's statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    pub column: &'a str,
    pub operator: Operator,
    /// How many values are bound: one, but for [`Operator::In`].
    pub values: usize,
    /// It holds timestamps as texts, with a blank or a `T` between day and time and perhaps a `Z` behind. What is bound has a blank and no `Z`
    /// where it is compared by a range.
    pub is_spelled: bool,
}

impl Condition<'_> {
    /// The comparison, `column` being quoted and qualified and `bound` the placeholders of its values.
    pub(super) fn text(&self, dialect: Dialect, column: &str, bound: &[String]) -> String {
        let first = bound.first().map_or("NULL", String::as_str);
        if self.is_spelled && self.operator.is_range() {
            return self.spelled(column, first);
        }
        match (self.operator, dialect) {
            (Operator::Eq, _) => format!("{column} = {first}"),
            (Operator::Gt, _) => format!("{column} > {first}"),
            (Operator::Gte, _) => format!("{column} >= {first}"),
            (Operator::Lt, _) => format!("{column} < {first}"),
            (Operator::Lte, _) => format!("{column} <= {first}"),
            (Operator::In, _) => format!("{column} IN ({})", bound.join(", ")),
            // LIKE is not the same everywhere: SQLite's makes no difference between a and A, and some know no ESCAPE.
            (Operator::Like, Dialect::Sqlite) => format!("{column} GLOB {first}"),
            (Operator::Like, Dialect::BigQuery) => format!("STARTS_WITH({column}, {first})"),
            (Operator::Like, Dialect::ClickHouse) => format!("startsWith({column}, {first})"),
            (Operator::Like, _) => format!("{column} LIKE {first} ESCAPE '!'"),
        }
    }
}

impl Condition<'_> {
    /// By what the texts mean. The day before them is for an index, which finds it however they go on: a blank and a `T` come before a `U`.
    fn spelled(&self, column: &str, first: &str) -> String {
        let day = format!("substr({first}, 1, 10)");
        let (of_days, than) = match self.operator {
            Operator::Gt => (format!(">= {day}"), ">"),
            Operator::Gte => (format!(">= {day}"), ">="),
            Operator::Lt => (format!("< {day} || 'U'"), "<"),
            _ => (format!("< {day} || 'U'"), "<="),
        };
        format!("{column} {of_days} AND rtrim(replace({column}, 'T', ' '), 'Z') {than} {first}")
    }
}

/// What is bound to have an engine's [`Operator::Like`] find the texts that begin with `prefix`, in which no character has a meaning.
pub fn prefix_pattern(dialect: Dialect, prefix: &str) -> String {
    let special: &[char] = match dialect {
        Dialect::BigQuery | Dialect::ClickHouse => return prefix.to_owned(),
        Dialect::Sqlite => &['*', '?', '['],
        Dialect::MsSql => &['%', '_', '!', '['],
        _ => &['%', '_', '!'],
    };
    let mut pattern = String::with_capacity(prefix.len() + 1);
    for char in prefix.chars() {
        match (special.contains(&char), dialect) {
            (true, Dialect::Sqlite) => pattern.extend(['[', char, ']']),
            (true, _) => pattern.extend(['!', char]),
            (false, _) => pattern.push(char),
        }
    }
    pattern.push(match dialect {
        Dialect::Sqlite => '*',
        _ => '%',
    });
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prefix is text: what an engine's pattern gives a meaning is taken literally.
    #[test]
    fn a_prefix_has_no_wildcards() {
        let of = |dialect| prefix_pattern(dialect, "5%_[*?!");
        assert_eq!(of(Dialect::Postgres), "5!%!_[*?!!%");
        assert_eq!(of(Dialect::Sqlite), "5%_[[][*][?]!*");
        assert_eq!(of(Dialect::MsSql), "5!%!_![*?!!%");
        assert_eq!(of(Dialect::BigQuery), "5%_[*?!");
    }

    /// Timestamps of a file are compared by what they mean, and the days before them as they stand, for an index.
    #[test]
    fn spelled_timestamps_are_compared_by_their_meaning() {
        let of = |operator| {
            let condition = Condition {
                column: "at",
                operator,
                values: 1,
                is_spelled: true,
            };
            condition.text(Dialect::Sqlite, "s.\"at\"", &["?1".to_owned()])
        };
        assert_eq!(
            of(Operator::Gt),
            "s.\"at\" >= substr(?1, 1, 10) AND rtrim(replace(s.\"at\", 'T', ' '), 'Z') > ?1"
        );
        assert_eq!(
            of(Operator::Lte),
            "s.\"at\" < substr(?1, 1, 10) || 'U' AND rtrim(replace(s.\"at\", 'T', ' '), 'Z') <= ?1"
        );
        assert_eq!(of(Operator::In), "s.\"at\" IN (?1)");
    }

    /// Every operator has one word.
    #[test]
    fn words_name_operators() {
        for operator in Operator::ALL {
            assert_eq!(Operator::of(operator.word()), Some(operator));
        }
        assert_eq!(Operator::of("ne"), None);
    }
}
