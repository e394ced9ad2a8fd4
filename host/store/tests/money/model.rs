//! The money of the store against a simple model: whatever is interleaved, on both backends.

mod calls;
mod seller;

use crate::support::{
    Market, Store, assert_settled, credits, grant, later, market, mature, open, postgres, sqlite,
};
use futures_util::future::join_all;
use proptest::prelude::*;
use souk_domain::ids::{CompanyId, PayoutId, TopUpId, TransactionId};
use souk_domain::money::UsdCents;
use souk_domain::time::Timestamp;
use souk_store::executions::{Billing, Run};
use souk_store::idempotency::{self, Claim, KeptAnswer, Scope, Ticket};
use souk_store::ledger::{self, Account};
use souk_store::payouts::{self, AdvanceError, Method, PayoutStatus, RequestError};
use souk_store::refunds::{RefundError, refund};
use souk_store::teller::{Balance, Hold, IdempotencyEntry, PostError, Receipt, Teller};
use souk_store::top_ups::{self, NewTopUp};
use souk_store::{Db, Fields, StoreError, db, payment_events};
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

const BUYERS: usize = 3;
/// The least that is paid out, in cents.
const MINIMUM: i64 = 200;

/// One step. Numbers name one of what there is, modulo how many there are.
#[derive(Debug, Clone)]
enum Step {
    Grant {
        buyer: usize,
        amount: i64,
    },
    TopUp {
        buyer: usize,
        amount: i64,
    },
    /// One of two events that say that the money of a top-up came is delivered, perhaps again.
    Settle {
        top_up: usize,
        event: usize,
    },
    FailTopUp {
        top_up: usize,
    },
    /// A request, perhaps with an idempotency key that was used before, perhaps after the claim on it has lapsed.
    Hold {
        buyer: usize,
        amount: i64,
        key: Option<usize>,
        late: bool,
    },
    /// Several at once, so that they share a commit.
    Post {
        holds: Vec<usize>,
    },
    Void {
        hold: usize,
    },
    /// The hold outlives its time (on a shared store; another host finds it).
    Expire {
        hold: usize,
    },
    Refund {
        charge: usize,
    },
    /// All but the newest charges are old enough.
    Mature {
        newest: usize,
    },
    Payout {
        amount: Option<i64>,
    },
    AdvancePayout {
        payout: usize,
        to: PayoutStatus,
    },
    /// The process dies: all holds are gone, at once or when they expire.
    Crash,
}

fn steps(max: usize) -> impl Strategy<Value = Vec<Step>> {
    let states = proptest::sample::select(vec![
        PayoutStatus::Processing,
        PayoutStatus::Paid,
        PayoutStatus::Failed,
        PayoutStatus::Cancelled,
    ]);
    let key = proptest::option::weighted(0.5, 0..3_usize);
    let step = prop_oneof![
        3 => (0..BUYERS, 1..50_i64).prop_map(|(buyer, amount)| Step::Grant { buyer, amount }),
        2 => (0..BUYERS, 1..50_i64).prop_map(|(buyer, amount)| Step::TopUp { buyer, amount }),
        2 => (any::<usize>(), 0..2_usize).prop_map(|(top_up, event)| Step::Settle { top_up, event }),
        1 => any::<usize>().prop_map(|top_up| Step::FailTopUp { top_up }),
        10 => (0..BUYERS, 0..30_i64, key, proptest::bool::weighted(0.2))
            .prop_map(|(buyer, amount, key, late)| Step::Hold { buyer, amount, key, late }),
        7 => proptest::collection::vec(any::<usize>(), 1..5).prop_map(|holds| Step::Post { holds }),
        2 => any::<usize>().prop_map(|hold| Step::Void { hold }),
        3 => any::<usize>().prop_map(|hold| Step::Expire { hold }),
        4 => any::<usize>().prop_map(|charge| Step::Refund { charge }),
        3 => (0..4_usize).prop_map(|newest| Step::Mature { newest }),
        3 => proptest::option::of(1..1_500_i64).prop_map(|amount| Step::Payout { amount }),
        3 => (any::<usize>(), states).prop_map(|(payout, to)| Step::AdvancePayout { payout, to }),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..max)
}

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
});

