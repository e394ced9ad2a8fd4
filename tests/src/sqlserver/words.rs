//! What an answer is made of (MS-TDS 2.2.7), written.

use rusqlite::types::Value;

use super::Failure;
use super::types::Kind;

pub fn done(kind: u8, status: u16, rows: u64) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend_from_slice(&status.to_le_bytes());
    out.extend([0xc1, 0]);
    out.extend_from_slice(&rows.to_le_bytes());
    out
}

pub fn token(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(body.len() as u16).to_le_bytes());
    out.extend_from_slice(body);
}

/// A text with its length in a byte before it.
pub fn named(text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut out = vec![(units.len() / 2) as u8];
    out.extend(units);
    out
}

pub fn changed(out: &mut Vec<u8>, what: u8, new: &[u8], old: &[u8]) {
    token(out, 0xe3, &[&[what], new, old].concat());
}

pub fn error(out: &mut Vec<u8>, failure: &Failure, class: u8) {
    message(out, 0xaa, failure.number, class, &failure.text);
}

pub fn information(out: &mut Vec<u8>, number: i32, text: &str) {
    message(out, 0xab, number, 0, text);
}

fn message(out: &mut Vec<u8>, kind: u8, number: i32, class: u8, text: &str) {
    let mut body = number.to_le_bytes().to_vec();
    body.extend([1, class]);
    body.extend_from_slice(&(text.encode_utf16().count() as u16).to_le_bytes());
    body.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    body.extend(named("tests"));
    body.push(0);
    body.extend_from_slice(&1_u32.to_le_bytes());
    token(out, kind, &body);
}

pub fn describe(out: &mut Vec<u8>, columns: &[(String, Kind)]) {
    out.push(0x81);
    out.extend_from_slice(&(columns.len() as u16).to_le_bytes());
    for (name, kind) in columns {
        // It may be NULL, and be changed.
        out.extend([0, 0, 0, 0, 0x09, 0]);
        kind.describe(out);
        out.extend(named(name));
    }
}

/// A row; where something is NULL, one that leaves it out.
pub fn row(columns: &[(String, Kind)], cells: &[Value]) -> Vec<u8> {
    let is_compact = cells.contains(&Value::Null);
    let mut out = vec![if is_compact { 0xd2 } else { 0xd1 }];
    if is_compact {
        for eight in cells.chunks(8) {
            let bits = eight
                .iter()
                .enumerate()
                .filter(|(_, cell)| **cell == Value::Null);
            out.push(bits.map(|(at, _)| 1 << at).sum());
        }
    }
    for ((_, kind), cell) in columns.iter().zip(cells) {
        if !(is_compact && *cell == Value::Null) {
            kind.write(cell, &mut out);
        }
    }
    out
}
