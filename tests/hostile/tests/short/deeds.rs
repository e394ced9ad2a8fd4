//! Runs scenarios and looks at the answers.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::{Value, json};
use souk_hostile::scenarios::{Ask, Scenario};
use souk_hostile::stage::{Stage, is_held_off, is_right, unique};
use souk_hostile::watch::Watched;
use souk_tests::{Answer, Company};

use crate::trial::Trial;

/// Scenarios at once: the machine of a CI run has two cores.
const AT_ONCE: usize = 4;
/// The first answer shows the behaviour, the others what is left of it.
const TIMES: usize = 3;
/// How much later than its deadline and a second an answer may be on a loaded machine.
const LATE_FACTOR: u32 = 5;
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
    for time in 0..TIMES {
        let began = Instant::now();
        let answer = stage.ask_as(&asks).await;
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

/// Sessions of a component with many core instances, by a company that has just uploaded it: it may fail, and nobody else does.
pub async fn crowd(company: &Company) {
    let fields = json!({"credential_type": "NONE", "credentials": "{}", "base_url": "http://127.0.0.1:1/honest", "name": unique("crowd")});
    let connection = company.connection("hostile-http", fields).await;
    let asset = json!({"sql_logic": "SELECT id FROM t", "slug": unique("crowd")});
    let asset = company.asset(&connection, asset).await;
    let all = (0..64).map(|_| company.execute(&asset, json!({})));
    for answer in futures_util::future::join_all(all).await {
        let blame = answer.at("/error/details/blame");
        assert!(
            answer.status.is_success() || *blame == "connector" || is_held_off(&answer),
            "{answer:?}"
        );
    }
}
