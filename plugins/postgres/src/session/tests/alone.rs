//! A request that is all that the host has to do is answered before its transaction is taken back.

use super::*;

/// In the number of such a request.
const ALONE: u32 = 1 << 30;

/// What a statement is followed by then.
fn flushes(sent: &str) -> bool {
    sent.contains(&*String::from_utf8_lossy(&protocol::RUN_FLUSH_UNDO_SYNC))
}

/// A session that has prepared [`SEVEN`], and what it sends for one that is alone.
fn alone() -> (Session, String) {
    let mut session = opened();
    // Nothing is sent for it before it is prepared, and what runs it then is not submitted.
    assert!(!flushes(&ask(&mut session, ALONE | 1, SEVEN)));
    assert!(!flushes(&after(&mut session, DESCRIBED).0));
    after(&mut session, ANSWERED);
    let sent = ask(&mut session, ALONE | 2, SEVEN);
    (session, sent)
}

/// It is answered as soon as its rows are whole. Another one goes out behind it, and waits for nothing, whatever the host has to do.
#[test]
fn the_answer_does_not_wait_for_the_end() {
    let (mut session, sent) = alone();
    assert!(flushes(&sent), "{sent}");
    let (said, rest) = ANSWERED.split_at(3);
    assert_eq!(after(&mut session, said), (String::new(), vec![ALONE | 2]));
    assert!(!flushes(&ask(&mut session, ALONE | 3, SEVEN)));
    assert_eq!(after(&mut session, rest), (String::new(), vec![]));
    assert_eq!(after(&mut session, said), (String::new(), vec![]));
    assert_eq!(after(&mut session, rest), (String::new(), vec![ALONE | 3]));
    // One that the host asks beside others has the server send once.
    assert!(!flushes(&ask(&mut session, 4, SEVEN)));
    after(&mut session, ANSWERED);
    assert!(flushes(&ask(&mut session, ALONE | 5, SEVEN)));
    assert_eq!(after(&mut session, ANSWERED).1, [ALONE | 5]);
    assert!(session.queue.is_empty());
}

/// An error of the statement has the server pass over what would have taken its transaction back.
#[test]
fn nothing_is_awaited_behind_an_error() {
    let (mut session, _) = alone();
    let failed: Messages<'_> = &[(b'2', b""), (b'E', DIVIDED), (b'Z', b"I")];
    let (sent, ended) = told(received(&mut session, failed).unwrap());
    assert_eq!(sent, "");
    assert_eq!(ended, [(ALONE | 2, Some("invalid_value".into()))]);
    assert!(session.queue.is_empty());
    assert!(flushes(&ask(&mut session, ALONE | 3, SEVEN)));
    assert_eq!(after(&mut session, ANSWERED).1, [ALONE | 3]);
    // One that ends without an error and without its rows' end is no answer.
    ask(&mut session, ALONE | 4, SEVEN);
    assert!(received(&mut session, &[(b'2', b""), (b'Z', b"I")]).is_err());
}

/// A cancel that comes behind the answer may leave the transaction, which is taken back: nothing else is on its way then.
#[test]
fn an_end_that_is_struck_is_repeated() {
    let (mut session, _) = alone();
    let (said, rest) = STRUCK.split_at(3);
    after(&mut session, said);
    session.strays = 2;
    assert_eq!(after(&mut session, rest), (undo(), vec![]));
    assert_eq!(session.strays, 1);
    // Sent behind it, and turned away by nothing.
    ask(&mut session, ALONE | 3, SEVEN);
    assert_eq!(after(&mut session, TAKEN_BACK), (String::new(), vec![]));
    assert_eq!(after(&mut session, ANSWERED).1, [ALONE | 3]);
    assert!(session.queue.is_empty());
    assert_eq!(session.unended, 0);
}

/// What takes a transaction back is parsed again where the statement has had the server forget it, although it is answered by then.
#[test]
fn an_end_that_is_lost_is_set_up_again() {
    let (mut session, _) = alone();
    after(&mut session, SEVEN_SAID);
    let lost: Messages<'_> = &[(b'E', LOST), (b'Z', b"I")];
    let (sent, done) = after(&mut session, lost);
    assert!(
        sent.contains("ROLLBACK") && sent.contains("BEGIN"),
        "{sent}"
    );
    assert!(done.is_empty());
    after(
        &mut session,
        &[(b'1', b""), (b'3', b""), (b'1', b""), (b'Z', b"I")],
    );
    assert!(session.queue.is_empty());
}

/// What has been put in the place of `BEGIN` ends the session before anybody else meets it: nobody is blamed for that whose request came meanwhile.
#[test]
fn an_end_that_is_replaced_ends_the_session() {
    let (mut session, _) = alone();
    after(&mut session, SEVEN_SAID);
    ask(&mut session, 3, SEVEN);
    let replaced: Messages<'_> = &[(b'2', b""), (b'D', b"\0\x01\0\0\0\x011")];
    let error = received(&mut session, replaced).err().expect("an end");
    assert_eq!(error.class, ErrorClass::Unavailable);
}

/// Locks for the session are given up behind it, as ever.
#[test]
fn locks_are_given_up_behind_the_answer() {
    let mut session = opened();
    let text = "SELECT length(pg_advisory_lock(1)::text) AS n";
    ask(&mut session, 1, text);
    after(&mut session, DESCRIBED);
    after(&mut session, ANSWERED);
    after(&mut session, ANSWERED);
    let sent = ask(&mut session, ALONE | 2, text);
    assert!(
        flushes(&sent) && sent.contains(crate::session::UNLOCK),
        "{sent}"
    );
    let (said, rest) = ANSWERED.split_at(3);
    assert_eq!(after(&mut session, said).1, [ALONE | 2]);
    after(&mut session, rest);
    after(&mut session, ANSWERED);
    assert!(session.queue.is_empty());
}
