//! Each publisher by hand against a platform that is a function: what it asks, and what it makes of the answers. Against real servers, in the
//! sandbox: `tests/api/publishing.rs`.

mod ghost;
mod slack;
mod webhook;
mod wordpress;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use souk_publishers::Publishers;
use souk_sdk::publisher::{Check, Post, Publication, Request, Visibility};
use souk_sdk::{
    Command, Error, Event, HttpRequest, HttpResponse, Input, Limits, Machine, Published,
    PublisherDriver, Settings, Step,
};

const LIMITS: Limits = Limits {
    rows_max: 1,
    bytes_max: 1 << 16,
    timeout_ms: 1_000,
};
/// 2026-11-22T10:00:00Z
const NOW: i64 = 1_795_341_600_000_000;

fn publication() -> Publication {
    Publication {
        request_id: "pub_1-1".into(),
        attempt: 1,
        remote_id: None,
        post: Post {
            id: "pst_1".into(),
            title: "Goals & <more>".into(),
            slug: "goals".into(),
            summary: "About goals & <more>".into(),
            markdown: "# Goals".into(),
            html: "<h1>Goals</h1> [gallery]".into(),
            tags: vec!["goals".into(), "known".into()],
            cover_image_url: Some("https://example.com/i.png".into()),
            visibility: Visibility::Published,
            published_at: Some(NOW),
            updated_at: NOW,
        },
        now: NOW,
        limits: LIMITS,
    }
}

/// Asks the publisher, and answers its requests until it is done. The answer's row, as texts.
fn ask(
    platform: &str,
    settings: Value,
    request: Request,
    mut answer: impl FnMut(&HttpRequest) -> (u16, Value),
) -> Result<Vec<Option<String>>, Error> {
    let settings = Settings {
        engine: platform.into(),
        json: settings.to_string(),
    };
    let mut session = PublisherDriver::<Publishers>::open(settings)?;
    let mut step = Step::default();
    session.start(&mut step)?;
    assert_eq!(step.into_parts().1, [Event::Ready]);
    let mut step = Step::default();
    session.submit(1, request, &mut step)?;
    loop {
        let (commands, events) = step.into_parts();
        step = Step::default();
        match events.as_slice() {
            [] => {}
            [Event::Failed(failure)] => return Err(failure.error.clone()),
            [Event::Columns(_), Event::Batch(rows), Event::Done(1)] => {
                let cells = rows.batch.chunks.iter();
                return Ok(cells.map(text).collect());
            }
            other => panic!("{other:?}"),
        }
        let [Command::Request(request)] = commands.as_slice() else {
            panic!("{commands:?}")
        };
        let (status, body) = answer(request);
        let response = HttpResponse {
            id: request.id,
            status,
            headers: Vec::new(),
            body: match body {
                Value::String(text) => text.into_bytes(),
                body => body.to_string().into_bytes(),
            },
        };
        session.receive(Input::Response(response), &mut step)?;
    }
}

fn text(chunk: &souk_sdk::Chunk) -> Option<String> {
    let souk_sdk::ColumnData::VarLen(values) = &chunk.data else {
        panic!("{chunk:?}")
    };
    let is_null = chunk.validity.as_ref().is_some_and(|bits| bits[0] & 1 == 0);
    (!is_null).then(|| String::from_utf8(values.bytes.clone()).unwrap())
}

fn publish(
    platform: &str,
    settings: Value,
    publication: Publication,
    answer: impl FnMut(&HttpRequest) -> (u16, Value),
) -> Result<Published, Error> {
    let row = ask(platform, settings, Request::Publish(publication), answer)?;
    let [remote_id, url] = row.as_slice() else {
        panic!("{row:?}")
    };
    Ok(Published {
        remote_id: remote_id.clone(),
        url: url.clone(),
    })
}

fn check(
    platform: &str,
    settings: Value,
    answer: impl FnMut(&HttpRequest) -> (u16, Value),
) -> Result<Option<String>, Error> {
    let check = Check {
        request_id: "int_1".into(),
        now: NOW,
        limits: LIMITS,
    };
    Ok(ask(platform, settings, Request::Check(check), answer)?.remove(0))
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> &'a str {
    let found = request.headers.iter().find(|header| header.name == name);
    found.map_or("", |header| &header.value)
}

fn json_of(request: &HttpRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}

fn hmac(key: &[u8], signed: &str) -> Vec<u8> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
    mac.update(signed.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
