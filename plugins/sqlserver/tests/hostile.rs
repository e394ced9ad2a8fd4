//! Whatever a server says: never a panic, never a wait for bytes without a bound, never a shorter result.

mod common;

use common::*;

fn heard(said: &[u8]) -> (Driven, bool) {
    let mut wire = Driven::open("");
    wire.ask("SELECT a FROM t");
    let has_ended = wire.receive(said).is_err();
    (wire, has_ended)
}

/// A good answer with one byte changed, or cut off, is an error or an answer, and a cut one is no answer.
#[test]
fn any_byte_may_be_another() {
    let variant: &[u8] = &[0x62, 0x49, 0x1f, 0, 0];
    let decimal: &[u8] = &[0x6c, 17, 10, 2];
    let types: [&[u8]; 9] = [
        INT,
        TEXT,
        decimal,
        variant,
        &[0x2b, 7],
        &[0x24, 16],
        &[0x6e, 8],
        &[0x6f, 8],
        &[0x23, 9, 0, 0, 0, 9, 4, 0xd0, 0, 0x34, 1, 1, 0, b't', 0],
    ];
    let row = [
        &[0xd1, 4, 7, 0, 0, 0][..],
        &[
            &[4, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0][..],
            &units("äb"),
            &[0; 4],
        ]
        .concat(),
        &[5, 1, 5, 0, 0, 0],
        &[6, 0, 0, 0, 0x38, 0, 1, 0, 0, 0],
        &[10, 1, 0, 0, 0, 0, 1, 0, 0, 60, 0],
        &[16; 17],
        &[8; 9],
        &[8, 1, 0, 0, 0, 1, 0, 0, 0],
        &[&[16][..], &[7; 24], &[2, 0, 0, 0, b'a', 0xe4]].concat(),
    ]
    .concat();
    let good = answer(&[columns(&types), row, done(0xff, MORE | COUNT)].concat());
    let (mut wire, has_ended) = heard(&message(&good));
    assert!(!has_ended);
    wire.end().unwrap();
    assert_eq!(wire.cells(1), ["äb"]);
    assert_eq!(wire.cells(8), ["aä"]);
    for at in 0..good.len() {
        for other in [0, 1, 0x7f, 0x80, 0xd1, 0xfd, 0xff] {
            let mut bad = good.clone();
            bad[at] = other;
            heard(&message(&bad));
        }
        let (wire, has_ended) = heard(&message(&good[..at]));
        let is_answered = matches!(wire.ends.first(), Some((_, Ok(()))));
        assert!(has_ended || !is_answered, "cut at {at} it is an answer");
    }
}

/// What is said of a length is not believed before it is there.
#[test]
fn said_lengths_take_no_memory() {
    for said in [
        [
            begun(),
            columns(&[TEXT]),
            vec![0xd1],
            0x7fff_ffff_u64.to_le_bytes().to_vec(),
            0x7fff_ffff_u32.to_le_bytes().to_vec(),
        ]
        .concat(),
        [begun(), vec![0x81, 0xff, 0x0f]].concat(),
        [begun(), vec![0xee, 0xff, 0xff, 0, 0]].concat(),
        [begun(), vec![0xaa, 0xff, 0xff]].concat(),
    ] {
        let mut wire = Driven::open("");
        wire.ask("SELECT a FROM t");
        // It is refused, or waited for: nothing is made of it.
        let _ = wire.receive(&packet(&said, false));
        assert_eq!(wire.batches.len(), 0);
    }
}

/// A description without an end is not read for ever.
#[test]
fn endless_descriptions_are_refused() {
    let mut wire = Driven::open("");
    wire.ask("SELECT a FROM t");
    wire.receive(&packet(
        &[&begun()[..], &[0x81, 0xff, 0x0f]].concat(),
        false,
    ))
    .unwrap();
    // Texts of the table's name in 255 parts, each as long as one can be.
    let column = [
        &[0, 0, 0, 0, 1, 0, 0x63, 9, 0, 0, 0, 9, 4, 0xd0, 0, 0x34, 255][..],
        &[0xff; 2],
    ]
    .concat();
    let mut refused = wire.receive(&packet(&column, false)).err();
    let piece = packet(&[0xff; 30_000], false);
    for _ in 0..1_000 {
        if refused.is_some() {
            break;
        }
        refused = wire.receive(&piece).err();
    }
    assert_eq!(refused.unwrap().code, "protocol_error");
}

/// Bytes of no order, before the login and behind it.
#[test]
fn noise_is_refused() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    for round in 0..3_000 {
        let length = 1 + usize::from(next()) * 4;
        let noise: Vec<u8> = (0..length).map(|_| next()).collect();
        let (mut wire, _) = heard(&message(&noise));
        assert!(!matches!(wire.ends.pop(), Some((_, Ok(())))), "{round}");
        // With a kind of token that is known.
        let kinds = [
            0x81, 0xd1, 0xd2, 0xaa, 0xe3, 0xad, 0xae, 0xfd, 0xfe, 0xff, 0x79,
        ];
        let kind = kinds[usize::from(next()) % kinds.len()];
        heard(&message(
            &[&begun(), &columns(&[INT, TEXT])[..], &[kind], &noise].concat(),
        ));
        let mut wire = Driven::new("");
        wire.start().unwrap();
        let _ = wire.receive(&message(&noise));
        assert!(!wire.is_ready);
        let mut wire = Driven::new("");
        wire.start().unwrap();
        wire.receive(&message(&prelogin(1))).unwrap();
        wire.secured().unwrap();
        let _ = wire.receive(&message(&noise));
        assert!(!wire.is_ready);
    }
}
