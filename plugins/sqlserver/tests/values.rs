//! NULL in each type that a column may have. What values become is in `src/values.rs`, and, through a server, in the conformance kit.

mod common;

use common::*;
use souk_sdk::ColumnType::{
    self, Boolean, Bytes, Date, Decimal, Float64, Int64, LocalTimestamp, Text, Time, Timestamp,
};

/// How a type says that a value is NULL, in a row that leaves none out (MS-TDS 2.2.5.2.1, 2.2.5.2.3): by a length of no bytes, of no bytes in
/// four, of all bits in two bytes, or of all bits in eight, where values come in chunks.
const BYTE: &[u8] = &[0];
const LONG: &[u8] = &[0; 4];
const SHORT: &[u8] = &[0xff; 2];
const CHUNKS: &[u8] = &[0xff; 8];

/// Types as a catalog names them, what they become, their descriptions (MS-TDS 2.2.5.4, 2.2.5.5) and NULLs of them. Texts are Latin1_General's, of
/// the code page 1252; what has no bound of its own says which table it is of.
#[rustfmt::skip]
const TYPES: &[(&str, ColumnType, &[u8], &[u8])] = &[
    ("bit", Boolean, &[0x68, 1], BYTE),
    ("tinyint", Int64, &[0x26, 1], BYTE),
    ("smallint", Int64, &[0x26, 2], BYTE),
    ("int", Int64, &[0x26, 4], BYTE),
    ("bigint", Int64, &[0x26, 8], BYTE),
    ("real", Float64, &[0x6d, 4], BYTE),
    ("float", Float64, &[0x6d, 8], BYTE),
    ("smallmoney", Decimal, &[0x6e, 4], BYTE),
    ("money", Decimal, &[0x6e, 8], BYTE),
    ("decimal(38,10)", Decimal, &[0x6a, 17, 38, 10], BYTE),
    ("numeric(18,0)", Decimal, &[0x6c, 9, 18, 0], BYTE),
    ("smalldatetime", LocalTimestamp, &[0x6f, 4], BYTE),
    ("datetime", LocalTimestamp, &[0x6f, 8], BYTE),
    ("date", Date, &[0x28], BYTE),
    ("time(6)", Time, &[0x29, 6], BYTE),
    ("time(7)", Text, &[0x29, 7], BYTE),
    ("datetime2(0)", LocalTimestamp, &[0x2a, 0], BYTE),
    ("datetime2(7)", Text, &[0x2a, 7], BYTE),
    ("datetimeoffset(6)", Timestamp, &[0x2b, 6], BYTE),
    ("datetimeoffset(7)", Text, &[0x2b, 7], BYTE),
    ("uniqueidentifier", Text, &[0x24, 16], BYTE),
    ("char(4)", Text, &[0xaf, 4, 0, 9, 4, 0xd0, 0, 0x34], SHORT),
    ("varchar(20)", Text, &[0xa7, 20, 0, 9, 4, 0xd0, 0, 0x34], SHORT),
    ("varchar(max)", Text, &[0xa7, 0xff, 0xff, 9, 4, 0xd0, 0, 0x34], CHUNKS),
    ("nchar(4)", Text, &[0xef, 8, 0, 9, 4, 0xd0, 0, 0x34], SHORT),
    ("nvarchar(20)", Text, &[0xe7, 40, 0, 9, 4, 0xd0, 0, 0x34], SHORT),
    ("nvarchar(max)", Text, &[0xe7, 0xff, 0xff, 9, 4, 0xd0, 0, 0x34], CHUNKS),
    ("binary(4)", Bytes, &[0xad, 4, 0], SHORT),
    ("varbinary(20)", Bytes, &[0xa5, 20, 0], SHORT),
    ("varbinary(max)", Bytes, &[0xa5, 0xff, 0xff], CHUNKS),
    ("text", Text, &[0x23, 0xff, 0xff, 0xff, 0x7f, 9, 4, 0xd0, 0, 0x34, 1, 1, 0, b't', 0], BYTE),
    ("ntext", Text, &[0x63, 0xff, 0xff, 0xff, 0x7f, 9, 4, 0xd0, 0, 0x34, 1, 1, 0, b't', 0], BYTE),
    ("image", Bytes, &[0x22, 0xff, 0xff, 0xff, 0x7f, 1, 1, 0, b't', 0], BYTE),
    ("xml", Text, &[0xf1, 0], CHUNKS),
    ("sql_variant", Text, &[0x62, 0x49, 0x1f, 0, 0], LONG),
];

/// Whatever its type is, a NULL is one, in a row that leaves it out too, and what stands behind it is read from its own place.
#[test]
fn every_type_has_a_null() {
    let mut described: Vec<&[u8]> = TYPES
        .iter()
        .map(|(_, _, described, _)| *described)
        .collect();
    described.push(INT);
    let nulls: Vec<u8> = TYPES
        .iter()
        .flat_map(|(_, _, _, null)| *null)
        .copied()
        .collect();
    // A bit for each column; that of the last one is not set.
    let mut bits = vec![0_u8; described.len().div_ceil(8)];
    for at in 0..TYPES.len() {
        bits[at / 8] |= 1 << (at % 8);
    }
    let result = [
        &columns(&described)[..],
        &[0xd1],
        &nulls,
        &[4, 7, 0, 0, 0],
        &[0xd2],
        &bits,
        &[4, 8, 0, 0, 0],
        &done(0xff, MORE | COUNT),
    ]
    .concat();
    let whole = message(&answer(&result));
    for piece in [whole.len(), 1, 7] {
        let mut wire = Driven::open("");
        wire.ask("SELECT * FROM t");
        for part in whole.chunks(piece) {
            wire.receive(part).unwrap();
        }
        wire.end().unwrap();
        for (at, (name, kind, ..)) in TYPES.iter().enumerate() {
            let column = &wire.columns[at];
            let told = (column.native.as_str(), column.kind, column.nullable);
            assert_eq!(told, (*name, *kind, true));
            assert_eq!(wire.cells(at), ["NULL", "NULL"], "{name}, by {piece}");
        }
        assert_eq!(wire.cells(TYPES.len()), ["7", "8"], "by {piece}");
    }
}
