//! Native tests: a session on a file of this project.

use my_connector::MyConnector;
use souk_sdk::testing::Session;
use souk_sdk::{ErrorClass, Value};

fn open(file: &str) -> Result<Session<MyConnector>, souk_sdk::Error> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
    Session::directory(&format!(r#"{{"database": {file:?}, "directory": {directory:?}}}"#))
}

#[test]
fn columns_are_chosen_and_rows_filtered() {
    let mut session = open("people.csv").unwrap();
    let pair = ["city", "Alexandria"].map(|text| Value::Text(text.into()));
    let answer = session.query("name, born", pair).unwrap();
    assert_eq!(answer.texts(), [["Hypatia", "NULL"]]);
    assert_eq!(session.query("*", []).unwrap().rows.len(), 4);
}

#[test]
fn what_is_not_there_is_told() {
    assert_eq!(open("absent.csv").err().unwrap().class, ErrorClass::Unavailable);
    assert_eq!(open("../Cargo.toml").err().unwrap().class, ErrorClass::Configuration);
    let error = open("people.csv").unwrap().query("age", []).unwrap_err();
    assert_eq!(error.class, ErrorClass::NotFound);
}
