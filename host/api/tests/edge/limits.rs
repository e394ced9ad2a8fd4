//! Rate limits as clients see them.

use crate::world::{Answer, Company, World, request};
use axum::body::Body;
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::Method;
use serde_json::json;
use souk_api::{Access, Deleted, NobodysRead, Operation, Problem, Routes};
use souk_domain::keys::{KeySecret, KeyType};
use souk_domain::roles::{Permission, Role};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tower::ServiceExt;

/// Long enough for a reader that is free.
const SHORT: Duration = Duration::from_millis(300);

async fn key_with(world: &World, company: &Company, rate_limit: i64) -> String {
    let body = json!({"name": "limited", "role_id": 2, "rate_limit": rate_limit});
    world
        .post(&company.key, &company.path("/api-keys"), body)
        .await
        .expect(201)
        .text("/data/key")
}

/// The operation's limit counts down and ends in 429; other operations go on.
#[tokio::test]
async fn the_operations_limit_ends_in_429() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    for left in (0..10).rev() {
        let answer = world
            .post(
                &acme.key,
                &acme.path("/api-keys"),
                json!({"name": "one of ten"}),
            )
            .await
            .expect(201);
        assert_eq!(
            (
                answer.header("x-ratelimit-limit"),
                answer.header("x-ratelimit-remaining")
            ),
            ("10", left.to_string().as_str())
        );
        assert_eq!(
            answer.header("ratelimit-policy"),
            "\"create_key\";q=10;w=3600"
        );
    }
    let refused = world
        .post(
            &acme.key,
            &acme.path("/api_keys"),
            json!({"name": "the other spelling"}),
        )
        .await;
    let refused = refused.expect_error(429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(
        (
            refused.text("/error/details/scope"),
            refused.text("/error/details/operation")
        ),
        ("operation".into(), "create_key".into())
    );
    assert_eq!(refused.at("/error/details/remaining"), 0);
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((3590..=3600).contains(&wait), "{wait}");
    world
        .get(&acme.key, &acme.path("/api-keys"))
        .await
        .expect(200);
}

/// The key's limit binds when it is tighter, over all operations together.
#[tokio::test]
async fn the_keys_limit_is_over_all_operations() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let key = key_with(&world, &acme, 2).await;
    let answer = world.get(&key, &acme.path("/api-keys")).await.expect(200);
    assert_eq!(
        (
            answer.header("x-ratelimit-limit"),
            answer.header("x-ratelimit-remaining")
        ),
        ("2", "1")
    );
    world.get(&key, &acme.path("/credits")).await.expect(200);
    let refused = world
        .get(&key, &acme.path("/credits"))
        .await
        .expect_error(429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(refused.text("/error/details/scope"), "key");
}

/// 403 spends nothing; 400 and 404 behind the gate do.
#[tokio::test]
async fn only_what_passes_the_gate_is_spent() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let key = key_with(&world, &acme, 3).await;
    for _ in 0..5 {
        let refused = world
            .get(&key, "/companies/cmp_other/credits")
            .await
            .expect_error(403, "COMPANY_ACCESS_DENIED");
        assert_eq!(refused.header("x-ratelimit-remaining"), "3");
    }
    assert_eq!(
        world
            .get(&key, &acme.path("/credits?x=1"))
            .await
            .expect(400)
            .header("x-ratelimit-remaining"),
        "2"
    );
    assert_eq!(
        world
            .get(&key, &acme.path("/api-keys/key_unknown"))
            .await
            .expect(404)
            .header("x-ratelimit-remaining"),
        "1"
    );
}

/// A changed or revoked key does not get a new window.
#[tokio::test]
async fn a_window_survives_a_change_of_its_key() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let made = world
        .post(
            &acme.key,
            &acme.path("/api-keys"),
            json!({"name": "x", "rate_limit": 5}),
        )
        .await
        .expect(201);
    let (id, key) = (made.text("/data/id"), made.text("/data/key"));
    world.get(&key, &acme.path("/credits")).await.expect(200);
    world
        .patch(
            &acme.key,
            &acme.path(&format!("/api-keys/{id}")),
            json!({"rate_limit": 9}),
        )
        .await
        .expect(200);
    let answer = world.get(&key, &acme.path("/credits")).await.expect(200);
    assert_eq!(
        (
            answer.header("x-ratelimit-limit"),
            answer.header("x-ratelimit-remaining")
        ),
        ("9", "7")
    );
}

