//! What becomes of charges: refunds, and what a seller is paid out.

use super::*;

impl World {
    /// Every other time the seller asks, who must have what it gives back.
    pub(super) async fn refund(&mut self, index: usize) {
        let seller = (index % 2 == 1).then(|| self.buyers[0].seller.clone());
        let charge = &mut self.charges[index];
        let share = charge.amount * 40;
        let cover = self.pots.pending + self.pots.payable;
        let refunded = self.db.write(async |write| {
            let (charge, seller) = (&charge.transaction, seller.as_ref());
            refund(write, charge, seller, "test", None, db::now()).await
        });
        match refunded.await {
            Ok(_) => {
                assert!(!charge.is_refunded && (seller.is_none() || cover >= share));
                charge.is_refunded = true;
                self.balances[charge.buyer].posted += charge.amount;
                self.pots.revenue -= charge.amount * 10;
                let out_of_pending = match share {
                    share if self.pots.pending >= share => share,
                    share if self.pots.payable >= share || cover < share => 0,
                    _ => self.pots.pending,
                };
                self.pots.pending -= out_of_pending;
                self.pots.payable -= share - out_of_pending;
            }
            Err(RefundError::NotCovered { .. }) => {
                assert!(!charge.is_refunded && seller.is_some() && cover < share);
            }
            Err(RefundError::Refunded) => assert!(charge.is_refunded),
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) async fn mature(&mut self, newest: usize) {
        let before = match self.charges.len().checked_sub(newest) {
            Some(first) if newest > 0 => self.charges[first].created_at,
            _ => later(db::now(), 10),
        };
        let recent: i64 = self
            .charges
            .iter()
            .filter(|charge| charge.created_at >= before && !charge.is_refunded)
            .map(|charge| charge.amount * 40)
            .sum();
        let expected = (self.pots.pending - recent).max(0);
        let matured = self
            .db
            .write(async |write| mature(write, &self.buyers[0].seller, before, db::now()).await)
            .await
            .unwrap();
        assert_eq!(
            matured.map_or(0, |transaction| transaction.amount.get()),
            expected
        );
        self.pots.pending -= expected;
        self.pots.payable += expected;
    }

    pub(super) async fn request_payout(&mut self, amount: Option<i64>) {
        let market = &self.buyers[0];
        let asked = self.db.write(async |write| {
            let (asked, minimum) = (amount.map(UsdCents::new), UsdCents::new(MINIMUM));
            payouts::request(
                write,
                &market.seller,
                asked,
                minimum,
                &market.actor,
                db::now(),
            )
            .await
        });
        let asked = asked.await;
        let amount = amount.unwrap_or(self.pots.payable);
        let is_enough = amount >= MINIMUM && amount <= self.pots.payable;
        match asked {
            Ok(payout) => {
                assert!(is_enough && payout.amount.get() == amount);
                self.pots.payable -= amount;
                self.pots.in_payout += amount;
                self.payouts.push((payout.id, amount, payout.status));
            }
            Err(RequestError::TooLittle { payable }) => {
                assert!(!is_enough);
                assert_eq!(payable.get(), self.pots.payable);
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) async fn advance_payout(&mut self, index: usize, to: PayoutStatus) {
        let (id, amount, status) = &mut self.payouts[index];
        let may = match status {
            PayoutStatus::Requested => true,
            PayoutStatus::Processing => matches!(to, PayoutStatus::Paid | PayoutStatus::Failed),
            _ => false,
        };
        let actor = &self.buyers[0].actor;
        let advanced = self.db.write(async |write| {
            payouts::advance(write, id, to, None, None, actor, db::now()).await
        });
        match advanced.await {
            Ok(_) => {
                assert!(may);
                *status = to;
                match to {
                    PayoutStatus::Paid => {
                        self.pots.in_payout -= *amount;
                        self.pots.cash += *amount;
                    }
                    PayoutStatus::Failed | PayoutStatus::Cancelled => {
                        self.pots.in_payout -= *amount;
                        self.pots.payable += *amount;
                    }
                    _ => {}
                }
            }
            Err(AdvanceError::State(found)) => assert!(!may && found == *status),
            Err(error) => panic!("{error}"),
        }
    }
}
