//! The sources in use: each kept until what it was made of changes.

use souk_domain::ids::ConnectionId;
use souk_sandbox::{Grant, Source};
use souk_store::{Cache, Db, Topic};

use crate::connectors::{SERVING, serving_ids};

/// Connections in use at once, of all sellers; a source is about 2 kB.
const SOURCES_MAX: usize = 10_000;
/// All together that are more: with an authority of their own, or long credentials, up to some 160 kB. One company's have an eighth of it.
const LARGE_BYTES_MAX: usize = 64 << 20;

/// The sources in use, dropped when their connection, its file or a connector that their company may use changes.
pub type Sources = Cache<ConnectionId, Source>;

pub fn new(db: &Db) -> Sources {
    // Which settings a connector asks for is in its schema.
    let [own, platforms] = SERVING;
    Cache::weighed(
        db,
        (SOURCES_MAX, LARGE_BYTES_MAX),
        [Topic::Connection, own, platforms],
        |id: &ConnectionId, source: &Source| {
            let [own, platforms] = serving_ids(&source.company.as_str().into());
            [id.as_str().into(), own, platforms]
        },
        |source: &Source| (source.company.as_str(), bytes(source)),
    )
}

/// What a source's texts take.
fn bytes(source: &Source) -> usize {
    let pem = |pem: &Option<String>| pem.as_ref().map_or(0, String::len);
    let granted = match &source.grant {
        Grant::Tcp { host, ca_pem, .. } => host.len() + pem(ca_pem),
        Grant::Http {
            base_url,
            attach,
            ca_pem,
        } => {
            let headers = attach.iter().map(|(name, value)| name.len() + value.len());
            base_url.len() + headers.sum::<usize>() + pem(ca_pem)
        }
        Grant::Directory(_) | Grant::Lent(_) => 0,
    };
    source.settings_json.len() + granted
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use souk_domain::ids::CompanyId;
    use souk_outbound::TlsMode;
    use souk_sandbox::PoolLimits;
    use souk_store::OpenOptions;

    use super::*;

    /// A company's source whose authorities are so many bytes of PEM.
    fn source(company: &CompanyId, pem_bytes: usize) -> Source {
        Source {
            company: company.to_string(),
            connection: String::new(),
            revision: 1,
            engine: "postgres".to_owned(),
            settings_json: "{}".to_owned(),
            grant: Grant::Tcp {
                host: "db.example".to_owned(),
                port: 5432,
                tls: TlsMode::VerifyFull,
                ca_pem: Some("x".repeat(pem_bytes)),
            },
            limits: PoolLimits::default(),
        }
    }

    /// However many sources are large, they take so many bytes together, one company's an eighth of them, and others' stay beside them.
    #[tokio::test]
    async fn large_sources_are_bounded_by_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("souk.db").display());
        let db = Db::open(&OpenOptions::new(url)).await.unwrap();
        let sources = new(&db);
        let keep = |company: &CompanyId, pem_bytes: usize, number: usize| -> Vec<ConnectionId> {
            let source = Arc::new(source(company, pem_bytes));
            let ids: Vec<ConnectionId> = (0..number).map(|_| ConnectionId::generate()).collect();
            for id in &ids {
                sources.keep(id.clone(), &source, sources.epoch());
            }
            ids
        };
        let kept =
            |ids: &[ConnectionId]| ids.iter().filter(|id| sources.get(*id).is_some()).count();
        let [busy, other] = [(); 2].map(|()| CompanyId::generate());
        let most = LARGE_BYTES_MAX / (60 << 10);
        let others = [keep(&other, 1 << 10, 50), keep(&other, 60 << 10, 50)].concat();
        let small = keep(&busy, 1 << 10, 50);
        let large = keep(&busy, 60 << 10, 2 * most);
        assert!((most / 16..=most / 8).contains(&kept(&large)));
        assert_eq!((kept(&others), kept(&small)), (100, 50));
    }
}
