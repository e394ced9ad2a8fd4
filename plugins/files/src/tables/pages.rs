//! What Parquet's reader takes on trust: how large pages say that they are. A page that ends behind its column would end the connector, and one
//! that unpacks to gigabytes its memory. Where they lie is in [`super::places`].

use super::numbers;
use crate::errors;
use souk_sdk::Error;

/// One page, unpacked. Writers make pages of a megabyte or so.
const PAGE_BYTES_MAX: u64 = 96 << 20;
const LIST_VALUES_MAX: u64 = 16 << 20;
/// How deep the structures of a page's header, or of a footer, nest.
const DEPTH_MAX: usize = 8;

/// How deep structures and lists of a schema nest.
const SCHEMA_DEPTH_MAX: usize = 40;
/// Columns, and what they are in.
const SCHEMA_MAX: u64 = 2 * super::COLUMNS_MAX as u64;

/// The schema that a footer begins with is one that can be gone through: whoever reads it recurses.
pub fn check_schema(footer: &[u8]) -> Result<(), Error> {
    let mut header = Header::new(footer);
    match header.schema() {
        Some(true) => Ok(()),
        Some(false) => Err(errors::broken(
            "too_many_columns",
            format!(
                "the file has more than {} columns, or they nest deeper than {SCHEMA_DEPTH_MAX}",
                super::COLUMNS_MAX
            ),
        )),
        None => Err(broken("its footer does not begin with a schema")),
    }
}

/// The lists of a footer, or of an index of pages, have as many elements as they say: whoever reads it makes room for so many before the first.
pub fn check_lists(structure: &[u8], name: &str) -> Result<(), Error> {
    let whole = Header::new(structure).skip(STRUCTURE, 0);
    whole.ok_or_else(|| broken(&format!("its {name} says that it has more than it has")))
}

/// A page, as its header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageSize {
    /// Where it begins in what was read, and how long it is there, with its header.
    pub start: u64,
    pub length: u64,
    /// What it unpacks to.
    pub bytes: u64,
    /// NULLs included; those of a dictionary are none.
    pub values: u64,
    pub is_dictionary: bool,
    /// Its values are numbers of those in the dictionary.
    pub is_of_dictionary: bool,
    /// Its texts have lengths that are written as differences: what they are together is in the page.
    pub is_delta: bool,
}

/// How rows of pages become batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// So many rows that follow on each other.
    Rows(u64),
    /// Some of all, or so many that nobody knows: as if they were one batch.
    All,
}

/// What a reader has at once of the pages of a column: its dictionary, and all pages of which a batch has rows, since texts lie where they
/// were unpacked.
pub fn held_at_once(pages: &[PageSize], together: Together) -> u64 {
    let (dictionaries, data): (Vec<PageSize>, Vec<PageSize>) =
        pages.iter().partition(|page| page.is_dictionary);
    let dictionary = dictionaries
        .iter()
        .map(|page| page.bytes)
        .max()
        .unwrap_or(0);
    let data = match together {
        Together::All => data.iter().map(|page| page.bytes).sum(),
        Together::Rows(rows) => of_rows(&data, rows),
    };
    dictionary + data
}

/// The most that pages have of which a batch of so many rows has some: of the first and of the last it may be a single one.
fn of_rows(pages: &[PageSize], rows: u64) -> u64 {
    let (mut first, mut bytes, mut between, mut most) = (0, 0, 0u64, 0);
    for (last, page) in pages.iter().enumerate() {
        bytes += page.bytes;
        if last > first + 1 {
            between += pages[last - 1].values;
        }
        while last > first && between + 2 > rows {
            bytes -= pages[first].bytes;
            first += 1;
            between = match last > first {
                true => between - pages[first].values,
                false => 0,
            };
        }
        most = most.max(bytes);
    }
    most
}

