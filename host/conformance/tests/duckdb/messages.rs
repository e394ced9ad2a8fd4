//! How many messages statements take, as the server counts them, and connections, of which none is left.

use crate::common::query;
use crate::{stocked, subject};
use futures_util::future::join_all;
use serde_json::json;
use souk_sandbox::{Limits, Query, Request, SchemaFilter};
use souk_tests::DuckDb;

/// What a statement takes is counted by the server: two messages to the answer where the session knows it, and one when nobody asks for more. The first time
/// it is read as well.
#[tokio::test]
async fn a_statement_takes_three_messages() {
    let server = DuckDb::start();
    stocked(&server);
    server.writes_down();
    let mut seen = 0;
    let mut messages = || {
        let messages = server.messages().split_off(seen);
        seen += messages.len();
        messages
    };
    let subject = subject(&server, json!({"database": "memory.shop"})).await;
    // One data connection, whose session knows what it was asked before.
    let source = subject.source(subject.place.as_ref().unwrap());
    for rows in [60, 50] {
        let request = query("SELECT id FROM stock");
        let output = subject.ask(&source, request).await.unwrap();
        assert_eq!(output.rows, rows);
        server.is_left().await;
        let mut asked = vec!["CONNECTION_REQUEST", "PREPARE_REQUEST"];
        if rows == 60 {
            asked.push("PREPARE_REQUEST");
        }
        asked.push("DISCONNECT_MESSAGE");
        assert_eq!(messages(), asked);
        server.admin("DELETE FROM shop.stock WHERE id > 50");
    }
    // A catalog, a test, what DuckDB refuses, and more rows than one answer has.
    let catalog = Request::Schema(SchemaFilter {
        schemas: Vec::new(),
        tables: Vec::new(),
        include_fields: true,
        limits: Limits::new(1_000, 1 << 20),
    });
    let many = Request::Query(Query {
        text: "SELECT i FROM range(30000) AS r(i)".into(),
        parameters: Vec::new(),
        limits: Limits::new(30_000, 1 << 20),
    });
    for (request, is_whole, wanted) in [
        (catalog, true, 1),
        (Request::Ping(Limits::new(1, 1_000)), true, 3),
        (query("SELECT absent FROM stock"), false, 2),
        (many, true, 4),
    ] {
        let answer = subject.ask(&source, request).await;
        assert_eq!(answer.is_ok(), is_whole, "{answer:?}");
        server.is_left().await;
        assert_eq!(messages().len(), wanted + 2);
    }
    subject.close().await;
}

/// Statements that follow each other take a message each, on one connection, which is left when nobody asks for more.
#[tokio::test]
async fn one_after_the_other_takes_one_message() {
    let server = DuckDb::start();
    stocked(&server);
    let subject = subject(&server, json!({"database": "memory.shop"})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    // It is known from then on.
    subject
        .ask(&source, query("SELECT id FROM stock"))
        .await
        .unwrap();
    server.is_left().await;
    server.writes_down();
    for rows in (51..=60).rev() {
        let output = subject.ask(&source, query("SELECT id FROM stock")).await;
        assert_eq!(output.unwrap().rows, rows);
        // Each sees what there is by then, in whatever transaction it is.
        server.admin(&format!("DELETE FROM shop.stock WHERE id = {rows}"));
    }
    server.is_left().await;
    let messages = server.messages();
    let count = |kind: &str| messages.iter().filter(|message| *message == kind).count();
    assert_eq!(count("PREPARE_REQUEST"), 10);
    let (opened, ended) = (count("CONNECTION_REQUEST"), count("DISCONNECT_MESSAGE"));
    assert!(opened == ended && opened < 5, "{messages:?}");
    subject.close().await;
    assert_eq!(server.connections(), 0);
}

/// Statements that are asked at the same time hand their connections on. None is left when all are answered.
#[tokio::test]
async fn connections_are_handed_on_and_left() {
    let server = DuckDb::start();
    stocked(&server);
    let subject = subject(&server, json!({"database": "memory.shop"})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let text = "SELECT id, sku FROM stock WHERE id <= 7 ORDER BY id";
    // It is known from then on.
    subject.ask(&source, query(text)).await.unwrap();
    server.is_left().await;
    server.writes_down();
    let (clients, each) = (8, 20);
    let (asked, of) = (&subject, &source);
    let asks = (0..clients).map(|_| async move {
        for _ in 0..each {
            let output = asked.ask(of, query(text)).await.unwrap();
            assert_eq!(output.rows, 7);
            assert_eq!(output.cell(6, 0).as_i64(), Some(7));
        }
    });
    join_all(asks).await;
    server.is_left().await;
    let messages = server.messages();
    let count = |kind: &str| messages.iter().filter(|message| *message == kind).count();
    let (opened, ended) = (count("CONNECTION_REQUEST"), count("DISCONNECT_MESSAGE"));
    println!("{opened} connections for {} statements", clients * each);
    assert!(
        opened == ended && opened < clients * each,
        "{opened}, {ended}"
    );
    subject.close().await;
}
