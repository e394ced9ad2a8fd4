//! A product's prices in time: what its seller has asked for, and what is stored of that.
//!
//! Of those that were asked for that one holds which began last of those that have not ended ([`holding`]): one that ends gives way to the one before it.
//! Stored are rows that hold one after the other, at most one at any instant. One that holds again after another one has a further row
//! ([`Price::resumes`]), which is nobody's wish: whoever sets the price while a discount runs replaces the price that would come again behind it.
//!
//! [`place`], [`change`] and [`remove`] change what was asked for, and then all that has not begun is cut anew ([`Timeline::store`]). Of what has begun
//! only the end is ever changed. Their callers have locked the product.

use crate::Problem;
use crate::refusals::{PRICE_OVERLAP, Refusal};
use souk_domain::ids::PriceId;
use souk_domain::prices::{Validity, holding};
use souk_domain::time::{DAY, Timestamp};
use souk_store::prices::{self, NewPrice, Price};
use souk_store::{AnyConnection, StoreError, Write};
use std::time::Duration;

/// A client that says `effective_from: now` is believed although its request took a moment.
const LATE: Duration = Duration::from_secs(60);

/// The clocks of two hosts differ by less, and one is set back by less. What was written by a clock further ahead is not waited for.
const SKEW: Duration = Duration::from_secs(60);

/// Prices of a product that are yet to hold: all are looked at whenever one is placed, moved or deleted.
const PLANNED_MAX: usize = 100;

/// Prices of a product that ended within [`ENDED_DAYS`]: they stay for good, since runs and the ledger name them, and grow by no more than that.
/// One that changes every hour has room.
const ENDED_MAX: i64 = 1_000;
const ENDED_DAYS: u32 = 30;

/// The begin of a price: now, or what was asked for. `now` is when the request came in, which may be long before its body was whole: a price begins
/// when it is written, at the earliest, or what was paid meanwhile would have cost something else.
pub fn begin(asked: Option<Timestamp>, now: Timestamp) -> Result<Timestamp, Problem> {
    match asked {
        Some(at) if at > now => Ok(at),
        Some(at) if at < now.before(LATE) => Err(Problem::invalid(
            "effective_from",
            "must not lie in the past",
        )),
        _ => Ok(now),
    }
}

/// When prices of a product are written: after all that was written of them before, also by a host whose clock is ahead, or by this one before its clock
/// was set back. What has begun by that one has begun.
pub async fn now(
    db: &mut AnyConnection,
    product: &str,
    clock: Timestamp,
) -> Result<Timestamp, StoreError> {
    let written = prices::written_at(db, product, clock).await?;
    let written = written.filter(|at| *at < clock.after(SKEW));
    Ok(written.map_or(clock, |at| clock.max(at.after(Duration::from_micros(1)))))
}

/// Puts a price there: it ends the one that holds, and holds until it ends itself or one begins that is planned already. `refusal`: where it cannot.
pub async fn place(
    write: &mut Write,
    new: &NewPrice<'_>,
    now: Timestamp,
    refusal: Refusal,
) -> Result<Price, Problem> {
    check_history(write, new.product, now, refusal).await?;
    let mut timeline = Timeline::read(write, new.product, now).await?;
    let price = new.price(now);
    let asked = price.asked();
    let no_time = Validity {
        to: Some(asked.from),
        ..asked
    };
    check_room(&timeline.asked, &price.id, asked, no_time)
        .map_err(|message| Problem::of(refusal, message))?;
    let id = price.id.clone();
    timeline.asked.push(price);
    timeline.check_planned(refusal)?;
    stored(timeline.store(write).await?, &id)
}

