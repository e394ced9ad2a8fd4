//! Who speaks first, and who does not.

use crate::class_and_code;
use crate::common::{settings, wire};
use souk_connector_mysql::Session;
use souk_sdk::{Command, Error, ErrorClass, Input, Machine, Step};
use souk_tests::MySql;

/// What a session makes of what comes first. It waits for that, and not for long.
fn hears(first: Option<&[u8]>) -> Error {
    let mut session = Session::open(settings("souk", "pw", "shop")).unwrap();
    let mut step = Step::default();
    session.start(&mut step).unwrap();
    let (commands, _) = step.into_parts();
    let [Command::Wake(pause)] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    assert!(pause.ms <= 10_000, "{} ms", pause.ms);
    let input = match first {
        Some(bytes) => Input::Bytes(bytes.to_vec()),
        None => Input::Woken(pause.id),
    };
    session.receive(input, &mut Step::default()).unwrap_err()
}

/// A server that waits to be spoken to, as PostgreSQL's does, is told to speak no MySQL, and so is one that says something else.
#[test]
fn a_port_that_does_not_greet_is_told() {
    let silent = hears(None);
    assert_eq!(
        class_and_code(&silent),
        (ErrorClass::Unavailable, "no_greeting")
    );
    assert!(silent.message.contains("does not speak MySQL"));
    for words in [
        "SSH-2.0-OpenSSH_9.2p1\r\n",
        "220 mail.example.com ESMTP\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "+OK ready\r\n",
        "-ERR\r\n",
    ] {
        let strange = hears(Some(words.as_bytes()));
        assert_eq!(
            class_and_code(&strange),
            (ErrorClass::Source, "protocol_error"),
            "{words}"
        );
    }
}

/// A greeting that has come is waited for no more: a session that is open goes on.
#[test]
fn who_has_greeted_is_heard() {
    let server = MySql::shared();
    let database = server.database("");
    let mut wire = wire(server, &database);
    let pause = wire.pauses.pop().unwrap();
    wire.step(|session, step| session.receive(Input::Woken(pause.id), step))
        .unwrap();
    assert_eq!(wire.scalar("SELECT 1"), "1");
    assert!(wire.pauses.is_empty());
}
