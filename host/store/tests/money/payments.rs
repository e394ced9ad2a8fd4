//! Money that comes in and goes out, on both backends: whatever races, it is booked once.

use crate::support::{assert_settled, credits, market, mature, roll_back, stores};
use futures_util::future::join_all;
use souk_domain::ids::{KeyId, TopUpId};
use souk_domain::money::UsdCents;
use souk_store::ledger::{self, Account};
use souk_store::payouts::{self, AdvanceError, Method, PayoutStatus};
use souk_store::teller::{Balance, Teller};
use souk_store::top_ups::{self, NewTopUp};
use souk_store::{StoreError, db, payment_events, statements};
use sqlx::Executor;

/// Many who all say at once that the money of a top-up has come: one is believed, and it is credited once.
#[tokio::test]
async fn a_top_up_is_credited_once() {
    for store in stores().await {
        let market = market(&store.db, 0).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let id = TopUpId::generate();
        let new = NewTopUp {
            id: &id,
            company: &market.buyer,
            credits: credits(7),
            provider: "stripe",
            payment_method: None,
            actor: &market.actor,
            idempotency_key: None,
        };
        store
            .db
            .write(async |write| top_ups::insert(write, &new, db::now()).await)
            .await
            .unwrap();
        // Three deliveries of each of four events.
        let tell = async |event: usize| {
            store
                .db
                .write(async |write| -> Result<_, StoreError> {
                    let event = format!("evt_{event}");
                    if !payment_events::note(write, "stripe", &event, "paid", &id, db::now())
                        .await?
                    {
                        return Ok(false);
                    }
                    let settled = top_ups::settle(write, &id, &event, None, db::now()).await?;
                    Ok(settled.is_some())
                })
                .await
        };
        let told = join_all((0..12).map(|attempt| tell(attempt % 4))).await;
        let credited = told
            .into_iter()
            .filter(|answer| *answer.as_ref().unwrap())
            .count();
        assert_eq!(credited, 1, "{}", store.name);
        assert_eq!(
            teller.balance(&market.buyer).await.unwrap(),
            Balance { posted: 7, held: 0 }
        );
        assert_settled(&store.db, &teller).await;
    }
}

/// Payouts that are asked for at once never exceed what is payable, and each ends once.
#[tokio::test]
async fn payable_money_is_paid_out_once() {
    for store in stores().await {
        let market = market(&store.db, 100).await;
        let teller = Teller::open(&store.db).await.unwrap();
        market.charge(&teller, 100).await;
        teller.flush().await;
        store
            .db
            .write(async |write| -> Result<_, StoreError> {
                let later = crate::support::later(db::now(), 1);
                mature(write, &market.seller, later, db::now())
                    .await
                    .unwrap();
                let method = Method {
                    kind: "bank_account".into(),
                    account_holder: "S".into(),
                    sealed_destination: vec![1, 2, 3],
                    last4: "1234".into(),
                };
                payouts::set_method(write, &market.seller, &method, db::now())
                    .await
                    .unwrap();
                Ok(())
            })
            .await
            .unwrap();

        let actor = KeyId::generate().into();
        let ask = async || {
            store
                .db
                .write(async |write| {
                    let (amount, minimum) = (Some(UsdCents::new(1_500)), UsdCents::new(1_000));
                    payouts::request(write, &market.seller, amount, minimum, &actor, db::now())
                        .await
                })
                .await
        };
        let asked = join_all((0..5).map(|_| ask())).await;
        // 40 dollars hold 15 twice.
        let made: Vec<_> = asked.into_iter().filter_map(Result::ok).collect();
        assert_eq!(made.len(), 2, "{}", store.name);

        let end = async |status: PayoutStatus| {
            let ended = store
                .db
                .write(async |write| {
                    payouts::advance(
                        write,
                        &made[0].id,
                        status,
                        Some("transfer"),
                        None,
                        &actor,
                        db::now(),
                    )
                    .await
                })
                .await?;
            Ok::<_, AdvanceError>(ended)
        };
        let ends = [
            PayoutStatus::Paid,
            PayoutStatus::Failed,
            PayoutStatus::Paid,
            PayoutStatus::Cancelled,
        ];
        let ended = join_all(ends.map(end)).await;
        assert_eq!(
            ended.iter().filter(|end| end.is_ok()).count(),
            1,
            "{}",
            store.name
        );
        let mut read = store.db.read().await.unwrap();
        let earnings = statements::earnings(&mut read, &market.seller)
            .await
            .unwrap();
        let is_paid = payouts::find(&mut read, &made[0].id)
            .await
            .unwrap()
            .unwrap()
            .status
            == PayoutStatus::Paid;
        let expected = if is_paid { (1_000, 1_500) } else { (2_500, 0) };
        assert_eq!(
            (earnings.payable.get(), earnings.paid.get()),
            expected,
            "{}",
            store.name
        );
        assert_eq!(earnings.in_payout.get(), 1_500);
        drop(read);
        assert_settled(&store.db, &teller).await;
    }
}

/// The migration that makes the tables of the books anew keeps every row of them, and their guards.
#[tokio::test]
async fn the_books_survive_their_migration() {
    for store in stores().await {
        let market = market(&store.db, 10).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let charge = market.charge(&teller, 4).await.transaction.unwrap();
        teller.flush().await;
        store.db.write(async |write| -> Result<_, StoreError> {
            let undo = "DROP TABLE top_ups; DROP TABLE payment_events; DROP TABLE payout_methods; DROP TABLE payouts";
            (&mut **write).execute(sqlx::raw_sql(undo)).await.unwrap();
            let migration = include_str!("../../migrations/0008_payments.sql");
            (&mut **write)
                .execute(sqlx::raw_sql(migration))
                .await
                .unwrap();
            // What later migrations add to these tables.
            let later = "ALTER TABLE accounts ADD COLUMN low_credits BIGINT";
            (&mut **write).execute(later).await.unwrap();
            Ok(())
        }).await.unwrap();
        let mut read = store.db.read().await.unwrap();
        let buyer = Account::Buyer(market.buyer.clone());
        assert_eq!(
            ledger::balance(&mut read, &buyer).await.unwrap().get(),
            300,
            "{}",
            store.name
        );
        assert!(
            statements::transaction(&mut read, &charge)
                .await
                .unwrap()
                .is_some()
        );
        drop(read);
        market.charge(&teller, 6).await;
        roll_back(&store.db, async |write| {
            let overdraw =
                "UPDATE accounts SET balance_cents = balance_cents - 1 WHERE kind = 'buyer'";
            assert!((&mut **write).execute(overdraw).await.is_err());
        })
        .await;
        assert_settled(&store.db, &teller).await;
    }
}
