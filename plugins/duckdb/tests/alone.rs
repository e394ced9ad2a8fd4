//! Which statements are asked in no transaction: those that one which only reads has let pass, for a minute.

mod common;

use common::{
    CONNECT, DISCONNECT, Reply, Talk, asked_within, class_and_code, kind, parsed_beside_a_foreign,
    query, raw, refuses, reply, text,
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

/// Whether a message asks which functions there are.
fn asks_for_functions(message: &str) -> bool {
    message.contains("duckdb_functions()")
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
    assert!(asks_for_functions(&asked(&mut talk)), "also a minute ago");
    talk.hears(0, reply("parsed_one")).unwrap();
    assert_eq!(text(&talk.asked[0]), "SELECT 1");
    talk.hears(0, reply("numbers")).unwrap();
    // The host's clock has fallen.
    talk.now = 59;
    talk.submit(Talk::select());
    for name in ["ended", "ended", "connected"] {
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

/// Asks the statement, which has passed, while the server says `said` of what it is asked for before; and the message by which it is asked then.
fn asked_again(talk: &mut Talk, said: Reply) -> String {
    let first = asked(talk);
    assert!(asks_for_functions(&first), "{first}");
    talk.hears(0, said).unwrap();
    text(&talk.asked[0]).to_owned()
}

/// A session whose statement has passed 50 seconds after the server has said whether statements may be asked alone.
fn passed_late() -> Talk {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 2", vec![], LIMITS));
    talk.hears(0, reply("connected")).unwrap();
    assert!(asks_for_functions(text(&talk.asked[0])));
    for name in ["parsed_one", "numbers", "ended"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
    talk.now = 50;
    talk.submit(Talk::select());
    talk.hears(0, reply("connected")).unwrap();
    let question = text(&talk.asked[0]);
    assert!(question.contains("json_serialize_sql") && !asks_for_functions(question));
    for name in ["parsed_without_looking", "numbers", "ended"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(asked(&mut talk), "SELECT 1");
    for name in ["numbers", "ended"] {
        talk.hears(0, reply(name)).unwrap();
    }
    talk.now = 60;
    talk
}

/// A database that somebody attaches, and a function that somebody makes, are heard of by a session that is asked nothing new, within a minute.
#[test]
fn what_comes_later_is_heard_of_within_a_minute() {
    let within = asked_within("SELECT 1");
    for said in [
        parsed_beside_a_foreign(),
        reply("parsed_beside_a_namesake"),
        // It would not say.
        raw(503, &[], ""),
    ] {
        let is_said = said.as_ref().is_ok_and(|said| said.status == 200);
        let mut talk = passed_late();
        match is_said {
            true => {
                assert_eq!(asked_again(&mut talk, said), within);
                talk.hears(0, reply("numbers")).unwrap();
            }
            false => {
                assert_eq!(kind_after(&mut talk, said), DISCONNECT);
            }
        }
        talk.hears(0, reply("ended")).unwrap();
        // It is believed for a minute as well.
        assert_eq!(asked(&mut talk), within);
        for name in ["numbers", "ended"] {
            talk.hears(0, reply(name)).unwrap();
        }
        talk.now = 120;
        talk.submit(Talk::select());
        talk.hears(0, reply("connected")).unwrap();
        assert_eq!(text(&talk.asked[0]), within, "that is a minute ago, too");
        for name in ["numbers", "ended"] {
            talk.hears(0, reply(name)).unwrap();
        }
        assert_eq!(asked_again(&mut talk, reply("parsed_one")), "SELECT 1");
    }
    let mut talk = passed_late();
    assert_eq!(asked_again(&mut talk, reply("parsed_one")), "SELECT 1");
}

/// What is asked when the server has answered so what it was asked for before.
fn kind_after(talk: &mut Talk, said: Reply) -> u8 {
    assert!(asks_for_functions(&asked(talk)));
    talk.hears(0, said).unwrap();
    kind(&talk.asked[0])
}

/// Of statements that begin at once one asks; the others have their transactions meanwhile.
#[test]
fn one_of_many_asks() {
    let mut talk = passed_late();
    for _ in 0..3 {
        talk.submit(Talk::select());
    }
    for _ in 0..3 {
        talk.hears(0, reply("connected")).unwrap();
    }
    let asked: Vec<&str> = talk.asked.iter().map(text).collect();
    let asks = asked.iter().filter(|text| asks_for_functions(text)).count();
    let within = asked_within("SELECT 1");
    let has_one = asked.iter().filter(|text| **text == within).count();
    assert_eq!((asks, has_one), (1, 2), "{asked:?}");
}

/// A macro of the seller's may have the name of any function of DuckDB's own, which a text calls by its name or by a sign. It may do what it likes with its values.
#[test]
fn beside_a_namesake_each_has_its_transaction() {
    let mut talk = Talk::usual();
    for round in 0..3 {
        talk.submit(Talk::select());
        talk.hears(0, reply("connected")).unwrap();
        if round == 0 {
            talk.hears(0, reply("parsed_beside_a_namesake")).unwrap();
        }
        assert_eq!(text(&talk.asked[0]), asked_within("SELECT 1"));
        for name in ["numbers", "ended"] {
            talk.hears(0, reply(name)).unwrap();
        }
    }
}

/// An attached database that does not answer makes the list of functions fail, and no statement.
#[test]
fn functions_that_cannot_be_listed_are_nobodys_fault() {
    let mut talk = Talk::usual();
    let id = talk.submit(Talk::select());
    talk.hears(0, reply("connected")).unwrap();
    assert!(asks_for_functions(text(&talk.asked[0])));
    talk.hears(0, refuses("IO Error: Unable to connect to Postgres"))
        .unwrap();
    let again = text(&talk.asked[0]);
    assert!(again.contains("json_serialize_sql('SELECT 1')") && !asks_for_functions(again));
    talk.hears(0, reply("parsed_without_looking")).unwrap();
    assert_eq!(text(&talk.asked[0]), asked_within("SELECT 1"));
    for name in ["numbers", "ended"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
    assert_eq!(asked(&mut talk), asked_within("SELECT 1"));
    // What is refused without it as well is told.
    let mut talk = Talk::usual();
    let id = talk.submit(Talk::select());
    talk.hears(0, reply("connected")).unwrap();
    for _ in 0..2 {
        talk.hears(0, refuses("boo")).unwrap();
    }
    talk.hears(0, reply("ended")).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "sql_error");
}
