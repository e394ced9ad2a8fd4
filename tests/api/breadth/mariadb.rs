//! What MariaDB says to `mariadb`, its own client, made into what souk writes: by the table of types in `docs/engines.md`, read anew. Where the tests'
//! server is a MySQL, what MySQL says: of the statements those that it understands.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use regex::Regex;
use serde_json::{Map, Value};
use souk_tests::MySql;

use super::blocks::{self, Block, Parameter};
use super::spelling::moment;
use super::{Column, Row, Told};

const SCHEMA: &str = include_str!("mariadb/schema.sql");
/// What MySQL has not, and has in its place. Its first moment is a second later, and of spans of time nothing is beyond the last second.
const FOR_MYSQL: [(&str, &str); 9] = [
    (" code UUID,", " code CHAR(36),"),
    (" net INET6,", " net VARCHAR(39),"),
    (" old_net INET4,", " old_net VARCHAR(15),"),
    (", PERIOD FOR valid (valid_from, valid_to)", ""),
    (" WITH SYSTEM VERSIONING", ""),
    (
        "CREATE SEQUENCE tickets START WITH 100",
        "CREATE TABLE tickets (n INT)",
    ),
    ("1970-01-01 00:00:00.000001", "1970-01-01 00:00:01.000001"),
    ("2038-01-19 03:14:07.999999", "2038-01-19 03:14:07.499999"),
    ("838:59:59.999", "838:59:58.999"),
];
pub const ANSWERED: [&str; 4] = [
    include_str!("mariadb/values.sql"),
    include_str!("mariadb/functions.sql"),
    include_str!("mariadb/queries.sql"),
    include_str!("mariadb/parameters.sql"),
];
pub const REFUSED: &str = include_str!("mariadb/refused.sql");

/// What the client calls MySQL's type of documents.
const DOCUMENT: &str = "?-unknown-?";

/// `decimals` of a float of which the client shows every digit.
const FLOATING: u32 = 31;

/// What the statements are asked of.
pub fn schema(server: &MySql) -> String {
    match server.is_mysql() {
        true => FOR_MYSQL
            .iter()
            .fold(SCHEMA.to_owned(), |schema, (from, to)| {
                assert!(schema.contains(from), "{from} is not there");
                schema.replace(from, to)
            }),
        false => SCHEMA.to_owned(),
    }
}

/// What a statement that writes would change, and the lock that some of them take.
pub fn state(server: &MySql, database: &str) -> String {
    server.admin(&format!(
        "USE {database};
         CHECKSUM TABLE staff, matches, tickets;
         SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}' AND TABLE_NAME NOT LIKE 'seq%';
         SELECT IS_FREE_LOCK('souk'), LOAD_FILE('/tmp/souk-rows') IS NULL, LOAD_FILE('/tmp/souk-value') IS NULL"
    ))
}

/// Those blocks of a file that this server is asked.
pub fn blocks(server: &MySql, file: &'static str) -> Vec<Block> {
    let mut blocks = blocks::read(file);
    blocks.retain(|block| !(block.is_mariadbs && server.is_mysql()));
    blocks
}

/// What the statement answers, with the block's values written into it; what the block says itself, if it says it.
pub fn told(server: &MySql, database: &str, block: &Block) -> Told {
    if let Some(first) = block.answers.first() {
        return said(&block.answers, first);
    }
    server.count_in(database, &[block.sql]);
    let asked = |options: &[&str], sql: &str| {
        let answer = server.client(options, database, sql);
        answer.unwrap_or_else(|error| panic!("{}: {error}", block.name))
    };
    let sql = block.filled(literal);
    let described = asked(&["--table", "--column-type-info"], &sql);
    let columns = described_columns(&String::from_utf8_lossy(&described));
    assert!(!columns.is_empty(), "{} has no columns", block.name);
    let shown = match columns.iter().any(Described::is_cut) {
        true => asked(&XML, &with_all_digits(&sql, &columns)),
        false => asked(&XML, &sql),
    };
    let shown = String::from_utf8(shown).expect("a text: bytes are in hexadecimal");
    let cells = cells(&shown);
    assert_eq!(cells.len() % columns.len(), 0, "{shown}");
    let row = |cells: &[Option<String>]| -> Row {
        let cells = cells.iter().zip(&columns);
        cells
            .map(|(cell, column)| column.spelled(cell.as_deref()?))
            .collect()
    };
    Told {
        rows: cells.chunks(columns.len()).map(row).collect(),
        columns: columns.iter().map(Described::column).collect(),
    }
}

