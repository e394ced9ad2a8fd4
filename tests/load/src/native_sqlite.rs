//! The native handler for the SQLite file: a connection local to each worker thread, cached statements, called where the request is
//! read, because handing such short statements to other threads would cost more than they do.

use std::cell::RefCell;

use axum::Router;
use axum::extract::RawQuery;
use axum::response::Response;
use axum::routing::get;
use rusqlite::{Connection, OpenFlags};

use crate::answers::{Group, Groups, Page, Player, number, value};
use crate::native::{failed, serve};
use souk_load::queries;

thread_local! {
    static CONNECTION: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

fn with<T>(run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    CONNECTION.with_borrow(|connection| match connection {
        Some(connection) => run(connection),
        None => Err(rusqlite::Error::InvalidQuery),
    })
}

fn players(sql: &str, parameter: i64) -> Response {
    let written = with(|connection| {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([parameter])?;
        let mut page = Page::of(1);
        while let Some(row) = rows.next()? {
            let (name, team) = (row.get_ref(1)?, row.get_ref(2)?);
            page.player(&Player {
                id: row.get(0)?,
                name: name.as_str()?,
                team: team.as_str()?,
                goals: row.get(3)?,
                rating: row.get(4)?,
                active: row.get(5)?,
            });
        }
        Ok(page)
    });
    written.map_or_else(failed, Page::finish)
}

async fn single(RawQuery(query): RawQuery) -> Response {
    players(queries::SINGLE, value(query))
}

async fn aggregate() -> Response {
    let goals = with(|connection| {
        let mut statement = connection.prepare_cached(queries::AGGREGATE)?;
        statement.query_row([queries::TEAM], |row| row.get(0))
    });
    goals.map_or_else(failed, number)
}

async fn groups() -> Response {
    let written = with(|connection| {
        let mut statement = connection.prepare_cached(queries::GROUPS)?;
        let mut rows = statement.query([queries::TEAM])?;
        let mut groups = Groups::begin();
        while let Some(row) = rows.next()? {
            groups.group(&Group {
                shirt: row.get(0)?,
                active: row.get(1)?,
                goals: row.get(2)?,
            });
        }
        Ok(groups)
    });
    written.map_or_else(failed, Groups::finish)
}

async fn rows(RawQuery(query): RawQuery) -> Response {
    players(queries::ROWS, value(query))
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
                .route("/groups", get(groups))
                .route("/rows", get(rows)))
        }
    })
}
