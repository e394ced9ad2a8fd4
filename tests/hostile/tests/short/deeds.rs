//! Runs scenarios and looks at the answers.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::{Value, json};
use souk_hostile::scenarios::{self, Ask, Scenario, Source, Work};
use souk_hostile::servers::{HttpLie, Lie};
use souk_hostile::stage::{Stage, is_held_off, is_right, unique};
use souk_hostile::watch::{MIB, Watched};
use souk_tests::world::engine_id;
use souk_tests::{Answer, Client, Company};

use crate::trial::Trial;

/// Scenarios at once: the machine of a CI run has two cores.
const AT_ONCE: usize = 4;
/// The first answer shows the behaviour, the others what is left of it.
const TIMES: usize = 3;
/// How much later than its deadline and a second an answer may be on a loaded machine.
const LATE_FACTOR: u32 = 5;
/// How often a call that was out of time is asked again.
const STARVED_MAX: usize = 3;
/// What a session on a directory may have, and what the host keeps of an upload and of an answer.
const SESSION_MEMORY_MAX: u64 = (512 + 256) * MIB;
const PRICE: u64 = 1;
const CREDITS: i64 = 100;

/// Runs all of them, and says what was wrong with each that was not right.
pub async fn all_in_turn(trial: &Trial, scenarios: Vec<Scenario>) {
    let all = scenarios.into_iter().map(|scenario| async {
        let name = scenario.name.clone();
        let began = Instant::now();
        let wrong = one(&trial.watched, scenario).await.err();
        println!("{:>7} ms  {name}", began.elapsed().as_millis());
        wrong.map(|wrong| format!("{name}: {wrong}"))
    });
    let wrong: Vec<Option<String>> = futures_util::stream::iter(all)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs them one after the other, and says the same; and that none took more of the machine than a session may.
pub async fn one_by_one(trial: &Trial, scenarios: Vec<Scenario>) {
    let mut wrong = Vec::new();
    for scenario in scenarios {
        let name = scenario.name.clone();
        let began = Instant::now();
        let watched = &trial.watched;
        let before = watched.usage().await.resident_bytes;
        let (most, result) = watched.most_resident(one(watched, scenario)).await;
        let grown = most.saturating_sub(before);
        println!(
            "{:>7} ms, {:>4} MiB  {name}",
            began.elapsed().as_millis(),
            grown / MIB
        );
        if grown > SESSION_MEMORY_MAX {
            wrong.push(format!("{name}: the host grew by {} MiB", grown / MIB));
        }
        wrong.extend(result.err().map(|wrong| format!("{name}: {wrong}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn one(watched: &Watched, scenario: Scenario) -> Result<(), String> {
    let company = watched.host.company(&unique("hostile")).await;
    let stage = Stage::set(&watched.host, company, scenario).await;
    // Who pays notices what is charged.
    let asks = match stage.publish(PRICE).await {
        true => watched.host.buyer(&unique("buyer"), CREDITS as u64).await,
        false => stage.company.clone(),
    };
    let is_buyer = asks.id != stage.company.id;
    let mut charged = 0;
    let times = match stage.scenario.source {
        // Each compiles a large component, for seconds.
        Source::Work(Work::Uploads) => 1,
        _ => TIMES,
    };
    for time in 0..times {
        let mut began = Instant::now();
        let mut answer = stage.ask_as(&asks).await;
        for _ in 0..STARVED_MAX {
            if is_right(&answer, stage.scenario.right) || !is_starved(&answer) {
                break;
            }
            began = Instant::now();
            answer = stage.ask_as(&asks).await;
        }
        let within =
            Duration::from_millis(u64::from(stage.scenario.timeout_ms) + 1_000) * LATE_FACTOR;
        if began.elapsed() > within {
            return Err(format!("answered after {:?}", began.elapsed()));
        }
        charged += answer.at("/meta/credits_used").as_i64().unwrap_or_default();
        look_at(&stage, &answer, time)?;
    }
    if is_buyer {
        let credits = asks.credits().await;
        if credits != (CREDITS - charged, 0) {
            return Err(format!(
                "{charged} credits were used, {credits:?} are left and held"
            ));
        }
    }
    stage.strike().await;
    Ok(())
}

/// On a loaded machine a call may be out of its time without having used it: that is asked again.
fn is_starved(answer: &Answer) -> bool {
    let message = answer.at("/error/message").as_str().unwrap_or_default();
    message.contains("computed for longer than one call may take")
}

fn look_at(stage: &Stage, answer: &Answer, time: usize) -> Result<(), String> {
    let scenario = &stage.scenario;
    let is_held_off = time > 0 && is_held_off(answer);
    if !is_right(answer, scenario.right) && !is_held_off {
        let mut body = answer.body.to_string();
        body.truncate(body.floor_char_boundary(600));
        return Err(format!("answer {} is {}: {body}", time + 1, answer.status));
    }
    let is_run = matches!(scenario.ask, Ask::Asset | Ask::Page);
    if is_run
        && !answer.status.is_success()
        && !is_held_off
        && answer.at("/error/details/charged") != &Value::Bool(false)
    {
        return Err(format!("nothing says that it is free: {}", answer.body));
    }
    Ok(())
}

/// As many sessions as a company gets of a component with many core instances: they never answer, and nobody else is refused or blamed.
pub async fn crowd(watched: &Watched, company: &Company) {
    // Each session has 15 core instances, and an engine has so many for all companies together.
    const CONNECTIONS: usize = 50;
    const SESSIONS: usize = 8;
    // Until the bystander has been answered, and no longer.
    const TIMEOUT_MS: u32 = 15_000;
    const OPENS_WITHIN: Duration = Duration::from_secs(8);
    let engine_id = engine_id(&company.client, "hostile-http").await;
    let mut assets = Vec::new();
    for _ in 0..CONNECTIONS {
        let fields = json!({"credential_type": "NONE", "credentials": "{}", "name": unique("crowd"), "engine_id": engine_id,
                            "base_url": "http://127.0.0.1:1/waits_for_ever"});
        let saved = company
            .client
            .post(&company.path("/connections"), fields)
            .await;
        // A host may count connections: then there are so many.
        if !saved.status.is_success() {
            assert!(saved.status.is_client_error(), "{saved:?}");
            break;
        }
        let asset = json!({"sql_logic": "SELECT id FROM t", "slug": unique("crowd"), "timeout_ms": TIMEOUT_MS});
        let connection = saved.text("/data/connection_id");
        assets.push(company.asset(&connection, asset).await);
    }
    let other = watched.host.company(&unique("bystander")).await;
    let bystander = scenarios::all()
        .into_iter()
        .find(|scenario| scenario.source == Source::SellerApi(Lie::Http(HttpLie::Honest)));
    let stage = Stage::set(&watched.host, other, bystander.expect("an honest source")).await;
    let keys = keys(company).await;
    let asked = assets.into_iter().enumerate().flat_map(|(number, asset)| {
        let asks = Company {
            client: keys[number % keys.len()].clone(),
            ..company.clone()
        };
        let ask = move |_| {
            let (company, asset) = (asks.clone(), asset.clone());
            tokio::spawn(async move { company.execute(&asset, json!({})).await })
        };
        (0..SESSIONS).map(ask)
    });
    let asked: Vec<_> = asked.collect();
    // A host may stop a company earlier.
    let all = (CONNECTIONS * SESSIONS * 9 / 10) as u64;
    let crowded = watched
        .until(OPENS_WITHIN, |usage| usage.sessions >= all)
        .await;
    println!("{} sessions are open in the crowd", crowded.sessions);
    let answer = stage.ask().await;
    assert!(is_right(&answer, stage.scenario.right), "{answer:?}");
    let mut refused = 0;
    for asked in asked {
        // Who waits still hangs up.
        if !asked.is_finished() {
            asked.abort();
            continue;
        }
        let answer = asked.await.expect("no panic");
        let blame = answer.at("/error/details/blame");
        refused += usize::from(*blame == "connector");
        assert!(
            answer.status.as_u16() == 504 || *blame == "connector" || is_held_off(&answer),
            "{answer:?}"
        );
    }
    println!("{refused} of its requests were refused a session");
    stage.strike().await;
}

/// A key alone has no more than 128 requests in flight: a company takes another one.
async fn keys(company: &Company) -> Vec<Client> {
    const KEYS: usize = 4;
    let mut clients = Vec::new();
    for _ in 0..KEYS {
        let key = json!({"name": unique("key"), "role": 3, "user_id": company.user_id});
        let made = company.client.post(&company.path("/api-keys"), key).await;
        let made = made.expect(201);
        clients.push(company.client.with_key(&made.text("/data/key")));
    }
    clients
}
