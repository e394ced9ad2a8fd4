//! Files for the connector `files` that are small where they lie, or say so, and large for whoever reads them.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray};
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

const MIB: usize = 1 << 20;

/// What is wrong with a file, or with what is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bomb {
    /// Nothing: proves that the others are reached.
    None,
    /// Parquet whose footer says that it has 2 GiB.
    LongFooter,
    /// Parquet that says the lengths of 268 million texts in a page of some bytes.
    LengthsThatAreNotThere,
    /// Parquet: 600 texts of a megabyte, of which each is written as one that is like the one before.
    SharedBeginnings,
    /// Parquet: two gigabytes in pages of 40 MB, packed into some kilobytes.
    LargePages,
    /// Parquet: a text of a megabyte that is there once, and in 4,000 rows.
    OneTextInEachRow,
    /// Parquet: lists of a thousand texts in each of a thousand rows, all of them the same kilobyte.
    ListsOfOneText,
    /// 400 tables of Parquet in one archive, each with a footer of many row groups.
    ManyFooters,
    /// Ten thousand files in one archive, a thousand of which are a table.
    TinyFiles,
    /// One file more than may be.
    TooManyFiles,
    ArchiveOfArchives,
    /// An archive that has a file with a name of 64 MB.
    LongNameInAnArchive,
    /// Half a gigabyte without an end of a line, packed.
    EndlessLine,
    /// A quote that is never closed, for 64 MB.
    EndlessQuote,
    /// JSON: four million brackets in one another.
    DeepJson,
    /// JSON: numbers of eight million digits.
    LongNumbers,
    /// JSON: ten thousand names, each in a line of its own.
    ManyNames,
    /// Gigabytes of rows in a megabyte.
    RowsWithoutEnd,
    /// A packed file that consists of two million packed nothings.
    MillionsOfNothing,
    /// A gigabyte that the statement puts together of many rows.
    PutTogether,
    /// The same as a list.
    GatheredInAList,
    /// More than is grouped at once.
    GroupsWithoutEnd,
    /// The names of a million rows, which are put together and are not much.
    PutTogetherHonestly,
}

impl Bomb {
    pub const ALL: &[Bomb] = &[
        Bomb::None,
        Bomb::LongFooter,
        Bomb::LengthsThatAreNotThere,
        Bomb::SharedBeginnings,
        Bomb::LargePages,
        Bomb::OneTextInEachRow,
        Bomb::ListsOfOneText,
        Bomb::ManyFooters,
        Bomb::TinyFiles,
        Bomb::TooManyFiles,
        Bomb::ArchiveOfArchives,
        Bomb::LongNameInAnArchive,
        Bomb::EndlessLine,
        Bomb::EndlessQuote,
        Bomb::DeepJson,
        Bomb::LongNumbers,
        Bomb::ManyNames,
        Bomb::RowsWithoutEnd,
        Bomb::MillionsOfNothing,
        Bomb::PutTogether,
        Bomb::GatheredInAList,
        Bomb::GroupsWithoutEnd,
        Bomb::PutTogetherHonestly,
    ];

    /// The extension of the file's name.
    pub fn extension(self) -> &'static str {
        match self {
            Bomb::LongFooter
            | Bomb::LengthsThatAreNotThere
            | Bomb::SharedBeginnings
            | Bomb::LargePages
            | Bomb::OneTextInEachRow
            | Bomb::ListsOfOneText => "parquet",
            Bomb::ManyFooters
            | Bomb::TinyFiles
            | Bomb::TooManyFiles
            | Bomb::ArchiveOfArchives
            | Bomb::LongNameInAnArchive => "tar",
            Bomb::EndlessLine | Bomb::RowsWithoutEnd | Bomb::MillionsOfNothing => "csv.gz",
            Bomb::DeepJson | Bomb::LongNumbers | Bomb::ManyNames => "jsonl",
            Bomb::None
            | Bomb::EndlessQuote
            | Bomb::PutTogether
            | Bomb::GatheredInAList
            | Bomb::GroupsWithoutEnd
            | Bomb::PutTogetherHonestly => "csv",
        }
    }

    /// The statement that meets it. The file's own table is called `t`.
    pub fn sql(self) -> &'static str {
        match self {
            Bomb::SharedBeginnings | Bomb::LargePages => "SELECT sum(length(a)) FROM t",
            Bomb::OneTextInEachRow => "SELECT max(length(upper(a))) FROM t",
            Bomb::LengthsThatAreNotThere => "SELECT max(length(a)) FROM t",
            Bomb::ListsOfOneText => "SELECT count(l[1]) FROM t",
            Bomb::ManyFooters => "SELECT count(*) FROM t0 JOIN t1 ON true",
            Bomb::DeepJson | Bomb::LongNumbers => "SELECT max(length(a)) FROM t",
            Bomb::ManyNames => "SELECT sum(c0) + sum(c9999) FROM t",
            Bomb::PutTogether => {
                "SELECT length(string_agg(repeat('x', 1000), '')) FROM generate_series(1, 1000000) AS g(v)"
            }
            Bomb::GatheredInAList => {
                "SELECT array_length(array_agg(repeat('x', 1000))) FROM generate_series(1, 1000000) AS g(v)"
            }
            Bomb::GroupsWithoutEnd => {
                "SELECT count(*) FROM (SELECT v * 7919 % 99999989 AS w FROM generate_series(1, 100000000) AS g(v) GROUP BY 1) AS x"
            }
            Bomb::PutTogetherHonestly => {
                "SELECT length(string_agg(CAST(v AS text), ',')) FROM generate_series(1, 1000000) AS g(v)"
            }
            _ => "SELECT count(*) FROM t",
        }
    }

    /// The file as it is uploaded.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Bomb::None
            | Bomb::PutTogether
            | Bomb::GatheredInAList
            | Bomb::GroupsWithoutEnd
            | Bomb::PutTogetherHonestly => b"n\n1\n".to_vec(),
            Bomb::LongFooter => b"PAR1 and then\xff\xff\xff\x7fPAR1".to_vec(),
            Bomb::LengthsThatAreNotThere => lengths(),
            Bomb::SharedBeginnings => {
                texts(plain().set_encoding(Encoding::DELTA_BYTE_ARRAY), 600, MIB)
            }
            Bomb::LargePages => texts(plain().set_data_page_size_limit(MIB), 50, 40 * MIB),
            Bomb::OneTextInEachRow => texts(WriterProperties::builder(), 4_000, MIB),
            Bomb::ListsOfOneText => lists(),
            Bomb::ManyFooters => footers(),
            Bomb::TinyFiles => tiny(10_000),
            Bomb::TooManyFiles => tiny(10_001),
            Bomb::ArchiveOfArchives => {
                let inner = tiny(10);
                archive(&[("t.tar".to_owned(), &inner)])
            }
            Bomb::LongNameInAnArchive => {
                archive(&[(format!("{}/t.csv", "n".repeat(64 * MIB)), b"n\n1\n")])
            }
            Bomb::EndlessLine => {
                [packed(b"n\n"), packed(&b"x".repeat(10 * MIB)).repeat(50)].concat()
            }
            Bomb::EndlessQuote => [b"n\n\"", "x".repeat(64 * MIB).as_bytes()].concat(),
            Bomb::DeepJson => {
                let (open, close) = ("[".repeat(4_000_000), "]".repeat(4_000_000));
                format!("{{\"a\":{open}{close}}}\n").into_bytes()
            }
            Bomb::LongNumbers => format!("{{\"a\":{}}}\n", "9".repeat(8_000_000))
                .repeat(6)
                .into_bytes(),
            Bomb::ManyNames => (0..10_000)
                .flat_map(|n| format!("{{\"c{n}\":{n}.5}}\n").into_bytes())
                .collect(),
            Bomb::RowsWithoutEnd => {
                [packed(b"n\n"), packed(&b"0\n".repeat(5 * MIB)).repeat(400)].concat()
            }
            Bomb::MillionsOfNothing => [packed(b"n\n"), packed(b"").repeat(2_000_000)].concat(),
        }
    }
}

fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_dictionary_enabled(false)
}

/// So many rows of one text of so many bytes.
fn texts(properties: WriterPropertiesBuilder, rows: usize, bytes: usize) -> Vec<u8> {
    let text: ArrayRef = Arc::new(StringViewArray::from_iter_values(["x".repeat(bytes)]));
    let level = ZstdLevel::try_new(1).expect("a level");
    let properties = properties.set_compression(Compression::ZSTD(level));
    written(properties, vec![("a".to_owned(), text)], rows)
}

fn written(
    properties: WriterPropertiesBuilder,
    columns: Vec<(String, ArrayRef)>,
    times: usize,
) -> Vec<u8> {
    let rows = RecordBatch::try_from_iter(columns).expect("columns");
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, rows.schema(), Some(properties.build()))
        .expect("a schema that can be written");
    for _ in 0..times {
        writer.write(&rows).expect("rows");
    }
    writer.close().expect("a footer");
    file
}

fn lengths() -> Vec<u8> {
    const ROWS: usize = 3_000_000;
    let properties = plain()
        .set_encoding(Encoding::DELTA_LENGTH_BYTE_ARRAY)
        .set_data_page_row_count_limit(ROWS)
        .set_max_row_group_row_count(Some(ROWS))
        .set_write_batch_size(ROWS);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![""; ROWS]));
    let mut file = written(properties, vec![("a".to_owned(), texts)], 1);
    // Blocks of 128 numbers in four parts, and three million numbers.
    let head = [0x80, 0x01, 0x04, 0xc0, 0x8d, 0xb7, 0x01];
    let at = file.windows(head.len()).position(|bytes| bytes == head);
    let at = at.expect("the page of lengths") + 3;
    file[at..at + 4].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f]);
    file
}

fn lists() -> Vec<u8> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for _ in 0..1_000 {
        lists.values().append_value("x".repeat(1_000));
    }
    lists.append(true);
    let list: ArrayRef = Arc::new(lists.finish());
    written(
        WriterProperties::builder(),
        vec![("l".to_owned(), list)],
        1_000,
    )
}

fn footers() -> Vec<u8> {
    let number = |n: i64| Arc::new(Int64Array::from(vec![n])) as ArrayRef;
    let columns = (0..400).map(|n| (format!("column {n}"), number(n)));
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1));
    let file = written(properties, columns.collect(), 20);
    let files: Vec<(String, &[u8])> = (0..400)
        .map(|n| (format!("t{n}.parquet"), file.as_slice()))
        .collect();
    archive(&files)
}

fn tiny(count: usize) -> Vec<u8> {
    let name = |n| match n {
        ..1_000 => format!("t.csv/part-{n}.csv"),
        _ => format!("notes/{n}.txt"),
    };
    let files: Vec<(String, &[u8])> = (0..count).map(|n| (name(n), &b"n\n1\n"[..])).collect();
    archive(&files)
}

fn archive(files: &[(String, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, path, *bytes)
            .expect("a file of the archive");
    }
    archive.into_inner().expect("the archive")
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).expect("into memory");
    packed.finish().expect("into memory")
}
