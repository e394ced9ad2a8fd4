//! What the tests of engines sell to the last digit: a row with a value of every type beside one of NULLs, what finds no row, and two hundred
//! columns, also of engines that are themselves here. The tables are each engine's own: it says its types and values of them.

use arrow_ipc::reader::StreamReader;
use serde_json::{Value, json};
use souk_tests::Company;

use crate::breadth::spelling::records;
use crate::formats::{Raw, Sold};

/// As many as an endpoint may have.
const COLUMNS: usize = 200;

/// A record of CSV. NULL is none.
type Record = Vec<Option<String>>;

/// Tables of an engine.
pub struct Exact {
    /// It is there.
    pub schema: &'static str,
    /// The engine's way with names.
    pub name: fn(&str) -> String,
    /// Whole numbers of sixteen digits, texts, and decimals of twenty digits and five behind the point: as a column of each is declared.
    pub wide: [&'static str; 3],
    /// Every type that a column of a table may have: as it is declared, a value as SQLite writes it, and how that leaves in CSV.
    pub kinds: &'static [(&'static str, &'static str, &'static str)],
    /// The type of which an empty list stands for NULL.
    pub empty_for_null: Option<&'static str>,
}

impl Exact {
    /// What makes the tables.
    pub fn tables(&self) -> String {
        let [id, kinds, wide] = ["id", "kinds", "wide"].map(self.name);
        let (schema, [whole, ..]) = (self.schema, self.wide);
        let declared = self.kinds.iter().map(|(declared, ..)| *declared);
        let values: Vec<&str> = self.kinds.iter().map(|(_, value, _)| *value).collect();
        let (values, nulls) = (values.join(", "), vec!["NULL"; values.len()].join(", "));
        let kinds_columns = self.columns("v", declared);
        let quoted = self.wide.map(|declared| format!("\"{declared}\""));
        let quoted = quoted.each_ref().map(String::as_str);
        let wide = wide_table(&format!("{schema}.{wide}"), self.name, quoted);
        format!(
            "CREATE TABLE {schema}.{kinds} ({id} \"{whole}\", {kinds_columns});
             INSERT INTO {schema}.{kinds} VALUES (1, {values}), (2, {nulls});
             {wide}"
        )
    }

    /// A buyer is sent what they have, digit for digit, and pays for rows alone.
    pub async fn leaves(&self, seller: &Company, connection: &str) {
        wide_leaves(seller, connection, self.source("wide"), self.name, true).await;
        self.kinds_leave(seller, connection).await;
    }

    /// Every type, with a value and with NULL; and where there is no row the columns are the same, of the same types, and nothing is charged.
    async fn kinds_leave(&self, seller: &Company, connection: &str) {
        let mut names = vec![(self.name)("id")];
        names.extend(named(self.name, "v", self.kinds.len()));
        let sold = sold(seller, connection, self.source("kinds"), &names).await;
        let page = csv(&sold, "").await;
        let [told, values, nulls] = &page[..] else {
            panic!("{page:?}");
        };
        assert_eq!(told, &head(&names));
        assert_eq!((values.len(), nulls.len()), (names.len(), names.len()));
        for (at, (declared, _, leaves)) in self.kinds.iter().enumerate() {
            assert_eq!(values[at + 1].as_deref(), Some(*leaves), "{declared}");
            let null = match self.empty_for_null == Some(*declared) {
                true => Some("[]"),
                false => None,
            };
            assert_eq!(nulls[at + 1].as_deref(), null, "NULL of {declared}");
        }

        let (columns, rows) = arrow(&sold, "").await;
        assert_eq!((columns.len(), rows), (names.len(), 2));
        let paid = (8, 0);
        assert_eq!(sold.buyer.credits().await, paid);
        let none = format!("?{}=3", names[0]);
        assert_eq!(arrow(&sold, &none).await, (columns, 0));
        assert_eq!(csv(&sold, &none).await, [head(&names)]);
        let page = sold.feed.get(&format!("{}{none}", sold.path)).await;
        let page = page.expect(200);
        assert_eq!(page.at("/data/response/data"), &json!([]));
        assert_eq!(page.at("/data/service/billing/credits_used"), 0);
        assert_eq!(page.at("/data/service/billing/reason"), "empty_page");
        assert_eq!(sold.buyer.credits().await, paid);
    }

    fn source(&self, table: &str) -> Value {
        json!({"schema": self.schema, "table": (self.name)(table)})
    }