/// Bytes in hexadecimal, and NULL told from a text.
const XML: [&str; 2] = ["--xml", "--binary-as-hex"];

fn said(answers: &[Map<String, Value>], first: &Map<String, Value>) -> Told {
    let column = |(name, value): (&String, &Value)| Column {
        name: name.clone(),
        is_number: value.is_number(),
        is_float: false,
        sorts: true,
    };
    let cell = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Told {
        columns: first.iter().map(column).collect(),
        rows: answers
            .iter()
            .map(|row| row.values().map(cell).collect())
            .collect(),
    }
}

/// A column as the client describes it.
struct Described {
    name: String,
    kind: String,
    /// Its character set is that of what is no text.
    is_binary: bool,
    length: u32,
    decimals: u32,
}

/// What stands before the table of rows.
fn described_columns(text: &str) -> Vec<Described> {
    let column = r"(?ms)^Field +\d+:  `(.*?)`\nOrg_field: .*?^Type: +(\S+).*?^Collation: +\S+ \((\d+)\)\nLength: +(\d+)\n.*?^Decimals: +(\d+)$";
    let column = Regex::new(column).expect("a pattern");
    let head = text.split("\n+-").next().unwrap_or_default();
    let number = |text: &str| text.parse::<u32>().expect("a number");
    let found = column.captures_iter(head);
    found
        .map(|found| Described {
            name: found[1].to_owned(),
            kind: found[2].to_owned(),
            is_binary: &found[3] == "63",
            length: number(&found[4]),
            decimals: number(&found[5]),
        })
        .collect()
}

