//! The native handler for SQL Server: tiberius on connections local to each worker thread. TLS is laid around the wire as TDS 8.0 has it, by the
//! library that souk has it from: tiberius itself would bring another one.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use tiberius::{AuthMethod, Config, EncryptionLevel, Row};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::TLS12;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::answers::{Page, Player};
use crate::as_futures::AsFutures;
use crate::native::{Client, router, serve};
use souk_load::queries::{self, Query, Texts};

/// On each thread: with two of them as many as the pooled handler of PostgreSQL has.
const CONNECTIONS_MAX: usize = 8;

/// Where the server is, and how one logs in.
#[derive(Clone, Deserialize, Serialize)]
pub struct Source {
    pub port: u16,
    pub ca_pem: String,
    pub user: String,
    pub password: String,
    pub database: String,
}

type Connection = tiberius::Client<AsFutures<TlsStream<TcpStream>>>;

struct SqlServer {
    source: Source,
    tls: TlsConnector,
    texts: Texts,
    idle: Mutex<Vec<Connection>>,
    room: Semaphore,
}

impl Client for SqlServer {
    async fn players(&self, query: Query, value: i64) -> anyhow::Result<Page> {
        let _room = self.room.acquire().await?;
        let mut connection = self.connection().await?;
        let rows = connection.query(self.texts.of(query), &[&value]).await?;
        let mut rows = rows.into_row_stream();
        let mut page = Page::of(1);
        while let Some(row) = rows.try_next().await? {
            add(&mut page, &row).context("a column of another type")?;
        }
        drop(rows);
        self.give_back(connection);
        Ok(page)
    }

    async fn goals(&self) -> anyhow::Result<i64> {
        let _room = self.room.acquire().await?;
        let mut connection = self.connection().await?;
        let rows = connection
            .query(&*self.texts.aggregate, &[&queries::TEAM])
            .await?;
        let row = rows.into_row().await?;
        self.give_back(connection);
        row.and_then(|row| row.get(0)).context("no sum")
    }
}

impl SqlServer {
    async fn connection(&self) -> anyhow::Result<Connection> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        match idle {
            Some(connection) => Ok(connection),
            None => connect(&self.source, &self.tls).await,
        }
    }

    /// One that failed is not given back.
    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(connection);
    }
}

fn add(page: &mut Page, row: &Row) -> Option<()> {
    page.player(&Player {
        id: row.get(0)?,
        name: row.get(1)?,
        team: row.get(2)?,
        goals: row.get::<i32, _>(3)?.into(),
        rating: row.get(4)?,
        active: row.get(5)?,
    });
    Some(())
}

async fn connect(source: &Source, tls: &TlsConnector) -> anyhow::Result<Connection> {
    let socket = TcpStream::connect(("127.0.0.1", source.port)).await?;
    socket.set_nodelay(true)?;
    let name = ServerName::try_from("127.0.0.1")?;
    let sealed = tls.connect(name, socket).await?;
    let config = Config::builder()
        .database(&source.database)
        .authentication(AuthMethod::sql_server(&source.user, &source.password))
        // It stands already.
        .encryption(EncryptionLevel::NotSupported)
        .build();
    Ok(tiberius::Client::connect(config, AsFutures::new(sealed)).await?)
}

/// Of the version that SQL Server has in packets, as souk's connection.
fn tls(ca_pem: &str) -> anyhow::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes())?)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS12])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"tds/8.0".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

pub fn run(source: &str, listener: std::net::TcpListener, threads: usize) -> anyhow::Result<()> {
    let source: Source = serde_json::from_str(source)?;
    let tls = tls(&source.ca_pem)?;
    serve(listener, threads, move || {
        let (source, tls) = (source.clone(), tls.clone());
        async move {
            let mut texts = Texts::with("@P1");
            for (text, count) in [(&mut texts.rows, "@P1"), (&mut texts.page, "2")] {
                let window = format!("OFFSET 0 ROWS FETCH NEXT {count} ROWS ONLY");
                *text = text.replace(&format!("LIMIT {count}"), &window);
            }
            Ok(router(SqlServer {
                source,
                tls,
                texts,
                idle: Mutex::default(),
                room: Semaphore::new(CONNECTIONS_MAX),
            }))
        }
    })
}
