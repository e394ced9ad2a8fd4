//! A page of a table in each dialect: its filters, its order, and where it begins.

use super::*;

const TABLE: RowSource<'_> = RowSource::Table {
    schema: None,
    table: "t",
};

fn order(field: &str, descending: bool, nullable: bool) -> Order<'_> {
    Order {
        field,
        descending,
        nullable,
    }
}

/// What stands between FROM and LIMIT, and what is bound.
fn behind(dialect: Dialect, order_by: &[Order<'_>], nulls: &[bool], ties: bool) -> String {
    let rows = Rows {
        columns: &[Selected::Field("a")],
        conditions: &[],
        order_by,
        key: &[],
        after: Some(&After {
            nulls: nulls.into(),
            ties,
        }),
        window: Window::First(3),
    };
    let statement = page(dialect, &TABLE, &rows);
    let text = statement
        .text
        .replace("SELECT \"a\"\nFROM \"t\" AS s\n", "");
    let text = text.replace("\nLIMIT 3", "").replace("s.", "");
    let text = text.replace('"', "").replace('\n', " ");
    format!("{} {:?}", text.trim(), statement.slots)
}

#[test]
fn a_page_binds_filters_then_count_then_offset() {
    let order = [order("goals", true, true), order("id", false, false)];
    let table = RowSource::Table {
        schema: Some("public"),
        table: "le\"ague",
    };
    let condition = |column, operator, values| Condition {
        column,
        operator,
        values,
        is_spelled: false,
    };
    let conditions = [
        condition("team", Operator::Eq, 1),
        condition("goals", Operator::Gte, 1),
        condition("id", Operator::In, 2),
        condition("name", Operator::Like, 1),
    ];
    let rows = Rows {
        columns: &[Selected::Field("team"), Selected::Field("goals")],
        conditions: &conditions,
        order_by: &order,
        key: &[],
        after: None,
        window: Window::Bound,
    };
    let statement = page(Dialect::Postgres, &table, &rows);
    assert_eq!(
        statement.text,
        "SELECT \"team\", \"goals\"\nFROM \"public\".\"le\"\"ague\" AS s\n\
         WHERE s.\"team\" = $1 AND s.\"goals\" >= $2 AND s.\"id\" IN ($3, $4) AND s.\"name\" LIKE $5 ESCAPE '!'\n\
         ORDER BY s.\"goals\" DESC, s.\"id\"\nLIMIT $6 OFFSET $7"
    );
    use Slot::{Offset, Rows as Count, Value};
    assert_eq!(
        statement.slots,
        [
            Value(0),
            Value(1),
            Value(2),
            Value(3),
            Value(4),
            Count,
            Offset
        ]
    );
    let rows = Rows {
        columns: &[
            Selected::Field("a"),
            Selected::Key {
                field: "id",
                as_kept: false,
            },
        ],
        conditions: &[],
        order_by: &order[1..],
        key: &[],
        after: None,
        window: Window::First(51),
    };
    assert_eq!(
        page(
            Dialect::MySql,
            &RowSource::Statement("SELECT 1 AS a -- x"),
            &rows
        )
        .text,
        "SELECT `a`, s.`id` AS `souk_key_1`\nFROM (\nSELECT 1 AS a -- x\n) AS s\nORDER BY s.`id`\nLIMIT 51"
    );
}

/// Not where a planner does not see by itself that it orders nothing.
#[test]
fn what_is_equal_in_all_rows_orders_none() {
    let order = [order("id", true, false), order("at", false, false)];
    let of = |dialect, order_by: &[Order<'_>], operator, column| {
        let condition = Condition {
            column,
            operator,
            values: 1,
            is_spelled: false,
        };
        let rows = Rows {
            columns: &[Selected::Field("a")],
            conditions: &[condition],
            order_by,
            key: &[],
            after: None,
            window: Window::First(3),
        };
        let text = page(dialect, &TABLE, &rows).text.replace(['"', '`'], "");
        text.split_once("WHERE ").unwrap().1.replace('\n', " ")
    };
    use Operator::{Eq, Gte};
    assert_eq!(
        of(Dialect::Generic, &order, Eq, "id"),
        "s.id = ? ORDER BY s.at LIMIT 3"
    );
    assert_eq!(
        of(Dialect::Generic, &order[..1], Eq, "id"),
        "s.id = ? LIMIT 3"
    );
    let ranged = of(Dialect::Generic, &order[..1], Gte, "id");
    assert_eq!(ranged, "s.id >= ? ORDER BY s.id DESC LIMIT 3");
    let other = of(Dialect::Generic, &order[..1], Eq, "at");
    assert_eq!(other, "s.at = ? ORDER BY s.id DESC LIMIT 3");
    let seen = of(Dialect::Postgres, &order[..1], Eq, "id");
    assert_eq!(seen, "s.id = $1 ORDER BY s.id DESC LIMIT 3");
    let unordered = of(Dialect::MsSql, &order[..1], Eq, "id");
    assert!(unordered.contains("ORDER BY"), "{unordered}");
}

/// Whoever asks for a row by the whole of its key is given no more than one: without a LIMIT, but where its key may be anything.
#[test]
fn one_row_by_its_key_needs_no_limit() {
    let key = ["id".to_owned(), "at".to_owned()];
    let of = |dialect, columns: &[&str], operator, after, window| {
        let conditions: Vec<Condition<'_>> = columns
            .iter()
            .map(|column| Condition {
                column,
                operator,
                values: 1,
                is_spelled: false,
            })
            .collect();
        let rows = Rows {
            columns: &[Selected::Field("a")],
            conditions: &conditions,
            order_by: &[order("id", false, false), order("at", false, false)],
            key: &key,
            after,
            window,
        };
        let statement = page(dialect, &TABLE, &rows);
        assert_eq!(statement.by_key, !statement.text.contains("LIMIT"));
        statement.by_key
    };
    use Operator::{Eq, Gte};
    let both = ["at", "a", "id"];
    let first = Window::First(3);
    for dialect in [Dialect::Generic, Dialect::Postgres] {
        assert!(of(dialect, &both, Eq, None, first));
    }
    assert!(!of(Dialect::Generic, &both[..2], Eq, None, first));
    assert!(!of(Dialect::Generic, &[], Eq, None, first));
    assert!(!of(Dialect::Generic, &both, Gte, None, first));
    assert!(!of(Dialect::Generic, &both, Eq, None, Window::Bound));
    let after = After {
        nulls: [false, false].into(),
        ties: false,
    };
    assert!(!of(Dialect::Generic, &both, Eq, Some(&after), first));
    for dialect in [Dialect::ClickHouse, Dialect::Sqlite, Dialect::MySql] {
        assert!(!of(dialect, &both, Eq, None, first));
    }
}

/// A page begins after a row in a form that an index of the order serves.
#[test]
fn a_page_begins_after_a_row() {
    let of = |order_by: &[Order<'_>], nulls: &[bool], ties| {
        behind(Dialect::Postgres, order_by, nulls, ties)
    };
    let (a, b) = (order("a", false, false), order("b", false, false));
    assert_eq!(
        of(&[a], &[false], false),
        "WHERE a > $1 ORDER BY a [Key(0)]"
    );
    assert_eq!(
        of(&[a], &[false], true),
        "WHERE a >= $1 ORDER BY a [Key(0)]"
    );
    assert_eq!(
        of(&[a, b], &[false, false], false),
        "WHERE (a, b) > ($1, $2) ORDER BY a, b [Key(0), Key(1)]"
    );
    let mixed = [order("a", true, false), b];
    assert_eq!(
        of(&mixed, &[false, false], false),
        "WHERE a <= $1 AND (a < $1 OR a = $1 AND (b > $2 OR b = $2 AND 1 = 0)) ORDER BY a DESC, b [Key(0), Key(1)]"
    );
}

/// Where NULL comes last it is a part of its own; where it comes first it lies before every value.
#[test]
fn rows_without_a_value_are_found() {
    let a = order("a", false, true);
    let last = behind(Dialect::Postgres, &[a], &[false], false);
    assert!(
        last.contains("a > $1") && last.contains("UNION ALL"),
        "{last}"
    );
    assert!(
        last.contains("a IS NULL") && last.contains("ORDER BY 1"),
        "{last}"
    );
    let first = behind(Dialect::Sqlite, &[a], &[false], false);
    assert_eq!(first, "WHERE a > ?1 ORDER BY a [Key(0)]");
    let from_null = behind(Dialect::Sqlite, &[a], &[true], false);
    assert!(from_null.contains("a IS NULL AND 1 = 0"), "{from_null}");
    assert!(from_null.contains("a IS NOT NULL"), "{from_null}");
    let at_end = behind(Dialect::Postgres, &[a], &[true], true);
    assert_eq!(at_end, "WHERE a IS NULL AND 1 = 1 ORDER BY a []");
}
