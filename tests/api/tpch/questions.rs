//! The 22 questions of TPC-H with the values that its specification validates them by, and what becomes of them in other dialects than PostgreSQL's.

use jiff::ToSpan as _;
use jiff::civil::Date;
use regex::{Captures, Regex};

use super::data::scale;

pub const COUNT: i32 = 22;

/// The values of a question's parameters, in their order.
fn values(number: i32) -> Vec<String> {
    let fraction = (0.0001 / scale()).to_string();
    let values: &[&str] = match number {
        1 => &["90"],
        2 => &["15", "BRASS", "EUROPE"],
        3 => &["BUILDING", "1995-03-15"],
        4 => &["1993-07-01"],
        5 => &["ASIA", "1994-01-01"],
        6 => &["1994-01-01", "0.06", "24"],
        7 => &["FRANCE", "GERMANY"],
        8 => &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
        9 => &["green"],
        10 => &["1993-10-01"],
        11 => &["GERMANY", &fraction],
        12 => &["MAIL", "SHIP", "1994-01-01"],
        13 => &["special", "requests"],
        14 => &["1995-09-01"],
        15 => &["1996-01-01"],
        16 => &[
            "Brand#45",
            "MEDIUM POLISHED",
            "49",
            "14",
            "23",
            "45",
            "19",
            "3",
            "36",
            "9",
        ],
        17 => &["Brand#23", "MED BOX"],
        18 => &["300"],
        19 => &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
        20 => &["forest", "1994-01-01", "CANADA"],
        21 => &["SAUDI ARABIA"],
        22 => &["13", "31", "23", "29", "30", "18", "17"],
        _ => panic!("there is no question {number}"),
    };
    values.iter().map(|value| (*value).to_owned()).collect()
}

/// A question as PostgreSQL, MariaDB and DuckDB read it: one statement whose columns have names.
pub fn question(number: i32) -> String {
    let text = tpchgen::q_and_a::queries::query(number).expect("a question");
    // The view of question 15 becomes a table expression.
    let text = text
        .replace(
            "create view revenue:s (supplier_no, total_revenue) as",
            "with revenue (supplier_no, total_revenue) as (",
        )
        .replace("l_suppkey;\nselect", "l_suppkey)\nselect")
        .replace("revenue:s", "revenue")
        .replace("day (3)", "day")
        .replace(
            "o_totalprice,\n\tsum(l_quantity)\n",
            "o_totalprice,\n\tsum(l_quantity) as quantity\n",
        )
        .replace("count(o_orderkey)\n", "count(o_orderkey) as c_count\n")
        .replace("c_orders (c_custkey, c_count)", "c_orders");
    let (text, _) = text.trim().split_once(';').expect("an end");
    let mut text = text.to_owned();
    // From behind, or `:1` would be found in `:10`.
    for (place, value) in values(number).iter().enumerate().rev() {
        text = text.replace(&format!(":{}", place + 1), value);
    }
    text
}

/// A question without spans of time: the days that they lead to are written out.
pub fn with_days(number: i32) -> String {
    let spans = Regex::new(r"date '([0-9-]+)' ([+-]) interval '([0-9]+)' (day|month|year)")
        .expect("a pattern");
    let days = |found: &Captures<'_>| {
        let from: Date = found[1].parse().expect("a day");
        let count: i64 = found[3].parse().expect("a number");
        let span = match &found[4] {
            "day" => count.days(),
            "month" => count.months(),
            _ => count.years(),
        };
        let day = match &found[2] {
            "+" => from + span,
            _ => from - span,
        };
        format!("date '{day}'")
    };
    spans.replace_all(&question(number), days).into_owned()
}

/// A question as SQLite reads it, where a day is a text.
pub fn for_sqlite(number: i32) -> String {
    let years = Regex::new(r"extract\(year from (\w+)\)").expect("a pattern");
    let text = with_days(number)
        .replace("date '", "'")
        .replace("substring(c_phone from 1 for 2)", "substr(c_phone, 1, 2)");
    years
        .replace_all(&text, "cast(strftime('%Y', $1) as integer)")
        .into_owned()
}
