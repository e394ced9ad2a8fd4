//! Prices: what a product costs at an instant, discounts, and what may still be changed. Refuses to know where prices are kept.
//!
//! Which of several prices holds when is [`holding`]'s to say.

use crate::money::{CREDITS_MAX, Credits, CreditsError, UsdCents, credits_for};
use crate::time::Timestamp;

/// What conversion of a price in dollars gives, without storing anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    pub credits: Credits,
    /// What the buyer really pays: `credits` at 0.50 USD.
    pub effective: UsdCents,
    pub seller_earnings: UsdCents,
}

/// Converts dollars to credits: `ceil(price / 0.50)`.
pub fn convert(price: UsdCents) -> Result<Conversion, CreditsError> {
    let credits = credits_for(price)?;
    Ok(Conversion {
        credits,
        effective: credits.cents(),
        seller_earnings: crate::money::split(credits).seller,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("discount_percent is a whole number from 1 to 100")]
pub struct DiscountError;

/// The price after a discount, rounded up to whole credits; 100 percent is free.
pub fn discounted(price: Credits, percent: i64) -> Result<Credits, DiscountError> {
    if !(1..=100).contains(&percent) {
        return Err(DiscountError);
    }
    const _: () = assert!(CREDITS_MAX < i64::MAX / 100);
    Credits::new((price.get() * (100 - percent) + 99) / 100).map_err(|_| DiscountError)
}

/// When a price holds: from `from`, up to but not including `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub from: Timestamp,
    pub to: Option<Timestamp>,
}

impl Validity {
    pub fn contains(&self, instant: Timestamp) -> bool {
        self.from <= instant && self.to.is_none_or(|to| instant < to)
    }

    /// Only a price that has not begun may be changed or deleted: history is immutable.
    pub fn is_future(&self, now: Timestamp) -> bool {
        now < self.from
    }
}

/// Which of the prices that were asked for holds when, from `since` on: at each instant the one that began last of those that have not ended. So one that
/// ends gives way to the one before it, and one without an end to none. `asked`: from when on, and until when at most. Places in it, in the order
/// of time; no two hold at once, and none holds twice in a row.
pub fn holding(asked: &[Validity], since: Timestamp) -> Vec<(usize, Validity)> {
    let (begins, ends) = (
        asked.iter().map(|validity| validity.from),
        asked.iter().filter_map(|validity| validity.to),
    );
    let mut instants: Vec<Timestamp> = begins.chain(ends).filter(|at| *at > since).collect();
    instants.push(since);
    instants.sort_unstable();
    instants.dedup();
    let mut held: Vec<(usize, Validity)> = Vec::new();
    for (nth, from) in instants.iter().copied().enumerate() {
        let alive = asked.iter().enumerate();
        let alive = alive.filter(|(_, validity)| validity.contains(from));
        let Some((place, _)) = alive.max_by_key(|(_, validity)| validity.from) else {
            continue;
        };
        let to = instants.get(nth + 1).copied();
        if let Some((last, validity)) = held.last_mut()
            && *last == place
            && validity.to == Some(from)
        {
            validity.to = to;
            continue;
        }
        held.push((place, Validity { from, to }));
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounded up to whole credits; a full discount is free.
    #[test]
    fn discounts_round_up() {
        let price = Credits::new(10).unwrap();
        assert_eq!(discounted(price, 15).unwrap().get(), 9);
        assert_eq!(discounted(price, 100).unwrap(), Credits::ZERO);
        assert_eq!(discounted(Credits::new(1).unwrap(), 99).unwrap().get(), 1);
        assert_eq!(discounted(price, 0), Err(DiscountError));
        assert_eq!(discounted(price, 101), Err(DiscountError));
    }

    /// At most one price holds at an instant: ends are exclusive.
    #[test]
    fn validity_ends_are_exclusive() {
        let at = Timestamp::from_micros;
        let first = Validity {
            from: at(0),
            to: Some(at(10)),
        };
        let second = Validity {
            from: at(10),
            to: None,
        };
        assert!(first.contains(at(9)) && !first.contains(at(10)) && second.contains(at(10)));
    }

    fn asked(from: i64, to: Option<i64>) -> Validity {
        Validity {
            from: Timestamp::from_micros(from),
            to: to.map(Timestamp::from_micros),
        }
    }

    /// What holds, as begin, end and place.
    fn held(all: &[Validity], since: i64) -> Vec<(i64, Option<i64>, usize)> {
        let held = holding(all, Timestamp::from_micros(since)).into_iter();
        let micros = Timestamp::micros;
        held.map(|(place, held)| (micros(held.from), held.to.map(micros), place))
            .collect()
    }

    /// One that ends gives way to the one before it, however deep they lie; one without an end takes the place of all before it; one that is
    /// planned begins all the same.
    #[test]
    fn the_price_that_began_last_holds_until_it_ends() {
        let (base, discount) = (asked(0, None), asked(10, Some(40)));
        assert_eq!(
            held(&[base, discount], 0),
            [(0, Some(10), 0), (10, Some(40), 1), (40, None, 0)]
        );
        let within = asked(20, Some(30));
        assert_eq!(
            held(&[within, discount, base], 15),
            [
                (15, Some(20), 1),
                (20, Some(30), 0),
                (30, Some(40), 1),
                (40, None, 2)
            ]
        );
        let new = asked(20, None);
        assert_eq!(
            held(&[base, discount, new], 10),
            [(10, Some(20), 1), (20, None, 2)]
        );
        let before = asked(5, None);
        assert_eq!(
            held(&[base, discount, before], 5),
            [(5, Some(10), 2), (10, Some(40), 1), (40, None, 2)]
        );
    }

    /// Where nothing was asked for, nothing holds; what has ended does not either.
    #[test]
    fn nothing_holds_that_nobody_asked_for() {
        assert!(held(&[], 0).is_empty());
        assert!(held(&[asked(0, Some(5))], 5).is_empty());
        assert_eq!(
            held(&[asked(10, Some(20)), asked(30, Some(40))], 0),
            [(10, Some(20), 0), (30, Some(40), 1)]
        );
    }

    /// Whatever was asked for: of any instant exactly that price holds which began last of those that are asked for then, and no two follow each
    /// other that are one.
    #[test]
    fn of_any_instant_one_price_holds() {
        const INSTANTS: i64 = 6;
        let ends = |from: i64| (from + 1..=INSTANTS).map(Some).chain([None]);
        let of = |from: i64| ends(from).map(move |to| asked(from, to));
        for first in of(0) {
            for second in of(1) {
                for third in of(3) {
                    let all = [second, third, first];
                    let held = holding(&all, Timestamp::from_micros(0));
                    for at in (0..=INSTANTS).map(Timestamp::from_micros) {
                        let holds: Vec<usize> = held
                            .iter()
                            .filter(|(_, validity)| validity.contains(at))
                            .map(|(place, _)| *place)
                            .collect();
                        let expected = [1, 0, 2].into_iter().find(|place| all[*place].contains(at));
                        assert_eq!(holds, Vec::from_iter(expected), "{all:?} at {at:?}");
                    }
                    for pair in held.windows(2) {
                        let (one, next) = (&pair[0], &pair[1]);
                        let is_one = one.0 == next.0 && one.1.to == Some(next.1.from);
                        assert!(!is_one, "{all:?}: {held:?}");
                    }
                }
            }
        }
    }
}