    /// Columns of these types, as a table declares them.
    fn columns(&self, begin: &str, declared: impl Iterator<Item = &'static str>) -> String {
        let columns = declared.enumerate().map(|(at, declared)| {
            let name = (self.name)(&format!("{begin}{at}"));
            format!("{name} \"{declared}\"")
        });
        columns.collect::<Vec<String>>().join(", ")
    }
}

/// What makes a table of two hundred columns, of names that an engine has its way with: as it declares a column of whole numbers of sixteen digits, of texts, and
/// of decimals of twenty digits and five behind the point.
pub fn wide_table(table: &str, name: fn(&str) -> String, declared: [&str; 3]) -> String {
    let columns = named(name, "c", COLUMNS).into_iter().enumerate();
    let columns = columns.map(|(at, name)| format!("{name} {}", declared[at % 3]));
    let columns = columns.collect::<Vec<String>>().join(", ");
    let values = (0..COLUMNS).map(|at| match wide_value(at) {
        Some(text) => format!("'{text}'"),
        None => "NULL".to_owned(),
    });
    let values = values.collect::<Vec<String>>().join(", ");
    format!("CREATE TABLE {table} ({columns}); INSERT INTO {table} VALUES ({values});")
}

/// A buyer is sent the two hundred columns of such a table, in their order: in CSV, and as the text of a line of JSON. `has_decimals`: else they are texts.
pub async fn wide_leaves(
    seller: &Company,
    connection: &str,
    source: Value,
    name: fn(&str) -> String,
    has_decimals: bool,
) {
    let names = named(name, "c", COLUMNS);
    let sold = sold(seller, connection, source, &names).await;
    let values: Record = (0..COLUMNS).map(wide_value).collect();
    assert_eq!(csv(&sold, "").await, [head(&names), values]);
    let members = names.iter().enumerate();
    let members = members.map(|(at, name)| match (wide_value(at), at % 3) {
        (None, _) => format!("\"{name}\":null"),
        (Some(text), 1) => format!("\"{name}\":\"{text}\""),
        (Some(text), 2) if !has_decimals => format!("\"{name}\":\"{text}\""),
        (Some(number), _) => format!("\"{name}\":{number}"),
    });
    let members: Vec<String> = members.collect();
    let accept = ("accept", "application/x-ndjson");
    let lines = Raw::get(&sold.feed, &sold.path, &[accept]).await;
    assert_eq!(lines.text(), format!("{{{}}}\n", members.join(",")));
    assert_eq!(sold.buyer.credits().await, (8, 0));
}

/// An endpoint of these columns of a table, in the order of the first one, by which it is filtered, too. A page costs one of its buyer's ten credits.
async fn sold(seller: &Company, connection: &str, source: Value, names: &[String]) -> Sold {
    let fields: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let definition =
        json!({"source": source, "fields": fields, "order_by": [names[0]], "filters": [names[0]]});
    Sold::new(seller, connection, definition, 1, 10).await
}

fn named(name: fn(&str) -> String, begin: &str, count: usize) -> Vec<String> {
    let names = (0..count).map(|at| name(&format!("{begin}{at}")));
    names.collect()
}

/// What stands in a column of the wide table: another one's, or one of a digit less, is seen.
fn wide_value(at: usize) -> Option<String> {
    match (at % 5, at % 3) {
        (4, _) => None,
        (_, 0) => Some((9_007_199_254_740_993 + at).to_string()),
        (_, 1) => Some(format!("v{at}")),
        _ => Some(format!("12345678901234567890.0{at:03}1")),
    }
}

fn head(names: &[String]) -> Record {
    names.iter().cloned().map(Some).collect()
}

async fn csv(sold: &Sold, query: &str) -> Vec<Record> {
    let path = format!("{}{query}", sold.path);
    let csv = Raw::get(&sold.feed, &path, &[("accept", "text/csv")]).await;
    assert_eq!(csv.status, 200, "{}", csv.text());
    records(&csv.text())
}

/// What Arrow says of the columns, and how many rows there are.
async fn arrow(sold: &Sold, query: &str) -> (Vec<String>, usize) {
    let path = format!("{}{query}", sold.path);
    let accept = ("accept", "application/vnd.apache.arrow.stream");
    let arrow = Raw::get(&sold.feed, &path, &[accept]).await;
    let reader = StreamReader::try_new(arrow.bytes.as_slice(), None).expect("an Arrow stream");
    let schema = reader.schema();
    let columns = schema.fields().iter().map(|field| format!("{field:?}"));
    let columns: Vec<String> = columns.collect();
    let rows = reader.map(|batch| batch.expect("a batch").num_rows());
    (columns, rows.sum())
}