/// Changes what was asked of a price that has not begun, which was `before`. One that is another price again goes on being that where it is only moved:
/// then the one before it ends later, or earlier.
pub async fn change(
    write: &mut Write,
    before: &Price,
    mut after: Price,
    now: Timestamp,
) -> Result<Price, Problem> {
    let (id, asked, was) = (after.id.clone(), after.asked(), before.asked());
    if asked.to.is_some_and(|to| to <= asked.from) {
        return Err(Problem::invalid(
            "effective_to",
            "must be after effective_from",
        ));
    }
    let mut timeline = Timeline::read(write, &before.product_id, now).await?;
    let was_asked = timeline.asks(&id);
    if was_asked {
        after.resumes = None;
    }
    let is_asked = after.resumes.is_none();
    let room = match is_asked {
        true => check_room(&timeline.asked, &id, asked, was),
        false => {
            let to = None;
            check_room(&timeline.stored, &id, Validity { to, ..asked }, was)
        }
    };
    room.map_err(|message| Problem::of(PRICE_OVERLAP, message))?;
    if !was_asked && asked.from != was.from {
        timeline.end_before(write, before, Some(asked.from)).await?;
    }
    if is_asked {
        timeline.asked.retain(|price| price.id != id);
        timeline.asked.push(after);
    }
    if let Some(at) = timeline.gap() {
        let field = match asked.to == was.to {
            true => "effective_from",
            false => "effective_to",
        };
        let message = format!(
            "no price would hold from {at} on, as none before this one goes on then: set one for that time first"
        );
        return Err(Problem::invalid(field, message));
    }
    timeline.check_planned(PRICE_OVERLAP)?;
    stored(timeline.store(write).await?, &id)
}

/// Takes back a price that has not begun: the one before it goes on. Without one that comes again, the one before that does not end.
pub async fn remove(write: &mut Write, price: &Price, now: Timestamp) -> Result<(), Problem> {
    let mut timeline = Timeline::read(write, &price.product_id, now).await?;
    match timeline.asks(&price.id) {
        true => timeline.asked.retain(|other| other.id != price.id),
        false => timeline.end_before(write, price, price.ends_at).await?,
    }
    if let Some(at) = timeline.gap() {
        let message = format!(
            "without it no price would hold from {at} on: remove what ends then first, or set another one"
        );
        return Err(Problem::state("needed", message));
    }
    timeline.store(write).await?;
    Ok(())
}

/// Refuses, with this code, another price of a product of which too many have ended lately.
pub async fn check_history(
    db: &mut AnyConnection,
    product: &str,
    now: Timestamp,
    refusal: Refusal,
) -> Result<(), Problem> {
    let since = now.before(DAY * ENDED_DAYS);
    if prices::ended_since(db, product, since, now).await? < ENDED_MAX {
        return Ok(());
    }
    let message = format!(
        "at most {ENDED_MAX} prices of a product end within {ENDED_DAYS} days: set another one later"
    );
    Err(Problem::of(refusal, message))
}

/// Says why a price cannot be asked for so: another one begins with it or before it ends, or on the way from where it began before. Before an end that
/// it has had others may have been asked for: a discount within it, or what ends it before its time.
fn check_room(
    others: &[Price],
    price: &PriceId,
    asked: Validity,
    was: Validity,
) -> Result<(), &'static str> {
    let way = was.from.min(asked.from)..was.from.max(asked.from);
    let others = others.iter().filter(|other| other.id != *price);
    for begins in others.map(|other| other.validity.from) {
        if begins == asked.from {
            return Err("another price begins at the same instant");
        }
        if way.contains(&begins) {
            return Err("another price begins in between: change or remove that one first");
        }
        let is_known = was.to.is_some() && was.contains(begins);
        if !is_known && begins > asked.from && asked.to.is_some_and(|to| begins < to) {
            return Err("another price begins before this one ends");
        }
    }
    Ok(())
}

fn stored(rows: Vec<Price>, id: &PriceId) -> Result<Price, Problem> {
    let row = rows.into_iter().find(|row| row.id == *id);
    row.ok_or_else(|| Problem::internal("a price that was asked for never holds"))
}

