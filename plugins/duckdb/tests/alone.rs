//! Which statements are asked in no transaction: those that one which only reads has let pass, for a minute.

mod common;

use common::{
    CONNECT, DISCONNECT, Talk, asked_within, class_and_code, kind, parsed_beside_a_foreign, query,
    raw, refuses, reply, text,
};
use souk_sdk::{ErrorClass, Value, WireFault};
use souk_tests::wire::LIMITS;

const REFUSED: &str =
    "Cannot write to database \"memory\" - transaction is launched in read-only mode";

/// A session that keeps its connections, and has been answered a statement.
fn answered() -> Talk {
    let mut talk = Talk::usual();
    talk.cancel(0);
    let id = talk.submit(Talk::select());
    for name in ["connected", "parsed_one"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(text(&talk.asked[0]), asked_within("SELECT 1"));
    talk.hears(0, reply("numbers")).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
    talk
}

/// The message by which the statement is asked now, on a new connection if there is none.
fn asked(talk: &mut Talk) -> String {
    talk.submit(Talk::select());
    if kind(&talk.asked[0]) == CONNECT {
        talk.hears(0, reply("connected")).unwrap();
    }
    text(&talk.asked[0]).to_owned()
}

#[test]
fn what_a_transaction_has_let_pass_is_asked_alone() {
    let mut talk = answered();
    assert_eq!(asked(&mut talk), "ROLLBACK;\nSELECT 1", "it ends the first");
    talk.hears(0, reply("numbers")).unwrap();
    assert_eq!(asked(&mut talk), "SELECT 1");
    talk.hears(0, reply("numbers")).unwrap();
    // Another one has its transaction, on a connection that is in none.
    let id = talk.submit(query("SELECT 2", vec![], LIMITS));
    for name in ["connected", "parsed_one"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(text(&talk.asked[0]), asked_within("SELECT 2"));
    talk.hears(0, refuses("boo")).unwrap();
    talk.hears(0, reply("ended")).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "sql_error");
    talk.submit(query("SELECT 2", vec![], LIMITS));
    assert_eq!(text(&talk.asked[0]), asked_within("SELECT 2"));
}

/// Values are no part of what has passed, where nothing that is called can be told anything by them.
#[test]
fn values_need_no_transaction() {
    let mut talk = Talk::usual();
    let ask = |value: Value| {
        let text = "SELECT upper(?), s.* FROM s.t AS s, range(3) WHERE a = ?";
        query(text, vec![value, Value::Int64(1)], LIMITS)
    };
    talk.submit(ask(Value::Text("x".into())));
    for name in ["connected", "parsed"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert!(text(&talk.asked[0]).starts_with("BEGIN TRANSACTION READ ONLY;\nSELECT"));
    for name in ["numbers", "ended"] {
        talk.hears(0, reply(name)).unwrap();
    }
    talk.submit(ask(Value::Null(None)));
    talk.hears(0, reply("connected")).unwrap();
    assert_eq!(
        text(&talk.asked[0]),
        "SELECT upper( NULL ), s.* FROM s.t AS s, range(3) WHERE a =  CAST('1' AS BIGINT) "
    );
}

/// `nextval` of NULL is let pass, of a sequence it is not: what calls anything but what computes always has its transaction.
#[test]
fn what_calls_anything_else_has_a_transaction_each_time() {
    let mut talk = Talk::usual();
    for round in 0..2 {
        let nothing = vec![Value::Null(None)];
        let id = talk.submit(query("SELECT nextval(?)", nothing, LIMITS));
        talk.hears(0, reply("connected")).unwrap();
        if round == 0 {
            talk.hears(0, reply("parsed_calls")).unwrap();
        }
        let wanted = asked_within("SELECT nextval( NULL )");
        assert_eq!(text(&talk.asked[0]), wanted);
        for name in ["numbers", "ended"] {
            talk.hears(0, reply(name)).unwrap();
        }
        assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
    }
}

/// What is not answered to its end proves nothing, and what has proven it has to do so again when it fails.
#[test]
fn what_has_failed_has_its_transaction_the_next_time() {
    // The first time, given up or refused, and the second one.
    for round in 0..2 {
        for answer in [
            None,
            Some(refuses(REFUSED)),
            Some(refuses("boo")),
            Some(raw(503, &[], "")),
            Some(Err(WireFault::Timeout)),
            Some(reply("ended")),
        ] {
            let mut talk = Talk::usual();
            talk.submit(Talk::select());
            for name in ["connected", "parsed_one"] {
                talk.hears(0, reply(name)).unwrap();
            }
            let mut id = 1;
            if round == 1 {
                for name in ["numbers", "ended"] {
                    talk.hears(0, reply(name)).unwrap();
                }
                id = talk.submit(Talk::select());
                talk.hears(0, reply("connected")).unwrap();
                assert_eq!(text(&talk.asked[0]), "SELECT 1");
            }
            match answer {
                Some(answer) => talk.hears(0, answer).unwrap(),
                None => {
                    talk.cancel(id);
                    talk.hears(0, reply("numbers")).unwrap();
                }
            }
            assert_eq!(kind(&talk.asked[0]), DISCONNECT);
            talk.hears(0, reply("ended")).unwrap();
            assert!(talk.ended(id).unwrap().end.unwrap().is_err());
            assert_eq!(asked(&mut talk), asked_within("SELECT 1"));
        }
    }
}

/// A view that begins to write is found out by the transaction that is due a minute after the last one, and each time from then on.
#[test]
fn a_transaction_is_believed_for_a_minute() {
    let mut talk = answered();
    talk.now = 59;
    talk.submit(Talk::select());
    assert_eq!(kind(&talk.asked[0]), DISCONNECT, "it was left too long ago");
    for name in ["ended", "connected"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(text(&talk.asked[0]), "SELECT 1");
    talk.hears(0, reply("numbers")).unwrap();
    talk.now = 60;
    let id = talk.submit(Talk::select());
    let within = asked_within("SELECT 1");
    assert_eq!(text(&talk.asked[0]), within, "there is none to end");
    talk.hears(0, refuses(REFUSED)).unwrap();
    talk.hears(0, reply("ended")).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Permission, "read_only")
    );
    assert_eq!(asked(&mut talk), within);
    talk.hears(0, reply("numbers")).unwrap();
    assert_eq!(asked(&mut talk), "ROLLBACK;\nSELECT 1");
    talk.hears(0, reply("numbers")).unwrap();
    // The host's clock has fallen.
    talk.now = 59;
    talk.submit(Talk::select());
    for name in ["ended", "connected"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(text(&talk.asked[0]), within);
}

/// What a view does at another engine's server is taken back with its transaction, and would stay without.
#[test]
fn beside_a_foreign_database_each_has_its_transaction() {
    let mut talk = Talk::usual();
    for round in 0..3 {
        talk.submit(Talk::select());
        talk.hears(0, reply("connected")).unwrap();
        if round == 0 {
            talk.hears(0, parsed_beside_a_foreign()).unwrap();
        }
        assert_eq!(text(&talk.asked[0]), asked_within("SELECT 1"));
        for name in ["numbers", "ended"] {
            talk.hears(0, reply(name)).unwrap();
        }
    }
}
