//! Whether the books of a store agree with what the clients of its dead hosts noted.

use super::*;

/// Whether the books agree with what the clients know of the hosts that died.
pub(super) async fn verify(db: &Db, teller: &Teller, setting: &Setting, notes: &Notes) {
    let mut read = db.read().await.unwrap();
    let rows = sqlx::query(
        "SELECT type, execution_id, external_id, description, amount_credits FROM transactions",
    )
    .fetch_all(&mut *read)
    .await
    .unwrap();
    drop(read);
    let mut posted = [0_i64; BUYERS];
    let mut seen: HashMap<(String, String), i64> = HashMap::new();
    for row in &rows {
        let kind = row.text("type").unwrap();
        let name = match kind.as_str() {
            "charge" | "refund" => row.text("execution_id").unwrap(),
            "grant" => row.text("description").unwrap(),
            "maturity" => continue,
            _ => row.text("external_id").unwrap(),
        };
        let amount = row.number("amount_credits").unwrap();
        let earlier = seen.insert((kind.clone(), name.clone()), amount);
        assert!(earlier.is_none(), "{kind} {name} was booked twice");
        let expected = match kind.as_str() {
            "charge" | "refund" => {
                let id = ExecutionId::parse(&name).unwrap();
                let charge = notes.charges.get(&id).expect("somebody asked for it");
                let sign = if kind == "charge" { -1 } else { 1 };
                (charge.buyer, sign * charge.amount)
            }
            "grant" => {
                let grant = notes.grants.get(&name).expect("somebody granted it");
                (grant.buyer, grant.amount)
            }
            "top_up" => {
                let id = TopUpId::parse(name.strip_prefix("top-up:").unwrap()).unwrap();
                let top_up = notes.top_ups.get(&id).expect("somebody bought it");
                (top_up.buyer, top_up.amount)
            }
            _ => continue,
        };
        assert_eq!(amount, expected.1, "{kind} {name}");
        posted[expected.0] += amount;
    }
    let is_booked = |kind: &str, name: &str| seen.contains_key(&(kind.to_owned(), name.to_owned()));
    for (id, charge) in &notes.charges {
        let booked = is_booked("charge", id.as_str());
        match charge.fate {
            Fate::Done => assert!(booked, "{id} was answered and is not booked"),
            Fate::Refused => assert!(!booked, "{id} was refused and is booked"),
            Fate::UnderWay => {}
        }
        let refunded = is_booked("refund", id.as_str());
        assert!(
            charge.refund != Some(Fate::Done) || refunded,
            "the refund of {id} is missing"
        );
        assert!(
            charge.refund.is_some() || !refunded,
            "{id} was refunded by nobody"
        );
        if charge.is_keyed {
            let buyer = &setting.buyers[charge.buyer];
            let claimed = roll_back(db, async |write| claim(write, buyer, id).await);
            match claimed.await.unwrap() {
                Claim::Done(answer) => {
                    assert!(booked, "an answer without its charge: {id}");
                    assert_eq!(answer.body, Some(format!("answer of {id}")));
                }
                Claim::Granted(Ticket { .. }) => {
                    assert!(!booked, "a charge without its answer: {id}")
                }
                other => panic!("{id}: {other:?}"),
            }
        }
    }
    for (reason, grant) in &notes.grants {
        assert!(
            grant.fate != Fate::Done || is_booked("grant", reason),
            "{reason} is missing"
        );
    }
    for (id, top_up) in &notes.top_ups {
        let booked = is_booked("top_up", &format!("top-up:{id}"));
        assert!(
            top_up.fate != Fate::Done || booked,
            "top-up {id} is missing"
        );
    }
    let mut read = db.read().await.unwrap();
    for (id, told) in &notes.payouts {
        let payout = payouts::find(&mut read, id)
            .await
            .unwrap()
            .expect("a payout is missing");
        assert!(!told.is_final() || payout.status == *told, "payout {id}");
        assert!(is_booked("payout", &format!("payout:{id}")));
        let ended = format!("payout:{id}:end");
        assert_eq!(
            is_booked("payout_paid", &ended),
            payout.status == PayoutStatus::Paid
        );
        assert_eq!(
            is_booked("payout_return", &ended),
            payout.status == PayoutStatus::Failed
        );
    }
    for (market, posted) in setting.buyers.iter().zip(posted) {
        let balance = teller.balance(&market.buyer).await.unwrap();
        assert_eq!(
            (balance.posted, balance.held),
            (posted, 0),
            "granted, bought and refunded, less what was charged"
        );
        let account = Account::Buyer(market.buyer.clone());
        assert_eq!(
            ledger::balance(&mut read, &account).await.unwrap().get(),
            posted * 50
        );
    }
    drop(read);
    let books = reconcile(db, db::now()).await.unwrap();
    assert!(books.is_balanced() && books.open_holds == 0, "{books:?}");
    assert_eq!(teller.held_in_all().await.unwrap(), 0);
}

/// How many charges were answered, and of those that were under way when their host died, how many are booked and how many are not.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tally {
    pub(super) answered: usize,
    pub(super) booked: usize,
    pub(super) not_booked: usize,
}

pub(super) async fn tally(db: &Db, notes: &Notes) -> Tally {
    let mut tally = Tally::default();
    let mut read = db.read().await.unwrap();
    for (id, charge) in &notes.charges {
        let found = sqlx::query("SELECT id FROM executions WHERE id = $1")
            .bind(id.as_str())
            .fetch_optional(&mut *read)
            .await
            .unwrap();
        match (charge.fate, found) {
            (Fate::Done, _) => tally.answered += 1,
            (_, Some(_)) => tally.booked += 1,
            (_, None) => tally.not_booked += 1,
        }
    }
    tally
}