/// The prices of a product that still matter.
struct Timeline {
    now: Timestamp,
    /// Rows that hold now or later, in the order of time.
    stored: Vec<Price>,
    /// What was asked for and may hold now or later: planned prices, the one that holds, and those that are under it.
    asked: Vec<Price>,
}

impl Timeline {
    async fn read(
        db: &mut AnyConnection,
        product: &str,
        now: Timestamp,
    ) -> Result<Timeline, StoreError> {
        let stored = prices::holding_from(db, product, now).await?;
        let planned = stored.iter().filter(|row| row.validity.is_future(now));
        let mut asked: Vec<Price> = planned
            .filter(|row| row.resumes.is_none())
            .cloned()
            .collect();
        if let Some(holds) = held(&stored, now) {
            // Whatever the rows before it say: nobody has asked for another one just now.
            asked.push(Price {
                id: holds.source().clone(),
                ..holds.clone()
            });
            if holds.ends_at.is_some() {
                asked.extend(prices::under(db, holds, now).await?);
            }
        }
        let mut timeline = Timeline { now, stored, asked };
        if !timeline.is_stored() {
            timeline.ask_stored();
        }
        Ok(timeline)
    }

    /// Whether all rows are those that what was asked for is cut to.
    fn is_stored(&self) -> bool {
        let cut = self.cut();
        let is_cut = |row: &Price| {
            let is_it = |other: &Price| {
                other.validity == row.validity
                    && (other.credits, other.usd) == (row.credits, row.usd)
                    && other.source() == row.source()
            };
            cut.iter().any(is_it)
        };
        self.stored.iter().all(is_cut)
    }

    /// A host of before, which shares the store until it is upgraded, changes rows, and knows neither of ends nor of prices that come again. What it has
    /// written is what sellers were told: each row is asked for as it stands, and none ends sooner.
    fn ask_stored(&mut self) {
        let now = self.now;
        self.asked.retain(|price| !price.validity.is_future(now));
        let planned = self.stored.iter().filter(|row| row.validity.is_future(now));
        self.asked.extend(planned.cloned());
        for price in &mut self.asked {
            let to = price.validity.to;
            price.ends_at = price.ends_at.filter(|end| to.is_some_and(|to| to <= *end));
            price.resumes = None;
        }
    }

    /// Whether that price was asked for, and is not another one again.
    fn asks(&self, id: &PriceId) -> bool {
        self.asked.iter().any(|price| price.id == *id)
    }

    /// Has the price end then that ends where this one comes again; and where that is sooner, also those that would hold in between.
    async fn end_before(
        &mut self,
        write: &mut Write,
        again: &Price,
        at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let ends = |row: &&Price| row.validity.to == Some(again.validity.from);
        let Some(source) = self.stored.iter().find(ends).map(Price::source).cloned() else {
            return Ok(());
        };
        let mut ended = vec![source];
        let under = self.asked.iter().find(|price| price.id == *again.source());
        if let (Some(at), Some(under)) = (at, under)
            && at < again.validity.from
        {
            let is_over = |price: &&Price| {
                price.validity.from > under.validity.from && price.asked().contains(at)
            };
            let over = self.asked.iter().filter(is_over);
            ended.extend(over.map(|price| price.id.clone()));
        }
        for id in &ended {
            // Also where it holds no more: it would be taken for one that has not ended.
            prices::ask_end(write, &again.product_id, id, at, self.now).await?;
            let rows = self.stored.iter_mut().chain(&mut self.asked);
            for row in rows.filter(|row| row.id == *id) {
                row.ends_at = at;
            }
        }
        Ok(())
    }

    /// What holds when, as places in what was asked for.
    fn holding(&self) -> Vec<(usize, Validity)> {
        let asked: Vec<Validity> = self.asked.iter().map(Price::asked).collect();
        holding(&asked, self.now)
    }

