//! What a buyer's calls do to the model: claims on idempotency keys, holds, and the charges that they become.

use super::*;

impl World {
    /// Claims the key, as the model says it must go. `None`: the request is not executed.
    async fn claim(
        &mut self,
        buyer: usize,
        key: usize,
        fingerprint: &'static str,
        late: bool,
    ) -> Option<Ticket> {
        let used = self.keys.get(&(buyer, key));
        let lapses = match used {
            Some(Used::Claimed { lapses, .. }) => lapses + u64::from(late),
            _ => 0,
        };
        // A claim lasts for one minute, and each lapse is two later.
        let at = later(db::now(), lapses * 120);
        let scope = Scope {
            company: self.buyers[buyer].buyer.clone(),
            route: "/runs",
            key: format!("k{key}"),
        };
        let claim = self
            .db
            .write(async |write| {
                idempotency::claim(
                    write,
                    scope,
                    fingerprint,
                    at,
                    later(at, 60),
                    idempotency::COMPANY_BYTES_MAX,
                )
                .await
            })
            .await
            .unwrap();
        match (used, claim) {
            (Some(Used::Claimed { .. }), Claim::Granted(ticket)) if late => Some(ticket),
            (None, Claim::Granted(ticket)) => Some(ticket),
            (Some(Used::Claimed { fingerprint: f, .. }), Claim::InFlight) => {
                assert!(!late && *f == fingerprint);
                None
            }
            (
                Some(Used::Answered {
                    fingerprint: f,
                    body,
                }),
                Claim::Done(answer),
            ) => {
                assert_eq!((*f, Some(body)), (fingerprint, answer.body.as_ref()));
                None
            }
            (Some(Used::Claimed { fingerprint: f, .. }), Claim::Reused) => {
                assert!(!late && *f != fingerprint);
                None
            }
            (Some(Used::Answered { fingerprint: f, .. }), Claim::Reused) => {
                assert_ne!(*f, fingerprint);
                None
            }
            (_, claim) => panic!("an unexpected claim: {claim:?}"),
        }
        .inspect(|ticket| {
            let used = Used::Claimed {
                fingerprint,
                ticket: ticket.id.clone(),
                lapses,
            };
            self.keys.insert((buyer, key), used);
        })
    }

    pub(super) async fn hold(&mut self, buyer: usize, amount: i64, key: Option<usize>, late: bool) {
        let mut ticket = None;
        if let Some(key) = key {
            let fingerprint = if amount % 4 == 0 { "other" } else { "same" };
            match self.claim(buyer, key, fingerprint, late).await {
                Some(granted) => ticket = Some(granted),
                None => return,
            }
        }
        let run = self.buyers[buyer].run(Billing::Charged);
        let held = self.buyers[buyer].hold(&self.teller, amount, &run).await;
        let balance = &mut self.balances[buyer];
        match held {
            Ok(hold) => {
                assert!(balance.available() >= amount);
                balance.held += amount;
                self.holds.push(Open {
                    buyer,
                    amount,
                    run,
                    hold,
                    ticket,
                    is_expired: false,
                });
            }
            Err(_) => {
                assert!(balance.available() < amount);
                self.give_up(ticket).await;
            }
        }
    }

    /// Whether the claim was taken over, or its key was answered meanwhile.
    fn is_superseded(&self, buyer: usize, ticket: &Ticket) -> bool {
        let key = ticket.scope.key[1..].parse().unwrap();
        !matches!(self.keys.get(&(buyer, key)), Some(Used::Claimed { ticket: holder, .. }) if *holder == ticket.id)
    }

    /// What a host does with its claim when the request fails.
    pub(super) async fn give_up(&mut self, ticket: Option<Ticket>) {
        let Some(ticket) = ticket else { return };
        self.db
            .write(async |write| idempotency::release(write, &ticket).await)
            .await
            .unwrap();
        self.keys.retain(
            |_, used| !matches!(used, Used::Claimed { ticket: holder, .. } if *holder == ticket.id),
        );
    }

