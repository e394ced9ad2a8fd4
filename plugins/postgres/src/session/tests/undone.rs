//! What takes a statement back, and what is done where a cancel strikes that.

use super::*;
use crate::session::{ENDINGS_MAX, UNLOCK};

/// A cancel that comes behind a statement's end takes neither its answer nor those of the requests behind it, and leaves no transaction.
#[test]
fn a_transaction_that_stays_is_taken_back() {
    let mut session = opened();
    ask(&mut session, 1, "SELECT 7 AS n");
    let (sent, _) = after(&mut session, DESCRIBED);
    assert!(sent.contains("begin"), "{sent}");
    // On their way already. What runs a statement ends with the same bytes.
    assert!(ask(&mut session, 2, "SELECT 7 AS n").contains("begin"));
    assert!(ask(&mut session, 3, "SELECT 8 AS n").contains("SELECT 8"));
    assert_eq!(after(&mut session, STRUCK), (undo(), vec![1]));
    let (sent, _) = after(&mut session, &[(b'E', ABORTED), (b'Z', b"E")]);
    // As it is prepared already: once more, behind what takes the transaction back.
    assert_eq!(sent.matches(&undo()).count(), 1, "{sent}");
    assert!(
        sent.contains("begin") && !sent.contains("SELECT 7"),
        "{sent}"
    );
    let (sent, _) = after(&mut session, &[(b'E', ABORTED), (b'Z', b"E")]);
    assert!(
        sent.contains("SELECT 8") && !sent.contains(&undo()),
        "{sent}"
    );
    let taken_back: Messages<'_> = &[(b'2', b""), (b'C', b"ROLLBACK\0"), (b'Z', b"I")];
    assert_eq!(after(&mut session, taken_back), (String::new(), vec![]));
    assert_eq!(session.unended, 0);
    assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![2]));
    after(&mut session, DESCRIBED);
    assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![3]));
}

/// A server on which a transaction never ends is not asked for ever.
#[test]
fn a_transaction_that_never_ends_ends_the_session() {
    let mut session = opened();
    ask(&mut session, 1, "SELECT 7 AS n");
    after(&mut session, DESCRIBED);
    after(&mut session, STRUCK);
    let struck: Messages<'_> = &[(b'E', CANCELLED), (b'Z', b"E")];
    for _ in 1..ENDINGS_MAX {
        assert_eq!(after(&mut session, struck).0, undo());
    }
    assert!(received(&mut session, struck).is_err());
}

/// What a statement has locked for the session is given up behind it, and once more where a cancel struck that.
#[test]
fn locks_are_given_up() {
    let mut session = opened();
    ask(
        &mut session,
        1,
        "SELECT length(pg_advisory_lock(1)::text) AS n",
    );
    let (sent, _) = after(&mut session, DESCRIBED);
    assert_eq!(sent.matches(UNLOCK).count(), 1, "{sent}");
    assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![1]));
    session.strays = 1;
    let struck: Messages<'_> = &[
        (b'3', b""),
        (b'1', b""),
        (b'2', b""),
        (b'E', CANCELLED),
        (b'Z', b"I"),
    ];
    let (sent, _) = after(&mut session, struck);
    assert_eq!(sent.matches(UNLOCK).count(), 1, "{sent}");
    assert_eq!(after(&mut session, ANSWERED).0, "");
    assert_eq!(session.strays, 0);
}

/// So it is where a cancel struck what takes the statement's transaction back: nobody who asks next waits for its locks.
#[test]
fn locks_of_a_transaction_that_stays_are_given_up() {
    let mut session = opened();
    ask(
        &mut session,
        1,
        "SELECT length(pg_advisory_lock(1)::text) AS n",
    );
    after(&mut session, DESCRIBED);
    assert_eq!(after(&mut session, STRUCK), (undo(), vec![1]));
    let aborted: Messages<'_> = &[(b'E', ABORTED), (b'Z', b"E")];
    let (sent, _) = after(&mut session, aborted);
    assert_eq!(sent.matches(UNLOCK).count(), 1, "{sent}");
    let taken_back: Messages<'_> = &[(b'2', b""), (b'C', b"ROLLBACK\0"), (b'Z', b"I")];
    assert_eq!(after(&mut session, taken_back), (String::new(), vec![]));
    assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![]));
    // Without a transaction that is to be taken back it is not asked for ever.
    assert!(session.queue.is_empty());
}

/// What follows every statement is parsed again where a cancel that came late, or a transaction that has stayed, has kept the server from it.
#[test]
fn a_setup_that_is_struck_is_repeated() {
    let mut session = opened();
    session.strays = 1;
    session.set_up(&mut Step::default());
    let struck: Messages<'_> = &[(b'E', CANCELLED), (b'Z', b"I")];
    assert!(after(&mut session, struck).0.contains("ROLLBACK"));
    // An error that nothing explains still ends the session.
    assert!(received(&mut session, struck).is_err());
}
