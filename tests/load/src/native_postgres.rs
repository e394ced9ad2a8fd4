//! The native handlers of PostgreSQL: tokio-postgres with prepared statements. Two of them: a pool of connections on a multi-threaded runtime,
//! and connections local to each worker thread with several requests in flight.

use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use tokio_postgres::{Client, NoTls, Row, Statement};

use crate::answers::{self, Group, Groups, Page, number, value};
use crate::native::{failed, serve};
use souk_load::queries;

/// As many connections as the pooled host would be given.
const POOL_SIZE: usize = 16;

fn page(rows: Vec<Row>) -> Response {
    let mut page = Page::of(rows.len());
    for row in &rows {
        page.player(&answers::Player {
            id: row.get(0),
            name: row.get(1),
            team: row.get(2),
            goals: i64::from(row.get::<_, i32>(3)),
            rating: row.get(4),
            active: row.get(5),
        });
    }
    page.finish()
}

fn grouped(rows: Vec<Row>) -> Response {
    let mut groups = Groups::begin();
    for row in &rows {
        groups.group(&Group {
            shirt: row.get(0),
            active: row.get(1),
            goals: row.get(2),
        });
    }
    groups.finish()
}

/// A connection from a pool for each request; statements are prepared once per connection.
pub fn run_pooled(
    url: &str,
    listener: std::net::TcpListener,
    threads: usize,
) -> anyhow::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        serve_pooled(url.parse()?, listener).await
    })
}

async fn serve_pooled(
    config: tokio_postgres::Config,
    listener: tokio::net::TcpListener,
) -> anyhow::Result<()> {
    let manager = deadpool_postgres::Manager::new(config, NoTls);
    let pool = deadpool_postgres::Pool::builder(manager)
        .max_size(POOL_SIZE)
        .build()?;

    async fn single(
        State(pool): State<deadpool_postgres::Pool>,
        RawQuery(query): RawQuery,
    ) -> Response {
        let run = async {
            let client = pool.get().await?;
            let statement = client.prepare_cached(queries::SINGLE).await?;
            anyhow::Ok(client.query(&statement, &[&value(query)]).await?)
        };
        run.await.map_or_else(failed, page)
    }
    async fn aggregate(State(pool): State<deadpool_postgres::Pool>) -> Response {
        let run = async {
            let client = pool.get().await?;
            let statement = client.prepare_cached(queries::AGGREGATE).await?;
            anyhow::Ok(client.query_one(&statement, &[&queries::TEAM]).await?)
        };
        run.await.map_or_else(failed, |row| number(row.get(0)))
    }
    async fn groups(State(pool): State<deadpool_postgres::Pool>) -> Response {
        let run = async {
            let client = pool.get().await?;
            let statement = client.prepare_cached(queries::GROUPS).await?;
            anyhow::Ok(client.query(&statement, &[&queries::TEAM]).await?)
        };
        run.await.map_or_else(failed, grouped)
    }
    async fn rows(
        State(pool): State<deadpool_postgres::Pool>,
        RawQuery(query): RawQuery,
    ) -> Response {
        let run = async {
            let client = pool.get().await?;
            let statement = client.prepare_cached(queries::ROWS).await?;
            anyhow::Ok(client.query(&statement, &[&value(query)]).await?)
        };
        run.await.map_or_else(failed, page)
    }
    let router = Router::new()
        .route("/single", get(single))
        .route("/aggregate", get(aggregate))
        .route("/groups", get(groups))
        .route("/rows", get(rows))
        .with_state(pool);
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router)
        .await
        .context("the pooled server")
}

struct Local {
    client: Client,
    single: Statement,
    aggregate: Statement,
    groups: Statement,
    rows: Statement,
}

/// One connection for each worker thread, shared by all requests of that thread.
pub fn run_local(url: &str, listener: std::net::TcpListener, threads: usize) -> anyhow::Result<()> {
    let config: tokio_postgres::Config = url.parse()?;
    serve(listener, threads, move || {
        let config = config.clone();
        async move {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            Ok(local_router(Arc::new(Local {
                single: client.prepare(queries::SINGLE).await?,
                aggregate: client.prepare(queries::AGGREGATE).await?,
                groups: client.prepare(queries::GROUPS).await?,
                rows: client.prepare(queries::ROWS).await?,
                client,
            })))
        }
    })
}

fn local_router(local: Arc<Local>) -> Router {
    async fn single(State(local): State<Arc<Local>>, RawQuery(query): RawQuery) -> Response {
        let rows = local.client.query(&local.single, &[&value(query)]).await;
        rows.map_or_else(failed, page)
    }
    async fn aggregate(State(local): State<Arc<Local>>) -> Response {
        let row = local
            .client
            .query_one(&local.aggregate, &[&queries::TEAM])
            .await;
        row.map_or_else(failed, |row| number(row.get(0)))
    }
    async fn groups(State(local): State<Arc<Local>>) -> Response {
        let rows = local.client.query(&local.groups, &[&queries::TEAM]).await;
        rows.map_or_else(failed, grouped)
    }
    async fn rows(State(local): State<Arc<Local>>, RawQuery(query): RawQuery) -> Response {
        let rows = local.client.query(&local.rows, &[&value(query)]).await;
        rows.map_or_else(failed, page)
    }
    Router::new()
        .route("/single", get(single))
        .route("/aggregate", get(aggregate))
        .route("/groups", get(groups))
        .route("/rows", get(rows))
        .with_state(local)
}
