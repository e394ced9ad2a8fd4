//! Charges on their way into the books: the statements that book them, and what a frame of the charge log holds.

use crate::accounts::{AccountChanges, Level};
use crate::bulk::{JOINED_ROWS_MAX, Script, Style};
use crate::charge_log::Frame;
use crate::error::StoreError;
use crate::events::Event;
use crate::executions::{self, DayCounts, DayKey, Ended, Run};
use crate::ledger::{self, Entry, Transaction, TransactionType};
use serde::{Deserialize, Serialize};
use serde_json::json;
use souk_domain::ids::{CompanyId, TransactionId};
use souk_domain::money::{CENTS_PER_CREDIT, Credits};
use souk_domain::time::Timestamp;
use souk_domain::webhooks::EventType;
use std::collections::BTreeMap;

/// A run that is going to be in the books, with its charge if it has one.
///
/// This is also what a frame of the charge log holds, as JSON: an update must read what the version before it logged. New fields need
/// `#[serde(default)]`; that goes for [`Run`] and what is in it, too.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Booking {
    pub run: Run,
    pub buyer: CompanyId,
    pub amount: Credits,
    pub charge: Option<Charge>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub transaction: TransactionId,
    /// The buyer's credits after it.
    pub balance_after: i64,
    pub at: Timestamp,
    /// Where the account stands, if this charge made its balance low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<Level>,
}

impl Booking {
    fn entries(&self) -> Vec<Entry> {
        match self.charge {
            Some(_) => ledger::charge_entries(&self.buyer, &self.run.seller, self.amount),
            None => Vec::new(),
        }
    }

    fn transaction(&self) -> Option<Transaction> {
        let charge = self.charge.as_ref()?;
        let run = &self.run;
        Some(Transaction {
            id: charge.transaction.clone(),
            seller: Some(run.seller.clone()),
            balance_after: Some(charge.balance_after),
            product_type: Some(run.product.product_type()),
            product_id: Some(run.product.id().to_owned()),
            purchase: run.purchase.clone(),
            price: run.price.clone(),
            execution: Some(run.id.clone()),
            actor: Some(run.actor.clone()),
            request: Some(run.request.clone()),
            ..Transaction::new(
                TransactionType::Charge,
                self.buyer.clone(),
                -self.amount.get(),
                self.amount.cents(),
                charge.at,
            )
        })
    }
}

/// The accounts that bookings touch.
pub(super) fn accounts(bookings: &[Booking]) -> AccountChanges {
    let mut touched = AccountChanges::default();
    for entry in bookings.iter().flat_map(Booking::entries) {
        touched.add(&entry);
    }
    touched
}

/// What is told of the charges that took a balance below what is low for its buyer.
pub(super) fn low(bookings: &[Booking]) -> Vec<Event> {
    bookings
        .iter()
        .filter_map(|booking| {
            let charge = booking.charge.as_ref()?;
            let level = charge.low?;
            Some(Event {
                company: booking.buyer.clone(),
                kind: EventType::CreditsLow,
                at: charge.at,
                data: json!({
                    "company_id": booking.buyer,
                    "balance_credits": level.balance / CENTS_PER_CREDIT,
                    "threshold_credits": level.low / CENTS_PER_CREDIT,
                    "transaction_id": charge.transaction,
                }),
            })
        })
        .collect()
}

/// The statements that book. On a shared store they also take back what the holds reserved.
pub(super) fn script(bookings: &[Booking], is_shared: bool) -> Script {
    let style = match is_shared {
        true => Style::Nested,
        false if bookings.len() <= JOINED_ROWS_MAX / 2 => Style::Joined,
        false => Style::Separate,
    };
    let transactions: Vec<_> = bookings.iter().filter_map(Booking::transaction).collect();
    let mut changes = AccountChanges::default();
    let mut entries = Vec::with_capacity(bookings.len() * 2);
    let mut days: BTreeMap<DayKey, DayCounts> = BTreeMap::new();
    for booking in bookings {
        for entry in booking.entries() {
            changes.add(&entry);
            if let Some(charge) = &booking.charge {
                entries.push((&charge.transaction, entry));
            }
        }
        if is_shared && booking.charge.is_some() {
            changes.hold(&booking.buyer, -booking.amount.cents().get());
        }
        days.entry(DayKey::of(&booking.run))
            .or_default()
            .add_run(&Ended::of(&booking.run), booking.amount);
    }
    let runs: Vec<_> = bookings
        .iter()
        .map(|booking| executions::Row {
            run: &booking.run,
            transaction: booking.charge.as_ref().map(|charge| &charge.transaction),
            credits: booking.amount,
        })
        .collect();
    let mut script = Script::new(style);
    ledger::insert_transactions(&mut script, &transactions);
    let entries: Vec<_> = entries.iter().map(|(id, entry)| (*id, entry)).collect();
    ledger::insert_entries(&mut script, &entries);
    executions::insert(&mut script, &runs);
    executions::add_days(&mut script, &days.into_iter().collect::<Vec<_>>());
    changes.apply(&mut script);
    script
}

/// What a frame holds.
pub(super) fn encode(bookings: &[Booking]) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(bookings).map_err(|error| StoreError::Corrupt(error.to_string()))
}

pub(super) fn decode(frame: &Frame) -> Result<Vec<Booking>, StoreError> {
    serde_json::from_slice(&frame.payload)
        .map_err(|error| StoreError::Corrupt(format!("charge log, {}: {error}", frame.number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executions::{Billing, Outcome};
    use souk_domain::ids::{AssetId, ExecutionId, KeyId, PriceId, PurchaseId, RequestId};
    use souk_domain::products::Product;
    use std::time::Duration;

    /// A charge comes out of the log as it went in, to the microsecond.
    #[test]
    fn a_booking_survives_the_log() {
        let at = Timestamp::from_micros(1_795_000_000_123_457);
        let run = Run {
            id: ExecutionId::generate_at(at),
            company: CompanyId::generate(),
            seller: CompanyId::generate(),
            product: Product::Asset(AssetId::generate()),
            purchase: Some(PurchaseId::generate()),
            price: Some(PriceId::generate()),
            actor: KeyId::generate().into(),
            request: RequestId::generate_at(at),
            outcome: Outcome::Failed {
                code: "A".into(),
                blame: "b".into(),
            },
            billing: Billing::Charged,
            rows: 3,
            bytes: 4,
            started_at: at,
            duration_us: 5,
        };
        let charge = Some(Charge {
            transaction: TransactionId::generate_at(at),
            balance_after: 9,
            at: at.after(Duration::from_micros(1)),
            low: Some(Level {
                balance: 9,
                held: 1,
                low: 10,
            }),
        });
        let booking = Booking {
            buyer: run.company.clone(),
            run,
            amount: Credits::new(7).unwrap(),
            charge,
        };
        let frame = Frame {
            number: 1,
            payload: encode(std::slice::from_ref(&booking)).unwrap(),
        };
        let back = decode(&frame).unwrap();
        assert_eq!(format!("{back:?}"), format!("{:?}", [booking]));
    }
}