fn config(cases: u32) -> ProptestConfig {
    use proptest::test_runner::FileFailurePersistence::Direct;
    // PROPTEST_CASES asks for more.
    let asked = std::env::var("PROPTEST_CASES").ok();
    let cases = asked.map_or(cases, |asked| asked.parse().unwrap());
    ProptestConfig {
        cases,
        max_shrink_iters: cases * 8,
        failure_persistence: Some(Box::new(Direct("tests/money/model.regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(64))]

    /// Whatever is interleaved, the store agrees with a model that a child could keep with pebbles.
    #[test]
    fn the_ledger_agrees_with_a_simple_model(steps in steps(80)) {
        RUNTIME.block_on(async { World::new(sqlite().await).await.run(steps).await });
    }
}

proptest! {
    #![proptest_config(config(8))]

    #[test]
    fn the_shared_ledger_agrees_with_a_simple_model(steps in steps(60)) {
        RUNTIME.block_on(async { World::new(postgres().await).await.run(steps).await });
    }
}

/// What the model knows of a hold.
struct Open {
    buyer: usize,
    amount: i64,
    run: Run,
    hold: Hold,
    ticket: Option<Ticket>,
    is_expired: bool,
}

struct Charged {
    buyer: usize,
    amount: i64,
    transaction: TransactionId,
    created_at: Timestamp,
    is_refunded: bool,
}

struct Bought {
    id: TopUpId,
    buyer: usize,
    amount: i64,
    events: [bool; 2],
    is_settled: bool,
    is_failed: bool,
}

/// What became of an idempotency key.
enum Used {
    /// By whom, and how often a claim on it had lapsed.
    Claimed {
        fingerprint: &'static str,
        ticket: String,
        lapses: u64,
    },
    Answered {
        fingerprint: &'static str,
        body: String,
    },
}

/// Cents, by where they are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pots {
    cash: i64,
    promo: i64,
    revenue: i64,
    pending: i64,
    payable: i64,
    in_payout: i64,
}

/// A store, and what the model says about it.
struct World {
    url: String,
    db: Db,
    teller: Teller,
    _files: crate::support::Files,
    buyers: Vec<Market>,
    balances: [Balance; BUYERS],
    pots: Pots,
    holds: Vec<Open>,
    charges: Vec<Charged>,
    top_ups: Vec<Bought>,
    keys: HashMap<(usize, usize), Used>,
    payouts: Vec<(PayoutId, i64, PayoutStatus)>,
}

impl World {
    async fn new(store: Store) -> Self {
        let (url, db) = (store.url.clone(), store.db.clone());
        let teller = Teller::open(&db).await.unwrap();
        let one = market(&db, 0).await;
        let method = Method {
            kind: "bank_account".into(),
            account_holder: "S".into(),
            sealed_destination: vec![1],
            last4: "1234".into(),
        };
        db.write(async |write| payouts::set_method(write, &one.seller, &method, db::now()).await)
            .await
            .unwrap();
        let buyers = (0..BUYERS).map(|_| Market {
            buyer: CompanyId::generate(),
            seller: one.seller.clone(),
            product: one.product.clone(),
            actor: one.actor.clone(),
        });
        Self {
            url,
            db,
            teller,
            _files: store.without_db(),
            buyers: buyers.collect(),
            balances: Default::default(),
            pots: Pots::default(),
            holds: Vec::new(),
            charges: Vec::new(),
            top_ups: Vec::new(),
            keys: HashMap::new(),
            payouts: Vec::new(),
        }
    }

    async fn run(mut self, steps: Vec<Step>) {
        for step in steps {
            self.step(step).await;
            self.check().await;
        }
        self.holds.clear();
        assert_settled(&self.db, &self.teller).await;
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Grant { buyer, amount } => {
                grant(&self.db, &self.buyers[buyer].buyer, amount).await;
                self.balances[buyer].posted += amount;
                self.pots.promo -= amount * 50;
            }
            Step::TopUp { buyer, amount } => self.top_up(buyer, amount).await,
            Step::Settle { top_up, event } if !self.top_ups.is_empty() => {
                self.settle(top_up % self.top_ups.len(), event).await;
            }
            Step::FailTopUp { top_up } if !self.top_ups.is_empty() => {
                let index = top_up % self.top_ups.len();
                let bought = &mut self.top_ups[index];
                let failed = self
                    .db
                    .write(async |write| top_ups::fail(write, &bought.id, "test").await)
                    .await
                    .unwrap();
                assert_eq!(failed, !bought.is_settled && !bought.is_failed);
                bought.is_failed |= failed;
            }
            Step::Hold {
                buyer,
                amount,
                key,
                late,
            } => self.hold(buyer, amount, key, late).await,
            Step::Post { holds } => self.post(&holds).await,
            Step::Void { hold } if !self.holds.is_empty() => {
                let open = self.holds.swap_remove(hold % self.holds.len());
                if !open.is_expired {
                    self.balances[open.buyer].held -= open.amount;
                }
                drop(open.hold);
                self.give_up(open.ticket).await;
            }
            Step::Expire { hold } if !self.holds.is_empty() && self.db.is_shared() => {
                self.expire(hold % self.holds.len()).await;
            }
            Step::Refund { charge } if !self.charges.is_empty() => {
                self.refund(charge % self.charges.len()).await;
            }
            Step::Mature { newest } => self.mature(newest).await,
            Step::Payout { amount } => self.request_payout(amount).await,
            Step::AdvancePayout { payout, to } if !self.payouts.is_empty() => {
                self.advance_payout(payout % self.payouts.len(), to).await;
            }
            Step::Crash => self.crash().await,
            _ => {}
        }
    }

    async fn check(&self) {
        if self.db.is_shared() {
            // Holds are given back in the background there.
            self.teller.flush().await;
        }
        for (market, balance) in self.buyers.iter().zip(&self.balances) {
            assert_eq!(self.teller.balance(&market.buyer).await.unwrap(), *balance);
        }
        let mut read = self.db.read().await.unwrap();
        let mut of = async |account| ledger::balance(&mut read, &account).await.unwrap().get();
        let seller = || self.buyers[0].seller.clone();
        let pots = Pots {
            cash: of(Account::Cash).await,
            promo: of(Account::PlatformPromo).await,
            revenue: of(Account::PlatformRevenue).await,
            pending: of(Account::SellerPending(seller())).await,
            payable: of(Account::SellerPayable(seller())).await,
            in_payout: of(Account::SellerInPayout(seller())).await,
        };
        assert_eq!(pots, self.pots);
        for (market, balance) in self.buyers.iter().zip(&self.balances) {
            let account = Account::Buyer(market.buyer.clone());
            assert_eq!(of(account).await, balance.posted * 50);
        }
    }

    async fn top_up(&mut self, buyer: usize, amount: i64) {
        let id = TopUpId::generate();
        let new = NewTopUp {
            id: &id,
            company: &self.buyers[buyer].buyer,
            credits: credits(amount),
            provider: "stripe",
            payment_method: None,
            actor: &self.buyers[buyer].actor,
            idempotency_key: None,
        };
        self.db
            .write(async |write| top_ups::insert(write, &new, db::now()).await)
            .await
            .unwrap();
        self.top_ups.push(Bought {
            id,
            buyer,
            amount,
            events: [false; 2],
            is_settled: false,
            is_failed: false,
        });
    }

    async fn settle(&mut self, index: usize, event: usize) {
        let bought = &mut self.top_ups[index];
        let name = format!("evt_{index}_{event}");
        let (is_new, settled) = self
            .db
            .write(async |write| -> Result<_, StoreError> {
                let is_new =
                    payment_events::note(write, "stripe", &name, "paid", &bought.id, db::now())
                        .await
                        .unwrap();
                assert_eq!(is_new, !bought.events[event]);
                let settled = match is_new {
                    true => top_ups::settle(write, &bought.id, &name, None, db::now()).await?,
                    false => None,
                };
                Ok((is_new, settled))
            })
            .await
            .unwrap();
        if !is_new {
            return;
        }
        bought.events[event] = true;
        assert_eq!(settled.is_some(), !bought.is_settled);
        if settled.is_some() {
            bought.is_settled = true;
            self.balances[bought.buyer].posted += bought.amount;
            self.pots.cash -= bought.amount * 50;
        }
    }

    async fn crash(&mut self) {
        for open in self.holds.drain(..) {
            std::mem::forget(open.hold);
        }
        self.db.close().await;
        self.db = open(&self.url).await;
        self.db
            .write(async |write| -> Result<_, StoreError> {
                if self.db.is_shared() {
                    // Time passes.
                    for sql in [
                        "UPDATE holds SET expires_at = 1",
                        "UPDATE idempotency SET expires_at = 1 WHERE status IS NULL",
                    ] {
                        sqlx::query(sql).execute(&mut **write).await.unwrap();
                    }
                } else {
                    idempotency::release_all(write).await.unwrap();
                }
                Ok(())
            })
            .await
            .unwrap();
        self.keys
            .retain(|_, used| matches!(used, Used::Answered { .. }));
        self.balances
            .iter_mut()
            .for_each(|balance| balance.held = 0);
        self.teller = Teller::open(&self.db).await.unwrap();
        if self.db.is_shared() {
            self.sweep().await;
        }
    }
}
