//! The least and the greatest of intervals, by how long they are: DataFusion compares their months, then their days, then the rest, by which a
//! month is more than 40 days. Of two that are equally long the last one counts, as in PostgreSQL.
//!
//! Start reading at [`extreme`].

use crate::computed::lengths::nanos;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as Planned;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, Signature, Volatility,
};
use std::collections::VecDeque;

/// The function that stands in place of DataFusion's of this name, where it is given intervals.
pub fn extreme(name: &str) -> Option<AggregateUDF> {
    let is_greatest = match name {
        "max" => true,
        "min" => false,
        _ => return None,
    };
    Some(AggregateUDF::from(Extreme {
        is_greatest,
        signature: Signature::any(1, Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    is_greatest: bool,
    signature: Signature,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        match self.is_greatest {
            true => "max",
            false => "min",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Planned<DataType> {
        Ok(kinds.first().cloned().unwrap_or(DataType::Null))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Planned<Box<dyn Accumulator>> {
        Ok(Box::new(Best {
            is_greatest: self.is_greatest,
            none: ScalarValue::try_from(args.return_type())?,
            best: None,
        }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Planned<Box<dyn Accumulator>> {
        Ok(Box::new(Sliding {
            is_greatest: self.is_greatest,
            none: ScalarValue::try_from(args.return_type())?,
            candidates: VecDeque::new(),
            entered: 0,
            left: 0,
        }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Whether one that comes later takes the place of one before it.
fn replaces(is_greatest: bool, length: i128, before: i128) -> bool {
    match is_greatest {
        true => length >= before,
        false => length <= before,
    }
}

/// Calls `each` with the length of each interval that is there, and its row.
fn lengths(intervals: &ArrayRef, mut each: impl FnMut(i128, usize) -> Planned<()>) -> Planned<()> {
    let lengths = nanos(intervals)?;
    let lengths = lengths.as_primitive::<Decimal128Type>();
    for row in 0..lengths.len() {
        if lengths.is_valid(row) {
            each(lengths.value(row), row)?;
        }
    }
    Ok(())
}

#[derive(Debug)]
struct Best {
    is_greatest: bool,
    none: ScalarValue,
    best: Option<(i128, ScalarValue)>,
}

impl Accumulator for Best {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        let is_greatest = self.is_greatest;
        let mut length = self.best.as_ref().map(|(length, _)| *length);
        let mut at = None;
        lengths(&values[0], |next, row| {
            if length.is_none_or(|before| replaces(is_greatest, next, before)) {
                (length, at) = (Some(next), Some(row));
            }
            Ok(())
        })?;
        if let (Some(length), Some(row)) = (length, at) {
            self.best = Some((length, ScalarValue::try_from_array(&values[0], row)?));
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Planned<ScalarValue> {
        let best = self.best.as_ref().map(|(_, interval)| interval.clone());
        Ok(best.unwrap_or_else(|| self.none.clone()))
    }

    fn state(&mut self) -> Planned<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Planned<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// Of a window whose rows leave it in the order in which they came.
#[derive(Debug)]
struct Sliding {
    is_greatest: bool,
    none: ScalarValue,
    /// Numbers of intervals, which are the best of those that came after the one before. The first is the best of all.
    candidates: VecDeque<(usize, i128, ScalarValue)>,
    entered: usize,
    left: usize,
}

impl Accumulator for Sliding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        let Sliding {
            is_greatest,
            candidates,
            entered,
            ..
        } = self;
        lengths(&values[0], |length, row| {
            let is_replaced =
                |before: &(usize, i128, ScalarValue)| replaces(*is_greatest, length, before.1);
            while candidates.back().is_some_and(is_replaced) {
                candidates.pop_back();
            }
            let interval = ScalarValue::try_from_array(&values[0], row)?;
            candidates.push_back((*entered, length, interval));
            *entered += 1;
            Ok(())
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        self.left += values[0].len() - values[0].logical_null_count();
        while self
            .candidates
            .front()
            .is_some_and(|first| first.0 < self.left)
        {
            self.candidates.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Planned<ScalarValue> {
        let best = self.candidates.front();
        let best = best.map(|(_, _, interval)| interval.clone());
        Ok(best.unwrap_or_else(|| self.none.clone()))
    }

    fn state(&mut self) -> Planned<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Planned<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        let entry = size_of::<(usize, i128, ScalarValue)>();
        size_of::<Self>() + self.candidates.capacity() * entry
    }
}