/// Goes from page to page through bytes that are pages from their first on to their last. A page of a column in lists may be one row.
pub fn check_pages(whole: &[u8], is_in_list: bool) -> Result<Vec<PageSize>, Error> {
    let mut all = Vec::new();
    let mut bytes = whole;
    while !bytes.is_empty() {
        let start = whole.len() - bytes.len();
        let mut header = Header::new(bytes);
        header.structure(0).ok_or_else(no_page)?;
        let rest = header.bytes;
        let [Some(unpacked), Some(packed)] = header.sizes else {
            return Err(no_page());
        };
        if unpacked > PAGE_BYTES_MAX || is_in_list && header.values > LIST_VALUES_MAX {
            return Err(page_too_large());
        }
        // Its reader goes by the type, and takes on trust that levels are as long as it says, and that behind them something stands.
        let is_of_dictionary = OF_DICTIONARY.contains(&header.encoding);
        let has_nothing = header.kind == DATA_PAGE_V2 && header.levels == unpacked;
        let is_cut = header.levels > unpacked.min(packed) || is_of_dictionary && has_nothing;
        if header.page_type.checked_add(DATA_PAGE) != Some(header.kind) || is_cut {
            return Err(broken("a page of it is not what its header says"));
        }
        let packed = usize::try_from(packed).map_err(|_| no_page())?;
        bytes = rest.get(packed..).ok_or_else(no_page)?;
        // Which nobody reads.
        if header.kind == INDEX_PAGE {
            continue;
        }
        let is_dictionary = header.kind == DICTIONARY_PAGE;
        all.push(PageSize {
            start: start as u64,
            length: (whole.len() - start - bytes.len()) as u64,
            bytes: unpacked,
            values: if is_dictionary { 0 } else { header.values },
            is_dictionary,
            is_of_dictionary,
            is_delta: DELTA_TEXTS.contains(&header.encoding),
        });
    }
    Ok(all)
}

/// Gives pages whose texts are written as differences the size that they have in memory.
pub fn unfold(pages: &mut [PageSize], texts: &[Option<u64>]) -> Result<(), Error> {
    let data = pages.iter_mut().filter(|page| !page.is_dictionary);
    for (page, bytes) in data.zip(texts) {
        let bytes = bytes.ok_or_else(|| broken("a page of it has other lengths than it says"))?;
        if bytes > PAGE_BYTES_MAX {
            return Err(page_too_large());
        }
        page.bytes = page.bytes.max(bytes);
    }
    Ok(())
}

fn page_too_large() -> Error {
    errors::broken(
        "page_too_large",
        "a page of the file unpacks to more than 96 MiB, or has more than 16 million values of lists: write smaller pages",
    )
}

fn no_page() -> Error {
    broken("a page of it does not end where it should")
}

pub fn broken(what: &str) -> Error {
    errors::broken(
        "file_broken",
        "the file is damaged, or not what its name says",
    )
    .detail(what)
}

/// A page's header in Thrift's compact protocol, of which the two sizes are read and everything else is passed over.
struct Header<'a> {
    bytes: &'a [u8],
    /// Unpacked, and as it lies in the file.
    sizes: [Option<u64>; 2],
    values: u64,
    /// What is said of the kind of page, the field that its own header is, of which there is one, and how its values are written.
    page_type: i64,
    kind: i64,
    encoding: i64,
    /// Bytes that levels take before they are unpacked, where the header says so.
    levels: u64,
}

/// A structure, among the types of Thrift's.
const STRUCTURE: u8 = 12;
/// The shortest one that is in a list: the head of a field, what it holds, and an end. Who reads it has made room for some dozens of bytes.
const STRUCTURE_BYTES_MIN: u64 = 3;
/// Fields of a page's header, in the order of the types.
const DATA_PAGE: i64 = 5;
const INDEX_PAGE: i64 = 6;
const DICTIONARY_PAGE: i64 = 7;
const DATA_PAGE_V2: i64 = 8;
/// `DELTA_LENGTH_BYTE_ARRAY` and `DELTA_BYTE_ARRAY`.
const DELTA_TEXTS: [i64; 2] = [6, 7];
/// `PLAIN_DICTIONARY` and `RLE_DICTIONARY`.
const OF_DICTIONARY: [i64; 2] = [2, 8];

