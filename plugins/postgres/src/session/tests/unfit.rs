//! What has no groups.

use super::*;

/// A group never waits for a request that the host has not submitted.
#[test]
fn nothing_begins_a_group_but_a_request() {
    let mut session = grouping();
    ask(&mut session, FOLLOWED | 4, "SELECT 8 AS n");
    let (sent, _) = after(&mut session, DESCRIBED);
    assert!(sent.contains("begin") && !sent.contains(&group()), "{sent}");
}

/// A standby ends the session where what it replays meets a statement of a group; one that is alone only fails.
#[test]
fn standbys_have_no_groups() {
    let mut session = grouping();
    after(&mut session, &[(b'S', b"in_hot_standby\0on\0")]);
    assert!(!together(&mut session, 6));
    for _ in 4..=6 {
        after(&mut session, ANSWERED);
    }
    // It is the primary now.
    after(&mut session, &[(b'S', b"in_hot_standby\0off\0")]);
    assert!(together(&mut session, 9));
}

/// Before version 14 it does not say what it is: it is asked, with what groups need.
#[test]
fn old_standbys_have_no_groups() {
    const ASKED: &str = "pg_is_in_recovery";
    assert!(has_groups("9.6.24", ASKED, "false"));
    assert!(has_groups("13.14 (Debian 13.14-1)", ASKED, "false"));
    assert!(!has_groups("13.14", ASKED, "true"));
    assert!(has_groups("14beta1", "", ""));
}

/// A time limit for transactions, which there is from version 17 on, would be for all statements of a group together: where one is set there are no groups.
#[test]
fn limited_transactions_are_not_shared() {
    const ASKED: &str = "transaction_timeout";
    assert!(has_groups("16.9", "", ""));
    assert!(has_groups("17.2", ASKED, "0"));
    assert!(!has_groups("17.2 (Debian 17.2-1)", ASKED, "30s"));
    assert!(!has_groups("18beta1", ASKED, "500ms"));
}

/// Whether a session of a server of this version has groups that is asked something with this in it, or nothing, and answers this.
fn has_groups(version: &str, asked: &str, says: &str) -> bool {
    let mut session = opened();
    let told = [&b"server_version\0"[..], version.as_bytes(), b"\0"].concat();
    after(&mut session, &[(b'S', told.as_slice())]);
    ask(&mut session, 1, SEVEN);
    after(&mut session, DESCRIBED);
    after(&mut session, ANSWERED);
    let sent = ask(&mut session, FOLLOWED | 2, SEVEN);
    for question in ["pg_is_in_recovery", "transaction_timeout"] {
        let is_asked = sent.contains(question);
        assert_eq!(is_asked, question == asked, "{version}: {question}");
    }
    ask(&mut session, 3, SEVEN);
    let length = says.len() as u8;
    let row = [&b"\0\x01\0\0\0"[..], &[length], says.as_bytes()].concat();
    let parsed: Messages<'_> = &[(b'3', b""), (b'1', b""), (b'3', b""), (b'1', b"")];
    let run: Messages<'_> = &[(b'3', b""), (b'1', b""), (b'2', b"")];
    let mut answer = parsed.to_vec();
    if !asked.is_empty() {
        answer.extend_from_slice(run);
        answer.push((b'D', row.as_slice()));
        answer.push((b'C', b"SELECT 1\0"));
    }
    answer.push((b'Z', b"I"));
    assert_eq!(after(&mut session, &answer), (String::new(), vec![]));
    after(&mut session, ANSWERED);
    after(&mut session, ANSWERED);
    together(&mut session, 6)
}
