//! What a connector may ask of its host besides bytes and requests: the time of day, a pause, a second conversation, TLS in the source's own
//! packets. Seen from who calls.

use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use souk_tests::talking_server::{Seen, TalkingServer};
use souk_tests::tls::TestCa;
use souk_tests::{Answer, Company, guests};

use crate::{host, unique};

/// A seller whose asset does what its parameter wishes, within four seconds.
struct Talk {
    seller: Company,
    asset: String,
}

impl Talk {
    async fn to(server: &TalkingServer, ca_pem: Option<&str>) -> Talk {
        let seller = host().await.company(&unique("talker")).await;
        seller.connector(guests::TALKER).await;
        let ssl_mode = if ca_pem.is_some() {
            "verify-full"
        } else {
            "disable"
        };
        let mut fields = json!({"credential_type": "NONE", "credentials": "{}", "host": "127.0.0.1", "port": server.address.port(),
            "ssl_mode": ssl_mode});
        if let Some(pem) = ca_pem {
            fields["ca_pem"] = pem.into();
        }
        let connection = seller.connection("talker", fields).await;
        let asset = json!({"result_type": "string", "timeout_ms": 4000, "sql_logic": "SELECT answer FROM t WHERE wish = :wish",
            "parameters": [{"name": "wish", "type": "string", "default": "fine"}]});
        let asset = seller.asset(&connection, asset).await;
        Talk { seller, asset }
    }

    async fn wish(&self, wish: &str) -> Answer {
        self.seller
            .execute(&self.asset, json!({"wish": wish}))
            .await
    }

    async fn answer(&self, wish: &str) -> String {
        let answer = self.wish(wish).await.expect(200);
        answer.text("/data/answer_value")
    }
}

fn seconds() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

/// A connector knows what time it is when it is asked, to the second, and when its session was opened.
#[tokio::test]
async fn the_time_of_day_is_told() {
    // Sessions that nobody uses make room for those of other tests: then it is opened anew, and asked once more.
    const TRIES: usize = 5;
    let server = TalkingServer::start().await;
    let talk = Talk::to(&server, None).await;
    let (first, mut seen) = (seconds(), Vec::new());
    for _ in 0..TRIES {
        talk.answer("fine").await;
        tokio::time::sleep(Duration::from_millis(2_100)).await;
        let asked = seconds();
        let answer = talk.answer("now").await;
        let after = seconds();
        let told: Vec<u64> = answer
            .split(' ')
            .map(|word| word.parse().unwrap())
            .collect();
        assert!((asked..=after).contains(&told[0]), "{asked} {told:?}");
        assert!((first..=told[0]).contains(&told[1]), "{first} {told:?}");
        if told[1] < asked {
            return;
        }
        seen.push((asked, told));
    }
    panic!("no session was there for two seconds: {seen:?}");
}

/// A pause takes as long as it should, and others are served meanwhile; one that does not end is over at the deadline, and so is one after
/// another without end.
#[tokio::test]
async fn pauses_end_with_their_request() {
    let server = TalkingServer::start().await;
    let talk = Talk::to(&server, None).await;
    assert_eq!(talk.answer("fine").await, "fine");
    let begun = Instant::now();
    assert_eq!(talk.answer("naps").await, "rested");
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(900), "{took:?}");
    for wish in ["sleeps_long", "naps_for_ever"] {
        let begun = Instant::now();
        let late = talk.wish(wish);
        let other = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            talk.answer("other").await
        };
        let (late, other) = tokio::join!(late, other);
        let took = begun.elapsed();
        late.expect_error(504, "EXECUTION_TIMEOUT");
        assert_eq!(other, "other");
        assert!(took >= Duration::from_millis(3_900), "{took:?}");
        assert!(took < Duration::from_secs(20), "{took:?}");
        assert_eq!(talk.answer("fine").await, "fine", "after {wish}");
    }
}

/// A request that is given up is stopped at its source by a second session, which is gone afterwards; the first one goes on.
#[tokio::test]
async fn a_second_session_stops_the_first() {
    // What is not stopped within two seconds loses its session, and no second one is opened for it any more; where other tests keep the host busy, that
    // may be sooner.
    const TRIES: usize = 5;
    let server = TalkingServer::start().await;
    let talk = Talk::to(&server, None).await;
    for _ in 0..TRIES {
        assert_eq!(talk.answer("fine").await, "fine");
        let before = server.seen();
        let late = talk.wish("hangs").await;
        late.expect_error(504, "EXECUTION_TIMEOUT");
        let stopped = |seen: &Seen| seen.kills.len() == 1 && seen.open == before.open;
        let limit = Duration::from_secs(10);
        if server.wait_for(limit, stopped).await.is_none() {
            continue;
        }
        assert_eq!(talk.answer("again").await, "again");
        let seen = server.seen();
        let [(killed, by)] = seen.kills[..] else {
            panic!("{seen:?}");
        };
        assert_eq!(by, before.logins + 1, "a session of its own: {seen:?}");
        assert!(killed <= before.logins, "{seen:?}");
        assert_eq!(
            seen.logins,
            before.logins + 1,
            "the first one goes on: {seen:?}"
        );
        return;
    }
    panic!("nothing was stopped: {:?}", server.seen());
}

/// An errand may be sent for any request, and its session is closed when it has ended.
#[tokio::test]
async fn a_request_may_confer() {
    let server = TalkingServer::start().await;
    let talk = Talk::to(&server, None).await;
    assert_eq!(talk.answer("confers").await, "conferred");
    assert_eq!(talk.answer("confers").await, "conferred");
    server.wait(|seen| seen.logins - seen.open == 2).await;
}

/// TLS whose handshake is in packets of TDS stands, is checked as any other, and carries an errand as well.
#[tokio::test]
async fn tls_shakes_hands_in_packets() {
    let ca = TestCa::new("a source's authority");
    let server = TalkingServer::start_tds(&ca.server(&["127.0.0.1"])).await;
    let talk = Talk::to(&server, Some(&ca.pem())).await;
    assert_eq!(talk.answer("fine").await, "fine");
    assert_eq!(talk.answer("confers").await, "conferred");
    let seen = server.seen();
    assert_eq!(seen.protected, seen.logins, "{seen:?}");

    let stranger = TestCa::new("somebody else").pem();
    let talk = Talk::to(&server, Some(&stranger)).await;
    let refused = talk.wish("fine").await;
    let refused = refused.expect_error(502, "SOURCE_ERROR");
    assert_eq!(
        refused.at("/error/details/reason"),
        "tls",
        "{}",
        refused.body
    );
}
