//! A real MariaDB, and sessions with it.
#![allow(dead_code, reason = "each test file uses its part")]

use souk_connector_mysql::Session;
use souk_sdk::Settings;
use souk_tests::MySql;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

pub type Wire = souk_tests::wire::Wire<Session>;

pub fn settings(user: &str, password: &str, database: &str) -> Settings {
    let json = format!(
        r#"{{"username":"{user}","password":"{password}","database":"{database}","ssl_mode":"disable","statement_timeout_ms":5000}}"#
    );
    Settings {
        engine: "mysql".into(),
        json,
    }
}

/// A session of the server's owner in this database.
pub fn wire(server: &MySql, database: &str) -> Wire {
    wire_within(server, database, 5_000)
}

/// The same where statements have so long.
pub fn wire_within(server: &MySql, database: &str, timeout_ms: u32) -> Wire {
    wire_at(server.port, server, database, timeout_ms)
}

/// A session with the server as it is, and one with it as one that ends rows with EOF.
pub fn both_ways(server: &MySql, database: &str) -> [Wire; 2] {
    both_ways_within(server, database, 5_000)
}

/// The same where statements have so long.
pub fn both_ways_within(server: &MySql, database: &str, timeout_ms: u32) -> [Wire; 2] {
    [server.port, with_eof(server)].map(|port| wire_at(port, server, database, timeout_ms))
}

fn wire_at(port: u16, server: &MySql, database: &str, timeout_ms: u32) -> Wire {
    let mut settings = settings(&server.user, &server.password, database);
    let [usual, own] = [5_000, timeout_ms].map(|ms| format!(r#""statement_timeout_ms":{ms}"#));
    settings.json = settings.json.replace(&usual, &own);
    Wire::open(port, settings).unwrap()
}

/// A way to the server on which it does not offer to leave out EOF (`CLIENT_DEPRECATE_EOF`), behind descriptions and rows: MySQL before 5.7 does not, nor do
/// proxies that know no newer one. One session, without TLS.
pub fn with_eof(server: &MySql) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, behind) = (listener.local_addr().unwrap().port(), server.port);
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut source = TcpStream::connect(("127.0.0.1", behind)).unwrap();
        for socket in [&client, &source] {
            socket.set_nodelay(true).unwrap();
        }
        client.write_all(&greeting_with_eof(&mut source)).unwrap();
        let (mut told, mut heard) = (source.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut told, &mut heard);
            let _ = heard.shutdown(Shutdown::Both);
        });
        let _ = std::io::copy(&mut client, &mut source);
        let _ = source.shutdown(Shutdown::Both);
    });
    port
}

/// What the server greets with, without bit 24 of what it can do.
fn greeting_with_eof(source: &mut TcpStream) -> Vec<u8> {
    let mut greeting = vec![0; 4];
    source.read_exact(&mut greeting).unwrap();
    let length = u32::from_le_bytes([greeting[0], greeting[1], greeting[2], 0]);
    greeting.resize(4 + length as usize, 0);
    source.read_exact(&mut greeting[4..]).unwrap();
    // The protocol's version; that of the server, which ends in NUL.
    let version = 5 + greeting[5..].iter().position(|byte| *byte == 0).unwrap();
    // Session, nonce and its end, the lower half of the abilities, character set, status; then the upper half.
    let highest = version + 1 + (4 + 8 + 1 + 2 + 1 + 2) + 1;
    assert_eq!(greeting[highest] & 1, 1, "the server offers it");
    greeting[highest] &= !1;
    greeting
}

/// How many statements of this session the server has prepared or closed (`Prepare`, `Close stmt`).
pub fn counted(server: &MySql, wire: &mut Wire, command: &str) -> u32 {
    let counted = match server.is_mysql() {
        true => wire.scalar(&format!(
            "SELECT COUNT_STAR FROM performance_schema.events_statements_summary_by_thread_by_event_name \
             JOIN performance_schema.threads USING (THREAD_ID) \
             WHERE PROCESSLIST_ID = CONNECTION_ID() AND EVENT_NAME = 'statement/com/{command}'"
        )),
        false => {
            let variable = match command {
                "Prepare" => "Com_stmt_prepare",
                _ => "Com_stmt_close",
            };
            wire.scalar(&format!(
                "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = '{variable}'"
            ))
        }
    };
    counted.parse().unwrap()
}

/// How long statements of this session may run, in milliseconds.
pub fn time_limit_ms(server: &MySql, wire: &mut Wire, ask: fn(&mut Wire, &str) -> String) -> f64 {
    let (variable, unit_ms) = match server.is_mysql() {
        true => ("@@max_execution_time", 1.0),
        false => ("@@max_statement_time", 1_000.0),
    };
    let limit = ask(wire, &format!("SELECT {variable}"));
    limit.parse::<f64>().unwrap() * unit_ms
}
