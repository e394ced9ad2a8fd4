//! The native handler for the SQLite file: a connection local to each worker thread, cached statements, called where the request is
//! read, because handing such short statements to other threads would cost more than they do.

use std::cell::RefCell;
use std::path::Path;

use axum::Router;
use axum::extract::Query;
use axum::response::Response;
use axum::routing::get;
use rusqlite::{Connection, OpenFlags, Row};

use crate::native::{ById, ByLimit, Player, failed, number, page, serve};
use souk_load::queries;

thread_local! {
    static CONNECTION: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

/// The dataset as a file of its own.
pub fn write(path: &Path) -> rusqlite::Result<()> {
    Connection::open(path)?.execute_batch(queries::SQLITE_SCHEMA)
}

fn with<T>(run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    CONNECTION.with_borrow(|connection| match connection {
        Some(connection) => run(connection),
        None => Err(rusqlite::Error::InvalidQuery),
    })
}

fn player(row: &Row<'_>) -> rusqlite::Result<Player<String>> {
    Ok(Player {
        id: row.get(0)?,
        name: row.get(1)?,
        team: row.get(2)?,
        goals: row.get(3)?,
        rating: row.get(4)?,
        active: row.get(5)?,
    })
}

fn players(sql: &str, parameter: i64) -> Response {
    let players = with(|connection| {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([parameter], player)?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    });
    players.map_or_else(failed, page)
}

async fn single(Query(query): Query<ById>) -> Response {
    players(queries::SINGLE, query.id)
}

async fn aggregate() -> Response {
    let goals = with(|connection| {
        let mut statement = connection.prepare_cached(queries::AGGREGATE)?;
        statement.query_row([queries::TEAM], |row| row.get(0))
    });
    goals.map_or_else(failed, number)
}

async fn rows(Query(query): Query<ByLimit>) -> Response {
    players(queries::ROWS, query.limit)
}

pub fn run(path: &str, listener: std::net::TcpListener, threads: usize) -> anyhow::Result<()> {
    let path = path.to_owned();
    serve(listener, threads, move || {
        let path = path.clone();
        async move {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            CONNECTION.set(Some(Connection::open_with_flags(path, flags)?));
            Ok(Router::new()
                .route("/single", get(single))
                .route("/aggregate", get(aggregate))
                .route("/rows", get(rows)))
        }
    })
}
