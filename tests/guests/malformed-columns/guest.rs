//! Sends columns that break the contract, in the way that a word of the statement names:
//! `SELECT offsets_fall FROM t`. The default is `bad_utf8`.

use souk_guests::{Behaviour, words};
use souk_sdk::{
    Batch, Chunk, ColumnData, ColumnType, Error, Query, Settings, Step, VarLen, column,
};

struct MalformedColumns;

souk_guests::export!(MalformedColumns);

/// Every batch says two rows.
const ROWS: u32 = 2;

impl Behaviour for MalformedColumns {
    const NAME: &'static str = "malformed-columns";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(MalformedColumns)
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let (kind, chunk) = words(&query)
            .find_map(malformed)
            .unwrap_or_else(|| text(&[0, 1, 2], b"\xff\xfe"));
        step.columns(id, 0, Some(vec![column("value", kind, "")]));
        step.batch(
            id,
            Batch {
                rows: ROWS,
                chunks: vec![chunk],
            },
        );
        step.done(id);
        Ok(())
    }
}

fn malformed(word: &str) -> Option<(ColumnType, Chunk)> {
    let plain = |data| Chunk {
        validity: None,
        data,
    };
    Some(match word {
        "bad_utf8" => text(&[0, 1, 2], b"\xff\xfe"),
        // Valid as a whole, cut inside a character.
        "split_utf8" => text(&[0, 1, 2], "é".as_bytes()),
        "offsets_fall" => text(&[0, 2, 1], b"ab"),
        "offsets_negative" => text(&[0, -1, 2], b"ab"),
        "offsets_beyond" => text(&[0, 1, 1_000_000], b"ab"),
        "offsets_short" => text(&[0, 2], b"ab"),
        "offsets_long" => text(&[0, 1, 1, 2], b"ab"),
        "offsets_none" => text(&[], b""),
        "offsets_start_late" => text(&[1, 1, 2], b"ab"),
        "bytes_left_over" => text(&[0, 1, 2], b"abc"),
        "bitmap_short" => (
            ColumnType::Int64,
            Chunk {
                validity: Some(vec![]),
                data: ColumnData::I64s(vec![1, 2]),
            },
        ),
        "bitmap_long" => (
            ColumnType::Int64,
            Chunk {
                validity: Some(vec![3; 9]),
                data: ColumnData::I64s(vec![1, 2]),
            },
        ),
        "bits_short" => (ColumnType::Boolean, plain(ColumnData::Bits(vec![]))),
        "wrong_layout" => (ColumnType::Int64, plain(ColumnData::F64s(vec![1.0, 2.0]))),
        "bad_json" => (ColumnType::Json, text(&[0, 1, 2], b"{}").1),
        "bad_decimal" => (ColumnType::Decimal, text(&[0, 1, 3], b"1x2").1),
        "values_short" => (ColumnType::Date, plain(ColumnData::I32s(vec![1]))),
        _ => return None,
    })
}

fn text(offsets: &[i32], bytes: &[u8]) -> (ColumnType, Chunk) {
    let data = ColumnData::VarLen(VarLen {
        offsets: offsets.to_vec(),
        bytes: bytes.to_vec(),
    });
    (
        ColumnType::Text,
        Chunk {
            validity: None,
            data,
        },
    )
}
