//! Cancels: what they strike, and what is said of that.

use super::*;
use crate::session::STRIKES_OF_A_CANCEL;

/// A cancel of one that waits in a group strikes nobody whose rows the host has: that could not be asked again.
#[test]
fn a_cancel_waits_for_what_cannot_be_asked_again() {
    let mut session = grouping();
    ask_for(&mut session, FOLLOWED | 4, SEVEN, 10_000);
    ask(&mut session, 5, SEVEN);
    let mut rows = BEGUN.to_vec();
    rows.push((b'2', b""));
    rows.resize(rows.len() + 8_192, SEVEN_SAID[1]);
    after(&mut session, &rows);
    let mut step = Step::default();
    session.cancel(5, &mut step).unwrap();
    assert_eq!(told(step), (String::new(), vec![]));
    let ends: Messages<'_> = &[(b'C', b"SELECT 8192\0")];
    let (sent, ended) = told(received(&mut session, ends).unwrap());
    assert_eq!(
        (sent.as_str(), ended),
        ("aside", vec![(FOLLOWED | 4, None)])
    );
    // One that the host has nothing of is struck, and asked again.
    let mut session = grouping();
    together(&mut session, 6);
    after(&mut session, BEGUN);
    let mut step = Step::default();
    session.cancel(FOLLOWED | 5, &mut step).unwrap();
    assert_eq!(told(step).0, "aside");
}

/// Nor does one whose rows began to arrive when the cancel was on its way already hear that it has taken too long.
#[test]
fn what_is_struck_in_anothers_stead_is_told_so() {
    let mut session = grouping();
    ask_for(&mut session, FOLLOWED | 4, SEVEN, 10_000);
    ask(&mut session, 5, SEVEN);
    let mut step = Step::default();
    session.cancel(5, &mut step).unwrap();
    assert_eq!(told(step).0, "aside");
    let mut struck = BEGUN.to_vec();
    struck.push((b'2', b""));
    struck.resize(struck.len() + 8_192, SEVEN_SAID[1]);
    struck.push((b'E', CANCELLED));
    struck.push((b'Z', b"E"));
    let (_, ended) = told(received(&mut session, &struck).unwrap());
    let failed = |id: u32, code: &str| (id, Some(code.to_owned()));
    assert_eq!(
        ended,
        [failed(FOLLOWED | 4, "interrupted"), failed(5, "cancelled")]
    );
    // It did not fail by itself.
    after(&mut session, TAKEN_BACK);
    assert!(together(&mut session, 9));
}

/// One cancel ends a group, whoever of it is given up, and in whatever order: each is a connection at the server, and may strike those behind.
#[test]
fn a_group_is_cancelled_once() {
    let mut session = grouping();
    together(&mut session, 6);
    let mut sent = Vec::new();
    for id in [6, FOLLOWED | 4, FOLLOWED | 5] {
        let mut step = Step::default();
        session.cancel(id, &mut step).unwrap();
        sent.push(told(step).0);
    }
    assert_eq!(sent, ["aside", "", ""]);
    assert_eq!(session.strays, STRIKES_OF_A_CANCEL);
    let struck: Messages<'_> = &[(b'2', b""), (b'E', CANCELLED), (b'Z', b"E")];
    let (_, ended) = told(received(&mut session, &[BEGUN, struck].concat()).unwrap());
    let cancelled = |id: u32| (id, Some("cancelled".to_owned()));
    assert_eq!(
        ended,
        [FOLLOWED | 4, FOLLOWED | 5, 6].map(cancelled).to_vec()
    );
    // The next group needs one of its own.
    after(&mut session, TAKEN_BACK);
    assert!(together(&mut session, 9));
    let mut step = Step::default();
    session.cancel(9, &mut step).unwrap();
    assert_eq!(told(step).0, "aside");
}

/// What the server says ran into its time limit did, also where a cancel may still strike: it is not waited for once more, and nobody hears that it was
/// stopped in another one's stead.
#[test]
fn what_takes_too_long_is_not_taken_for_struck() {
    const LATE: (u8, &[u8]) = (
        b'E',
        b"SERROR\0C57014\0Mcanceling statement due to statement timeout\0\0",
    );
    const READY: (u8, &[u8]) = (b'Z', b"I");
    let mut session = grouping();
    session.strays = 1;
    let mut fails = |id: u32, text: &str, messages: Messages<'_>| {
        ask_for(&mut session, id, text, 10_000);
        let (sent, ended) = told(received(&mut session, messages).unwrap());
        let late = (id, Some("statement_timeout".to_owned()));
        assert_eq!((sent, ended), (String::new(), vec![late]));
        assert_eq!(session.strays, 1);
    };
    // Before it has a row, while the host has some, and while it is prepared.
    fails(4, SEVEN, &[SEVEN_SAID[0], LATE, READY]);
    let mut rows = vec![SEVEN_SAID[0]];
    rows.resize(8_193, SEVEN_SAID[1]);
    rows.extend([LATE, READY]);
    fails(5, SEVEN, &rows);
    fails(6, "SELECT 8 AS n", &[LATE, READY]);
    // What the server does not say that of may have been struck.
    ask(&mut session, 7, SEVEN);
    let struck: Messages<'_> = &[(b'2', b""), (b'E', CANCELLED), (b'Z', b"I")];
    let (sent, ended) = told(received(&mut session, struck).unwrap());
    assert!(sent.contains("begin") && ended.is_empty(), "{sent}");
    assert_eq!(session.strays, 0);
}
