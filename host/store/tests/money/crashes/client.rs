//! A client of a host that will die: what it asks for, and what it notes of the answers.

use super::*;

pub(super) struct Client {
    pub(super) db: Db,
    pub(super) teller: Teller,
    pub(super) setting: Arc<Setting>,
    pub(super) notes: Arc<Mutex<Notes>>,
    pub(super) told: Arc<Notify>,
    pub(super) random: StdRng,
}

impl Client {
    pub(super) async fn run(mut self) {
        loop {
            let choice = self.random.random_range(0..24);
            let result = match choice {
                0..=11 => self.charge().await,
                12 => self.void().await,
                13..=15 => self.refund().await,
                16 | 17 => self.top_up().await,
                18 | 19 => self.grant().await,
                20 => self.mature().await,
                21 => self.request_payout().await,
                _ => self.advance_payout().await,
            };
            result.unwrap();
            self.notes.lock().unwrap().told += 1;
            self.told.notify_one();
            for _ in 0..self.random.random_range(0..3) {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn charge(&mut self) -> Result<(), StoreError> {
        let buyer = self.random.random_range(0..BUYERS);
        let amount = self.random.random_range(1..20);
        let market = &self.setting.buyers[buyer];
        let run = market.run(Billing::Charged);
        let id = run.id.clone();
        let mut idempotency = None;
        if self.random.random_bool(0.4) {
            let claimed = self.db.write(async |write| claim(write, market, &id).await);
            let Claim::Granted(ticket) = claimed.await? else {
                panic!("a new key is granted")
            };
            idempotency = Some(IdempotencyEntry {
                ticket,
                answer: KeptAnswer::of(200, None, format!("answer of {id}").as_bytes(), None),
                expires_at: later(db::now(), 86_400),
            });
        }
        let hold = match market.hold(&self.teller, amount, &run).await {
            Ok(hold) => hold,
            Err(HoldError::Insufficient { .. }) => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        let charge = Charge {
            buyer,
            amount,
            transaction: hold.transaction().unwrap().clone(),
            is_keyed: idempotency.is_some(),
            fate: Fate::UnderWay,
            refund: None,
        };
        self.notes
            .lock()
            .unwrap()
            .charges
            .insert(id.clone(), charge);
        let posted = self.teller.post(hold, Receipt { run, idempotency }).await;
        let fate = match posted {
            Ok(_) => Fate::Done,
            Err(PostError::Unknown(_)) => Fate::UnderWay,
            Err(_) => Fate::Refused,
        };
        self.notes
            .lock()
            .unwrap()
            .charges
            .get_mut(&id)
            .unwrap()
            .fate = fate;
        Ok(())
    }

    async fn void(&mut self) -> Result<(), StoreError> {
        let market = &self.setting.buyers[self.random.random_range(0..BUYERS)];
        let run = market.run(Billing::Charged);
        let held = market.hold(&self.teller, 5, &run).await;
        tokio::task::yield_now().await;
        drop(held);
        Ok(())
    }

    async fn refund(&mut self) -> Result<(), StoreError> {
        let number = self.random.random_range(0..usize::MAX);
        let chosen = {
            let mut notes = self.notes.lock().unwrap();
            let mut booked: Vec<_> = notes
                .charges
                .iter_mut()
                .filter(|(_, charge)| charge.fate == Fate::Done)
                .collect();
            booked.sort_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
            let count = booked.len();
            booked
                .into_iter()
                .nth(number % count.max(1))
                .map(|(id, charge)| {
                    charge.refund.get_or_insert(Fate::UnderWay);
                    (id.clone(), charge.transaction.clone())
                })
        };
        let Some((id, transaction)) = chosen else {
            return Ok(());
        };
        let refunded = self
            .db
            .write(async |write| refund(write, &transaction, None, "test", None, db::now()).await);
        match refunded.await {
            Ok(_) | Err(RefundError::Refunded) => {}
            Err(RefundError::Store(error)) => return Err(error),
            Err(error) => panic!("{error}"),
        }
        self.notes
            .lock()
            .unwrap()
            .charges
            .get_mut(&id)
            .unwrap()
            .refund = Some(Fate::Done);
        Ok(())
    }

    /// Buys credits; or hears again that the money of an older top-up has come.
    async fn top_up(&mut self) -> Result<(), StoreError> {
        let amount = self.random.random_range(1..30);
        let buyer = self.random.random_range(0..BUYERS);
        let again = self.random.random_bool(0.4);
        let older = {
            let notes = self.notes.lock().unwrap();
            notes
                .top_ups
                .keys()
                .min_by_key(|id| id.as_str().to_owned())
                .cloned()
        };
        let id = match older.filter(|_| again) {
            Some(id) => id,
            None => {
                let id = TopUpId::generate();
                let market = &self.setting.buyers[buyer];
                let new = NewTopUp {
                    id: &id,
                    company: &market.buyer,
                    credits: credits(amount),
                    provider: "stripe",
                    payment_method: None,
                    actor: &market.actor,
                    idempotency_key: None,
                };
                self.db
                    .write(async |write| top_ups::insert(write, &new, db::now()).await)
                    .await?;
                let gain = Gain {
                    buyer,
                    amount,
                    fate: Fate::UnderWay,
                };
                self.notes.lock().unwrap().top_ups.insert(id.clone(), gain);
                id
            }
        };
        let event = format!("evt_{}_{id}", self.random.random_range(0..2));
        let noted = self.db.write(async |write| -> Result<_, StoreError> {
            if payment_events::note(write, "stripe", &event, "paid", &id, db::now()).await? {
                top_ups::settle(write, &id, &event, None, db::now()).await?;
            }
            Ok(())
        });
        noted.await?;
        self.notes
            .lock()
            .unwrap()
            .top_ups
            .get_mut(&id)
            .unwrap()
            .fate = Fate::Done;
        Ok(())
    }

    async fn grant(&mut self) -> Result<(), StoreError> {
        let gain = Gain {
            buyer: self.random.random_range(0..BUYERS),
            amount: self.random.random_range(1..40),
            fate: Fate::UnderWay,
        };
        let reason = format!("grant {}", TransactionId::generate_at(db::now()));
        self.db
            .write(async |write| -> Result<_, StoreError> {
                let buyer = &self.setting.buyers[gain.buyer].buyer;
                let amount = credits(gain.amount);
                // Noted before it is sent, like everything else.
                self.notes
                    .lock()
                    .unwrap()
                    .grants
                    .insert(reason.clone(), gain);
                ledger::grant(write, buyer, amount, &reason, None, db::now()).await?;
                Ok(())
            })
            .await?;
        self.notes
            .lock()
            .unwrap()
            .grants
            .get_mut(&reason)
            .unwrap()
            .fate = Fate::Done;
        Ok(())
    }

    async fn mature(&mut self) -> Result<(), StoreError> {
        self.db
            .write(async |write| {
                let before = db::now();
                mature(write, &self.setting.buyers[0].seller, before, before).await?;
                Ok(())
            })
            .await
    }

    async fn request_payout(&mut self) -> Result<(), StoreError> {
        let market = &self.setting.buyers[0];
        let amount = Some(UsdCents::new(self.random.random_range(1..400)));
        let asked = self.db.write(async |write| {
            let minimum = UsdCents::new(1);
            payouts::request(
                write,
                &market.seller,
                amount,
                minimum,
                &market.actor,
                db::now(),
            )
            .await
        });
        match asked.await {
            Ok(payout) => {
                self.notes
                    .lock()
                    .unwrap()
                    .payouts
                    .insert(payout.id, payout.status);
                Ok(())
            }
            Err(RequestError::TooLittle { .. }) => Ok(()),
            Err(RequestError::Store(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }

    async fn advance_payout(&mut self) -> Result<(), StoreError> {
        let chosen = {
            let notes = self.notes.lock().unwrap();
            let open = notes
                .payouts
                .iter()
                .filter(|(_, status)| !status.is_final());
            open.map(|(id, _)| id.clone())
                .min_by_key(|id| id.as_str().to_owned())
        };
        let Some(id) = chosen else { return Ok(()) };
        let to = [
            PayoutStatus::Processing,
            PayoutStatus::Paid,
            PayoutStatus::Failed,
        ];
        let to = to[self.random.random_range(0..3)];
        let actor = &self.setting.buyers[0].actor;
        let advanced = self.db.write(async |write| {
            payouts::advance(write, &id, to, None, None, actor, db::now()).await
        });
        let told = match advanced.await {
            Ok(_) => to,
            Err(AdvanceError::State(status)) => status,
            Err(AdvanceError::Store(error)) => return Err(error),
            Err(error) => panic!("{error}"),
        };
        let mut notes = self.notes.lock().unwrap();
        let noted = notes.payouts.get_mut(&id).unwrap();
        // Two clients may be told in another order than it happened.
        if !noted.is_final() {
            *noted = told;
        }
        Ok(())
    }
}
