//! A host with a neighbour that asks all the time, watched from its beginning to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use serde_json::json;
use souk_hostile::watch::{MIB, Usage, Watched};
use souk_tests::{Client, Company, PgCluster};

use crate::log;

/// Between two requests of the neighbour: enough of them, and the machine is left to the others.
const PAUSE: Duration = Duration::from_millis(40);
/// What an allocator and caches may keep of a few hundred hostile requests. A leak of one request's memory is more: the guests may have
/// 64 MiB each, and there are several requests of each.
const GROWTH_MAX: u64 = 384 * MIB;
/// Descriptors that are the neighbour's and the testers' own idle connections.
const DESCRIPTORS_MORE_MAX: usize = 40;
/// Sessions of the neighbour, on each worker, that were not open at the beginning.
const SESSIONS_MORE_MAX: u64 = 4;
/// Runs end by their deadlines, connections by the servers' being gone.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

pub struct Trial {
    // Goes first.
    neighbour: Neighbour,
    pub watched: Watched,
    before: Usage,
}

struct Neighbour {
    stop: Arc<AtomicBool>,
    served: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<Result<(), String>>,
}

impl Trial {
    pub async fn start() -> Trial {
        let watched = Watched::start(None).await;
        let company = watched.host.company("neighbour").await;
        let keys = company.client.get(&company.path("/api-keys")).await;
        let key = keys.expect(200).text("/data/0/id");
        souk_load::market::unlimit(&company, &key).await;
        let cluster = PgCluster::shared().await;
        let database = cluster
            .database("CREATE TABLE goals AS SELECT 1::bigint AS id, 42::bigint AS goals")
            .await;
        let connection = company.postgres(cluster, &database).await;
        let asset = json!({"sql_logic": "SELECT goals FROM goals WHERE id = :id",
                           "parameters": [{"name": "id", "type": "integer", "default": 1}]});
        let asset = company.asset(&connection, asset).await;
        for _ in 0..8 {
            company.execute(&asset, json!({})).await.expect(200);
        }
        let before = watched.usage().await;
        let neighbour = Neighbour::start(company, asset, watched.host.anonymous());
        Trial {
            watched,
            before,
            neighbour,
        }
    }

    /// A company that may ask as often as it wants.
    pub async fn company_without_limit(&self, name: &str) -> Company {
        let company = self.watched.host.company(name).await;
        let keys = company.client.get(&company.path("/api-keys")).await;
        let key = keys.expect(200).text("/data/0/id");
        souk_load::market::unlimit(&company, &key).await;
        company
    }

    /// A connector for every company.
    pub async fn platform_connector(&self, wasm: &[u8]) {
        let platform = self.watched.host.platform();
        let uploaded = platform.post_wasm("/connectors?activate=true", wasm.to_vec());
        uploaded.await.expect(201);
    }

    /// The neighbour was served all the time, the host is as it was, and its log says no more than it should.
    pub async fn end(mut self) {
        let neighbour = &mut self.neighbour;
        let served = neighbour.served.clone();
        neighbour.stop.store(true, SeqCst);
        if let Err(failure) = (&mut neighbour.task).await.expect("the neighbour ends") {
            panic!("the neighbour was not served: {failure}");
        }
        assert!(served.load(SeqCst) > 0, "the neighbour never asked");
        let before = self.before;
        let settled = |usage: &Usage| {
            usage.in_flight == 0
                && usage.sessions.saturating_sub(usage.idle) <= before.sessions + SESSIONS_MORE_MAX
                && usage.descriptors <= before.descriptors + DESCRIPTORS_MORE_MAX
                && usage.resident_bytes <= before.resident_bytes + GROWTH_MAX
        };
        let after = self.watched.until(SETTLES_WITHIN, settled).await;
        println!(
            "served {} requests of the neighbour; memory {} to {} MiB, descriptors {} to {}, sessions {} to {}",
            served.load(SeqCst),
            before.resident_bytes / MIB,
            after.resident_bytes / MIB,
            before.descriptors,
            after.descriptors,
            before.sessions,
            after.sessions
        );
        assert!(settled(&after), "before {before:?}, after {after:?}");
        let wrong = log::wrong(&self.watched.host.log());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Of a test that has failed: it must not ask a host that is gone.
impl Drop for Neighbour {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Neighbour {
    fn start(company: Company, asset: String, anonymous: Client) -> Neighbour {
        let (stop, served) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopped, counted) = (stop.clone(), served.clone());
        let task = tokio::spawn(async move {
            while !stopped.load(SeqCst) {
                let answer = company.execute(&asset, json!({})).await;
                if answer.status.as_u16() != 200 || answer.at("/data/answer_value") != 42 {
                    return Err(answer.body.to_string());
                }
                let health = anonymous.get("/healthz").await;
                if health.status.as_u16() != 200 {
                    return Err(format!("/healthz says {}", health.status));
                }
                counted.fetch_add(1, SeqCst);
                tokio::time::sleep(PAUSE).await;
            }
            Ok(())
        });
        Neighbour { stop, served, task }
    }
}
