//! Counts of use that are added up between two flushes: of products by day, of how long runs took, and of what keys asked by hour.
//!
//! Refuses to know threads and the store: the [recorder](super::recorder) has one of these for each thread, and writes them by and by. Start reading at
//! [`Counts`].

use crate::executions::{DayCounts, DayKey, Ended};
use crate::times::{TimeCounts, TimeKey, Timed};
use crate::usage::{HourCounts, HourKey};
use hashbrown::hash_map::EntryRef;
use hashbrown::{Equivalent, HashMap};
use souk_domain::actors::Actor;
use souk_domain::ids::CompanyId;
use souk_domain::money::Credits;
use souk_domain::products::Product;
use souk_domain::time::Timestamp;
use std::hash::Hash;

/// Counters in one transaction: a few milliseconds, because charges wait for the same writer, and most flushes have fewer.
const COUNTERS_PER_COMMIT: usize = 256;
/// Distinct counters between two flushes: while the store is away they cannot grow without end.
const COUNTERS_MAX: usize = 100_000;
const HOUR_MICROS: i64 = 3_600_000_000;

/// One request, by a key or by somebody who is signed in.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub actor: &'a Actor,
    /// Whose key or user it is.
    pub company: &'a CompanyId,
    /// The route's prefix, as statistics show it.
    pub route: &'static str,
    pub at: Timestamp,
    pub failed: bool,
    /// Not refused before it was looked at: it counts against what its company may send in a month.
    pub admitted: bool,
}

/// What is added up between two flushes. Found by what a request has at hand ([`Seen`]): ids are cloned when a counter is new, because
/// threads that count one id's holders at once wait for each other's cores.
#[derive(Default)]
pub(super) struct Counts {
    days: HashMap<ProductUse, DayCounts>,
    hours: HashMap<HourKey, HourCounts>,
    times: HashMap<TimeKey, TimeCounts>,
}

impl Counts {
    pub(super) fn run(&mut self, ended: &Ended<'_>) {
        let day = ended.started_at.day_start().micros();
        let seen = Seen((ended.company, ended.seller, ended.product, day));
        if let Some(counts) = counter(&mut self.days, &seen) {
            counts.add_run(ended, Credits::ZERO);
        }
    }

    pub(super) fn time(&mut self, timed: &Timed<'_>) {
        let seen = Seen((timed.product, timed.day, timed.at_most_us));
        if let Some(counts) = counter(&mut self.times, &seen) {
            counts.add(&timed.counts);
        }
    }

    pub(super) fn asked(&mut self, asked: Asked<'_>) {
        let at = asked.at.micros();
        let hour = at.div_euclid(HOUR_MICROS) * HOUR_MICROS;
        let seen = Seen((asked.actor, asked.company, hour, asked.route));
        if let Some(counts) = counter(&mut self.hours, &seen) {
            counts.add(&HourCounts {
                requests: 1,
                failed: i64::from(asked.failed),
                admitted: i64::from(asked.admitted),
                first_at: at,
                last_at: at,
            });
        }
    }

    pub(super) fn add(&mut self, other: Counts) {
        join(&mut self.days, other.days, |all, counts| all.add(&counts));
        join(&mut self.hours, other.hours, |all, counts| all.add(&counts));
        join(&mut self.times, other.times, |all, counts| all.add(&counts));
    }

    /// What was taken out, and not written.
    pub(super) fn add_back(&mut self, left: Part<'_>) {
        let Part { days, times, hours } = left;
        join(&mut self.days, days.iter().cloned(), |all, counts| {
            all.add(&counts);
        });
        join(&mut self.hours, hours.iter().cloned(), |all, counts| {
            all.add(&counts);
        });
        join(&mut self.times, times.iter().cloned(), |all, counts| {
            all.add(&counts);
        });
    }
}

/// A [`DayKey`] that is cheap to make on the hot path.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ProductUse {
    company: CompanyId,
    seller: CompanyId,
    product: Product,
    day: i64,
}

/// A key of a counter as a request has it: members that are borrowed, in the order of the key's own. It hashes like the key.
#[derive(PartialEq, Eq, Hash)]
struct Seen<T>(T);

impl Equivalent<ProductUse> for Seen<(&CompanyId, &CompanyId, &Product, i64)> {
    fn equivalent(&self, key: &ProductUse) -> bool {
        self.0 == (&key.company, &key.seller, &key.product, key.day)
    }
}

impl Equivalent<TimeKey> for Seen<(&Product, i64, i64)> {
    fn equivalent(&self, key: &TimeKey) -> bool {
        self.0 == (&key.product, key.day, key.at_most_us)
    }
}

impl Equivalent<HourKey> for Seen<(&Actor, &CompanyId, i64, &'static str)> {
    fn equivalent(&self, key: &HourKey) -> bool {
        self.0 == (&key.actor, &key.company, key.hour, key.route)
    }
}

