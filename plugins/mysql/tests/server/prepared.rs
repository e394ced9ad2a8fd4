//! Which statements stay prepared.

use crate::common::{self, wire};
use souk_tests::MySql;

/// Texts that a session knows, whichever of them it is asked next.
const TEXTS: u32 = 128;

/// Whoever asks for as many texts as the filters and orders of an endpoint make of its statement, one after the other, has each of them prepared once.
#[test]
fn all_texts_of_an_endpoint_stay_prepared() {
    let server = MySql::shared();
    let database = server.database("");
    let mut wire = wire(server, &database);
    let mut prepared = || -> u32 {
        for i in 1..TEXTS {
            assert_eq!(wire.scalar(&format!("SELECT {i}")), i.to_string());
        }
        // One of them itself.
        common::counted(server, &mut wire, "Prepare")
    };
    assert_eq!([prepared(), prepared()], [TEXTS, TEXTS]);
}

/// A server that keeps fewer statements than a session would, for all of its sessions, answers all the same: the session's own make room.
#[test]
fn a_server_that_keeps_few_statements_answers() {
    let server = MySql::start(&["--max-prepared-stmt-count=20"]);
    let database = server.database("");
    let mut wire = wire(&server, &database);
    for round in 0..2 {
        for i in 0..50 {
            let answer = wire.scalar(&format!("SELECT {i}"));
            assert_eq!(answer, i.to_string(), "{round}");
        }
    }
}
