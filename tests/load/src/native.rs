//! The native handlers that souk is measured against: axum + tokio-postgres, prepared statements,
//! the same rows as JSON, written straight into one buffer, no key, no limit, no sandbox. Two of them: a pool of connections on a
//! multi-threaded runtime, and connections local to each worker thread with several requests in
//! flight. (Those for SQLite and MariaDB are in `native_sqlite.rs` and `native_mysql.rs`.)

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio_postgres::{Client, NoTls, Row, Statement};

use crate::answers::{self, Page, number, value};
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

pub fn failed(error: impl std::fmt::Display) -> Response {
    (
        axum::http::StatusCode::INTERNAL_SERVER_ERROR,
        error.to_string(),
    )
        .into_response()
}

/// A connection from a pool for each request; statements are prepared once per connection.
pub async fn serve_pooled(
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
    rows: Statement,
}

/// One connection for each worker thread, shared by all requests of that thread.
pub fn serve_local(
    config: tokio_postgres::Config,
    listener: std::net::TcpListener,
    threads: usize,
) -> anyhow::Result<()> {
    serve(listener, threads, move || {
        let config = config.clone();
        async move {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            Ok(local_router(Arc::new(Local {
                single: client.prepare(queries::SINGLE).await?,
                aggregate: client.prepare(queries::AGGREGATE).await?,
                rows: client.prepare(queries::ROWS).await?,
                client,
            })))
        }
    })
}

/// Worker threads with a runtime each, to which connections are dealt in turn; `router` makes what one of them serves.
pub fn serve<F: Future<Output = anyhow::Result<Router>>>(
    listener: std::net::TcpListener,
    threads: usize,
    router: impl Fn() -> F + Clone + Send + 'static,
) -> anyhow::Result<()> {
    let mut workers = Vec::new();
    for _ in 0..threads {
        let (sender, mut inbox) = tokio::sync::mpsc::unbounded_channel::<std::net::TcpStream>();
        let router = router.clone();
        std::thread::spawn(move || -> anyhow::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async move {
                let router = router().await?;
                while let Some(stream) = inbox.recv().await {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    let stream = tokio::net::TcpStream::from_std(stream)?;
                    let service = hyper_util::service::TowerToHyperService::new(router.clone());
                    tokio::spawn(
                        hyper::server::conn::http1::Builder::new()
                            .serve_connection(hyper_util::rt::TokioIo::new(stream), service),
                    );
                }
                Ok(())
            })
        });
        workers.push(sender);
    }
    for (index, stream) in listener.incoming().enumerate() {
        workers[index % threads]
            .send(stream?)
            .map_err(|_| anyhow::anyhow!("a worker ended"))?;
    }
    Ok(())
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
    async fn rows(State(local): State<Arc<Local>>, RawQuery(query): RawQuery) -> Response {
        let rows = local.client.query(&local.rows, &[&value(query)]).await;
        rows.map_or_else(failed, page)
    }
    Router::new()
        .route("/single", get(single))
        .route("/aggregate", get(aggregate))
        .route("/rows", get(rows))
        .with_state(local)
}

/// Serves on a free port of the loopback interface and prints its address.
pub fn run(mode: crate::Mode, source: &str, threads: usize) -> anyhow::Result<()> {
    let listener = std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    println!("{}", listener.local_addr()?);
    match mode {
        crate::Mode::Sqlite => crate::native_sqlite::run(source, listener, threads),
        crate::Mode::Mysql => crate::native_mysql::run(source, listener, threads),
        crate::Mode::Local => serve_local(source.parse()?, listener, threads),
        crate::Mode::Pooled => {
            listener.set_nonblocking(true)?;
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(threads)
                .enable_all()
                .build()?;
            runtime.block_on(async {
                serve_pooled(
                    source.parse()?,
                    tokio::net::TcpListener::from_std(listener)?,
                )
                .await
            })
        }
    }
}