    pub(super) async fn post(&mut self, holds: &[usize]) {
        let mut known = Vec::new();
        let mut posts = Vec::new();
        for hold in holds {
            if self.holds.is_empty() {
                break;
            }
            let open = self.holds.swap_remove(hold % self.holds.len());
            let entry = open.ticket.as_ref().map(|ticket| IdempotencyEntry {
                ticket: ticket.clone(),
                answer: KeptAnswer::of(
                    200,
                    None,
                    format!("answer of {}", open.run.id).as_bytes(),
                    None,
                ),
                expires_at: later(db::now(), 1_000_000),
            });
            let receipt = Receipt {
                run: open.run.clone(),
                idempotency: entry,
            };
            posts.push(self.teller.post(open.hold, receipt));
            known.push((
                open.buyer,
                open.amount,
                open.run,
                open.ticket,
                open.is_expired,
            ));
        }
        let results = join_all(posts).await;
        let mut booked = Vec::new();
        for (known, result) in known.into_iter().zip(results) {
            let transaction = result
                .as_ref()
                .ok()
                .and_then(|posted| posted.transaction.as_ref());
            let at = match transaction {
                Some(transaction) => Some(self.created_at(transaction).await),
                None => None,
            };
            booked.push((at, known, result));
        }
        // Those of one batch are booked one after the other, if not in the order in which they were sent.
        booked.sort_by_key(|(at, ..)| *at);
        for (at, (buyer, amount, run, ticket, is_expired), result) in booked {
            let is_superseded = ticket
                .as_ref()
                .is_some_and(|ticket| self.is_superseded(buyer, ticket));
            if !is_expired {
                self.balances[buyer].held -= amount;
            }
            match result {
                Ok(posted) => {
                    assert!(!is_superseded && !is_expired);
                    self.balances[buyer].posted -= amount;
                    self.pots.pending += amount * 40;
                    self.pots.revenue += amount * 10;
                    if let Some(ticket) = ticket {
                        self.answered(buyer, &ticket, format!("answer of {}", run.id));
                    }
                    let Some(transaction) = posted.transaction else {
                        assert_eq!(amount, 0);
                        continue;
                    };
                    assert_eq!(posted.balance_credits, Some(self.balances[buyer].posted));
                    self.charges.push(Charged {
                        buyer,
                        amount,
                        created_at: at.unwrap(),
                        transaction,
                        is_refunded: false,
                    });
                }
                Err(PostError::Superseded) => {
                    assert!(is_superseded);
                    self.give_up(ticket).await;
                }
                Err(PostError::Expired) => {
                    assert!(is_expired && !is_superseded);
                    self.give_up(ticket).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn answered(&mut self, buyer: usize, ticket: &Ticket, body: String) {
        let key = ticket.scope.key[1..].parse().unwrap();
        let Some(Used::Claimed { fingerprint, .. }) = self.keys.get(&(buyer, key)) else {
            panic!("an answer without a claim")
        };
        let answered = Used::Answered { fingerprint, body };
        self.keys.insert((buyer, key), answered);
    }

    async fn created_at(&self, transaction: &TransactionId) -> Timestamp {
        let mut read = self.db.read().await.unwrap();
        let row = sqlx::query("SELECT created_at FROM transactions WHERE id = $1")
            .bind(transaction.as_str())
            .fetch_one(&mut *read)
            .await
            .unwrap();
        row.time("created_at").unwrap()
    }

    pub(super) async fn expire(&mut self, index: usize) {
        let open = &mut self.holds[index];
        if open.amount == 0 || open.is_expired {
            return;
        }
        open.is_expired = true;
        self.balances[open.buyer].held -= open.amount;
        self.db
            .write(async |write| -> Result<_, StoreError> {
                sqlx::query("UPDATE holds SET expires_at = 1 WHERE id = $1")
                    .bind(open.run.id.as_str())
                    .execute(&mut **write)
                    .await
                    .unwrap();
                Ok(())
            })
            .await
            .unwrap();
        self.sweep().await;
    }

    /// Another host starts, and looks for holds that have expired.
    pub(super) async fn sweep(&self) {
        let _other = Teller::open(&self.db).await.unwrap();
        let expected: i64 = self.balances.iter().map(|balance| balance.held).sum();
        for _ in 0..500 {
            if self.teller.held_in_all().await.unwrap() == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("holds did not expire");
    }
}