    /// From when on no price would hold although one does as it is stored. Not before the first one begins, which may be moved and taken back.
    fn gap(&self) -> Option<Timestamp> {
        let held: Vec<Validity> = self.holding().into_iter().map(|(_, held)| held).collect();
        let first = held.first()?.from;
        let ends = held.iter().filter_map(|validity| validity.to);
        let begins = self.stored.iter().map(|row| row.validity.from);
        let is_lost = |at: &Timestamp| {
            *at > first
                && !held.iter().any(|validity| validity.contains(*at))
                && self.stored.iter().any(|row| row.validity.contains(*at))
        };
        ends.chain(begins).filter(is_lost).min()
    }

    /// Refuses, with this code, more planned prices than there were, if they are too many.
    fn check_planned(&self, refusal: Refusal) -> Result<(), Problem> {
        let (stored, holding) = (self.stored.iter(), self.holding());
        let before = stored.filter(|row| row.validity.is_future(self.now));
        let after = holding
            .iter()
            .filter(|(_, validity)| validity.is_future(self.now));
        let (before, after) = (before.count(), after.count());
        if after <= before.max(PLANNED_MAX) {
            return Ok(());
        }
        let message =
            format!("a product has at most {PLANNED_MAX} planned prices: delete some first");
        Err(Problem::of(refusal, message))
    }

    /// The rows of what holds when: those that there are, as far as they still say it, and new ones.
    fn cut(&self) -> Vec<Price> {
        let holds = held(&self.stored, self.now);
        let is_spare = |row: &&Price| {
            row.resumes.is_some() && row.validity.is_future(self.now) && !self.asks(&row.id)
        };
        let mut spare: Vec<&Price> = self.stored.iter().filter(is_spare).collect();
        let mut rows = Vec::new();
        for (place, validity) in self.holding() {
            let Some(asked) = self.asked.get(place) else {
                continue;
            };
            // What holds already goes on.
            if let Some(holds) = holds
                && validity.from == self.now
                && asked.id == *holds.source()
            {
                let (from, to) = (holds.validity.from, validity.to);
                rows.push(Price {
                    validity: Validity { from, to },
                    ends_at: asked.ends_at,
                    ..holds.clone()
                });
                continue;
            }
            if validity.from == asked.validity.from {
                rows.push(Price {
                    validity,
                    ..asked.clone()
                });
                continue;
            }
            let mut row = Price {
                id: PriceId::generate(),
                validity,
                resumes: Some(asked.id.clone()),
                created_at: self.now,
                updated_at: self.now,
                ..asked.clone()
            };
            let is_of = |spare: &&Price| *spare.source() == asked.id;
            let is_same = |spare: &&Price| is_of(spare) && spare.validity.from == validity.from;
            let same = spare.iter().position(is_same);
            let found = same.or_else(|| spare.iter().position(is_of));
            if let Some(found) = found {
                let spare = spare.remove(found);
                row.id = spare.id.clone();
                (row.created_at, row.updated_at) = (spare.created_at, spare.updated_at);
            }
            rows.push(row);
        }
        rows
    }

    /// Writes what holds when, and tells it.
    async fn store(self, write: &mut Write) -> Result<Vec<Price>, StoreError> {
        let mut rows = self.cut();
        for row in &mut rows {
            match self.stored.iter().find(|stored| stored.id == row.id) {
                Some(stored) if *stored == *row => {}
                Some(_) => {
                    row.updated_at = self.now;
                    prices::update(write, row, self.now).await?;
                }
                None => prices::insert(write, row).await?,
            }
        }
        for gone in &self.stored {
            if rows.iter().any(|row| row.id == gone.id) {
                continue;
            }
            match gone.validity.is_future(self.now) {
                true => prices::delete(write, gone).await?,
                false => prices::end_at(write, gone, self.now, self.now).await?,
            }
        }
        Ok(rows)
    }
}

/// The row that holds now.
fn held(stored: &[Price], now: Timestamp) -> Option<&Price> {
    stored.iter().rfind(|row| row.validity.contains(now))
}
