//! Answers that come compressed. A part of a result is unpacked piece by piece, and its rows are read as they come out: what it becomes is
//! never held as a whole, and no call into the connector takes long, however much a small part becomes.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;
use souk_sdk::Error;

use crate::errors::{malformed, unreadable};
use crate::rows::Row;

/// What an answer may become that is no part. Snowflake does not compress these by itself, and it stands beside the 16 MiB that may have come.
const WHOLE_BYTES_MAX: u64 = 4 << 20;
/// What a part may become: three times the largest that Snowflake's documentation has.
const PART_BYTES_MAX: usize = 256 << 20;
/// What is unpacked in one call: as columns it is less than what a call may return that others wait for.
const PIECE_BYTES: usize = 1 << 20;
/// A row's text; it stands in memory three times while it is read.
const ROW_BYTES_MAX: usize = 4 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];

pub fn is_packed(body: &[u8]) -> bool {
    body.starts_with(&GZIP)
}

/// All of an answer.
pub fn whole(body: &[u8]) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let mut from = MultiGzDecoder::new(body).take(WHOLE_BYTES_MAX + 1);
    let length = from.read_to_end(&mut text).map_err(unpackable)?;
    match length as u64 {
        ..=WHOLE_BYTES_MAX => Ok(text),
        _ => Err(Error::limit_exceeded(
            "answer_too_long",
            "a compressed answer becomes longer than 4 MiB",
        )),
    }
}

/// It is not what it was compressed to. That library's own words know nothing of the content.
fn unpackable(error: io::Error) -> Error {
    malformed().detail(error.to_string())
}

/// A part on its way: `{"data": [[…], …]}`, or the rows alone.
pub struct Unpacking {
    from: MultiGzDecoder<Cursor<Vec<u8>>>,
    /// What was unpacked and not read.
    text: Vec<u8>,
    at: usize,
    unpacked: usize,
    place: Place,
    has_rows: bool,
    row: Row,
}

/// Where the reading is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Start,
    /// A member's name comes next.
    Member,
    /// A comma or the end of the object.
    AfterMember,
    /// Rows that stand alone, or are a member. A comma has been read before the next, or none is due.
    Rows {
        is_member: bool,
        is_due: bool,
    },
    AfterRow {
        is_member: bool,
    },
    End,
}

/// Whether there is enough text to read on.
enum Went {
    On,
    More,
}

impl Unpacking {
    pub fn of(body: Vec<u8>) -> Unpacking {
        Unpacking {
            from: MultiGzDecoder::new(Cursor::new(body)),
            text: Vec::new(),
            at: 0,
            unpacked: 0,
            place: Place::Start,
            has_rows: false,
            row: Row::default(),
        }
    }

    /// Unpacks a piece and hands on its rows. Whether it was the last.
    pub fn piece(
        &mut self,
        each: &mut dyn FnMut(&Row) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let is_last = self.fill()?;
        while let Went::On = self.read(each)? {}
        match (is_last, self.place) {
            (false, _) => Ok(false),
            (true, Place::End) if self.has_rows && self.at == self.text.len() => Ok(true),
            (true, _) => Err(malformed().detail("a part of the result breaks off")),
        }
    }

    fn fill(&mut self) -> Result<bool, Error> {
        self.text.drain(..self.at);
        self.at = 0;
        if self.text.len() > ROW_BYTES_MAX {
            return Err(Error::limit_exceeded(
                "row_too_long",
                "a row of the result is longer than 4 MiB as JSON: the statement should select fewer or shorter values",
            ));
        }
        // Twice as much would be reserved otherwise.
        self.text.reserve_exact(PIECE_BYTES);
        let mut piece = self.from.by_ref().take(PIECE_BYTES as u64);
        let length = piece.read_to_end(&mut self.text).map_err(unpackable)?;
        self.unpacked += length;
        match self.unpacked {
            ..=PART_BYTES_MAX => Ok(length < PIECE_BYTES),
            _ => Err(Error::limit_exceeded(
                "part_too_long",
                "a part of the result becomes longer than 256 MiB: the statement should select fewer rows or values",
            )),
        }
    }

