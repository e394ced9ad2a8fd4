//! The native handler for MariaDB: mysql_async, prepared statements, and connections local to each worker thread. The protocol answers one
//! statement at a time on each.

use mysql_async::prelude::Queryable;
use mysql_async::{Opts, OptsBuilder, Pool, PoolConstraints, PoolOpts, Row, Value};

use crate::answers::{Group, Groups, Page, Player};
use crate::native::{Client, router, serve};
use souk_load::queries::{self, Query, Texts};

/// On each thread: with two of them as many as the pooled handler of PostgreSQL has.
const CONNECTIONS_MAX: usize = 8;

fn integer(row: &Row, column: usize) -> i64 {
    match row.as_ref(column) {
        Some(Value::Int(value)) => *value,
        Some(Value::Bytes(digits)) => text_of(digits).parse().unwrap_or(0),
        _ => 0,
    }
}

fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

fn text(row: &Row, column: usize) -> &str {
    match row.as_ref(column) {
        Some(Value::Bytes(bytes)) => text_of(bytes),
        _ => "",
    }
}

fn float(row: &Row, column: usize) -> f64 {
    match row.as_ref(column) {
        Some(Value::Double(value)) => *value,
        _ => 0.0,
    }
}

fn add(mut page: Page, row: Row) -> Page {
    page.player(&Player {
        id: integer(&row, 0),
        name: text(&row, 1),
        team: text(&row, 2),
        goals: integer(&row, 3),
        rating: float(&row, 4),
        active: integer(&row, 5) != 0,
    });
    page
}

fn add_group(mut groups: Groups, row: Row) -> Groups {
    groups.group(&Group {
        shirt: integer(&row, 0),
        active: integer(&row, 1) != 0,
        goals: integer(&row, 2),
    });
    groups
}

struct MySql {
    pool: Pool,
    texts: Texts,
}

impl Client for MySql {
    async fn players(&self, query: Query, value: i64) -> anyhow::Result<Page> {
        let mut connection = self.pool.get_conn().await?;
        let sql = self.texts.of(query);
        Ok(connection
            .exec_fold(sql, (value,), Page::of(1), add)
            .await?)
    }

    async fn goals(&self) -> anyhow::Result<i64> {
        let mut connection = self.pool.get_conn().await?;
        let sql = self.texts.aggregate.as_str();
        let row: Option<Row> = connection.exec_first(sql, (queries::TEAM,)).await?;
        Ok(row.map_or(0, |row| integer(&row, 0)))
    }

    async fn groups(&self) -> anyhow::Result<Groups> {
        let mut connection = self.pool.get_conn().await?;
        let sql = self.texts.groups.as_str();
        Ok(connection
            .exec_fold(sql, (queries::TEAM,), Groups::begin(), add_group)
            .await?)
    }
}

/// `url` is of mysql_async's form.
pub fn run(url: &str, listener: std::net::TcpListener, threads: usize) -> anyhow::Result<()> {
    let opts = Opts::from_url(url)?;
    serve(listener, threads, move || {
        let opts = opts.clone();
        async move {
            let constraints = PoolConstraints::new(1, CONNECTIONS_MAX).unwrap_or_default();
            let pooled = PoolOpts::default()
                .with_constraints(constraints)
                // Nothing of a session's is changed.
                .with_reset_connection(false);
            let pool = Pool::new(OptsBuilder::from_opts(opts).pool_opts(pooled));
            let texts = Texts::with("?");
            Ok(router(MySql { pool, texts }))
        }
    })
}
