//! The byte examples of MS-TDS (chapter 4), as far as this connector meets them: what a SQL Server and its clients have sent. Of an answer to a batch the
//! tokens are taken, since this connector asks by calls.

mod common;

use common::*;
use souk_sdk::ColumnType;

/// Bytes as the specification prints them.
fn bytes(printed: &str) -> Vec<u8> {
    let pairs = printed.split_whitespace();
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

/// The tokens of a printed packet, without its header and the thirteen bytes of its DONE.
fn result(printed: &str) -> Vec<u8> {
    let packet = bytes(printed);
    let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    assert_eq!(length, packet.len());
    let (tokens, done) = packet[8..].split_at(packet.len() - 8 - 13);
    assert_eq!(done[..5], [0xfd, 0x10, 0, 0xc1, 0]);
    tokens.to_vec()
}

/// 4.7, "SQL Batch Server Response": `select 'foo' as 'bar'`.
#[test]
fn a_text_of_a_code_page() {
    let said = result(
        "04 01 00 33 00 00 01 00 81 01 00 00 00 00 00 20 00 A7 03 00 09 04 D0 00 34 03 62 00 61 00 72 00
         D1 03 00 66 6F 6F FD 10 00 C1 00 01 00 00 00 00 00 00 00",
    );
    let mut wire = Driven::open("");
    wire.ask("select 'foo' as 'bar'");
    wire.receive(&message(&answer(
        &[said, done(0xff, MORE | COUNT)].concat(),
    )))
    .unwrap();
    wire.end().unwrap();
    let column = &wire.columns[0];
    assert_eq!(
        (column.name.as_str(), column.kind),
        ("bar", ColumnType::Text)
    );
    assert_eq!(wire.cells(0), ["foo"]);
}

/// 4.15, "SparseColumn Select Statement": XML in chunks without a length in all, and rows that leave NULLs out.
#[test]
fn sparse_columns() {
    let said = result(
        "04 01 01 B9 00 00 01 00 81 02 00 00 00 00 00 09 00 26 04 02 69 00 64 00 00 00 00 00 0B 04 F1 00 11 73
         00 70 00 61 00 72 00 73 00 65 00 50 00 72 00 6F 00 70 00 65 00 72 00 74 00 79 00 53 00 65 00 74 00 D1
         04 01 00 00 00 FE FF FF FF FF FF FF FF 7A 00 00 00 3C 00 73 00 70 00 61 00 72 00 73 00 65 00 50 00 72
         00 6F 00 70 00 31 00 3E 00 31 00 30 00 30 00 30 00 3C 00 2F 00 73 00 70 00 61 00 72 00 73 00 65 00 50
         00 72 00 6F 00 70 00 31 00 3E 00 3C 00 73 00 70 00 61 00 72 00 73 00 65 00 50 00 72 00 6F 00 70 00 32
         00 3E 00 66 00 6F 00 6F 00 3C 00 2F 00 73 00 70 00 61 00 72 00 73 00 65 00 50 00 72 00 6F 00 70 00 32
         00 3E 00 00 00 00 00 D1 04 02 00 00 00 FE FF FF FF FF FF FF FF 3E 00 00 00 3C 00 73 00 70 00 61 00 72
         00 73 00 65 00 50 00 72 00 6F 00 70 00 31 00 3E 00 31 00 30 00 30 00 30 00 3C 00 2F 00 73 00 70 00 61
         00 72 00 73 00 65 00 50 00 72 00 6F 00 70 00 31 00 3E 00 00 00 00 00 D1 04 03 00 00 00 FE FF FF FF FF
         FF FF FF 3E 00 00 00 3C 00 73 00 70 00 61 00 72 00 73 00 65 00 50 00 72 00 6F 00 70 00 32 00 3E 00 61
         00 62 00 63 00 64 00 3C 00 2F 00 73 00 70 00 61 00 72 00 73 00 65 00 50 00 72 00 6F 00 70 00 32 00 3E
         00 00 00 00 00 D2 02 04 04 00 00 00 D2 02 04 05 00 00 00 D2 02 04 06 00 00 00 D2 02 04 07 00 00 00 D2
         02 04 08 00 00 00 D2 02 04 09 00 00 00 D2 02 04 0A 00 00 00 FD 10 00 C1 00 0A 00 00 00 00 00 00 00",
    );
    let said = message(&answer(&[said, done(0xff, MORE | COUNT)].concat()));
    // At once, and a byte at a time.
    for piece in [said.len(), 1] {
        let mut wire = Driven::open("");
        wire.ask("select * from sparse");
        for piece in said.chunks(piece) {
            wire.receive(piece).unwrap();
        }
        wire.end().unwrap();
        let names: Vec<&str> = wire
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        assert_eq!(names, ["id", "sparsePropertySet"]);
        let ids: Vec<String> = (1..=10).map(|id: i32| id.to_string()).collect();
        assert_eq!(wire.cells(0), ids);
        let sets = wire.cells(1);
        assert_eq!(
            sets[..4],
            [
                "<sparseProp1>1000</sparseProp1><sparseProp2>foo</sparseProp2>",
                "<sparseProp1>1000</sparseProp1>",
                "<sparseProp2>abcd</sparseProp2>",
                "NULL"
            ]
        );
        assert!(sets[4..].iter().all(|set| set == "NULL"));
    }
}

/// 4.12, "Bulk Load", whose description and row are those of an answer: an int that is NULL. And the end of a call of 4.9, "RPC Server Response".
#[test]
fn a_null_and_the_end_of_a_call() {
    let described = "81 01 00 00 00 00 00 05 00 26 04 02 63 00 31 00 D1 00";
    let ended = "FF 11 00 C1 00 01 00 00 00 00 00 00 00 79 00 00 00 00 FE 00 00 E0 00 00 00 00 00 00 00 00 00";
    let mut wire = Driven::open("");
    wire.ask("select c1 from t");
    let said = [
        begun(),
        bytes(described),
        done(0xff, MORE | COUNT),
        undone(),
        bytes(ended),
    ];
    wire.receive(&message(&said.concat())).unwrap();
    wire.end().unwrap();
    assert_eq!(wire.columns[0].name, "c1");
    assert_eq!(wire.cells(0), ["NULL"]);
}

/// 4.10, "Attention Request".
#[test]
fn an_attention() {
    let mut wire = Driven::open("");
    let id = wire.ask("select 1");
    wire.sent.clear();
    wire.cancel(id);
    assert_eq!(wire.sent, [(ATTENTION, 1, Vec::new())]);
}

/// 4.4, "Login Response": of a server of 2005, with a name that ends in zeros.
#[test]
fn a_login() {
    let said = bytes(
        "04 01 01 61 00 00 01 00 E3 1B 00 01 06 6D 00 61 00 73 00 74 00 65 00 72 00 06 6D 00 61 00 73 00
         74 00 65 00 72 00 AB 58 00 45 16 00 00 02 00 25 00 43 00 68 00 61 00 6E 00 67 00 65 00 64 00 20
         00 64 00 61 00 74 00 61 00 62 00 61 00 73 00 65 00 20 00 63 00 6F 00 6E 00 74 00 65 00 78 00 74
         00 20 00 74 00 6F 00 20 00 27 00 6D 00 61 00 73 00 74 00 65 00 72 00 27 00 2E 00 00 00 00 00 00
         00 E3 08 00 07 05 09 04 D0 00 34 00 E3 17 00 02 0A 75 00 73 00 5F 00 65 00 6E 00 67 00 6C 00 69
         00 73 00 68 00 00 E3 13 00 04 04 34 00 30 00 39 00 36 00 04 34 00 30 00 39 00 36 00 AB 5C 00 47
         16 00 00 01 00 27 00 43 00 68 00 61 00 6E 00 67 00 65 00 64 00 20 00 6C 00 61 00 6E 00 67 00 75
         00 61 00 67 00 65 00 20 00 73 00 65 00 74 00 74 00 69 00 6E 00 67 00 20 00 74 00 6F 00 20 00 75
         00 73 00 5F 00 65 00 6E 00 67 00 6C 00 69 00 73 00 68 00 2E 00 00 00 00 00 00 00 AD 36 00 01 72
         09 00 02 16 4D 00 69 00 63 00 72 00 6F 00 73 00 6F 00 66 00 74 00 20 00 53 00 51 00 4C 00 20 00
         53 00 65 00 72 00 76 00 65 00 72 00 00 00 00 00 00 00 00 00 FD 00 00 00 00 00 00 00 00 00 00 00
         00",
    );
    let mut wire = Driven::new("");
    wire.start().unwrap();
    wire.receive(&message(&prelogin(1))).unwrap();
    wire.secured().unwrap();
    wire.receive(&said).unwrap();
    assert!(wire.is_ready);
}