impl<'a> Header<'a> {
    fn new(bytes: &'a [u8]) -> Header<'a> {
        Header {
            bytes,
            sizes: [None; 2],
            values: 0,
            page_type: 0,
            kind: 0,
            encoding: 0,
            levels: 0,
        }
    }

    fn structure(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut field = 0i64;
        loop {
            let head = self.byte()?;
            let kind = head & 0x0f;
            if kind == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => self.signed()?,
                ahead => field.checked_add(ahead.into())?,
            };
            if (depth, kind) == (0, STRUCTURE) {
                if self.kind != 0 {
                    return None;
                }
                self.kind = field;
            }
            match (depth, field, kind) {
                (0, 1, 5) => self.page_type = self.signed()?,
                (0, 2, 5) => self.sizes[0] = Some(u64::try_from(self.signed()?).ok()?),
                (0, 3, 5) => self.sizes[1] = Some(u64::try_from(self.signed()?).ok()?),
                // In each kind of page's own header the first field.
                (1, 1, 5) => self.values = u64::try_from(self.signed()?).ok()?,
                (1, 2, 5) if self.kind == DATA_PAGE => self.encoding = self.signed()?,
                (1, 4, 5) if self.kind == DATA_PAGE_V2 => self.encoding = self.signed()?,
                (1, 5 | 6, 5) if self.kind == DATA_PAGE_V2 => {
                    let levels = u64::try_from(self.signed()?).ok()?;
                    self.levels = self.levels.checked_add(levels)?;
                }
                _ => self.skip(kind, depth)?,
            }
        }
    }

    /// Whether the schema of a footer is small enough. It is the second field of it, behind a number: elements in the order of a tree.
    fn schema(&mut self) -> Option<bool> {
        let (version, _, list) = (self.byte()?, self.varint()?, self.byte()?);
        if (version, list) != (0x15, 0x19) {
            return None;
        }
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        if count > SCHEMA_MAX {
            return Some(false);
        }
        // How many elements are still to come in each of those that are open.
        let mut open: Vec<i64> = Vec::new();
        for _ in 0..count {
            let children = self.element()?;
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            if children > 0 {
                open.push(children);
            }
            if open.len() > SCHEMA_DEPTH_MAX {
                return Some(false);
            }
            while open.last() == Some(&0) {
                open.pop();
            }
        }
        Some(true)
    }

