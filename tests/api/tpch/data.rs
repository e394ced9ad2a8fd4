//! The rows of TPC-H, as its own generator makes them.

use std::fmt::Display;
use std::sync::OnceLock;

use tpchgen::csv::{
    CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv,
};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

/// 60,000 lines of 15,000 orders.
const SCALE: f64 = 0.01;
/// The tables, with types that every engine knows.
pub const TABLES: [(&str, &str); 8] = [
    (
        "region",
        "r_regionkey INTEGER PRIMARY KEY, r_name VARCHAR(25) NOT NULL, r_comment VARCHAR(152) NOT NULL",
    ),
    (
        "nation",
        "n_nationkey INTEGER PRIMARY KEY, n_name VARCHAR(25) NOT NULL, n_regionkey INTEGER NOT NULL, n_comment VARCHAR(152) NOT NULL",
    ),
    (
        "part",
        "p_partkey INTEGER PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr VARCHAR(25) NOT NULL, p_brand VARCHAR(10) NOT NULL, p_type VARCHAR(25) NOT NULL, p_size INTEGER NOT NULL, \
         p_container VARCHAR(10) NOT NULL, p_retailprice DECIMAL(15,2) NOT NULL, p_comment VARCHAR(23) NOT NULL",
    ),
    (
        "supplier",
        "s_suppkey INTEGER PRIMARY KEY, s_name VARCHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL, s_nationkey INTEGER NOT NULL, s_phone VARCHAR(15) NOT NULL, \
         s_acctbal DECIMAL(15,2) NOT NULL, s_comment VARCHAR(101) NOT NULL",
    ),
    (
        "partsupp",
        "ps_partkey INTEGER NOT NULL, ps_suppkey INTEGER NOT NULL, ps_availqty INTEGER NOT NULL, ps_supplycost DECIMAL(15,2) NOT NULL, ps_comment VARCHAR(199) NOT NULL, \
         PRIMARY KEY (ps_partkey, ps_suppkey)",
    ),
    (
        "customer",
        "c_custkey INTEGER PRIMARY KEY, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL, c_nationkey INTEGER NOT NULL, c_phone VARCHAR(15) NOT NULL, \
         c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment VARCHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL",
    ),
    (
        "orders",
        "o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER NOT NULL, o_orderstatus VARCHAR(1) NOT NULL, o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL, \
         o_orderpriority VARCHAR(15) NOT NULL, o_clerk VARCHAR(15) NOT NULL, o_shippriority INTEGER NOT NULL, o_comment VARCHAR(79) NOT NULL",
    ),
    (
        "lineitem",
        "l_orderkey INTEGER NOT NULL, l_partkey INTEGER NOT NULL, l_suppkey INTEGER NOT NULL, l_linenumber INTEGER NOT NULL, l_quantity DECIMAL(15,2) NOT NULL, \
         l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL, l_returnflag VARCHAR(1) NOT NULL, l_linestatus VARCHAR(1) NOT NULL, \
         l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, l_shipinstruct VARCHAR(25) NOT NULL, l_shipmode VARCHAR(10) NOT NULL, \
         l_comment VARCHAR(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)",
    ),
];

/// Without which the questions that look into a table for each row of another would take minutes.
pub const INDEXES: [&str; 3] = [
    "CREATE INDEX orders_of ON orders (o_custkey)",
    "CREATE INDEX lines_of ON lineitem (l_partkey, l_suppkey)",
    "CREATE INDEX supplies_of ON partsupp (ps_suppkey)",
];

/// How large the tables are: as tests have them, where nobody asks for another scale.
pub fn scale() -> f64 {
    match std::env::var("SOUK_TPCH_SCALE") {
        Ok(text) => text.parse().expect("SOUK_TPCH_SCALE is a number"),
        Err(_) => SCALE,
    }
}

/// The rows of each table in the order of `TABLES`, as CSV without a header.
pub fn rows() -> &'static [String; 8] {
    static ROWS: OnceLock<[String; 8]> = OnceLock::new();
    ROWS.get_or_init(|| {
        let scale = scale();
        [
            lines(RegionGenerator::new(scale, 1, 1).iter().map(RegionCsv::new)),
            lines(NationGenerator::new(scale, 1, 1).iter().map(NationCsv::new)),
            lines(PartGenerator::new(scale, 1, 1).iter().map(PartCsv::new)),
            lines(
                SupplierGenerator::new(scale, 1, 1)
                    .iter()
                    .map(SupplierCsv::new),
            ),
            lines(
                PartSuppGenerator::new(scale, 1, 1)
                    .iter()
                    .map(PartSuppCsv::new),
            ),
            lines(
                CustomerGenerator::new(scale, 1, 1)
                    .iter()
                    .map(CustomerCsv::new),
            ),
            lines(OrderGenerator::new(scale, 1, 1).iter().map(OrderCsv::new)),
            lines(
                LineItemGenerator::new(scale, 1, 1)
                    .iter()
                    .map(LineItemCsv::new),
            ),
        ]
    })
}

fn lines(rows: impl Iterator<Item = impl Display>) -> String {
    rows.map(|row| format!("{row}\n")).collect()
}

/// The cells of a line of CSV in which no cell has a line break.
pub fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let cell = cells.last_mut().expect("the one that is read");
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            character => cell.push(character),
        }
    }
    cells
}