    /// Reads one thing.
    fn read(&mut self, each: &mut dyn FnMut(&Row) -> Result<(), Error>) -> Result<Went, Error> {
        let rest = &self.text[self.at..];
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += blanks.count();
        let Some(first) = self.text.get(self.at) else {
            return Ok(Went::More);
        };
        let rows = |is_member| Place::Rows {
            is_member,
            is_due: false,
        };
        let after = |is_member| match is_member {
            true => Place::AfterMember,
            false => Place::End,
        };
        self.place = match (self.place, first) {
            (Place::Start, b'{') => Place::Member,
            (Place::Start, b'[') => {
                self.has_rows = true;
                rows(false)
            }
            (Place::Member, b'"') => return self.member(),
            (Place::AfterMember, b',') => Place::Member,
            (Place::AfterMember, b'}') => Place::End,
            (Place::Rows { is_member, is_due }, b']') if !is_due => after(is_member),
            (Place::Rows { is_member, .. }, b'[') => return self.row(is_member, each),
            (Place::AfterRow { is_member }, b',') => Place::Rows {
                is_member,
                is_due: true,
            },
            (Place::AfterRow { is_member }, b']') => after(is_member),
            _ => return Err(malformed()),
        };
        self.at += 1;
        Ok(Went::On)
    }

    /// A row, whose cells are texts and words: it ends with the first bracket that is in none.
    fn row(
        &mut self,
        is_member: bool,
        each: &mut dyn FnMut(&Row) -> Result<(), Error>,
    ) -> Result<Went, Error> {
        let rest = &self.text[self.at..];
        let Some(end) = bare(rest).find(|at| rest[*at] == b']') else {
            return Ok(Went::More);
        };
        self.row.read(&rest[..=end]).map_err(unreadable)?;
        self.at += end + 1;
        self.place = Place::AfterRow { is_member };
        each(&self.row)?;
        Ok(Went::On)
    }

