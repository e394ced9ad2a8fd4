//! What native handlers have in common: axum, the same rows as JSON, written straight into one buffer, no key, no limit, no sandbox. Each
//! client has a file of its own, `native_….rs`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::answers::{Groups, Page, number, value};
use souk_load::queries::Query;

/// A client of one engine, on one thread: what the routes ask it for.
pub trait Client: Send + Sync + 'static {
    /// The players of a query.
    fn players(
        &self,
        query: Query,
        value: i64,
    ) -> impl Future<Output = anyhow::Result<Page>> + Send;

    /// The goals of the team.
    fn goals(&self) -> impl Future<Output = anyhow::Result<i64>> + Send;

    /// The team in groups, which real servers are asked for only (`market::GROUP_BY`).
    fn groups(&self) -> impl Future<Output = anyhow::Result<Groups>> + Send {
        std::future::ready(Err(anyhow::anyhow!("this engine is not asked for groups")))
    }
}

pub fn router<C: Client>(client: C) -> Router {
    async fn single<C: Client>(
        State(client): State<Arc<C>>,
        RawQuery(query): RawQuery,
    ) -> Response {
        let page = client.players(Query::Single, value(query)).await;
        page.map_or_else(failed, Page::finish)
    }
    async fn page<C: Client>(State(client): State<Arc<C>>, RawQuery(query): RawQuery) -> Response {
        let page = client.players(Query::Page, value(query)).await;
        page.map_or_else(failed, Page::finish)
    }
    /// One more than are wanted, which tells whether there are more.
    async fn page_of_rows<C: Client>(
        State(client): State<Arc<C>>,
        RawQuery(query): RawQuery,
    ) -> Response {
        let page = client.players(Query::Rows, value(query) + 1).await;
        page.map_or_else(failed, |page| page.without_last().finish())
    }
    async fn rows<C: Client>(State(client): State<Arc<C>>, RawQuery(query): RawQuery) -> Response {
        let page = client.players(Query::Rows, value(query)).await;
        page.map_or_else(failed, Page::finish)
    }
    async fn aggregate<C: Client>(State(client): State<Arc<C>>) -> Response {
        client.goals().await.map_or_else(failed, number)
    }
    async fn groups<C: Client>(State(client): State<Arc<C>>) -> Response {
        client.groups().await.map_or_else(failed, Groups::finish)
    }
    Router::new()
        .route("/single", get(single::<C>))
        .route("/page", get(page::<C>))
        .route("/page-of-rows", get(page_of_rows::<C>))
        .route("/aggregate", get(aggregate::<C>))
        .route("/groups", get(groups::<C>))
        .route("/rows", get(rows::<C>))
        .with_state(Arc::new(client))
}

pub fn failed(error: impl std::fmt::Display) -> Response {
    (
        axum::http::StatusCode::INTERNAL_SERVER_ERROR,
        format!("{error:#}"),
    )
        .into_response()
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