/// The values of `--xml`, row by row. Its texts are escaped and otherwise as they are, line ends too, which a reader of XML would change.
fn cells(text: &str) -> Vec<Option<String>> {
    let cell = Regex::new(r#"\t<field name="[^"]*"(?: xsi:nil="true" />|>([^<]*)</field>)\n"#);
    let cell = cell.expect("a pattern");
    let unescaped = |text: &str| {
        let text = text.replace("&lt;", "<").replace("&gt;", ">");
        text.replace("&quot;", "\"").replace("&amp;", "&")
    };
    let found = cell.captures_iter(text);
    found
        .map(|found| found.get(1).map(|text| unescaped(text.as_str())))
        .collect()
}

/// The same rows, with every digit of floats: the client shows six of a FLOAT, and of a DOUBLE as many as its column was declared to have.
fn with_all_digits(sql: &str, columns: &[Described]) -> String {
    let column = |column: &Described| {
        let name = format!("`{}`", column.name.replace('`', "``"));
        match column.is_cut() {
            true => format!("CAST({name} AS DOUBLE)"),
            false => name,
        }
    };
    let columns: Vec<String> = columns.iter().map(column).collect();
    let sql = sql.trim_end_matches(';');
    format!("SELECT {} FROM (\n{sql}\n) AS s", columns.join(", "))
}

impl Described {
    fn is_cut(&self) -> bool {
        let is_double = self.kind == "DOUBLE" && self.decimals != FLOATING;
        self.kind == "FLOAT" || is_double
    }

    fn is_float(&self) -> bool {
        matches!(self.kind.as_str(), "FLOAT" | "DOUBLE")
    }

    fn is_number(&self) -> bool {
        let exact = [
            "TINY",
            "SHORT",
            "INT24",
            "LONG",
            "LONGLONG",
            "YEAR",
            "NEWDECIMAL",
        ];
        self.is_float() || exact.contains(&self.kind.as_str())
    }

    fn is_time(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "DATE" | "TIME" | "DATETIME" | "TIMESTAMP"
        )
    }

    fn column(&self) -> Column {
        let is_text = !self.is_binary && self.kind != "BIT";
        Column {
            name: self.name.clone(),
            is_number: self.is_number(),
            is_float: self.is_float(),
            sorts: self.is_number() || self.is_time() || is_text,
        }
    }

    /// A value as souk writes it; none for a day that no calendar has.
    fn spelled(&self, text: &str) -> Option<String> {
        let spelled = match self.kind.as_str() {
            // The shortest digits of 32 bits, of a number that came with those of 64.
            "FLOAT" => text.parse::<f32>().expect("a number").to_string(),
            "DOUBLE" => text.parse::<f64>().expect("a number").to_string(),
            "TIME" | DOCUMENT => text.to_owned(),
            _ if self.is_number() => unfilled(text),
            "BIT" => self.bits(text),
            "DATE" => real_day(text)?.to_owned(),
            "DATETIME" => moment(real_day(text)?),
            "TIMESTAMP" => format!("{}Z", moment(real_day(text)?)),
            _ if self.is_binary => STANDARD.encode(bytes(text)),
            _ => text.to_owned(),
        };
        Some(spelled)
    }

    fn bits(&self, text: &str) -> String {
        // What MySQL computes of bits comes as digits.
        let number = text.parse().unwrap_or_else(|_| {
            let number = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
            bytes(text).iter().fold(0, number)
        });
        match self.length {
            1 => (number == 1).to_string(),
            _ => number.to_string(),
        }
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let digits = text.strip_prefix("0x");
    let digits = digits.unwrap_or_else(|| panic!("{text} is no bytes"));
    hex::decode(digits).expect("bytes")
}

/// Without the zeros of ZEROFILL, with one before a point.
fn unfilled(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let digits = digits.trim_start_matches('0');
    let zero = match digits.chars().next() {
        None | Some('.') => "0",
        Some(_) => "",
    };
    format!("{sign}{zero}{digits}")
}

/// The text, if its day is in the calendar, which has a year 0.
fn real_day(text: &str) -> Option<&str> {
    let day = text.get(..10)?;
    day.parse::<jiff::civil::Date>().ok().map(|_| text)
}

/// A value as its seller would write it in the client.
fn literal(parameter: &Parameter) -> String {
    match (&parameter.value, parameter.kind) {
        (Value::Null, _) => "NULL".to_owned(),
        (Value::String(text), "date") => format!("DATE '{text}'"),
        (Value::String(text), "timestamp") => {
            format!("TIMESTAMP '{}'", text.replace('T', " ").replace('Z', ""))
        }
        (Value::String(text), _) => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        // A float, whether it has a fraction or not.
        (Value::Number(number), "number") => {
            format!("({:e})", number.as_f64().expect("a number"))
        }
        // LIMIT takes no parentheses.
        (Value::Number(number), _) if number.is_u64() => number.to_string(),
        (Value::Number(number), _) => format!("({number})"),
        (Value::Bool(value), _) => value.to_string(),
        (other, _) => panic!("{other} is no value of a parameter"),
    }
}

#[test]
fn zeros_that_fill_are_none() {
    for (text, expected) in [
        ("00042", "42"),
        ("0000", "0"),
        ("000012.50", "12.50"),
        ("0.50", "0.50"),
        (".50", "0.50"),
        ("-0.50", "-0.50"),
        ("100", "100"),
    ] {
        assert_eq!(unfilled(text), expected, "{text}");
    }
}

#[test]
fn what_the_client_shows_is_read() {
    let text = "Field   1:  `a\nb`\nOrg_field:  ``\nCatalog:    `def`\nType:       LONG\nCollation:  binary (63)\nLength:     1\nMax_length: 0\nDecimals:   0\nFlags:      NUM \n\n\
        Field   2:  `x`\nOrg_field:  ``\nType:       STRING (type=uuid)\nCollation:  utf8mb4_general_ci (45)\nLength:     144\nMax_length: 0\nDecimals:   39\nFlags:      \n\n\n+---+\n";
    let columns = described_columns(text);
    let columns: Vec<_> = columns
        .iter()
        .map(|column| {
            (
                column.name.as_str(),
                column.kind.as_str(),
                column.is_binary,
                column.length,
            )
        })
        .collect();
    assert_eq!(
        columns,
        [("a\nb", "LONG", true, 1), ("x", "STRING", false, 144)]
    );
    let text = "<resultset>\n  <row>\n\t<field name=\"a&quot;b\">1 &lt;&amp;lt;\r\n</field>\n\t<field name=\"x\" xsi:nil=\"true\" />\n\t<field name=\"y\"></field>\n  </row>\n</resultset>\n";
    let read = cells(text);
    let read: Vec<Option<&str>> = read.iter().map(Option::as_deref).collect();
    assert_eq!(read, [Some("1 <&lt;\r\n"), None, Some("")]);
    for (text, expected) in [
        ("2024-02-29", true),
        ("2023-02-29 10:00:00", false),
        ("0000-00-00", false),
        ("2026-00-01 10:00:00.000", false),
        ("0000-01-01", true),
        ("9999-12-31 23:59:59", true),
    ] {
        assert_eq!(real_day(text).is_some(), expected, "{text}");
    }
}