    /// A name, and what is behind it where that is not the rows.
    fn member(&mut self) -> Result<Went, Error> {
        let rest = &self.text[self.at..];
        let Some(colon) = bare(rest).find(|at| rest[*at] == b':') else {
            return Ok(Went::More);
        };
        let behind = &rest[colon + 1..];
        let name = rest[..colon].trim_ascii();
        if name == b"\"data\"" {
            let Some(at) = behind.iter().position(|byte| !byte.is_ascii_whitespace()) else {
                return Ok(Went::More);
            };
            if behind[at] != b'[' || std::mem::replace(&mut self.has_rows, true) {
                return Err(malformed());
            }
            self.at += colon + 1 + at + 1;
            self.place = Place::Rows {
                is_member: true,
                is_due: false,
            };
            return Ok(Went::On);
        }
        let mut depth = 0_usize;
        let end = bare(behind).find(|at| {
            match behind[*at] {
                b'[' | b'{' => depth += 1,
                b',' | b'}' if depth == 0 => return true,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            false
        });
        let Some(end) = end else {
            return Ok(Went::More);
        };
        self.at += colon + 1 + end;
        self.place = Place::AfterMember;
        Ok(Went::On)
    }
}

/// The places of bytes that stand in no text.
fn bare(text: &[u8]) -> impl Iterator<Item = usize> {
    let (mut is_text, mut is_escaped) = (false, false);
    (0..text.len()).filter(move |at| {
        match (is_text, text[*at]) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (true, b'"') => is_text = false,
            (false, b'"') => is_text = true,
            (false, _) => return true,
            _ => {}
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use souk_sdk::ErrorClass;
    use std::io::Write;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// The cells, and in how many pieces they came.
    fn rows(body: Vec<u8>) -> Result<(Vec<Option<String>>, usize), Error> {
        let (mut cells, mut pieces) = (Vec::new(), 1);
        let mut unpacking = Unpacking::of(body);
        while !unpacking.piece(&mut |row| {
            cells.extend((0..row.len()).map(|place| row.cell(place).map(str::to_owned)));
            Ok(())
        })? {
            pieces += 1;
        }
        Ok((cells, pieces))
    }

    #[test]
    fn parts_are_read() {
        let owned = |text: &str| Some(text.to_owned());
        for text in [
            r#"{"data":[["1",null],["]\"\\",true]]}"#,
            r#"[["1",null],["]\"\\",true]]"#,
            " { \"a\" : {\"data\":[[\"x\"]]} , \"data\" :\n[ [\"1\",null] , [\"]\\\"\\\\\",true] ] , \"b:\" : \"},\" } ",
        ] {
            let wanted = vec![owned("1"), None, owned("]\"\\"), owned("true")];
            assert_eq!(
                rows(packed(text.as_bytes())).unwrap(),
                (wanted, 1),
                "{text}"
            );
        }
        assert_eq!(rows(packed(b"{\"data\":[]}")).unwrap(), (vec![], 1));
        // As two members of a file, as gzip may have them.
        let two = [packed(b"{\"data\":[[\"1\"],"), packed(b"[\"2\"]]}")].concat();
        assert_eq!(rows(two).unwrap().0.len(), 2);
    }

    /// Wherever a piece ends, no row is lost, and none comes twice.
    #[test]
    fn pieces_end_anywhere() {
        let wanted: Vec<Option<String>> = (0..300_000)
            .map(|n| Some(format!("{n} \"]é\\ {}", "x".repeat(n % 17))))
            .collect();
        let text = serde_json::to_vec(&serde_json::json!({
            "data": wanted.iter().map(|cell| [cell]).collect::<Vec<_>>()
        }));
        let (cells, pieces) = rows(packed(&text.unwrap())).unwrap();
        assert!(cells == wanted);
        assert!(pieces > 3, "{pieces}");
        // A row that is longer than a piece.
        let long = "x".repeat(3 << 20);
        let text = format!("[[\"a\"],[\"{long}\"],[\"b\"]]");
        assert_eq!(rows(packed(text.as_bytes())).unwrap().0[1], Some(long));
    }

    #[test]
    fn what_is_no_part_is_refused() {
        let good = packed(b"{\"data\":[[\"1\"]]}");
        let mut cut = good.clone();
        cut.truncate(cut.len() - 9);
        let mut changed = good.clone();
        let crc = changed.len() - 8;
        changed[crc] ^= 1;
        let broken = [cut, changed, GZIP.to_vec(), [good, vec![0; 3]].concat()];
        let texts: [&[u8]; 19] = [
            b"",
            b"{}",
            b"null",
            b"{\"data\"}",
            b"{\"data\":{}}",
            b"{\"data\":[[\"1\"]",
            b"{\"data\":[[\"1\"]]",
            b"{\"data\":[[\"1\"],]}",
            b"{\"data\":[,[\"1\"]]}",
            b"{\"data\":[[\"1\"][\"2\"]]}",
            b"{\"data\":[[\"1\"]],\"data\":[[\"2\"]]}",
            b"{\"data\":[[\"1\"]]} x",
            b"{\"data\":[[1.5]]}",
            b"{\"data\":[[[]]]}",
            b"{\"data\":[\"1\"]}",
            b"{\"data\":[[\"\xff\"]]}",
            b"{\"data\":[[\"1]]}",
            b"{\"data\":[]}}",
            b"[]]",
        ];
        let texts = texts.iter().map(|text| packed(text));
        for body in texts.chain(broken) {
            let shown = format!("{body:?}");
            let error = rows(body).unwrap_err();
            assert_eq!(error.code, "malformed_answer", "{shown}");
        }
    }

    /// A small answer that becomes a large one is read no further than is allowed.
    #[test]
    fn what_is_unpacked_has_a_bound() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let blank = vec![b' '; 1 << 20];
        for _ in 0..300 {
            encoder.write_all(&blank).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        assert!(bomb.len() < 4 << 20);
        let error = whole(&bomb).unwrap_err();
        // It is not that Snowflake speaks another language.
        let told = |error: Error| (error.class, error.code);
        let limit = |code: &str| (ErrorClass::LimitExceeded, code.to_owned());
        assert_eq!(told(error), limit("answer_too_long"));
        assert_eq!(told(rows(bomb).unwrap_err()), limit("part_too_long"));
        let text = format!("[[\"{}", "x".repeat(6 << 20));
        let mut unpacking = Unpacking::of(packed(text.as_bytes()));
        let mut none = |_: &Row| Ok(());
        let error = loop {
            match unpacking.piece(&mut none) {
                Ok(is_last) => assert!(!is_last),
                Err(error) => break error,
            }
        };
        assert_eq!(told(error), limit("row_too_long"));
        assert!(unpacking.text.capacity() <= ROW_BYTES_MAX + 2 * PIECE_BYTES);
        assert_eq!(whole(&packed(b"{}")).unwrap(), b"{}");
    }
}
