//! Sums of intervals. Months, days and what is smaller are added up each by itself, in 128 bits, and what is told has to be within an interval.
//!
//! Start reading at [`total`].

use crate::errors;
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, ListArray, PrimitiveArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{
    Field, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result as Planned;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use std::collections::HashMap;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// Months, days, and milliseconds or nanoseconds. No number of rows outgrows them.
type Parts = [i128; 3];

/// One total, of intervals that are counted once if they are `distinct`.
pub fn total(unit: IntervalUnit, distinct: bool) -> Box<dyn Accumulator> {
    match unit {
        IntervalUnit::YearMonth => Box::new(Total::<IntervalYearMonthType>::new(distinct)),
        IntervalUnit::DayTime => Box::new(Total::<IntervalDayTimeType>::new(distinct)),
        IntervalUnit::MonthDayNano => Box::new(Total::<IntervalMonthDayNanoType>::new(distinct)),
    }
}

/// A total for each group.
pub fn groups(unit: IntervalUnit) -> Box<dyn GroupsAccumulator> {
    match unit {
        IntervalUnit::YearMonth => Box::new(Groups::<IntervalYearMonthType>::new()),
        IntervalUnit::DayTime => Box::new(Groups::<IntervalDayTimeType>::new()),
        IntervalUnit::MonthDayNano => Box::new(Groups::<IntervalMonthDayNanoType>::new()),
    }
}

/// What an interval of a type is made of.
trait Interval: ArrowPrimitiveType + Debug {
    fn parts(interval: Self::Native) -> Parts;

    /// `None` where a part outgrows its type.
    fn of(parts: Parts) -> Option<Self::Native>;
}

impl Interval for IntervalYearMonthType {
    fn parts(months: Self::Native) -> Parts {
        [i128::from(months), 0, 0]
    }

    fn of([months, _, _]: Parts) -> Option<Self::Native> {
        i32::try_from(months).ok()
    }
}

impl Interval for IntervalDayTimeType {
    fn parts(interval: Self::Native) -> Parts {
        let (days, millis) = Self::to_parts(interval);
        [0, i128::from(days), i128::from(millis)]
    }

    fn of([_, days, millis]: Parts) -> Option<Self::Native> {
        let (days, millis) = (i32::try_from(days).ok()?, i32::try_from(millis).ok()?);
        Some(Self::make_value(days, millis))
    }
}

impl Interval for IntervalMonthDayNanoType {
    fn parts(interval: Self::Native) -> Parts {
        let (months, days, nanos) = Self::to_parts(interval);
        [i128::from(months), i128::from(days), i128::from(nanos)]
    }

    fn of([months, days, nanos]: Parts) -> Option<Self::Native> {
        let (months, days) = (i32::try_from(months).ok()?, i32::try_from(days).ok()?);
        Some(Self::make_value(months, days, i64::try_from(nanos).ok()?))
    }
}

fn added(total: Parts, more: Parts) -> Parts {
    std::array::from_fn(|part| total[part] + more[part])
}

fn without(total: Parts, less: Parts) -> Parts {
    std::array::from_fn(|part| total[part] - less[part])
}

fn told<I: Interval>(total: Parts) -> Planned<I::Native> {
    I::of(total).ok_or_else(|| errors::through(errors::interval_too_large()))
}

/// One total, from which rows that leave a window are taken again.
#[derive(Debug)]
struct Total<I: Interval> {
    total: Parts,
    /// How many intervals it is the total of.
    counted: usize,
    /// How many rows each interval has, where it is counted once.
    rows: Option<HashMap<Parts, usize>>,
    kind: PhantomData<fn() -> I>,
}

impl<I: Interval> Total<I> {
    fn new(distinct: bool) -> Total<I> {
        Total {
            total: Parts::default(),
            counted: 0,
            rows: distinct.then(HashMap::new),
            kind: PhantomData,
        }
    }

    fn add(&mut self, interval: Parts) {
        if let Some(rows) = &mut self.rows {
            let rows = rows.entry(interval).or_default();
            *rows += 1;
            if *rows > 1 {
                return;
            }
        }
        self.total = added(self.total, interval);
        self.counted += 1;
    }

    fn take(&mut self, interval: Parts) {
        if let Some(rows) = &mut self.rows {
            match rows.get(&interval).copied() {
                None => return,
                Some(1) => rows.remove(&interval),
                Some(more) => {
                    rows.insert(interval, more - 1);
                    return;
                }
            };
        }
        self.total = without(self.total, interval);
        self.counted -= 1;
    }

    fn value(&self) -> Planned<ScalarValue> {
        let is_there = self.counted > 0;
        let total = match is_there {
            true => told::<I>(self.total)?,
            false => I::Native::default(),
        };
        let array = PrimitiveArray::<I>::new(vec![total].into(), Some(vec![is_there].into()));
        ScalarValue::try_from_array(&array, 0)
    }
}

impl<I: Interval> Accumulator for Total<I> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        for interval in values[0].as_primitive::<I>().iter().flatten() {
            self.add(I::parts(interval));
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        for interval in values[0].as_primitive::<I>().iter().flatten() {
            self.take(I::parts(interval));
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Planned<ScalarValue> {
        self.value()
    }

    fn state(&mut self) -> Planned<Vec<ScalarValue>> {
        let Some(rows) = &self.rows else {
            return Ok(vec![self.value()?]);
        };
        let intervals = rows.keys().map(|parts| told::<I>(*parts));
        let intervals: Vec<I::Native> = intervals.collect::<Planned<_>>()?;
        let intervals = PrimitiveArray::<I>::from_iter_values(intervals);
        let ends = OffsetBuffer::from_lengths([intervals.len()]);
        let field = Arc::new(Field::new_list_field(I::DATA_TYPE, true));
        let list = ListArray::new(field, ends, Arc::new(intervals), None);
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Planned<()> {
        if self.rows.is_none() {
            return self.update_batch(states);
        }
        for intervals in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[intervals])?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let entry = size_of::<(Parts, usize)>() + 1;
        let entries = self.rows.as_ref().map_or(0, HashMap::capacity);
        size_of::<Self>() + entries * entry
    }
}

struct Groups<I: Interval> {
    totals: Vec<Parts>,
    are_there: Vec<bool>,
    kind: PhantomData<fn() -> I>,
}

impl<I: Interval> Groups<I> {
    fn new() -> Groups<I> {
        Groups {
            totals: Vec::new(),
            are_there: Vec::new(),
            kind: PhantomData,
        }
    }

    fn take(&mut self, groups: EmitTo) -> Planned<ArrayRef> {
        let totals = groups.take_needed(&mut self.totals);
        let are_there = groups.take_needed(&mut self.are_there);
        let totals = totals.into_iter().map(told::<I>);
        let totals: Vec<I::Native> = totals.collect::<Planned<_>>()?;
        let totals = PrimitiveArray::<I>::new(totals.into(), Some(are_there.into()));
        Ok(Arc::new(totals))
    }
}

/// Whether a row is one of those that are added up.
fn counts(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl<I: Interval> GroupsAccumulator for Groups<I> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Planned<()> {
        self.totals.resize(total_groups, Parts::default());
        self.are_there.resize(total_groups, false);
        let intervals = values[0].as_primitive::<I>();
        for (row, group) in groups.iter().enumerate() {
            if intervals.is_valid(row) && counts(filter, row) {
                let total = &mut self.totals[*group];
                *total = added(*total, I::parts(intervals.value(row)));
                self.are_there[*group] = true;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, groups: EmitTo) -> Planned<ArrayRef> {
        self.take(groups)
    }

    fn state(&mut self, groups: EmitTo) -> Planned<Vec<ArrayRef>> {
        Ok(vec![self.take(groups)?])
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        total_groups: usize,
    ) -> Planned<()> {
        self.update_batch(states, groups, None, total_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Planned<Vec<ArrayRef>> {
        let intervals = values[0].as_primitive::<I>();
        let rows = 0..intervals.len();
        let are_there = rows.map(|row| intervals.is_valid(row) && counts(filter, row));
        let are_there: Vec<bool> = are_there.collect();
        let state = PrimitiveArray::<I>::new(intervals.values().clone(), Some(are_there.into()));
        Ok(vec![Arc::new(state)])
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<Parts>() + self.are_there.capacity()
    }
}