/// Requests that no key answers for count against their address.
#[tokio::test]
async fn strangers_are_limited_by_address() {
    let world = World::with_address_limit(3).await;
    world
        .get("", "/companies/cmp_x/credits")
        .await
        .expect_error(401, "MISSING_API_KEY");
    world
        .get("nonsense", "/companies/cmp_x/credits")
        .await
        .expect_error(401, "INVALID_API_KEY");
    world
        .get("", "/no/such/route")
        .await
        .expect_error(404, "ROUTE_NOT_FOUND");
    let refused = world
        .get("", "/companies/cmp_x/credits")
        .await
        .expect_error(429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(refused.text("/error/details/scope"), "ip");
    world.get("", "/healthz").await.expect(200);
    world
        .get(&world.platform, "/companies/me")
        .await
        .expect(200);
}

/// What needs no key counts against its address too, but for what balancers ask.
#[tokio::test]
async fn public_operations_are_limited_by_address() {
    let world = World::with_address_limit(2).await;
    world.get("", "/openapi.json").await.expect(200);
    let answer = world.get("", "/openapi.json").await.expect(200);
    assert_eq!(answer.header("x-ratelimit-remaining"), "0");
    world
        .get("", "/openapi.json")
        .await
        .expect_error(429, "RATE_LIMIT_EXCEEDED");
    for _ in 0..3 {
        world.get("", "/healthz").await.expect(200);
        world.get("", "/readyz").await.expect(200);
    }
}

/// A made-up key is paid for before the store is asked: an address that has spent its hour has a few a second looked up and no more,
/// however many it sends. Here nobody can ask the store at all.
#[tokio::test]
async fn made_up_keys_of_a_spent_address_are_refused_without_the_store() {
    const SENT: usize = 300;
    let world = World::with_address_limit(1).await;
    let acme = world.company("acme").await;
    world
        .get("", "/companies/me")
        .await
        .expect_error(401, "MISSING_API_KEY");
    let mut readers = Vec::new();
    while let Ok(reader) = tokio::time::timeout(SHORT, world.db.read()).await {
        readers.push(reader.unwrap());
    }
    let mut answers: FuturesUnordered<_> = (0..SENT)
        .map(|_| async {
            let key = KeySecret::generate(KeyType::Analytics);
            world.get(key.expose(), "/companies/me").await
        })
        .collect();
    // Most are answered while no reader of the store is free, whichever seconds they fall into.
    for _ in 0..SENT / 2 {
        let answer = answers.next().await.unwrap();
        let refused = answer.expect_error(429, "RATE_LIMIT_EXCEEDED");
        assert_eq!(refused.text("/error/details/scope"), "ip");
    }
    drop(answers);
    drop(readers);
    // A key that exists is one of the few, and costs its address nothing.
    let answered = async {
        while world.get(&acme.key, "/companies/me").await.status != 200 {
            tokio::time::sleep(SHORT).await;
        }
    };
    answered.await;
}

/// A call that found no room in flight spends nothing.
#[tokio::test]
async fn a_busy_answer_spends_nothing() {
    async fn busy() -> Result<Deleted, Problem> {
        Err(Problem::busy(2))
    }
    let world = World::new().await;
    let operation = Operation::get("busy", "/busy")
        .access(Access::Data)
        .runs_connector();
    let router = Routes::new()
        .add(operation, busy)
        .into_router(world.state.clone());
    for _ in 0..3 {
        let response = router
            .clone()
            .oneshot(
                request(Method::GET, &world.platform, "/busy")
                    .body(Body::empty())
                    .unwrap(),
            )
            .await
            .unwrap();
        let answer = Answer::of(response)
            .await
            .expect_error(429, "CONCURRENCY_LIMIT_EXCEEDED");
        assert_eq!(
            (
                answer.header("retry-after"),
                answer.header("x-ratelimit-remaining")
            ),
            ("2", answer.header("x-ratelimit-limit"))
        );
    }
}

/// Reads of the store of one company take turns while calls of another one are in flight; what changes something, or runs a connector, does not.
#[tokio::test]
async fn reads_take_turns_while_another_company_is_served() {
    /// For one more to come in. Far shorter than anybody waits for a turn.
    const READING: Duration = Duration::from_millis(10);
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static EXPECTED: AtomicUsize = AtomicUsize::new(0);
    /// Stays until as many as expected are in, however long the store takes to let them in, and then for as long as one more would need.
    async fn short() -> Result<Deleted, Problem> {
        MOST.fetch_max(NOW.fetch_add(1, Relaxed) + 1, Relaxed);
        while MOST.load(Relaxed) < EXPECTED.load(Relaxed) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(READING).await;
        NOW.fetch_sub(1, Relaxed);
        Ok(Deleted)
    }
    static LONG: AtomicUsize = AtomicUsize::new(0);
    async fn long() -> Result<Deleted, Problem> {
        LONG.store(1, Relaxed);
        std::future::pending().await
    }
    async fn long_is_in() {
        while LONG.load(Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let of = |operation: Operation| operation.access(Access::Data);
    let router = Routes::new()
        .add(of(Operation::get("read", "/read")), short)
        .add(of(Operation::post("write", "/write")), short)
        .add(of(Operation::get("call", "/call")).runs_connector(), short)
        .add(of(Operation::get("long", "/long")).runs_connector(), long)
        .into_router(world.state.clone());
    let ask = |method: Method, key: &str, path: &str| {
        let request = request(method, key, path).body(Body::empty()).unwrap();
        router.clone().oneshot(request)
    };
    let at_once = async |expected: usize, method: Method, path: &str| {
        MOST.store(0, Relaxed);
        EXPECTED.store(expected, Relaxed);
        let asked = (0..4).map(|_| ask(method.clone(), &acme.key, path));
        let answers = futures_util::future::join_all(asked);
        let answers = tokio::time::timeout(Duration::from_secs(60), answers).await;
        for answer in answers.expect("as many as expected come in") {
            assert!(answer.unwrap().status().is_success());
        }
        assert_eq!(MOST.load(Relaxed), expected, "{method} {path}");
    };
    at_once(4, Method::GET, "/read").await;
    let mut served = Box::pin(ask(Method::GET, &other.key, "/long"));
    tokio::select! {
        _ = &mut served => unreachable!("it does not end"),
        () = long_is_in() => (),
    }
    at_once(2, Method::GET, "/read").await;
    at_once(4, Method::POST, "/write").await;
    at_once(4, Method::GET, "/call").await;
    drop(served);
    at_once(4, Method::GET, "/read").await;
}

/// Of a company four reads of the host's own records are in their handlers at a time, some of which take a body; of all who have no key, two together.
#[tokio::test]
async fn reads_of_the_store_are_bounded_with_and_without_a_key() {
    /// For one more to come in. Far shorter than anybody waits for a place.
    const READING: Duration = Duration::from_millis(20);
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static EXPECTED: AtomicUsize = AtomicUsize::new(0);
    async fn read() -> Result<Deleted, Problem> {
        MOST.fetch_max(NOW.fetch_add(1, Relaxed) + 1, Relaxed);
        while MOST.load(Relaxed) < EXPECTED.load(Relaxed) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(READING).await;
        NOW.fetch_sub(1, Relaxed);
        Ok(Deleted)
    }
    async fn nobodys(_place: NobodysRead) -> Result<Deleted, Problem> {
        read().await
    }
    let world = World::new().await;
    let acme = world.company("acme").await;
    let open = |id, path| Operation::get(id, path).access(Access::Public);
    let router = Routes::new()
        .add(Operation::get("read", "/read"), read)
        .add(
            Operation::post("ask", "/ask").needs(Role::Analyst, Permission::Read),
            read,
        )
        .add(Operation::post("write", "/write"), read)
        .add(open("fixed", "/fixed"), read)
        .add(open("open", "/open"), nobodys)
        .into_router(world.state.clone());
    let at_once = async |expected: usize, method: Method, key: &str, path: &str| {
        MOST.store(0, Relaxed);
        EXPECTED.store(expected, Relaxed);
        let asked = (0..6).map(|_| {
            let request = request(method.clone(), key, path);
            router.clone().oneshot(request.body(Body::empty()).unwrap())
        });
        let answers = futures_util::future::join_all(asked);
        let answers = tokio::time::timeout(Duration::from_secs(60), answers).await;
        for answer in answers.expect("as many as expected come in") {
            assert!(answer.unwrap().status().is_success());
        }
        assert_eq!(MOST.load(Relaxed), expected, "{method} {path}");
    };
    at_once(4, Method::GET, &acme.key, "/read").await;
    at_once(4, Method::POST, &acme.key, "/ask").await;
    at_once(6, Method::POST, &acme.key, "/write").await;
    at_once(2, Method::GET, "", "/open").await;
    at_once(2, Method::HEAD, "", "/open").await;
    at_once(6, Method::GET, "", "/fixed").await;
}

/// All that needs no key and reads the store takes a place for that, and says that there may be none.
#[test]
fn what_reads_without_a_key_takes_a_place() {
    let routes = souk_api::all();
    let of = |takes_place: bool| {
        let described = routes.described().filter(move |(operation, description)| {
            let refusals = description.refusals.iter();
            let mut codes = refusals.map(|refusal| refusal.code);
            let is_public = operation.access == Access::Public;
            is_public && codes.any(|code| code == "CONCURRENCY_LIMIT_EXCEEDED") == takes_place
        });
        let mut ids: Vec<_> = described.map(|(operation, _)| operation.id).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(
        of(true),
        [
            "get_published_post",
            "list_published_posts",
            "view_company_post",
            "view_post"
        ]
    );
    // These read nothing, or in the transaction in which they write.
    assert_eq!(
        of(false),
        [
            "accept_invitation",
            "docs",
            "docs_file",
            "healthz",
            "invitation_page",
            "openapi",
            "openapi_3_0",
            "payment_returned",
            "readyz",
            "receive_payment_event",
            "root",
            "sign_in",
            "sign_in_to_company"
        ]
    );
}

/// What the specification allows in an hour is what each operation on keys allows, by whichever of its two names it is called.
#[tokio::test]
async fn operations_on_keys_have_their_hours() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    // Of its own it has more than any of them.
    let body = json!({"name": "unlimited", "role_id": 4, "rate_limit": 5_000});
    let made = world.post(&acme.key, &acme.path("/api-keys"), body).await;
    let key = made.expect(201).text("/data/key");
    let routes = souk_api::all();
    for (id, limit) in [
        ("list_keys", 100),
        ("create_key", 10),
        ("get_key", 1000),
        ("update_key", 50),
        ("delete_key", 10),
        ("key_stats", 100),
    ] {
        let operation = routes.operations().find(|operation| operation.id == id);
        let operation = operation.unwrap_or_else(|| panic!("no {id}"));
        assert_eq!(operation.hourly, Some(limit), "{id}");
        let paths: Vec<_> = operation.paths().map(|(path, _)| path).collect();
        let spelt = |path: &&str| path.contains("/api-keys") || path.contains("/api_keys");
        assert_eq!(paths.iter().filter(|path| spelt(path)).count(), 2, "{id}");
        for (path, left) in paths.into_iter().zip((0..limit).rev()) {
            let path = path.replace("{company_id}", &acme.id);
            let path = path.replace("{api_key_id}", "key_unknown");
            let method = operation.verb.name().parse().unwrap();
            let sent = request(method, &key, &path).header("content-type", "application/json");
            let answer = world.send(sent.body(Body::from("{}")).unwrap()).await;
            assert_eq!(
                (
                    answer.header("ratelimit-policy"),
                    answer.header("x-ratelimit-remaining")
                ),
                (
                    format!("\"{id}\";q={limit};w=3600").as_str(),
                    left.to_string().as_str()
                ),
                "{path}: {}",
                answer.body
            );
            answer.check_headers();
        }
    }
}

/// While a company has very many calls in flight, each of its keys has half an hour's requests that run a connector, and all of the others;
/// another company's keys have all of theirs.
#[tokio::test]
async fn an_hour_has_less_under_load() {
    static ENTERED: AtomicUsize = AtomicUsize::new(0);
    async fn waits() -> Result<Deleted, Problem> {
        ENTERED.fetch_add(1, Relaxed);
        std::future::pending().await
    }
    async fn quick() -> Result<Deleted, Problem> {
        Ok(Deleted)
    }
    let world = World::new().await;
    let run = |id, path| {
        let operation = Operation::get(id, path).access(Access::Data);
        operation.runs_connector()
    };
    let idle = Operation::get("idle", "/idle").access(Access::Data);
    let router = Routes::new()
        .add(run("waits", "/waits"), waits)
        .add(run("quick", "/quick"), quick)
        .add(idle, quick)
        .into_router(world.state.clone());
    let answer_of = async |key: &str, path: &str| {
        let request = request(Method::GET, key, path).body(Body::empty()).unwrap();
        Answer::of(router.clone().oneshot(request).await.unwrap()).await
    };
    let ask = async |key: &str, path: &str| {
        let answer = answer_of(key, path).await;
        answer.header("x-ratelimit-limit").to_owned()
    };
    let (acme, busy) = (world.company("acme").await, world.company("busy").await);
    let others = key_with(&world, &acme, 100).await;
    let own = key_with(&world, &busy, 100).await;
    let few = key_with(&world, &busy, 4).await;
    for _ in 0..2 {
        assert_eq!(ask(&few, "/quick").await, "4");
    }
    assert_eq!(ask(&own, "/quick").await, "100");
    let mut running = tokio::task::JoinSet::new();
    // Half of what a company may have.
    for _ in 0..2 {
        let key = key_with(&world, &busy, 1_000).await;
        for _ in 0..128 {
            let request = request(Method::GET, &key, "/waits").body(Body::empty());
            running.spawn(router.clone().oneshot(request.unwrap()));
        }
    }
    while ENTERED.load(Relaxed) < 256 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(ask(&own, "/quick").await, "50");
    assert_eq!(ask(&own, "/idle").await, "100");
    assert_eq!(ask(&others, "/quick").await, "100");
    // Whose half is spent is not told to come back in an hour.
    let refused = answer_of(&few, "/quick").await;
    let refused = refused.expect_error(429, "CONCURRENCY_LIMIT_EXCEEDED");
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.header("x-ratelimit-remaining"), "2");
    running.shutdown().await;
    assert_eq!(ask(&own, "/quick").await, "100");
    for _ in 0..2 {
        assert_eq!(ask(&few, "/quick").await, "4");
    }
    let refused = answer_of(&few, "/quick").await;
    refused.expect_error(429, "RATE_LIMIT_EXCEEDED");
}
