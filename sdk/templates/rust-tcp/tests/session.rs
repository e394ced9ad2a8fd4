//! Native tests: a session on a server of which is said what it expects and sends.

use my_connector::MyConnector;
use souk_sdk::testing::{Session, Wire};
use souk_sdk::{ErrorClass, Value};

const PLAIN: &str = r#"{"ssl_mode": "disable"}"#;

#[test]
fn a_reply_arrives_byte_by_byte() {
    let wire = Wire::new()
        .expects("*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n")
        .sends("*2\r\n$5\r\nhello\r\n$-1\r\n")
        .in_pieces(1);
    let mut session = Session::<MyConnector>::tcp(PLAIN, wire).unwrap();
    let answer = session.query("MGET a ?", [Value::Text("b".into())]).unwrap();
    assert_eq!(answer.texts(), [["hello"], ["NULL"]]);
}

#[test]
fn nothing_that_writes_is_sent() {
    let mut session = Session::<MyConnector>::tcp(PLAIN, Wire::new()).unwrap();
    let error = session.query("SET a b", []).unwrap_err();
    assert_eq!(error.class, ErrorClass::Unsupported);
}

#[test]
fn a_wrong_password_is_the_credentials_fault() {
    let wire = Wire::new()
        .expects("*2\r\n$4\r\nAUTH\r\n$5\r\nwrong\r\n")
        .sends("-WRONGPASS invalid password\r\n");
    let error = Session::<MyConnector>::tcp(r#"{"password": "wrong", "ssl_mode": "disable"}"#, wire).err().unwrap();
    assert_eq!(error.class, ErrorClass::Authentication);
}

#[test]
fn what_is_no_reply_is_the_sources_fault() {
    let replies = [
        ("*2\r\n-ERR no\r\n$1\r\nb\r\n", "refused"),
        ("$99999999\r\n", "bad_length"),
        ("hello\r\n", "bad_reply"),
    ];
    for (reply, code) in replies {
        let wire = Wire::new().expects("*2\r\n$3\r\nGET\r\n$1\r\na\r\n").sends(reply);
        let mut session = Session::<MyConnector>::tcp(PLAIN, wire).unwrap();
        let error = session.query("GET a", []).unwrap_err();
        assert_eq!((error.class, error.code.as_str()), (ErrorClass::Source, code));
    }
}
