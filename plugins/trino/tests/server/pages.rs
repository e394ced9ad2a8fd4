//! Pages follow each other, in whichever order their members come, until one leads no further.

use crate::common::{ORDER, PATH, Talk, column, ended, numbers, ordered, page, raw, waits};
use crate::stops;
use serde_json::json;

/// Rows are told as they come, and only then is more asked for.
#[test]
fn pages_are_told_one_by_one() {
    let (mut talk, id) = Talk::asking();
    talk.hears(0, waits(0)).unwrap();
    talk.hears(0, page(Some(0), &[], json!([]))).unwrap();
    let columns = [column("n", "bigint")];
    for number in 0..3 {
        talk.hears(
            0,
            page(Some(number + 1), &columns, json!([[number], [null]])),
        )
        .unwrap();
        assert_eq!(talk.asked.len(), 1);
        assert_eq!(talk.asked[0].path, format!("{PATH}{}", number + 1));
    }
    talk.hears(0, page(None, &columns, json!([]))).unwrap();
    talk.hears(0, ended()).unwrap();
    let answer = talk.ended(id).unwrap().ok();
    assert_eq!((answer.rows, answer.chunks.len()), (6, 3));
}

/// In whichever order an answer has its members it is read, its rows are told once, and it is gone on from.
#[test]
fn pages_have_any_order() {
    let columns = [column("n", "bigint")];
    let first = page(Some(1), &columns, json!([[1], [null]]));
    let last = page(None, &columns, json!([[7]]));
    let mut order = ORDER;
    for turn in 0..2 * ORDER.len() {
        order.rotate_left(1);
        if turn == ORDER.len() {
            order.reverse();
        }
        let (mut talk, id) = Talk::asking();
        talk.hears(0, ordered(&first, &order)).unwrap();
        assert_eq!(talk.asked[0].path, format!("{PATH}1"), "{order:?}");
        talk.hears(0, ordered(&last, &order)).unwrap();
        talk.hears(0, ended()).unwrap();
        let answer = talk.ended(id).unwrap().ok();
        assert_eq!((answer.rows, answer.chunks.len()), (3, 2), "{order:?}");
        // Nor do columns change where they stand behind rows.
        let (mut talk, id) = Talk::asking();
        talk.hears(0, ordered(&first, &order)).unwrap();
        let other = page(None, &[column("m", "bigint")], json!([[7]]));
        talk.hears(0, ordered(&other, &order)).unwrap();
        talk.hears(0, ended()).unwrap();
        let answer = talk.ended(id).unwrap();
        assert_eq!(answer.chunks.len(), 1, "{order:?}");
        assert_eq!(answer.error().code, "malformed_answer", "{order:?}");
    }
}

/// A statement whose rows are refused is stopped where it goes on, wherever that stands; what is said twice is refused.
#[test]
fn what_follows_rows_is_read() {
    let columns = [column("n", "bigint")];
    let wrong = page(Some(1), &columns, json!([["x"]]));
    let orders = [ORDER, ["columns", "data", "nextUri", "id"]];
    for order in orders {
        let (mut talk, id) = Talk::asking();
        talk.hears(0, ordered(&wrong, &order)).unwrap();
        stops(&mut talk, Some(1));
        assert_eq!(talk.ended(id).unwrap().error().code, "malformed_answer");
    }
    for twice in [
        ["id", "columns", "data", "data"],
        ["id", "data", "columns", "data"],
        ["id", "data", "data", "columns"],
        ["id", "columns", "columns", "data"],
    ] {
        let answer = ordered(&numbers(1), &twice);
        let error = Talk::usual().rows_of([answer]).error();
        assert_eq!(error.code, "malformed_answer", "{twice:?}");
    }
    // Without an id it is no coordinator's.
    let error = Talk::usual()
        .rows_of([ordered(&numbers(1), &["columns", "data"])])
        .error();
    assert_eq!(error.code, "malformed_answer");
}

/// An answer that says that there are no rows has none: who goes on so is asked again with pauses.
#[test]
fn no_rows_are_none() {
    let (mut talk, _) = Talk::asking();
    let answer = page(Some(1), &[column("n", "bigint")], json!([]));
    for _ in 0..9 {
        talk.hears(0, ordered(&answer, &ORDER)).unwrap();
    }
    talk.hears(0, ordered(&answer, &ORDER)).unwrap();
    assert_eq!((talk.asked.len(), talk.pauses.len()), (0, 1));
    talk.wakes();
    let row = page(Some(1), &[column("n", "bigint")], json!([[1]]));
    talk.hears(0, ordered(&row, &ORDER)).unwrap();
    assert_eq!((talk.asked.len(), talk.pauses.len()), (1, 0));
}

/// A coordinator that has nothing to say is asked again, at once in the beginning, then with pauses.
#[test]
fn who_waits_makes_pauses() {
    let (mut talk, id) = Talk::asking();
    let mut pauses = Vec::new();
    for number in 0..24 {
        talk.hears(0, waits(number)).unwrap();
        if talk.asked.is_empty() {
            pauses.push(talk.wakes());
        }
    }
    assert_eq!(
        pauses,
        [
            10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 100, 100, 100, 100, 100
        ]
    );
    talk.hears(0, numbers(3)).unwrap();
    talk.hears(0, ended()).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 3);
}

/// Who leads on for ever is left, and told to stop.
#[test]
fn endless_answers_end() {
    let (mut talk, id) = Talk::asking();
    let mut answers = 0;
    while talk
        .asked
        .first()
        .is_none_or(|request| request.method != "DELETE")
    {
        match talk.asked.is_empty() {
            true => drop(talk.wakes()),
            false => {
                talk.hears(0, waits(answers)).unwrap();
                answers += 1;
            }
        }
    }
    assert_eq!(answers, 100_000);
    talk.hears(0, raw(204, &[], "")).unwrap();
    talk.hears(0, ended()).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "too_many_pages");
    // So is who ends a transaction for ever.
    let (mut talk, id) = Talk::asking();
    talk.hears(0, numbers(1)).unwrap();
    talk.hears(0, waits(0)).unwrap();
    assert!(talk.ended(id).is_none() && talk.asked[0].method == "GET");
    talk.hears(0, waits(1)).unwrap();
    assert!(talk.asked.is_empty());
    talk.ended(id).unwrap().ok();
}

/// A shape is described once; the sixty-fifth takes the place of the first.
#[test]
fn shapes_are_described_once() {
    let mut talk = Talk::usual();
    for round in 0..3 {
        for number in 0..=64 {
            let name = format!("c{number}");
            let answer = talk
                .rows_of([page(None, &[column(&name, "bigint")], json!([[7]]))])
                .ok();
            assert_eq!(answer.columns[0].name, name, "{round}");
        }
    }
}