    /// How many elements are in one, its fifth field.
    fn element(&mut self) -> Option<i64> {
        let (mut field, mut children) = (0i64, 0);
        loop {
            let head = self.byte()?;
            let kind = head & 0x0f;
            if kind == 0 {
                return Some(children);
            }
            field = match head >> 4 {
                0 => self.signed()?,
                ahead => field.checked_add(ahead.into())?,
            };
            match (field, kind) {
                (5, 5) => children = self.signed()?,
                _ => self.skip(kind, 1)?,
            }
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            1 | 2 => Some(()),
            3 => self.take(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.take(8),
            8 => {
                let len = self.varint()?;
                self.take(len)
            }
            9 | 10 => self.list(depth),
            STRUCTURE => self.structure(depth + 1),
            // Maps and what comes later: no header of a page has them, and no footer.
            _ => None,
        }
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        let before = self.bytes.len();
        for _ in 0..count {
            match head & 0x0f {
                // Of a list booleans are bytes.
                1 | 2 => self.take(1)?,
                kind => self.skip(kind, depth + 1)?,
            }
        }
        let read = (before - self.bytes.len()) as u64;
        let are_whole = head & 0x0f != STRUCTURE || read / STRUCTURE_BYTES_MIN >= count;
        are_whole.then_some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn take(&mut self, count: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        numbers::varint(&mut self.bytes)
    }

    fn signed(&mut self) -> Option<i64> {
        numbers::signed(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type 0, unpacked and packed sizes, and a header of a data page with two fields.
    fn page(unpacked: u8, packed: u8, body: usize) -> Vec<u8> {
        let head = [
            0x15,
            0,
            0x15,
            unpacked << 1,
            0x15,
            packed << 1,
            0x2c,
            0x15,
            4,
            0x15,
            0,
            0,
            0,
        ];
        [&head[..], &vec![7; body]].concat()
    }

    #[test]
    fn pages_end_where_they_should() {
        let pages = [page(5, 5, 5), page(0, 0, 0), page(9, 3, 3)].concat();
        let pages = check_pages(&pages, true).unwrap();
        let bytes: Vec<u64> = pages.iter().map(|page| page.bytes).collect();
        assert_eq!(bytes, [5, 0, 9]);
        assert_eq!(pages[0].values, 2);
        let places: Vec<(u64, u64)> = pages.iter().map(|page| (page.start, page.length)).collect();
        assert_eq!(places, [(0, 18), (18, 13), (31, 16)]);
        for bytes in [
            page(5, 5, 4),
            page(5, 5, 6),
            vec![0],
            vec![0x15],
            vec![0xff; 30],
            vec![0x1c; 300],
        ] {
            assert_eq!(
                check_pages(&bytes, false).unwrap_err().code,
                "file_broken",
                "{bytes:?}"
            );
        }
        let bomb = [0x15, 0, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08, 0x15, 0, 0];
        assert_eq!(
            check_pages(&bomb, false).unwrap_err().code,
            "page_too_large"
        );
        // 100 million values in a header of a data page.
        let many = [
            0x15, 0, 0x15, 2, 0x15, 0, 0x2c, 0x15, 0x80, 0x84, 0xaf, 0x5f, 0, 0,
        ];
        assert_eq!(check_pages(&many, false).unwrap()[0].bytes, 1);
        assert_eq!(check_pages(&many, true).unwrap_err().code, "page_too_large");
    }

    #[test]
    fn pages_are_what_their_headers_say() {
        // Of the second version: a value, how it is written, and the lengths of its levels, which are not packed.
        let page = |unpacked: u8, packed: u8, encoding: u8, levels: [u8; 2]| {
            let head = [0x15, 6, 0x15, unpacked << 1, 0x15, packed << 1, 0x5c];
            let values = [0x15, 2, 0x15, 0, 0x15, 2, 0x15, encoding << 1];
            let levels = [0x15, levels[0] << 1, 0x15, levels[1] << 1, 0, 0];
            let body = vec![7; packed.into()];
            [&head[..], &values[..], &levels[..], &body[..]].concat()
        };
        for (bytes, is_of_dictionary) in [
            (page(5, 5, 0, [2, 3]), false),
            (page(9, 5, 0, [2, 3]), false),
            (page(6, 6, 8, [2, 3]), true),
            (page(0, 0, 0, [0, 0]), false),
        ] {
            let pages = check_pages(&bytes, true).unwrap();
            assert_eq!(pages[0].is_of_dictionary, is_of_dictionary, "{bytes:?}");
        }
        let one_kind = [0x15, 0, 0x15, 2, 0x15, 2, 0x2c, 0x15, 2, 0x15, 0, 0, 0, 7];
        assert_eq!(check_pages(&one_kind, true).unwrap().len(), 1);
        let two_kinds = [
            0x15, 0, 0x15, 2, 0x15, 2, 0x2c, 0x15, 2, 0, 0x2c, 0x15, 2, 0, 0, 7,
        ];
        for bytes in [
            page(5, 5, 0, [3, 3]),
            page(9, 5, 0, [3, 3]),
            page(5, 9, 0, [3, 3]),
            page(5, 5, 8, [2, 3]),
            two_kinds.to_vec(),
            [&[0x15, 4][..], &one_kind[2..]].concat(),
        ] {
            let error = check_pages(&bytes, true).unwrap_err();
            assert_eq!(error.code, "file_broken", "{bytes:?}");
        }
    }

    #[test]
    fn pages_of_a_batch_are_counted() {
        let page = |bytes, values| PageSize {
            bytes,
            values,
            ..PageSize::default()
        };
        let dictionary = PageSize {
            bytes: 100,
            is_dictionary: true,
            ..PageSize::default()
        };
        let pages = [
            dictionary,
            page(5, 10),
            page(1, 10),
            page(7, 10),
            page(2, 3),
            page(9, 1),
        ];
        for (rows, bytes) in [
            (1, 9),
            (2, 11),
            (4, 11),
            (5, 18),
            (12, 18),
            (15, 19),
            (25, 24),
            (99, 24),
        ] {
            assert_eq!(
                held_at_once(&pages, Together::Rows(rows)),
                100 + bytes,
                "{rows}"
            );
        }
        assert_eq!(held_at_once(&pages, Together::All), 124);
        assert_eq!(held_at_once(&[], Together::All), 0);
    }
}