impl From<&Seen<(&CompanyId, &CompanyId, &Product, i64)>> for ProductUse {
    fn from(
        Seen((company, seller, product, day)): &Seen<(&CompanyId, &CompanyId, &Product, i64)>,
    ) -> Self {
        ProductUse {
            company: (*company).clone(),
            seller: (*seller).clone(),
            product: (*product).clone(),
            day: *day,
        }
    }
}

impl From<&Seen<(&Product, i64, i64)>> for TimeKey {
    fn from(Seen((product, day, at_most_us)): &Seen<(&Product, i64, i64)>) -> Self {
        TimeKey {
            product: (*product).clone(),
            day: *day,
            at_most_us: *at_most_us,
        }
    }
}

impl From<&Seen<(&Actor, &CompanyId, i64, &'static str)>> for HourKey {
    fn from(
        Seen((actor, company, hour, route)): &Seen<(&Actor, &CompanyId, i64, &'static str)>,
    ) -> Self {
        HourKey {
            actor: (*actor).clone(),
            company: (*company).clone(),
            hour: *hour,
            route,
        }
    }
}

impl ProductUse {
    pub(super) fn day_key(&self) -> DayKey {
        DayKey {
            company: self.company.clone(),
            day: self.day,
            product_id: self.product.id().to_owned(),
            product_type: self.product.product_type().as_str(),
            seller: self.seller.clone(),
        }
    }
}

/// The counter of what was seen, made if need be; `None` where there are too many.
fn counter<'a, 'b, K, S, C: Default>(
    counters: &'a mut HashMap<K, C>,
    seen: &'b S,
) -> Option<&'a mut C>
where
    K: Hash + Eq + From<&'b S>,
    S: Hash + Equivalent<K>,
{
    let has_room = counters.len() < COUNTERS_MAX;
    match counters.entry_ref(seen) {
        EntryRef::Occupied(counter) => Some(counter.into_mut()),
        EntryRef::Vacant(place) if has_room => {
            Some(place.insert_with_key(seen.into(), C::default()))
        }
        EntryRef::Vacant(_) => None,
    }
}

/// Adds up counters, within their bound: what waits for a store that is away does not grow without end.
fn join<K: Hash + Eq, C: Default>(
    all: &mut HashMap<K, C>,
    more: impl IntoIterator<Item = (K, C)>,
    add: impl Fn(&mut C, C),
) {
    for (key, counts) in more {
        if all.len() < COUNTERS_MAX || all.contains_key(&key) {
            add(all.entry(key).or_default(), counts);
        }
    }
}

/// Counters in the order in which they are written, so that hosts which share a store lock rows in one order.
pub(super) struct Sorted {
    days: Vec<(ProductUse, DayCounts)>,
    times: Vec<(TimeKey, TimeCounts)>,
    hours: Vec<(HourKey, HourCounts)>,
}

/// Some that follow each other.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub days: &'a [(ProductUse, DayCounts)],
    pub times: &'a [(TimeKey, TimeCounts)],
    pub hours: &'a [(HourKey, HourCounts)],
}

impl Sorted {
    pub(super) fn of(counts: Counts) -> Sorted {
        let mut days: Vec<_> = counts.days.into_iter().collect();
        days.sort_by_cached_key(|(key, _)| key.day_key());
        let mut times: Vec<_> = counts.times.into_iter().collect();
        times.sort_unstable_by(|(one, _), (other, _)| {
            let order = |key: &TimeKey| (key.day, key.at_most_us);
            let by_product = one.product.id().cmp(other.product.id());
            by_product.then_with(|| order(one).cmp(&order(other)))
        });
        let mut hours: Vec<_> = counts.hours.into_iter().collect();
        hours.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Sorted { days, times, hours }
    }

    pub(super) fn all(&self) -> Part<'_> {
        Part {
            days: &self.days,
            times: &self.times,
            hours: &self.hours,
        }
    }
}

impl<'a> Part<'a> {
    pub(super) fn len(&self) -> usize {
        self.days.len() + self.times.len() + self.hours.len()
    }

    /// What one transaction writes, and what is left then. `None`: there is nothing.
    pub(super) fn split(self) -> Option<(Part<'a>, Part<'a>)> {
        let mut room = COUNTERS_PER_COMMIT;
        let (days, days_left) = cut(self.days, &mut room);
        let (times, times_left) = cut(self.times, &mut room);
        let (hours, hours_left) = cut(self.hours, &mut room);
        let next = Part { days, times, hours };
        let left = Part {
            days: days_left,
            times: times_left,
            hours: hours_left,
        };
        (next.len() > 0).then_some((next, left))
    }
}

/// As many as there is room for, which is less then, and the others.
fn cut<'a, T>(all: &'a [T], room: &mut usize) -> (&'a [T], &'a [T]) {
    let (first, rest) = all.split_at(all.len().min(*room));
    *room -= first.len();
    (first, rest)
}
